"""Learning in a test's own loop: a real journal and real memory, conversations recorded onto real
tapes, time that a test moves.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from palyra.agent.broadcast import Broadcast
from palyra.core import labels
from palyra.core.budgets import Limit
from palyra.core.events import (
    AnyEvent,
    Circumstances,
    InputReceived,
    RunAccepted,
    RunCompleted,
    RunStarted,
    SessionCreated,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.ids import OWNER, CallId
from palyra.core.labels import CLEAN, Label, untrusted
from palyra.core.ports import ModelProvider
from palyra.features.budgets.service import BudgetService
from palyra.features.learning import rows as learning_rows
from palyra.features.learning.model import Candidate, CandidateState, LearningSettings
from palyra.features.learning.reflection import Reflected, Reflecting
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.models.routing import Models, Target
from palyra.policy.store import PolicyStore
from palyra.store import sessions, tape
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session
from palyra.system.redactor import Redactor
from tests.learning_corpus import Call, Conversation, Planted, Run
from tests.remembering import SetClock, remembering

SHOWN: tuple[CandidateState, ...] = ("pending_review", "conflicted", "accepted", "applied")
EVERYTHING: tuple[CandidateState, ...] = (*SHOWN, "suppressed", "rejected", "rolled_back")


@dataclass
class World:
    db: Database
    memory: Memory
    reflecting: Reflecting
    clock: SetClock

    async def record(self, conversation: Conversation, owner: str = OWNER) -> Session:
        session_id = self.clock.new_id()
        return await self.db.write(
            lambda tx: self._record(tx, session_id, conversation.runs, owner)
        )

    async def say(self, session: Session, *said: str) -> None:
        """Go on in a session."""
        await self.db.write(
            lambda tx: [
                self._run(tx, session.session_id, session.owner, Run(each), CLEAN) for each in said
            ]
        )

    def _record(self, tx: Tx, session_id: str, runs: Iterable[Run], owner: str) -> Session:
        session = sessions.create(tx, session_id, SessionCreated(owner=owner))
        label = CLEAN
        for run in runs:
            label = self._run(tx, session_id, owner, run, label)
        return session

    def _run(self, tx: Tx, session_id: str, owner: str, run: Run, label: Label) -> Label:
        """A run as the daemon records it; what was read labels everything behind it."""
        run_id = self.clock.new_id()
        self.clock.ms += 1_000
        heard = untrusted(run.source) if run.source else CLEAN
        label = labels.join([label, heard])
        events: list[AnyEvent] = [
            RunAccepted(origin=run.origin),
            InputReceived(submission_id=run_id, text=run.said, label=heard),
            RunStarted(),
        ]
        for call in run.calls:
            events += self._call(call, label)
            label = labels.join([label, untrusted(call.source)]) if call.source else label
        tape.append(tx, session_id, owner, [*events, RunCompleted(text=run.answer)], run_id)
        return label

    def _call(self, call: Call, label: Label) -> list[AnyEvent]:
        call_id = CallId(self.clock.new_id())
        asked = Circumstances(now_ms=self.clock.ms, label=label)
        brought = untrusted(call.source) if call.source else CLEAN
        return [
            ToolProposed(call_id=call_id, tool=call.tool, arguments=call.arguments, asked=asked),
            ToolDecided(call_id=call_id, verdict="allow", reason="a test"),
            ToolStarted(call_id=call_id, key=call_id),
            ToolFinished(call_id=call_id, outcome=call.outcome, text=call.result, label=brought),  # type: ignore[arg-type]
        ]

    async def reflect(self, session: Session) -> Reflected:
        return await self.reflecting.session(session)

    async def listed(
        self, states: Sequence[CandidateState] = SHOWN, owner: str = OWNER
    ) -> list[Candidate]:
        return await self.db.read(lambda tx: learning_rows.listing(tx, owner, states, limit=1_000))


@asynccontextmanager
async def learning_world(
    folder: Path,
    settings: LearningSettings | None = None,
    model: ModelProvider | None = None,
    limits: Sequence[Limit] = (),
) -> AsyncIterator[World]:
    clock = SetClock()
    policies = folder / "policies"
    policies.mkdir(exist_ok=True)
    async with remembering(folder, clock=clock) as memory:
        db = memory._db
        redactor = Redactor(b"k" * 32)
        models = (
            Models({"scripted": model}, [Target("scripted", "one", 32_000)])
            if model
            else Models({}, [])
        )
        notices = Notices(db, Broadcast(), redactor, clock)
        budgets = BudgetService(db, models.prices, notices, clock, limits=limits)
        db.on_commit.connect(budgets.on_commit)
        reflecting = Reflecting(
            db,
            memory,
            PolicyStore(policies, "default"),
            models,
            budgets,
            notices,
            redactor,
            clock,
            settings or LearningSettings(),
        )
        yield World(db, memory, reflecting, clock)


def matches(candidate: Candidate, planted: Planted) -> bool:
    text = candidate.content.casefold()
    return candidate.kind == planted.kind and all(word.casefold() in text for word in planted.words)
