"""Watching and acting over one WebSocket: entries and live events go out, submissions, answers and
cancels come in.

It offers nothing that HTTP does not: the same cursor, the same verbs, the same errors.
"""

import asyncio
import logging
from contextlib import aclosing
from functools import partial
from typing import Any, cast

import msgspec

from palyra.agent.gateway import Gateway
from palyra.api import streams
from palyra.api.calls import ApiCall, Nothing, Receive, Send, StreamingResponse
from palyra.api.calls import HttpResponse as HttpAnswer
from palyra.api.duplex import Conversing, from_json
from palyra.api.errors import UpgradeRequired
from palyra.api.guard import Guard
from palyra.api.limits import StreamEnd
from palyra.api.watch import WatchAll
from palyra.core.services import Services
from palyra.store.tokens import Token

log = logging.getLogger("palyra.http")

WS_PATH = "/v1/sessions/{session_id}/ws"
_GOING_AWAY, _INTERNAL = 1001, 1011
_encode = msgspec.json.Encoder(enc_hook=str).encode


async def not_upgraded(call: ApiCall[WatchAll, Nothing]) -> HttpAnswer | StreamingResponse:
    raise UpgradeRequired(
        "this address speaks WebSocket: connect with an upgrade, or watch /events instead"
    )


class WebSocketSession:
    """One open WebSocket of one session."""

    def __init__(
        self,
        services: Services,
        guard: Guard,
        token: Token,
        session_id: str,
        receive: Receive,
        send: Send,
    ) -> None:
        self._services = services
        self._conversing = Conversing(services, guard, token, session_id, "websocket")
        self._token = token
        self._session_id = session_id
        self._receive = receive
        self._send = send

    async def run(self, after: int, ended: StreamEnd) -> None:
        """Run until the client leaves, or `ended` is set because the token or the daemon ends."""
        out = asyncio.create_task(self._watch(after))
        into = asyncio.create_task(self._listen())
        tasks = {out, into}
        try:
            await asyncio.wait({*tasks, ended.future}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        errors = [
            error
            for task in tasks
            if not task.cancelled() and (error := task.exception()) is not None
        ]
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
        batches = self._services.get(Gateway).watch(self._token.principal, self._session_id, after)
        async with aclosing(cast("Any", batches)) as source:
            async for batch in source:
                for number, wire in streams.wires(batch):
                    await self._send({"type": "websocket.send", "text": _framed(number, wire)})
                live = bool(batch) and not batch[-1][0]
                # Nothing that was sent is held while nothing happens.
                batch, wire = (), b""
                if live:
                    await asyncio.sleep(streams.GATHER_S)

    async def _listen(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            raw = text.encode() if text is not None else message.get("bytes") or b""
            reply = await self._conversing.reply(partial(from_json, raw))
            await self._send({"type": "websocket.send", "text": _encode(reply).decode()})


def _framed(number: int, wire: bytes) -> str:
    if number:
        return f'{{"type":"entry","entry":{wire.decode()}}}'
    return f'{{"type":"live","event":{wire.decode()}}}'
