"""Who answers: the configured providers, their models, and who condenses a conversation."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.core.events import TaskClass
from palyra.core.ports import ModelProvider
from palyra.models.dialects import open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.prices import Prices
from palyra.models.routing import Models, RouteRule, Target
from palyra.serve import config
from palyra.serve.config import ChosenModels, Loaded, Provider
from palyra.serve.config.schema import RoutingRule

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def open_models(
    loaded: Loaded,
    chosen: ChosenModels,
    env: Mapping[str, str],
    http: HttpClient,
    given: Mapping[str, ModelProvider],
) -> Models:
    providers = {
        name: given.get(name) or _provider(name, settings, env, http)
        for name, settings in chosen.providers.items()
    }
    window = loaded.config.models.context_tokens

    def target(full: str) -> Target:
        provider, _, model = full.partition("/")
        given = chosen.providers[provider]
        return Target(
            provider,
            model,
            given.context_tokens or window,
            given.vision and given.kind != "demo",
            given.private,
        )

    listed = [
        f"{name}/{model}"
        for name, settings in chosen.providers.items()
        for model in settings.models
    ]
    wanted = dict.fromkeys((chosen.default, *chosen.fallbacks, *listed))
    prices = Prices(
        loaded.home / "prices.toml",
        [name for name, each in chosen.providers.items() if _costs_nothing(each)],
    )
    models = Models(
        providers,
        [target(full) for full in wanted],
        [target(full) for full in chosen.fallbacks],
        prices,
    )
    named: dict[TaskClass, str] = {
        "summary": loaded.config.models.summary,
        "extraction": loaded.config.models.extraction,
    }
    models.serving = {task: name for task, name in named.items() if name}
    models.rules = tuple(
        _rule(name, given, models) for name, given in loaded.config.routing.items()
    )
    return models


def _costs_nothing(settings: Provider) -> bool:
    """What runs on this machine."""
    return (
        settings.kind in ("demo", "scripted")
        or urlsplit(settings.base_url).hostname in _THIS_MACHINE
    )


def _rule(name: str, given: RoutingRule, models: Models) -> RouteRule:
    try:
        use = tuple(models.find(each) for each in given.use)
    except InvalidInput as error:
        raise ConfigInvalid(f"routing.{name}.use: {error.message}") from error
    return RouteRule(
        name=name,
        use=use,
        tasks=msgspec.convert(given.tasks, tuple[TaskClass, ...]),
        private=None if given.label == "any" else given.label == "private",
        tokens_above=given.tokens_above,
        budget_left_below=given.budget_left_below,
        fallbacks=given.fallbacks,
    )


def _provider(
    name: str, settings: Provider, env: Mapping[str, str], http: HttpClient
) -> ModelProvider:
    if settings.kind == "demo":
        from palyra.models.demo import DemoModel

        return DemoModel()
    if settings.kind == "scripted":
        from palyra.models.scripted import Script, ScriptedModel

        return ScriptedModel(Script.load(Path(settings.script)))
    key = config.secret(settings.api_key, env) if settings.api_key else ""
    endpoint = ProviderEndpoint(
        name=name, base_url=settings.base_url, api_key=key, idle_s=settings.timeout_ms / 1000
    )
    return open_provider(settings.kind, endpoint, http)
