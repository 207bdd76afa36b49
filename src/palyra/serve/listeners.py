"""The doors that are opened beside HTTP where the settings ask for them: gRPC, HTTP/3, and the one
for workers on other machines. What each needs is loaded only then.
"""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from palyra.api import exposure, listen_sockets
from palyra.api.app import App
from palyra.api.calls import DaemonInfo
from palyra.api.exposure import Listener, ListenerSettings
from palyra.api.limits import ApiLimits
from palyra.core.errors import ConfigInvalid
from palyra.features.tls.service import Certificates
from palyra.features.workers.service import Workers
from palyra.serve.config.schema import ServerSection as ServerSettings
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Database
from palyra.system.clock import Clock

if TYPE_CHECKING:
    from palyra.api.listen_sockets import Pair


Opening = Callable[[ListenerSettings], AbstractAsyncContextManager[str]]


class LiveListeners:
    """The listeners that settings open and close while the daemon runs.

    One that cannot open is refused, and those that were open stay so.
    """

    def __init__(
        self,
        daemon: Daemon,
        about: DaemonInfo,
        grpc: Opening,
        on_grpc: Callable[[str], None],
        *,
        tls: bool,
    ) -> None:
        """`on_grpc` gets the address of gRPC whenever it changes; empty: there is none."""
        self._daemon = daemon
        self._about = about
        self._grpc = grpc
        self._on_grpc = on_grpc
        self._tls = tls
        self._now = ListenerSettings()
        self._open: dict[Literal["grpc", "workers"], AsyncExitStack] = {}

    async def use(self, wanted: ListenerSettings) -> None:
        before = self._now
        try:
            await self._change(wanted)
        except Exception:
            await self._change(before)
            raise
        self._about.exposure = replace(
            self._about.exposure, grpc=wanted.grpc, workers=wanted.workers
        )
        await exposure.record(self._daemon.get(Database), self._about.exposure)

    async def _change(self, wanted: ListenerSettings) -> None:
        now = self._now
        if (now.grpc, now.grpc_port) != (wanted.grpc, wanted.grpc_port):
            await self._close("grpc")
            self._now = now = replace(now, grpc=False, grpc_port=wanted.grpc_port)
            if wanted.grpc:
                await self._enter("grpc", self._grpc(wanted), tls=self._tls)
                self._now = now = replace(now, grpc=True)
        if (now.workers, now.workers_quic) != (wanted.workers, wanted.workers_quic):
            await self._close("workers")
            self._now = now = replace(now, workers="", workers_quic=wanted.workers_quic)
            if wanted.workers:
                opening = workers_listener(self._daemon, wanted.workers, quic=wanted.workers_quic)
                await self._enter("workers", opening, tls=True)
                self._now = replace(now, workers=wanted.workers)

    async def close(self) -> None:
        for name in tuple(self._open):
            await self._close(name)

    async def _enter(
        self,
        name: Literal["grpc", "workers"],
        opening: AbstractAsyncContextManager[str],
        *,
        tls: bool,
    ) -> None:
        stack = AsyncExitStack()
        address = await stack.enter_async_context(opening)
        self._open[name] = stack
        self._about.listeners.append(Listener(name, address, tls))
        if name == "grpc":
            self._on_grpc(address)

    async def _close(self, name: Literal["grpc", "workers"]) -> None:
        stack = self._open.pop(name, None)
        if stack is None:
            return
        self._about.listeners[:] = [each for each in self._about.listeners if each.name != name]
        await stack.aclose()
        if name == "grpc":
            self._on_grpc("")


@asynccontextmanager
async def grpc_listener(
    app: App, settings: ServerSettings, certificates: Certificates | None, pair: "Pair | None"
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
        from palyra.api.grpc import unauthenticated
        from palyra.api.grpc.server import GrpcServer
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            f"server.grpc is on, but {error.name} is not installed: `pip install 'palyra[grpc]'`"
            " (in a checkout: `make grpc`), or turn it off",
            key="server.grpc",
        ) from error
    server = GrpcServer(app)
    secured = unauthenticated.of(certificates, pair) if certificates and pair else None
    port = await server.start(address, settings.grpc_port, secured)
    host = exposure.called(address)
    try:
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        await server.stop()


@asynccontextmanager
async def http3_listener(
    udp: socket.socket, app: App, limits: ApiLimits, certificates: Certificates, pair: "Pair"
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
    certificates.on_renewed.connect(http3.use)
    try:
        yield
    finally:
        await http3.end()


@asynccontextmanager
async def workers_listener(daemon: Daemon, listen: str, *, quic: bool) -> AsyncIterator[str]:
    """The door for as long as the block lasts, by TLS and, if it is wanted, by QUIC on the same
    number; gives where it is.
    """
    from palyra.features.workers.door.door import WorkerListener

    host, port = _parsed(listen)
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


def _parsed(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigInvalid(
            f'workers.listen is {listen!r}: it is an address and a port, such as "0.0.0.0:7445";'
            " empty for none",
            key="workers.listen",
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
