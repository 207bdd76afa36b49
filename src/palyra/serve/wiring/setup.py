"""Setting the daemon up from within: providers with their keys in the vault, and the preset of the
policies.

The config file stays the one place where settings are; a change is checked as a whole before it is
written, and recorded.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from palyra.core.errors import ConfigInvalid, Conflict, InvalidInput, NotFound, PalyraError
from palyra.core.events import AdminChanged
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.core.messages import ModelFailure, ModelRequest, Text, UserMessage
from palyra.features.setup.model import (
    NewChannel,
    NewProvider,
    PresetName,
    ProviderInfo,
    Setting,
    Trial,
)
from palyra.features.vault.rules import NewSecret
from palyra.features.vault.service import Vault
from palyra.models.dialects import HOMES, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.routing import Models
from palyra.policy import change_log, sources, store
from palyra.policy.store import PolicyStore
from palyra.serve import config
from palyra.serve.config import ChosenModels, Config, Provider
from palyra.serve.config.checks import WELL_KNOWN
from palyra.serve.wiring import channel_setup
from palyra.store import tape
from palyra.store.database import Database
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.setup")

_LONGEST_TRIAL_S = 30
_IN_VAULT = "vault:"
_CHANGEABLE = ("learning.", "healing.")
_FIXES = {
    "auth": "check the key",
    "network": "check the address and the network",
    "quota": "check your account there",
}


async def vault_keys(chosen: ChosenModels, vault: Vault) -> dict[str, str]:
    """The keys of providers that are in the vault, by their references. One that cannot be had is
    empty: then it says so.
    """
    found: dict[str, str] = {}
    for name, provider in chosen.providers.items():
        if provider.api_key.startswith(_IN_VAULT):
            found[provider.api_key] = await _from_vault(vault, name, provider.api_key)
    return found


async def _from_vault(vault: Vault, name: str, reference: str) -> str:
    try:
        return await vault.resolve(reference, principal=OWNER, session="", tool=_user(name))
    except PalyraError as error:
        log.warning("the key of the provider %s cannot be had: %s", name, error.message)
        return ""


def _user(provider: str) -> str:
    """Who may use a key: this provider, and no tool of an agent."""
    return f"model:{provider}"


def _same_party(before: Provider, new: NewProvider) -> bool:
    """Whether both are at the same place, so that a key of the one is known to the other
    already.
    """
    homes = {str(kind): home for kind, home in HOMES.items()}
    try:
        one, other = (urlsplit(each.base_url or homes.get(each.kind, "")) for each in (before, new))
    except ValueError:
        return False
    return (one.scheme.lower(), one.netloc.lower()) == (other.scheme.lower(), other.netloc.lower())


class FileSetup:
    def __init__(
        self,
        home: Path,
        env: Mapping[str, str],
        chosen: ChosenModels,
        *,
        db: Database,
        vault: Vault | None,
        policy: PolicyStore,
        models: Models,
        http: HttpClient,
        redactor: Redactor,
    ) -> None:
        self._home = home
        self._env = env
        self._chosen = chosen
        self._db = db
        self._secrets = vault
        self._policy = policy
        self._models = models
        self._http = http
        self._redactor = redactor
        self._turn = asyncio.Lock()

    @property
    def _vault(self) -> Vault:
        if self._secrets is None:
            raise InvalidInput("this daemon has no vault: name the key by env:NAME or file:/path")
        return self._secrets

    def providers(self, now_ms: int) -> list[ProviderInfo]:
        """Those that run, and those that the file has since."""
        written = config.load(self._home, self._env).config
        healthy = self._models.health(now_ms)
        default = written.models.default or self._chosen.default
        shown = {**self._chosen.providers, **written.providers}
        gone = self._gone(written)
        return [
            ProviderInfo(
                name=name,
                kind=each.kind,
                base_url=each.base_url,
                models=each.models,
                key=each.api_key,
                found=name not in written.providers,
                default=default.partition("/")[0] == name,
                running=self._chosen.providers.get(name) == each,
                healthy=healthy.get(name, False),
            )
            for name, each in shown.items()
            if name not in gone
        ]

    def stale(self) -> bool:
        """Whether the file says something that only a restart brings."""
        written = config.load(self._home, self._env).config
        wanted, default = written.models.default, self._chosen.default
        other = wanted not in ("", default, default.partition("/")[0])
        changed = any(
            self._chosen.providers.get(name) != each for name, each in written.providers.items()
        )
        return other or changed or bool(self._gone(written))

    def _gone(self, written: Config) -> set[str]:
        """Providers that run and are no longer in the file, and were not found on the machine."""
        return {
            name
            for name in self._chosen.providers
            if name not in written.providers and name not in WELL_KNOWN
        }

    async def save_provider(self, by: str, new: NewProvider) -> None:
        async with self._turn:
            before = self._written(new.name)
            reference = before.api_key if before else ""
            if new.key:
                reference = f"{_IN_VAULT}provider-{new.name}"
            elif before is not None and reference and not _same_party(before, new):
                raise InvalidInput(
                    "this is another address than the key was given for: enter the key for it",
                    name=new.name,
                )
            changes: dict[str, object] = {
                f"providers.{new.name}.kind": new.kind,
                f"providers.{new.name}.base_url": new.base_url,
                f"providers.{new.name}.models": new.models,
                f"providers.{new.name}.api_key": reference,
            }
            if new.first:
                if not new.models:
                    raise InvalidInput(
                        "name a model: without one this provider cannot be used first"
                    )
                changes["models.default"] = f"{new.name}/{new.models[0]}"
            if new.key:
                secret = NewSecret(
                    name=f"provider-{new.name}", value=new.key, tools=(_user(new.name),)
                )
                await self._vault.put(by, secret)
            try:
                await asyncio.to_thread(config.set_values, self._home, changes)
            except PalyraError:
                if new.key and before is None:
                    await self._vault.remove(by, "global", f"provider-{new.name}")
                raise
            await self._record(
                by,
                "provider saved",
                new.name,
                {"kind": new.kind, "models": list(new.models), "first": new.first},
            )

    async def remove_provider(self, by: str, name: str) -> None:
        async with self._turn:
            if self._written(name) is None:
                raise NotFound(f"there is no provider {name} in the config file", name=name)
            written = config.load(self._home, self._env).config
            if written.models.default.partition("/")[0] == name:
                await asyncio.to_thread(config.unset_value, self._home, "models.default")
            await asyncio.to_thread(config.remove_table, self._home, ("providers", name))
            await self._record(by, "provider removed", name, {})

    async def save_channel(self, by: str, new: NewChannel) -> None:
        async with self._turn:
            before = config.load(self._home, self._env).config.channels.get(new.name)
            written, secrets = channel_setup.settings(new, before)
            for secret in secrets:
                await self._vault.put(by, secret)
            try:
                await asyncio.to_thread(
                    config.set_values, self._home, channel_setup.changes(new, written)
                )
            except PalyraError:
                for secret in secrets if before is None else ():
                    await self._vault.remove(by, "global", secret.name)
                raise
            await self._record(
                by, "channel saved", new.name, {"kind": new.kind, "settings": sorted(written)}
            )

    async def remove_channel(self, by: str, name: str) -> None:
        async with self._turn:
            await asyncio.to_thread(config.remove_table, self._home, ("channels", name))
            await self._record(by, "channel removed", name, {})

    async def try_provider(self, new: NewProvider) -> Trial:
        """Ask for one word, with what was typed and, where no key was, with the one that is
        kept.
        """
        if not new.models:
            raise InvalidInput("name a model to try")
        model, began = new.models[0], time.monotonic()
        request = ModelRequest(
            model=model,
            instructions="Answer with one word.",
            messages=(UserMessage((Text("Say: ready"),)),),
            max_output_tokens=64,
        )

        def took() -> int:
            return int((time.monotonic() - began) * 1000)

        def failed(message: str, fix: str) -> Trial:
            return Trial(
                ok=False,
                model=model,
                took_ms=took(),
                message=self._redactor.redact(message),
                fix=fix,
            )

        try:
            endpoint = ProviderEndpoint(
                name=new.name, base_url=new.base_url, api_key=new.key or await self._kept_key(new)
            )
            async with asyncio.timeout(_LONGEST_TRIAL_S):
                await open_provider(new.kind, endpoint, self._http).stream(
                    request, lambda channel, text: None
                )
        except ConfigInvalid as error:
            return failed(error.message, "enter the key")
        except ModelFailure as failure:
            return failed(
                str(failure), _FIXES.get(failure.failure, "look at the provider's status page")
            )
        except TimeoutError:
            return failed(f"no answer in {_LONGEST_TRIAL_S} s", "check the address and the network")
        return Trial(ok=True, model=model, took_ms=took(), message=f"{model} answered")

    async def _kept_key(self, new: NewProvider) -> str:
        """The key that is kept for a provider, for the address that it was given for and for no
        other.
        """
        settings = self._written(new.name) or self._chosen.providers.get(new.name)
        if settings is None or not settings.api_key:
            return ""
        if not _same_party(settings, new):
            raise ConfigInvalid("the key that is kept was given for another address", name=new.name)
        if settings.api_key.startswith(_IN_VAULT):
            return await _from_vault(self._vault, new.name, settings.api_key)
        return config.secret(settings.api_key, self._env)

    def _written(self, name: str) -> Provider | None:
        return config.load(self._home, self._env).config.providers.get(name)

    async def change(self, by: str, changes: Mapping[str, Setting]) -> None:
        """Write them down together, or none. What a page changes is only what cannot open the
        daemon to anybody.
        """
        if refused := sorted(key for key in changes if not key.startswith(_CHANGEABLE)):
            raise InvalidInput(
                f"{refused[0]} is not changed here: use `palyra config set {refused[0]} VALUE`",
                key=refused[0],
            )
        async with self._turn:
            loaded = await asyncio.to_thread(config.load, self._home, self._env)
            for key in changes:
                if (source := loaded.sources.get(key, "")).startswith("PALYRA_"):
                    raise Conflict(
                        f"{source} is set where the daemon was started and wins: change it there",
                        key=key,
                    )
            before = {shown.key: shown.value for shown in config.show(loaded, with_lines=False)}
            await asyncio.to_thread(config.set_values, self._home, changes)
            was = {key: before.get(key) for key in changes}
            await self._record(
                by, "changed", ", ".join(changes), {"from": was, "to": dict(changes)}
            )

    async def use_preset(self, by: str, preset: PresetName) -> None:
        """In force at once, and after every start. What does not load with it is refused before
        anything is written.
        """
        async with self._turn:
            if problems := await asyncio.to_thread(store.check, self._policy.folder, preset):
                raise sources.refuse(problems)
            await asyncio.to_thread(config.set_value, self._home, "policy.preset", preset)
            if config.load(self._home, self._env).config.policy.preset != preset:
                raise ConfigInvalid(
                    "PALYRA_POLICY__PRESET is set where the daemon was started and wins: change it"
                    " there"
                )
            before = self._policy.preset
            reloaded = await asyncio.to_thread(self._policy.reload, preset)
            await self._record(by, "changed", "policy.preset", {"from": before, "to": preset})
            await change_log.record(self._db, by, reloaded)

    async def _record(self, by: str, action: str, subject: str, details: dict[str, object]) -> None:
        event = AdminChanged(
            what="config", action=action, subject=subject, details=msgspec.to_builtins(details)
        )
        await self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))
