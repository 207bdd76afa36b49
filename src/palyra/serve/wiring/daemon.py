"""The composition root: the kernel bottom to top, then its features. Reading it is reading the
architecture.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import msgspec

from palyra.agent.approvals import ApprovalService
from palyra.agent.authorize import Authorizer
from palyra.agent.broadcast import Broadcast
from palyra.agent.checkpoints import Checkpoints
from palyra.agent.gateway import Gateway
from palyra.agent.idle_gate import IdleGate
from palyra.agent.images import ImageLoader
from palyra.agent.message_inputs import MessageInputs, NoMessageInputs
from palyra.agent.model_turn import ModelTurns
from palyra.agent.ports import (
    Compactor,
    JournalCheckpoints,
    MemoryRecall,
    NoCompaction,
    NoMemory,
    NoNotes,
    NoSkills,
    NotesForAgents,
    SkillIndex,
)
from palyra.agent.prompt.assembly import Assembler
from palyra.agent.provider_wait import ProviderWaits
from palyra.agent.runs import Runs
from palyra.agent.session_cache import SessionCache
from palyra.agent.session_rules import SessionRules
from palyra.agent.sessions import Sessions
from palyra.agent.settings import ConfigReloaded, Settings
from palyra.agent.tool_flow import Spawning, ToolFlow
from palyra.agent.turn_cost import BudgetPort, NoBudgets, Spending
from palyra.agent.wait_port import NoNotices, OwnerNotices
from palyra.api.calls import DaemonInfo
from palyra.core.errors import PalyraError
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.core.ports import ModelProvider
from palyra.core.services import Services
from palyra.features import FEATURES, Feature
from palyra.features.backups.home_copy import remember_version, remove_leftovers
from palyra.features.backups.switch import finish_switch
from palyra.features.setup.model import Setup
from palyra.features.vault.service import Vault
from palyra.features.wiring import Wiring
from palyra.models.http import HttpClient
from palyra.models.routing import Models
from palyra.models.text_tools.modes import FoundModes
from palyra.policy import store as change_log
from palyra.policy.folder import watch
from palyra.policy.store import (
    OtherPolicies,
    PolicyStore,
    Reloaded,
    ShadowPolicy,
    ShadowSlot,
    open_shadow,
)
from palyra.serve import config
from palyra.serve.config import ChosenModels, Loaded
from palyra.serve.wiring import settings as settings_wiring
from palyra.serve.wiring import setup as setup_wiring
from palyra.serve.wiring import tools as tool_wiring
from palyra.serve.wiring.foundation import (
    Foundation,
    folders,
    here,
    journal_place,
    key,
    lay,
    protect_rights,
    refuse_two_journals,
)
from palyra.serve.wiring.live_models import LiveModels
from palyra.serve.wiring.upgrade import NEWEST, copy_before_migration
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.lease import LeaderLease
from palyra.store.sqlite_files import remove_partial
from palyra.store.upkeep import Upkeep
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools.browser.port import BrowserPool
from palyra.tools.catalogue import Catalogue
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner

log = logging.getLogger("palyra")

T = TypeVar("T")


@dataclass(frozen=True)
class Daemon:
    """A running daemon: its services, and how it ends."""

    loaded: Loaded
    services: Services
    wiring: Wiring
    features: tuple[Feature, ...]
    reloader: "asyncio.Task[None]"
    # Settings that were changed since the start, and took effect.
    reloaded: dict[str, object] = field(default_factory=dict)
    # One at a time: whoever has read the file earlier must not apply it later.
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def get(self, kind: type[T]) -> T:
        return self.services.get(kind)

    def find(self, kind: type[T]) -> T | None:
        return self.services.find(kind)

    @property
    def home(self) -> Path:
        return self.loaded.home

    @property
    def chosen(self) -> ChosenModels:
        """The providers and models in force."""
        return self.get(LiveModels).chosen

    @property
    def journal_path(self) -> Path:
        return self.home / "journal.db"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what whoever starts or looks at the daemon should know."""
        return self.notes_of(self.loaded)

    def notes_of(self, loaded: Loaded) -> tuple[str, ...]:
        found = [each for tell in self.wiring.notes for each in tell()]
        return (*loaded.notes, *self.chosen.notes, *found)

    async def close(self) -> None:
        """Leave every run where its tape ends; the next start goes on from there."""
        w = self.wiring
        self.reloader.cancel()
        self.get(Runs).halt()
        for halt in w.halts:
            halt()
        for close in reversed(w.closes_before_runs):
            await close()
        await self.get(Gateway).close()
        if pool := self.find(BrowserPool):
            await pool.browsers.close()
        await self.get(Jobs).close()
        await self.get(HttpClient).close()
        for close in reversed(w.closes_after_runs):
            await close()
        await self.get(Database).close()


async def start(
    loaded: Loaded,
    chosen: ChosenModels,
    env: Mapping[str, str],
    *,
    clock: Clock | None = None,
    providers: Mapping[str, ModelProvider] | None = None,
    resolver: Resolver | None = None,
    features: Sequence[Feature] = FEATURES,
    lease: LeaderLease | None = None,
) -> Daemon:
    """Build the daemon, open its journal and go on with what was unfinished. `lease`: of a node
    that leads.

    `providers` stand in for the configured ones of the same names: a test brings its own model, and
    its own names of hosts.
    """
    home, given = loaded.home, loaded.config
    finish_switch(home)
    policy_folder = folders(home, given)
    remove_partial(home / "backups")
    remove_leftovers(home / "backups")
    refuse_two_journals(home, given)
    place = journal_place(home, given, env, lease)
    copied = await asyncio.to_thread(
        copy_before_migration,
        home,
        policy_folder,
        origin=given.journal.origin,
        place=place.upkeep,
    )
    if copied is not None:
        log.info("the journal is upgraded; a copy from before is at %s", copied)
    ground = lay(
        loaded,
        policy_folder,
        clock or Clock(),
        resolver or Resolver().allowing(given.network.private_hosts),
        place,
    )
    everything_is_sealed = await protect_rights(ground.db, home / "keys")
    remember_version(home, NEWEST)
    services = Services()
    w = Wiring(
        services=services,
        settings=settings_wiring.of_features(loaded, chosen, env),
        home=home,
        env=env,
        resolver=ground.resolver,
        secret=lambda reference: config.secret(reference, env),
        forbidden=ground.forbidden,
    )
    services.add(ground.db, Database)
    services.add(place.upkeep, Upkeep)
    services.add(ground.clock, Clock)
    services.add(ground.redactor, Redactor)
    wanted = _complete(features)
    await _wire([each for each in wanted if each.first], w)
    await _kernel(w, ground, loaded, chosen, providers or {}, policy_folder)
    await _wire([each for each in wanted if not each.first], w)
    _loop(w, ground, policy_folder)
    services.add(_setup(w), Setup)
    for later in w.later:
        later()
    everything_is_sealed()

    policy, shadow = services.get(PolicyStore), services.get(ShadowSlot)
    await change_log.keep(ground.db, policy.current.texts)
    # Go on with what was unfinished: files first, then those who work on them.
    for begin in w.starts_before_runs:
        await begin()
    await services.get(Gateway).start()
    for begin in w.starts_after_runs:
        await begin()
    if copied is not None and (checkpoints := w.find(JournalCheckpoints)):
        # What the migration left is signed for at once, and not when something has happened.
        await checkpoints.try_checkpoint()
    reloader = asyncio.create_task(_watch_policies(services.get(Database), policy, shadow))
    return Daemon(loaded, services, w, wanted, reloader)


def _complete(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """These features without those that need one that is missing."""
    found: list[Feature] = []
    for each in features:
        if set(each.needs) <= {one.name for one in found}:
            found.append(each)
    return tuple(found)


async def _wire(features: Sequence[Feature], w: Wiring) -> None:
    for feature in features:
        wire = getattr(import_module(feature.module), "wire", None)
        if wire is not None:
            await wire(w)


async def _kernel(
    w: Wiring,
    ground: Foundation,
    loaded: Loaded,
    chosen: ChosenModels,
    providers: Mapping[str, ModelProvider],
    policy_folder: Path,
) -> None:
    """Make what decides, what can be done, who answers, and what knows the sessions."""
    home, given, db = loaded.home, loaded.config, ground.db
    policy = w.add(PolicyStore(policy_folder, given.policy.preset))
    shadow = w.add(ShadowSlot(open_shadow(given.policy.shadow, policy_folder, given.policy.preset)))
    others = w.add(OtherPolicies(lambda: policy.preset))
    w.add(Checkpoints(key(home / "keys" / "seal.key")))

    sandbox = w.add(Sandbox(hidden=ground.forbidden))
    runner = Runner(sandbox, Egress(ground.resolver))
    jobs = w.add(Jobs(runner, home / "jobs", ground.redactor, ground.clock.now_ms))
    catalogue = w.add(
        tool_wiring.own(ground, w.services, runner, jobs, rehearsal=given.rehearsal.tools)
    )
    if pool := tool_wiring.browsers(given, w.env, ground.resolver, sandbox, catalogue):
        w.add(pool)

    http = w.add(HttpClient())
    found = w.add(FoundModes(db, ground.clock))
    await found.load()
    live = w.add(LiveModels(w.env, chosen, http, w.find(Vault), providers, found))
    w.add(await live.open(loaded))

    settings = w.add(settings_wiring.of_the_loop(given))
    w.add(IdleGate())
    w.add(Broadcast(ground.clock))
    w.add(SessionCache(db))
    w.add(
        Authorizer(
            db,
            catalogue,
            policy,
            ground.redactor,
            ground.clock,
            settings,
            shadow=lambda: shadow.current,
            others=others.of,
        )
    )


def _loop(w: Wiring, ground: Foundation, policy_folder: Path) -> None:
    """The loop: ask, authorize, do. Where a feature fills no port, nothing stands in."""
    db, clock, redactor = ground.db, ground.clock, ground.redactor
    hub, models, catalogue = w.get(Broadcast), w.get(Models), w.get(Catalogue)
    lives, settings, authorizer = w.get(SessionCache), w.get(Settings), w.get(Authorizer)
    skills = w.find(SkillIndex) or NoSkills()
    spending = Spending(db, models, w.find(BudgetPort) or NoBudgets(), clock, settings)
    waits = w.add(
        ProviderWaits(
            db, hub, models, clock, settings, redactor, w.find(OwnerNotices) or NoNotices()
        )
    )
    model_turns = ModelTurns(
        hub,
        models,
        Assembler(catalogue.specs, skills.index),
        w.find(NotesForAgents) or NoNotes(),
        w.find(MemoryRecall) or NoMemory(),
        ImageLoader(db),
        w.find(Compactor) or NoCompaction(),
        redactor,
        clock,
        spending,
        waits,
    )
    checkpoints = w.get(Checkpoints)
    tool_flow = ToolFlow(
        db, hub, authorizer, catalogue, redactor, checkpoints, clock, w.find(Spawning)
    )
    runs = w.add(Runs(db, lives, model_turns, tool_flow, w.get(IdleGate)))
    if pool := w.find(BrowserPool):
        runs.on_end.connect(pool.browsers.run_ended)
    approvals = w.add(
        ApprovalService(
            db, authorizer, catalogue, w.get(PolicyStore), redactor, clock, policy_folder
        )
    )
    inputs = w.find(MessageInputs) or NoMessageInputs()
    w.add(
        Gateway(
            db,
            hub,
            lives,
            runs,
            approvals,
            models,
            redactor,
            clock,
            settings,
            inputs,
            waits,
            authorizer.files,
        )
    )
    w.add(
        Sessions(
            db,
            runs,
            redactor,
            clock,
            default_workspace=ground.config.workspace.root or here(ground.forbidden),
            forbidden_roots=ground.forbidden,
        )
    )
    w.add(SessionRules(db, catalogue, clock, redactor))


def _setup(w: Wiring) -> Setup:
    live = w.get(LiveModels)

    async def reload() -> ConfigReloaded:
        # Who calls over HTTP finds the one that serves it; without a process nothing is in force.
        about = w.find(DaemonInfo)
        return await about.reload_config() if about else ConfigReloaded((), ())

    return setup_wiring.FileSetup(
        w.home,
        w.env,
        lambda: live.chosen,
        db=w.get(Database),
        vault=w.find(Vault),
        policy=w.get(PolicyStore),
        models=w.get(Models),
        http=w.get(HttpClient),
        redactor=w.get(Redactor),
        found_modes=w.get(FoundModes),
        reload=reload,
    )


async def _watch_policies(db: Database, policy: PolicyStore, shadow: ShadowSlot) -> None:
    """Put changed policies into force, and record that."""

    async def changed(store: PolicyStore, change: Reloaded) -> None:
        try:
            in_force = None if isinstance(store, ShadowPolicy) else store.current.texts
            await change_log.record(db, SYSTEM, change, in_force)
        except PalyraError as error:
            # The policies are in force whether or not the journal can say so now.
            log.error("a change of policy could not be recorded: %s", error.message)

    async def watch_shadow() -> None:
        while True:
            shadow.exchanged.clear()
            watching = asyncio.create_task(watch((shadow.current,), changed))
            try:
                await shadow.exchanged.wait()
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    async with asyncio.TaskGroup() as group:
        group.create_task(watch((policy,), changed))
        group.create_task(watch_shadow())


# What takes effect without a restart; everything else is said to need one.
_LIVE = (
    "backups.",
    "budgets.",
    "approvals.",
    "mailbox.",
    "waiting.",
    "log.",
    "mcp.",
    "healing.",
    "learning.",
    "channels.",
    "channel_router.",
    "models.",
    "providers.",
    "routing.",
    "policy.shadow",
    "server.host",
    "server.tls.enabled",
    "server.tls.names",
    "server.allowed_",
    "server.grpc",
    "server.quic",
    "web_search.",
    "workers.listen",
    "workers.quic",
)


async def reload_config(daemon: Daemon, env: Mapping[str, str]) -> ConfigReloaded:
    """Read the config again and apply what can be applied. A file with problems is ConfigInvalid
    and changes nothing.
    """
    async with daemon.reloading:
        return await _reload_config(daemon, env)


async def _reload_config(daemon: Daemon, env: Mapping[str, str]) -> ConfigReloaded:
    before = {shown.key: shown.value for shown in config.show(daemon.loaded)} | daemon.reloaded
    fresh = await asyncio.to_thread(config.load, daemon.home, env)
    after = {shown.key: shown.value for shown in config.show(fresh)}
    changed = sorted(key for key in {**before, **after} if before.get(key) != after.get(key))
    live = tuple(key for key in changed if key.startswith(_LIVE))
    policy, slot = daemon.get(PolicyStore), daemon.get(ShadowSlot)
    # First, because both can be refused; from here on nothing can.
    if "policy.shadow" in live:
        shadow = await asyncio.to_thread(
            open_shadow, fresh.config.policy.shadow, policy.folder, policy.preset
        )
    (await daemon.get(LiveModels).prepare(fresh)).put_into_force()
    if "policy.shadow" in live:
        slot.use(shadow)
    now, settings = settings_wiring.of_the_loop(fresh.config), daemon.get(Settings)
    settings.budgets, settings.approval_times = now.budgets, now.approval_times
    settings.mailbox_depth, settings.patience = now.mailbox_depth, now.patience
    settings.longest_pause_ms = now.longest_pause_ms
    wanted = settings_wiring.of_features(fresh, daemon.chosen, env)
    for reload in daemon.wiring.reloads:
        await reload(wanted)
    if about := daemon.find(DaemonInfo):
        about.notes = daemon.notes_of(fresh)
    # Whoever changed something may have mended it.
    daemon.get(ProviderWaits).try_now()
    logging.getLogger("palyra").setLevel(fresh.config.log.level.upper())
    daemon.reloaded.update((key, after.get(key)) for key in live)
    reloaded = ConfigReloaded(live, tuple(key for key in changed if key not in live))
    event = AdminChanged(what="config", action="reloaded", details=msgspec.to_builtins(reloaded))
    await daemon.get(Database).write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, [event]))
    return reloaded
