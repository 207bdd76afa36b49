"""Models that answer: the configured providers, their models, and who condenses a conversation."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.core.events import TaskClass
from palyra.core.ports import ModelProvider
from palyra.models.call_limits import is_local
from palyra.models.dialects import open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.prices import Prices
from palyra.models.routing import Models, RouteRule, Target
from palyra.models.text_tools.modes import FoundModes
from palyra.models.text_tools.provider import ToolProtocols
from palyra.serve import config
from palyra.serve.config import (
    ChosenModels,
    Loaded,
    Provider,
    call_limits,
    model_options,
    providers_tools,
    windows,
)
from palyra.serve.config.schema import RoutingRule
from palyra.serve.config.sections import BUILT_IN

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def open_models(
    loaded: Loaded,
    chosen: ChosenModels,
    env: Mapping[str, str],
    http: HttpClient,
    given: Mapping[str, ModelProvider],
    found: FoundModes,
) -> Models:
    providers = {
        name: given.get(name) or _with_tools(_provider(name, settings, env, http), settings, found)
        for name, settings in chosen.providers.items()
    }
    window = loaded.config.models.context_tokens

    def target(full: str) -> Target:
        provider, _, model = full.partition("/")
        given = chosen.providers[provider]
        return Target(
            provider,
            model,
            windows.of(given, model) or window,
            given.vision and given.kind != "demo",
            given.private,
            model_options.for_model(loaded.config, provider, given, model),
            model_options.carries(given),
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
        [name for name, each in chosen.providers.items() if each.prompt_cache == "1h"],
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
    for task, name in models.serving.items():
        _known(models, name, f"models.{task}")
    models.rules = tuple(
        _rule(name, given, models) for name, given in loaded.config.routing.items()
    )
    return models


def _known(models: Models, name: str, key: str) -> Target:
    try:
        return models.find(name)
    except InvalidInput as error:
        raise ConfigInvalid(f"{key}: {error.message}") from error


def _costs_nothing(settings: Provider) -> bool:
    """Return whether it runs on this machine."""
    return settings.kind in BUILT_IN or urlsplit(settings.base_url).hostname in _THIS_MACHINE


def _rule(name: str, given: RoutingRule, models: Models) -> RouteRule:
    use = tuple(_known(models, each, f"routing.{name}.use") for each in given.use)
    return RouteRule(
        name=name,
        use=use,
        tasks=msgspec.convert(given.tasks, tuple[TaskClass, ...]),
        private=None if given.label == "any" else given.label == "private",
        tokens_above=given.tokens_above,
        budget_left_below=given.budget_left_below,
        fallbacks=given.fallbacks,
    )


def _with_tools(provider: ModelProvider, settings: Provider, found: FoundModes) -> ModelProvider:
    """The provider, able to give tools to models that take none."""
    if settings.kind == "demo":
        return provider
    return ToolProtocols(
        provider, providers_tools.modes(settings), found, providers_tools.digest(settings)
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
    if settings.kind == "faulty":
        from palyra.models.faulty import FaultyModel

        return FaultyModel(name, http, call_limits.of(settings))
    key = config.secret(settings.api_key, env) if settings.api_key else ""
    endpoint = ProviderEndpoint(
        name=name,
        base_url=settings.base_url,
        api_key=key,
        limits=call_limits.of(settings),
        prompt_cache=settings.prompt_cache,
        api_version=settings.api_version,
        # llama.cpp does; servers that do not know the wish pass over it.
        reports_progress=is_local(settings.base_url),
    )
    return open_provider(settings.kind, endpoint, http)
