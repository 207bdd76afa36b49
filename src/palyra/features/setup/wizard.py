"""Setting a provider up from a terminal or a script: what was found, one choice, one call, and then
it is in force.

The daemon does all of it; this asks the questions. Without a terminal nothing is asked: what is not
said is chosen, and what cannot be chosen is an error that says what to give.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palyra.cli.confirm import ask, confirm
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client.types import admin
from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.features.setup import plan, vendors
from palyra.features.setup.model import FoundModel, FoundProvider, NewProvider, ProviderKind

# A local server may have to load the model first.
_TRIAL_S = 240.0
_LOOK_S = 60.0
# Large models take minutes to be read from a disk.
_LOADS_S = 600.0
_AGAIN_S = 1.0
_SHOWN = 20
NOTHING_FOUND = (
    "no model server answers on this machine and no key is in the environment. Start Ollama (ollama"
    " serve), LM Studio, llama.cpp or vLLM; or set a key such as OPENAI_API_KEY; or name one:"
    " palyra setup --provider NAME --key-env VARIABLE, or --url http://HOST:PORT/v1"
)


T = TypeVar("T")


class Wishes(Struct, frozen=True, kw_only=True):
    """Wishes from the command line; empty: to be found or asked."""

    provider: str = ""
    model: str = ""
    url: str = ""
    kind: ProviderKind | None = None
    key_env: str = ""
    test: bool = True
    yes: bool = False


class SetUp(Struct, frozen=True, kw_only=True):
    """Result of the set-up."""

    provider: str
    model: str
    context_tokens: int
    tools: bool | None
    settings: dict[str, object]
    trial: Struct | None = None


class Wizard:
    def __init__(self, state: CliState, wishes: Wishes) -> None:
        self._state = state
        self._wishes = wishes
        self._asks = not (wishes.yes or state.as_json) and sys.stdin.isatty()

    def run(self) -> SetUp:
        chosen = self._provider()
        new = self._with_key(chosen)
        models = self._models(chosen, new)
        model = self._model(chosen, models)
        new = replace(new, models=plan.listed(chosen, models, model), first=True)
        trial = self._try(new) if self._wishes.test else None
        kept = trial.context_tokens if trial is not None else 0
        windows = plan.windows(new.models, models, model, kept)
        sees = next((each.vision for each in models if each.name == model), None)
        new = replace(new, windows=windows, vision=False if sees is False else None)
        settings = plan.settings(new)
        self._tell_settings(settings)
        if self._asks:
            confirm("Write these settings?")
        new = self._saved(new)
        return SetUp(
            provider=new.name,
            model=f"{new.name}/{model}",
            context_tokens=next(
                (int(each.rpartition("=")[2]) for each in windows if each.startswith(f"{model}=")),
                0,
            ),
            tools=trial.tools if trial is not None else None,
            settings=plan.settings(new),
            trial=trial,
        )

    # Which provider

    def _provider(self) -> FoundProvider:
        if self._wishes.url:
            return self._at(self._wishes.url)
        found = self._found()
        if self._wishes.provider:
            return self._named(found, self._wishes.provider)
        usable = [each for each in found if each.loading or not each.advice]
        self._tell_found(found)
        if self._asks:
            return self._picked(found)
        if not usable:
            advice = next((each.advice for each in found if each.advice), "")
            raise NotFound(advice or NOTHING_FOUND)
        return self._loaded(usable[0])

    def _found(self) -> list[FoundProvider]:
        """Return what the daemon finds, and keys that only this shell has."""
        found = [_ours(each) for each in self._state.api.within(_LOOK_S).find_providers().found]
        names = {each.name for each in found}
        here = [each for each in vendors.in_environment(self._state.env) if each.name not in names]
        return [*found, *here]

    def _at(self, url: str) -> FoundProvider:
        name = self._wishes.provider or "local"
        kind = self._wishes.kind or "openai-chat"
        new = NewProvider(name=name, kind=kind, base_url=url, key_from=self._wishes.key_env)
        found = self._once_loaded(new)
        # The address is the one that was given; what answers there gives it its name.
        return replace(found, base_url=found.base_url or url, name=self._wishes.provider or name)

    def _once_loaded(self, new: NewProvider) -> FoundProvider:
        """Return what a server offers. One that is still loading its model is asked until ready."""
        api = self._state.api.within(_LOOK_S)
        until_s, told = time.monotonic() + _LOADS_S, False
        while True:
            found = _ours(self._asked(api.list_provider_models, new))
            if not found.loading or time.monotonic() > until_s:
                return found
            if not told and not self._state.as_json:
                self._state.out.note(f"the model server at {new.base_url} is loading its model …")
            told = True
            time.sleep(_AGAIN_S)

    def _loaded(self, found: FoundProvider) -> FoundProvider:
        """The same server, once it has loaded its model; an error if it cannot be used."""
        if found.loading:
            place = found.base_url
            self._once_loaded(NewProvider(name=found.name, kind=found.kind, base_url=place))
            found = next((each for each in self._found() if each.base_url == place), found)
        if found.advice:
            raise NotFound(found.advice)
        return found

    def _named(self, found: Sequence[FoundProvider], name: str) -> FoundProvider:
        for each in found:
            if each.name == name:
                return self._loaded(each)
        if vendor := vendors.BY_NAME.get(name):
            return vendors.offer(vendor)
        servers = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
        if name in servers:
            raise NotFound(
                f"nothing answers as {name} at 127.0.0.1:{servers[name]}: start it, or say where it"
                " is with --url http://HOST:PORT/v1"
            )
        known = ", ".join((*servers, *vendors.BY_NAME))
        raise NotFound(
            f"{name} is not known: give its address with --url, or use one of {known}", name=name
        )

    def _tell_found(self, found: Sequence[FoundProvider]) -> None:
        if self._state.as_json:
            return
        for number, each in enumerate(found, 1):
            what = each.advice or (
                f"{len(each.models)} models" if len(each.models) != 1 else each.models[0].name
            )
            where = each.base_url if each.local else each.key.removeprefix("env:")
            again = " (configured)" if each.configured else ""
            self._say(f"{number:>3}  {each.title}{again} · {where} · {what}")

    def _picked(self, found: Sequence[FoundProvider]) -> FoundProvider:
        if not found:
            self._say("No model server answers on this machine, and no key is in the environment.")
        others = [each for each in vendors.VENDORS if each.name not in {f.name for f in found}]
        for number, vendor in enumerate(others, len(found) + 1):
            self._say(f"{number:>3}  {vendor.title} · enter a key")
        number = len(found) + len(others) + 1
        self._say(f"{number:>3}  Another server · enter its address")
        usable = next((at for at, each in enumerate(found, 1) if not each.advice), number)
        chosen = _number("Provider", number, usable)
        if chosen == number:
            return self._at(click.prompt("Address (http://HOST:PORT/v1)", err=True))
        if chosen > len(found):
            return vendors.offer(others[chosen - len(found) - 1])
        return self._loaded(found[chosen - 1])

    # Its key

    def _with_key(self, chosen: FoundProvider) -> NewProvider:
        new = NewProvider(
            name=chosen.name,
            kind=self._wishes.kind or chosen.kind,
            base_url=chosen.base_url,
        )
        variable = self._wishes.key_env or chosen.key.removeprefix("env:")
        if variable:
            if not self._state.env.get(variable, "").strip() and not chosen.key:
                raise InvalidInput(f"{variable} is not set here: set it, or leave --key-env out")
            return replace(new, key_from=variable)
        if chosen.local or chosen.configured:
            return new
        if not self._asks:
            names = " or ".join(
                vendors.BY_NAME[chosen.name].variables if chosen.name in vendors.BY_NAME else ()
            )
            raise InvalidInput(
                f"{chosen.title} needs a key: set {names or 'it in a variable'} and name it with"
                " --key-env, or run this on a terminal and type it"
            )
        key = ask(f"the key of {chosen.title}, for the vault").strip()
        return replace(new, key=key)

    # Its model

    def _models(self, chosen: FoundProvider, new: NewProvider) -> list[FoundModel]:
        if chosen.local:
            if not chosen.models and not self._wishes.model:
                raise NotFound(
                    chosen.advice or f"{chosen.base_url} lists no models: name one with --model"
                )
            return list(chosen.models)
        api = self._state.api.within(_LOOK_S)
        offered = _ours(self._asked(api.list_provider_models, new))
        # What is known of the usual model beforehand, the vendor's list does not always say.
        known = {each.name: each for each in chosen.models}
        return [
            known[each.name] if each.name in known and not each.context_tokens else each
            for each in offered.models
        ] or list(chosen.models)

    def _asked(self, verb: Callable[..., T], new: NewProvider) -> T:
        """Ask about a provider that is not saved. A key that only this shell has goes along."""
        key = new.key or (self._state.env.get(new.key_from, "") if new.key_from else "")
        return verb(
            name=new.name,
            kind=new.kind,
            base_url=new.base_url,
            models=new.models,
            key=key,
            key_from="" if key else new.key_from,
        )

    def _model(self, chosen: FoundProvider, models: Sequence[FoundModel]) -> str:
        names = [each.name for each in models]
        if wanted := self._wishes.model:
            bare = [each for each in names if each.partition(":")[0] == wanted]
            if wanted in names or not names or not chosen.local:
                return wanted
            if len(bare) == 1:
                return bare[0]
            raise NotFound(
                f"{chosen.title} has no model {wanted!r}: it has {', '.join(names[:_SHOWN])}",
                model=wanted,
            )
        usual = chosen.models[0].name if chosen.models and not chosen.local else ""
        if not names and not usual:
            raise NotFound(f"{chosen.title} lists no models: name one with --model")
        first = usual or next((each.name for each in models if each.tools is not False), names[0])
        if not self._asks or len(names) < 2:
            return first
        shown = list(dict.fromkeys((first, *names)))
        for number, name in enumerate(shown[:_SHOWN], 1):
            model = next((each for each in models if each.name == name), None)
            self._say(f"{number:>3}  {plan.about(model, name)}")
        if len(shown) > _SHOWN:
            self._say(f"     … and {len(shown) - _SHOWN} more: name one with --model")
        return shown[_number("Model", min(len(shown), _SHOWN), 1) - 1]

    # One call

    def _try(self, new: NewProvider) -> admin.Trial:
        if not self._state.as_json:
            self._state.out.note(f"asking {new.models[0]} to call a tool …")
        trial = self._asked(self._state.api.within(_TRIAL_S).test_provider, new)
        if not trial.ok:
            said = f"{trial.message}; {trial.fix}" if trial.fix else trial.message
            if not self._asks:
                raise Unavailable(f"{clean(said)}. Nothing was written; --no-test writes it anyway")
            self._say(f"✗ {said}", "red")
            confirm("Write the settings anyway?")
        elif not self._state.as_json:
            mark = "✓" if trial.tools else "!"
            seconds = f"{trial.took_ms / 1000:.1f} s"
            said = f"{mark} {trial.message} in {seconds}"
            said += " and called the tool" if trial.tools else ", but called no tool"
            self._say(said, "green" if trial.tools else "yellow")
            if trial.fix:
                self._say(f"  {trial.fix}")
        return trial

    # The settings

    def _saved(self, new: NewProvider) -> NewProvider:
        if new.key_from:
            try:
                self._save(new)
            except Conflict as error:
                value = self._state.env.get(new.key_from, "")
                if "variable" not in error.details or not value:
                    raise
                # The daemon runs elsewhere than this shell: it cannot see the variable.
                self._state.out.note(
                    f"the daemon was started without {new.key_from}: the key goes into the vault"
                )
                new = replace(new, key=value, key_from="")
            else:
                return new
        self._save(new)
        return new

    def _save(self, new: NewProvider) -> None:
        self._state.api.within(_LOOK_S).save_provider(
            name=new.name,
            kind=new.kind,
            base_url=new.base_url,
            models=new.models,
            key=new.key,
            key_from=new.key_from,
            first=new.first,
            windows=new.windows,
            vision=new.vision,
        )

    def _tell_settings(self, settings: dict[str, object]) -> None:
        if self._state.as_json:
            return
        self._say("Settings:")
        for key, value in settings.items():
            self._say(f"  {key} = {plan.toml(value)}")

    def _say(self, text: str, *styles: str) -> None:
        self._state.out.line(self._state.out.style(clean(text), *styles))


def _ours(found: admin.FoundProvider) -> FoundProvider:
    return msgspec.convert(found, FoundProvider, from_attributes=True)


def _number(what: str, most: int, usual: int) -> int:
    return int(click.prompt(what, type=click.IntRange(1, most), default=usual, err=True))
