"""Opening the door for workers on other machines, where the settings ask for it. What it needs is
loaded here and only then.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from palyra.api import listen_sockets
from palyra.core.errors import ConfigInvalid
from palyra.features.tls.service import Certificates
from palyra.features.workers.service import Workers
from palyra.serve.wiring.daemon import Daemon
from palyra.system.clock import Clock


@asynccontextmanager
async def opened(daemon: Daemon, listen: str, *, quic: bool) -> AsyncIterator[str]:
    """The door for as long as the block lasts, by TLS and, if it is wanted, by QUIC on the same
    number; gives where it is.
    """
    from palyra.features.workers.door.door import WorkerListener

    host, port = parsed(listen)
    listener = listen_sockets.bind(host, port, tls=True, setting="workers.listen")
    door = WorkerListener(
        daemon.get(Workers), daemon.get(Certificates), daemon.get(Clock), listener
    )
    await door.open()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(door.close)
        if quic:
            from palyra.features.workers.door.quic import listen as listen_by_quic

            by_quic = await listen_by_quic(listen_sockets.bind_udp(host, door.port), door.reception)
            stack.push_async_callback(by_quic.end)
        yield f"[{host}]:{door.port}" if ":" in host else f"{host}:{door.port}"


def parsed(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigInvalid(
            f'workers.listen is {listen!r}: it is an address and a port, such as "0.0.0.0:7445";'
            " empty for none",
            key="workers.listen",
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
