"""One model turn: assemble, plan the route, stream, and record the reply or the failure.

Deltas go straight from the provider to the watchers. What is stored is the finished reply, redacted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from palyra.domain.errors import Unavailable
from palyra.domain.events import AnyEvent, Call, ModelDelta, ModelFailed, ModelReplied, RunFailed, TaskClass, encode
from palyra.domain.ids import CallId
from palyra.domain.messages import Channel, Emit, Image, ModelCall, ModelFailure, ModelRequest, Native, Reply
from palyra.domain.redaction import Redactor
from palyra.journal.database import Tx
from palyra.models.reliability import GiveUp, NextProvider, RetryAfter, after_failure
from palyra.runtime import around
from palyra.runtime.around import Around
from palyra.runtime.assembly import Assembler
from palyra.runtime.budgets import BudgetQuestion
from palyra.runtime.clock import Clock
from palyra.runtime.compacting import Compacting
from palyra.runtime.hub import Hub
from palyra.runtime.pictures import Gallery
from palyra.runtime.project_files import ProjectFiles
from palyra.runtime.recalling import Recalling
from palyra.runtime.routing import Models, Route, Target
from palyra.runtime.spending import Bill, Spending
from palyra.runtime.surroundings import Stored
from palyra.runtime.working import Interrupted, Working

# Long enough for a question to leave.
_TOLD_AFTER_S = 0.01
_ADVICE = {
    "auth": "check the provider's key with `palyra doctor`",
    "permission": "the key may not use this model: choose another with --model",
    "quota": "the provider's account has no credit left",
    "context_too_long": "start a new session, or reset this one",
    "content_blocked": "the provider refused the content",
    "network": "check the connection, then send the message again",
    "bad_request": "the provider did not accept the request",
}


class _Stream:
    """What one provider call has said so far.

    Pieces that arrive in the same moment go out together: one redaction, one message, however many tokens a read brought.
    """

    def __init__(self, turns: "ModelTurns", run: Working, turn: int) -> None:
        self._hub = turns.hub
        self._clock = turns.clock
        self._run = run
        self._run_id = run.run_id
        self._tape = run.session_id
        self._turn = turn
        self._text = turns.redactor.stream()
        self._reasoning = turns.redactor.stream()
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Channel, str]] = []
        self.started_ms = turns.clock.ticks_ms()
        self.first_ms = 0
        self.text: list[str] = []
        self._shown: list[tuple[str, str]] = []
        turns.hub.speaks(self._tape, self._run_id, self._so_far)

    def emit(self, channel: Channel, piece: str) -> None:
        if channel == "call":
            self._run.pulse += 1
            return
        if channel == "text":
            self.text.append(piece)
        self._waiting.append((channel, piece))
        if not self.first_ms:
            # Nobody who waits for the first word waits for a second one.
            self._flush()
        elif len(self._waiting) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._run.pulse += 1
        if not self.first_ms:
            self.first_ms = self._clock.ticks_ms()
        text = "".join([piece for channel, piece in self._waiting if channel == "text"])
        reasoning = "".join([piece for channel, piece in self._waiting if channel == "reasoning"])
        self._waiting.clear()
        self._show(self._text.feed(text) if text else "", self._reasoning.feed(reasoning) if reasoning else "")

    def _show(self, text: str, reasoning: str) -> None:
        if not text and not reasoning:
            return
        self._shown.append((text, reasoning))
        if self._hub.watched(self._tape):
            delta = ModelDelta(run_id=self._run_id, turn=self._turn, text=text, reasoning=reasoning)
            self._hub.live(self._tape, encode(delta))

    def _so_far(self) -> bytes:
        if not self._shown:
            return b""
        text, reasoning = ("".join(pieces) for pieces in zip(*self._shown, strict=True))
        return encode(ModelDelta(run_id=self._run_id, turn=self._turn, text=text, reasoning=reasoning, whole=True))

    def finish(self) -> None:
        """What was held back as a possible secret is safe to show now that it is complete."""
        self._flush()
        self._show(self._text.finish(), self._reasoning.finish())


@dataclass(slots=True)
class _Prepared:
    """A request, the events about it that are still to be told, and those that are on their way to the tape."""

    request: ModelRequest
    events: tuple[AnyEvent, ...]
    # Our own count of what is sent.
    tokens: int
    # What goes into the store with the events.
    beside: Callable[[Tx], None] | None = None
    # None: they are told with the answer.
    told: Awaitable[Any] | None = None
    _soon: asyncio.TimerHandle | None = None

    def tell_soon(self, run: Working) -> None:
        """When the question is on its way: writing it down must not delay the first word."""
        self._soon = asyncio.get_running_loop().call_later(_TOLD_AFTER_S, self._begin, run)

    def _begin(self, run: Working) -> None:
        self.told = run.append(*self.events, beside=self.beside)

    def not_now(self) -> None:
        """Whatever comes next on the tape, it is not told behind that."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    async def tell(self, run: Working) -> None:
        self.not_now()
        if self.told is None:
            self._begin(run)
        assert self.told is not None
        await self.told

    async def answered(self, run: Working, replied: ModelReplied) -> None:
        """The answer, behind what was asked. It was paid for: while the store refuses it is held, and nobody is asked again."""
        self.not_now()
        try:
            if self.told is not None:
                await self.told
                await run.insist(replied)
                return
        except Unavailable:
            if run.closing:
                raise
        await run.insist(*self.events, replied, beside=self.beside)


class ModelTurns:
    def __init__(
        self,
        hub: Hub,
        models: Models,
        assembler: Assembler,
        projects: ProjectFiles,
        recalling: Recalling,
        gallery: Gallery,
        compacting: Compacting,
        redactor: Redactor,
        clock: Clock,
        spending: Spending,
    ) -> None:
        self.hub = hub
        self.models = models
        self._spending = spending
        self._assembler = assembler
        self._projects = projects
        self._recalling = recalling
        self._gallery = gallery
        self._compacting = compacting
        self.redactor = redactor
        self.clock = clock

    async def take(self, run: Working, *, continuing: bool) -> None:
        """Ask until there is a reply or nothing is left to try; either way it is on the tape when this returns."""
        try:
            await self._take(run, continuing=continuing)
        except BudgetQuestion as question:
            await self._spending.ask(run, question)
        finally:
            self._spending.done(run)
            self.hub.silent(run.session_id, run.run_id)

    async def _take(self, run: Working, *, continuing: bool) -> None:
        index = attempt = 0
        condensed = False
        nearby = await self._look_around(run)
        images = await self._gallery.of(run.live.conversation)
        route = await self._spending.route(run, nearby, images=bool(images))
        await self._compacting.before_turn(run, route.targets[0])
        prepared = await self._prepare(run, route, 0, images, nearby, continuing=continuing)
        turn = run.progress.turns + 1
        try:
            while True:
                target = route.targets[index]
                stream = _Stream(self, run, turn)
                attempt += 1
                try:
                    reply = await run.interruptible(self._ask(target, prepared.request, stream.emit), breakable=True)
                except Interrupted:
                    reply = Reply(text="".join(stream.text), stop="interrupted", model=target.model)
                except ModelFailure as failure:
                    await prepared.tell(run)
                    if failure.failure == "context_too_long" and not condensed and not stream.text:
                        condensed = True
                        if await self._compacting.make_room(run, target):
                            await run.append(self._failure(failure, target, turn, attempt, will_retry=True))
                            prepared = await self._prepare(run, route, index, images, nearby, continuing=continuing)
                            continue
                    wait_ms = await self._failed(run, route, index, attempt, turn, failure, shown=bool(stream.text))
                    if wait_ms is None:
                        return
                    why = ""
                    if wait_ms < 0:
                        index, attempt, why = index + 1, 0, f"{target.provider}: {failure.failure}"
                    elif not await self._pause(run, wait_ms):
                        continue
                    prepared = await self._prepare(run, route, index, images, nearby, continuing=continuing, why=why)
                    continue
                stream.finish()
                bill = self._spending.bill(target, reply, prepared.tokens)
                await prepared.answered(run, await self._replied(reply, target, stream, turn, bill, route.task))
                return
        finally:
            prepared.not_now()

    async def _pause(self, run: Working, wait_ms: int) -> bool:
        """Wait before the next try. An interrupt ends the wait: then there is new input to ask about, and this is True."""
        try:
            await run.interruptible(self.clock.sleep(wait_ms))
        except Interrupted:
            return True
        return False

    async def _ask(self, target: Target, request: ModelRequest, emit: Emit) -> Reply:
        breaker = self.models.breaker(target)
        now_ms = self.clock.now_ms()
        if not breaker.allows(now_ms):
            raise ModelFailure("overloaded", f"{target.provider} has failed several times in a row and is given a rest")
        try:
            reply = await self.models.provider(target).stream(request, emit)
        except ModelFailure as failure:
            breaker.failed(failure.failure, self.clock.now_ms())
            raise
        breaker.succeeded()
        return reply

    async def _look_around(self, run: Working) -> Around:
        """The project's notes and what is remembered: looked up once, so that every turn of a run is shown the same."""
        if run.around is None:
            recalled = await self._recalling.look(run)
            memory = around.render(recalled) if recalled else ""
            run.around = Around(await self._projects.of(run.workspace), recalled, memory)
        return run.around

    async def _prepare(
        self,
        run: Working,
        route: Route,
        index: int,
        images: Mapping[str, Image],
        nearby: Around,
        *,
        continuing: bool,
        why: str = "",
    ) -> "_Prepared":
        """The request for a target. A new route is told soon, because people want to know who is being asked; what was
        assembled for a later turn goes with the reply."""
        target = route.targets[index]
        conversation, sizes = run.live.conversation, run.live.sizes
        await self._assembler.measure(conversation, run.progress, target, nearby, sizes)
        assembled = self._assembler.assemble(
            conversation, run.progress, target, run.workspace, continuing=continuing, images=images, around=nearby, sizes=sizes
        )
        request = await self._spending.admit(run, target, assembled.request, assembled.event)
        beside = self._keep(run, assembled.surroundings)
        known = bool(run.progress.turns) and run.progress.route == target.name if route.told is None else not route.told
        if known and not why:
            return _Prepared(request, (assembled.event,), assembled.event.tokens, beside)
        events = (self._spending.planned(route, index, why, assembled.event), assembled.event)
        prepared = _Prepared(request, events, assembled.event.tokens, beside)
        prepared.tell_soon(run)
        return prepared

    def _keep(self, run: Working, surroundings: Stored) -> Callable[[Tx], None] | None:
        """The step that stores what the prompt took from outside, if it is not that of the turn before."""
        if surroundings.artifact_id == run.surroundings:
            return None
        run.surroundings = surroundings.artifact_id
        return surroundings.keep

    async def _failed(
        self, run: Working, route: Route, index: int, attempt: int, turn: int, failure: ModelFailure, *, shown: bool
    ) -> int | None:
        """Record a failure. Returns how long to wait before the next try, -1 for the next provider, None if the run is over."""
        target = route.targets[index]
        decision = after_failure(
            failure, attempt=attempt, text_shown=shown, has_fallback=index + 1 < len(route.targets), rand=self.clock.chance()
        )
        wait_ms = decision.ms if isinstance(decision, RetryAfter) else 0
        failed = self._failure(failure, target, turn, attempt, will_retry=not isinstance(decision, GiveUp), wait_ms=wait_ms)
        match decision:
            case RetryAfter():
                await run.append(failed)
                return wait_ms
            case NextProvider():
                await run.append(failed)
                return -1
            case GiveUp():
                advice = _ADVICE.get(failure.failure, "send the message again in a while")
                await run.append(failed, RunFailed(reason=f"model_{failure.failure}", message=f"{failed.message}; {advice}"))
                return None

    def _failure(
        self, failure: ModelFailure, target: Target, turn: int, attempt: int, *, will_retry: bool, wait_ms: int = 0
    ) -> ModelFailed:
        return ModelFailed(
            turn=turn,
            provider=target.provider,
            model=target.model,
            failure=failure.failure,
            message=self.redactor.redact(failure.message),
            will_retry=will_retry,
            attempt=attempt,
            wait_ms=wait_ms,
        )

    async def _replied(self, reply: Reply, target: Target, stream: _Stream, turn: int, bill: Bill, task: TaskClass) -> ModelReplied:
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
        """A provider's signed record cannot be redacted in part: if it holds a secret it is dropped as a whole."""
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
