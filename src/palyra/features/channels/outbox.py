"""Sending what the outbox holds: each conversation in its order, no conversation waiting for
another, at least once.

An attempt is on disk before it is made. What fails is tried again, five times with growing pauses,
and then is a dead letter that somebody is told of. Being without a connection and being told to
wait by the platform are no failed attempts.

How fast a channel may send: so many a second in all, and so far apart in one conversation.
Waiting is by the given clock.

Measured by ticks: a clock on the wall that is set back must not keep everybody waiting until it is
as late again.

Putting words into the outbox, inside whatever step causes them: cut to the platform's size,
unable to ping everybody.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from palyra.core.errors import NotFound, PalyraError, Unavailable
from palyra.features.channels import texts
from palyra.features.channels.contract import (
    Abilities,
    Connector,
    ConnectorLimits,
    Lost,
    OutFile,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
)
from palyra.features.channels.message_splitter import split
from palyra.features.channels.model import Button, defused
from palyra.features.channels.registry import Book
from palyra.features.channels.rows import messages as messages_rows
from palyra.features.channels.rows import outbox
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.rows.outbox import SIGNAL, Body, Reply, ReplyKind, SentFile
from palyra.features.channels.views import ChatPlace
from palyra.features.notices.service import Notices
from palyra.store import artifacts
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor


class Posting:
    def __init__(
        self, book: Book, clock: Clock, connector: Callable[[str], Connector | None]
    ) -> None:
        self._book = book
        self._clock = clock
        self._connector = connector

    def abilities(self, connector: str) -> Abilities:
        found = self._connector(connector)
        return found.abilities if found is not None else Abilities()

    def post(
        self,
        tx: Tx,
        place: ChatPlace,
        text: str,
        kind: ReplyKind,
        *,
        reply_id: str = "",
        message_id: str = "",
        reply_to: str = "",
        buttons: Sequence[Button] = (),
        files: Sequence[SentFile] = (),
        edits: str = "",
    ) -> str:
        """Say it there, once for each `reply_id`; gives that id."""
        reply_id = reply_id or self._clock.new_id()
        connector = self._connector(place.connector)
        limits, abilities = (
            (connector.limits, connector.abilities)
            if connector is not None
            else (ConnectorLimits(), Abilities())
        )
        pings = kind == "answer" and self._book.rules(place.connector).broadcast == "allow"
        if files and not abilities.files:
            text = "\n".join([text, *(f"(file: {file.name})" for file in files)])
            files = ()
        pieces = split(text if pings else defused(text), limits.text) or [" "]
        bodies = [Body(text=piece, ping_everyone=pings) for piece in pieces]
        bodies[0] = Body(text=pieces[0], reply_to=reply_to, ping_everyone=pings, edits=edits)
        # Buttons and files stand below the last of it.
        last = bodies[-1]
        bodies[-1] = Body(
            text=last.text,
            reply_to=last.reply_to,
            ping_everyone=pings,
            edits=last.edits,
            buttons=tuple(buttons) if abilities.buttons else (),
            files=tuple(files[: limits.files]),
        )
        outbox.add(
            tx,
            reply_id=reply_id,
            connector=place.connector,
            conversation=place.conversation,
            thread=place.thread,
            kind=kind,
            bodies=bodies,
            message_id=message_id,
        )
        return reply_id

    def fail(
        self, tx: Tx, messages: Sequence[StoredMessage], error: PalyraError, *, inside: bool = False
    ) -> None:
        """End messages that cannot become a run, and tell whoever wrote them why. `inside`: only a
        user of the daemon reads it.
        """
        for message in messages:
            messages_rows.move(
                tx, message.message_id, "failed", "failed", error.message, error.code
            )
            messages_rows.drop_files(tx, message.message_id)
        first = messages[0]
        place = ChatPlace(first.connector, first.conversation, first.thread)
        self.post(
            tx,
            place,
            f"I cannot take that: {texts.problem(error, inside=inside)}",
            "told",
            message_id=first.message_id,
            reply_to=first.inbound.native_id,
        )


def defect(error: Exception) -> PalyraError:
    """Return the error to report for an unexpected exception; the log has the details."""
    return PalyraError(
        f"something in me failed on it ({type(error).__name__}): my log says more; send it again,"
        " or tell my owner"
    )


_MOST_REMEMBERED = 10_000


class SendRate:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # From when on the next message may go, in all and in each conversation, in milliseconds.
        self._next_ms = -math.inf
        self._next_in: dict[str, float] = {}

    async def wait(self, limits: ConnectorLimits, conversation: str) -> None:
        """Wait until it is this message's turn. Whoever waits has its turn already, so that nobody
        overtakes.
        """
        now = float(self._clock.ticks_ms())
        # A second's worth may go at once, after a pause.
        earliest = max(self._next_ms, now - 1_000)
        turn = max(now, earliest, self._next_in.get(conversation, 0.0))
        self._next_ms = earliest + 1_000 / max(limits.per_second, 0.001)
        if limits.apart_ms:
            if len(self._next_in) > _MOST_REMEMBERED:
                self._next_in = {name: at for name, at in self._next_in.items() if at > now}
            self._next_in[conversation] = turn + limits.apart_ms
        if turn > now:
            await self._clock.sleep(int(turn - now) + 1)


log = logging.getLogger("palyra.channels")

MOST_ATTEMPTS = 5
FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 5 * 60_000
SEND_S = 60.0
_RETRY_MS = 1_000
_PAGE = 500
Lane = tuple[str, str]


class Outbox:
    """`ready` waits until a channel can send, and gives its connector."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        redactor: Redactor,
        notices: Notices,
        ready: Callable[[str], Awaitable[Connector]],
        names: Callable[[], tuple[str, ...]],
    ) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor
        self._notices = notices
        self._ready = ready
        self._names = names
        self._lanes: dict[Lane, deque[Reply]] = {}
        self._working: dict[Lane, asyncio.Task[None]] = {}
        self._paces: dict[str, SendRate] = {}
        # How far the rows of each channel were read.
        self._read_upto: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._closing = False
        self.idle = asyncio.Event()

    def start(self) -> None:
        self._db.on_signal.connect(self._signalled)
        self.look()
        self._loop = asyncio.create_task(self._run())

    def _signalled(self, kinds: tuple[str, ...]) -> None:
        if SIGNAL in kinds:
            self.look()

    async def close(self) -> None:
        self._db.on_signal.disconnect(self._signalled)
        self._closing = True
        tasks = [*self._working.values(), *((self._loop,) if self._loop else ())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)

    def look(self) -> None:
        """Wake the outbox: there may be something to send."""
        self.idle.clear()
        self._wake.set()

    def again(self, replies: list[Reply]) -> None:
        """Queue replies again that were given up: they stand before what was read already."""
        for reply in replies:
            known = self._read_upto.get(reply.connector, 0)
            self._read_upto[reply.connector] = min(known, reply.number - 1)
        self.look()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for name in self._names():
                try:
                    await self._read(name)
                except Unavailable as error:
                    log.warning("the outbox cannot be read now: %s", error.message)
                    await self._clock.sleep(_RETRY_MS)
                    self._wake.set()
                except Exception:
                    # One channel's defect is not the end of the others' answers.
                    log.exception("the outbox of %s cannot be read", name)
                    await self._clock.sleep(10 * _RETRY_MS)
                    self._wake.set()
            self._rest()

    async def _read(self, name: str) -> None:
        held = sum(len(lane) for (connector, _), lane in self._lanes.items() if connector == name)
        if held >= _PAGE:
            return  # What is at hand is enough; the rest is read when it is sent.
        after = self._read_upto.get(name, 0)
        found = await self._db.read(
            partial(outbox.waiting, connector=name, after=after, limit=_PAGE)
        )
        for reply in found:
            self._read_upto[name] = max(self._read_upto.get(name, 0), reply.number)
            lane = self._lanes.setdefault(reply.lane, deque())
            if all(reply.number != other.number for other in lane):
                lane.append(reply)
            if reply.lane not in self._working:
                self._working[reply.lane] = asyncio.create_task(self._work(reply.lane))
        if len(found) == _PAGE:
            self._wake.set()

    def _rest(self) -> None:
        if not self._working and not self._wake.is_set():
            self.idle.set()

    async def _work(self, lane: Lane) -> None:
        replies = self._lanes[lane]
        try:
            while replies and not self._closing:
                try:
                    done = await self._attempt(replies[0])
                except Unavailable as error:
                    log.warning("a reply cannot be accounted for now: %s", error.message)
                    await self._clock.sleep(_RETRY_MS)
                    continue
                except Exception:
                    # Whatever it is, the others of this conversation must not be lost behind it.
                    log.exception("a reply to %s could not be handled", lane[0])
                    await self._clock.sleep(10 * _RETRY_MS)
                    continue
                if done:
                    replies.popleft()
        finally:
            if not self._closing:
                del self._working[lane], self._lanes[lane]
                # There may be more rows than were read.
                self._wake.set()

    async def _attempt(self, reply: Reply) -> bool:
        """Try once; whether the lane is done with it, one way or the other."""
        connector = await self._ready(reply.connector)
        now = await self._db.read(partial(outbox.find, number=reply.number))
        if now is None or now.state not in ("waiting", "sending"):
            return True
        if now.ready_ms > self._clock.now_ms():
            await self._clock.sleep(now.ready_ms - self._clock.now_ms())
        pace = self._paces.setdefault(reply.connector, SendRate(self._clock))
        await pace.wait(connector.limits, reply.conversation)
        begun = await self._db.write(partial(outbox.begin, reply=reply))
        if begun is None:
            return True
        try:
            sent = await self._send(connector, begun)
        except (SendFailed, Lost) as error:
            return await self._failed(begun, error)
        known = connector.abilities.idempotent
        await self._db.write(
            partial(outbox.sent, reply=begun, native_id=sent.native_id, idempotent=known)
        )
        return True

    async def _send(self, connector: Connector, reply: Reply) -> SentReceipt:
        body = reply.body
        self._db.check_lease()
        try:
            async with asyncio.timeout(SEND_S):
                if body.edits:
                    return await self._edit(connector, reply)
                files = [await self._db.read(partial(_file, of=each)) for each in body.files]
                out = OutgoingMessage(
                    key=reply.key,
                    conversation=reply.conversation,
                    thread=reply.thread,
                    text=body.text,
                    reply_to=body.reply_to,
                    buttons=body.buttons,
                    files=tuple(files),
                    ping_everyone=body.ping_everyone,
                )
                return await connector.send(out)
        except TimeoutError:
            raise SendFailed(
                f"the platform did not answer within {SEND_S:g} s", maybe_sent=True
            ) from None
        except (SendFailed, Lost, Unavailable):
            raise
        except PalyraError as error:
            raise SendFailed(error.message, permanent=True) from error
        except Exception as error:  # a library's surprise must not end the lane of a conversation
            log.warning("channel %s failed to send: %s", connector.name, error, exc_info=error)
            raise SendFailed(f"{type(error).__name__}: {error}", maybe_sent=True) from error

    async def _edit(self, connector: Connector, reply: Reply) -> SentReceipt:
        """Replace the text of one that was sent. Where that cannot be, nothing is said: the first
        one stands.
        """
        replaced = await self._db.read(partial(outbox.of_reply, reply_id=reply.body.edits))
        target = replaced[-1] if replaced else None
        if (
            target is None
            or target.state != "sent"
            or not target.native_id
            or not connector.abilities.edit
        ):
            return SentReceipt()
        await connector.edit(
            target.conversation, target.native_id, reply.body.text, thread=target.thread
        )
        return SentReceipt(target.native_id)

    async def _failed(self, reply: Reply, error: SendFailed | Lost) -> bool:
        text = self._redactor.redact_head(str(error) or type(error).__name__, 500)
        now_ms = self._clock.now_ms()
        if isinstance(error, Lost):
            retry = partial(
                outbox.retry, reply=reply, error=text, ready_ms=0, counts=False, doubtful=False
            )
            await self._db.write(retry)
            await self._clock.sleep(max(error.retry_after_ms, 100))
            return False
        if error.retry_after_ms and not error.permanent:
            ready_ms = now_ms + error.retry_after_ms
            await self._db.write(
                partial(
                    outbox.retry,
                    reply=reply,
                    error=text,
                    ready_ms=ready_ms,
                    counts=False,
                    doubtful=False,
                )
            )
            return False
        if error.permanent or reply.attempts >= MOST_ATTEMPTS:
            doubtful = reply.doubtful or error.maybe_sent
            text = f"{text}; it may have arrived all the same" if doubtful else text
            await self._db.write(partial(self._give_up, reply=reply, text=text, doubtful=doubtful))
            return True
        pause = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << (2 * (reply.attempts - 1)))
        ready_ms = now_ms + int(pause * (0.5 + self._clock.chance() / 2))
        await self._db.write(
            partial(
                outbox.retry,
                reply=reply,
                error=text,
                ready_ms=ready_ms,
                counts=True,
                doubtful=error.maybe_sent,
            )
        )
        return False

    def _give_up(self, tx: Tx, reply: Reply, text: str, doubtful: bool) -> None:
        outbox.abandon(tx, reply, text, doubtful=doubtful)
        told = (
            f"A message on channel {reply.connector} could not be delivered after {reply.attempts}"
            f" attempts: {text}"
        )
        self._notices.telling("channel", f"dead:{reply.reply_id}", told, "#/channels")(tx)


def _file(tx: Tx, of: outbox.SentFile) -> OutFile:
    found = artifacts.artifact(tx, of.session_id, of.artifact)
    if found is None:
        raise NotFound(f"the file {of.name} is gone")
    return OutFile(of.name, found.body, of.media_type or found.media_type)
