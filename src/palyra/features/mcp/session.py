"""One conversation with a server: questions get their own answers, everything else a server says is
heard or politely declined.

The rule: an answer goes to the question with its id or nowhere; a question that is given up is
withdrawn, and nobody waits for it.
"""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from palyra.core.errors import Unavailable
from palyra.features.mcp import jsonrpc
from palyra.features.mcp.jsonrpc import (
    ErrorAnswer,
    MaybeDelivered,
    Message,
    NotSent,
    OutgoingRpc,
    TookTooLong,
)

_MOST_PAGES = 64
_MOST_LISTED = 1024
_NO_WORDS_EVERY_S = 0.1
_MOST_PROGRESS = 500
_PROBE_S = 5.0
_LISTEN_AGAIN_S, _LONGEST_AGAIN_S = 1.0, 60.0
_OURS = "io.modelcontextprotocol"

Progress = Callable[[str], None]
Headers = tuple[tuple[str, str], ...]


class Receiver(Protocol):
    """Receiver of a link's messages. `lost`: this question will not be answered. `closed`: none
    will; those in `unsent` never left.
    """

    def received(self, message: Message) -> None: ...

    def lost(self, request_id: int, why: Unavailable) -> None: ...

    def closed(self, why: str, unsent: frozenset[int]) -> None: ...


class ServerLink(Protocol):
    """Transport of messages: a pair of pipes, or requests over HTTP.

    `modern_first`: a server that does not know the revision without a handshake says so at once, so
    that one is tried first.
    """

    modern_first: bool

    async def open(self, receiver: Receiver) -> None:
        """Open the link. Raise NotSent if there is nobody."""
        ...

    def send(self, message: OutgoingRpc) -> None:
        """Take the message without waiting. Raise NotSent if that is not possible."""
        ...

    def withdraw(self, request_id: int, notice: OutgoingRpc | None) -> None:
        """The answer is no longer wanted; `notice` tells the server."""
        ...

    def agreed(self, version: str, *, listens: bool = False) -> None:
        """The version of the protocol that is spoken from now on, and whether the server has more
        to say than answers.
        """
        ...

    async def look(self, *, called: bool) -> tuple[str, ...]:
        """Return what a person should know of the files that the server has changed here since the
        last time.

        `called`: a call has just ended, so what is new comes from it.
        """
        ...

    async def close(self) -> None: ...


class _Waiting(Struct):
    answer: "asyncio.Future[dict[str, Any]]"
    progress: Progress | None = None
    told_at: float = 0.0


class McpSession:
    """`changed` is called when the server says that its tools have; `ended` once, when the link is
    gone.
    """

    def __init__(
        self, link: ServerLink, *, changed: Callable[[], None], ended: Callable[[str], None]
    ) -> None:
        self._link = link
        self._changed = changed
        self._ended = ended
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._gone = ""
        self._listening: asyncio.Task[None] | None = None
        self.version = ""
        self.server = ""

    async def look(self, *, called: bool) -> tuple[str, ...]:
        return await self._link.look(called=called)

    async def open(self, timeout_s: float) -> None:
        """Connect and agree on a version. Raises Unavailable."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._link.open(self)
                await self._agree(timeout_s)
        except TimeoutError:
            raise TookTooLong(f"it did not begin to speak within {timeout_s:g} s") from None

    async def _agree(self, timeout_s: float) -> None:
        if self._link.modern_first:
            try:
                await self._discover(min(timeout_s, _PROBE_S))
            except NotSent:
                raise
            except Unavailable:
                await self._shake_hands(timeout_s)
            return
        try:
            await self._shake_hands(timeout_s)
        except ErrorAnswer as refusal:
            try:
                await self._discover(timeout_s)
            except ErrorAnswer:
                # It knows neither way; its first word is the better explanation.
                raise refusal from None

    async def _shake_hands(self, timeout_s: float) -> None:
        self.version = ""
        self._link.agreed("")
        params = {
            "protocolVersion": jsonrpc.HANDSHAKE[0],
            "capabilities": {},
            "clientInfo": jsonrpc.CLIENT,
        }
        greeting = await self.ask("initialize", params, timeout_s)
        version = greeting.get("protocolVersion")
        if version not in jsonrpc.HANDSHAKE:
            raise Unavailable(
                f"it speaks the protocol version {jsonrpc.clean(version, 32)!r}, which this client"
                " does not"
            )
        self._met(greeting.get("serverInfo"), str(version))
        self._link.agreed(self.version)
        self._link.send(jsonrpc.notification("notifications/initialized"))
        self._link.agreed(self.version, listens="tools" in _dict(greeting.get("capabilities")))

    async def _discover(self, timeout_s: float) -> None:
        """Begin without a handshake: from now on every request says who asks and in which
        version.
        """
        self.version = jsonrpc.MODERN
        self._link.agreed(self.version)
        try:
            found = await self.ask("server/discover", {}, timeout_s)
        except ErrorAnswer as refusal:
            supported = _dict(refusal.data).get("supported")
            if (
                refusal.rpc_code != jsonrpc.UNSUPPORTED_VERSION
                or not isinstance(supported, list)
                or jsonrpc.MODERN not in supported
            ):
                raise
            found = await self.ask("server/discover", {}, timeout_s)
        versions = found.get("supportedVersions")
        if not isinstance(versions, list) or jsonrpc.MODERN not in versions:
            raise ErrorAnswer(
                jsonrpc.UNSUPPORTED_VERSION,
                "it speaks none of the protocol versions that this client does",
            )
        self._met(
            _dict(found.get("_meta")).get(f"{_OURS}/serverInfo", found.get("serverInfo")),
            jsonrpc.MODERN,
        )
        if _dict(_dict(found.get("capabilities")).get("tools")).get("listChanged"):
            self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        """Stay subscribed to changes of the tools."""
        loop = asyncio.get_running_loop()
        wait = _LISTEN_AGAIN_S
        while not self._gone:
            began = loop.time()
            try:
                await self.ask(
                    "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, None
                )
            except ErrorAnswer:
                return
            except Unavailable:
                pass
            wait = (
                _LISTEN_AGAIN_S
                if loop.time() - began > _LONGEST_AGAIN_S
                else min(wait * 2, _LONGEST_AGAIN_S)
            )
            await asyncio.sleep(wait)
            # What happened meanwhile, nobody said.
            self._changed()

    def _met(self, who: Any, version: str) -> None:
        info = _dict(who)
        self.version = version
        self.server = f"{jsonrpc.clean(info.get('name'), 64)} {jsonrpc.clean(info.get('version'), 32)}".strip()  # noqa: E501

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        self._end("it was closed", frozenset())
        await self._link.close()

    async def tools(self, timeout_s: float) -> list[Any]:
        """Return every tool as the server describes it, over all pages."""
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self.ask("tools/list", {"cursor": cursor} if cursor else {}, timeout_s)
            listed = page.get("tools")
            found += listed if isinstance(listed, list) else []
            following = page.get("nextCursor")
            if (
                not isinstance(following, str)
                or not following
                or following == cursor
                or len(found) >= _MOST_LISTED
            ):
                break
            cursor = following
        return found[:_MOST_LISTED]

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        timeout_s: float | None,
        *,
        progress: Progress | None = None,
        headers: Headers = (),
    ) -> dict[str, Any]:
        """The server's answer. Raises NotSent, InDoubt, TookTooLong or ErrorAnswer."""
        if self._gone:
            raise NotSent(self._gone)
        request_id = next(self._ids)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), progress)
        self._waiting[request_id] = waiting
        try:
            self._link.send(
                jsonrpc.request(
                    request_id, method, self._meta(params, request_id, progress), headers
                )
            )
            async with asyncio.timeout(timeout_s):
                return await waiting.answer
        except TimeoutError:
            self._withdraw(request_id, method, "it took too long")
            raise TookTooLong(f"no answer came within {timeout_s:g} s") from None
        except asyncio.CancelledError:
            self._withdraw(request_id, method, "it is no longer wanted")
            raise
        finally:
            del self._waiting[request_id]

    def _meta(
        self, params: dict[str, Any], request_id: int, progress: Progress | None
    ) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        if progress is not None:
            meta["progressToken"] = request_id
        if self.version == jsonrpc.MODERN:
            meta |= {
                f"{_OURS}/protocolVersion": jsonrpc.MODERN,
                f"{_OURS}/clientInfo": jsonrpc.CLIENT,
            }
            meta[f"{_OURS}/clientCapabilities"] = {}
        return params | {"_meta": meta} if meta else params

    def _withdraw(self, request_id: int, method: str, reason: str) -> None:
        # The handshake must not be withdrawn: there is no conversation yet.
        notice = jsonrpc.notification(
            "notifications/cancelled", {"requestId": request_id, "reason": reason}
        )
        self._link.withdraw(request_id, None if method == "initialize" else notice)

    def received(self, message: Message) -> None:
        match message:
            case jsonrpc.RpcResponse(id=message_id, result=result):
                self._settle(message_id, result)
            case jsonrpc.RpcError(id=int() as message_id, code=code, message=words, data=data):
                self._settle(message_id, ErrorAnswer(code, words, data))
            case jsonrpc.RpcRequest():
                # A server that asks faster than it listens gets no answer.
                with suppress(NotSent):
                    self._link.send(jsonrpc.answer(message))
            case jsonrpc.RpcNotification(method="notifications/tools/list_changed"):
                self._changed()
            case jsonrpc.RpcNotification(method="notifications/progress", params=params):
                self._progressed(params)
            case _:
                pass  # Log messages and everything we did not ask for.

    def lost(self, request_id: int, why: Unavailable) -> None:
        self._settle(request_id, why)

    def closed(self, why: str, unsent: frozenset[int]) -> None:
        self._end(why, unsent)

    def _settle(self, request_id: int, outcome: "dict[str, Any] | Unavailable") -> None:
        waiting = self._waiting.get(request_id)
        if waiting is None or waiting.answer.done():
            return
        if isinstance(outcome, Unavailable):
            waiting.answer.set_exception(outcome)
        else:
            waiting.answer.set_result(outcome)

    def _progressed(self, params: dict[str, Any]) -> None:
        token = params.get("progressToken")
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        if waiting is None or waiting.progress is None or waiting.answer.done():
            return
        now = asyncio.get_running_loop().time()
        if waiting.told_at and now - waiting.told_at < _NO_WORDS_EVERY_S:
            return
        waiting.told_at = now
        waiting.progress(_progress_text(params))

    def _end(self, why: str, unsent: frozenset[int]) -> None:
        if self._gone:
            return
        self._gone = why
        for request_id in list(self._waiting):
            self._settle(request_id, NotSent(why) if request_id in unsent else MaybeDelivered(why))
        self._ended(why)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _progress_text(params: dict[str, Any]) -> str:
    done, total = params.get("progress"), params.get("total")
    parts = (
        [f"{done:.12g}" + (f" of {total:.12g}" if _countable(total) else "")]
        if _countable(done)
        else []
    )
    words = jsonrpc.clean(params.get("message"), _MOST_PROGRESS)
    return ": ".join([*parts, *([words] if words else [])]) or "working"


def _countable(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
