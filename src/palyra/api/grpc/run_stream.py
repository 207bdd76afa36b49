"""RunStream: one session over one call. Inputs, answers and cancels come up; entries and live
events go down, behind a cursor.

What a WebSocket offers, in messages with types.
"""

import asyncio
from functools import partial
from typing import Any, cast

import grpc
import msgspec

from palyra.agent import client_tokens
from palyra.agent.gateway import Gateway
from palyra.api.decoding import invalid
from palyra.api.duplex import Ack, AnswerApproval, CancelRun, Conversing, Ping, Said, Submit
from palyra.api.errors import BodyTooSlow
from palyra.api.grpc.batches import message_of, pump
from palyra.api.grpc.binding import parsed
from palyra.api.grpc.codec import chosen
from palyra.api.grpc.verbs import UP, Open, accepted
from palyra.api.guard import Guard
from palyra.api.streams import place
from palyra.api.watch import cursor_for
from palyra.core.errors import InvalidInput, Unavailable
from palyra.core.services import Services
from palyra.store.database import Database
from palyra.store.tokens import Token
from palyra.v1 import types_pb2

Context = Any
ENDED = "the token was revoked or the daemon stops: connect again with the last number you have"


def read(raw: bytes) -> Open | Said:
    try:
        values = chosen(UP, parsed(types_pb2.Up, raw))
        if values is None:
            raise InvalidInput(
                "the message is empty: set one of open, submit, answer, cancel, ping"
            )
        return cast(
            "Open | Said",
            msgspec.convert(values, Open | Submit | AnswerApproval | CancelRun | Ping),
        )
    except msgspec.ValidationError as error:
        raise invalid("the message", error) from error
    except msgspec.DecodeError as error:
        raise InvalidInput(f"a field that ends in _json is not valid JSON: {error}") from error


def _said(raw: bytes) -> Said:
    message = read(raw)
    if isinstance(message, Open):
        raise InvalidInput("this stream is open already: a stream has one session")
    return message


class RunStream:
    def __init__(self, services: Services, guard: Guard, token: Token, context: Context) -> None:
        self._services = services
        self._guard = guard
        self._token = token
        self._context = context
        # A call takes one message at a time.
        self._writing = asyncio.Lock()

    async def run(self, patience_s: float) -> None:
        """Until the client leaves; PalyraError if the stream cannot begin, or must end."""
        opened = await self._open(patience_s)
        token = self._token
        await client_tokens.check(
            self._services.get(Database), token, {"session_id": opened.session_id}
        )
        await cursor_for(self._services, token.principal, opened.session_id, opened.after)
        with place(self._services, token) as ended:
            # Headers tell the client that it may begin to talk.
            await self._context.send_initial_metadata(())
            batches = self._services.get(Gateway).watch(
                token.principal, opened.session_id, opened.after
            )
            out = asyncio.create_task(pump(cast("Any", batches), self._write), name="grpc out")
            into = asyncio.create_task(self._listen(opened.session_id), name="grpc in")
            tasks = {out, into}
            try:
                # Who has nothing more to say may still want to hear: the end of what comes up ends
                # nothing.
                await asyncio.wait({out, ended.future}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            if not out.cancelled():
                out.result()
            raise Unavailable(ENDED)

    async def _open(self, patience_s: float) -> Open:
        try:
            raw = await asyncio.wait_for(self._context.read(), patience_s)
        except TimeoutError:
            raise BodyTooSlow(f"the first message did not arrive within {patience_s:g} s") from None
        first = None if raw is grpc.aio.EOF else read(raw)
        if not isinstance(first, Open):
            raise InvalidInput("the first message of a RunStream is `open`: it names the session")
        return first

    async def _write(self, message: bytes) -> None:
        async with self._writing:
            await self._context.write(message)

    async def _listen(self, session_id: str) -> None:
        conversing = Conversing(self._services, self._guard, self._token, session_id, "grpc")
        while (raw := await self._context.read()) is not grpc.aio.EOF:
            reply = await conversing.reply(partial(_said, raw))
            await self._write(message_of(accepted(reply) if isinstance(reply, Ack) else reply))
