"""Which providers and models there are, what is known of their health and prices, and who serves a
call.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from palyra.core.errors import InvalidInput
from palyra.core.events import TaskClass
from palyra.core.ports import ModelProvider
from palyra.models.prices import Prices
from palyra.models.reliability import Breaker
from palyra.models.routing_plan import WINDOW_SHARE, CallNeeds, ModelRoute, RouteRule, Target, plan

__all__ = ["WINDOW_SHARE", "CallNeeds", "ModelRoute", "Models", "RouteRule", "Target"]

_MOST_PLAIN = 100


class Models:
    """The configured providers and what is known of their health."""

    def __init__(
        self,
        providers: Mapping[str, ModelProvider],
        targets: Sequence[Target],
        fallbacks: Sequence[Target] = (),
        prices: Prices | None = None,
    ) -> None:
        """`targets` lists every model that may be asked for by name, the default first; `fallbacks`
        step in when it fails.
        """
        self._providers = dict(providers)
        self.targets = tuple(targets)
        self._fallbacks = tuple(fallbacks)
        self._breakers = {name: Breaker() for name in providers}
        self.prices = prices or Prices()
        self.rules: tuple[RouteRule, ...] = ()
        # Which model the settings name for a class of work, where no rule says otherwise.
        self.serving: dict[TaskClass, str] = {}
        # Plans of calls about which nothing is special, while everybody is well.
        self._plain: dict[tuple[str, str], ModelRoute] = {}

    @property
    def choosy(self) -> bool:
        """Whether it matters for the choice what is sent: its label, its size, what is left of a
        budget.
        """
        return bool(self.rules) or any(not target.private for target in self.targets)

    def provider(self, target: Target) -> ModelProvider:
        return self._providers[target.provider]

    def breaker(self, target: Target) -> Breaker:
        return self._breakers[target.provider]

    def health(self, now_ms: int) -> dict[str, bool]:
        return {name: not breaker.is_open(now_ms) for name, breaker in self._breakers.items()}

    def free(self, target: Target) -> bool:
        price = self.prices.of(target.provider, target.model).price
        return price is not None and not any((price.input, price.output))

    def find(self, wanted: str) -> Target:
        """A target by `provider/model`, provider or model name."""
        for target in self.targets:
            if wanted in (target.name, target.provider, target.model):
                return target
        provider, _, model = wanted.partition("/")
        for target in self.targets:
            # A provider may serve more models than the config lists.
            if target.provider == provider and model:
                return replace(target, model=model)
        known = ", ".join(target.name for target in self.targets)
        raise InvalidInput(
            f"there is no model {wanted[:100]!r}: configured are {known}", model=wanted[:100]
        )

    def route(self, need: CallNeeds) -> ModelRoute:
        key = (need.wanted, need.task)
        known = self._plain.get(key)
        if known is not None and self._nothing_special(need) and self._all_well(known, need.now_ms):
            return known
        serving = self.serving.get(need.task, "") if not need.wanted else ""
        if serving:
            need = replace(need, usual=f"models.{need.task} names it")
        first = self.find(need.wanted or serving) if need.wanted or serving else self.targets[0]
        made = plan(
            need,
            (first,),
            self._fallbacks,
            self.rules,
            lambda target: not self.breaker(target).is_open(need.now_ms),
            self.free,
        )
        if not made.passed_over and self._nothing_special(need) and len(self._plain) < _MOST_PLAIN:
            self._plain[key] = made
        return made

    def _nothing_special(self, need: CallNeeds) -> bool:
        return not (self.rules or need.private or need.images or need.tokens or need.least)

    def _all_well(self, route: ModelRoute, now_ms: int) -> bool:
        return not any(self.breaker(target).is_open(now_ms) for target in route.targets)
