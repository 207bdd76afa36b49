"""Watching and acting over one WebSocket: entries and live events go out, submissions, answers and cancels come in.

It offers nothing that HTTP does not: the same cursor, the same verbs, the same errors.
"""

import asyncio
import logging
from contextlib import aclosing
from typing import Any, cast

import msgspec
from msgspec import Struct

from palyra.domain.errors import Forbidden, InvalidInput, PalyraError
from palyra.journal.approvals import Approval
from palyra.journal.runs import RunRow
from palyra.journal.tokens import Token
from palyra.runtime.answers import Answer
from palyra.runtime.gateway import Submission, Submitted
from palyra.transports.auth import allows
from palyra.transports.http.calls import Answer as HttpAnswer
from palyra.transports.http.calls import Call, Nothing, Parts, Receive, Send, Streaming
from palyra.transports.http.errors import Problem, UpgradeRequired, internal, problem_of
from palyra.transports.http.guard import Guard
from palyra.transports.http.reading import check_depth
from palyra.transports.http.watching import WatchAll

log = logging.getLogger("palyra.http")

WS_PATH = "/v1/sessions/{session_id}/ws"
_GOING_AWAY, _INTERNAL = 1001, 1011


class Submit(Submission, frozen=True, kw_only=True, tag_field="type", tag="submit"):
    id: str = ""


class AnswerApproval(Answer, frozen=True, kw_only=True, tag_field="type", tag="answer"):
    approval_id: str
    id: str = ""


class Cancel(Struct, frozen=True, kw_only=True, tag_field="type", tag="cancel", forbid_unknown_fields=True):
    run_id: str
    reason: str = ""
    id: str = ""


class Ping(Struct, frozen=True, kw_only=True, tag_field="type", tag="ping", forbid_unknown_fields=True):
    id: str = ""


class Ack(Struct, frozen=True, tag_field="type", tag="ack"):
    """`id` is the message's own; `result` is what HTTP would have answered."""

    id: str
    result: Submitted | Approval | RunRow


class Refused(Struct, frozen=True, tag_field="type", tag="error"):
    id: str
    error: Problem


class Pong(Struct, frozen=True, tag_field="type", tag="pong"):
    id: str


_decoder: msgspec.json.Decoder[Submit | AnswerApproval | Cancel | Ping] = msgspec.json.Decoder(
    Submit | AnswerApproval | Cancel | Ping
)
_encode = msgspec.json.Encoder(enc_hook=str).encode


async def not_upgraded(call: Call[WatchAll, Nothing]) -> HttpAnswer | Streaming:
    raise UpgradeRequired("this address speaks WebSocket: connect with an upgrade, or watch /events instead")


class Conversation:
    """One open WebSocket of one session."""

    def __init__(self, parts: Parts, guard: Guard, token: Token, session_id: str, receive: Receive, send: Send) -> None:
        self._parts = parts
        self._guard = guard
        self._token = token
        self._session_id = session_id
        self._receive = receive
        self._send = send

    async def run(self, after: int, ended: asyncio.Event) -> None:
        """Until the client leaves, or `ended` is set because the token or the daemon ends."""
        out = asyncio.create_task(self._watch(after))
        into = asyncio.create_task(self._listen())
        closed = asyncio.create_task(ended.wait())
        tasks = {out, into, closed}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        errors = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
        if any(isinstance(error, OSError) for error in errors):
            return  # The client went away while something was being sent to it.
        if errors:
            log.error("a WebSocket ended with an error", exc_info=errors[0])
            await self._close(_INTERNAL, "something went wrong inside the daemon")
        elif ended.is_set():
            await self._close(_GOING_AWAY, "the token was revoked or the daemon stops")

    async def _close(self, code: int, reason: str) -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _watch(self, after: int) -> None:
        batches = self._parts.gateway.watch(self._token.principal, self._session_id, after)
        async with aclosing(cast("Any", batches)) as source:
            async for batch in source:
                for number, wire in batch:
                    await self._send({"type": "websocket.send", "text": _framed(number, wire)})

    async def _listen(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            reply = await self._reply(text if text is not None else message.get("bytes") or b"")
            await self._send({"type": "websocket.send", "text": _encode(reply).decode()})

    async def _reply(self, raw: str | bytes) -> Ack | Refused | Pong:
        message_id = ""
        try:
            self._guard.take(self._token)
            message = _read(raw)
            message_id = message.id
            if isinstance(message, Ping):
                return Pong(message_id)
            return Ack(message_id, await self._act(message))
        except PalyraError as error:
            return Refused(message_id, problem_of(error))
        except Exception:
            reference = self._parts.clock.new_id()
            log.exception("a WebSocket message failed (%s)", reference)
            return Refused(message_id, problem_of(internal(reference)))

    async def _act(self, message: Submit | AnswerApproval | Cancel) -> Submitted | Approval | RunRow:
        token, parts = self._token, self._parts
        if not allows(token.scope, "operator"):
            raise Forbidden(f"a token with scope {token.scope} may not do this: it needs operator", scope=token.scope)
        match message:
            case Submit():
                return await parts.gateway.submit(token.principal, self._session_id, message)
            case AnswerApproval():
                return await parts.answers.answer(token.principal, message.approval_id, message, "websocket")
            case Cancel():
                return await parts.gateway.cancel(token.principal, message.run_id, message.reason or "cancelled by the user")


def _read(raw: str | bytes) -> Submit | AnswerApproval | Cancel | Ping:
    check_depth(raw.encode() if isinstance(raw, str) else raw)
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the message is not valid: {error}") from error


def _framed(number: int, wire: bytes) -> str:
    if number:
        return f'{{"type":"entry","entry":{wire.decode()}}}'
    return f'{{"type":"live","event":{wire.decode()}}}'
