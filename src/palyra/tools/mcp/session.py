"""One conversation with a server: questions get their own answers, everything else a server says is heard or politely declined.

The rule: an answer goes to the question with its id or nowhere; a question that is given up is withdrawn, and nobody waits for it.
"""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from palyra.domain.errors import Unavailable
from palyra.tools.mcp import wire
from palyra.tools.mcp.wire import ErrorAnswer, InDoubt, Message, NotSent, Outgoing, TookTooLong

_MOST_PAGES = 64
_MOST_LISTED = 1024
_NO_WORDS_EVERY_S = 0.1
_MOST_PROGRESS = 500

Progress = Callable[[str], None]
Headers = tuple[tuple[str, str], ...]


class Receiver(Protocol):
    """Where a link delivers. `lost`: this question will not be answered. `closed`: none will; those in `unsent` never left."""

    def received(self, message: Message) -> None: ...

    def lost(self, request_id: int, why: Unavailable) -> None: ...

    def closed(self, why: str, unsent: frozenset[int]) -> None: ...


class Link(Protocol):
    """How messages travel: a pair of pipes, or requests over HTTP."""

    async def open(self, receiver: Receiver) -> None:
        """Raises NotSent if there is nobody."""
        ...

    def send(self, message: Outgoing) -> None:
        """Takes the message without waiting. Raises NotSent if it cannot."""
        ...

    def withdraw(self, request_id: int, notice: Outgoing | None) -> None:
        """The answer is no longer wanted; `notice` tells the server."""
        ...

    def agreed(self, version: str, *, listens: bool) -> None:
        """The version of the protocol that both sides speak from now on."""
        ...

    async def close(self) -> None: ...


class _Waiting(Struct):
    answer: "asyncio.Future[dict[str, Any]]"
    progress: Progress | None = None
    told_at: float = 0.0


class Session:
    """`changed` is called when the server says that its tools have; `ended` once, when the link is gone."""

    def __init__(self, link: Link, *, changed: Callable[[], None], ended: Callable[[str], None]) -> None:
        self._link = link
        self._changed = changed
        self._ended = ended
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._gone = ""
        self.version = ""
        self.server = ""

    # --- beginning and end ----------------------------------------------------------------------------------------------

    async def open(self, timeout_s: float) -> None:
        """Connect and agree on a version. Raises Unavailable."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._link.open(self)
                await self._agree(timeout_s)
        except TimeoutError:
            raise TookTooLong(f"it did not begin to speak within {timeout_s:g} s") from None

    async def _agree(self, timeout_s: float) -> None:
        try:
            greeting = await self.ask(
                "initialize", {"protocolVersion": wire.HANDSHAKE[0], "capabilities": {}, "clientInfo": wire.CLIENT}, timeout_s
            )
        except ErrorAnswer as refusal:
            await self._agree_modern(refusal, timeout_s)
            return
        version = greeting.get("protocolVersion")
        if version not in wire.HANDSHAKE:
            raise Unavailable(f"it speaks the protocol version {wire.clean(version, 32)!r}, which this client does not")
        self._met(greeting, str(version), "serverInfo")
        capabilities = greeting.get("capabilities")
        tools = capabilities.get("tools") if isinstance(capabilities, dict) else None
        self._link.send(wire.notification("notifications/initialized"))
        self._link.agreed(self.version, listens=isinstance(tools, dict))

    async def _agree_modern(self, refusal: ErrorAnswer, timeout_s: float) -> None:
        """A server without a handshake refuses it. Where it does not know the new way either, its first word counts."""
        self.version = wire.MODERN
        self._link.agreed(self.version, listens=False)
        try:
            found = await self.ask("server/discover", {}, timeout_s)
        except ErrorAnswer:
            raise refusal from None
        versions = found.get("supportedVersions")
        if not isinstance(versions, list) or wire.MODERN not in versions:
            raise refusal
        self._met(found, wire.MODERN, "serverInfo")

    def _met(self, greeting: dict[str, Any], version: str, where: str) -> None:
        info = greeting.get(where)
        info = info if isinstance(info, dict) else {}
        self.version = version
        self.server = f"{wire.clean(info.get('name'), 64)} {wire.clean(info.get('version'), 32)}".strip()

    async def close(self) -> None:
        self._end("it was closed", frozenset())
        await self._link.close()

    # --- asking ---------------------------------------------------------------------------------------------------------

    async def tools(self, timeout_s: float) -> list[Any]:
        """Every tool as the server describes it, over all pages."""
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self.ask("tools/list", {"cursor": cursor} if cursor else {}, timeout_s)
            listed = page.get("tools")
            found += listed if isinstance(listed, list) else []
            following = page.get("nextCursor")
            if not isinstance(following, str) or not following or following == cursor or len(found) >= _MOST_LISTED:
                break
            cursor = following
        return found[:_MOST_LISTED]

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        timeout_s: float,
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
            self._link.send(wire.request(request_id, method, self._meta(params, request_id, progress), headers))
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

    def _meta(self, params: dict[str, Any], request_id: int, progress: Progress | None) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        if progress is not None:
            meta["progressToken"] = request_id
        if self.version == wire.MODERN:
            prefix = "io.modelcontextprotocol"
            meta |= {f"{prefix}/protocolVersion": wire.MODERN, f"{prefix}/clientInfo": wire.CLIENT}
            meta[f"{prefix}/clientCapabilities"] = {}
        return params | {"_meta": meta} if meta else params

    def _withdraw(self, request_id: int, method: str, reason: str) -> None:
        # The handshake must not be withdrawn: there is no conversation yet.
        notice = wire.notification("notifications/cancelled", {"requestId": request_id, "reason": reason})
        self._link.withdraw(request_id, None if method == "initialize" else notice)

    # --- hearing --------------------------------------------------------------------------------------------------------

    def received(self, message: Message) -> None:
        match message:
            case wire.Response(id=message_id, result=result):
                self._settle(message_id, result)
            case wire.Failure(id=int() as message_id, code=code, message=words, data=data):
                self._settle(message_id, ErrorAnswer(code, words, data))
            case wire.Request():
                # A server that asks faster than it listens gets no answer.
                with suppress(NotSent):
                    self._link.send(wire.answer(message))
            case wire.Notification(method="notifications/tools/list_changed"):
                self._changed()
            case wire.Notification(method="notifications/progress", params=params):
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
            self._settle(request_id, NotSent(why) if request_id in unsent else InDoubt(why))
        self._ended(why)


def _progress_text(params: dict[str, Any]) -> str:
    done, total = params.get("progress"), params.get("total")
    parts = [f"{done:.12g}" + (f" of {total:.12g}" if _countable(total) else "")] if _countable(done) else []
    words = wire.clean(params.get("message"), _MOST_PROGRESS)
    return ": ".join([*parts, *([words] if words else [])]) or "working"


def _countable(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
