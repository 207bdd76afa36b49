"""One model turn: assemble, plan the route, stream, and record the reply or the failure.

Deltas go straight from the provider to the watchers. What is stored is the finished reply,
redacted.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from palyra.agent import call_arguments
from palyra.agent.active_run import ActiveRun, CutOff, Interrupted
from palyra.agent.broadcast import Broadcast
from palyra.agent.images import ImageLoader
from palyra.agent.model_stream import Prepared, Stream
from palyra.agent.ports import Compactor, MemoryRecall, NotesForAgents
from palyra.agent.prompt import run_context
from palyra.agent.prompt.assembly import Assembler
from palyra.agent.prompt.run_context import RunContext
from palyra.agent.prompt.sources import StoredSources
from palyra.agent.turn_cost import Bill, BudgetQuestion, Spending
from palyra.agent.wait_port import WaitPort
from palyra.core.events import Call, ModelFailed, ModelReplied, RunFailed, TaskClass
from palyra.core.ids import CallId
from palyra.core.messages import (
    Emit,
    Image,
    ModelCall,
    ModelFailure,
    ModelReply,
    Native,
    StopReason,
)
from palyra.core.repetition import RepeatsItself
from palyra.core.trace_context import TracedTurn, turn_at_work
from palyra.models.reliability import (
    TRIES_PER_PROVIDER,
    NextProvider,
    NoProviderLeft,
    RetryAfter,
    after_failure,
)
from palyra.models.routing import ModelRoute, Models, Target
from palyra.store.database import Tx
from palyra.store.route_plans import UnderWay
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

_FALLBACK = "choose another model, or name one for such times in models.fallbacks"
_ADVICE = {
    "auth": "check the provider's key with `palyra doctor`",
    "permission": "the key may not use this model: choose another with --model",
    "quota": "the provider's account has no credit left",
    "context_too_long": "start a new session, or reset this one",
    "model_not_found": "choose another model with --model or /model",
    "tools_unsupported": "set the provider's tools to text",
    "not_a_model_server": "correct the address",
    "overloaded": _FALLBACK,
    "rate_limited": _FALLBACK,
    "timeout": _FALLBACK,
    "content_blocked": "the provider refused the content",
    "network": "check the connection and the provider's address",
    "bad_request": "the provider did not accept the request",
}


class ModelTurns:
    def __init__(
        self,
        hub: Broadcast,
        models: Models,
        assembler: Assembler,
        notes: NotesForAgents,
        recall: MemoryRecall,
        gallery: ImageLoader,
        compactor: Compactor,
        redactor: Redactor,
        clock: Clock,
        spending: Spending,
        waits: WaitPort,
    ) -> None:
        self.hub = hub
        self.models = models
        self._waits = waits
        self._spending = spending
        self._assembler = assembler
        self._notes = notes
        self._recall = recall
        self._gallery = gallery
        self._compactor = compactor
        self.redactor = redactor
        self.clock = clock

    async def take(self, run: ActiveRun, *, continuing: bool) -> None:
        """Ask until there is a reply or nothing is left to try; either way it is on the tape when
        this returns.
        """
        try:
            await self._take(run, continuing=continuing)
        except BudgetQuestion as question:
            await self._spending.ask(run, question)
        finally:
            if run.cut_off is None:
                # What a call that is broken off has used stays reserved until it is on the tape.
                self._spending.done(run)
            self.hub.stream_closed(run.session_id, run.run_id)

    async def _take(self, run: ActiveRun, *, continuing: bool) -> None:
        attempt = 0
        condensed = False
        failures: dict[Target, ModelFailure] = {}
        nearby = await self._look_around(run)
        images = await self._gallery.of(run.live.conversation)
        route = await self._spending.route(run, nearby, images=bool(images))
        free = self._waits.first_free(run, route)
        if free is None:
            await self._waits.hold(run, route.targets[0])
            return
        index = free
        await self._compactor.before_turn(run, route.targets[index])
        prepared = await self._prepare(run, route, index, images, nearby, continuing=continuing)
        turn = run.progress.turns + 1
        turn_at_work.set(TracedTurn(run.run_id, run.progress.accepted.trace, turn))
        try:
            while True:
                target = route.targets[index]
                stream = Stream(self.hub, self.clock, self.redactor, run, turn)
                attempt += 1
                try:
                    reply = await run.interruptible(
                        self._ask(target, prepared, self._waits.listening(run, stream.emit)),
                        breakable=True,
                    )
                    stream.finish()
                    stream.check()
                    bill = self._spending.bill(target, reply, prepared.tokens)
                    replied = await self._replied(reply, target, stream, turn, bill, route.task)
                except RepeatsItself as repeated:
                    stream.cut_back(repeated)
                    replied = await self._broken_off(
                        target, stream, turn, route.task, prepared.tokens, stop="repetition"
                    )
                except Interrupted:
                    replied = await self._broken_off(
                        target, stream, turn, route.task, prepared.tokens
                    )
                except asyncio.CancelledError:
                    if self._spending.records:
                        run.cut_off = await self._cut_off(
                            target, stream, turn, attempt, route.task, prepared
                        )
                    raise
                except ModelFailure as failure:
                    if failure.failure == "cut" and "".join(stream.text).strip():
                        # What was shown is kept, and continued.
                        replied = await self._broken_off(
                            target, stream, turn, route.task, prepared.tokens, stop="cut"
                        )
                        await prepared.answered(run, replied, self.clock.now_ms())
                        return
                    bill = self._spending.failed(target, stream, failure, prepared.tokens)
                    await prepared.tell(run)
                    if failure.failure == "context_too_long" and not condensed:
                        condensed = True
                        if await self._compactor.make_room(run, target):
                            await run.append(
                                await self._failure(
                                    failure, target, stream, turn, attempt, bill, will_retry=True
                                )
                            )
                            prepared = await self._prepare(
                                run, route, index, images, nearby, continuing=continuing
                            )
                            continue
                    failures[target] = failure
                    wait_ms = await self._failed(
                        run, route, index, attempt, turn, failures, stream, bill
                    )
                    if wait_ms is None:
                        return
                    why = ""
                    if wait_ms < 0:
                        index, attempt, why = index + 1, 0, f"{target.provider}: {failure.failure}"
                    elif not await self._pause(run, wait_ms):
                        continue
                    prepared = await self._prepare(
                        run, route, index, images, nearby, continuing=continuing, why=why
                    )
                    continue
                await prepared.answered(run, replied, self.clock.now_ms())
                return
        finally:
            prepared.not_now()

    async def _pause(self, run: ActiveRun, wait_ms: int) -> bool:
        """Wait before the next try. An interrupt ends the wait: then there is new input to ask
        about, and this is True.
        """
        try:
            await run.interruptible(self.clock.sleep(wait_ms))
        except Interrupted:
            return True
        return False

    async def _ask(self, target: Target, prepared: Prepared, emit: Emit) -> ModelReply:
        if prepared.too_small:
            raise ModelFailure("context_too_long", prepared.too_small)
        breaker = self.models.breaker(target)
        try:
            reply = await self.models.provider(target).stream(prepared.request, emit)
        except ModelFailure as failure:
            breaker.failed(failure.failure, self.clock.now_ms())
            raise
        breaker.succeeded()
        return reply

    async def _look_around(self, run: ActiveRun) -> RunContext:
        """The project's notes and what is remembered: looked up once, so that every turn of a run
        is shown the same.
        """
        if run.around is None:
            before = run_context.shown_before(run.live.conversation, run.run_id)
            earlier = await self._recall.again(run, before) if before else ()
            # What stands further up already is not said again.
            known = {each.memory_id for each in earlier}
            found = await self._recall.look(run)
            recalled = tuple(each for each in found.items if each.memory_id not in known)
            memory = run_context.render(recalled) if recalled else ""
            notes = await self._notes.of(run.workspace)
            run.around = RunContext(notes, recalled, memory, earlier, found.problem)
        return run.around

    async def _prepare(
        self,
        run: ActiveRun,
        route: ModelRoute,
        index: int,
        images: Mapping[str, Image],
        nearby: RunContext,
        *,
        continuing: bool,
        why: str = "",
    ) -> Prepared:
        """The request for a target. Who is being asked for what is told soon: people want to know,
        and if the daemon dies before the reply has come, the next one finds on the tape what was
        sent, and counts it.
        """
        target = route.targets[index]
        conversation, sizes = run.live.conversation, run.live.sizes
        await self._assembler.measure(conversation, run.progress, target, nearby, sizes)
        assembled = self._assembler.assemble(
            conversation,
            run.progress,
            target,
            run.workspace,
            continuing=continuing,
            images=images,
            around=nearby,
            sizes=sizes,
        )
        request = await self._spending.admit(run, target, assembled.request, assembled.event)
        beside = self._keep(run, assembled.surroundings)
        known = (
            bool(run.progress.turns) and run.progress.route == target.name
            if route.told is None
            else not route.told
        )
        planned = (
            ()
            if known and not why
            else (self._spending.planned(route, index, why, assembled.event),)
        )
        prepared = Prepared(
            request,
            (*planned, assembled.event),
            assembled.event.tokens,
            assembled.event.upto_seq,
            assembled.too_small,
            beside,
        )
        prepared.tell_soon(run)
        return prepared

    def _keep(self, run: ActiveRun, surroundings: StoredSources) -> Callable[[Tx], None] | None:
        """The step that stores what the prompt took from outside, if it is not that of the turn
        before.
        """
        if surroundings.artifact_id == run.surroundings:
            return None
        run.surroundings = surroundings.artifact_id
        return surroundings.keep

    async def _failed(
        self,
        run: ActiveRun,
        route: ModelRoute,
        index: int,
        attempt: int,
        turn: int,
        failures: Mapping[Target, ModelFailure],
        stream: Stream,
        bill: Bill,
    ) -> int | None:
        """Record a failure. Returns how long to wait before the next try, -1 for the next provider,
        None if the run is over or waits.
        """
        target = route.targets[index]
        failure = failures[target]
        more, rand = index + 1 < len(route.targets), self.clock.chance()
        decision = after_failure(
            failure,
            attempt=attempt,
            text_shown=bool(stream.text),
            has_fallback=more,
            rand=rand,
            tries=1 if run.progress.waited is not None else TRIES_PER_PROVIDER,
        )
        wait_ms = decision.ms if isinstance(decision, RetryAfter) else 0
        retry = not isinstance(decision, NoProviderLeft)
        failed = await self._failure(
            failure, target, stream, turn, attempt, bill, will_retry=retry, wait_ms=wait_ms
        )
        match decision:
            case RetryAfter():
                await run.append(failed)
                return wait_ms
            case NextProvider():
                await run.append(failed)
                return -1
            case NoProviderLeft():
                waiting = await self._waits.plan(run, failures)
                if waiting is not None:
                    failed = msgspec.structs.replace(failed, will_retry=True)
                    await self._waits.begin(run, failed, waiting)
                    return None
                shown = run.progress.partial
                if shown is not None and not failed.text:
                    # An earlier try of this turn had come further: what people saw of it stays with
                    # what ends the turn.
                    failed = msgspec.structs.replace(
                        failed, text=shown.text, reasoning=shown.reasoning
                    )
                await run.append(
                    failed,
                    RunFailed(reason=f"model_{failure.failure}", message=_with_advice(failed)),
                )
                return None

    async def _broken_off(
        self,
        target: Target,
        stream: Stream,
        turn: int,
        task: TaskClass,
        counted: int,
        stop: StopReason = "interrupted",
    ) -> ModelReplied:
        """Return what a reply that was interrupted, or that ended early, has said so far, with its
        cost.
        """
        stream.finish()
        text, reasoning = "".join(stream.text), "".join(stream.reasoning)
        reply = ModelReply(text=text, reasoning=reasoning, stop=stop, model=target.model)
        return await self._replied(
            reply, target, stream, turn, self._spending.cut_short(target, stream, counted), task
        )

    async def _cut_off(
        self,
        target: Target,
        stream: Stream,
        turn: int,
        attempt: int,
        task: TaskClass,
        prepared: Prepared,
    ) -> CutOff:
        prepared.not_now()
        bill = self._spending.cut_short(target, stream, prepared.tokens)
        failure = ModelFailure("interrupted", "the daemon was stopped while the model was replying")
        return CutOff(
            events=prepared.untold,
            beside=prepared.beside,
            replied=await self._broken_off(target, stream, turn, task, prepared.tokens),
            failed=await self._failure(
                failure, target, stream, turn, attempt, bill, will_retry=True
            ),
        )

    def lost(self, call: UnderWay) -> ModelFailed | None:
        """A call that was under way when the daemon died. What it said is gone; what was sent is
        counted.
        """
        bill = self._spending.lost(Target(call.provider, call.model, 0), call.tokens)
        if bill is None:
            return None
        return ModelFailed(
            turn=call.turn,
            provider=call.provider,
            model=call.model,
            failure="interrupted",
            message="the daemon died while the model was replying",
            will_retry=True,
            usage=bill.usage,
            cost_microusd=bill.microusd,
            priced=bill.priced,
            estimated=bill.estimated,
            task=call.task,
        )

    async def _failure(
        self,
        failure: ModelFailure,
        target: Target,
        stream: Stream,
        turn: int,
        attempt: int,
        bill: Bill,
        *,
        will_retry: bool,
        wait_ms: int = 0,
    ) -> ModelFailed:
        now_ms = self.clock.ticks_ms()
        return ModelFailed(
            text=await self.redactor.redacted("".join(stream.text)),
            reasoning=await self.redactor.redacted("".join(stream.reasoning)),
            usage=bill.usage,
            cost_microusd=bill.microusd,
            priced=bill.priced,
            estimated=bill.estimated,
            first_delta_ms=stream.first_ms - stream.started_ms if stream.first_ms else 0,
            duration_ms=now_ms - stream.started_ms,
            turn=turn,
            provider=target.provider,
            model=target.model,
            failure=failure.failure,
            message=self.redactor.redact(failure.message),
            will_retry=will_retry,
            attempt=attempt,
            wait_ms=wait_ms,
        )

    async def _replied(
        self,
        reply: ModelReply,
        target: Target,
        stream: Stream,
        turn: int,
        bill: Bill,
        task: TaskClass,
    ) -> ModelReplied:
        now_ms = self.clock.ticks_ms()
        redacted = self.redactor.redacted
        return ModelReplied(
            turn=turn,
            provider=target.provider,
            model=await redacted(reply.model) or target.model,
            text=await redacted(reply.text),
            reasoning=await redacted(reply.reasoning),
            calls=tuple([await self._call(call, reply.stop) for call in reply.calls]),
            stop=reply.stop,
            usage=bill.usage,
            cost_microusd=bill.microusd,
            priced=bill.priced,
            task=task,
            estimated=bill.estimated,
            first_delta_ms=(stream.first_ms or now_ms) - stream.started_ms,
            duration_ms=now_ms - stream.started_ms,
            native=await self._native(reply.native),
        )

    async def _call(self, call: ModelCall, stop: StopReason) -> Call:
        arguments, malformed, repaired = call_arguments.read(call, stop)
        return Call(
            id=CallId(self.clock.new_id()),
            tool=self.redactor.redact_head(call.name, 128),
            arguments=await self.redactor.redacted_json(arguments),
            native_id=await self.redactor.redacted(call.id),
            malformed=await self.redactor.redacted(malformed),
            repaired=repaired,
        )

    async def _native(self, native: Native | None) -> Native | None:
        """A provider's signed record cannot be redacted in part: if it holds a secret it is dropped
        as a whole.
        """
        if native is None or await self.redactor.redacted_json(native.items) is native.items:
            return native
        return None


def _with_advice(failed: ModelFailed) -> str:
    """Return what went wrong and what to do. Most messages say both by themselves."""
    if "; " in failed.message:
        return failed.message
    advice = _ADVICE.get(failed.failure, "choose another model with --model")
    return f"{failed.message}; {advice}"
