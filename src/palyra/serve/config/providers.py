"""Providers and the default model: what the file says, then what is found, then the demo model.

A section in the file wins over a finding of the same name; a default in the file is never
overruled.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.models import model_names
from palyra.serve.config import checks
from palyra.serve.config.schema import Config
from palyra.serve.config.sections import Provider

OLLAMA_URL = "http://127.0.0.1:11434"
DEMO = "demo/demo-1"
_OPENAI_MODEL = "gpt-5-mini"
_OPENAI_TOKENS = 272_000
_ANTHROPIC_MODEL = "claude-sonnet-4-5"
_ANTHROPIC_TOKENS = 200_000
# Ollama cuts what is longer off without a word, so assume what it really keeps by default on a
# small machine.
_OLLAMA_TOKENS = 8_192


class Detected(Struct, frozen=True, kw_only=True):
    """A provider found on the machine. Without a model it can be used, but not chosen by itself;
    `advice` says how then.
    """

    name: str
    found: str
    provider: Provider
    model: str = ""
    advice: str = ""

    @property
    def choice(self) -> str:
        return f"{self.name}/{self.model}" if self.model else ""

    def says(self, default: str) -> str:
        """The sentence for the user, who should know what was chosen without being asked."""
        if not self.model:
            return f"found {self.found}: {self.advice}"
        if self.choice == default:
            return f"found {self.found}: using {self.choice}"
        return f"found {self.found}: {self.choice} can be used too"


class ChosenModels(Struct, frozen=True, kw_only=True):
    """Every provider by name, and the models to use as `provider/model`."""

    providers: dict[str, Provider]
    default: str
    fallbacks: tuple[str, ...]
    notes: tuple[str, ...]


def detect(env: Mapping[str, str], ollama_models: list[str] | None) -> list[Detected]:
    """Return what the environment offers. `ollama_models` is what a local Ollama answered, None if
    there is none.
    """
    found: list[Detected] = []
    if env.get("OPENAI_API_KEY"):
        found.append(_openai(env.get("OPENAI_BASE_URL", "")))
    if env.get("ANTHROPIC_API_KEY"):
        found.append(_anthropic(env.get("ANTHROPIC_BASE_URL", "")))
    if ollama_models is not None:
        found.append(_ollama(ollama_models))
    return found


def choose(config: Config, detected: list[Detected]) -> ChosenModels:
    """Put the file and the findings together, or ConfigInvalid if the file's default cannot be
    used.
    """
    findings = [each for each in detected if each.name not in config.providers]
    providers = {
        "demo": Provider(kind="demo", models=("demo-1",)),
        **{each.name: each.provider for each in findings},
        **{name: _with_models(each) for name, each in config.providers.items()},
    }
    notes: list[str] = []
    if config.models.default:
        default = _full(config.models.default, providers, "models.default")
    else:
        default = _first(config, findings)
        notes += [each.says(default) for each in findings]
        if default == DEMO:
            notes.append(
                "no model provider is set up: using the built-in demo model. `palyra setup` finds a"
                " real one: a server on this machine, or a key such as OPENAI_API_KEY"
            )
    fallbacks: list[str] = []
    for choice in config.models.fallbacks:
        try:
            fallbacks.append(_full(choice, providers, "models.fallbacks"))
        except ConfigInvalid as problem:
            notes.append(f"{problem.message}; it is left out")
    return ChosenModels(
        providers=providers, default=default, fallbacks=tuple(fallbacks), notes=tuple(notes)
    )


def _with_models(provider: Provider) -> Provider:
    """A faulty provider offers every fault where no other list is given."""
    if provider.kind != "faulty" or provider.models:
        return provider
    from palyra.models.faulty.faults import FAULTS

    return replace(provider, models=tuple(FAULTS))


def _first(config: Config, findings: list[Detected]) -> str:
    for name, provider in config.providers.items():
        if provider.models:
            return f"{name}/{provider.models[0]}"
    return next((each.choice for each in findings if each.choice), DEMO)


def _full(choice: str, providers: Mapping[str, Provider], key: str) -> str:
    """`provider/model` for a choice that may name the provider alone, or a model that only one
    provider has.
    """
    name, _, model = choice.partition("/")
    if name not in providers:
        listed = [(each, one) for each, given in providers.items() for one in given.models]
        try:
            found = model_names.one(choice, listed, key=key)
        except InvalidInput as error:
            raise ConfigInvalid(error.message) from error
        if found is not None:
            return "/".join(found)
    provider = providers.get(name)
    if provider is None:
        how = {
            "openai": "set OPENAI_API_KEY",
            "anthropic": "set ANTHROPIC_API_KEY",
            "ollama": f"start Ollama at {OLLAMA_URL}",
        }.get(name, "add it")
        close = checks.nearest(name, list(providers))
        raise ConfigInvalid(
            f"{key} names the provider {name!r}, which is not there: {how}, or write a"
            f" [providers.{name}] section",
            suggestion=close,
        )
    if not model and not provider.models:
        raise ConfigInvalid(
            f"{key} names the provider {name!r}, which lists no models: write {name}/MODEL"
        )
    return f"{name}/{model or provider.models[0]}"


def _openai(base_url: str) -> Detected:
    if base_url:
        # Somebody else's endpoint: the key is theirs and so are the model names.
        provider = Provider(kind="openai-chat", base_url=base_url, api_key="env:OPENAI_API_KEY")
        advice = f"models at {base_url} can be used as openai/MODEL; name one in models.default"
        return Detected(
            name="openai",
            found="OPENAI_API_KEY and OPENAI_BASE_URL",
            provider=provider,
            advice=advice,
        )
    provider = Provider(
        kind="openai-responses",
        api_key="env:OPENAI_API_KEY",
        models=(_OPENAI_MODEL,),
        context_tokens=_OPENAI_TOKENS,
    )
    return Detected(name="openai", found="OPENAI_API_KEY", provider=provider, model=_OPENAI_MODEL)


def _anthropic(base_url: str) -> Detected:
    provider = Provider(
        kind="anthropic",
        base_url=base_url,
        api_key="env:ANTHROPIC_API_KEY",
        models=(_ANTHROPIC_MODEL,),
        context_tokens=_ANTHROPIC_TOKENS,
    )
    return Detected(
        name="anthropic", found="ANTHROPIC_API_KEY", provider=provider, model=_ANTHROPIC_MODEL
    )


def _ollama(models: list[str]) -> Detected:
    provider = Provider(
        kind="openai-chat",
        base_url=f"{OLLAMA_URL}/v1",
        models=tuple(models),
        context_tokens=_OLLAMA_TOKENS,
    )
    return Detected(
        name="ollama",
        found="a local Ollama",
        provider=provider,
        model=models[0] if models else "",
        advice="" if models else "it has no models yet; get one with ollama pull",
    )
