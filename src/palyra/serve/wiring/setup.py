"""Setting the daemon up from within: providers with their keys in the vault, and the preset of the
policies.

The config file stays the one place where settings are; a change is checked as a whole before it is
written, and recorded.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from palyra.agent.settings import ConfigReloaded
from palyra.core.errors import ConfigInvalid, Conflict, InvalidInput, NotFound, PalyraError
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.ports import ModelProvider
from palyra.features.setup import trial
from palyra.features.setup.model import (
    FoundProvider,
    ListenerChanges,
    NewChannel,
    NewMcpServer,
    NewProvider,
    PresetName,
    ProviderInfo,
    Setting,
    Trial,
)
from palyra.features.vault.rules import NewSecret
from palyra.features.vault.service import Vault
from palyra.models.call_limits import is_local
from palyra.models.dialects import open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.routing import Models
from palyra.models.text_tools.modes import FoundModes
from palyra.models.text_tools.provider import ToolProtocols
from palyra.policy import sources, store
from palyra.policy.store import PolicyStore
from palyra.serve import config
from palyra.serve.config import (
    ChosenModels,
    Config,
    Loaded,
    Provider,
    call_limits,
    providers_tools,
)
from palyra.serve.config.checks import WELL_KNOWN
from palyra.serve.wiring import channel_setup, listener_setup, mcp_setup
from palyra.serve.wiring.provider_keys import IN_VAULT, from_vault, same_party, user_of
from palyra.serve.wiring.provider_search import ProviderSearch
from palyra.store import tape
from palyra.store.database import Database
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.setup")

# Of backups all but where their secrets are.
_CHANGEABLE = (
    "learning.",
    "healing.",
    "backups.every",
    "backups.keep",
    "backups.drill",
    "backups.target",
)


class FileSetup:
    def __init__(
        self,
        home: Path,
        env: Mapping[str, str],
        in_force: Callable[[], ChosenModels],
        *,
        db: Database,
        vault: Vault | None,
        policy: PolicyStore,
        models: Models,
        http: HttpClient,
        redactor: Redactor,
        found_modes: FoundModes,
        reload: Callable[[], Awaitable[ConfigReloaded]],
    ) -> None:
        """`reload` puts what is in the file into force, or raises ConfigInvalid."""
        self._home = home
        self._env = env
        self._in_force = in_force
        self._db = db
        self._secrets = vault
        self._policy = policy
        self._models = models
        self._http = http
        self._redactor = redactor
        self._found_modes = found_modes
        self._reload = reload
        self._search = ProviderSearch(env, http, in_force)
        self._turn = asyncio.Lock()

    @property
    def _chosen(self) -> ChosenModels:
        return self._in_force()

    @property
    def _vault(self) -> Vault:
        if self._secrets is None:
            raise InvalidInput("this daemon has no vault: name the key by env:NAME or file:/path")
        return self._secrets

    def providers(self, now_ms: int) -> list[ProviderInfo]:
        """Return the providers that run, and those that the file has since."""
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
                windows=each.windows,
            )
            for name, each in shown.items()
            if name not in gone
        ]

    def stale(self) -> bool:
        """Return whether the file says something that only a restart brings."""
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
            reference = self._reference(before, new)
            changes: dict[str, object] = {
                "kind": new.kind,
                "base_url": new.base_url,
                "models": new.models,
                "api_key": reference,
                "windows": new.windows,
                "vision": new.vision,
            }
            # What was never said is not written down as nothing.
            written = {
                f"providers.{new.name}.{key}": value
                for key, value in changes.items()
                if value is not None and (before is not None or value not in ("", ()))
            }
            if new.first:
                if not new.models:
                    raise InvalidInput(
                        "name a model: without one this provider cannot be used first"
                    )
                written["models.default"] = f"{new.name}/{new.models[0]}"
            if new.key:
                secret = NewSecret(
                    name=f"provider-{new.name}", value=new.key, tools=(user_of(new.name),)
                )
                await self._vault.put(by, secret)
            try:
                await self._into_force(lambda: config.set_values(self._home, written))
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

    def _reference(self, before: Provider | None, new: NewProvider) -> str:
        """Return where the key of a provider will be."""
        if new.key:
            return f"{IN_VAULT}provider-{new.name}"
        if new.key_from:
            if not self._env.get(new.key_from, "").strip():
                raise Conflict(
                    f"the daemon was started without {new.key_from}: start it where that is set, or"
                    " give the key itself, which goes into the vault",
                    variable=new.key_from,
                )
            return f"env:{new.key_from}"
        kept = before.api_key if before else ""
        if before is not None and kept and not same_party(before, new):
            raise InvalidInput(
                "this is another address than the key was given for: enter the key for it",
                name=new.name,
            )
        return kept

    async def remove_provider(self, by: str, name: str) -> None:
        async with self._turn:
            if self._written(name) is None:
                raise NotFound(f"there is no provider {name} in the config file", name=name)
            written = config.load(self._home, self._env).config
            chosen, own = self._chosen, f"{name}/"

            def remove() -> None:
                if written.models.default and chosen.default.startswith(own):
                    config.unset_value(self._home, "models.default")
                # Both lists have the same order; those that were left out at the start stay.
                left = [
                    each
                    for each in written.models.fallbacks
                    if each != name and not each.startswith(own)
                ]
                if len(left) < len(written.models.fallbacks):
                    config.set_values(self._home, {"models.fallbacks": tuple(left)})
                config.remove_table(self._home, ("providers", name))

            await self._into_force(remove)
            await self._record(by, "provider removed", name, {})

    async def set_default(self, by: str, model: str) -> None:
        async with self._turn:
            full = self._models.find(model).name
            loaded = await asyncio.to_thread(config.load, self._home, self._env)
            if (source := loaded.sources.get("models.default", "")).startswith("PALYRA_"):
                raise Conflict(
                    f"{source} is set where the daemon was started and wins: change it there",
                    key="models.default",
                )
            was = self._chosen.default
            await self._into_force(lambda: config.set_values(self._home, {"models.default": full}))
            await self._record(by, "changed", "models.default", {"from": was, "to": full})

    async def _into_force(self, change: Callable[[], None]) -> ConfigReloaded:
        """Change the file and what runs together, or neither."""
        file = self._home / config.FILE
        before = await asyncio.to_thread(lambda: file.read_bytes() if file.exists() else None)

        def put_back() -> None:
            if before is None:
                file.unlink(missing_ok=True)
            else:
                config.write_private(file, before)

        try:
            await asyncio.to_thread(change)
            return await self._reload()
        except PalyraError:
            await asyncio.to_thread(put_back)
            raise

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

    async def save_mcp_server(self, by: str, new: NewMcpServer) -> None:
        """Add a server, or give one other settings. It is started at once; the agent sees none of
        its tools before somebody has accepted them.
        """
        if bool(new.command) == bool(new.url):
            raise InvalidInput("give either a command or an address")
        async with self._turn:
            settings = await asyncio.to_thread(mcp_setup.settings, new)
            table = ("mcp", new.name)

            def write() -> None:
                if new.name in config.load(self._home, self._env).config.mcp:
                    config.remove_table(self._home, table)
                changes = {f"mcp.{new.name}.{key}": value for key, value in settings.items()}
                config.set_values(self._home, changes)

            await self._into_force(write)
            await self._record(
                by, "MCP server saved", new.name, {"command": list(new.command), "url": new.url}
            )

    async def enable_mcp_server(self, by: str, name: str, *, enabled: bool) -> None:
        async with self._turn:
            self._check_mcp_server(name)
            await self._into_force(
                lambda: config.set_values(self._home, {f"mcp.{name}.enabled": enabled})
            )
            action = "MCP server enabled" if enabled else "MCP server disabled"
            await self._record(by, action, name, {})

    async def remove_mcp_server(self, by: str, name: str) -> None:
        async with self._turn:
            self._check_mcp_server(name)
            await self._into_force(lambda: config.remove_table(self._home, ("mcp", name)))
            await self._record(by, "MCP server removed", name, {})

    def _check_mcp_server(self, name: str) -> None:
        if name not in config.load(self._home, self._env).config.mcp:
            raise NotFound(f"there is no MCP server {name} in the settings", name=name)

    async def found(self) -> list[FoundProvider]:
        return await self._search.found()

    async def models_of(self, new: NewProvider) -> FoundProvider:
        try:
            key = await self._key_of(new)
        except ConfigInvalid as error:
            raise InvalidInput(error.message) from error
        return await self._search.models_of(new, key)

    async def try_provider(self, new: NewProvider) -> Trial:
        """Ask for one tool call, with what was typed and, where no key was, with the one that is
        kept.
        """
        if not new.models:
            raise InvalidInput("name a model to try")
        model = new.models[0]
        try:
            key = await self._key_of(new)
        except ConfigInvalid as error:
            return Trial(
                ok=False, model=model, took_ms=0, message=error.message, fix="enter the key"
            )
        settings = self._settings_of(new)
        endpoint = ProviderEndpoint(
            name=new.name,
            base_url=new.base_url,
            api_key=key,
            limits=call_limits.of(settings),
            prompt_cache=settings.prompt_cache,
            api_version=settings.api_version,
        )
        made = await self._tried(open_provider(new.kind, endpoint, self._http), settings, model)
        return replace(
            made,
            message=self._redactor.redact(made.message),
            context_tokens=await self._search.kept(new, model) if made.ok else 0,
        )

    def _settings_of(self, new: NewProvider) -> Provider:
        """Return the provider's settings, present or future, as far as a call depends on them."""
        known = self._written(new.name) or self._chosen.providers.get(new.name)
        if known is None or not same_party(known, new):
            return Provider(kind=new.kind, base_url=new.base_url)
        return replace(known, kind=new.kind, base_url=new.base_url)

    async def _tried(self, provider: ModelProvider, settings: Provider, model: str) -> Trial:
        """A call with a tool, given as it will be in a run. A local server that passes over native
        tools in silence is asked again with the tools as text: if the model calls then, it is given
        them so from now on.
        """
        local, digest = is_local(settings.base_url), providers_tools.digest(settings)
        mode = providers_tools.modes(settings)
        usual = ToolProtocols(provider, mode, self._found_modes, digest)
        made = await trial.call_with_tool(usual, model, local=local)
        if made.tools is not False or not local or usual.mode(model) != "auto":
            return made
        as_text = ToolProtocols(provider, lambda model: "text", FoundModes(), "")
        took_ms = made.took_ms
        # Small models call only if they are asked as in a small window.
        for fitted in (False, True):
            again = await trial.call_with_tool(as_text, model, local=local, fitted=fitted)
            took_ms += again.took_ms
            if again.tools:
                break
        else:
            return made
        await self._found_modes.learn(provider.name, model, digest, "calls tools only as text")
        return replace(again, took_ms=took_ms, fix=trial.AS_TEXT)

    async def _key_of(self, new: NewProvider) -> str:
        if new.key_from and not new.key:
            return config.secret(f"env:{new.key_from}", self._env)
        return new.key or await self._kept_key(new)

    async def _kept_key(self, new: NewProvider) -> str:
        """The key that is kept for a provider, for the address that it was given for and for no
        other.
        """
        settings = self._written(new.name) or self._chosen.providers.get(new.name)
        if settings is None or not settings.api_key:
            return ""
        if not same_party(settings, new):
            raise ConfigInvalid("the key that is kept was given for another address", name=new.name)
        if settings.api_key.startswith(IN_VAULT):
            return await from_vault(self._vault, new.name, settings.api_key)
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
            loaded = await self._changeable(changes)
            before = {shown.key: shown.value for shown in config.show(loaded, with_lines=False)}
            await asyncio.to_thread(config.set_values, self._home, changes)
            was = {key: before.get(key) for key in changes}
            await self._record(
                by, "changed", ", ".join(changes), {"from": was, "to": dict(changes)}
            )

    async def _changeable(self, keys: Iterable[str]) -> Loaded:
        """The settings as the file and the environment have them; Conflict if the latter decides
        one of these.
        """
        loaded = await asyncio.to_thread(config.load, self._home, self._env)
        for key in keys:
            if (source := loaded.sources.get(key, "")).startswith("PALYRA_"):
                raise Conflict(
                    f"{source} is set where the daemon was started and wins: change it there",
                    key=key,
                )
        return loaded

    async def use_listeners(
        self, by: str, changes: ListenerChanges, *, others: bool
    ) -> ConfigReloaded:
        """Open or close listeners. What could not start is refused before it is written."""
        wanted = listener_setup.settings(changes)
        async with self._turn:
            loaded = await self._changeable(wanted)
            listener_setup.check(loaded.config, changes, others=others)
            done = await self._into_force(lambda: config.set_values(self._home, wanted))
            await self._record(by, "changed", ", ".join(wanted), {"to": wanted})
            return done

    async def use_preset(self, by: str, preset: PresetName) -> None:
        """Put a preset in force at once, and after every start. What does not load with it is
        refused before anything is written.
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
            await store.record(self._db, by, reloaded, self._policy.current.texts)

    async def use_shadow(self, by: str, named: str) -> None:
        """Try policies beside those in force, at once: a preset, a folder, or none if empty."""
        async with self._turn:
            await self._into_force(
                lambda: config.set_values(self._home, {"policy.shadow": named.strip()})
            )
            await self._record(by, "changed", "policy.shadow", {"to": named.strip()})

    async def _record(self, by: str, action: str, subject: str, details: dict[str, object]) -> None:
        event = AdminChanged(
            what="config", action=action, subject=subject, details=msgspec.to_builtins(details)
        )
        await self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))
