"""One model turn: assemble, plan the route, stream, and record the reply or the failure.

Deltas go straight from the provider to the watchers. What is stored is the finished reply,
redacted.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

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
from palyra.core.events import Call, ModelFailed, ModelReplied, RunFailed, TaskClass
from palyra.core.ids import CallId
from palyra.core.messages import (
    Emit,
    Image,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Native,
)
from palyra.models.reliability import NextProvider, NoProviderLeft, RetryAfter, after_failure
from palyra.models.routing import ModelRoute, Models, Target
from palyra.store.database import Tx
from palyra.store.route_plans import UnderWay
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

_ADVICE = {
    "auth": "check the provider's key with `palyra doctor`",
    "permission": "the key may not use this model: choose another with --model",
    "quota": "the provider's account has no credit left",
    "context_too_long": "start a new session, or reset this one",
    "content_blocked": "the provider refused the content",
    "network": "check the connection, then send the message again",
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
    ) -> None:
        self.hub = hub
        self.models = models
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
        index = attempt = 0
        condensed = False
        nearby = await self._look_around(run)
        images = await self._gallery.of(run.live.conversation)
        route = await self._spending.route(run, nearby, images=bool(images))
        await self._compactor.before_turn(run, route.targets[0])
        prepared = await self._prepare(run, route, 0, images, nearby, continuing=continuing)
        turn = run.progress.turns + 1
        try:
            while True:
                target = route.targets[index]
                stream = Stream(self.hub, self.clock, self.redactor, run, turn)
                attempt += 1
                try:
                    reply = await run.interruptible(
                        self._ask(target, prepared.request, stream.emit), breakable=True
                    )
                    stream.finish()
                    bill = self._spending.bill(target, reply, prepared.tokens)
                    replied = await self._replied(reply, target, stream, turn, bill, route.task)
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
                    bill = self._spending.failed(target, stream, failure, prepared.tokens)
                    await prepared.tell(run)
                    if failure.failure == "context_too_long" and not condensed and not stream.text:
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
                    wait_ms = await self._failed(
                        run, route, index, attempt, turn, failure, stream, bill
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
                await prepared.answered(run, replied)
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

    async def _ask(self, target: Target, request: ModelRequest, emit: Emit) -> ModelReply:
        breaker = self.models.breaker(target)
        now_ms = self.clock.now_ms()
        if not breaker.allows(now_ms):
            raise ModelFailure(
                "overloaded",
                f"{target.provider} has failed several times in a row and is given a rest",
            )
        try:
            reply = await self.models.provider(target).stream(request, emit)
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
            recalled = await self._recall.look(run)
            memory = run_context.render(recalled) if recalled else ""
            run.around = RunContext(await self._notes.of(run.workspace), recalled, memory)
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
        prepared = Prepared(request, (*planned, assembled.event), assembled.event.tokens, beside)
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
        failure: ModelFailure,
        stream: Stream,
        bill: Bill,
    ) -> int | None:
        """Record a failure. Returns how long to wait before the next try, -1 for the next provider,
        None if the run is over.
        """
        target = route.targets[index]
        more, rand = index + 1 < len(route.targets), self.clock.chance()
        decision = after_failure(
            failure, attempt=attempt, text_shown=bool(stream.text), has_fallback=more, rand=rand
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
                shown = run.progress.partial
                if shown is not None and not failed.text:
                    # An earlier try of this turn had come further: what people saw of it stays with
                    # what ends the turn.
                    failed = msgspec.structs.replace(
                        failed, text=shown.text, reasoning=shown.reasoning
                    )
                advice = _ADVICE.get(failure.failure, "send the message again in a while")
                await run.append(
                    failed,
                    RunFailed(
                        reason=f"model_{failure.failure}", message=f"{failed.message}; {advice}"
                    ),
                )
                return None

    async def _broken_off(
        self, target: Target, stream: Stream, turn: int, task: TaskClass, counted: int
    ) -> ModelReplied:
        """What a reply that nobody lets finish has said so far, with what it cost."""
        stream.finish()
        text, reasoning = "".join(stream.text), "".join(stream.reasoning)
        reply = ModelReply(text=text, reasoning=reasoning, stop="interrupted", model=target.model)
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
            calls=tuple([await self._call(call) for call in reply.calls]),
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

    async def _call(self, call: ModelCall) -> Call:
        arguments, malformed = parse_arguments(call.arguments)
        return Call(
            id=CallId(self.clock.new_id()),
            tool=self.redactor.redact_head(call.name, 128),
            arguments=await self.redactor.redacted_json(arguments),
            native_id=await self.redactor.redacted(call.id),
            malformed=await self.redactor.redacted(malformed),
        )

    async def _native(self, native: Native | None) -> Native | None:
        """A provider's signed record cannot be redacted in part: if it holds a secret it is dropped
        as a whole.
        """
        if native is None or await self.redactor.redacted_json(native.items) is native.items:
            return native
        return None


def parse_arguments(text: str) -> tuple[dict[str, Any], str]:
    if not text.strip():
        return {}, ""
    try:
        arguments = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, f"the arguments are not valid JSON ({error})"
    if not isinstance(arguments, dict):
        return {}, "the arguments must be a JSON object"
    return arguments, ""
