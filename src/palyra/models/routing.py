"""Which providers and models there are, what is known of their health and prices, and who serves a
call.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from palyra.core import call_options
from palyra.core.call_options import CallOptions
from palyra.core.errors import InvalidInput
from palyra.core.events import TaskClass
from palyra.core.ports import ModelProvider
from palyra.models import model_names
from palyra.models.prices import Prices
from palyra.models.reliability import Breaker
from palyra.models.routing_plan import WINDOW_SHARE, CallNeeds, ModelRoute, RouteRule, Target, plan

__all__ = ["WINDOW_SHARE", "CallNeeds", "ModelRoute", "Models", "RouteRule", "Target"]

_MOST_PLAIN = 100
# A provider may be asked for models by any name.
_MOST_BREAKERS = 1_000
_MOST_FORMER = 100


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
        self._offered = tuple(providers)
        self.targets = tuple(targets)
        self._fallbacks = tuple(fallbacks)
        # By model: one that is overloaded says nothing about the others of its provider.
        self._breakers: dict[str, Breaker] = {}
        self.prices = prices or Prices()
        self.rules: tuple[RouteRule, ...] = ()
        # Which model the settings name for a class of work, where no rule says otherwise.
        self.serving: dict[TaskClass, str] = {}
        # Plans of calls about which nothing is special, while everybody is well.
        self._plain: dict[tuple[str, str], ModelRoute] = {}
        # What earlier settings had: a run that began with it ends with it.
        self._former: tuple[Target, ...] = ()

    def adopt(self, fresh: "Models") -> None:
        """Become what changed settings say, from the next turn on. A provider that is the same
        object as before keeps what is known of its health; one that is gone still serves the runs
        that began with it.
        """
        kept = {
            name
            for name, provider in fresh._providers.items()
            if self._providers.get(name) is provider
        }
        breakers = {
            name: breaker
            for name, breaker in self._breakers.items()
            if name.partition("/")[0] in kept
        }
        self._former = tuple(
            {
                target.name: target
                for target in (*self._former, *self.targets)
                if target not in fresh.targets
            }.values()
        )[-_MOST_FORMER:]
        serving = {target.provider for target in self._former}
        former = {name: each for name, each in self._providers.items() if name in serving}
        self._breakers = breakers | {
            name: breaker
            for name, breaker in self._breakers.items()
            if name.partition("/")[0] in former
        }
        self._providers = former | fresh._providers
        self._offered = fresh._offered
        self.targets, self._fallbacks = fresh.targets, fresh._fallbacks
        self.prices.adopt(fresh.prices)
        self.rules, self.serving = fresh.rules, fresh.serving
        self._plain = {}

    def opened(self, provider: str) -> ModelProvider | None:
        """Return a provider by its name, if there is one."""
        return self._providers.get(provider)

    @property
    def choosy(self) -> bool:
        """Return whether the choice depends on the request: its label, its size, what is left of a
        budget.
        """
        return bool(self.rules) or any(not target.private for target in self.targets)

    def provider(self, target: Target) -> ModelProvider:
        return self._providers[target.provider]

    def breaker(self, target: Target) -> Breaker:
        known = self._breakers.get(target.name)
        if known is None:
            if len(self._breakers) >= _MOST_BREAKERS:
                self._breakers.clear()
            known = self._breakers[target.name] = Breaker()
        return known

    def healthy(self, target: Target, now_ms: int) -> bool:
        known = self._breakers.get(target.name)
        return known is None or not known.is_open(now_ms)

    def health(self, now_ms: int) -> dict[str, bool]:
        """Return whether each provider can be asked: none of its models is given a rest."""
        resting = {
            name.partition("/")[0]
            for name, breaker in self._breakers.items()
            if breaker.is_open(now_ms)
        }
        return {name: name not in resting for name in self._offered}

    def free(self, target: Target) -> bool:
        price = self.prices.of(target.provider, target.model).price
        return price is not None and not any((price.input, price.output))

    def find(self, wanted: str) -> Target:
        """A target by `provider/model`, a provider for its first model, or a model's name that is
        unique.
        """
        known = {(target.provider, target.model): target for target in self.targets}
        found = model_names.one(wanted, tuple(known))
        if found is not None:
            return known[found]
        provider, _, model = wanted.partition("/")
        for target in self.targets:
            # A provider may serve more models than the config lists.
            if target.provider == provider and model:
                return replace(target, model=model)
        names = ", ".join(target.name for target in self.targets)
        raise InvalidInput(
            f"there is no model {wanted[:100]!r}: configured are {names}", model=wanted[:100]
        )

    def refused(self, wanted: str, options: CallOptions) -> tuple[str, Target] | None:
        """The first of these options that the model which is asked first cannot be told."""
        target = self.find(wanted) if wanted else self.targets[0]
        for name in call_options.said(options):
            if name not in target.carries:
                return name, target
        return None

    def offers(self, name: str) -> bool:
        """Return whether a model can be asked for by this name."""
        try:
            self.find(name)
        except InvalidInput:
            return False
        return True

    def _serving(self, wanted: str) -> Target:
        """The target for a run, which may have begun before its model was removed."""
        try:
            return self.find(wanted)
        except InvalidInput:
            for target in self._former:
                if wanted in (target.name, target.provider, target.model):
                    return target
            raise

    def route(self, need: CallNeeds) -> ModelRoute:
        key = (need.wanted, need.task)
        known = self._plain.get(key)
        if known is not None and self._nothing_special(need) and self._all_well(known, need.now_ms):
            return known
        serving = self.serving.get(need.task, "") if not need.wanted else ""
        if serving:
            need = replace(need, usual=f"models.{need.task} names it")
        first = self._serving(need.wanted or serving) if need.wanted or serving else self.targets[0]
        made = plan(
            need,
            (first,),
            self._fallbacks,
            self.rules,
            lambda target: self.healthy(target, need.now_ms),
            self.free,
        )
        if not made.passed_over and self._nothing_special(need) and len(self._plain) < _MOST_PLAIN:
            self._plain[key] = made
        return made

    def _nothing_special(self, need: CallNeeds) -> bool:
        return not (self.rules or need.private or need.images or need.tokens or need.least)

    def _all_well(self, route: ModelRoute, now_ms: int) -> bool:
        return all(self.healthy(target, now_ms) for target in route.targets)
