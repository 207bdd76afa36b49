"""The worker: takes tasks from the journal's queue, runs the handler of their kind, and says how it
ended.

The rule: nothing is asked of the store without a reason. A commit that enqueued wakes it, the end
of a task wakes it, and one timer stands for the next moment at which a row becomes due; a slow look
now and then is only the net below. A kind promises `at_least_once` (its handler may run again, and
does no harm by it) or `at_most_once` (a task that was begun and not finished has failed). What a
handler returns as a step commits together with the end of its task: that happens exactly once.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from palyra.agent.idle_gate import IdleGate
from palyra.core.errors import PalyraError, Unavailable
from palyra.core.signals import Signal
from palyra.store import tasks
from palyra.store.database import Database, Tx
from palyra.store.tasks import Task
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.tasks")

Promise = Literal["at_least_once", "at_most_once"]
Step = Callable[[Tx], object]
Handler = Callable[[Task], Awaitable[Step | None]]

LEASE_MS = 60_000
# A wall clock may jump, and another machine may enqueue: so often the rows are looked at although
# nobody said anything.
_NET_MS = 60_000
_IDLE_NET_MS = 300_000
_RETRY_MS = 1_000
_JUMP_MS = 5_000
_LONGEST_BACKOFF_MS = 3_600_000
_LONGEST_ERROR = 500
_GRACE_S = 2.0
KEEP_MS = 7 * 24 * 3_600_000


class NotNow(Exception):
    """Error of a handler that did nothing: the task is queued again for later, and this was no
    attempt.
    """

    def __init__(self, after_ms: int) -> None:
        super().__init__(f"not now, in {after_ms} ms")
        self.after_ms = after_ms


class Hopeless(Exception):
    """Error of a handler that knows that trying again would not help. Its text is what a person
    reads.
    """


@dataclass(frozen=True)
class TaskKind:
    """Kind of task: what is promised of it and how many run at once. `remember`: `done` is recorded
    on the system's tape too.

    `unhurried`: each of its tasks waits for a lull before it begins.
    """

    name: str
    handler: Handler
    limit: int = 2
    promise: Promise = "at_least_once"
    max_attempts: int = 5
    backoff_ms: int = 1_000
    timeout_ms: int = 600_000
    remember: bool = False
    unhurried: bool = False


@dataclass
class TaskCounts:
    """Counts since the process began, for the metrics."""

    wakes: int = 0
    rounds: int = 0
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)


class Tasks:
    """One worker for one process. `owner` names it in the leases."""

    def __init__(
        self,
        db: Database,
        redactor: Redactor,
        clock: Clock,
        lull: IdleGate | None = None,
        *,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self._db = db
        self._redactor = redactor
        self._clock = clock
        self._lull = lull or IdleGate()
        self._lease_ms = lease_ms
        self.owner = clock.new_id()
        self.kinds: dict[str, TaskKind] = {}
        self.counts = TaskCounts()
        self._working: dict[str, tuple[Task, asyncio.Task[None]]] = {}
        self._look_at: set[str] = set()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._heart: asyncio.Task[None] | None = None
        self._alarm: asyncio.Task[None] | None = None
        self._closing = False
        # Told, with the milliseconds, when somebody has set the wall clock or the machine has
        # slept.
        self.on_jump = Signal[[int]]("a clock that was set")
        self._drift_ms = clock.now_ms() - clock.ticks_ms()
        # Whether what is running in the table can only be what a process left that is dead.
        self._alone = False

    def register(
        self,
        kind: str,
        handler: Handler,
        *,
        limit: int = 2,
        promise: Promise = "at_least_once",
        max_attempts: int = 5,
        backoff_ms: int = 1_000,
        timeout_ms: int = 600_000,
        remember: bool = False,
        unhurried: bool = False,
    ) -> None:
        """Say who does the tasks of a kind. Tasks of a kind that nobody registered wait."""
        self.kinds[kind] = TaskKind(
            kind, handler, limit, promise, max_attempts, backoff_ms, timeout_ms, remember, unhurried
        )
        self.look([kind])

    def start(self, *, alone: bool = True) -> None:
        """Begin to work. `alone`: no other process works on this database, so what is leased is
        left over and begins again now.
        """
        self._alone = alone
        self._db.on_signal.connect(self.look)
        self.look(self.kinds)
        self._loop = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop. What was being done is put back, to be begun again by the next start."""
        self._closing = True
        self._wake.set()
        if self._loop is not None:
            # What it asks the store for is claimed, whether it hears of it or not: it is let hear
            # of it, and puts it back.
            await asyncio.wait([self._loop], timeout=_GRACE_S)
        # A job that is cancelled before its first step never gets to say how it ended.
        await asyncio.sleep(0)
        waiting = [task for task in (self._loop, self._heart, self._alarm) if task is not None]
        working = [job for _, job in self._working.values()]
        for task in (*waiting, *working):
            task.cancel()
        if waiting or working:
            await asyncio.wait([*waiting, *working], timeout=_GRACE_S)

    def look(self, kinds: Collection[str]) -> None:
        """Look for tasks of these kinds: there may be some."""
        known = [kind for kind in kinds if kind in self.kinds]
        if known:
            self._look_at.update(known)
            self._rouse()

    def _rouse(self) -> None:
        self._idle.clear()
        self._wake.set()

    async def enqueue(self, kind: str, payload: dict[str, Any] | None = None, **more: Any) -> str:
        """`journal.tasks.enqueue` as a step of its own, for who has none."""
        return await self._db.write(partial(tasks.enqueue, kind=kind, payload=payload, **more))

    async def settled(self) -> None:
        """Wait until nothing is ready and nothing runs here."""
        await self._idle.wait()

    @property
    def idle(self) -> bool:
        return self._idle.is_set()

    @property
    def working(self) -> int:
        return len(self._working)

    @property
    def alive(self) -> bool:
        """Return whether it works, or was never started."""
        return self._loop is None or self._closing or not self._loop.done()

    def recover(self, tx: Tx, left: Task) -> str:
        """Take a task from a worker of which nothing is heard; what became of it, in words."""
        kind = self.kinds.get(left.kind)
        if kind is None:
            tasks.put_back(tx, left, tx.now_ms, "its worker vanished")
        else:
            self._recover(tx, kind, left)
        now = tasks.find(tx, left.task_id)
        return f"the task is {now.state}" if now is not None else "the task is gone"

    def holds(self, task_id: str) -> bool:
        """Return whether this worker has it in hand."""
        return task_id in self._working

    def let_go(self, task_id: str) -> None:
        """Stop working on a task that is not this worker's any more."""
        held = self._working.get(task_id)
        if held is not None:
            held[1].cancel()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._closing:
                return
            self.counts.wakes += 1
            kinds, self._look_at = self._look_at, set()
            try:
                await self._notice_jump()
                claimed, next_ms = await self._round(kinds)
            except Unavailable as error:
                log.warning("the queue cannot be reached now: %s", error.message)
                self._look_at |= kinds
                self._ring_in(_RETRY_MS)
                continue
            except Exception:
                # With this loop everything would end that is planned: whatever it is, it is tried
                # again.
                log.exception("the queue could not be looked at")
                self._look_at |= kinds
                self._ring_in(10 * _RETRY_MS)
                continue
            await self._take_up(claimed)
            net_ms = _IDLE_NET_MS if next_ms >= tasks.NEVER else _NET_MS
            self._ring_in(min(net_ms, max(0, next_ms - self._clock.now_ms())))
            if not self._working and not self._wake.is_set():
                self._idle.set()

    async def _take_up(self, claimed: list[Task]) -> None:
        if not self._closing:
            for task in claimed:
                self._begin(task)
            return
        # Claimed in the moment of closing, they were not begun: it is as if nobody had asked for
        # them.
        with suppress(Unavailable):  # The next start sees that nobody holds them.
            await self._db.write(
                lambda tx: [tasks.put_back(tx, task, tx.now_ms, counts=False) for task in claimed]
            )

    async def _notice_jump(self) -> None:
        jumped = self._clock.now_ms() - self._clock.ticks_ms() - self._drift_ms
        if abs(jumped) > _JUMP_MS:
            await self.on_jump.send_and_wait(jumped)
            # Only now: who could not hear of it is told again.
            self._drift_ms += jumped

    async def _round(self, told: Collection[str]) -> tuple[list[Task], int]:
        """Take what may begin. A round that nobody asked for writes only if there is something to
        write.
        """
        if not told:
            full = self._full(Counter(task.kind for task, _ in self._working.values()))
            soonest = await self._db.read(lambda tx: tasks.next_moment(tx, self.kinds, full))
            if soonest > self._clock.now_ms():
                return [], soonest
        self.counts.rounds += 1
        held = {task_id: task.kind for task_id, (task, _) in self._working.items()}
        taken = await self._db.write(
            partial(self._take, kinds=tuple(told or self.kinds), held=held, alone=self._alone)
        )
        self._alone = False
        return taken

    def _take(
        self, tx: Tx, kinds: Collection[str], held: dict[str, str], *, alone: bool
    ) -> tuple[list[Task], int]:
        """Take tasks on the writer's thread: `held` is what this worker had in hand on asking."""
        running = Counter(held.values())
        claimed: list[Task] = []
        for kind in (self.kinds[name] for name in kinds):
            for left in tasks.abandoned(tx, kind.name, alone=alone):
                if left.task_id not in held:
                    self._recover(tx, kind, left)
                else:
                    # The machine has slept, or the clock was set: without this it would be looked
                    # at again and again.
                    tasks.beat(tx, self.owner, [left.task_id], self._lease_ms)
        tasks.expire(tx)
        tasks.forget(tx, tx.now_ms - KEEP_MS)
        for kind in (self.kinds[name] for name in kinds):
            claimed += tasks.claim(
                tx,
                kind.name,
                self.owner,
                self._lease_ms,
                kind.limit - running[kind.name],
                kind.limit,
            )
        running.update(task.kind for task in claimed)
        return claimed, tasks.next_moment(tx, self.kinds, self._full(running))

    def _recover(self, tx: Tx, kind: TaskKind, left: Task) -> None:
        """A worker died on it, or the machine slept: begin it again as its kind promises."""
        if kind.promise == "at_most_once":
            tasks.end(
                tx,
                left,
                "failed",
                "its worker vanished: it may have happened, and it is not done twice",
            )
        elif left.attempts >= (left.max_attempts or kind.max_attempts):
            tasks.end(
                tx, left, "failed", f"its worker vanished, for the last of {left.attempts} attempts"
            )
        else:
            tasks.put_back(tx, left, tx.now_ms, "its worker vanished")

    def _full(self, running: Mapping[str, int]) -> list[str]:
        """Kinds that can begin nothing now: the end of one of their tasks will say so."""
        return [name for name, kind in self.kinds.items() if running.get(name, 0) >= kind.limit]

    def _ring_in(self, ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.create_task(self._ring(ms))

    async def _ring(self, ms: int) -> None:
        await self._clock.sleep(ms)
        self._rouse()

    def _begin(self, task: Task) -> None:
        job = asyncio.create_task(self._work(self.kinds[task.kind], task))
        # One that was asked for again may be here again before the job that ended it is quite over.
        self._working[task.task_id] = task, job
        job.add_done_callback(partial(self._ended, task))
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._keep_beating())

    def _ended(self, task: Task, job: "asyncio.Task[None]") -> None:
        if self._working.get(task.task_id) == (task, job):
            del self._working[task.task_id]
        if not self._closing:
            self.look([task.kind])

    async def _work(self, kind: TaskKind, task: Task) -> None:
        try:
            if kind.unhurried:
                await self._lull.wait()
            settle = await self._attempt(kind, task)
        except asyncio.CancelledError:
            if not self._closing:
                return  # It is somebody else's, or was cancelled: the row says so already.
            settle = partial(self._stopped, kind=kind, task=task)
        while True:
            try:
                outcome = await asyncio.shield(self._db.write(settle))
            except Unavailable as error:
                if self._closing:
                    return  # The lease runs out, or the next start sees that nobody holds it.
                log.warning("task %s cannot be settled now: %s", task.task_id, error.message)
                await self._clock.sleep(_RETRY_MS)
            except Exception as error:  # noqa: BLE001  whatever a handler's step raises, its task must not be left running
                settle = partial(self._failed, kind=kind, task=task, error=error)
            else:
                self.counts.ended[kind.name, outcome] += 1
                return

    async def _attempt(self, kind: TaskKind, task: Task) -> Callable[[Tx], str]:
        """Run the handler; what comes back is the step that settles the task."""
        try:
            async with asyncio.timeout(kind.timeout_ms / 1000) as patience:
                step = await kind.handler(task)
        except NotNow as later:
            return partial(self._later, task=task, after_ms=later.after_ms)
        except Exception as error:  # noqa: BLE001  whatever it is, the task must not be left running
            if isinstance(error, TimeoutError) and patience.expired():
                error = TimeoutError(f"it took longer than {kind.timeout_ms // 1000} s")
            return partial(self._failed, kind=kind, task=task, error=error)
        return partial(self._done, kind=kind, task=task, step=step)

    def _done(self, tx: Tx, kind: TaskKind, task: Task, step: Step | None) -> str:
        if not tasks.owns(tx, task):
            return "lost"
        if step is not None:
            step(tx)
        tasks.end(tx, task, "done", remember=kind.remember)
        return "done"

    def _later(self, tx: Tx, task: Task, after_ms: int) -> str:
        return "later" if tasks.put_back(tx, task, tx.now_ms + after_ms, counts=False) else "lost"

    def _stopped(self, tx: Tx, kind: TaskKind, task: Task) -> str:
        if kind.promise == "at_most_once":
            return (
                "failed"
                if tasks.end(
                    tx, task, "failed", "stopped while it ran: it may have happened in part"
                )
                else "lost"
            )
        return "later" if tasks.put_back(tx, task, tx.now_ms, counts=False) else "lost"

    def _failed(self, tx: Tx, kind: TaskKind, task: Task, error: Exception) -> str:
        said = (
            error.message if isinstance(error, PalyraError) else str(error) or type(error).__name__
        )
        text = self._redactor.redact_head(said, _LONGEST_ERROR)
        last = task.attempts >= (task.max_attempts or kind.max_attempts)
        if last or kind.promise == "at_most_once" or isinstance(error, Hopeless):
            log.warning("task %s (%s) failed: %s", task.task_id, kind.name, text)
            return "failed" if tasks.end(tx, task, "failed", text) else "lost"
        wait_ms = min(_LONGEST_BACKOFF_MS, kind.backoff_ms << (task.attempts - 1))
        # Between half and the whole: tasks that failed together do not come back together.
        wait_ms = int(wait_ms * (0.5 + self._clock.chance() / 2))
        return "again" if tasks.put_back(tx, task, tx.now_ms + wait_ms, text) else "lost"

    async def _keep_beating(self) -> None:
        while self._working:
            await self._clock.sleep(self._lease_ms // 3)
            if not self._working:
                return
            held = partial(
                tasks.beat, owner=self.owner, task_ids=list(self._working), lease_ms=self._lease_ms
            )
            try:
                lost = await self._db.write(held)
            except Unavailable:
                continue
            except Exception:
                log.exception("what is being worked on could not be held")
                continue
            for task_id in lost:
                self.let_go(task_id)
