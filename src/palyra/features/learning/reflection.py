"""A reflection: reads what a session has said since it was last read, and keeps what is worth it,
in one step.

The rule: it runs behind everything else and can be run again. The step that keeps what was found
also says how far it was read.

Feeds the queue with sessions to reflect on. A completed run only sets a flag; what follows is
one step for all of them together.

The rule: a run never waits for learning, and nothing wakes up that has nothing to do.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from palyra.core.errors import PalyraError
from palyra.core.events import ModelUsed
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.budgets.service import BudgetService
from palyra.features.learning import rows
from palyra.features.learning.model import (
    FEED_MS,
    KIND,
    Candidate,
    LearningFinding,
    LearningSettings,
)
from palyra.features.learning.procedures import Done
from palyra.features.learning.rows import UnreadStretch
from palyra.features.memory.model import Where
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.features.tasks.worker import NotNow
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.store import sessions, tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session
from palyra.store.tasks import Task
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.system.thread_pool import everyday

if TYPE_CHECKING:
    from palyra.features.learning.apply import ComparedFinding


log = logging.getLogger("palyra.learning")

# Answers to approvals are gone through for suggestions at most so often.
_SUGGEST_MS = 3_600_000


class Reflected(Struct, frozen=True, kw_only=True):
    """Result of a reflection. `found_by` is who read; `note` says why a configured model did
    not.
    """

    session_id: str
    candidates: list[Candidate]
    found_by: str = "rules"
    note: str = ""


class _Reading(Struct, kw_only=True):
    """Findings of a reading, before any of them is kept."""

    stretch: UnreadStretch
    findings: list[LearningFinding]
    compared: "list[ComparedFinding]"
    sequences: list[Done]
    found_by: str = "rules"
    note: str = ""
    used: ModelUsed | None = None
    answers: int = 0


class Reflecting:
    def __init__(
        self,
        db: Database,
        memory: Memory,
        policy: PolicyStore,
        models: Models,
        budgets: BudgetService,
        notices: Notices,
        redactor: Redactor,
        clock: Clock,
        settings: LearningSettings,
    ) -> None:
        self._db = db
        self._memory = memory
        self._policy = policy
        self._models = models
        self._budgets = budgets
        self._notices = notices
        self._redactor = redactor
        self._clock = clock
        self._settings = settings
        if settings.model:
            # A name that does not exist is an error at the start, not in the middle of the night.
            models.find(settings.model)

    def use(self, settings: LearningSettings) -> None:
        """Use other settings from the next reading on."""
        self._settings = settings

    async def work(self, task: Task) -> None:
        """The handler of the queue's tasks: one session, not more often than the cooldown lets
        it.
        """
        if not self._settings.enabled:
            # It was switched off after this was queued.
            raise NotNow(self._settings.cooldown_ms)
        session_id = str(task.payload["session_id"])
        last_ms = await self._db.read(lambda tx: rows.reflected_ms(tx, session_id))
        left_ms = last_ms + self._settings.cooldown_ms - self._clock.now_ms()
        if last_ms and 0 < left_ms <= self._settings.cooldown_ms:
            raise NotNow(left_ms)
        session = await self._db.read(lambda tx: sessions.find(tx, session_id=session_id))
        if session is not None:
            await self.session(session)

    async def session(self, session: Session, run_id: str = "") -> Reflected:
        """Read on in a session; with a run, read that run, whether it was read before or not."""
        stretch = await self._db.read(lambda tx: rows.stretch(tx, session.session_id, run_id))
        holder = f"reflection {self._clock.new_id()}"
        try:
            reading = await self._read(session, stretch, holder, demanded=bool(run_id))
            kept = await self._memory.within(
                partial(self._keep, session=session, reading=reading, run_id=run_id)
            )
        finally:
            self._budgets.release(holder)
        return Reflected(
            session_id=session.session_id,
            candidates=kept,
            found_by=reading.found_by,
            note=reading.note,
        )

    async def _read(
        self, session: Session, stretch: UnreadStretch, holder: str, *, demanded: bool
    ) -> _Reading:
        # They bring along what only a reflection needs.
        from palyra.features.learning import apply
        from palyra.features.learning import extract as read

        found = _Reading(stretch=stretch, findings=[], compared=[], sequences=[])
        if not stretch.lines:
            return found
        if self._settings.model:
            await self._ask(session.owner, found, holder)
        if found.found_by == "rules":
            found.findings = await everyday.run(read.said, found.stretch)
        before = await self._db.read(
            lambda tx: rows.sequences(tx, session.owner, read.MOST_SEQUENCES)
        )
        found.sequences = read.sequences_of(found.stretch)
        found.findings += await everyday.run(read.procedures, found.sequences, before)
        # On demand at once; by itself not for every answer anew.
        every_ms = 0 if demanded else _SUGGEST_MS
        found.answers = await self._db.read(
            lambda tx: rows.answers_since(tx, session.owner, every_ms)
        )
        if found.answers:
            found.findings += await read.permits(
                self._db, session.owner, self._policy.current, self._clock.now_ms()
            )
        for each in apply.best(found.findings):
            compared = await self._db.read(
                partial(apply.compare, where=_where(session), finding=each)
            )
            if compared is not None:
                found.compared.append(compared)
        return found

    async def _ask(self, owner: str, reading: _Reading, holder: str) -> None:
        """Have the model find what was said. What does not fit its budget is read the next time."""
        from palyra.features.learning import extract as read
        from palyra.features.learning.extract import Extractor

        extractor = Extractor(
            self._models, self._settings.model, self._budgets, self._redactor, self._clock
        )
        inputs = read.inputs_of(reading.stretch)
        asked = await extractor.find(owner, inputs, holder)
        reading.used = asked.used
        if asked.findings is None:
            reading.note = f"rules read it, because {asked.why_not}"
            log.warning("a reflection was done by rules: %s", asked.why_not)
            return
        reading.findings, reading.found_by = asked.findings, extractor.name
        reading.stretch = rows.shortened(reading.stretch, asked.upto)

    def _keep(self, tx: Tx, session: Session, reading: _Reading, run_id: str) -> list[Candidate]:
        from palyra.features.learning import apply
        from palyra.features.learning import extract as read
        from palyra.features.learning.apply import CandidateWriter

        where = _where(session)
        keeper = CandidateWriter(
            tx,
            where,
            self._settings.thresholds,
            lambda candidate: apply.item_of(self._memory, candidate, where, by_a_person=False),
            self._clock.new_id,
            run_id,
        )
        kept = keeper.keep(reading.compared)
        for undone in read.undone(reading.stretch):
            rows.forget_sequence(tx, undone)
        for done in reading.sequences:
            rows.keep_sequence(tx, session.owner, done, read.MOST_SEQUENCES)
        if reading.used is not None:
            tape.append(tx, SYSTEM_TAPE, session.owner, [reading.used])
        if reading.answers:
            rows.mark_answers(tx, session.owner, reading.answers)
        if not run_id:
            rows.mark_read(tx, session.session_id, reading.stretch.upto_seq)
            if reading.stretch.more:
                feed(tx, session.session_id, session.owner, tx.now_ms + self._settings.cooldown_ms)
        for each in kept:
            if each.automatic and each.state == "applied":
                self._tell(tx, each)
        return kept

    def _tell(self, tx: Tx, candidate: Candidate) -> None:
        undo = f"palyra learn rollback {candidate.candidate_id}"
        text = f"Learned: {candidate.content} (undo: {undo})"
        key, link = f"learned:{candidate.candidate_id}", f"#/learning/{candidate.candidate_id}"
        self._notices.telling("learning", key, text, link, to=candidate.owner)(tx)


def _where(session: Session) -> Where:
    return Where(
        principal=session.owner,
        channel=session.channel,
        session=session.session_id,
        workspace=session.workspace,
    )


def feed(tx: Tx, session_id: str, owner: str, ready_ms: int) -> None:
    """Have a session read, not before a time; once, however often it is asked for."""
    tasks.enqueue(
        tx,
        KIND,
        {"session_id": session_id},
        key=session_id,
        again=True,
        priority=tasks.LOW,
        not_before_ms=ready_ms,
        principal=owner,
        session_id=session_id,
    )


_AT_ONCE = 500


class Feeder:
    def __init__(self, db: Database, clock: Clock, settings: LearningSettings) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._due = False

    def ended(self, run_id: str = "") -> None:
        """A run has ended, or the daemon has started: there may be something to read."""
        if not self._settings.enabled:
            return
        self._due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def use(self, settings: LearningSettings) -> None:
        """Use other settings from now on. What ended while it was switched off is read when it is
        switched on.
        """
        resumed = settings.enabled and not self._settings.enabled
        self._settings = settings
        if resumed:
            self.ended()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._due:
            await self._clock.sleep(FEED_MS)
            if not self._settings.enabled:
                return
            self._due = False
            try:
                self._due = await self._db.write(self._feed) or self._due
            except PalyraError as error:
                log.warning("nothing could be queued for learning now: %s", error.message)
                self._due = True
            except Exception:
                log.exception("nothing could be queued for learning")
                self._due = True

    def _feed(self, tx: Tx) -> bool:
        """One step: the sessions with new runs, each not before its cooldown is over. Whether there
        is more.
        """
        fed, more = rows.feed(tx, _AT_ONCE)
        for each in fed:
            last_ms = rows.reflected_ms(tx, each.session_id)
            feed(
                tx,
                each.session_id,
                each.owner,
                last_ms + self._settings.cooldown_ms if last_ms else 0,
            )
        return more
