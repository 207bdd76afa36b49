"""Opening the HTTP/3 door beside HTTP. Its libraries are loaded here and only then."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from palyra.api.app import App
from palyra.api.limits import ApiLimits
from palyra.core.errors import ConfigInvalid

if TYPE_CHECKING:
    from palyra.api.key_pair import Pair
    from palyra.features.tls.service import Certificates


@asynccontextmanager
async def opened(
    udp: socket.socket, app: App, limits: ApiLimits, certificates: "Certificates", pair: "Pair"
) -> AsyncIterator[None]:
    try:
        from palyra.api.http3.server import listen
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            f"server.quic is on, but {error.name} is not installed: `pip install 'palyra[quic]'`,"
            " or turn it off",
            key="server.quic",
        ) from error
    http3 = await listen(udp, app, limits, pair)
    certificates.on_renewed.append(http3.use)
    try:
        yield
    finally:
        await http3.end()
