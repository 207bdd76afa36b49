"""Options that the settings give models besides the prompt, and those that a provider cannot be
told.
"""

from collections.abc import Iterator

from palyra.core import call_options
from palyra.core.call_options import CallOptions
from palyra.models.capabilities import CACHES, CARRIES
from palyra.serve.config.schema import Config
from palyra.serve.config.sections import ModelOptions, Provider

_NONE = -1


def of(section: Provider | ModelOptions) -> CallOptions:
    """The options as a request carries them."""
    return CallOptions(
        effort=section.effort,
        temperature=None if section.temperature < 0 else section.temperature,
        top_p=section.top_p or None,
        max_tokens=section.max_tokens or None,
        stop=section.stop,
        seed=None if section.seed == _NONE else section.seed,
        service_tier=section.service_tier,
    )


def for_model(config: Config, provider: str, settings: Provider, model: str) -> CallOptions:
    """Return the provider's options, and over them those that name the model, in the order of the
    file.
    """
    options = of(settings)
    for section in config.model_options.values():
        if f"{provider}/{model}" in section.models:
            options = call_options.over(options, of(section))
    return options


def carries(settings: Provider) -> frozenset[str]:
    return CARRIES.get(settings.kind, call_options.ALL)


def contradictions(config: Config) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name, provider in config.providers.items():
        can = carries(provider)
        for option in call_options.said(of(provider)):
            if option not in can:
                yield ("providers", name, option), _cannot(provider.kind, option), ""
        if provider.api_version and not provider.kind.startswith("openai-"):
            message = f"belongs to Azure OpenAI, and this provider is {provider.kind}"
            yield ("providers", name, "api_version"), message, ""
        caches = CACHES.get(provider.kind, ("auto",))
        if provider.prompt_cache not in caches:
            choices = ", ".join(f'"{each}"' for each in caches)
            message = f"kind {provider.kind} takes only {choices}"
            yield ("providers", name, "prompt_cache"), message, ""
    for name, section in config.model_options.items():
        if not section.models:
            message = 'is missing; name the models that the options are for, as "provider/model"'
            yield ("model_options", name, "models"), message, ""
        for full in section.models:
            found = config.providers.get(full.partition("/")[0])
            for option in call_options.said(of(section)) if found else ():
                if found and option not in carries(found):
                    yield ("model_options", name, option), _cannot(found.kind, option), ""


def _cannot(kind: str, option: str) -> str:
    return f"cannot be said to a provider of kind {kind}; leave {option} out"
