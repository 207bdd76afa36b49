"""The model of a replay: says what the recorded one said, fails as it failed, and is routed as it
was.

Which provider was healthy is not on a tape, so the route is taken from it; what is assembled for
that route is not.
"""

import math
from collections.abc import Iterator, Mapping

import msgspec

from palyra.agent.active_run import ActiveRun
from palyra.agent.prompt.run_context import RunContext
from palyra.agent.settings import Settings
from palyra.agent.turn_cost import NO_BILL, Bill, BudgetQuestion, CallUsage, Spending
from palyra.core.errors import PalyraError
from palyra.core.events import (
    ApprovalRequested,
    Call,
    InputAssembled,
    ModelFailed,
    ModelReplied,
    RoutePlanned,
    RunFailed,
    RunWaiting,
)
from palyra.core.messages import Emit, ModelCall, ModelFailure, ModelReply, ModelRequest
from palyra.core.ports import ModelProvider
from palyra.features.time_travel.replay.driver import Director
from palyra.features.time_travel.replay.script import RecordedEntry
from palyra.models.reliability import Breaker, NextProvider, RetryAfter, after_failure
from palyra.models.routing import WINDOW_SHARE, CallNeeds, ModelRoute, Models, Target
from palyra.store.database import Database
from palyra.system.clock import Clock

_TOO_LONG_MS = 1 << 40
_OUTCOMES = ("model.replied", "model.failed")


class RecordedClock(Clock):
    """Recorded times and ids. Waiting costs no time, unless a person's input ended it."""

    def __init__(self, director: Director) -> None:
        super().__init__()
        self._director = director
        self._given: set[str] = set()
        self.rand = 0.0
        director.on_restart.connect(self._given.clear)

    def now_ms(self) -> int:
        return self._director.now_ms

    def new_id(self) -> str:
        for entry in self._director.script.after(self._director.head):
            for each in _ids(entry):
                if each not in self._given:
                    self._given.add(each)
                    return each
        return super().new_id()  # The recorded tape has no more: this shows as a difference.

    def chance(self) -> float:
        return self.rand

    async def sleep(self, ms: int) -> None:
        director = self._director
        run_id = director.run_id
        following = director.script.expect(director.head, run_id, "input.assembled", *_OUTCOMES)
        if following is None:
            await director.never()
        elif isinstance(following.event, InputAssembled):
            await director.interrupted(run_id, following.event.upto_seq)


def _ids(entry: RecordedEntry) -> Iterator[str]:
    match entry.event:
        case ModelReplied(calls=calls):
            yield from (call.id for call in calls)
        case event if entry.kind == "approval.requested":
            yield str(getattr(event, "approval_id", ""))


class RecordedModel:
    """A provider that has heard it all before."""

    name = "recorded"

    def __init__(self, director: Director, clock: RecordedClock) -> None:
        self._director = director
        self._clock = clock

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        director = self._director
        script, head, run_id = director.script, director.head, director.run_id
        outcome = script.expect(head, run_id, *_OUTCOMES)
        if outcome is None:
            return ModelReply(text=str(await director.never()))
        due = script.untold(head, outcome)
        match outcome.event:
            case ModelReplied() as reply:
                if script.interrupted(head, outcome):
                    emit("text", reply.text)
                    await director.interrupted(run_id, due)
                await director.reach(due)
                return _reply(reply)
            case ModelFailed(failure="interrupted"):
                await director.never()
            case ModelFailed() as failed:
                if failed.reasoning:
                    emit("reasoning", failed.reasoning)
                if failed.text:
                    emit("text", failed.text)
                await director.reach(due)
                following = script.expect(
                    outcome.seq, run_id, "run.waiting", "route.planned", *_OUTCOMES
                )
                waits = following is not None and following.kind == "run.waiting"
                raise self._failure(failed, switched=self._switches(outcome), waits=waits)
        raise AssertionError(f"a model call does not end in {outcome.kind}")

    def _switches(self, outcome: RecordedEntry) -> bool:
        """Return whether the next provider was asked after this failure: then a new route was
        told.
        """
        following = self._director.script.expect(
            outcome.seq, outcome.run_id, "route.planned", *_OUTCOMES
        )
        return (
            following is not None
            and isinstance(following.event, RoutePlanned)
            and ": " in following.event.reason
        )

    def _failure(self, failed: ModelFailed, *, switched: bool, waits: bool) -> ModelFailure:
        """A failure after which the same is decided: what the provider said about waiting, and
        chance, are found from that.
        """
        plain = ModelFailure(failed.failure, failed.message)
        will_retry = failed.will_retry and not waits
        self._clock.rand = 0.0
        most = after_failure(
            plain, attempt=failed.attempt, text_shown=False, has_fallback=switched, rand=1 - 1e-9
        )
        if not will_retry or switched:
            if isinstance(most, RetryAfter) or (switched and not isinstance(most, NextProvider)):
                return ModelFailure(failed.failure, failed.message, retry_after_ms=_TOO_LONG_MS)
            return plain
        if isinstance(most, RetryAfter) and failed.wait_ms <= most.ms:
            self._clock.rand = (failed.wait_ms + 0.5) / (most.ms + 1)
            return plain
        return ModelFailure(failed.failure, failed.message, retry_after_ms=failed.wait_ms)


def _reply(reply: ModelReplied) -> ModelReply:
    return ModelReply(
        text=reply.text,
        reasoning=reply.reasoning,
        calls=tuple(map(_called, reply.calls)),
        stop=reply.stop,
        usage=reply.usage,
        model=reply.model,
        native=reply.native,
    )


def _called(call: Call) -> ModelCall:
    """A call as it was read then: how the model had written it is not on the tape."""
    return ModelCall(
        call.native_id,
        call.tool,
        msgspec.json.encode(call.arguments).decode(),
        repaired=call.repaired,
        malformed=call.malformed,
    )


class RecordedWaits:
    """Double that waits for a provider where the recorded run did."""

    def __init__(self, director: Director) -> None:
        self._director = director

    def first_free(self, run: ActiveRun, route: ModelRoute) -> int | None:
        """A run that asked nobody waits with its next word."""
        director = self._director
        following = director.script.expect(
            director.head, run.run_id, "run.waiting", "input.assembled", *_OUTCOMES
        )
        waits = following is not None and isinstance(following.event, RunWaiting)
        return None if waits else 0

    async def hold(self, run: ActiveRun, target: Target) -> None:
        waiting = self._next(run)
        assert waiting is not None
        await run.append(waiting)

    async def plan(
        self, run: ActiveRun, failures: Mapping[Target, ModelFailure]
    ) -> RunWaiting | None:
        return self._next(run)

    async def begin(self, run: ActiveRun, failed: ModelFailed | None, waiting: RunWaiting) -> None:
        if failed is not None:
            # The length of a wait follows from the clock, not from the tape.
            director = self._director
            recorded = director.script.expect(director.head, run.run_id, "model.failed")
            if recorded is not None and isinstance(recorded.event, ModelFailed):
                failed = msgspec.structs.replace(failed, wait_ms=recorded.event.wait_ms)
        await run.append(*([failed] if failed else []), waiting)

    def listening(self, run: ActiveRun, emit: Emit) -> Emit:
        return emit

    def _next(self, run: ActiveRun) -> RunWaiting | None:
        director = self._director
        following = director.script.expect(director.head, run.run_id, "run.waiting", "run.failed")
        event = following.event if following is not None else None
        return event if isinstance(event, RunWaiting) else None


class RecordedModels(Models):
    """Routes as on the tape. A model's window is known from the budget it gave."""

    def __init__(self, director: Director, model: RecordedModel) -> None:
        super().__init__({}, ())
        self._director = director
        self._model = model

    def provider(self, target: Target) -> ModelProvider:
        return self._model

    def breaker(self, target: Target) -> Breaker:
        return Breaker(threshold=1 << 30)

    def route(self, need: CallNeeds) -> ModelRoute:
        script, head, run_id = self._director.script, self._director.head, self._director.run_id
        failed = script.failure(head, run_id)
        if failed is not None:
            raise failure(failed)
        following = script.expect(head, run_id, "route.planned", *_OUTCOMES)
        match following.event if following else None:
            case RoutePlanned() as planned:
                names = (f"{planned.provider}/{planned.model}", *planned.fallbacks)
                return ModelRoute(
                    targets=tuple(self._targets(names)), reason=planned.reason, told=True
                )
            case ModelReplied(provider=provider) | ModelFailed(provider=provider):
                return ModelRoute(
                    targets=tuple(self._targets((self._asked(provider), *self._elsewhere()))),
                    reason="",
                    told=False,
                )
        # The run was stopped before anybody answered. A plan that did not change is not told again.
        for names in self._plans_before():
            return ModelRoute(targets=tuple(self._targets(names)), reason="", told=False)
        return ModelRoute(targets=(Target("recorded", "none", 128_000),), reason="")

    def _plans_before(self) -> Iterator[tuple[str, ...]]:
        """Yield who was to be asked in this run so far, by its plans, the newest first."""
        script, run_id = self._director.script, self._director.run_id
        for number in range(self._director.head - 1, -1, -1):
            entry = script.entries[number]
            if entry.run_id == run_id and isinstance(entry.event, RoutePlanned):
                yield (f"{entry.event.provider}/{entry.event.model}", *entry.event.fallbacks)

    def _asked(self, provider: str) -> str:
        """The provider's model: a reply may name it otherwise than it was asked for."""
        names = (name for plan in self._plans_before() for name in plan)
        return next((name for name in names if name.startswith(provider + "/")), f"{provider}/")

    def _elsewhere(self) -> Iterator[str]:
        """Yield who was asked when the first failed, and who could have been."""
        for entry in self._director.script.after(self._director.head, self._director.run_id):
            if isinstance(entry.event, RoutePlanned):
                yield from (f"{entry.event.provider}/{entry.event.model}", *entry.event.fallbacks)
                return
            if isinstance(entry.event, ModelReplied):
                return

    def _targets(self, names: tuple[str, ...]) -> Iterator[Target]:
        following = self._director.script.expect(
            self._director.head, self._director.run_id, "input.assembled"
        )
        budget, sees = 96_000, True
        if following is not None and isinstance(following.event, InputAssembled):
            budget = following.event.budget
            sees = any(part.source == "images" for part in following.event.parts)
        for name in names:
            provider, _, model = name.partition("/")
            yield Target(provider, model, math.ceil(budget / WINDOW_SHARE), sees)


class RecordedSpending(Spending):
    """Spending that costs nothing, and asks for more where the recorded run asked."""

    records = False

    def __init__(
        self, director: Director, db: Database, models: Models, clock: Clock, settings: Settings
    ) -> None:
        self._db = db
        self._models = models
        self._clock = clock
        self._settings = settings
        self._director = director

    async def route(self, run: ActiveRun, nearby: RunContext, *, images: bool) -> ModelRoute:
        director = self._director
        kinds = ("approval.requested", "route.planned", "input.assembled", *_OUTCOMES)
        following = director.script.expect(director.head, run.run_id, *kinds)
        if (
            following is not None
            and isinstance(following.event, ApprovalRequested)
            and following.event.budget is not None
        ):
            raise BudgetQuestion(following.event.budget, following.event.why)
        return self._models.route(CallNeeds(now_ms=0))

    async def admit(
        self, run: ActiveRun, target: Target, request: ModelRequest, assembled: InputAssembled
    ) -> ModelRequest:
        return request

    def done(self, run: ActiveRun) -> None:
        pass

    def planned(
        self, route: ModelRoute, index: int, why: str, assembled: InputAssembled
    ) -> RoutePlanned:
        return route.planned(index, why)

    def bill(self, target: Target, reply: ModelReply, counted: int) -> Bill:
        return Bill(reply.usage, 0, "")

    def cut_short(self, target: Target, heard: CallUsage, counted: int) -> Bill:
        return NO_BILL

    def lost(self, target: Target, counted: int) -> Bill | None:
        """A tape from before such calls were counted says nothing of them: behind the start of the
        daemon, it goes on.
        """
        following = self._director.script.at(self._director.head + 2)
        return NO_BILL if following is not None and following.kind == "model.failed" else None


def failure(failed: RunFailed) -> Exception:
    """Return what ended a run, as far as the tape says it: an error of ours by its code, or a
    defect by its name.
    """
    message, _, _ = failed.message.rpartition(" (")
    if failed.reason == "internal":
        name = failed.message.partition("(")[2].partition(")")[0]
        made: Exception = type(name or "Defect", (Exception,), {})("recorded")
        return made
    ours: Exception = type("Recorded", (PalyraError,), {"code": failed.reason})(message)
    return ours
