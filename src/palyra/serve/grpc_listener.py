"""Opening the gRPC door beside HTTP. Its libraries are loaded here and only then."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from palyra.api import exposure, listen_sockets
from palyra.api.app import App
from palyra.core.errors import ConfigInvalid
from palyra.serve.config.schema import ServerSection as ServerSettings

if TYPE_CHECKING:
    from palyra.api.key_pair import Pair
    from palyra.features.tls.service import Certificates


@asynccontextmanager
async def opened(
    app: App, settings: ServerSettings, certificates: "Certificates | None", pair: "Pair | None"
) -> AsyncIterator[str]:
    """The door for as long as the block lasts; gives the address that programs on this machine
    use.
    """
    address = exposure.address_of(settings.host, tls=pair is not None)
    # gRPC binds by itself and says only that it could not: asked first, the port says who has it.
    listen_sockets.bind(
        settings.host, settings.grpc_port, tls=pair is not None, setting="server.grpc_port"
    ).close()
    try:
        from palyra.api.grpc import credentials
        from palyra.api.grpc.server import GrpcServer
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            f"server.grpc is on, but {error.name} is not installed: `pip install 'palyra[grpc]'`"
            " (in a checkout: `make grpc`), or turn it off",
            key="server.grpc",
        ) from error
    server = GrpcServer(app)
    secured = credentials.of(certificates, pair) if certificates and pair else None
    port = await server.start(address, settings.grpc_port, secured)
    host = exposure.called(address)
    try:
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        await server.stop()
