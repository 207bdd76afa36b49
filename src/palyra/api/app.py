"""The ASGI application: find the route, check the caller, decode, call the handler, send.
Everything it refuses, it says why.

No framework stands between the socket and the handler: the way of a submission is a dozen
dictionary lookups and one decode.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

from palyra.agent import client_tokens
from palyra.api import decoding
from palyra.api import routes as openapi
from palyra.api.calls import (
    FROM_NODE,
    ApiCall,
    DaemonInfo,
    Headers,
    HttpResponse,
    Nothing,
    Receive,
    Scope,
    Send,
    StreamingResponse,
    encode,
)
from palyra.api.errors import (
    CLOSING,
    MethodNotAllowed,
    TooManyHeaders,
    body_of,
    internal,
    status_of,
)
from palyra.api.guard import Guard, key_from_query
from palyra.api.intake import Pool
from palyra.api.limits import ApiLimits, OpenStreams, StreamEnd, seat
from palyra.api.metrics import Metrics
from palyra.api.routes import Endpoint, Gives, Route, Table
from palyra.api.streams import headers_of, place, send_answer, send_stream
from palyra.api.watch import cursor_for
from palyra.api.websocket import WS_PATH, WebSocketSession
from palyra.core import trace_context
from palyra.core.errors import NotFound, PalyraError, Unavailable
from palyra.core.services import Services
from palyra.store.database import Database
from palyra.system.clock import Clock

log = logging.getLogger("palyra.http")


class App:
    def __init__(
        self,
        services: Services,
        routes: Sequence[Route[Any, Any]],
        guard: Guard,
        limits: ApiLimits,
        always: Headers = (),
    ) -> None:
        """`always`: headers of every answer."""
        self.always = always
        self.services = services
        self.guard = guard
        self.limits = limits
        self._document = b""
        about_itself = Route(
            method="GET",
            path="/openapi.json",
            summary="this document",
            handler=self._openapi,
            scope=None,
            gives=(Gives(200, dict[str, Any]),),
        )
        self.routes: tuple[Route[Any, Any], ...] = (*routes, about_itself)
        self._table = Table(self.routes)
        self._exchanges = 0
        # What is held for callers without a token, over every door.
        self.strangers = Pool()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._exchanges += 1
        try:
            if scope["type"] == "http":
                await self._http(scope, receive, send)
            elif scope["type"] == "websocket":
                await self._websocket(scope, receive, send)
        finally:
            self._exchanges -= 1

    def close(self) -> None:
        """End every stream; what is being answered is still answered."""
        self.services.get(OpenStreams).close()

    async def _openapi(self, call: ApiCall[Nothing, Nothing]) -> HttpResponse:
        if not self._document:
            self._document = encode(
                openapi.document(self.routes, self.services.get(DaemonInfo).version)
            )
        return HttpResponse(200, self._document)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        label = "unknown"
        route: Route[Any, Any] | None = None
        extra = self.always
        try:
            self._check(scope, headers)
            if allowed := _cors(self.guard.foreign_origin(headers)):
                extra = (*allowed, *extra)
                if scope["method"] == "OPTIONS":
                    await send_answer(send, HttpResponse(204, headers=_PREFLIGHT), extra)
                    return
            endpoint, path = self._find(scope["path"], scope["method"])
            label, route = endpoint.label, endpoint.route
            call = await self._call(endpoint, path, scope, headers, receive)
            outcome = await endpoint.route.handler(call)
            if isinstance(outcome, StreamingResponse):
                with outcome.place or place(self.services, call.token) as ended:
                    self.services.get(Metrics).request(label, 200, time.perf_counter() - begun)
                    await self._stream(scope, outcome, receive, send, ended, extra)
                return
        except PalyraError as error:
            outcome = _refusal(error, route)
        except decoding.Gone:
            return
        except _Broken as broken:
            raise broken.error from None
        except Exception:  # noqa: BLE001  the boundary: whatever it was, the caller gets an answer and the log a trace
            outcome = self._failed(label, route)
        await send_answer(send, outcome, extra)
        self.services.get(Metrics).request(label, outcome.status, time.perf_counter() - begun)

    async def _stream(
        self,
        scope: Scope,
        outcome: StreamingResponse,
        receive: Receive,
        send: Send,
        ended: StreamEnd,
        extra: Headers,
    ) -> None:
        if scope["method"] == "HEAD":
            await outcome.chunks.aclose()
            await send_answer(
                send, HttpResponse(200, media=outcome.media, headers=outcome.headers), extra
            )
            return
        try:
            await send_stream(
                outcome,
                receive,
                send,
                ended=ended,
                heartbeat_s=self.limits.heartbeat_s,
                extra=extra,
            )
        except Exception as error:
            # The answer has begun: it can only break off now, and must not look complete.
            raise _Broken(error) from error

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse a request before anything else is read of it."""
        raw = scope["headers"]
        # A node that passes a request on has looked by which name it was called.
        if not scope.get(FROM_NODE):
            self.guard.check_host(raw, headers)
        self.guard.check_single(raw, headers)
        if len(raw) > self.limits.headers:
            raise TooManyHeaders(
                f"a request may have {self.limits.headers} headers (limits.headers)",
                limit=self.limits.headers,
            )
        if self._exchanges > self.limits.exchanges:
            raise Unavailable(
                f"{self.limits.exchanges} requests and streams are open: try again when some have"
                " ended"
            )

    def _find(self, path: str, method: str) -> tuple[Endpoint, dict[str, str]]:
        found = self._table.find(path)
        if found is None:
            raise NotFound(f"there is nothing at {path[:200]}: see /openapi.json")
        endpoints, values = found
        endpoint = endpoints.get("GET" if method == "HEAD" else method)
        if endpoint is None or (method == "HEAD" and endpoint.route.once):
            allowed = sorted(endpoints)
            raise MethodNotAllowed(
                f"{path[:200]} takes {', '.join(allowed)}, not {method[:20]}", allowed=allowed
            )
        return endpoint, values

    async def _call(
        self,
        endpoint: Endpoint,
        path: dict[str, str],
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
    ) -> ApiCall[Any, Any]:
        address = _address(scope)
        trace_context.receive(headers.get(b"traceparent"))
        # What has effects names the page's half in a header, which no form and no link can.
        given = (
            scope["query_string"]
            if endpoint.route.has_effects
            else key_from_query(headers, scope["query_string"])
        )
        token, by_cookie = self.guard.admit(endpoint.route, headers, address)
        decoding.check_path(path)
        await client_tokens.check(self.services.get(Database), token, path)
        query = decoding.query(endpoint, given)
        takes = endpoint.route.takes
        body: Any
        pool = self.strangers if endpoint.route.scope is None else None
        unread: tuple[str, ...] = ()
        if takes is not None:
            raw = await decoding.read_body(
                receive, headers, self.limits, most=takes.most, pool=pool
            )
            body = decoding.upload(takes, raw, headers.get(b"content-type"))
        elif endpoint.decode is None:
            body = endpoint.default_body
        else:
            raw = await decoding.read_body(
                receive, headers, self.limits, most=endpoint.route.most, pool=pool
            )
            body = await decoding.body(endpoint, raw, headers.get(b"content-type"))
            unread = decoding.unread(endpoint.route, raw)
        return ApiCall(
            self.services, token, path, query, body, headers, address, by_cookie, receive, unread
        )

    def _failed(self, label: str, route: Route[Any, Any] | None) -> HttpResponse:
        reference = self.services.get(Clock).new_id()
        log.exception("%s failed (%s)", label, reference)
        return _refusal(internal(reference), route)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        await receive()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        label = "unknown"
        try:
            self._check(scope, headers)
            endpoint, path = self._find(scope["path"], "GET")
            label = endpoint.label
            if endpoint.route.path != WS_PATH:
                raise NotFound(f"{scope['path'][:200]} does not speak WebSocket")
            given = key_from_query(headers, scope["query_string"])
            token, by_cookie = self.guard.admit(endpoint.route, headers, _address(scope))
            self.guard.check_origin(headers, by_cookie=by_cookie)
            decoding.check_path(path)
            await client_tokens.check(self.services.get(Database), token, path)
            after = decoding.query(endpoint, given).after
            session_id = path["session_id"]
            await cursor_for(self.services, token.principal, session_id, after)
            with place(self.services, token) as ended:
                await send({"type": "websocket.accept", "headers": headers_of(())})
                self.services.get(Metrics).request(label, 101, time.perf_counter() - begun)
                await WebSocketSession(
                    self.services, self.guard, token, session_id, receive, send
                ).run(after, ended)
            return
        except PalyraError as error:
            outcome = _refusal(error)
        await _deny(scope, send, outcome)
        self.services.get(Metrics).request(label, outcome.status, time.perf_counter() - begun)


class _Broken(Exception):
    """A stream that ended in an error after it had begun."""

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _deny(scope: Scope, send: Send, outcome: HttpResponse) -> None:
    """Refuse an upgrade with the same answer that HTTP would give."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [*headers_of(outcome.headers), (b"content-type", outcome.media)]
    await send(
        {"type": "websocket.http.response.start", "status": outcome.status, "headers": headers}
    )
    await send({"type": "websocket.http.response.body", "body": outcome.body})


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return seat(str(client[0])) if client else "unknown"


def _refusal(error: PalyraError, route: Route[Any, Any] | None = None) -> HttpResponse:
    status = status_of(error)
    headers: list[tuple[bytes, bytes]] = []
    if status in CLOSING:
        headers.append((b"connection", b"close"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 405:
        headers.append((b"allow", ", ".join(error.details["allowed"]).encode()))
    if "retry_after_ms" in error.details:
        headers.append(
            (b"retry-after", b"%d" % max(1, -(-error.details["retry_after_ms"] // 1000)))
        )
    refuse = route.refuse if route is not None else body_of
    if refuse is not body_of:
        # Programs that know OpenAI's try again by themselves, and would start another run.
        headers.append((b"x-should-retry", b"true" if error.retryable else b"false"))
    return HttpResponse(status, refuse(error), headers=tuple(headers))


_PREFLIGHT: Headers = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    # Whatever a library adds of its own; the star does not stand for the token's header.
    (b"access-control-allow-headers", b"authorization, *"),
    (b"access-control-max-age", b"600"),
)


def _cors(origin: bytes | None) -> Headers:
    """Return the CORS headers: only origins that the operator named may read answers; nobody else's
    pages are told anything.
    """
    if origin is None:
        return ()
    shown = (b"access-control-expose-headers", b"x-palyra-session, x-palyra-run")
    return ((b"access-control-allow-origin", origin), shown, (b"vary", b"origin"))
