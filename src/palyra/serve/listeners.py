"""The doors of the daemon: HTTP, and beside it gRPC, HTTP/3 and the one for workers on other
machines where the settings ask for them. What each needs is loaded only then.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from typing import Literal

from msgspec.structs import replace

from palyra.api import exposure, listen_sockets
from palyra.api.app import App
from palyra.api.auth import Access
from palyra.api.calls import DaemonInfo, Headers
from palyra.api.exposure import Exposure, Listener, ListenerSettings
from palyra.api.http_server import HttpServer
from palyra.api.limits import ApiLimits
from palyra.api.listen_sockets import Pair
from palyra.core.errors import ConfigInvalid
from palyra.core.signals import Signal
from palyra.features.tls.service import Certificates
from palyra.features.workers.service import Workers
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Database
from palyra.system.clock import Clock

_Name = Literal["http3", "grpc", "workers"]


class LiveListeners:
    """Every listener of the daemon. Settings open, close and move them while it runs.

    One that cannot open is refused, and those that were open stay so.
    """

    def __init__(
        self,
        daemon: Daemon,
        app: App,
        server: HttpServer,
        port: int,
        *,
        always_quic: bool,
    ) -> None:
        """`port`: HTTP's. `always_quic`: HTTP/3 was asked for at the start, whatever the settings
        say.
        """
        self._daemon = daemon
        self._app = app
        self._server = server
        self._port = port
        self._always_quic = always_quic
        self._about = app.services.get(DaemonInfo)
        self._certificates = daemon.find(Certificates)
        self._now = ListenerSettings()
        self._pair: Pair | None = None
        self._context = ExitStack()
        self._open: dict[_Name, AsyncExitStack] = {}
        # Told whenever programs on this machine find the daemon elsewhere than before.
        self.on_moved = Signal[[]]("listeners at other addresses")

    @property
    def grpc(self) -> str:
        """The address of gRPC; empty: there is none."""
        return self._address("grpc")

    @property
    def trust(self) -> str:
        """The file with the certificate that HTTP shows; empty: it shows none."""
        shown = self._certificates if self._now.exposure.tls else None
        return str(shown.served_file) if shown else ""

    async def begin(
        self, wanted: ListenerSettings, udp: socket.socket | None
    ) -> ssl.SSLContext | None:
        """Open all but HTTP, which is to be served with what this gives. Its port and that of
        HTTP/3 were bound before there was a daemon.
        """
        wanted = self._with_options(wanted)
        context = await self._secure(wanted.exposure)
        self._now = _without_others(wanted)
        if udp is not None:
            await self._open_http3(udp)
        await self._change(wanted)
        return context

    async def use(self, wanted: ListenerSettings) -> None:
        wanted = self._with_options(wanted)
        others = self._app.services.get(Access).has_others()
        exposure.check_tokens(wanted.exposure, others=others)
        before = self._now
        try:
            await self._change(wanted)
        except Exception:
            await self._change(before)
            raise
        await exposure.record(self._daemon.get(Database), self._about.exposure)

    async def close(self) -> None:
        for name in tuple(self._open):
            await self._close(name)
        self._context.close()

    def _with_options(self, wanted: ListenerSettings) -> ListenerSettings:
        quic = self._always_quic or wanted.exposure.quic
        return replace(wanted, exposure=replace(wanted.exposure, quic=quic))

    async def _change(self, wanted: ListenerSettings) -> None:
        if _of_http(self._now.exposure) != _of_http(wanted.exposure):
            # gRPC and HTTP/3 listen on the same address, with the same certificate.
            await self._close("grpc")
            await self._close("http3")
            await self._move(wanted.exposure)
        await self._change_others(wanted)
        self._now = wanted
        self._tell()

    async def _move(self, wanted: Exposure) -> None:
        """Serve HTTP at another address, with TLS or without, or under other names."""
        now, held = self._now.exposure, _without_others(self._now)
        context = await self._secure(wanted)
        try:
            if (wanted.host, wanted.tls) != (now.host, now.tls):
                await self._server.move(
                    self._binding(wanted), context, same=wanted.host == now.host
                )
        except Exception:
            await self._server.move(self._binding(now), await self._secure(now), same=False)
            raise
        finally:
            self._now = held
        self._now = replace(held, exposure=replace(wanted, grpc=False, quic=False, workers=""))

    def _binding(self, exposed: Exposure) -> Callable[[], socket.socket]:
        return partial(listen_sockets.bind, exposed.host, self._port, tls=exposed.tls)

    async def _secure(self, wanted: Exposure) -> ssl.SSLContext | None:
        """Return the TLS context; only a daemon that serves TLS needs certificates."""
        self._context.close()
        if not (wanted.tls or wanted.quic):
            self._pair = None
            return None
        certificates = self._daemon.get(Certificates)
        self._pair = await certificates.serve(exposure.names_of(wanted.host, wanted.names))
        return self._context.enter_context(certificates.context()) if wanted.tls else None

    async def _change_others(self, wanted: ListenerSettings) -> None:
        exposed = wanted.exposure
        if exposed.quic != ("http3" in self._open):
            await self._close("http3")
            if exposed.quic:
                if self._pair is None:
                    await self._secure(exposed)
                await self._open_http3(listen_sockets.bind_udp(exposed.host, wanted.quic_port))
        now = self._now
        if (now.exposure.grpc, now.grpc_port) != (exposed.grpc, wanted.grpc_port):
            await self._close("grpc")
            if exposed.grpc:
                pair = self._pair if exposed.tls else None
                opening = grpc_listener(
                    self._app, exposed.host, wanted.grpc_port, self._certificates, pair
                )
                await self._enter("grpc", opening, tls=exposed.tls)
            self._now = now = replace(
                now, grpc_port=wanted.grpc_port, exposure=replace(now.exposure, grpc=exposed.grpc)
            )
        if (now.exposure.workers, now.workers_quic) != (exposed.workers, wanted.workers_quic):
            await self._close("workers")
            if exposed.workers:
                opening = workers_listener(self._daemon, exposed.workers, quic=wanted.workers_quic)
                await self._enter("workers", opening, tls=True)

    async def _open_http3(self, udp: socket.socket) -> None:
        assert self._pair is not None
        certificates = self._daemon.get(Certificates)
        opening = http3_listener(udp, self._app, self._app.limits, certificates, self._pair)
        await self._enter("http3", opening, tls=True)

    async def _enter(
        self, name: _Name, opening: AbstractAsyncContextManager[str], *, tls: bool
    ) -> None:
        stack = AsyncExitStack()
        address = await stack.enter_async_context(opening)
        self._open[name] = stack
        self._about.listeners.append(Listener(name, address, tls))

    async def _close(self, name: _Name) -> None:
        stack = self._open.pop(name, None)
        if stack is None:
            return
        self._about.listeners[:] = [each for each in self._about.listeners if each.name != name]
        await stack.aclose()

    def _address(self, name: str) -> str:
        return next((each.address for each in self._about.listeners if each.name == name), "")

    def _tell(self) -> None:
        """Say everywhere where the daemon is now."""
        exposed = self._now.exposure
        url = url_of(exposed.host, self._port, secure=exposed.tls)
        self._about.url, self._about.exposure = url, exposed
        rest = [each for each in self._about.listeners if each.name != "http"]
        self._about.listeners[:] = [Listener("http", url, exposed.tls), *rest]
        quic_port = int(self._address("http3").rpartition(":")[2] or 0)
        ports = (self._port, quic_port) if quic_port else (self._port,)
        self._app.guard.answer_to(exposed, ports)
        self._app.always = headers_of_all(exposed, quic_port)
        self.on_moved.send()


def _of_http(exposed: Exposure) -> Exposure:
    """Return the part that decides how HTTP is reached."""
    return replace(exposed, grpc=False, quic=False, workers="")


def _without_others(settings: ListenerSettings) -> ListenerSettings:
    """HTTP alone."""
    return ListenerSettings(exposure=_of_http(settings.exposure))


def url_of(host: str, port: int, *, secure: bool) -> str:
    """Return how programs on this machine call us."""
    host = exposure.called(host)
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def headers_of_all(exposed: Exposure, quic_port: int) -> Headers:
    """Headers of every answer, which say how we are reached: by HTTPS alone, if the certificate is
    one that browsers know; by HTTP/3 too.
    """
    found: Headers = ()
    if exposed.own_files:
        found += ((b"strict-transport-security", b"max-age=31536000"),)
    if exposed.tls and quic_port:
        found += ((b"alt-svc", b'h3=":%d"; ma=86400' % quic_port),)
    return found


@asynccontextmanager
async def grpc_listener(
    app: App, host: str, port: int, certificates: Certificates | None, pair: Pair | None
) -> AsyncIterator[str]:
    """The door for as long as the block lasts; gives the address that programs on this machine
    use.
    """
    address = exposure.address_of(host, tls=pair is not None)
    # gRPC binds by itself and says only that it could not: asked first, the port says who has it.
    listen_sockets.bind(host, port, tls=pair is not None, setting="server.grpc_port").close()
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
    port = await server.start(address, port, secured)
    host = exposure.called(address)
    try:
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        await server.stop()


@asynccontextmanager
async def http3_listener(
    udp: socket.socket, app: App, limits: ApiLimits, certificates: Certificates, pair: Pair
) -> AsyncIterator[str]:
    host, port = udp.getsockname()[:2]
    try:
        from palyra.api.http3.server import listen
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            f"server.quic is on, but {error.name} is not installed: `pip install 'palyra[quic]'`,"
            " or turn it off",
            key="server.quic",
        ) from error
    http3 = await listen(udp, app, limits, pair)
    leave = certificates.on_renewed.connect(http3.use)
    try:
        yield url_of(host, port, secure=True)
    finally:
        leave()
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
