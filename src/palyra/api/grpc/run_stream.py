"""RunStream: one session over one call. Inputs, answers and cancels come up; entries and live
events go down, behind a cursor.

What a WebSocket offers, in messages with types.

What happened, as messages: many in one, and text that came in small pieces put together. A
message costs more than its bytes.

The pieces of a model's turn are gathered for a moment; an entry is sent when it comes.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache, partial
from typing import Any, cast

import grpc
import msgspec

from palyra.agent import client_tokens
from palyra.agent.gateway import Gateway
from palyra.api.decoding import invalid
from palyra.api.duplex import Ack, AnswerApproval, CancelRun, Conversing, Ping, Said, Submit
from palyra.api.errors import BodyTooSlow
from palyra.api.grpc.binding import parsed
from palyra.api.grpc.codec import chosen, filler
from palyra.api.grpc.verbs import HAPPENED, UP, Open, accepted
from palyra.api.guard import Guard
from palyra.api.streams import GATHER_S, decode_live, joined, place
from palyra.api.watch import Batch, cursor_for
from palyra.core.errors import InvalidInput, Unavailable
from palyra.core.events import Entry
from palyra.core.services import Services
from palyra.store.database import Database
from palyra.store.tokens import Token
from palyra.v1 import events_pb2, types_pb2

_MOST_ITEMS = 256
_MOST_BYTES = 512 << 10
_SHARED_BYTES = 8 << 10

_entry = msgspec.json.Decoder(Entry).decode
_OPTIONS = {type_: (option, filler(type_)) for option, type_ in HAPPENED.options}


def message_of(*values: Any) -> bytes:
    """One message with all of these."""
    batch = events_pb2.Batch()
    for value in values:
        option, fill = _OPTIONS[type(value)]
        inner = getattr(batch.happened.add(), option)
        inner.SetInParent()
        fill(inner, value)
    return bytes(batch.SerializeToString())


def messages_of(batch: Batch) -> Sequence[bytes]:
    """A batch as messages, none of them too large to be read."""
    if sum(len(wire) for _, wire in batch) <= _SHARED_BYTES:
        return _shared(tuple(batch))
    return tuple(_made(batch))


@lru_cache(maxsize=256)
def _shared(batch: tuple[tuple[int, bytes], ...]) -> Sequence[bytes]:
    """Make this once for all who watch the same session: they are told the same at once."""
    return tuple(_made(batch))


def _made(batch: Batch) -> Iterator[bytes]:
    held: list[Any] = []
    size = 0
    for number, wire in batch:
        if held and (size + len(wire) > _MOST_BYTES or len(held) >= _MOST_ITEMS):
            yield message_of(*joined(held))
            held, size = [], 0
        held.append(_entry(wire) if number else decode_live(wire))
        size += len(wire)
    if held:
        yield message_of(*joined(held))


async def pump(
    batches: AsyncGenerator[Batch, None], write: Callable[[bytes], Awaitable[None]]
) -> None:
    """Send what happens until it ends. `write` returns when there is room for more, so that a slow
    reader costs no memory.
    """
    async with aclosing(batches) as source:
        async for batch in source:
            for message in messages_of(batch):
                await write(message)
            live = bool(batch) and not batch[-1][0]
            # Nothing that was sent is held while nothing happens.
            batch = message = b""  # type: ignore[assignment]
            if live:
                await asyncio.sleep(GATHER_S)


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
        """Run until the client leaves; PalyraError if the stream cannot begin, or must end."""
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
