"""STOP and cancel never wait for the disk: what works is broken off first, and recorded after.

The answer waits for the record only for a moment. If it is not there by then the answer says so,
and recording goes on until the store takes it. If the daemon dies before that, the next one finds
the runs unfinished and goes on with them, as after any crash.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from palyra.agent import durable_write
from palyra.agent.active_run import ActiveRun
from palyra.agent.run_end import cancel_all, end
from palyra.core.errors import Unavailable
from palyra.core.events import RunCancelled
from palyra.core.ids import SessionId
from palyra.store import runs
from palyra.store.database import Database, Tx
from palyra.store.runs import RunRow

T = TypeVar("T")
Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
# How long an answer waits for what it tells of to be recorded: a person who stops a thousand runs
# does not wait for a thousand records, and those of a few are there in time unless something is
# wrong with the disk.
ANSWER_S = 0.5
_MANY_S = 0.1
_MANY = 100
# How long a cancelled run's task may take to end before the cancel is recorded without it.
_GRACE_S = 0.2


class RunTask:
    """A run's task, and why it is being ended, if it is."""

    def __init__(self, session_id: str, principal: str) -> None:
        self.session_id = session_id
        # Whose run it is; until its session is held, who set it to work.
        self.principal = principal
        self.task: asyncio.Task[None] | None = None
        self.working: ActiveRun | None = None
        self.cancel_reason = ""

    @property
    def parent(self) -> str:
        """The run that this one works for, if it is a subagent's and has begun."""
        if (
            self.working is None
            or (run := self.working.live.conversation.runs.get(self.working.run_id)) is None
        ):
            return ""
        return run.accepted.parent_run_id or ""

    def cancel(self, reason: str) -> None:
        """Cancel the task once: a second blow would hit it while it records the first."""
        if not self.cancel_reason and self.task is not None:
            self.cancel_reason = reason
            self.task.cancel()


class Stopping:
    """Control over the runs that are being worked on, by id. `spawn` keeps a task until it ends."""

    def __init__(self, db: Database, jobs: dict[str, RunTask], spawn: Spawn) -> None:
        self._db = db
        self._jobs = jobs
        self._spawn = spawn

    async def cancel(self, run: RunRow, reason: str) -> RunRow:
        """End a run in whatever state it is; returns it as it then is. A run that has ended stays
        as it is.
        """
        await self._last_moment(self.strike(run.run_id, reason))
        return await self._db.write(
            partial(end, run_id=run.run_id, late=[], ending=RunCancelled(reason=reason))
        )

    def strikes(self, principal: str, run_id: str, reason: str) -> bool:
        """Break off a run if it is known without asking the store that it is this principal's;
        whether it was broken off.
        """
        job = self._jobs.get(run_id)
        known = job is not None and job.principal == principal
        if known:
            self.strike(run_id, reason)
        return known

    def strike(self, run_id: str, reason: str) -> list[RunTask]:
        """Break off what a run does now, and those that work for it; returns these. Recording is
        left to whoever calls this.
        """
        job = self._jobs.get(run_id)
        if job is not None:
            job.cancel(reason)
        # A run that waits for a subagent is not being worked on, but the subagent is.
        below = [other for other, each in self._jobs.items() if each.parent == run_id]
        struck = [
            each
            for other in below
            for each in self.strike(other, "the run that it worked for has ended")
        ]
        return struck if job is None else [job, *struck]

    async def _last_moment(self, struck: Sequence[RunTask]) -> None:
        """Give what is broken off a moment to record its end itself: it knows what it was doing."""
        tasks = [job.task for job in struck if job.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE_S)

    async def _end_for_good(self, run_id: str, reason: str, struck: Sequence[RunTask]) -> RunRow:
        await self._last_moment(struck)
        step = partial(end, run_id=run_id, late=[], ending=RunCancelled(reason=reason))
        return await durable_write.write_until_stored(self._db, step, f"the end of run {run_id}")

    async def cancel_soon(self, run: RunRow, reason: str) -> RunRow:
        """Do the same as `cancel`, but answer in time whatever the disk does, and say if it is not
        recorded.
        """
        struck = self.strike(run.run_id, reason)
        recording: asyncio.Task[RunRow] = self._spawn(
            self._end_for_good(run.run_id, reason, struck)
        )
        if await _told_in_time([recording]):
            return recording.result()
        return msgspec.structs.replace(run, recorded=False)

    def as_known(self, run_id: str) -> RunRow | None:
        """A run that is broken off as it is known without the store, which does not answer."""
        job = self._jobs.get(run_id)
        progress = (
            job.working.live.conversation.runs.get(job.working.run_id)
            if job is not None and job.working
            else None
        )
        if job is None or progress is None:
            return None
        return RunRow(
            run_id=progress.run_id,
            session_id=SessionId(job.session_id),
            principal=job.principal,
            origin=progress.accepted.origin,
            state=progress.state,
            created_ms=0,
            recorded=False,
        )

    async def stop(self, principal: str, reason: str) -> tuple[list[str], bool]:
        """End everything of a principal: which runs, and whether that is recorded by now."""
        busy = [run_id for run_id, job in self._jobs.items() if job.principal == principal]
        step = EndIdle(principal, busy, reason, self._db.now_ms())
        # Handed over before one of those that work can end: then no mailbox begins another.
        handed_over = self._db.write(step)
        for run_id in busy:
            self._jobs[run_id].cancel(reason)
        idle = self._spawn(_for_good(self._db, step, handed_over, "STOP"))
        working = [
            self._spawn(self._end_for_good(run_id, reason, [self._jobs[run_id]])) for run_id in busy
        ]
        recorded = await _told_in_time([idle, *working], step)
        found = [run.run_id for run in idle.result()] if idle.done() else step.found
        if found is None:
            found = await self._waiting(principal, busy)
        return [*found, *busy], recorded

    async def _waiting(self, principal: str, busy: Collection[str]) -> list[str]:
        """Return the runs that STOP will end beside what worked, if the store answers in time."""
        try:
            async with asyncio.timeout(_MANY_S):
                rows = await self._db.read(lambda tx: runs.unfinished_of_principal(tx, principal))
        except (TimeoutError, Unavailable):
            return []
        return [run.run_id for run in rows if run.run_id not in busy]


class EndIdle:
    """The step that ends what a principal has and nobody works on. It finds those itself, so that
    none slips by.

    `found` is what it saw when it first ran: tried again later, it must not end what was begun
    since.
    """

    def __init__(self, principal: str, busy: Collection[str], reason: str, asked_ms: int) -> None:
        self._principal = principal
        self._busy = frozenset(busy)
        self._reason = reason
        self._asked_ms = asked_ms
        self._tried = False
        self.found: list[str] | None = None

    def __call__(self, tx: Tx) -> list[RunRow]:
        idle = [
            run
            for run in runs.unfinished_of_principal(tx, self._principal)
            if run.run_id not in self._busy
        ]
        if self.found is not None:
            idle = [run for run in idle if run.run_id in self.found]
        elif self._tried:
            idle = [run for run in idle if run.created_ms <= self._asked_ms]
        self.found = [run.run_id for run in idle]
        return cancel_all(tx, idle, self._reason)

    def again(self) -> None:
        """Note that the step could not be recorded, perhaps without having run at all."""
        self._tried = True


async def _for_good(
    db: Database, step: Callable[[Tx], T], handed_over: "asyncio.Future[T]", what: str
) -> T:
    """Wait for a step that was handed over, and hand it over again until the store takes it."""
    try:
        return await handed_over
    except Unavailable:
        if isinstance(step, EndIdle):
            step.again()
        return await durable_write.write_until_stored(db, step, what)


async def _told_in_time(
    recording: Sequence["asyncio.Task[object]"], step: EndIdle | None = None
) -> bool:
    """Return whether all of it is recorded before the answer must go out; raises what went wrong
    with one that is done.
    """
    _, late = await asyncio.wait(recording, timeout=_MANY_S)
    if late and (step is None or len(step.found or ()) < _MANY):
        _, late = await asyncio.wait(recording, timeout=ANSWER_S - _MANY_S)
    for each in recording:
        if each.done():
            each.result()
    return not late
