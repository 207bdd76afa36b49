"""The way of a message from the platform to a run: stored, then routed, then held for a moment,
then given to the agent.

Each move is one step of the store. In memory there are only the order of things and the timers;
after a crash both are made again from the rows, so that a message that was taken is never left
lying.

How much text each sender may send in a while before anybody looks at it. Counted in memory,
before any work is done.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from palyra.core.errors import PalyraError, Unavailable
from palyra.features.channels import registry
from palyra.features.channels.commands import ChatCommand, Commands, parse
from palyra.features.channels.connections import Connections
from palyra.features.channels.contract import Mark, TakenMessage
from palyra.features.channels.debounce import Holding
from palyra.features.channels.model import (
    LARGEST_TEXT,
    Inbound,
    InboundFile,
    Sender,
    is_stop,
    principal_of,
)
from palyra.features.channels.outbox import Posting, defect
from palyra.features.channels.pairing import PairingDesk
from palyra.features.channels.registry import Book, Who
from palyra.features.channels.rows import messages, outbox, people
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.views import ChatPlace
from palyra.store.database import Database, Tx
from palyra.system import thread_pool
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

_BURST = 64 << 10  # characters
_PER_SECOND = 1 << 10
_MOST_SENDERS = 4_096


class Shares:
    """A bucket for each sender that fills with time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[str, tuple[int, int]] = {}  # what is left, and when that was

    def allow(self, sender: str, size: int) -> bool:
        """Take `size` characters from the sender's share. Return False if that is more than is
        left.
        """
        now_ms = self._clock.now_ms()
        left, since_ms = self._left.pop(sender, (_BURST, now_ms))
        left = min(_BURST, left + max(0, now_ms - since_ms) * _PER_SECOND // 1_000)
        # The sender who was quiet longest goes first: by then their bucket is full again, or they
        # are one of very many.
        if len(self._left) >= _MOST_SENDERS:
            del self._left[next(iter(self._left))]
        self._left[sender] = (max(0, left - size), now_ms)
        return size <= left


log = logging.getLogger("palyra.channels")

_RETRY_MS = 1_000
_LONGEST_NAME = 200
_LONGEST_TITLE = 1_000
_SHORT_TEXT = 4 << 10  # a longer text is not redacted on the event loop
_REFUSED_TEXT = 256
# What a sender is told; of the rest only the trace tells, or a group would hear of every message
# that was not for us.
_TOLD: dict[str, str] = {
    "oversized": "That message is too long for me (32 KiB): send it as a file, or in parts.",
    "over_limit": (
        "That is more than I can take at once: wait until I have answered, then send it again."
    ),
}
Lane = tuple[str, str]
What = Literal["refused", "command", "held"]


class Intake:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        redactor: Redactor,
        book: Book,
        posting: Posting,
        pairing: PairingDesk,
        holding: Holding,
        commands: Commands,
    ) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor
        self._book = book
        self._posting = posting
        self._pairing = pairing
        self.holding = holding
        self._commands = commands
        self.connections: Connections
        self._shares = Shares(clock)
        self._in_order = asyncio.Lock()
        self._lanes: dict[Lane, deque[str]] = {}
        self._working: dict[Lane, asyncio.Task[None]] = {}
        self._beside: set[asyncio.Task[Any]] = set()

    async def take(
        self, connector: str, message: Inbound, cursor: str | None = None
    ) -> TakenMessage:
        """Store a message. What becomes of it is decided afterwards, in the order of its
        conversation.
        """
        storing = asyncio.create_task(self._store(connector, message, cursor))
        self._beside.add(storing)
        storing.add_done_callback(self._beside.discard)
        # The connection may break meanwhile, and with it whoever waits here: what is stored goes
        # its way all the same.
        return await asyncio.shield(storing)

    async def _store(self, connector: str, message: Inbound, cursor: str | None) -> TakenMessage:
        clean = await self._clean(connector, message)
        message_id = self._clock.new_id()
        principal = str(principal_of(connector, clean.sender.handle))

        def step(tx: Tx) -> TakenMessage:
            taken = TakenMessage(*messages.take(tx, connector, message_id, principal, clean))
            if cursor is not None:
                messages.remember(tx, connector, cursor)
            return taken

        taken = await self._db.write(step)
        if not taken.duplicate:
            self._line_up(
                connector, clean.conversation, message_id, first=self._is_urgent(connector, clean)
            )
        return taken

    async def _clean(self, connector: str, message: Inbound) -> Inbound:
        """The message as it is stored. A sender beyond their share who would be refused gets only
        the beginning of it read.
        """
        # Fair, so messages keep their order although a long one takes longer.
        async with self._in_order:
            message = replace(message, text=message.text[: LARGEST_TEXT + 64])
            if not self._shares.allow(f"{connector}:{message.sender.handle}", len(message.text)):
                look = partial(registry.look, book=self._book, connector=connector, message=message)
                routed = await self._db.read(
                    partial(look, called=self.connections.called(connector))
                )
                if not routed.decision.accepted and routed.decision.reason != "oversized":
                    message = replace(message, text=message.text[:_REFUSED_TEXT])
            if len(message.text) <= _SHORT_TEXT:
                return self._cleaned(message)
            return await thread_pool.everyday.run(self._cleaned, message)

    def _cleaned(self, message: Inbound) -> Inbound:
        """Return the message as it is stored: without secrets and lone surrogates, and of what is
        too long only as much as shows that it is.
        """
        redact, named = (
            self._redactor.redact,
            partial(self._redactor.redact_head, most=_LONGEST_NAME),
        )
        text = message.text.encode("utf-8", "replace").decode()
        sender = Sender(
            _named(message.sender.handle),
            named(_named(message.sender.display)),
            message.sender.verified,
        )
        files = tuple(
            InboundFile(named(_named(each.name)), each.data, _named(each.media_type))
            for each in message.files
        )
        return replace(
            message,
            native_id=_named(message.native_id),
            conversation=_named(message.conversation),
            thread=_named(message.thread),
            reply_to=_named(message.reply_to),
            text=redact(text),
            title=self._redactor.redact_head(_named(message.title), _LONGEST_TITLE),
            sender=sender,
            files=files,
        )

    def _is_urgent(self, connector: str, message: Inbound) -> bool:
        return is_stop(message, self._book.rules(connector), self.connections.called(connector))

    def _line_up(
        self, connector: str, conversation: str, message_id: str, *, first: bool = False
    ) -> None:
        lane = (connector, conversation)
        line = self._lanes.setdefault(lane, deque())
        if first:
            line.appendleft(message_id)
        else:
            line.append(message_id)
        if lane not in self._working:
            self._working[lane] = asyncio.create_task(self._work(lane))

    async def recover(self) -> None:
        """Recover after a start: continue with what was held, and then, because it is newer, with
        what was stored and not routed.
        """
        await self.holding.recover()
        received = await self._db.read(partial(messages.open_messages, state="received"))
        for message in await self._db.read(partial(messages.open_messages, state="queued")):
            answered = partial(outbox.of_reply, reply_id=message.message_id)
            if not message.run_id and not await self._db.read(answered):
                # A command that was accepted and not answered: it is done again, and does no harm
                # by it.
                self._aside(self._command(message, await self._who(message)))
        for message in received:
            self._line_up(message.connector, message.conversation, message.message_id)

    async def close(self) -> None:
        tasks = [*self._working.values(), *self._beside]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)
        await self.holding.close()

    async def _work(self, lane: Lane) -> None:
        line = self._lanes[lane]
        try:
            while line:
                message_id = line.popleft()
                await self._persist(message_id, partial(self._route, message_id))
        finally:
            del self._working[lane], self._lanes[lane]

    async def _persist(self, message_id: str, act: Callable[[], Awaitable[None]]) -> None:
        """Do it, and again as long as the store is away: nobody else would. What cannot be done is
        told, and the next goes on.
        """
        given_up = False
        while True:
            try:
                await act()
                return
            except Unavailable as error:
                log.warning("messages wait: %s", error.message)
                await self._clock.sleep(_RETRY_MS)
            except Exception as error:
                log.exception(
                    "message %s could not be %s",
                    message_id,
                    "told to have failed" if given_up else "routed",
                )
                if given_up:
                    return
                given_up = True
                act = partial(
                    self._give_up,
                    message_id,
                    error if isinstance(error, PalyraError) else defect(error),
                )

    async def _give_up(self, message_id: str, error: PalyraError) -> None:
        def step(tx: Tx) -> None:
            message = messages.find(tx, message_id)
            if (
                message is not None
                and message.state in ("received", "queued")
                and not message.run_id
            ):
                self._posting.fail(tx, [message], error)

        await self._db.write(step)

    async def _route(self, message_id: str) -> None:
        routed = await self._db.write(partial(self._decide, message_id=message_id))
        if routed is None:
            return
        message, who, what = routed
        match what:
            case "refused":
                self._mark(message, "refused")
            case "command":
                # Not in this lane: one that takes long must not hold up the conversation, least of
                # all a STOP.
                self._aside(self._command(message, who))
            case "held":
                self._mark(message, "seen")
                self.holding.hold(message, who)

    def _decide(self, tx: Tx, message_id: str) -> tuple[StoredMessage, Who, What] | None:
        message = messages.find(tx, message_id)
        if message is None or message.state != "received":
            return None
        inbound, connector = message.inbound, message.connector
        if message.files:
            # How many there are is all that matters here.
            inbound = replace(
                inbound, files=tuple(InboundFile("", b"") for _ in range(message.files))
            )
        called = self.connections.called(connector)
        routed = registry.look(tx, self._book, connector, called, inbound, besides=message_id)
        direct = message.conversation if inbound.is_direct else ""
        people.seen(tx, connector, message.sender, inbound.sender.display, direct)
        decision = routed.decision
        place = ChatPlace(connector, message.conversation, message.thread)
        if not decision.accepted:
            sentence = decision.sentence
            if decision.reason == "pairing_required":
                sentence = (
                    f"{sentence} ({self._pairing.stranger(tx, place, inbound.sender, message_id)})"
                )
            elif (
                decision.reason in _TOLD
                and routed.heard
                and not messages.refused_lately(tx, message, decision.reason)
            ):
                said = _TOLD[decision.reason]
                self._posting.post(
                    tx, place, said, "told", message_id=message_id, reply_to=inbound.native_id
                )
            messages.refuse(tx, message, decision.reason, sentence)
            return message, routed.who, "refused"
        messages.add_step(
            tx, message_id, "accepted", f"as {routed.who.acts_as}, session {routed.who.session_key}"
        )
        names = (*self._book.rules(connector).names, *called)
        command = parse(inbound, names)
        if command is not None:
            messages.move(tx, message_id, "queued", "command", command.name)
            return message, routed.who, "command"
        messages.move(tx, message_id, "held", "held", "for more of the same sender")
        return message, routed.who, "held"

    async def _who(self, message: StoredMessage) -> Who:
        return await self._db.read(
            partial(
                registry.identify,
                book=self._book,
                connector=message.connector,
                message=message.inbound,
            )
        )

    async def _command(self, message: StoredMessage, who: Who) -> None:
        names = (
            *self._book.rules(message.connector).names,
            *self.connections.called(message.connector),
        )
        command = parse(message.inbound, names) or ChatCommand("help")
        if command.name != "stop":
            # What the same person sent before it belongs before it.
            self.holding.flush(message)

        async def act() -> None:
            if command.name == "stop":
                # Before runs are looked for: what is held, or just being given to the agent, is one
                # of them by now or is not taken.
                await self._db.write(partial(_stop_held, stop=message))
            said = await self._commands.run(command, message, who)

            def step(tx: Tx) -> None:
                now = messages.get(tx, message.message_id)
                if now.state != "queued":
                    return
                place = ChatPlace(message.connector, message.conversation, message.thread)
                post = partial(
                    self._posting.post, tx, place, said, "command", reply_id=message.message_id
                )
                post(message_id=message.message_id, reply_to=message.inbound.native_id)

            await self._db.write(step)

        await self._persist(message.message_id, act)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _mark(self, message: StoredMessage, mark: Mark) -> None:
        """Show it on the message where the platform has a way to; that it fails is nobody's
        loss.
        """
        connector = self.connections.connector(message.connector)
        if connector is None or not connector.abilities.acknowledge or message.inbound.pressed:
            return

        async def show() -> None:
            try:
                await connector.acknowledge(message.conversation, message.inbound.native_id, mark)
            except Exception as error:  # noqa: BLE001  a sign of courtesy; whatever is wrong with it, the message goes its way
                log.info("channel %s could not mark a message: %s", connector.name, error)

        self._aside(show())


def _stop_held(tx: Tx, stop: StoredMessage) -> None:
    """Fail earlier messages of the same sender that no run has begun."""
    for each in (*messages.open_messages(tx, "received"), *messages.open_messages(tx, "held")):
        if (each.connector, each.sender) == (
            stop.connector,
            stop.sender,
        ) and each.number < stop.number:
            messages.move(
                tx,
                each.message_id,
                "failed",
                "stopped",
                "a STOP came before it was begun",
                "stopped",
            )
            messages.drop_files(tx, each.message_id)


def _named(text: str) -> str:
    """A name that can be stored: half of a character, which JSON can carry, is spelt out, so that
    no name becomes another's.
    """
    return text.encode("utf-8", "backslashreplace").decode()
