"""`palyra setup` and `palyra models`: providers and models, without a file to edit. What changes is
in force at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import click

from palyra.cli import daemon_process, formatting
from palyra.cli.commands import command, group, verb
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client.types.admin import ProviderInfo
from palyra.client.types.status import ModelInfo
from palyra.core.errors import InvalidInput, NotFound, PalyraError
from palyra.features.setup.model import ProviderKind
from palyra.models import model_names
from palyra.models.call_limits import is_local
from palyra.system.private_files import write_private

_TRIAL_S = 240.0
_LOOK_S = 60.0
# Left in the home folder when the set-up was offered.
_OFFERED = "setup_offered"
_REAL: tuple[ProviderKind, ...] = get_args(ProviderKind)


@command(
    "setup",
    help=(
        "Find a model and use it: servers on this machine, keys in the environment, or an address"
        " and a key that you give."
    ),
)
@click.option("--provider", default="", metavar="NAME", help="Set up this one: ollama, openai, …")
@click.option("--model", default="", metavar="NAME", help="Use this model of it.")
@click.option("--url", default="", metavar="URL", help="Its address, as http://HOST:PORT/v1.")
@click.option("--kind", type=click.Choice(_REAL), help="The dialect it speaks.")
@click.option(
    "--key-env", default="", metavar="NAME", help="The environment variable that holds its key."
)
@click.option("--no-test", is_flag=True, help="Do not try a call first.")
@click.option("--yes", is_flag=True, help="Ask nothing: take what is found first.")
def setup(
    state: CliState,
    provider: str,
    model: str,
    url: str,
    kind: ProviderKind | None,
    key_env: str,
    no_test: bool,
    yes: bool,
) -> None:
    from palyra.features.setup.wizard import Wishes, Wizard

    wishes = Wishes(
        provider=provider,
        model=model,
        url=url,
        kind=kind,
        key_env=key_env,
        test=not no_test,
        yes=yes,
    )
    with _daemon(state) as started:
        done = Wizard(state, wishes).run()
    if state.out.as_json:
        state.out.json(done)
        return
    state.out.line(f"{clean(done.model)} is used from now on.")
    begin = "palyra up" if started else 'palyra ask "what is in this folder?"'
    state.out.line(f"Next: {begin}. `palyra models` lists what there is.")


def offer(state: CliState) -> None:
    """Offer the set-up at the first start on a terminal where only the demo model answers. Whoever
    declines is not asked again.
    """
    from palyra.features.setup.wizard import Wishes, Wizard

    known = state.home / _OFFERED
    default = next((each for each in state.api.list_models().models if each.default), None)
    named = state.settings.value("models.default")
    if default is None or default.provider != "demo" or named or known.exists():
        return
    write_private(known, b"")
    if not click.confirm("Only the demo model answers. Set a real one up now?", True, err=True):
        state.out.note("`palyra setup` does it later")
        return
    try:
        done = Wizard(state, Wishes()).run()
    except PalyraError as error:
        # The chat begins all the same.
        state.out.note(f"{clean(error.message)}; `palyra setup` tries again")
    else:
        state.out.line(f"{clean(done.model)} is used from now on.")


@contextmanager
def _daemon(state: CliState) -> Iterator[bool]:
    """The daemon that runs, or one for as long as this takes; whether it was started for it."""
    if daemon_process.is_up(state.home, state.env):
        yield False
        return
    process = daemon_process.start(state.home, 0, lifeline=True)
    try:
        daemon_process.wait_ready(process, state.home, state.env)
        yield True
    finally:
        daemon_process.end(process)


models = group(
    "models", "Models: list, test, add, default, remove. `palyra setup` finds them.", default="list"
)


@verb(models, "list", help="List models with window, price, tools, vision and state.")
def list_(state: CliState) -> None:
    found = state.api.list_models().models
    tools = _tools_of(state, found)
    if state.out.as_json:
        shown = [
            {**_fields(each), "tools": tools.get(each.name), "tool_mode": each.tools}
            for each in found
        ]
        state.out.json({"models": shown})
        return
    rows = [
        [
            "*" if each.default else "",
            each.name,
            formatting.count(each.context_tokens),
            _price(each),
            _TOOLS.get(each.tools) or _yes(tools.get(each.name)),
            _yes(each.vision),
            "ready" if each.healthy else "failing",
        ]
        for each in found
    ]
    state.out.table(
        ["", "model", "window", "$ in/out per 1M", "tools", "vision", "state"],
        rows,
        right=["window"],
    )
    if all(each.provider == "demo" for each in found):
        state.out.note("only the demo model is there: `palyra setup` finds a real one")


# How a model is given tools says more than what its server says of it.
_TOOLS = {"text": "as text", "none": "no"}


def _fields(each: ModelInfo) -> dict[str, object]:
    return {name: getattr(each, name) for name in each.__struct_fields__}


def _tools_of(state: CliState, found: list[ModelInfo]) -> dict[str, bool]:
    """Return which models can call tools, where their server says so: those on this machine are
    asked.
    """
    known: dict[str, bool] = {}
    for each in state.api.list_providers().providers:
        if each.kind not in _REAL or not is_local(each.base_url):
            continue
        offered = state.api.within(_LOOK_S).list_provider_models(
            name=each.name, kind=_kind(each), base_url=each.base_url
        )
        for model in offered.models:
            if model.tools is not None:
                known[f"{each.name}/{model.name}"] = model.tools
    return {name: able for name, able in known.items() if name in {each.name for each in found}}


def _price(each: ModelInfo) -> str:
    if each.input_price is None or each.output_price is None:
        return "unknown"
    if not each.input_price and not each.output_price:
        return "free"
    return f"{each.input_price:g} / {each.output_price:g}"


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


@verb(models, "test", help="Ask a model to call a tool: the one that is named, or the default one.")
@click.argument("model", default="")
@click.option(
    "--faults",
    is_flag=True,
    help="Try an agent with models that misbehave, each in its own way, instead.",
)
def test(state: CliState, model: str, faults: bool) -> int:
    if faults:
        return _faults(state)
    info, provider = _one(state, model)
    if provider.kind not in _REAL:
        state.out.result(
            {"ok": True, "model": info.name, "message": "built in"},
            f"{clean(info.name)} is built in: there is nobody to ask.",
        )
        return 0
    trial = state.api.within(_TRIAL_S).test_provider(
        name=provider.name, kind=_kind(provider), base_url=provider.base_url, models=[info.model]
    )
    seconds = f"{trial.took_ms / 1000:.1f} s"
    said = f"{clean(trial.message)}" + (f" in {seconds}" if trial.ok else "")
    said += {True: " and called the tool", False: ", but called no tool", None: ""}[trial.tools]
    mark = "✗ " if not trial.ok else "✓ " if trial.tools else "! "
    state.out.result(trial, mark + said + (f"\n  {clean(trial.fix)}" if trial.fix else ""))
    return 0 if trial.ok else 1


def _faults(state: CliState) -> int:
    from palyra.features.setup import fault_trial

    def told(outcome: fault_trial.FaultOutcome) -> None:
        if not state.out.as_json:
            mark = "✗" if outcome.problem else "✓"
            said = outcome.problem or ", ".join(outcome.classes) or "answered"
            state.out.line(f"{mark} {outcome.name:<22} {outcome.says}: {clean(said)}")

    tried = fault_trial.trial(state.home, state.env, told)
    bad = sum(bool(each.problem) for each in tried)
    good = len(tried) - bad
    state.out.result(
        {"faults": tried, "ok": not bad},
        f"{good} of {len(tried)} faults ended with an answer or a clear sentence.",
    )
    return 1 if bad else 0


@verb(models, "add", help="Offer one more model of a provider, as PROVIDER/MODEL.")
@click.argument("model")
@click.option("--window", type=click.IntRange(1), help="How many tokens it takes.")
def add(state: CliState, model: str, window: int | None) -> None:
    name, _, wanted = model.partition("/")
    if not wanted:
        raise InvalidInput("name the provider too: palyra models add PROVIDER/MODEL")
    provider = _provider(state, name)
    if wanted in provider.models and not window:
        raise InvalidInput(f"{model} is there already")
    _save(
        state,
        provider,
        (*(each for each in provider.models if each != wanted), wanted)
        if wanted not in provider.models
        else provider.models,
        {wanted: window} if window else {},
    )
    state.out.result({"added": model}, f"{clean(model)} can be used now.")


@verb(models, "default", help="Use this model where nothing else is said.")
@click.argument("model")
def default(state: CliState, model: str) -> None:
    changed = state.api.set_default_model(model=model)
    now = next((each.name for each in state.api.list_models().models if each.default), model)
    state.out.result(
        {"default": now, "restart": changed.restart}, f"{clean(now)} is used from now on."
    )


@verb(models, "remove", help="Offer a model no longer; of a provider, all of them.")
@click.argument("model")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(state: CliState, model: str, yes: bool) -> None:
    providers = {each.name: each for each in state.api.list_providers().providers}
    if model in providers:
        if providers[model].kind not in _REAL:
            raise InvalidInput(f"{model} is part of Palyra: it is used only where it is chosen")
        if providers[model].found:
            raise InvalidInput(
                f"{model} is not in the settings: it was found on this machine, and goes when it is"
                " stopped or its key is unset"
            )
        if not yes:
            confirm(f"Remove the provider {clean(model)} with all its models?")
        state.api.remove_provider(name=model)
        state.out.result({"removed": model}, f"{clean(model)} is removed.")
        return
    info, provider = _one(state, model)
    left = tuple(each for each in provider.models if each != info.model)
    if not left:
        raise InvalidInput(
            f"{info.name} is the only model of {provider.name}: palyra models remove"
            f" {provider.name} removes the provider"
        )
    if info.default:
        raise InvalidInput(
            f"{info.name} is the default: choose another one first with palyra models default"
        )
    if not yes:
        confirm(f"Remove {clean(info.name)}?")
    _save(state, provider, left, {})
    state.out.result({"removed": info.name}, f"{clean(info.name)} is removed.")


def _one(state: CliState, wanted: str) -> tuple[ModelInfo, ProviderInfo]:
    """A model by its name, or the default one, with its provider."""
    listed = state.api.list_models().models
    known = {(each.provider, each.model): each for each in listed}
    if wanted:
        found = model_names.one(wanted, tuple(known))
        if found is None:
            raise NotFound(
                f"there is no model {wanted}: there are {', '.join(e.name for e in listed)}"
            )
        info = known[found]
    else:
        info = next(each for each in listed if each.default)
    return info, _provider(state, info.provider)


def _provider(state: CliState, name: str) -> ProviderInfo:
    found = {each.name: each for each in state.api.list_providers().providers}
    if name not in found:
        raise NotFound(
            f"there is no provider {name}: there are {', '.join(found)}; `palyra setup` adds one"
        )
    return found[name]


def _kind(provider: ProviderInfo) -> ProviderKind:
    for kind in _REAL:
        if provider.kind == kind:
            return kind
    raise InvalidInput(f"{provider.name} is {provider.kind}: its models are part of Palyra")


def _save(
    state: CliState, provider: ProviderInfo, listed: tuple[str, ...], windows: dict[str, int]
) -> None:
    kept = dict(each.rpartition("=")[::2] for each in provider.windows)
    kept |= {name: str(tokens) for name, tokens in windows.items()}
    state.api.within(_LOOK_S).save_provider(
        name=provider.name,
        kind=_kind(provider),
        base_url=provider.base_url,
        models=listed,
        windows=[f"{name}={tokens}" for name, tokens in kept.items() if name in listed],
        key_from=provider.key.removeprefix("env:") if provider.key.startswith("env:") else "",
    )
