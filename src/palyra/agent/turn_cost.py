"""Costs of a run's turns: who is asked, what is reserved for it, and what the reply cost.

The rule: nothing is sent before it has a plan that says why, a reservation, and a recipient who may
have it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palyra.agent.active_run import ActiveRun
from palyra.agent.prompt.run_context import RunContext
from palyra.agent.settings import Settings
from palyra.core import labels
from palyra.core.budgets import Limit, Spender, Terms
from palyra.core.events import ApprovalRequested, BudgetAsked, InputAssembled, Priced, RoutePlanned
from palyra.core.ids import ApprovalId, CallId
from palyra.core.labels import Label
from palyra.core.messages import Channel, ModelFailure, ModelReply, ModelRequest, Usage
from palyra.core.run_progress import RunProgress
from palyra.core.tools import Preview
from palyra.models import usage_estimate
from palyra.models.routing import CallNeeds, ModelRoute, Models, Target
from palyra.models.routing_plan import NoRoute, task_of
from palyra.store import approvals, tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

_MEMORY = labels.private("memory")
# Before a model has answered: about what an answer has.
_TYPICAL_OUTPUT = 500


class BudgetQuestion(Exception):
    """A limit is used up, and a person may let the run go on."""

    def __init__(self, asked: BudgetAsked, text: str) -> None:
        super().__init__(text)
        self.asked = asked
        self.text = text


class Reservation(NamedTuple):
    """Result of a reservation. `most_output`: the most tokens that the reply may have; None: no
    limit has to be kept.
    """

    most_output: int | None = None


class BudgetPort(Protocol):
    """Port that keeps calls within limits: reserve before a call, release behind it."""

    @property
    def limits(self) -> Sequence[Limit]:
        """The limits in force; empty: nothing has to be looked at."""

    async def look(self, spender: Spender) -> None:
        """Read the spender's accounts into memory."""

    def left(self, spender: Spender) -> float:
        """Return which share of the tightest limit is left."""

    def broke(self, spender: Spender) -> bool:
        """Return whether a limit is used up."""

    async def reserve(
        self,
        holder: str,
        spender: Spender,
        target: Target,
        tokens: int,
        *,
        own: Sequence[Limit] = (),
        raised: Mapping[str, int] = {},
        fresh: bool = False,
        most_output: int = 0,
    ) -> Reservation:
        """Reserve what a call can use at most. Raise BudgetQuestion or a PalyraError if it is too
        much.
        """

    def release(self, holder: str) -> None: ...

    def learn(self, target: Target, counted: int, reported: int) -> None:
        """Hear how many tokens a provider counted where `counted` were expected."""


class NoBudgets:
    """A daemon without budgets: everything may be sent."""

    limits: Sequence[Limit] = ()

    async def look(self, spender: Spender) -> None:
        pass

    def left(self, spender: Spender) -> float:
        return 1.0

    def broke(self, spender: Spender) -> bool:
        return False

    async def reserve(
        self,
        holder: str,
        spender: Spender,
        target: Target,
        tokens: int,
        *,
        own: Sequence[Limit] = (),
        raised: Mapping[str, int] = {},
        fresh: bool = False,
        most_output: int = 0,
    ) -> Reservation:
        return Reservation()

    def release(self, holder: str) -> None:
        pass

    def learn(self, target: Target, counted: int, reported: int) -> None:
        pass


class Bill(Struct, frozen=True):
    """Usage and cost of a call. `estimated`: the provider did not say, so it was counted here."""

    usage: Usage
    microusd: int
    priced: Priced
    estimated: bool = False


class CallUsage:
    """Output and usage of a model call so far: listens as the call's `emit`."""

    def __init__(self) -> None:
        # Set by whoever waits for room in a budget first: before that nothing was sent.
        self.asked = False
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self._arguments = ""
        self._usage = Usage()
        self._calls = 0

    def emit(self, channel: Channel, piece: str) -> None:
        match channel:
            case "text":
                self.text.append(piece)
            case "reasoning":
                self.reasoning.append(piece)
            case "call":
                self._calls += 1
            case "arguments":
                self._arguments = piece
            case "usage":
                self._usage = msgspec.json.decode(piece, type=Usage)

    @property
    def anything(self) -> bool:
        """Return whether the provider has begun to answer."""
        return bool(self.text or self.reasoning or self._calls or self._usage.input_tokens)

    def usage(self, counted: int) -> Usage:
        """Return the usage of a call that broke off: the provider's figures as far as they came,
        else our own count.
        """
        told, thought = self._usage, usage_estimate.tokens("".join(self.reasoning))
        said = thought + usage_estimate.tokens("".join(self.text) + self._arguments)
        usage = told if told.input_tokens else Usage(input_tokens=counted)
        return replace(
            usage,
            output_tokens=max(told.output_tokens, said),
            reasoning_tokens=max(told.reasoning_tokens, thought),
        )


NO_BILL = Bill(Usage(), 0, "")


class Spending:
    # False where the tape itself says what was broken off, as in a replay.
    records = True

    def __init__(
        self, db: Database, models: Models, budgets: BudgetPort, clock: Clock, settings: Settings
    ) -> None:
        self._db = db
        self._models = models
        self._budgets = budgets
        self._clock = clock
        self._settings = settings
        # Answers and their tokens so far, by model, for what to expect.
        self._answers: dict[str, tuple[int, int]] = {}

    async def route(self, run: ActiveRun, nearby: RunContext, *, images: bool) -> ModelRoute:
        """Return the model for a run's next turn, and those to ask if it fails."""
        progress = run.progress
        accepted = progress.accepted
        serves = accepted.commission.serves if accepted.commission is not None else None
        task = task_of(accepted.origin, images=images, serves=serves)
        need = CallNeeds(
            now_ms=self._clock.now_ms(), wanted=progress.model, task=task, images=images
        )
        if not self._models.choosy and not self._budgets.limits:
            return self._models.route(need)
        spender = spender_of(run)
        if self._budgets.limits:
            await self._budgets.look(spender)
        fresh = sum([usage_estimate.tokens(event.text) for _, event in progress.inputs])
        conversation = run.live.conversation
        least = fresh + conversation.overhead
        need = replace(
            need,
            private=private_in(label_of(run, nearby)),
            tokens=least + run.live.sizes.tokens(conversation.turns),
            least=least,
            budget_left=partial(self._budgets.left, spender),
            broke=partial(self._budgets.broke, spender),
        )
        return self._models.route(need)

    async def admit(
        self, run: ActiveRun, target: Target, request: ModelRequest, assembled: InputAssembled
    ) -> ModelRequest:
        """Reserve what the call can use; gives the request as it may be sent. Raises if it may not
        be.
        """
        if not target.private:
            refuse_private(target, labels.join([part.label for part in assembled.parts]))
        progress = run.progress
        held = await self._budgets.reserve(
            run.run_id,
            spender_of(run),
            target,
            assembled.tokens,
            own=own_limits(progress),
            raised=progress.raised,
            fresh=not progress.turns,
            most_output=request.max_output_tokens or 0,
        )
        if held.most_output is None:
            return request
        most = min(held.most_output, request.max_output_tokens or held.most_output)
        return replace(request, max_output_tokens=most)

    def done(self, run: ActiveRun) -> None:
        """The turn is over, whatever came of it."""
        self._budgets.release(run.run_id)

    def planned(
        self, route: ModelRoute, index: int, why: str, assembled: InputAssembled
    ) -> RoutePlanned:
        target = route.targets[index]
        calls, produced = self._answers.get(target.name, (0, 0))
        output = produced // calls if calls else _TYPICAL_OUTPUT
        price = self._models.prices.of(target.provider, target.model).price
        cost = price.cost(Usage(assembled.tokens, output)) if price is not None else None
        return route.planned(
            index, why, tokens=assembled.tokens, output_tokens=output, microusd=cost
        )

    async def ask(self, run: ActiveRun, question: BudgetQuestion) -> None:
        """Put the question to a person; the run waits."""
        origin = run.progress.accepted.origin
        allowed = self._settings.approval_times.of(origin)
        request = ApprovalRequested(
            approval_id=ApprovalId(self._clock.new_id()),
            call_id=CallId(""),
            tool="model",
            about="budget",
            preview=Preview(
                "text", f"go on beyond the budget {question.asked.name}?", question.text
            ),
            risk="medium",
            why=question.text,
            expires_ms=self._clock.now_ms() + allowed if allowed else 0,
            cost_microusd=run.progress.cost_microusd,
            budget=question.asked,
        )

        def step(tx: Tx) -> None:
            (entry,) = tape.append(tx, run.session_id, run.principal, [request], run.run_id)
            approvals.add(
                tx,
                session_id=run.session_id,
                run_id=run.run_id,
                owner=run.principal,
                origin=origin,
                request=request,
                position=entry.position,
            )

        await self._db.write(step)

    def bill(self, target: Target, reply: ModelReply, counted: int) -> Bill:
        """`counted` is our own count of what was sent."""
        self._budgets.learn(target, counted, reply.usage.input_tokens)
        calls, produced = self._answers.get(target.name, (0, 0))
        bill = bill_of(self._models, target, reply, counted)
        self._answers[target.name] = (calls + 1, produced + bill.usage.output_tokens)
        return bill

    def cut_short(self, target: Target, heard: CallUsage, counted: int) -> Bill:
        """Return the bill of a call that was broken off, so far."""
        return bill_part(self._models, target, heard.usage(counted))

    def failed(self, target: Target, heard: CallUsage, failure: ModelFailure, counted: int) -> Bill:
        """Return the bill of a call that failed: nothing if it was refused; else it may be billed,
        however it ended.
        """
        return self.cut_short(target, heard, counted) if failure.sent or heard.anything else NO_BILL

    def lost(self, target: Target, counted: int) -> Bill | None:
        """Return the bill of what was sent in a call of which nothing else is known; None if that
        is not to be told.
        """
        return bill_part(self._models, target, Usage(input_tokens=counted))


def bill_part(models: Models, target: Target, usage: Usage) -> Bill:
    """Return the bill of a call without an end. Its usage is an estimate, whoever made it."""
    tag = models.prices.of(target.provider, target.model)
    return Bill(
        usage, tag.price.cost(usage) if tag.price is not None else 0, tag.known, estimated=True
    )


def bill_of(models: Models, target: Target, reply: ModelReply, counted: int) -> Bill:
    """Return the bill of a reply. A provider that reports nothing is not believed: our own count
    stands.
    """
    usage, estimated = reply.usage, False
    if not usage.input_tokens and not usage.output_tokens:
        said = reply.text + reply.reasoning + "".join(call.arguments for call in reply.calls)
        usage, estimated = (
            Usage(input_tokens=counted, output_tokens=usage_estimate.tokens(said)),
            True,
        )
    tag = models.prices.of(target.provider, target.model)
    return Bill(usage, tag.price.cost(usage) if tag.price is not None else 0, tag.known, estimated)


def spender_of(run: ActiveRun) -> Spender:
    return Spender(
        principal=run.principal,
        session_id=run.session_id,
        run_id=run.run_id,
        schedule_id=run.progress.accepted.schedule_id,
    )


def own_limits(run: RunProgress) -> tuple[Limit, ...]:
    """Return the run's own limits, without what its subagents have used of them."""
    budgets = run.budgets
    if not budgets.tokens and not budgets.microusd:
        return ()
    tokens = max(1, budgets.tokens - run.agent_tokens) if budgets.tokens else 0
    microusd = max(1, budgets.microusd - run.agent_microusd) if budgets.microusd else 0
    given = (Terms(per="run", tokens=tokens), Terms(per="run", microusd=microusd))
    return tuple(
        Limit(name="of the run", terms=terms, source="run")
        for terms in given
        if terms.tokens or terms.microusd
    )


def label_of(run: ActiveRun, nearby: RunContext) -> Label:
    """Return the label of everything that the next request will show."""
    fresh = [event.brings for _, event in run.progress.inputs]
    return labels.join(
        [
            run.live.conversation.label,
            *fresh,
            nearby.project.label,
            *([_MEMORY] if nearby.memory or nearby.earlier else []),
        ]
    )


def private_in(label: Label) -> tuple[str, ...]:
    """Return what is private in it; empty: nothing is."""
    if not labels.secrecy(label):
        return ()
    return label.private_sources or ("something said earlier",)


def refuse_private(target: Target, label: Label) -> None:
    """The last look before something is sent: no plan can have missed this."""
    private = private_in(label)
    if private:
        raise NoRoute(
            f"{target.name} may not be sent private data, and this is: {', '.join(private[:3])}",
            target=target.name,
        )
