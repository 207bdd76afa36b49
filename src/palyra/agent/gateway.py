"""The verbs of the daemon: submit, watch, cancel, stop, and what follows from them. Every transport
calls these and nothing below.

A run belongs to the daemon, not to a connection: submitting is one durable step, and watching is
reading on from a cursor.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.agent import stop as agent_stop
from palyra.agent.approvals import ApprovalService
from palyra.agent.broadcast import Broadcast
from palyra.agent.message_inputs import NOTHING, Attaching, Enclosed, MessageInputs, labelled
from palyra.agent.runs import Runs
from palyra.agent.session_cache import Prefetch, SessionCache
from palyra.agent.settings import Settings
from palyra.core import ids, run_state
from palyra.core.conversation import Conversation
from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, NotFound, Unavailable
from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    ClientTool,
    Commission,
    Given,
    InputMode,
    InputReceived,
    RunAccepted,
    RunStarted,
    StateChanged,
    Topic,
    Wanted,
    encode,
)
from palyra.core.labels import CLEAN, Label
from palyra.core.run_state import RunState
from palyra.core.verdicts import Origin
from palyra.models.routing import Models
from palyra.store import artifacts, runs, sessions, tape
from palyra.store.database import Appended, Database, Tx
from palyra.store.runs import RunRow, SubmissionRow
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.gateway")

LONGEST_TEXT = 256 << 10
_LONGEST_REASON = 2_000
_PAGE = 500
# Of a run that does not work: nobody is in a hurry to be told that the disk does not answer.
_LONGEST_READ_S = 5.0


class Submission(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An input for a session. `run_id` makes it idempotent: the same id with the same payload is
    the same submission.
    """

    text: str
    run_id: str = ""
    mode: InputMode = "followup"
    model: str = ""
    # False: nobody is there to answer a question, and policy may be stricter. The door decides the
    # origin; a caller cannot name it.
    attended: bool = True
    # Files that were stored for the session before.
    attachments: tuple[Attaching, ...] = ()


class Submitted(Struct, frozen=True, kw_only=True):
    """`run_id` is the run that will answer: a new one, or the one this input joined. Watch from
    `seq`.
    """

    run_id: str
    session_id: str
    submission_id: str
    state: RunState
    outcome: Literal["started", "queued", "joined", "repeated"]
    seq: int


@dataclass(frozen=True)
class InputOrigin:
    """What a door knows about an input beside its words: where they come from, who said them, and
    what commits with them.
    """

    label: Label = CLEAN
    sender: str = ""
    given: Given | None = None
    # What the program that asks does itself.
    offered: tuple[ClientTool, ...] = ()
    wanted: Wanted | None = None
    also: Callable[[Tx, Submitted], None] = lambda tx, submitted: None


PLAIN = InputOrigin()


class Stopped(Struct, frozen=True):
    """`cancelled`: the runs whose work was broken off. `recorded`: whether their ends are on their
    tapes by now.

    If not, the disk is slow or refuses; they are recorded as soon as it takes them.
    """

    cancelled: tuple[str, ...]
    recorded: bool = True


class Gateway:
    def __init__(
        self,
        db: Database,
        hub: Broadcast,
        lives: SessionCache,
        runs_: Runs,
        answers: ApprovalService,
        models: Models,
        redactor: Redactor,
        clock: Clock,
        settings: Settings,
        enclosures: MessageInputs,
    ) -> None:
        self._db = db
        self._enclosures = enclosures
        self._hub = hub
        self._lives = lives
        self._runs = runs_
        self._answers = answers
        self._models = models
        self._redactor = redactor
        self._clock = clock
        self._settings = settings
        # Told of everything that was committed, before whoever waits for it.
        self.listeners: list[Callable[[list[Appended]], None]] = []
        db.on_commit = self._on_commit
        db.on_touched = hub.changed

    def _on_commit(self, appended: list[Appended]) -> None:
        for listen in self.listeners:
            try:
                listen(appended)
            except Exception:
                # Without the rest of this, no run would begin, and those that work would not see
                # what they did.
                log.exception("a listener failed on a commit")
        self._lives.on_commit(appended)
        self._runs.on_commit(appended)
        self._hub.publish(appended)
        for entry in appended:
            if isinstance(entry.event, ApprovalRequested):
                self._answers.expires(entry.event.expires_ms)
            elif entry.kind == "admin.changed":
                self._hub.changed(("settings",))

    async def start(self) -> list[RunRow]:
        """Go on where the last process stopped."""
        await self._answers.start()
        return await self._runs.recover()

    async def close(self) -> None:
        self._answers.close()
        await self._runs.close()

    async def submit(
        self,
        principal: str,
        session_id: str,
        submission: Submission,
        *,
        origin: Origin = "interactive",
        schedule_id: str = "",
        brought: Label = CLEAN,
        said: "InputOrigin | None" = None,
    ) -> Submitted:
        """Take an input. When this returns it is durable, and a run answers it whatever becomes of
        the caller.

        `schedule_id`: a schedule says it. `brought`: the label of what is attached, beyond what is
        known of it. `said`: it comes through a channel.
        """
        if not submission.text.strip():
            raise InvalidInput("the message is empty")
        if len(submission.text.encode()) > LONGEST_TEXT:
            raise InvalidInput(
                f"a message may have {LONGEST_TEXT} bytes: put more into a file and name it",
                limit=LONGEST_TEXT,
            )
        if submission.model:
            self._models.find(submission.model)
            if self._redactor.redact(submission.model) != submission.model:
                raise InvalidInput("the model's name looks like a secret")
        submission_id = (
            ids.check(submission.run_id, "run_id") if submission.run_id else self._clock.new_id()
        )
        text = await self._redactor.redacted(submission.text)
        enclosed = NOTHING
        if "@" in submission.text or submission.attachments:
            enclosed = labelled(
                await self._enclosed(principal, session_id, submission, origin), brought
            )
        # The run that begins needs the conversation: the step reads it along, if it is not in
        # memory.
        expected = self._lives.expect(session_id, submission_id)
        try:
            step = _Submit(
                principal,
                session_id,
                submission_id,
                submission,
                text,
                self._settings,
                origin,
                enclosed,
                said=said or PLAIN,
            )
            step.expected, step.schedule_id = expected, schedule_id
            submitted = await self._db.write(step)
        finally:
            if expected is not None:
                self._lives.expect_no_more(expected)
        if submitted.outcome == "joined" and submission.mode == "interrupt":
            self._runs.interrupt(submitted.run_id)
        return submitted

    async def _enclosed(
        self, principal: str, session_id: str, submission: Submission, origin: Origin
    ) -> Enclosed:
        """What a message names and brings. Saying the same message again reads nothing again: it
        was taken as it was then.
        """
        if (
            submission.run_id
            and await self._db.read(lambda tx: runs.find_submission(tx, submission.run_id))
            is not None
        ):
            return NOTHING
        return await self._enclosures.of(
            principal, session_id, submission.text, submission.attachments, origin
        )

    async def label(self, session_id: str) -> Label:
        """Of everything the session's model has been shown since its conversation began."""
        live = await self._lives.hold(session_id)
        try:
            return live.conversation.label
        finally:
            self._lives.release(live)

    async def watch(
        self,
        principal: str,
        session_id: str,
        after: int,
        look: Callable[[Tx], object] = lambda tx: None,
        glance: Callable[[Conversation], bool] = lambda conversation: True,
    ) -> AsyncIterator[Sequence[tuple[int, bytes]]]:
        """Batches of (seq, wire) behind a cursor, for ever; live events have seq 0. No gap, no
        duplicate, whoever reconnects.

        The first batch comes at once and may be empty. `look` sees the same moment of the store,
        and may refuse by raising; where the session is in memory and `glance` finds there what it
        needs, the store is not asked.
        """
        subscription = self._hub.subscribe(session_id)
        cursor = after
        begun = False
        at_hand: list[tuple[int, bytes]] | None = None
        live = self._lives.peek(session_id)
        if (
            live is not None
            and live.session.owner == principal
            and (recent := live.after(after)) is not None
        ):
            at_hand = recent if glance(live.conversation) else None
            del recent
        # Whoever watches for days must not hold on to what was there when they came.
        del live

        def behind_cursor(tx: Tx) -> list[tape.StoredEntry]:
            if not begun:
                look(tx)
            sessions.get(tx, session_id, principal)
            return tape.after(tx, session_id, cursor, _PAGE)

        try:
            if at_hand is not None:
                begun = True
                yield at_hand
                cursor = at_hand[-1][0] if at_hand else cursor
                del at_hand
            while True:
                if subscription.lagging or not begun:
                    subscription.lagging = False
                    subscription.drop()
                    while (stored := await self._db.read(behind_cursor)) or not begun:
                        begun = True
                        yield [(entry.seq, entry.wire) for entry in stored]
                        cursor = stored[-1].seq if stored else cursor
                        if len(stored) < _PAGE:
                            break
                    del stored
                while not subscription.lagging:
                    batch: list[tuple[int, bytes]] = []
                    for item in await subscription.take():
                        if isinstance(item, bytes):
                            batch.append((0, item))
                        elif item.seq == cursor + 1:
                            cursor = item.seq
                            batch.append((item.seq, item.wire))
                        elif item.seq > cursor:
                            # Something between was dropped: the store has it.
                            subscription.lagging = True
                            break
                    if batch:
                        yield batch
        finally:
            self._hub.unsubscribe(session_id, subscription)

    async def watch_all(
        self, principal: str, after: int, topics: Collection[Topic] = ()
    ) -> AsyncIterator[Sequence[tuple[int, bytes]]]:
        """Batches of (position, wire) over all of a principal's sessions, in commit order; no
        deltas.

        The first batch comes at once and may be empty. That something of `topics` has changed is a
        live event, whose position is 0; it is told from then on only: whoever connects looks for
        themselves.
        """
        subscription = self._hub.subscribe(None, topics)
        cursor = after
        begun, more = False, True
        try:
            while True:
                while more:
                    page = partial(
                        tape.after_position, position=cursor, owner=principal, limit=_PAGE
                    )
                    stored, upto = await self._db.read(page)
                    if stored or not begun:
                        begun = True
                        yield [(entry.position, entry.wire) for entry in stored]
                    cursor = upto
                    more = len(stored) == _PAGE
                    del stored
                subscription.lagging = False
                more = bool(await subscription.take())
                if changed := subscription.changed():
                    yield [(0, encode(StateChanged(what=changed)))]
        finally:
            self._hub.unsubscribe(None, subscription)

    async def run(self, principal: str, run_id: str) -> RunRow:
        ids.check(run_id, "run_id")
        return await self._db.read(lambda tx: runs.get(tx, run_id, principal))

    async def cancel(
        self, principal: str, run_id: str, reason: str = "cancelled by the user"
    ) -> RunRow:
        """End a run in whatever state it is. Cancelling a run that has ended gives the run as it
        is.

        What the run does is broken off first, whatever the disk does; the answer says whether its
        end is recorded.
        """
        ids.check(run_id, "run_id")
        # Cut, not handed to another thread: nothing may keep a STOP waiting.
        reason = self._redactor.redact_head(reason, _LONGEST_REASON)
        struck = self._runs.stopping.strikes(principal, run_id, reason)
        try:
            async with asyncio.timeout(agent_stop.ANSWER_S if struck else _LONGEST_READ_S):
                run = await self.run(principal, run_id)
        except (TimeoutError, Unavailable):
            # Its own task records its end when the store answers again.
            known = self._runs.stopping.as_known(run_id) if struck else None
            if known is None:
                raise Unavailable(
                    "the journal does not answer, and the run does not work now: try again in a"
                    " moment"
                ) from None
            return known
        return await self._runs.stopping.cancel_soon(run, reason)

    async def stop(self, principal: str, reason: str = "STOP") -> Stopped:
        """Cancel everything a principal has running or waiting. A control command: no model sees
        it.

        What works is broken off first; what can be recorded in time is recorded when this returns,
        and the rest afterwards.
        """
        cancelled, recorded = await self._runs.stopping.stop(principal, reason)
        return Stopped(tuple(cancelled), recorded)


def commissioned(
    principal: str,
    session_id: str,
    submission: Submission,
    settings: Settings,
    commission: Commission,
    *,
    schedule_id: str,
) -> Callable[[Tx], Submitted]:
    """The step that takes in a subagent's task, to be a part of its parent's. The task is redacted:
    it comes from the tape.

    What works for a schedule is paid by that schedule.
    """
    step = _Submit(
        principal,
        session_id,
        submission.run_id,
        submission,
        submission.text,
        settings,
        "child",
        commission=commission,
    )
    step.schedule_id = schedule_id
    return step


class _Submit:
    """The step that takes an input in: decides, under the write lock, whether it starts a run,
    queues or joins one.
    """

    # The session's conversation, if it is to be read along.
    expected: Prefetch | None = None
    schedule_id = ""

    def __init__(
        self,
        principal: str,
        session_id: str,
        submission_id: str,
        submission: Submission,
        text: str,
        settings: Settings,
        origin: Origin,
        enclosed: Enclosed = NOTHING,
        commission: Commission | None = None,
        said: InputOrigin = PLAIN,
    ) -> None:
        self.said = said
        self._principal = principal
        self._commission = commission
        self._session_id = session_id
        self._id = submission_id
        self._submission = submission
        self._text = text
        self._enclosed = enclosed
        self._origin = origin
        self._budgets = settings.budgets
        self._depth = settings.mailbox_depth
        attached = [f"{each.artifact} {each.name}" for each in submission.attachments]
        payload = "\0".join(
            (session_id, submission.mode, submission.model, origin, text, *attached)
        )
        if said.given is not None or said.offered:
            payload += "\0" + msgspec.json.encode((said.given, said.offered)).decode()
        if said.wanted is not None:
            payload += "\0" + msgspec.json.encode(said.wanted).decode()
        self._digest = sha256(payload.encode()).digest()

    def __call__(self, tx: Tx) -> Submitted:
        session = sessions.get(tx, self._session_id, self._principal)
        if self._submission.run_id:
            # Who sent it chose its id: only then can it have been there before.
            known = runs.find_submission(tx, self._id)
            if known is not None:
                return self._repeat(tx, known)
            if runs.find(tx, self._id) is not None:
                raise Conflict(f"run {self._id} exists already", run_id=self._id)
        if session.archived:
            raise Conflict(
                "this session is archived: unarchive it to go on", session_id=self._session_id
            )
        for each in self._submission.attachments:
            if artifacts.artifact(tx, self._session_id, each.artifact) is None:
                raise NotFound(
                    f"this session has no file {each.artifact} any more: send it again",
                    artifact_id=each.artifact,
                )
        unfinished = runs.unfinished_of_session(tx, self._session_id)
        active = next((run for run in unfinished if run.state in run_state.ACTIVE), None)
        if self.expected is not None:
            self.expected.read(tx, session)
        sessions.touch(tx, session, self._text)
        mode = self._submission.mode
        if active is not None and mode in ("steer", "interrupt"):
            self._check_depth(tx, steering=active.run_id)
            return self._append(tx, active.run_id, [], "joined", active.state)
        if active is not None or unfinished:
            self._check_depth(tx)
            gathering = runs.collecting(tx, self._session_id) if mode == "collect" else ""
            if gathering:
                return self._append(tx, gathering, [], "joined", "accepted")
            return self._append(tx, self._id, [self._accepted()], "queued", "accepted")
        return self._append(tx, self._id, [self._accepted()], "started", "in_progress")

    def _accepted(self) -> RunAccepted:
        commission = self._commission
        return RunAccepted(
            origin=self._origin,
            model=self._submission.model,
            budgets=self._budgets,
            parent_run_id=commission.run_id if commission else None,
            commission=commission,
            schedule_id=self.schedule_id,
            offered=self.said.offered,
            wanted=self.said.wanted,
        )

    def _append(
        self,
        tx: Tx,
        run_id: str,
        before: list[AnyEvent],
        outcome: Literal["started", "queued", "joined"],
        state: RunState,
    ) -> Submitted:
        enclosed = self._enclosed
        enclosed.store(tx, self._session_id)
        received = InputReceived(
            submission_id=self._id,
            text=self._text,
            mode=self._submission.mode,
            attachments=enclosed.attachments,
            references=enclosed.references,
            label=self.said.label,
            sender=self.said.sender,
            given=self.said.given,
        )
        after = [RunStarted()] if outcome == "started" else []
        entries = tape.append(
            tx, self._session_id, self._principal, [*before, received, *after], run_id
        )
        seq = entries[0].seq
        row = SubmissionRow(
            self._id, self._session_id, run_id, self._submission.mode, self._digest, seq
        )
        runs.add_submission(tx, row)
        submitted = Submitted(
            run_id=run_id,
            session_id=self._session_id,
            submission_id=self._id,
            state=state,
            outcome=outcome,
            seq=seq - 1,
        )
        self.said.also(tx, submitted)
        return submitted

    def _repeat(self, tx: Tx, known: SubmissionRow) -> Submitted:
        if known.digest != self._digest:
            raise Conflict(
                f"run id {self._id} was used before with another payload", run_id=self._id
            )
        run = runs.find(tx, known.run_id)
        if run is None:
            raise NotFound(f"there is no run {known.run_id}")
        return Submitted(
            run_id=known.run_id,
            session_id=known.session_id,
            submission_id=self._id,
            state=run.state,
            outcome="repeated",
            seq=known.seq - 1,
        )

    def _check_depth(self, tx: Tx, steering: str = "") -> None:
        waiting = (
            runs.unread_inputs(tx, steering)
            if steering
            else runs.waiting_inputs(tx, self._session_id)
        )
        if waiting >= self._depth:
            raise LimitExceeded(
                f"the mailbox is full ({self._depth} inputs wait): wait for the run, or stop it",
                limit=self._depth,
            )
