"""Which provider and model serve a run: the one asked for or the default, then the fallbacks, healthy ones first."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from palyra.domain.errors import InvalidInput
from palyra.domain.events import RoutePlanned
from palyra.domain.ports import ModelProvider
from palyra.models.reliability import Breaker

# Of a model's window, what an input may take: room is left for the reply and for the error of counting by characters.
WINDOW_SHARE = 0.75


class Target(Struct, frozen=True):
    provider: str
    model: str
    context_tokens: int
    # Whether it can look at images.
    vision: bool = True

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def budget(self) -> int:
        """How many tokens an input for it may have."""
        return int(self.context_tokens * WINDOW_SHARE)


class Route(Struct, frozen=True):
    """Never empty. The first target is asked first."""

    targets: tuple[Target, ...]
    reason: str

    def planned(self, index: int, reason: str = "") -> RoutePlanned:
        target = self.targets[index]
        return RoutePlanned(
            provider=target.provider,
            model=target.model,
            reason=reason or self.reason,
            fallbacks=tuple(other.name for other in self.targets[index + 1 :]),
        )


class Models:
    """The configured providers and what is known of their health."""

    def __init__(self, providers: Mapping[str, ModelProvider], targets: Sequence[Target], fallbacks: Sequence[Target] = ()) -> None:
        """`targets` lists every model that may be asked for by name, the default first; `fallbacks` step in when it fails."""
        self._providers = dict(providers)
        self.targets = tuple(targets)
        self._fallbacks = tuple(fallbacks)
        self._breakers = {name: Breaker() for name in providers}

    def provider(self, target: Target) -> ModelProvider:
        return self._providers[target.provider]

    def breaker(self, target: Target) -> Breaker:
        return self._breakers[target.provider]

    def health(self, now_ms: int) -> dict[str, bool]:
        return {name: not breaker.is_open(now_ms) for name, breaker in self._breakers.items()}

    def find(self, wanted: str) -> Target:
        """A target by `provider/model`, provider or model name."""
        for target in self.targets:
            if wanted in (target.name, target.provider, target.model):
                return target
        provider, _, model = wanted.partition("/")
        for target in self.targets:
            # A provider may serve more models than the config lists.
            if target.provider == provider and model:
                return Target(provider, model, target.context_tokens, target.vision)
        known = ", ".join(target.name for target in self.targets)
        raise InvalidInput(f"there is no model {wanted[:100]!r}: configured are {known}", model=wanted[:100])

    def route(self, wanted: str, now_ms: int) -> Route:
        first = self.find(wanted) if wanted else self.targets[0]
        reason = "asked for by the caller" if wanted else "the default model"
        rest = [target for target in self._fallbacks if target != first]
        targets = [first, *rest]
        healthy = [target for target in targets if not self.breaker(target).is_open(now_ms)]
        if healthy and healthy[0] is not first:
            reason = f"{first.provider} is failing right now"
        # With every circuit open the first is tried all the same: the user is told what it says.
        return Route(tuple(healthy or targets), reason)
