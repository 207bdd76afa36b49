"""Working on runs: one task for each run that is in progress, none for a run that waits.

The loop is `what_next`, then do it. It starts when a run is submitted, when a wait ends, and after a crash, always the same
way; it stops when the run ends or waits.
"""

import asyncio
import logging
from functools import partial

from palyra.domain import conversation, run_state
from palyra.domain.conversation import AskModel, Decide, Finish, GiveUp, Perform, RunProgress, Settle, Wait
from palyra.domain.errors import IllegalTransition, NotFound, PalyraError
from palyra.domain.events import ApprovalResolved, RunCancelled, RunCompleted, RunFailed, RunResumed, RunStarted, ToolFinished
from palyra.domain.ids import RunId
from palyra.domain.tools import Outcome
from palyra.journal import approvals, runs, tape
from palyra.journal.database import Appended, Database, Tx
from palyra.journal.runs import RunRow
from palyra.runtime.live import LiveSessions
from palyra.runtime.model_turns import ModelTurns
from palyra.runtime.tool_flow import ToolFlow
from palyra.runtime.working import Working

log = logging.getLogger("palyra.runs")

HEARTBEAT_S = 5.0
RETRY_S = 5.0
# How long a cancelled run's task may take to end before the cancel is recorded without it.
_GRACE_S = 0.2
_SHUTDOWN_GRACE_S = 10.0

_BUDGETS = {
    "turn_budget": "its budget of model turns is used up: raise budgets.turns, or send another message to go on",
    "call_budget": "its budget of tool calls is used up: raise budgets.calls, or send another message to go on",
    "time_budget": "its active time is used up: raise budgets.active_minutes, or send another message to go on",
}


class _Job:
    """A run's task, and why it is being ended, if it is."""

    def __init__(self, working: Working) -> None:
        self.working = working
        self.task: asyncio.Task[None] | None = None
        self.cancel_reason = ""
        self.leaving = False


class Runs:
    def __init__(self, db: Database, lives: LiveSessions, model_turns: ModelTurns, tool_flow: ToolFlow) -> None:
        self._db = db
        self._lives = lives
        self._model_turns = model_turns
        self._tool_flow = tool_flow
        self._jobs: dict[str, _Job] = {}
        self._names: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._heart: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def working(self) -> int:
        return len(self._jobs)

    # --- starting -----------------------------------------------------------------------------------------------------

    def start(self, session_id: str, run_id: str) -> None:
        """Work on a run that is in progress. Harmless if someone does already."""
        if run_id in self._names or self._closing:
            return
        self._names.add(run_id)
        task = asyncio.create_task(self._work(session_id, RunId(run_id)), name=run_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def recover(self) -> list[RunRow]:
        """After a start: go on with every run that was in progress, and start what lay in mailboxes."""
        unfinished = await self._db.read(runs.unfinished)
        for run in unfinished:
            if run.state == "in_progress":
                await self._db.write(partial(_resume, run=run))
                self.start(run.session_id, run.run_id)
        for session_id in {run.session_id for run in unfinished if run.state == "accepted"}:
            await self._start_next(session_id)
        return unfinished

    async def _start_next(self, session_id: str) -> None:
        """Begin the oldest run of a mailbox, unless one is active."""
        started = await self._db.write(lambda tx: begin_next(tx, session_id))
        if started:
            self.start(session_id, started)

    async def _work(self, session_id: str, run_id: RunId) -> None:
        ended = False
        try:
            live = await self._lives.hold(session_id)
            job = self._jobs[run_id] = _Job(Working(self._db, live, run_id))
            job.task = asyncio.current_task()
            self._beat()
            try:
                await self._drive(job)
            except asyncio.CancelledError:
                if not job.leaving:
                    await self._record_cancel(job)
            finally:
                ended = run_id not in live.conversation.runs
                del self._jobs[run_id]
                self._lives.release(live)
        finally:
            self._names.discard(run_id)
        if ended and not self._closing:
            await self._start_next(session_id)

    # --- the loop -----------------------------------------------------------------------------------------------------

    async def _drive(self, job: _Job) -> None:
        working = job.working
        try:
            left_ms = working.progress.budgets.active_ms - working.progress.active_ms
            async with asyncio.timeout(max(0, left_ms) / 1000) as budget:
                while not job.leaving and await self._step(working):
                    pass
        except TimeoutError:
            if not budget.expired():
                raise
            await self._give_up(working, "time_budget")
        except (IllegalTransition, NotFound):
            # Someone else ended the run first: a cancel from another surface. The first terminal event wins.
            return
        except PalyraError as error:
            # The store refuses (disk full, closing). The tape is whole: the run goes on from its end when the store is back.
            log.error("run %s stopped where its tape ends: %s", working.run_id, error.message)
            asyncio.get_running_loop().call_later(RETRY_S, self.start, working.session_id, working.run_id)
        except Exception as error:
            log.exception("run %s failed", working.run_id)
            await working.append(RunFailed(reason="internal", message=f"a defect in the daemon ended the run: {error!r}"))

    async def _step(self, working: Working) -> bool:
        """One step of the loop; False when there is nothing more to do now."""
        match conversation.what_next(working.progress):
            case AskModel(continuing=continuing):
                await self._model_turns.take(working, continuing=continuing)
            case Decide(call_ids=call_ids):
                await self._tool_flow.decide(working, call_ids)
            case Perform(call_ids=call_ids):
                await self._tool_flow.perform(working, call_ids)
            case Settle(call_id=call_id):
                await self._tool_flow.settle(working, call_id)
            case Finish(text=text):
                await working.append(RunCompleted(text=text))
            case GiveUp(reason=reason):
                await self._give_up(working, reason)
            case Wait():
                return False
        return working.run_id in working.live.conversation.runs

    async def _give_up(self, working: Working, reason: str) -> None:
        progress = await self._settled(working)
        if progress is None:
            return
        done = f"{progress.turns} model turns and {progress.calls} tool calls were made"
        failed = RunFailed(reason=reason, message=f"{_BUDGETS[reason]} ({done})")
        await working.append(*_unfinished_calls(progress, "timeout", "stopped: the run's budget was used up"), failed)

    async def _settled(self, working: Working) -> RunProgress | None:
        """The run's progress once everything handed to the writer so far is on the tape."""
        await self._db.write(lambda tx: None)
        return working.live.conversation.runs.get(working.run_id)

    # --- ending -------------------------------------------------------------------------------------------------------

    async def cancel(self, run: RunRow, reason: str) -> RunRow:
        """End a run in whatever state it is; returns it as it then is. A run that has ended stays as it is."""
        if run.state in run_state.TERMINAL:
            return run
        job = self._jobs.get(run.run_id)
        if job is not None and job.task is not None:
            job.cancel_reason = job.cancel_reason or reason
            job.task.cancel()
            await asyncio.wait([job.task], timeout=_GRACE_S)
        ended = await self._db.write(lambda tx: cancel_step(tx, run.run_id, reason))
        if ended.state == "cancelled" and job is None:
            await self._start_next(run.session_id)
        return ended

    def interrupt(self, run_id: str) -> None:
        job = self._jobs.get(run_id)
        if job is not None:
            job.working.interrupt()

    async def _record_cancel(self, job: _Job) -> None:
        progress = await self._settled(job.working)
        if progress is None:
            return
        late = _unfinished_calls(progress, "cancelled", "cancelled while it ran: its effect may have happened in part")
        try:
            await job.working.append(*late, RunCancelled(reason=job.cancel_reason or "cancelled"))
        except IllegalTransition:
            return  # It ended in the same moment, by another event.

    async def close(self) -> None:
        """Leave every run where its tape ends, to be resumed by the next start. Effects in progress may finish first."""
        self._closing = True
        tasks = []
        for job in self._jobs.values():
            job.leaving = True
            if job.task is not None:
                tasks.append(job.task)
                if not job.working.in_effect:
                    job.task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_SHUTDOWN_GRACE_S)
            for task in late:
                task.cancel()
        if self._heart is not None:
            self._heart.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._keep_beating())

    async def _keep_beating(self) -> None:
        while self._jobs:
            await asyncio.sleep(HEARTBEAT_S)
            alive = list(self._jobs)
            self._db.write(partial(runs.beat, run_ids=alive))


def _resume(tx: Tx, run: RunRow) -> None:
    tape.append(tx, run.session_id, run.principal, [RunResumed(after="crash")], run.run_id)


def _unfinished_calls(progress: RunProgress, outcome: Outcome, text: str) -> list[ToolFinished]:
    calls = progress.last.calls if progress.last else []
    begun = [call for call in calls if call.started and not call.finished]
    return [ToolFinished(call_id=call.call.id, outcome=outcome, text=text, size=len(text)) for call in begun]


def begin_next(tx: Tx, session_id: str) -> str:
    """Start the oldest accepted run of a session that has no active one; returns its id, or nothing."""
    unfinished = runs.unfinished(tx, session_id=session_id)
    if not unfinished or any(run.state in run_state.ACTIVE for run in unfinished):
        return ""
    run = unfinished[0]
    tape.append(tx, session_id, run.principal, [RunStarted()], run.run_id)
    return run.run_id


def cancel_step(tx: Tx, run_id: str, reason: str) -> RunRow:
    """Record a cancel. Pending approvals are withdrawn with it; the first terminal event wins."""
    run = runs.find(tx, run_id)
    assert run is not None
    if run.state not in run_state.TERMINAL:
        withdrawn: list[tuple[ApprovalResolved, Appended]] = []
        for pending in approvals.pending_of_run(tx, run_id):
            event = ApprovalResolved(
                approval_id=pending.approval_id, call_id=pending.request.call_id, decision="withdrawn", reason=reason
            )
            withdrawn.append((event, tape.append(tx, run.session_id, run.principal, [event], run_id)[0]))
        for event, entry in withdrawn:
            approvals.settle(tx, event, entry.position)
        tape.append(tx, run.session_id, run.principal, [RunCancelled(reason=reason)], run_id)
    after = runs.find(tx, run_id)
    assert after is not None
    return after
