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
    MemoryRecall,
    NoCompaction,
    NoMemory,
    NoNotes,
    NoSkills,
    NotesForAgents,
    SkillIndex,
)
from palyra.agent.prompt.assembly import Assembler
from palyra.agent.runs import Runs
from palyra.agent.session_cache import SessionCache
from palyra.agent.session_rules import SessionRules
from palyra.agent.sessions import Sessions
from palyra.agent.settings import ConfigReloaded, Settings
from palyra.agent.tool_flow import Spawning, ToolFlow
from palyra.agent.turn_cost import BudgetPort, NoBudgets, Spending
from palyra.core.errors import PalyraError
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.core.ports import ModelProvider
from palyra.core.services import Services
from palyra.features import FEATURES, Feature
from palyra.features.setup.model import Setup
from palyra.features.vault.service import Vault
from palyra.features.wiring import Wiring
from palyra.models.http import HttpClient
from palyra.models.routing import Models
from palyra.policy import change_log
from palyra.policy.run_policies import OtherPolicies
from palyra.policy.shadow import ShadowPolicy, open_shadow
from palyra.policy.store import PolicyStore, Reloaded
from palyra.policy.watch import watch
from palyra.serve import config
from palyra.serve.config import ChosenModels, Loaded
from palyra.serve.wiring import models as model_wiring
from palyra.serve.wiring import settings as settings_wiring
from palyra.serve.wiring import setup as setup_wiring
from palyra.serve.wiring import tools as tool_wiring
from palyra.serve.wiring.foundation import Foundation, folders, here, key, lay
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.sqlite_files import remove_partial
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
    chosen: ChosenModels
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
    def journal_path(self) -> Path:
        return self.home / "journal.db"

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever starts or looks at the daemon should know."""
        found = [each for tell in self.wiring.notes for each in tell()]
        return (*self.loaded.notes, *self.chosen.notes, *found)

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
) -> Daemon:
    """Build the daemon, open its journal and go on with what was unfinished.

    `providers` stand in for the configured ones of the same names: a test brings its own model, and
    its own names of hosts.
    """
    home, given = loaded.home, loaded.config
    policy_folder = folders(home, given)
    remove_partial(home / "backups")
    ground = lay(
        loaded,
        policy_folder,
        clock or Clock(),
        resolver or Resolver().allowing(given.network.private_hosts),
    )
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
    services.add(ground.clock, Clock)
    services.add(ground.redactor, Redactor)
    wanted = _complete(features)
    await _wire([each for each in wanted if each.first], w)
    await _kernel(w, ground, loaded, chosen, providers or {}, policy_folder)
    await _wire([each for each in wanted if not each.first], w)
    _loop(w, ground, policy_folder)
    services.add(_setup(w, chosen), Setup)
    for later in w.later:
        later()

    # Go on with what was unfinished: files first, then those who work on them.
    for begin in w.starts_before_runs:
        await begin()
    await services.get(Gateway).start()
    for begin in w.starts_after_runs:
        await begin()
    policy, shadow = services.get(PolicyStore), services.find(ShadowPolicy)
    reloader = asyncio.create_task(_watch_policies(services.get(Database), policy, shadow))
    return Daemon(loaded, chosen, services, w, wanted, reloader)


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
    """What decides, what can be done, who answers, and what knows the sessions."""
    home, given, db = loaded.home, loaded.config, ground.db
    policy = w.add(PolicyStore(policy_folder, given.policy.preset))
    shadow = open_shadow(given.policy.shadow, policy_folder, given.policy.preset)
    if shadow is not None:
        w.add(shadow)
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
    vault = w.find(Vault)
    keys = {**w.env, **(await setup_wiring.vault_keys(chosen, vault) if vault else {})}
    w.add(model_wiring.open_models(loaded, chosen, keys, http, providers))

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
            shadow=shadow,
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
    )
    checkpoints = w.get(Checkpoints)
    tool_flow = ToolFlow(
        db, hub, authorizer, catalogue, redactor, checkpoints, clock, w.find(Spawning)
    )
    runs = w.add(Runs(db, lives, model_turns, tool_flow, w.get(IdleGate)))
    if pool := w.find(BrowserPool):
        runs.on_end.append(pool.browsers.run_ended)
    approvals = w.add(
        ApprovalService(
            db, authorizer, catalogue, w.get(PolicyStore), redactor, clock, policy_folder
        )
    )
    inputs = w.find(MessageInputs) or NoMessageInputs()
    w.add(Gateway(db, hub, lives, runs, approvals, models, redactor, clock, settings, inputs))
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


def _setup(w: Wiring, chosen: ChosenModels) -> Setup:
    return setup_wiring.FileSetup(
        w.home,
        w.env,
        chosen,
        db=w.get(Database),
        vault=w.find(Vault),
        policy=w.get(PolicyStore),
        models=w.get(Models),
        http=w.get(HttpClient),
        redactor=w.get(Redactor),
    )


async def _watch_policies(db: Database, policy: PolicyStore, shadow: PolicyStore | None) -> None:
    """Put changed policies into force, and record that."""

    async def changed(store: PolicyStore, change: Reloaded) -> None:
        try:
            await change_log.record(db, SYSTEM, change, shadow=store is shadow)
        except PalyraError as error:
            # The policies are in force whether or not the journal can say so now.
            log.error("a change of policy could not be recorded: %s", error.message)

    await watch((policy, shadow), changed)


# What takes effect without a restart; everything else is said to need one.
_LIVE = (
    "budgets.",
    "approvals.",
    "mailbox.",
    "log.",
    "mcp.",
    "healing.",
    "learning.",
    "channels.",
    "channel_router.",
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
    now, settings = settings_wiring.of_the_loop(fresh.config), daemon.get(Settings)
    settings.budgets, settings.approval_times = now.budgets, now.approval_times
    settings.mailbox_depth = now.mailbox_depth
    wanted = settings_wiring.of_features(fresh, daemon.chosen, env)
    for reload in daemon.wiring.reloads:
        await reload(wanted)
    logging.getLogger("palyra").setLevel(fresh.config.log.level.upper())
    daemon.reloaded.update((key, after.get(key)) for key in live)
    reloaded = ConfigReloaded(live, tuple(key for key in changed if key not in live))
    event = AdminChanged(what="config", action="reloaded", details=msgspec.to_builtins(reloaded))
    await daemon.get(Database).write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, [event]))
    return reloaded
