"""The gRPC door: the rows of the route table as RPCs, by the same handlers, behind the same guard,
under the same limits.

Loaded only when it is switched on: gRPC's library costs more memory than the rest of an idle
daemon's transports together.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import unquote

import grpc
from grpc_health.v1 import health_pb2

from palyra.agent import client_tokens
from palyra.api.app import App
from palyra.api.calls import ApiCall, HttpResponse, StreamingResponse
from palyra.api.errors import internal, status_of
from palyra.api.grpc.binding import Rpc, bound, services
from palyra.api.grpc.codec import refuse
from palyra.api.grpc.run_stream import ENDED, RunStream, pump
from palyra.api.grpc.unauthenticated import Doorkeeper, Strangers
from palyra.api.intake import BUDGET
from palyra.api.limits import StreamEnd, seat
from palyra.api.metrics import Metrics
from palyra.api.streams import place
from palyra.api.watch import Batch, all_watched, session_watched
from palyra.core.errors import ConfigInvalid, Forbidden, NotFound, PalyraError, Unavailable
from palyra.core.services import Services
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.v1 import types_pb2

log = logging.getLogger("palyra.grpc")

Context = Any
_GRACE_S = 3.0
_LINGER_S = 0.2
_PIECE = 64 << 10
_KEEPALIVE_MS = 30_000
# Also those that have only begun: gRPC's library shakes hands by itself, and takes no more than
# these.
_CONNECTIONS = 1_024


class GrpcServer:
    """Server of an App's routes. `address` is where it listens, once it does."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._services: Services = app.services
        self._working: set[asyncio.Future[Any]] = set()
        self._active = 0
        self._idle = asyncio.Event()
        keeper = Doorkeeper(app.guard.knows, self._stranger)
        self._server = grpc.aio.server(
            options=_options(app),
            maximum_concurrent_rpcs=app.limits.exchanges,
            interceptors=(keeper,),
        )
        names: list[str] = []
        self._rpcs: dict[str, Rpc] = {}
        for service in services():
            rpcs = bound(service, app.routes)
            self._rpcs.update({rpc.path: rpc for rpc in rpcs})
            handlers = {rpc.path.rpartition("/")[2]: self._handler(rpc) for rpc in rpcs}
            self._server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(service.full_name, handlers),)
            )
            names.append(service.full_name)
        self._strangers = Strangers(app.guard.count, _address)
        self._names = self._strangers.add_to(self._server, names)
        self.address = ""

    async def start(
        self, host: str, port: int, credentials: "grpc.ServerCredentials | None" = None
    ) -> int:
        """Listen, and give the port; ConfigInvalid if that cannot be."""
        where = f"[{host}]" if ":" in host else host
        try:
            taken: int = (
                self._server.add_insecure_port(f"{where}:{port}")
                if credentials is None
                else self._server.add_secure_port(f"{where}:{port}", credentials)
            )
        except RuntimeError as error:
            raise ConfigInvalid(
                f"gRPC cannot listen on {host} port {port}: choose another in server.grpc_port (0"
                " picks a free one)"
            ) from error
        await self._server.start()
        for name in ("", *self._names):
            await self._strangers.health.set(name, health_pb2.HealthCheckResponse.SERVING)
        self.address = f"{where}:{taken}"
        return taken

    async def stop(self) -> None:
        """Streams have been told to end; what is being answered is still answered. Who watches our
        health is not waited for.
        """
        await self._strangers.health.enter_graceful_shutdown()
        stopping = asyncio.ensure_future(self._server.stop(_GRACE_S))
        if self._active:
            idle = asyncio.ensure_future(self._idle.wait())
            await asyncio.wait({stopping, idle}, return_when=asyncio.FIRST_COMPLETED)
            idle.cancel()
        # What was written last is still on its way.
        await self._server.stop(_LINGER_S)
        await stopping
        if self._working:
            await asyncio.wait(self._working, timeout=_GRACE_S)

    def _handler(self, rpc: Rpc) -> Any:
        match rpc.kind:
            case "one" | "either":
                return grpc.unary_unary_rpc_method_handler(self._guarded(rpc, self._unary))
            case "talk":
                return grpc.stream_stream_rpc_method_handler(self._guarded(rpc, self._talk))
            case "events":
                return grpc.unary_stream_rpc_method_handler(self._guarded(rpc, self._events))
            case "pieces":
                return grpc.unary_stream_rpc_method_handler(self._guarded(rpc, self._pieces))

    def _guarded(
        self, rpc: Rpc, serve: Callable[[Rpc, Any, Context], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        label = f"GRPC {rpc.path}"
        metrics = self._services.get(Metrics)

        async def handle(raw: Any, context: Context) -> Any:
            begun = time.perf_counter()
            self._active += 1
            self._idle.clear()
            try:
                answer = await serve(rpc, raw, context)
                metrics.request(label, 200, took(begun))
                return answer
            except PalyraError as error:
                problem = error
            except Exception:
                # The boundary: whatever it was, the caller gets an answer and the log a trace.
                reference = self._services.get(Clock).new_id()
                log.exception("%s failed (%s)", label, reference)
                problem = internal(reference)
            finally:
                self._active -= 1
                if not self._active:
                    self._idle.set()
            metrics.request(label, status_of(problem), took(begun))
            return await refuse(context, problem)

        def took(begun: float) -> float:
            # How long somebody watched is no measure of us.
            return time.perf_counter() - begun if rpc.kind in ("one", "either") else 0.0

        return handle

    def _admitted(self, rpc: Rpc, context: Context) -> tuple[Any, str]:
        given = [(key.encode(), _bytes(value)) for key, value in context.invocation_metadata()]
        headers = dict(given)
        self._app.guard.check_single(given, headers)
        if b"origin" in headers:
            raise Forbidden("pages do not talk gRPC: use the HTTP API from a browser")
        address = _address(context.peer())
        # A token alone: there are no cookies here.
        authorization = headers.get(b"authorization", b"")
        return (
            self._app.guard.admit(rpc.route, {b"authorization": authorization}, address)[0],
            address,
        )

    async def _call(self, rpc: Rpc, raw: bytes, context: Context) -> ApiCall[Any, Any]:
        token, address = self._admitted(rpc, context)
        request = rpc.read(raw)
        await client_tokens.check(self._services.get(Database), token, request.path)
        return ApiCall(
            self._services, token, request.path, request.query, request.body, {}, address
        )

    async def _stranger(self, path: str, context: Context) -> None:
        """Refuse a call without a good token, without waiting for what it brings."""
        rpc = self._rpcs.get(path)
        try:
            if rpc is not None:
                self._admitted(rpc, context)
            raise NotFound(f"there is no {path[:200]}: see the reflection service")
        except PalyraError as error:
            self._services.get(Metrics).request(
                f"GRPC {rpc.path}" if rpc else "unknown", status_of(error), 0.0
            )
            await refuse(context, error)

    async def _unary(self, rpc: Rpc, raw: bytes, context: Context) -> bytes:
        answer = await self._handled(rpc, await self._call(rpc, raw, context))
        assert isinstance(answer, HttpResponse), f"{rpc.path} streams"
        return rpc.write(answer)

    async def _handled(self, rpc: Rpc, call: ApiCall[Any, Any]) -> HttpResponse | StreamingResponse:
        if not rpc.route.has_effects:
            return await rpc.route.handler(call)
        # A deadline or a caller who left ends the waiting, not the work: over HTTP what was begun
        # is done as well.
        task = asyncio.ensure_future(rpc.route.handler(call))
        self._working.add(task)
        task.add_done_callback(self._worked)
        return await asyncio.shield(task)

    def _worked(self, task: asyncio.Future[Any]) -> None:
        self._working.discard(task)
        if not task.cancelled():
            task.exception()  # Whoever waited got it; if nobody did, it is nobody's.

    async def _pieces(self, rpc: Rpc, raw: bytes, context: Context) -> None:
        call = await self._call(rpc, raw, context)
        outcome = await rpc.route.handler(call)
        if isinstance(outcome, HttpResponse):
            for start in range(0, len(outcome.body), _PIECE):
                await context.write(_piece(outcome.body[start : start + _PIECE]))
            return
        with place(self._services, call.token) as ended:
            await _until(ended, self._chunks(outcome, context))

    async def _chunks(self, outcome: StreamingResponse, context: Context) -> None:
        async with aclosing(outcome.chunks) as chunks:
            async for chunk in chunks:
                for start in range(0, len(chunk), _PIECE):
                    await context.write(_piece(chunk[start : start + _PIECE]))

    async def _events(self, rpc: Rpc, raw: bytes, context: Context) -> None:
        call = await self._call(rpc, raw, context)
        watched = session_watched if "session_id" in call.path else all_watched
        batches: AsyncGenerator[Batch, None] = await watched(call, _as_it_is)
        with place(self._services, call.token) as ended:
            await context.send_initial_metadata(())
            await _until(ended, pump(batches, context.write))

    async def _talk(self, rpc: Rpc, raw: Any, context: Context) -> None:
        token, _ = self._admitted(rpc, context)
        await RunStream(self._services, self._app.guard, token, context).run(
            self._app.limits.header_s
        )


def _as_it_is(batch: Batch) -> Batch:
    return batch


async def _until(ended: StreamEnd, work: Coroutine[Any, Any, None]) -> None:
    """Do the work to its end, or Unavailable when the stream must end. In the call's own task: an
    idle watcher needs no other.
    """
    task = asyncio.current_task()
    assert task is not None
    working = True

    def end(_: object) -> None:
        if working:
            task.cancel()

    ended.future.add_done_callback(end)
    try:
        await work
    except asyncio.CancelledError:
        if not ended.is_set():
            raise
        task.uncancel()
        raise Unavailable(ENDED) from None
    finally:
        working = False


def _piece(data: bytes) -> bytes:
    return bytes(types_pb2.Piece(data=data).SerializeToString())


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


def _address(peer: str) -> str:
    """`ipv4:127.0.0.1:5142` without what changes with each connection."""
    kind, _, where = unquote(peer).partition(":")
    return seat(where.rpartition(":")[0].strip("[]")) if kind in ("ipv4", "ipv6") else "unknown"


def _options(app: App) -> Sequence[tuple[str, Any]]:
    return (
        ("grpc.max_receive_message_length", app.limits.body_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", BUDGET.metadata_bytes),
        ("grpc.absolute_max_metadata_size", BUDGET.metadata_bytes),
        ("grpc.max_concurrent_streams", BUDGET.calls),
        ("grpc.http.overload_protection", 1),
        ("grpc.http2.max_deallocating_streams", BUDGET.calls_ending),
        ("grpc.tcp_receive_buffer_size", BUDGET.receive_bytes),
        ("grpc.experimental.tcp_max_read_chunk_size", BUDGET.receive_bytes),
        ("grpc.http2.max_requests_per_read", BUDGET.calls_at_once),
        # Whoever resets calls faster than they are taken up is refused by the library, before
        # Python hears of it.
        ("grpc.server.max_pending_requests", BUDGET.calls_waiting),
        (
            "grpc.server.max_pending_requests_hard_limit",
            BUDGET.calls_waiting + BUDGET.calls_waiting // 4,
        ),
        ("grpc.max_allowed_incoming_connections", _CONNECTIONS),
        ("grpc.server_handshake_timeout_ms", int(app.limits.header_s * 1000)),
        # Two daemons on one port would each get half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_MS // 2),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _KEEPALIVE_MS // 3),
        ("grpc.http2.max_ping_strikes", BUDGET.pings),
    )
