"""Plan of a model call: which provider, and why, from rules, the label of what is sent, size,
sight, money and health.

The rule: private content goes to no provider that may not have it, whatever else would speak for
it. All other considerations only choose among those that may. Pure: the caller passes in what is
known.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from palyra.core.call_options import ALL, NOTHING, CallOptions
from palyra.core.errors import PalyraError
from palyra.core.events import PassedOver, RoutePlanned, TaskClass
from palyra.core.verdicts import Origin

# Of a model's window, what an input may take: room is left for the reply and for the error of
# counting by characters.
WINDOW_SHARE = 0.75


class NoRoute(PalyraError):
    """Error: no configured provider may be sent this."""

    code = "no_permitted_provider"


class Target(Struct, frozen=True):
    provider: str
    model: str
    context_tokens: int
    # Whether it can look at images.
    vision: bool = True
    # Whether private data may be sent to it.
    private: bool = True
    # What the settings tell it, and which options its dialect has words for.
    options: CallOptions = NOTHING
    carries: frozenset[str] = ALL

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def budget(self) -> int:
        """Largest input for this target, in tokens."""
        return int(self.context_tokens * WINDOW_SHARE)


class RouteRule(Struct, frozen=True, kw_only=True):
    """Which models serve which calls. What is not said matches everything; the first rule that
    matches is the one.
    """

    name: str
    use: tuple[Target, ...]
    tasks: tuple[TaskClass, ...] = ()
    private: bool | None = None
    tokens_above: int = 0
    # Holds when less than this share of the tightest budget is left.
    budget_left_below: float = 0.0
    # Whether the configured fallbacks come after those of the rule.
    fallbacks: bool = True

    def matches(self, need: "CallNeeds") -> bool:
        return (
            (not self.tasks or need.task in self.tasks)
            and (self.private is None or self.private == bool(need.private))
            and need.tokens >= self.tokens_above
            and (not self.budget_left_below or need.budget_left() < self.budget_left_below)
        )

    @property
    def says(self) -> str:
        parts = [f"task class {' or '.join(self.tasks)}"] if self.tasks else []
        if self.private is not None:
            parts.append("private data" if self.private else "no private data")
        if self.tokens_above:
            parts.append(f"at least {self.tokens_above} tokens")
        if self.budget_left_below:
            parts.append(f"less than {self.budget_left_below:.0%} of a budget left")
        return f"the rule {self.name} chooses it for {', '.join(parts) or 'every call'}"


def _whole() -> float:
    return 1.0


class CallNeeds(Struct, frozen=True, kw_only=True):
    """Needs of a call, as known before a provider is chosen. `private` names what is private in it;
    empty: nothing is.
    """

    now_ms: int
    wanted: str = ""
    # Why the first is the first where nobody asked for a model by name.
    usual: str = "the default model"
    task: TaskClass = "interactive"
    private: tuple[str, ...] = ()
    # Of the whole input, and of what of it cannot be condensed or left out.
    tokens: int = 0
    least: int = 0
    images: bool = False
    budget_left: Callable[[], float] = _whole
    # Whether nothing that costs money may be asked any more.
    broke: Callable[[], bool] = lambda: False


class ModelRoute(Struct, frozen=True, kw_only=True):
    """Never empty. The first target is asked first."""

    targets: tuple[Target, ...]
    reason: str
    task: TaskClass = "interactive"
    reasons: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    rule: str = ""
    # Whether it is to be said on the tape; None: if it is another one than before.
    told: bool | None = None

    def planned(
        self,
        index: int,
        reason: str = "",
        *,
        tokens: int = 0,
        output_tokens: int = 0,
        microusd: int | None = None,
    ) -> RoutePlanned:
        target = self.targets[index]
        return RoutePlanned(
            provider=target.provider,
            model=target.model,
            reason=reason or self.reason,
            fallbacks=tuple(other.name for other in self.targets[index + 1 :]),
            task=self.task,
            reasons=(
                (f"{reason}, so the next of the plan is asked", *self.reasons)
                if reason
                else self.reasons
            ),
            passed_over=self.passed_over,
            rule=self.rule,
            expected_input_tokens=tokens,
            expected_output_tokens=output_tokens,
            expected_microusd=microusd,
        )


# The plan of a call under the name that the design gives it.
UsageRoutingPlan = ModelRoute


def task_of(origin: Origin, *, images: bool = False, serves: TaskClass | None = None) -> TaskClass:
    """Return the task class of a run's turns. `serves`: the class that its parent asked for."""
    if images:
        return "vision"
    if serves is not None:
        return serves
    return "background" if origin in ("scheduled", "child") else "interactive"


def plan(
    need: CallNeeds,
    first: Sequence[Target],
    fallbacks: Sequence[Target],
    rules: Sequence[RouteRule],
    healthy: Callable[[Target], bool],
    free: Callable[[Target], bool],
) -> ModelRoute:
    """`first` is the model that was asked for by name, or the default one."""
    rule = None if need.wanted else next((rule for rule in rules if rule.matches(need)), None)
    if rule is not None:
        chosen, reason = rule.use, rule.says
        after: Sequence[Target] = fallbacks if rule.fallbacks else ()
    else:
        chosen, reason, after = (
            tuple(first),
            "asked for by the caller" if need.wanted else need.usual,
            fallbacks,
        )
    sieve = _Sieve(list(dict.fromkeys((*chosen, *after))))
    named = sieve.left[0]
    if need.private:
        sieve.drop(lambda target: not target.private, "it may not be sent private data")
        if not sieve.left:
            raise NoRoute(
                f"what would be sent is private ({', '.join(need.private[:3])}), and no configured"
                " model may be sent that: ask in a new session, or set providers.NAME.private ="
                " true for one you trust with it",
                passed_over=[each.model for each in sieve.over],
            )
    if not need.wanted:
        if need.images:
            sieve.put_behind(lambda target: target.vision, "it cannot look at images")
        if need.least:
            sieve.put_behind(
                lambda target: need.least <= target.budget,
                f"{need.least} tokens do not fit into its window",
            )
        if any(map(free, sieve.left)) and not all(map(free, sieve.left)) and need.broke():
            sieve.prefer(free, "a budget is used up, and it costs money")
    # With every circuit open the first is tried all the same: the user is told what it says.
    sieve.prefer(healthy, "its provider is failing right now")
    if sieve.left[0] is not named:
        why = next((each.why for each in sieve.over if each.model == named.name), "")
        reason = (
            f"{named.provider} is failing right now"
            if why.startswith("its provider")
            else f"{named.name} is passed over"
        )
    reasons = [reason] if sieve.left[0] is named else [reason, f"{sieve.left[0].name} comes next"]
    return ModelRoute(
        targets=tuple(sieve.left),
        reason=reason,
        task=need.task,
        reasons=(*reasons, *_circumstances(need)),
        passed_over=tuple(sieve.over),
        rule=rule.name if rule is not None else "",
    )


def _circumstances(need: CallNeeds) -> list[str]:
    said = {"vision": "there are images to look at", "background": "nobody waits for it"}.get(
        need.task, ""
    )
    return [*([said] if said else []), *(["what is sent is private"] if need.private else [])]


class _Sieve:
    """Targets that are left, and those passed over, each with the reason."""

    def __init__(self, left: list[Target]) -> None:
        self.left = left
        self.over: list[PassedOver] = []

    def drop(self, unfit: Callable[[Target], bool], why: str) -> None:
        self.over += [PassedOver(target.name, why) for target in self.left if unfit(target)]
        self.left = [target for target in self.left if not unfit(target)]

    def put_behind(self, fit: Callable[[Target], bool], why: str) -> None:
        """Ask those who fit first; the others are better than nobody."""
        behind = [target for target in self.left if not fit(target)]
        if behind and len(behind) < len(self.left):
            ahead = self.left[: next(at for at, target in enumerate(self.left) if fit(target))]
            self.over += [PassedOver(target.name, why) for target in ahead]
            self.left = [*(target for target in self.left if fit(target)), *behind]

    def prefer(self, fit: Callable[[Target], bool], why: str) -> None:
        """Leave out who does not fit, unless nobody does."""
        if any(map(fit, self.left)):
            self.drop(lambda target: not fit(target), why)
