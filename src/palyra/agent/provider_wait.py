"""Runs that outlive their provider: who waits, until when, and who asks first when it may be back.

A run that nobody can answer waits as a run that needs an approval does: its state is on the tape,
its task has ended, and it costs no memory. One timer serves all of them. What is kept here is one
`ModelQueue` for each model that somebody waits for; the runs themselves stay in the store.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from palyra.agent import wait_steps
from palyra.agent.active_run import ActiveRun
from palyra.agent.broadcast import Broadcast
from palyra.agent.model_queue import MOST_AT_ONCE, ModelQueue
from palyra.agent.settings import Settings
from palyra.agent.wait_port import OwnerNotices
from palyra.core import events, wait_words
from palyra.core.errors import PalyraError, Unavailable
from palyra.core.events import (
    ModelFailed,
    ModelReplied,
    RunWaiting,
)
from palyra.core.messages import Channel, Emit, ModelFailure
from palyra.models.reliability import NEEDS_PERSON
from palyra.models.routing import ModelRoute, Models, Target
from palyra.store import run_waits, runs
from palyra.store.database import Appended, Database, Tx
from palyra.store.runs import RunRow
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.waits")

_RETRY_MS = 5_000
# So often it is looked whether the clock was set; only while somebody waits.
_LOOK_MS = 60_000
_LEAST_MS = 10
_JUMP_MS = 2_000
_AT_ONCE = 200
# What ends a try without a word of the model.
_OTHER_ENDS = frozenset(
    {"run.completed", "run.failed", "run.cancelled", "approval.requested", "agent.spawned"}
)


class ProviderUnavailable(PalyraError):
    """Error of a run that no provider can answer now and that is not to wait."""

    code = wait_steps.UNAVAILABLE
    retryable = True


class ProviderWaits:
    def __init__(
        self,
        db: Database,
        hub: Broadcast,
        models: Models,
        clock: Clock,
        settings: Settings,
        redactor: Redactor,
        notices: OwnerNotices,
    ) -> None:
        self._db = db
        self._redactor = redactor
        self._hub = hub
        self._models = models
        self._clock = clock
        self._settings = settings
        self._notices = notices
        self._queues: dict[str, ModelQueue] = {}
        # The runs that were let through, with whose queue they come from.
        self._passes: dict[str, str] = {}
        self._deadlines: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._timer: asyncio.Task[None] | None = None
        self._closed = False
        self._drift_ms = clock.now_ms() - clock.elapsed_ms()

    async def start(self) -> None:
        """Go on waiting where the last process stopped; before any run goes on."""
        for plan in await self._db.read(run_waits.plans):
            self._queues[plan.target] = ModelQueue(
                plan.target, plan.cause, plan.message, plan.since_ms, plan.next_try_ms, plan.attempt
            )

    def go_on(self) -> None:
        """Let through who may ask, once the runs that worked are at work again."""
        self._ring()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def first_free(self, run: ActiveRun, route: ModelRoute) -> int | None:
        if run.run_id in self._passes:
            return 0
        now_ms = self._clock.now_ms()
        for index, target in enumerate(route.targets):
            if not self._holds(run, target) and self._models.breaker(target).allows(now_ms):
                return index
        return None

    def _holds(self, run: ActiveRun, target: Target) -> bool:
        queue = self._queues.get(target.name) if self._queues else None
        if queue is None:
            return False
        # Once the model answers again, who is in the middle of its work goes on; who comes now
        # comes behind those who wait.
        return queue.down or not run.progress.turns

    async def hold(self, run: ActiveRun, target: Target) -> None:
        now_ms = self._clock.now_ms()
        queue = self._queues.get(target.name)
        if queue is None:
            # Its breaker is open. A probe of ours asks sooner than the breaker would let anybody.
            message = f"{target.provider} is paused after repeated failures"
            queue = ModelQueue(target.name, "overloaded", message, now_ms, now_ms)
            self._failed(queue, run, ModelFailure("overloaded", message))
        deadline_ms = await self._deadline(run)
        if now_ms >= deadline_ms:
            left = wait_words.span(queue.next_try_ms - now_ms)
            raise ProviderUnavailable(f"{queue.message}; next try in {left}")
        queue = self._queues.setdefault(target.name, queue)
        await self.begin(run, None, self._waiting(run, target, queue, deadline_ms))

    async def plan(
        self, run: ActiveRun, failures: Mapping[Target, ModelFailure]
    ) -> RunWaiting | None:
        found = wait_steps.hope(failures)
        if found is None:
            return None
        target, failure = found
        deadline_ms, now_ms = await self._deadline(run), self._clock.now_ms()
        waits = now_ms < deadline_ms
        queue = self._queues.get(self._passes.pop(run.run_id, target.name))
        if queue is not None and queue.target != target.name:
            # It was let through for another model's sake, and could not ask that one.
            queue.left(run.run_id)
            queue = self._queues.get(target.name)
        if queue is None:
            queue = ModelQueue(target.name, failure.failure, "", now_ms, now_ms)
            if waits:
                self._queues[target.name] = queue
        self._failed(queue, run, failure)
        self._wake.set()
        return self._waiting(run, target, queue, deadline_ms) if waits else None

    def _failed(self, queue: ModelQueue, run: ActiveRun, failure: ModelFailure) -> None:
        queue.failed(
            run.run_id,
            failure.failure,
            self._redactor.redact(failure.message),
            now_ms=self._clock.now_ms(),
            rand=self._clock.chance(),
            asked_ms=failure.retry_after_ms,
            longest_ms=self._settings.longest_pause_ms,
        )

    def _waiting(
        self, run: ActiveRun, target: Target, queue: ModelQueue, deadline_ms: int
    ) -> RunWaiting:
        queue.coming.add(run.run_id)
        waited = run.progress.waited
        return RunWaiting(
            cause=queue.cause,
            message=queue.message,
            provider=target.provider,
            model=target.model,
            next_try_ms=queue.next_try_ms,
            deadline_ms=deadline_ms,
            since_ms=waited.since_ms if waited else self._clock.now_ms(),
            attempt=waited.attempt + 1 if waited else 1,
        )

    async def _deadline(self, run: ActiveRun) -> int:
        """Return until when a run waits, from its first wait since the model last answered it."""
        progress = run.progress
        if progress.waited is not None:
            return progress.waited.deadline_ms
        origin = progress.accepted.origin
        if origin == "child":
            origin = await self._db.read(partial(wait_steps.root_origin, run_id=run.run_id))
        return self._clock.now_ms() + self._settings.patience.of(origin)

    async def begin(self, run: ActiveRun, failed: ModelFailed | None, waiting: RunWaiting) -> None:
        queue = self._queues[f"{waiting.provider}/{waiting.model}"]
        if failed is not None:
            left_ms = max(0, waiting.next_try_ms - self._clock.now_ms())
            failed = msgspec.structs.replace(failed, wait_ms=left_ms)

        tell = self._tell_owner(queue, waiting) if waiting.cause in NEEDS_PERSON else None

        def beside(tx: Tx) -> None:
            run_waits.plan(tx, queue.plan)
            if tell is not None:
                tell(tx)

        try:
            await run.append(*([failed] if failed else []), waiting, beside=beside)
        finally:
            queue.coming.discard(run.run_id)
        known = self._deadlines.get(queue.target, waiting.deadline_ms)
        self._deadlines[queue.target] = min(known, waiting.deadline_ms)
        self._ring()
        if failed is not None:
            await self._tell_others(queue, run.run_id)

    def _tell_owner(self, queue: ModelQueue, waiting: RunWaiting) -> Callable[[Tx], bool]:
        """Tell the owner, once for a provider and its trouble, however many runs and restarts."""
        of_provider = [
            each.since_ms
            for each in self._queues.values()
            if each.target.startswith(f"{waiting.provider}/") and each.cause == waiting.cause
        ]
        since_ms = min(of_provider, default=queue.since_ms)
        key = f"provider:{waiting.provider}:{waiting.cause}:{since_ms}"
        return self._notices.telling("provider", key, wait_steps.for_owner(waiting), "#/settings")

    async def _tell_others(self, queue: ModelQueue, besides: str = "") -> None:
        """Tell watchers of a run that waits its next try. It is on no tape: it only changes."""
        if not self._hub.watchers:
            return
        for waiting in await self._db.read(lambda tx: run_waits.first(tx, queue.target, _AT_ONCE)):
            if waiting.run_id != besides and self._hub.watched(waiting.session_id):
                planned = events.encode(queue.planned(waiting.run_id))
                self._hub.publish_live(waiting.session_id, planned)

    def listening(self, run: ActiveRun, emit: Emit) -> Emit:
        if run.run_id not in self._passes:
            return emit

        def heard(channel: Channel, text: str) -> None:
            self._answered(run.run_id)
            emit(channel, text)

        return heard

    def _answered(self, run_id: str) -> None:
        """The model has answered a run that was let through, or has begun to."""
        queue = self._queues.get(self._passes.pop(run_id, ""))
        if queue is not None:
            queue.answered(run_id)
            self._ring()

    def on_commit(self, appended: list[Appended]) -> None:
        """Look for answers in everything that is committed; while no run was let through, there is
        nothing to look at.
        """
        if not self._passes:
            return
        for entry in appended:
            if entry.run_id not in self._passes:
                continue
            match entry.event:
                case ModelReplied(stop=stop) if stop != "interrupted":
                    self._answered(entry.run_id)
                case ModelReplied():
                    self._left(entry.run_id)
                case _ if entry.kind in _OTHER_ENDS:
                    self._left(entry.run_id)

    def _left(self, run_id: str) -> None:
        """A run that was let through does not ask any more, and nobody knows of the model."""
        queue = self._queues.get(self._passes.pop(run_id, ""))
        if queue is not None:
            queue.left(run_id)
            self._ring()

    async def retry(self, principal: str, run_id: str, model: str = "") -> RunRow:
        """Ask again now for a run that waits, with another model if one is named."""
        chosen = self._models.find(model).name if model else ""
        run = await self._db.read(lambda tx: runs.get(tx, run_id, principal))
        wait_steps.check_waits(run)
        assert run.wait is not None
        # Before it is set to work: then it may ask. One that asks another model says nothing of
        # the one that it waited for.
        queue = self._queues.get(f"{run.wait.provider}/{run.wait.model}")
        self._passes[run_id] = chosen or f"{run.wait.provider}/{run.wait.model}"
        if queue is not None and not chosen:
            queue.let_through(run_id, self._clock.now_ms())
        try:
            return await self._db.write(
                partial(wait_steps.try_again, run_id=run_id, principal=principal, model=chosen)
            )
        except PalyraError:
            self._left(run_id)
            raise

    def try_now(self) -> None:
        """Settings of providers have changed: whoever is waited for is asked again soon."""
        for queue in self._queues.values():
            queue.next_try_ms = min(queue.next_try_ms, self._clock.now_ms())
        self._ring()

    async def clock_was_set(self, by_ms: int) -> None:
        """Look at the clock again: who waits, waits as long as before."""
        self._ring()

    def _ring(self) -> None:
        self._wake.set()
        if self._queues and not self._closed and (self._timer is None or self._timer.done()):
            self._timer = asyncio.create_task(self._keep_time())

    async def _keep_time(self) -> None:
        """Let through who may ask, end who has waited long enough, sleep, while somebody waits."""
        while self._queues:
            self._wake.clear()
            try:
                await self._notice_jump()
                for queue in list(self._queues.values()):
                    await self._serve(queue)
                sleep_ms = self._until_next()
            except Unavailable as error:
                log.warning("runs that wait for a provider wait on: %s", error.message)
                sleep_ms = _RETRY_MS
            except Exception:
                # Without this loop nobody who waits would ever be answered.
                log.exception("runs that wait for a provider could not be looked at")
                sleep_ms = _RETRY_MS
            await self._sleep(sleep_ms)

    async def _sleep(self, ms: int) -> None:
        if self._wake.is_set() or not self._queues:
            return
        sleeping = asyncio.ensure_future(self._clock.sleep(ms))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()

    def _until_next(self) -> int:
        now_ms = self._clock.now_ms()
        soonest = now_ms + _LOOK_MS
        for queue in self._queues.values():
            if queue.undecided(now_ms) or (queue.asking and queue.target not in self._deadlines):
                # Somebody asks for all, or nobody waits: whatever changes that rings.
                continue
            soonest = min(soonest, self._deadlines.get(queue.target, soonest))
            if queue.down:
                soonest = min(soonest, queue.next_try_ms)
        return max(_LEAST_MS, soonest - now_ms)

    async def _serve(self, queue: ModelQueue) -> None:
        free = queue.free(self._clock.now_ms())
        if free:
            await self._release(queue, free)
        if queue.undecided(self._clock.now_ms()) or queue.coming:
            return
        # Nobody gives up while somebody asks: it may be the answer that they wait for.
        await self._give_up(queue)
        # Also when nobody waits any more, a model is left alone until its time.
        rested = not queue.down or self._clock.now_ms() >= queue.next_try_ms
        idle = queue.target not in self._deadlines and not queue.asking and not queue.coming
        if idle and rested:
            del self._queues[queue.target]
            await self._db.write(partial(run_waits.forget, target=queue.target))

    async def _release(self, queue: ModelQueue, most: int) -> None:
        """Let the next runs through, in the order in which they were accepted."""
        found = await self._db.read(
            lambda tx: run_waits.first(tx, queue.target, min(most, MOST_AT_ONCE))
        )
        for each in found:
            queue.let_through(each.run_id, self._clock.now_ms())
            self._passes[each.run_id] = queue.target
        gone = [each.run_id for each in found]
        try:
            if found:
                gone = await self._db.write(partial(wait_steps.let_through, found=found))
        finally:
            # Those that are not set to work: somebody has ended them, or the store refused.
            for run_id in gone:
                queue.left(run_id)
                self._passes.pop(run_id, None)

    async def _give_up(self, queue: ModelQueue) -> None:
        """End who has waited until their deadline; know when the next one does."""
        target, now_ms = queue.target, self._clock.now_ms()
        overdue = await self._db.read(lambda tx: run_waits.overdue(tx, target, now_ms, _AT_ONCE))
        for waiting, wait in overdue:
            await self._db.write(partial(wait_steps.give_up, waiting=waiting, wait=wait))
        deadline_ms = await self._db.read(lambda tx: run_waits.first_deadline(tx, target))
        if deadline_ms is None:
            self._deadlines.pop(target, None)
        else:
            self._deadlines[target] = deadline_ms

    async def _notice_jump(self) -> None:
        """The wall clock was set: everybody waits as long as they would have."""
        drift_ms = self._clock.now_ms() - self._clock.elapsed_ms()
        moved_ms = drift_ms - self._drift_ms
        if abs(moved_ms) <= _JUMP_MS:
            return
        for queue in self._queues.values():
            queue.next_try_ms += moved_ms
        plans = [queue.plan for queue in self._queues.values()]
        await self._db.write(lambda tx: wait_steps.plan_again(tx, plans, moved_ms))
        self._deadlines = {name: at + moved_ms for name, at in self._deadlines.items()}
        self._drift_ms = drift_ms
