"""Runs the loop again over a recorded tape, and compares entry by entry. No network, no tool, no
effect.

The same classes as in the daemon work on a journal of their own in a scratch folder; only what they
reach the world through is another: the model, the tools, the policy, the clock.
"""

import asyncio
import tempfile
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from palyra.agent.active_run import ActiveRun
from palyra.agent.authorize import Authorizer
from palyra.agent.broadcast import Broadcast
from palyra.agent.images import ImageLoader
from palyra.agent.model_turn import ModelTurns
from palyra.agent.prompt import run_context, small_offer
from palyra.agent.prompt.assembly import Assembler
from palyra.agent.prompt.run_context import Recall, RecalledMemory, RunContext
from palyra.agent.prompt.small_offer import OfferedTools
from palyra.agent.prompt.sources import EMPTY, NONE, Index, Project, Surroundings
from palyra.agent.prompt.token_sizes import Measure
from palyra.agent.runs import Runs
from palyra.agent.session_cache import SessionCache
from palyra.agent.settings import ApprovalTimes, Settings
from palyra.agent.tool_flow import ToolFlow
from palyra.core.call_options import CallOptions
from palyra.core.conversation import Conversation
from palyra.core.events import Budgets, InputAssembled, RunClockChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.run_progress import RunProgress
from palyra.features.compaction.service import Compacting
from palyra.features.memory.recall import Recalling, for_prompt
from palyra.features.project_notes.prompt import ProjectFiles
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.compare import Replayed
from palyra.features.time_travel.replay.driver import SPARE_S, Director, Loop, ReplayDatabase
from palyra.features.time_travel.replay.models import (
    RecordedClock,
    RecordedModel,
    RecordedModels,
    RecordedSpending,
    RecordedWaits,
    failure,
)
from palyra.features.time_travel.replay.recording import Recording
from palyra.features.time_travel.replay.script import RecordedEntry, RecordedScript, feed
from palyra.features.time_travel.replay.tools import (
    RecordedCalls,
    RecordedCatalogue,
    RecordedCheckpoints,
    RecordedPolicy,
    RecordedSpawning,
)
from palyra.models.routing import Target
from palyra.store import approvals, runs
from palyra.store import artifacts as store_artifacts
from palyra.store.database import Appended, Database, Tx
from palyra.store.sqlite import ScratchSqlite
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue

_BATCH = 500
_NEVER_S = 1e9


def replay(recording: Recording, ours: Catalogue) -> Replayed:
    """Replay a recording on an event loop of its own. Not for the daemon's event loop: call it on a
    thread or in a process.
    """
    with (
        tempfile.TemporaryDirectory(prefix="palyra-replay-") as folder,
        asyncio.Runner(loop_factory=Loop) as runner,
    ):
        return runner.run(_replay(recording, ours, Path(folder)))


class _RecordedPace:
    """The clock is a part of the world: in a replay it does what it did."""

    def __init__(self, recording: Recording, script: RecordedScript) -> None:
        self._tape = recording.session_id
        self._script = script

    def changed(self, tape: str, seq: int, run_id: str, now_ms: int) -> RunClockChanged | None:
        return self._script.clock_changed(seq) if tape == self._tape else None

    def note(self, run_id: str, now_ms: int, *, working: bool) -> None:
        pass

    def keep(self) -> None:
        pass

    drop = commit = undo = keep


async def _replay(recording: Recording, ours: Catalogue, folder: Path) -> Replayed:
    script = RecordedScript(recording)
    director: Director | None = None
    db = Database(
        ScratchSqlite(folder / "journal.db"),
        lambda: director.now_ms if director else 0,
        readers=1,
        pace=_RecordedPace(recording, script),
    )
    db.open()
    try:
        await _prefill(db, recording, script)
        director = Director(script, recording.session_id, db, recording.first - 1)
        director.renew = partial(_World, director, recording, ours)
        await director.lead()
        same = director.difference.seq - 1 if director.difference else director.head
        return Replayed(
            session_id=recording.session_id,
            run_id=recording.run_id,
            title=recordings.title(recording),
            identical=director.difference is None,
            entries=same - recording.first + 1,
            difference=director.difference,
        )
    finally:
        await _end_everything()
        await db.close()


async def _end_everything() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=2)


async def _prefill(db: Database, recording: Recording, script: RecordedScript) -> None:
    """Restore what was there before: ancestors, earlier entries, artifacts, grants."""
    for part in recording.tapes[:-1]:
        own = RecordedScript(
            msgspec.structs.replace(recording, tapes=(part,), last=len(part.entries))
        )
        await _feed_all(db, part.tape, own.entries)
    await _feed_all(db, recording.session_id, script.entries[: recording.first - 1])

    def rest(tx: Tx) -> None:
        for each in recording.artifacts:
            store_artifacts.put_recorded(tx, **msgspec.structs.asdict(each))
        for grant in recording.grants:
            approvals.add_grant(tx, grant)

    await db.write(rest)


async def _feed_all(db: Database, tape: str, entries: list[RecordedEntry]) -> None:
    for start in range(0, len(entries), _BATCH):
        some = entries[start : start + _BATCH]

        def step(tx: Tx, some: list[RecordedEntry] = some) -> None:
            for entry in some:
                feed(tx, tape, entry)
            tx.appended.clear()

        await db.write(step)


class _World:
    """The loop and everything it reaches the world through; made anew where the daemon was started
    again.
    """

    def __init__(
        self, director: Director, recording: Recording, ours: Catalogue, door: ReplayDatabase
    ) -> None:
        self._director = director
        self._door = door
        bodies = {each.artifact_id: each.body for each in recording.artifacts}
        outside = {
            each.artifact_id: msgspec.json.decode(each.body, type=Surroundings)
            for each in recording.artifacts
            if each.session_id == SYSTEM_TAPE
        }
        surroundings = _Outside(director, outside)
        clock = RecordedClock(director)
        models = RecordedModels(director, RecordedModel(director, clock))
        calls = RecordedCalls(director, bodies.get)
        catalogue = RecordedCatalogue(ours, calls, surroundings.tools)
        # Everything recorded was redacted when it came; what is found in it now is a difference.
        redactor = Redactor(bytes(32))
        hub = Broadcast()
        settings = Settings(Budgets(), ApprovalTimes(), 1_000)
        self._lives = SessionCache(door)
        model_turns = ModelTurns(
            hub,
            models,
            _Assembler(director, catalogue, surroundings),
            _Projects(surroundings),
            _Recalling(director, recording),
            ImageLoader(door),
            _Compacting(director),
            redactor,
            clock,
            RecordedSpending(director, door, models, clock, settings),
            RecordedWaits(director),
        )
        judging = Authorizer(door, catalogue, RecordedPolicy(calls), redactor, clock, settings)
        spawning = RecordedSpawning(director)
        tool_flow = ToolFlow(
            door, hub, judging, catalogue, redactor, RecordedCheckpoints(director), clock, spawning
        )
        # A heartbeat says nothing on the tape, and would look like the loop's next step.
        self._runs = Runs(
            door, self._lives, model_turns, tool_flow, beat_s=_NEVER_S, spare_s=SPARE_S
        )

    def on_commit(self, appended: list[Appended]) -> None:
        self._lives.on_commit(appended)
        self._runs.on_commit(appended)

    async def recover(self) -> None:
        await self._runs.recover()

    async def cancel(self, run_id: str, reason: str) -> None:
        run = await self._door.read(lambda tx: runs.find(tx, run_id))
        assert run is not None
        await self._runs.cancel(run, reason)

    def interrupt(self, run_id: str) -> None:
        self._runs.interrupt(run_id)


class _Outside:
    """Parts of the prompt from outside the tape, as of the next time that something is
    assembled.
    """

    def __init__(self, director: Director, stored: Mapping[str, Surroundings]) -> None:
        self._director = director
        self._stored = stored

    def _now(self) -> Surroundings | None:
        script, head, run_id = self._director.script, self._director.head, self._director.run_id
        found = script.expect(head, run_id, "input.assembled") or script.before(
            head, run_id, "input.assembled"
        )
        if found is None or not isinstance(found.event, InputAssembled):
            return None
        return self._stored.get(found.event.surroundings or "")

    def tools(self) -> Any:
        found = self._now()
        return found.tools if found else None

    def skills(self) -> Index:
        found = self._now()
        return found.skills if found else EMPTY

    def project(self) -> Project:
        found = self._now()
        return found.project if found else NONE


class _Projects(ProjectFiles):
    """The notes as they were shown then, whatever is accepted now."""

    def __init__(self, outside: _Outside) -> None:
        self._outside = outside

    async def of(self, workspace: str) -> Project:
        return self._outside.project()


class _Recalling(Recalling):
    """Recall of what was remembered then, as far as it is remembered now."""

    def __init__(self, director: Director, recording: Recording) -> None:
        self._director = director
        self._items = {each.memory_id: each for each in recording.remembered}

    async def look(self, run: ActiveRun) -> Recall:
        found = self._assembled(run)
        if found is None:
            return Recall()
        return Recall(self._of(found.recalled, found.doubted), found.memory_problem)

    async def again(self, run: ActiveRun, memory_ids: Sequence[str]) -> tuple[RecalledMemory, ...]:
        found = self._assembled(run)
        doubted = run_context.doubted_in(run.live.conversation)
        return self._of([(each, 0.0) for each in found.kept_memory], doubted) if found else ()

    def _assembled(self, run: ActiveRun) -> InputAssembled | None:
        found = self._director.script.expect(self._director.head, run.run_id, "input.assembled")
        return found.event if found and isinstance(found.event, InputAssembled) else None

    def _of(
        self, shown: Sequence[tuple[str, float]], doubted: Collection[str]
    ) -> tuple[RecalledMemory, ...]:
        return tuple(
            for_prompt(self._items[each], score, unsure=each in doubted)
            for each, score in shown
            if each in self._items
        )


class _Compacting(Compacting):
    """Compaction from the tape: here the loop waits until the recorded one has come."""

    def __init__(self, director: Director) -> None:
        self._director = director

    async def make_room(self, run: ActiveRun, target: Target) -> bool:
        script, head = self._director.script, self._director.head
        seq = script.made_room(head, script.expect(head, run.run_id, "model.failed"))
        await self._director.reach(seq)
        return bool(seq)

    async def before_turn(self, run: ActiveRun, target: Target, tokens: int = 0) -> bool:
        director = self._director
        following = director.script.expect(director.head, run.run_id, "input.assembled")
        if following is None or not isinstance(following.event, InputAssembled):
            return False
        for seq in range(following.event.upto_seq, director.head, -1):
            entry = director.script.at(seq)
            if entry is not None and entry.kind == "session.compacted":
                await director.reach(seq)
                return True
        return False


class _Assembler(Assembler):
    """Assembler that works when the tape had come as far as it had then."""

    everything = True

    def __init__(self, director: Director, catalogue: Catalogue, outside: _Outside) -> None:
        super().__init__(catalogue.specs, outside.skills)
        self._director = director
        self._told = CallOptions()
        self._shown: InputAssembled | None = None

    def _options(self, run: RunProgress, target: Target) -> CallOptions:
        """Return what the model was told then, whatever the settings say now."""
        return self._told

    def _fits(self, target: Target) -> bool:
        return self._shown is not None and self._shown.fitted

    def _offer_within(
        self, conversation: Conversation, run: RunProgress, target: Target
    ) -> OfferedTools:
        """Return what was offered then, whatever words ask for now."""
        shown = self._shown
        names = shown.offered if shown is not None else ()
        return small_offer.offered_again(self._tools, names, self._said().get("tools", ""))

    def _said(self) -> Mapping[str, str]:
        parts = self._shown.parts if self._shown is not None else ()
        return {part.source: part.note for part in parts}

    def _notes(
        self, target: Target, offer: OfferedTools, skills: Index, missing: int
    ) -> Mapping[str, str]:
        return self._said()

    async def measure(
        self,
        conversation: Conversation,
        run: RunProgress,
        target: Target,
        around: RunContext,
        sizes: Measure,
    ) -> None:
        director = self._director
        failed = director.script.failure(director.head, run.run_id)
        if failed is not None:
            raise failure(failed)
        found = director.script.expect(director.head, run.run_id, "input.assembled")
        if found is None or not isinstance(found.event, InputAssembled):
            await director.never()
        else:
            self.by_halves = bool(found.event.left_out)
            self._told = found.event.options
            self._shown = found.event
            await director.reach(found.event.upto_seq)
        await super().measure(conversation, run, target, around, sizes)
