"""The daemon's certificate for gRPC, also after it was renewed: each new connection is shown the
one that is good then.
"""

from typing import TYPE_CHECKING, Any

import grpc

if TYPE_CHECKING:
    from palyra.api.key_pair import Pair
    from palyra.features.tls.service import Certificates


def of(certificates: "Certificates", pair: "Pair") -> Any:
    shown = [_configuration(pair)]
    certificates.on_renewed.append(lambda renewed: shown.append(_configuration(renewed)))

    def latest() -> Any:
        """Called for each connection, on a thread of gRPC's: what it should show from now on, or
        None for the same as before.
        """
        renewed, shown[:] = shown[1:], shown[-1:]
        return renewed[-1] if renewed else None

    return grpc.dynamic_ssl_server_credentials(
        shown[0], latest, require_client_authentication=False
    )


def _configuration(pair: "Pair") -> Any:
    return grpc.ssl_server_certificate_configuration(((pair.key, pair.certificate),))
