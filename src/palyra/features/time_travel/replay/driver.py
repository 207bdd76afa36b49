"""Director of a replay: lets the loop write, and brings what came from outside at the positions at
which it came.

The rule: at every position it is known from the recorded tape whose turn it is. Steps of the loop
wait here as long as something from outside is due before them; whoever stands in for the world
waits here until its answer is due.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from palyra.agent import approval_steps
from palyra.agent.run_end import end
from palyra.core import run_state
from palyra.core.events import ApprovalResolved, RunAccepted, RunCancelled, ToolStarted
from palyra.core.run_state import RunState
from palyra.core.signals import Signal
from palyra.features.time_travel.replay.compare import Difference, Side, differ
from palyra.features.time_travel.replay.recording import based_on
from palyra.features.time_travel.replay.script import RecordedEntry, RecordedScript, Unit, feed
from palyra.store import approvals
from palyra.store.database import Appended, Database, Tx

T = TypeVar("T")
# So long nothing happens at all before a replay is taken to stand still.
STILL_S = 60.0
# More than a replay ever takes. A run's active time does not pass by itself here: how slow this
# machine is says nothing of the run.
SPARE_S = 100_000.0
_NEVER = 1 << 60


class _EndedBefore(Exception):
    """The loop wants to write what the recorded one did not come to: a clock or a person had ended
    the run.
    """


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


class Runtime(Protocol):
    """Parts that are replaced as a whole where the daemon was restarted."""

    def on_commit(self, appended: list[Appended]) -> None: ...

    async def recover(self) -> None: ...

    async def cancel(self, run_id: str, reason: str) -> None: ...

    def interrupt(self, run_id: str) -> None: ...


class ReplayDatabase(Database):
    """The journal as the loop sees it. What it writes goes through the director; after a crash it
    writes nothing more.
    """

    def __init__(self, director: "Director", real: Database) -> None:
        self._director = director
        self._real = real
        self.dead = False

    def write(self, step: Callable[[Tx], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self.dead:
            self._director.hand_over(step, future)
        return future

    async def read(self, query: Callable[[Tx], T]) -> T:
        return await self._real.read(query)

    def read_from_thread(self, query: Callable[[Tx], T]) -> T:
        return self._real.read_from_thread(query)

    def check_lease(self) -> None:
        """A replay has no effects that another node could have too."""

    @property
    def is_shared(self) -> bool:
        return False


class Director:
    def __init__(self, script: RecordedScript, session_id: str, db: Database, head: int) -> None:
        self.script = script
        self._session_id = session_id
        self._db = db
        self.head = head
        self.difference: Difference | None = None
        self.runtime: Runtime | None = None
        self.renew: Callable[[ReplayDatabase], Runtime] | None = None
        # Called when everything behind the head is forgotten, as in a crash.
        self.on_restart = Signal[[]]("a restart")
        self._door: ReplayDatabase | None = None
        self._steps: deque[tuple[Callable[[Tx], Any], asyncio.Future[Any]]] = deque()
        # Those of a daemon that starts. They say nothing of how far the run has come that it set to
        # work again.
        self._starting: deque[tuple[Callable[[Tx], Any], asyncio.Future[Any]]] = deque()
        # Until which entry, who is told, and in which run: one that ended may have left somebody
        # behind.
        self._waiting: list[tuple[int, asyncio.Future[None], str]] = []
        self._states: dict[str, RunState | None] = {}
        self.loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        # What was set in motion and has not come to its last entry.
        self._doing: tuple[Unit, asyncio.Future[None]] | None = None
        self._last_use = _last_uses(script)
        db.on_commit.connect(self._committed)

    @property
    def run_id(self) -> str:
        """The run that is being worked on."""
        return next(
            (run_id for run_id, state in self._states.items() if state == "in_progress"), ""
        )

    @property
    def now_ms(self) -> int:
        entry = self.script.at(min(self.head + 1, self.script.last))
        return entry.time_ms if entry else 0

    async def reach(self, seq: int) -> None:
        """Wait until the replayed tape has so many entries."""
        while self.script.clock_changed(seq - 1) is not None:
            # That is told together with the entry behind it.
            seq -= 1
        if self.head >= seq:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((seq, future, self.run_id))
        self._news.set()
        await future

    async def never(self) -> Any:
        """Wait forever: what was going on here was stopped, so it will be."""
        await self.reach(_NEVER)

    async def interrupted(self, run_id: str, seq: int) -> Any:
        """A person's input ended what is going on here, once the tape had come this far."""
        await self.reach(seq)
        assert self.runtime is not None
        self.runtime.interrupt(run_id)
        await self.never()

    def hand_over(self, step: Callable[[Tx], Any], future: "asyncio.Future[Any]") -> None:
        starts = (
            self._doing is not None
            and self._doing[0].how == "restart"
            and asyncio.current_task() is self._doing[1]
        )
        (self._starting if starts else self._steps).append((step, future))
        self._news.set()

    def _committed(self, appended: list[Appended]) -> None:
        for entry in appended:
            if entry.tape != self._session_id:
                continue
            self.head = entry.seq
            self._move(entry.run_id, entry.kind)
            if self.difference is None:
                self.difference = self._compared(entry)
        if self.runtime is not None:
            self.runtime.on_commit(appended)
        reached = [future for seq, future, _ in self._waiting if seq <= self.head]
        self._waiting = [each for each in self._waiting if each[0] > self.head]
        for future in reached:
            if not future.done():
                future.set_result(None)
        self._news.set()

    def _move(self, run_id: str, kind: str) -> None:
        """Keep the states of runs that have not ended. What is said of a run later does not move
        it.
        """
        if kind == "run.accepted" or run_id in self._states:
            state = run_state.advance(self._states.get(run_id), kind)
            if state in run_state.TERMINAL:
                del self._states[run_id]
            else:
                self._states[run_id] = state

    def _compared(self, entry: Appended) -> Difference | None:
        recorded = self.script.at(entry.seq)
        if recorded is None:
            return Difference(
                seq=entry.seq,
                replayed=Side(entry.kind),
                hint="the recorded tape ends before this; the replay goes on",
            )
        if (recorded.run_id, recorded.kind) != (entry.run_id, entry.kind):
            found = differ(entry.seq, recorded.event, entry.event)
            return found or Difference(
                seq=entry.seq,
                where="run_id",
                recorded=Side(recorded.kind, recorded.run_id),
                replayed=Side(entry.kind, entry.run_id),
            )
        return differ(entry.seq, recorded.event, entry.event)

    async def lead(self) -> None:
        """Lead until the recorded tape ends, something differs, or nothing moves any more."""
        self._start()
        while self.head < self.script.last and self.difference is None:
            if self._is_over():
                self._doing = None
            unit = self.script.unit(self.head + 1) if self._doing is None else None
            restarting = self._doing is not None and self._doing[0].how == "restart"
            if restarting and self._starting:
                await self._pass_on(*self._starting.popleft())
            elif unit is not None and self._is_due(unit):
                await self._do(unit)
            elif self._steps and not restarting and (unit is None or unit.how == "time"):
                if (
                    not await self._pass_on(*self._steps.popleft(), ending=unit)
                    and unit is not None
                ):
                    await self._do(unit)
            elif not await self._something_new():
                self._stands_still()

    def _is_over(self) -> bool:
        """Return whether what was set in motion has come to its end."""
        if self._doing is None:
            return False
        unit, done = self._doing
        if done.done() or self.head < unit.last:
            return done.done()
        # A daemon that starts takes nothing from outside before it has looked at all that was
        # unfinished, unless it dies at that.
        following = self.script.unit(self.head + 1)
        return unit.how != "restart" or (following is not None and following.how == "restart")

    def _is_due(self, unit: Unit) -> bool:
        """Return whether the loop has come as far as it can: it wants to write, it waits for the
        world, or nobody works.
        """
        self._waiting = [each for each in self._waiting if not each[1].done()]
        waits = any(run_id == self.run_id for *_, run_id in self._waiting)
        if unit.how == "time":
            return not self._steps and waits
        return bool(self._steps or self._starting) or waits or not self.run_id

    async def _something_new(self) -> bool:
        try:
            async with asyncio.timeout(STILL_S):
                await self._news.wait()
        except TimeoutError:
            return False
        finally:
            self._news.clear()
        return True

    def _stands_still(self) -> None:
        entry = self.script.at(self.head + 1)
        assert entry is not None
        self.difference = Difference(
            seq=entry.seq,
            recorded=Side(entry.kind),
            hint="the replay does not come to this entry: it stands still before it",
        )

    async def _pass_on(
        self, step: Callable[[Tx], Any], future: "asyncio.Future[Any]", ending: Unit | None = None
    ) -> bool:
        """Let a step of the loop be written, at the time at which it was. False: a run was ended
        before it came to this.
        """
        if future.cancelled():
            return True  # Whoever wanted this was stopped first.
        if self._doing is not None:
            ending = self._doing[0]
        ends = ending is not None and ending.how in ("time", "cancel")

        def timed(tx: Tx) -> Any:
            tx.now_ms = self.now_ms
            result = step(tx)
            if ends and any(
                entry.tape == self._session_id and self._compared(entry) is not None
                for entry in tx.appended
            ):
                raise _EndedBefore
            for entry in tx.appended:
                used = based_on(entry.event)
                if used and self._last_use.get(used, 0) <= entry.seq:
                    approvals.forget_grant(tx, used)
            return result

        try:
            result = await self._db.write(timed)
        except _EndedBefore:
            # Nothing of it stays, and nobody hears of it: whoever wanted it is being stopped.
            return False
        except Exception as error:  # noqa: BLE001  it is the loop's to deal with, as it was then
            if not future.done():
                future.set_exception(error)
                future.exception()
        else:
            if not future.done():
                future.set_result(result)
        return True

    def _start(self) -> Runtime:
        assert self.renew is not None
        self._door = ReplayDatabase(self, self._db)
        self.runtime = self.renew(self._door)
        return self.runtime

    async def _do(self, unit: Unit) -> None:
        match unit.how:
            case "feed":
                await self._db.write(lambda tx: self._feed(tx, unit.entry))
            case "answer":
                await self._db.write(lambda tx: self._answer(tx, unit.entry))
            case "cancel":
                await self._cancel(unit)
            case "restart":
                await self._restart(unit)
            case "time":
                # The loop's own clock, by all of the run's active time.
                loop = asyncio.get_running_loop()
                assert isinstance(loop, Loop)
                accepted = self.script.before(self.head, unit.entry.run_id, "run.accepted")
                assert accepted is not None
                assert isinstance(accepted.event, RunAccepted)
                loop.ahead_s += accepted.event.budgets.active_ms / 1000 + SPARE_S + 1
                self._doing = (unit, loop.create_future())

    def _feed(self, tx: Tx, entry: RecordedEntry) -> None:
        feed(tx, self._session_id, entry)

    def _answer(self, tx: Tx, entry: RecordedEntry) -> None:
        resolved = entry.event
        assert isinstance(resolved, ApprovalResolved)
        tx.now_ms = entry.time_ms
        if approvals.find(tx, resolved.approval_id) is None:
            feed(tx, self._session_id, entry)
            return
        approval_steps.resolve(tx, resolved.approval_id, resolved, entry.principal)
        if self._last_use.get(resolved.approval_id, 0) <= entry.seq:
            approvals.forget_grant(tx, resolved.approval_id)

    async def _cancel(self, unit: Unit) -> None:
        ending = unit.entry.event
        assert isinstance(ending, RunCancelled)
        assert self.runtime is not None
        begun = self._begun(unit.entry.run_id)
        if begun and not any(
            entry.kind == "tool.finished" for entry in self.script.entries[self.head : unit.last]
        ):
            # Its task took too long to end: the cancel was recorded without it.
            run_id = unit.entry.run_id

            def step(tx: Tx) -> None:
                tx.now_ms = unit.entry.time_ms
                end(tx, run_id, [], ending)

            await self._db.write(step)
            return
        self._doing = (
            unit,
            asyncio.create_task(self.runtime.cancel(unit.entry.run_id, ending.reason)),
        )

    def _begun(self, run_id: str) -> set[str]:
        """The calls of a run that have begun and have no result."""
        found: set[str] = set()
        for entry in self.script.entries[: self.head]:
            if entry.run_id == run_id:
                if isinstance(entry.event, ToolStarted):
                    found.add(entry.event.call_id)
                elif entry.kind in ("tool.finished", "tool.undone"):
                    found.discard(getattr(entry.event, "call_id", ""))
        return found

    async def _restart(self, unit: Unit) -> None:
        """Restart as after a crash: everything that was going on is gone, and what is on the tape
        is found again.
        """
        assert self._door is not None
        self._door.dead = True
        self.runtime = None
        self._steps.clear()
        self._starting.clear()
        self._waiting.clear()
        others = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=1)
        self.on_restart.send()
        recovering = asyncio.create_task(self._start().recover())
        recovering.add_done_callback(lambda done: self._news.set())
        self._doing = (unit, recovering)


def _last_uses(script: RecordedScript) -> dict[str, int]:
    """Return where each wider yes was last the reason for a decision: who took it back later did
    not do so on this tape.
    """
    return {used: entry.seq for entry in script.entries if (used := based_on(entry.event))}
