"""Giving messages to the agent through the one way in, and carrying back what it says: an answer
for each message, once.

That a message is given to a run commits with the run's input. What a run comes to is put into the
outbox in one step with what it answers; a run that ended while nobody listened is found by its
rows.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palyra.agent.gateway import Gateway
from palyra.agent.message_inputs import Attaching
from palyra.agent.sessions import Resolve, Sessions
from palyra.agent.submit import InputOrigin, Submission, Submitted
from palyra.core import labels, references
from palyra.core.errors import Conflict, LimitExceeded, PalyraError, Unavailable
from palyra.core.events import (
    AgentAsked,
    ApprovalRequested,
    ApprovalResolved,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunWaiting,
)
from palyra.core.labels import CLEAN
from palyra.features.channels import registry as books
from palyra.features.channels import texts as channels_texts
from palyra.features.channels.connections import Connections
from palyra.features.channels.model import combined, named
from palyra.features.channels.outbox import Posting, defect
from palyra.features.channels.registry import Book, Who
from palyra.features.channels.rows import messages as messages_rows
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.rows.outbox import ReplyKind
from palyra.features.channels.views import ChatPlace
from palyra.features.channels.wait_notes import WaitNotes
from palyra.features.references.attachments import Attachments
from palyra.store import approvals, run_waits, runs
from palyra.store.database import Appended, Database, Tx
from palyra.store.sessions import Session
from palyra.system.clock import Clock

log = logging.getLogger("palyra.channels")

_RETRY_MS = 1_000
_TYPING_MS = 8_000
# So long a run may be silent before its asker sees that somebody is at it.
_FIRST_TYPING_MS = 300


class AwaitedRun(Struct, frozen=True, kw_only=True):
    """A run that somebody in a chat waits for."""

    run_id: str
    session_id: str
    session_key: str
    principal: str
    place: ChatPlace
    message_id: str
    native_id: str
    sender: str
    direct: bool


class _Stopped(PalyraError):
    """Error: the sender said STOP while it was being given to the agent: no run begins, and they
    know.
    """


class Submitting:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        book: Book,
        posting: Posting,
        gateway: Gateway,
        sessions: Sessions,
        attachments: Attachments,
    ) -> None:
        self._db = db
        self._clock = clock
        self._book = book
        self._posting = posting
        self._gateway = gateway
        self._sessions = sessions
        self._attachments = attachments
        self._wait_notes = WaitNotes(db, clock, posting)
        self.connections: Connections
        # Told when a conversation has no run any more that works.
        self.freed: Callable[[str, str], None] = lambda connector, key: None
        # Told when a run of ours asks for a yes, and when a question was answered, by whomever.
        self.asked: Callable[[AwaitedRun, ApprovalRequested], None] = lambda pending, request: None
        self.answered: Callable[[ApprovalResolved], None] = lambda resolved: None
        # Told when another run asks, that nobody in a chat waits for.
        self.asked_elsewhere: Callable[[ApprovalRequested], None] = lambda request: None
        self._pending: dict[str, AwaitedRun] = {}
        self._typing: dict[str, asyncio.Task[None]] = {}
        self._beside: set[asyncio.Task[None]] = set()

    def is_working(self, session_key: str) -> bool:
        return any(each.session_key == session_key for each in self._pending.values())

    @property
    def pending(self) -> list[AwaitedRun]:
        return list(self._pending.values())

    async def submit(self, messages: list[StoredMessage], who: Who) -> bool:
        """Give messages of one sender to the agent as one input; whether a run works on them
        now.
        """
        try:
            return await self._submit(messages, who)
        except Unavailable:
            raise
        except _Stopped:
            left = await self._db.read(partial(_not_stopped, messages=messages))
            return await self.submit(left, who) if left else False
        except PalyraError as error:
            await self._fail(messages, who, error)
        except Exception as error:
            log.exception(
                "messages of channel %s could not be given to the agent", messages[0].connector
            )
            await self._fail(messages, who, defect(error))
        return False

    async def _submit(self, messages: list[StoredMessage], who: Who) -> bool:
        first = messages[0]
        session = await self.session(who, first)
        try:
            attached = await self._attach(messages, session)
            submission = Submission(
                text=self._text(messages, who, attached=bool(attached)),
                run_id=first.message_id,
                model=(
                    await self._db.read(partial(books.chosen, session_key=who.session_key))
                ).model,
                attachments=attached,
            )
            said = self._said(messages, who, session.session_id)
            # Watched before it begins: what it says first must not be missed.
            self._pending[first.message_id] = pending = _pending(first, who, session.session_id)
            submitted = await self._gateway.submit(
                who.acts_as,
                session.session_id,
                submission,
                origin="channel",
                brought=said.label,
                said=said,
            )
        except Exception as error:
            self._pending.pop(first.message_id, None)
            if isinstance(error, LimitExceeded):
                await self._refuse(
                    messages,
                    "over_limit",
                    f"The mailbox of this conversation is full: {error.message}.",
                )
                return False
            if isinstance(error, Conflict) and session.archived:
                await self.begin_anew(who)
                return await self._submit(messages, who)
            raise
        if submitted.outcome == "repeated":
            # Only if the same was given before and the daemon did not hear that it was.
            await self._db.write(
                partial(self._given, submitted=submitted, messages=messages, who=who)
            )
            self._aside(self._settle(first.message_id))
        self._show_typing(pending)
        return first.message_id in self._pending

    async def session(self, who: Who, message: StoredMessage) -> Session:
        """The conversation of whoever wrote, made if need be. People who are no users see no folder
        but the channel's own.
        """
        choice = await self._db.read(partial(books.chosen, session_key=who.session_key))
        key = (
            who.session_key
            if not choice.generation
            else f"{who.session_key[:180]}+{choice.generation}"
        )
        channel = self._book.find(message.connector)
        folder = None if who.is_user else (channel.workspace if channel is not None else "")
        wanted = Resolve(key=key, channel=message.connector)
        found, _ = await self._sessions.find_or_create(who.acts_as, wanted, folder=folder)
        return found

    async def begin_anew(self, who: Who) -> None:
        """The next message of this conversation begins another session."""

        def step(tx: Tx) -> None:
            choice = books.chosen(tx, who.session_key)
            books.choose(tx, who.session_key, replace(choice, generation=choice.generation + 1))

        await self._db.write(step)

    def _text(self, messages: list[StoredMessage], who: Who, *, attached: bool) -> str:
        passed_on = any(each.inbound.forwarded for each in messages)
        texts = [
            (
                f"[passed on from somebody else]\n{each.inbound.whole}"
                if each.inbound.forwarded
                else each.inbound.whole
            )
            for each in messages
        ]
        if who.shared:
            sender = messages[0].inbound.sender
            texts = [named(sender.display, sender.handle, text) for text in texts]
        text = combined(texts) or ("See the attached files." if attached else "…")
        # References are read with the rights of whoever names them, by those who are at home here.
        # Looked for in the whole: one message can end what another began.
        return text if who.is_user and not passed_on else references.plain(text)

    def _said(self, messages: list[StoredMessage], who: Who, session_id: str) -> InputOrigin:
        sender = messages[0].inbound.sender
        trusted = who.standing == "person"
        label = CLEAN if trusted else labels.untrusted(who.principal)
        if any(each.inbound.forwarded for each in messages):
            label = labels.merge(label, labels.untrusted(f"forwarded by {who.principal}"))
        return InputOrigin(
            label=label,
            sender=(
                ""
                if trusted
                else f"{' '.join((sender.display or sender.handle).split())[:64]} ({who.principal})"
            ),
            also=lambda tx, submitted: self._given(tx, submitted, messages, who),
        )

    def _given(self, tx: Tx, submitted: Submitted, messages: list[StoredMessage], who: Who) -> None:
        together = f" with {len(messages) - 1} more" if len(messages) > 1 else ""
        detail = f"run {submitted.run_id}{together}: {submitted.outcome}"
        for message in messages:
            if messages_rows.get(tx, message.message_id).state == "failed":
                raise _Stopped("a STOP came before it was begun")
            messages_rows.give_to_run(
                tx, message.message_id, who.acts_as, submitted.session_id, submitted.run_id, detail
            )

    async def _attach(
        self, messages: list[StoredMessage], session: Session
    ) -> tuple[Attaching, ...]:
        attached: list[Attaching] = []
        for message in messages:
            for file in (
                await self._db.read(partial(messages_rows.files, message_id=message.message_id))
                if message.files
                else ()
            ):
                kept = await self._attachments.keep(
                    session.owner, session.session_id, file.name, file.data
                )
                attached.append(Attaching(artifact=kept.artifact, name=kept.name))
        return tuple(attached)

    async def _refuse(self, messages: list[StoredMessage], reason: str, sentence: str) -> None:
        def step(tx: Tx) -> None:
            for message in messages:
                messages_rows.refuse(tx, message, reason, sentence)
            self._post_about(
                tx,
                messages[0],
                "That is more than I can take at once: wait until I have answered.",
                "told",
            )

        await self._db.write(step)

    async def _fail(self, messages: list[StoredMessage], who: Who, error: PalyraError) -> None:
        inside = who.is_user and messages[0].inbound.is_direct
        await self._db.write(
            partial(self._posting.fail, messages=messages, error=error, inside=inside)
        )

    def _post_about(self, tx: Tx, message: StoredMessage, text: str, kind: ReplyKind) -> None:
        place = ChatPlace(message.connector, message.conversation, message.thread)
        self._posting.post(
            tx, place, text, kind, message_id=message.message_id, reply_to=message.inbound.native_id
        )

    def _show_typing(self, pending: AwaitedRun) -> None:
        if (
            pending.run_id in self._pending
            and self._posting.abilities(pending.place.connector).typing
        ):
            self._typing[pending.run_id] = asyncio.create_task(self._type(pending))

    def heard(self, appended: list[Appended]) -> None:
        """Handle everything that is committed: a look at a dictionary for most of it."""
        for entry in appended:
            pending = self._pending.get(entry.run_id)
            match entry.event:
                case RunCompleted() | RunFailed() | RunCancelled() if pending is not None:
                    self._aside(self._settle(entry.run_id))
                case ApprovalRequested() as request if pending is not None:
                    self._waits(pending)
                    self.asked(pending, request)
                case RunWaiting(since_ms=since_ms) if pending is not None:
                    self._waits(pending)
                    self._wait_notes.waits(entry.run_id, since_ms)
                case RunResumed(after="provider") if pending is not None:
                    self._show_typing(pending)
                case ApprovalRequested() as request:
                    self.asked_elsewhere(request)
                case AgentAsked(request=request) if pending is not None:
                    self.asked(pending, request)
                case ApprovalResolved() as resolved:
                    self.answered(resolved)
                case _:
                    pass

    def _waits(self, pending: AwaitedRun) -> None:
        """Free the place of a run that waits for a person or a provider, and stop typing."""
        typing = self._typing.pop(pending.run_id, None)
        if typing is not None:
            typing.cancel()
        self.freed(pending.place.connector, pending.session_key)

    async def _settle(self, run_id: str) -> None:
        """Answer with the outcome of a run that has ended."""
        while True:
            try:
                ended = await self._db.write(partial(self._answer, run_id=run_id))
                break
            except Unavailable as error:
                log.warning("an answer waits: %s", error.message)
                await self._clock.sleep(_RETRY_MS)
            except Exception:
                # The place must not be lost with the answer, which is tried again at the next
                # start.
                log.exception("what run %s came to could not be told", run_id)
                ended = True
                break
        pending = self._pending.get(run_id)
        if not ended or pending is None:
            return
        del self._pending[run_id]
        self._wait_notes.over(run_id)
        typing = self._typing.pop(run_id, None)
        if typing is not None:
            typing.cancel()
        if not self.is_working(pending.session_key):
            self.freed(pending.place.connector, pending.session_key)

    def _answer(self, tx: Tx, run_id: str) -> bool:
        run = runs.find(tx, run_id)
        if run is None or run.state not in ("done", "failed", "cancelled"):
            return False
        messages = [each for each in messages_rows.of_run(tx, run_id) if each.state == "queued"]
        if not messages:
            return True
        end = runs.ending(tx, run_id)
        first = messages[0]
        place = ChatPlace(first.connector, first.conversation, first.thread)
        failed = isinstance(end, RunFailed)
        # Where others read along, and for whoever is no user of the daemon, what went wrong inside
        # is nobody's business.
        inside = first.inbound.is_direct and not first.principal.startswith(approvals.CHANNEL)
        self._posting.post(
            tx,
            place,
            channels_texts.answer(end, inside=inside),
            "failure" if failed else "answer",
            # One answer for each run, however often this is done.
            reply_id=run_id,
            message_id=first.message_id,
            reply_to=messages[-1].inbound.native_id,
        )
        return True

    async def _type(self, pending: AwaitedRun) -> None:
        connector = self.connections.connector(pending.place.connector)
        await self._clock.sleep(_FIRST_TYPING_MS)
        while connector is not None and pending.run_id in self._pending:
            try:
                await connector.typing(pending.place.conversation, thread=pending.place.thread)
            except Exception as error:  # noqa: BLE001  a sign of courtesy: if it fails, nothing is lost
                log.info("channel %s could not show that somebody types: %s", connector.name, error)
                return
            await self._clock.sleep(_TYPING_MS)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def recover(self) -> None:
        """Recover after a start: watch the runs that are open, and answer for those that ended
        meanwhile.
        """
        for message in await self._db.read(partial(messages_rows.open_messages, state="queued")):
            if message.run_id and message.run_id not in self._pending:
                self._pending[message.run_id] = _remembered(message)
                self._aside(self._settle(message.run_id))
        waiting = await self._db.read(lambda tx: run_waits.of_runs(tx, list(self._pending)))
        for run_id, wait in waiting.items():
            self._wait_notes.waits(run_id, wait.since_ms)

    async def close(self) -> None:
        await self._wait_notes.close()
        tasks = [*self._beside, *self._typing.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)


def _not_stopped(tx: Tx, messages: list[StoredMessage]) -> list[StoredMessage]:
    return [each for each in messages if messages_rows.get(tx, each.message_id).state != "failed"]


def _pending(message: StoredMessage, who: Who, session_id: str) -> AwaitedRun:
    return AwaitedRun(
        run_id=message.message_id,
        session_id=session_id,
        session_key=who.session_key,
        principal=who.acts_as,
        place=ChatPlace(message.connector, message.conversation, message.thread),
        message_id=message.message_id,
        native_id=message.inbound.native_id,
        sender=message.inbound.sender.display or message.sender,
        direct=message.inbound.is_direct,
    )


def _remembered(message: StoredMessage) -> AwaitedRun:
    return AwaitedRun(
        run_id=message.run_id,
        session_id=message.session_id,
        session_key=f"session {message.session_id}",
        principal=message.principal,
        place=ChatPlace(message.connector, message.conversation, message.thread),
        message_id=message.message_id,
        native_id=message.inbound.native_id,
        sender=message.inbound.sender.display or message.sender,
        direct=message.inbound.is_direct,
    )
