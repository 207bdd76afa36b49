"""Working on runs: one task for each run that is in progress, none for a run that waits.

The loop is `what_next`, then do it. It starts whenever `run.started` or `run.resumed` is committed,
whoever wrote it, so a run that is in progress on the tape always has its task; it stops when the
run ends or waits.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from palyra.agent import answer_format, corrections, run_activity
from palyra.agent.active_run import ActiveRun, RunEnded
from palyra.agent.answer_format import Invalid, Valid
from palyra.agent.idle_gate import IdleGate
from palyra.agent.model_turn import ModelTurns
from palyra.agent.run_activity import Vital
from palyra.agent.run_end import end, unfinished_calls
from palyra.agent.session_cache import SessionCache
from palyra.agent.stop import RunTask, Stopping
from palyra.agent.tool_flow import ToolFlow
from palyra.core import run_state
from palyra.core.degenerate import Correct
from palyra.core.errors import IllegalTransition, PalyraError, Unavailable
from palyra.core.events import (
    AnswerRefused,
    AnyEvent,
    ModelFailed,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
)
from palyra.core.ids import RunId
from palyra.core.next_step import (
    AskModel,
    Decide,
    Finish,
    GiveUp,
    Perform,
    Settle,
    WaitForPerson,
    what_next,
)
from palyra.core.run_progress import RunProgress
from palyra.core.signals import Signal
from palyra.store import route_plans, runs, tape
from palyra.store.database import Appended, Database, Tx
from palyra.store.route_plans import UnderWay
from palyra.store.runs import RunRow

log = logging.getLogger("palyra.runs")
T = TypeVar("T")

HEARTBEAT_S = 5.0
# How long to wait before trying again when the store refuses.
RETRY_S = 5.0
_SHUTDOWN_GRACE_S = 10.0
_MAILBOXES_AT_ONCE = 200
_BEGINNINGS = ("run.started", "run.resumed")
_ENDS = ("run.completed", "run.failed", "run.cancelled")

_BUDGETS = {
    "turn_budget": (
        "its budget of model turns is used up: raise budgets.turns, or send another message to"
        " go on"
    ),
    "call_budget": (
        "its budget of tool calls is used up: raise budgets.calls, or send another message to go on"
    ),
    "time_budget": (
        "its active time is used up: raise budgets.active_minutes, or send another message to go on"
    ),
}
_ENDINGS = _BUDGETS | corrections.ENDINGS
_MISFIT = (
    "the model's answer has not the form that was asked for, also when asked again: ask for less,"
    " or ask another model"
)


class Runs:
    def __init__(
        self,
        db: Database,
        lives: SessionCache,
        model_turns: ModelTurns,
        tool_flow: ToolFlow,
        lull: IdleGate | None = None,
        *,
        beat_s: float = HEARTBEAT_S,
        spare_s: float = 0.0,
    ) -> None:
        self._beat_s = beat_s
        # What a run has beyond its active time.
        self._spare_s = spare_s
        self._db = db
        self._lives = lives
        self._model_turns = model_turns
        self._tool_flow = tool_flow
        self._lull = lull or IdleGate()
        self._jobs: dict[str, RunTask] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopping = Stopping(db, self._jobs, self._spawn)
        # Told of each run that has ended: what was open for its sake can be closed.
        self.on_end = Signal[[str]]("a run's end")
        self._heart: asyncio.Task[None] | None = None
        self._closing = False
        # Sessions whose files are being put back: a run that begins meanwhile waits here before it
        # does anything.
        self._gates: dict[str, asyncio.Event] = {}

    @property
    def working(self) -> int:
        return len(self._jobs)

    def works_on(self, run_id: str) -> bool:
        return run_id in self._jobs

    def vitals(self) -> list[Vital]:
        """Signs of life of the runs that are being worked on."""
        held = (
            run_activity.of(job.working) for job in self._jobs.values() if job.working is not None
        )
        return [vital for vital in held if vital is not None]

    def on_commit(self, appended: Sequence[Appended]) -> None:
        """The only place that sets runs to work: what the tape says, happens."""
        mailboxes: dict[str, None] = {}
        for entry in appended:
            if entry.kind in _BEGINNINGS:
                self._start(entry.tape, RunId(entry.run_id), entry.principal)
            elif entry.kind in _ENDS and self._ended(entry):
                mailboxes[entry.tape] = None
        if mailboxes:
            self._spawn(self._begin_next(list(mailboxes)))

    def _start(self, session_id: str, run_id: RunId, principal: str) -> None:
        if run_id in self._jobs or self._closing:
            return
        job = self._jobs[run_id] = RunTask(session_id, principal)
        self._lull.begun()
        job.task = self._spawn(self._work(job, session_id, run_id))
        # A task that is cancelled before its first step never gets to leave by itself.
        job.task.add_done_callback(lambda _: self._leave(run_id, job))
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._keep_beating())

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _ended(self, entry: Appended) -> bool:
        """Return whether somebody may be next in its mailbox."""
        self.on_end.send(entry.run_id)
        job = self._jobs.get(entry.run_id)
        if job is not None and entry.kind == "run.cancelled":
            job.cancel("cancelled")
        live = self._lives.peek(entry.tape)
        return live is None or any(
            run.state == "accepted" for run in live.conversation.runs.values()
        )

    async def _begin_next(self, session_ids: list[str]) -> None:
        """Begin the oldest run of each mailbox, unless one is active. Many at a time, but never so
        many that others wait.
        """
        while session_ids and not self._closing:
            try:
                await self._db.write(
                    partial(_begin_each, session_ids=session_ids[:_MAILBOXES_AT_ONCE])
                )
                del session_ids[:_MAILBOXES_AT_ONCE]
            except Unavailable as error:
                log.error("the mailbox of session %s waits: %s", session_ids[0], error.message)
                await asyncio.sleep(RETRY_S)

    def hold_back(self, session_id: str) -> None:
        """Keep runs of this session from beginning to work. One that works already continues: its
        state on the tape says so.
        """
        self._gates.setdefault(session_id, asyncio.Event())

    def let_go(self, session_id: str) -> None:
        gate = self._gates.pop(session_id, None)
        if gate is not None:
            gate.set()

    async def last_words(self, session_id: str) -> None:
        """Wait for tasks whose runs have ended on the tape and which are still clearing up."""
        ending = [
            job.task
            for job in self._jobs.values()
            if job.session_id == session_id and job.working and job.task
        ]
        if ending:
            await asyncio.wait(ending, timeout=_SHUTDOWN_GRACE_S)

    async def recover(self) -> list[RunRow]:
        """Continue, after a start, all runs that were in progress; start what lay in mailboxes."""
        unfinished = await self._db.read(runs.unfinished)
        for run in unfinished:
            if run.state == "in_progress":
                await self._db.write(
                    partial(_resume, run_id=run.run_id, lost=self._model_turns.lost)
                )
        await self._begin_next(
            list({run.session_id for run in unfinished if run.state == "accepted"})
        )
        return unfinished

    async def _work(self, job: RunTask, session_id: str, run_id: RunId) -> None:
        """Work until the run ends or waits. Whatever the store refuses is tried again later from
        where the tape ends.
        """
        try:
            while not self._closing and not await self._settles(job, session_id, run_id):
                pass
        finally:
            self._leave(run_id, job)

    def _leave(self, run_id: str, job: RunTask) -> None:
        if self._jobs.get(run_id) is job:
            del self._jobs[run_id]
            self._lull.ended()

    async def _settles(self, job: RunTask, session_id: str, run_id: RunId) -> bool:
        """One attempt. False: another one is due, because the store refused, or because a cancel is
        still to be recorded.
        """
        try:
            try:
                await self._attempt(job, session_id, run_id)
                return True
            except Unavailable as error:
                log.error("run %s stopped where its tape ends: %s", run_id, error.message)
                await asyncio.sleep(RETRY_S)
                return False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # More than one is no person's cancel but the end of the event loop.
            return not job.cancel_reason or task is None or task.cancelling() > 1

    async def _attempt(self, job: RunTask, session_id: str, run_id: RunId) -> None:
        while (gate := self._gates.get(session_id)) is not None:
            await gate.wait()
        live = await self._lives.hold(session_id)
        working = job.working = ActiveRun(self._db, live, run_id)
        job.principal = working.principal
        try:
            if job.cancel_reason:
                # It was cancelled before it could be held, or when the store did not take it.
                await self._record_cancel(working, job.cancel_reason)
            else:
                await self._drive(working)
        except RunEnded:
            return  # Someone else ended it first. The first terminal event wins.
        except asyncio.CancelledError:
            if job.cancel_reason and not self._closing:
                await self._record_cancel(working, job.cancel_reason)
            else:
                working.record_cut_off(going_on=True)
        finally:
            job.working = None
            self._lives.release(live)

    async def _drive(self, working: ActiveRun) -> None:
        left_ms = working.progress.budgets.active_ms - working.progress.active_ms
        try:
            async with asyncio.timeout(max(0, left_ms) / 1000 + self._spare_s) as budget:
                try:
                    while not self._closing and await self._step(working):
                        pass
                except (Unavailable, RunEnded):
                    raise
                except Exception as error:  # noqa: BLE001  whatever it is, the run must not be left without an end
                    await self._give_up(working, error)
        except TimeoutError:
            if not budget.expired():
                raise
            await self._fail(working, "time_budget", _BUDGETS["time_budget"])

    async def _step(self, working: ActiveRun) -> bool:
        """One step of the loop; False when there is nothing more to do now."""
        match what_next(working.progress):
            case AskModel(continuing=continuing):
                await self._model_turns.take(working, continuing=continuing)
            case Decide(call_ids=call_ids):
                await self._tool_flow.decide(working, call_ids)
            case Perform(call_ids=call_ids):
                await self._tool_flow.perform(working, call_ids)
            case Settle(call_id=call_id):
                await self._tool_flow.settle(working, call_id)
            case Finish(text=text):
                await self._finish(working, text)
            case Correct(flaw=flaw, problem=problem):
                turn = working.progress.turns
                await working.append(AnswerRefused(turn=turn, problem=problem, flaw=flaw))
            case GiveUp(reason=reason):
                await self._fail(working, reason, _ENDINGS[reason])
            case WaitForPerson():
                return False
        return working.run_id in working.live.conversation.runs

    async def _finish(self, working: ActiveRun, text: str) -> None:
        """Give the answer, if it has the form that was wanted. Once, another one is asked for."""
        progress, seq = working.progress, working.live.conversation.seq
        if progress.formed:
            match await answer_format.judge(progress, text):
                case Invalid(problem=problem) if progress.refusals:
                    await self._fail(working, "answer_form", f"{_MISFIT}: {problem}")
                    return
                case Invalid(problem=problem):
                    await working.append(AnswerRefused(turn=progress.turns, problem=problem))
                    return
                case Valid(text=text):
                    pass
        await self._db.write(partial(complete, working=working, seq=seq, text=text))

    async def _settled(self, working: ActiveRun) -> RunProgress:
        """The run's progress once everything handed to the writer so far is on the tape."""
        await self._db.write(lambda tx: None)
        return working.progress

    async def _give_up(self, working: ActiveRun, error: Exception) -> None:
        """A step failed for good. An illegal one usually means that the run was ended by someone
        else: then RunEnded rises.
        """
        await self._settled(working)
        if isinstance(error, PalyraError) and not isinstance(error, IllegalTransition):
            await self._fail(working, error.code, error.message)
            return
        log.error("run %s failed", working.run_id, exc_info=error)
        what = f"a defect in the daemon ended the run ({type(error).__name__}); its log says more"
        await self._fail(working, "internal", what)

    async def _fail(self, working: ActiveRun, reason: str, message: str) -> None:
        working.record_cut_off(going_on=False)
        progress = await self._settled(working)
        done = f"{progress.turns} model turns and {progress.calls} tool calls were made"
        late = unfinished_calls(progress, "timeout", "stopped: the run was ended while this ran")
        failed = RunFailed(reason=reason, message=f"{message} ({done})")
        await self._db.write(partial(end, run_id=working.run_id, late=late, ending=failed))

    async def _record_cancel(self, working: ActiveRun, reason: str) -> None:
        working.record_cut_off(going_on=False)
        try:
            progress = await self._settled(working)
        except RunEnded:
            return
        late = unfinished_calls(
            progress, "cancelled", "cancelled while it ran: its effect may have happened in part"
        )
        await self._db.write(
            partial(end, run_id=working.run_id, late=late, ending=RunCancelled(reason=reason))
        )

    async def cancel(self, run: RunRow, reason: str) -> RunRow:
        """End a run in whatever state it is; returns it as it then is, recorded. A run that has
        ended stays as it is.
        """
        return await self.stopping.cancel(run, reason)

    async def resume(self, run_id: str) -> bool:
        """Go on with a run that is in progress and that nobody works on; whether it is such a
        run.
        """

        lost = self._model_turns.lost
        return await self._db.write(
            lambda tx: run_id not in self._jobs and _resume(tx, run_id, lost)
        )

    async def begin_next(self, session_id: str) -> None:
        """Begin the oldest run of a mailbox, unless one is active."""
        await self._db.write(partial(begin_next, session_id=session_id))

    def break_off(self, run_id: str, error: Exception) -> bool:
        """End a run's model call as if it had failed with this error; whether there was one."""
        job = self._jobs.get(run_id)
        return job is not None and job.working is not None and job.working.break_off(error)

    def interrupt(self, run_id: str) -> None:
        job = self._jobs.get(run_id)
        if job is not None and job.working is not None:
            job.working.interrupt()

    def halt(self) -> None:
        """Begin nothing more, and break off what is no effect, once: the process is about to
        end.
        """
        if self._closing:
            return
        self._closing = True
        for job in self._jobs.values():
            if job.task is not None and not (job.working is not None and job.working.in_effect):
                job.task.cancel()

    async def close(self) -> None:
        """Leave every run where its tape ends, to be resumed by the next start. Effects in progress
        may finish first.
        """
        self.halt()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_SHUTDOWN_GRACE_S)
            for task in late:
                task.cancel()
        if self._heart is not None:
            self._heart.cancel()

    async def _keep_beating(self) -> None:
        while self._jobs:
            await asyncio.sleep(self._beat_s)
            self._db.write(partial(runs.beat, run_ids=list(self._jobs)))


def _resume(tx: Tx, run_id: str, lost: Callable[[UnderWay], ModelFailed | None]) -> bool:
    """Resume a run unless it has ended, or waits, by now: another one may have taken it with it.

    A model call that has neither reply nor failure was under way when the daemon died. It was sent,
    so it counts.
    """
    run = runs.find(tx, run_id)
    if run is None or run.state != "in_progress":
        return False
    under_way = route_plans.under_way(tx, run_id)
    failed = lost(under_way) if under_way is not None else None
    new: list[AnyEvent] = [RunResumed(after="crash"), *([failed] if failed is not None else [])]
    tape.append(tx, run.session_id, run.principal, new, run.run_id)
    return True


def _begin_each(tx: Tx, session_ids: Sequence[str]) -> None:
    for session_id in session_ids:
        begin_next(tx, session_id)


def begin_next(tx: Tx, session_id: str) -> None:
    """Start the oldest accepted run of a session that has no active one."""
    unfinished = runs.unfinished_of_session(tx, session_id)
    if unfinished and not any(run.state in run_state.ACTIVE for run in unfinished):
        tape.append(tx, session_id, unfinished[0].principal, [RunStarted()], unfinished[0].run_id)


def complete(tx: Tx, working: ActiveRun, seq: int, text: str) -> None:
    """Complete a run, unless input has joined it since `seq`: then there is more to say, and
    nothing is written.
    """
    if not runs.inputs_after(tx, working.run_id, seq):
        tape.append(
            tx, working.session_id, working.principal, [RunCompleted(text=text)], working.run_id
        )
