"""The composition root: plain constructor calls, bottom to top. Reading it is reading the
architecture.
"""

import asyncio
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from palyra.agent.approvals import ApprovalService
from palyra.agent.authorize import Authorizer
from palyra.agent.broadcast import Broadcast
from palyra.agent.checkpoints import Checkpoints
from palyra.agent.direct_tools import ByHand
from palyra.agent.gateway import Gateway
from palyra.agent.idle_gate import IdleGate
from palyra.agent.images import ImageLoader
from palyra.agent.model_turn import ModelTurns
from palyra.agent.prompt.assembly import Assembler
from palyra.agent.runs import Runs
from palyra.agent.session_cache import SessionCache
from palyra.agent.session_rules import SessionRules
from palyra.agent.sessions import Sessions
from palyra.agent.settings import ApprovalTimes, ConfigReloaded, Settings
from palyra.agent.tool_flow import ToolFlow
from palyra.agent.turn_cost import Spending
from palyra.api.status_ports import OpenIncidents, UnreadNotices
from palyra.core.errors import PalyraError
from palyra.core.events import AdminChanged
from palyra.core.events import Budgets as RunBudgets
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.core.ports import ModelProvider
from palyra.core.services import Services
from palyra.features.budgets.forecasts import Forecasts
from palyra.features.budgets.service import BudgetService
from palyra.features.channels.lazy import LateChannels
from palyra.features.compaction.service import Compacting
from palyra.features.health.doctor import Doctor
from palyra.features.health.incidents import Incidents
from palyra.features.health.watchdog import Watchdog
from palyra.features.learning.enqueue import Feeder
from palyra.features.learning.service import Learning
from palyra.features.mcp.service import Mcp
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.recall import Recalling
from palyra.features.memory.service import Memory
from palyra.features.memory.transcripts import Transcripts
from palyra.features.notices.service import Notices
from palyra.features.openai_api import client_tools
from palyra.features.openai_api.sessions import Callers
from palyra.features.project_notes.prompt import ProjectFiles
from palyra.features.project_notes.service import ProjectNotes
from palyra.features.references.attachments import Attachments
from palyra.features.references.kinds import Kinds
from palyra.features.references.message_inputs import Enclosures
from palyra.features.references.service import References
from palyra.features.retention.service import Retention, RetentionSettings
from palyra.features.setup.model import Setup
from palyra.features.skills.registry import SkillRegistry
from palyra.features.subagents.service import Children
from palyra.features.tasks.service import TaskVerbs
from palyra.features.tasks.worker import Tasks
from palyra.features.time_travel.file_restore import Restoring
from palyra.features.time_travel.fork import Forking, OtherPolicies
from palyra.features.time_travel.replay.service import Replays
from palyra.features.time_travel.rewind import Rewinding
from palyra.features.time_travel.session_snapshot import Moments
from palyra.features.time_travel.undo import Undoing
from palyra.features.tls.service import Certificates, OwnFiles
from palyra.features.vault.service import Vault
from palyra.features.workers.service import Workers
from palyra.models.embeddings import LocalEmbedder
from palyra.models.http import HttpClient
from palyra.models.routing import Models
from palyra.policy import change_log
from palyra.policy.shadow import ShadowPolicy, open_shadow
from palyra.policy.store import PolicyStore, Reloaded
from palyra.policy.watch import watch
from palyra.serve import config
from palyra.serve.config import ChosenModels, Config, Loaded
from palyra.serve.config import budgets as spending_settings
from palyra.serve.config import channels as channel_settings
from palyra.serve.config import mcp as mcp_settings
from palyra.serve.wiring import channels as parts_channels
from palyra.serve.wiring import learning as parts_learning
from palyra.serve.wiring import models as parts_models
from palyra.serve.wiring import schedules as parts_schedules
from palyra.serve.wiring import setup as parts_setup
from palyra.serve.wiring import tools as parts_tools
from palyra.serve.wiring.foundation import folders, here, key, lay
from palyra.serve.wiring.health import HealthParts, healing
from palyra.serve.wiring.schedules import Timekeeping
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.sqlite_files import fold_log, remove_partial
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner

if TYPE_CHECKING:
    from palyra.features.channels.service import Channels
    from palyra.tools.browser.pool import Browsers

log = logging.getLogger("palyra")


@dataclass(frozen=True)
class Daemon:
    """Everything that is running, for the transports to translate to."""

    loaded: Loaded
    chosen: ChosenModels
    db: Database
    clock: Clock
    hub: Broadcast
    redactor: Redactor
    vault: Vault
    certificates: Certificates
    catalogue: Catalogue
    policy: PolicyStore
    shadow: ShadowPolicy | None
    policy_folder: Path
    models: Models
    budgets: BudgetService
    forecasts: Forecasts
    runs: Runs
    answers: ApprovalService
    gateway: Gateway
    callers: Callers
    retention: Retention
    children: Children
    tasks: Tasks
    task_verbs: TaskVerbs
    timekeeping: Timekeeping
    enclosures: Enclosures
    sessions: Sessions
    rules: SessionRules
    undoing: Undoing
    compacting: Compacting
    rewinding: Rewinding
    replays: Replays
    forking: Forking
    moments: Moments
    restoring: Restoring
    memory: Memory
    learning: Learning
    feeder: Feeder
    transcripts: Transcripts
    shelf: SkillRegistry
    jobs: Jobs
    mcp: Mcp
    project_notes: ProjectNotes
    workers: Workers
    late_channels: LateChannels
    notices: Notices
    incidents: Incidents
    watchdog: Watchdog
    doctor: Doctor
    browsers: "Browsers | None"
    http: HttpClient
    settings: Settings
    setup: parts_setup.FileSetup
    reloader: "asyncio.Task[None]"
    # What handlers ask for, by class.
    services: Services = field(default_factory=Services)
    # Settings that were changed since the start, and took effect.
    reloaded: dict[str, object] = field(default_factory=dict)
    # One at a time: whoever has read the file earlier must not apply it later.
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def channels(self) -> "Channels":
        return self.late_channels.now

    @property
    def home(self) -> Path:
        return self.loaded.home

    @property
    def journal_path(self) -> Path:
        return self.home / "journal.db"

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever starts or looks at the daemon should know."""
        return (*self.loaded.notes, *self.chosen.notes, *self.vault.notes, *self.shelf.notes)

    @property
    def offered(self) -> tuple[object, ...]:
        """The services that handlers ask for."""
        found = (
            self.db,
            self.clock,
            self.hub,
            self.runs,
            self.gateway,
            self.callers,
            self.enclosures,
            self.sessions,
            self.rules,
            self.answers,
            self.undoing,
            self.compacting,
            self.rewinding,
            self.replays,
            self.forking,
            self.moments,
            self.models,
            self.budgets,
            self.forecasts,
            self.catalogue,
            self.policy,
            self.shadow,
            self.vault,
            self.certificates,
            self.memory,
            self.learning,
            self.retention,
            self.transcripts,
            self.shelf,
            self.mcp,
            self.project_notes,
            self.workers,
            self.late_channels,
            self.notices,
            self.incidents,
            self.doctor,
            self.watchdog,
            self.task_verbs,
            self.timekeeping.schedules,
            self.timekeeping.hooks,
        )
        return tuple(each for each in found if each is not None)

    async def close(self) -> None:
        """Leave every run where its tape ends; the next start goes on from there."""
        self.reloader.cancel()
        self.runs.halt()
        self.workers.halt()
        await self.late_channels.close()
        self.watchdog.close()
        await self.restoring.close()
        await self.replays.close()
        await self.feeder.close()
        await self.timekeeping.files.close()
        await self.tasks.close()
        await self.children.close()
        await self.gateway.close()
        self.workers.close()
        if self.browsers is not None:
            await self.browsers.close()
        await self.mcp.close()
        await self.memory.embedding.close()
        await self.jobs.close()
        await self.http.close()
        await self.vault.close()
        await self.certificates.close()
        await self.db.close()


async def start(
    loaded: Loaded,
    chosen: ChosenModels,
    env: Mapping[str, str],
    *,
    clock: Clock | None = None,
    providers: Mapping[str, ModelProvider] | None = None,
    resolver: Resolver | None = None,
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
    await ground.vault.open()
    db, clock, redactor, vault = ground.db, ground.clock, ground.redactor, ground.vault
    certificates = _certificates(home, given, db, clock)
    await certificates.open()

    # Who decides, and what takes back what was done.
    policy = PolicyStore(policy_folder, given.policy.preset)
    shadow = open_shadow(given.policy.shadow, policy_folder, given.policy.preset)
    others = OtherPolicies(lambda: policy.preset)
    checkpoints = Checkpoints(key(home / "keys" / "seal.key"))

    # What can be done: our own tools, and those that come from elsewhere.
    runner = Runner(Sandbox(hidden=ground.forbidden), Egress(ground.resolver))
    jobs = Jobs(runner, home / "jobs", redactor, clock.now_ms)
    catalogue = parts_tools.own(ground, runner, jobs, rehearsal=given.rehearsal.tools)
    browsers = parts_tools.browsers(ground, env, runner.sandbox, catalogue)
    lull = IdleGate()
    embedding = Embedding(db, LocalEmbedder() if given.memory.embeddings else None, lull)
    memory = Memory(db, redactor, clock, embedding, lambda: fold_log(home / "journal.db"))
    transcripts = Transcripts(db, embedding)
    parts_tools.offer_memory(catalogue, db, memory, transcripts)
    mcp = Mcp(db, catalogue, parts_tools.mcp_opener(ground, env, runner.sandbox))
    shelf = SkillRegistry(
        db, catalogue, redactor, home / "skills", parts_tools.lent_to_skills(ground)
    )
    await shelf.open()
    workers = Workers(
        db, clock, certificates, catalogue, ground.fence, lease_ms=given.workers.lease_ms
    )

    # Who answers, and what is shown to them.
    http = HttpClient()
    keys = {**env, **await parts_setup.vault_keys(chosen, vault)}
    models = parts_models.open_models(loaded, chosen, keys, http, providers or {})
    hub, lives = Broadcast(clock), SessionCache(db)
    notices = Notices(db, hub, redactor, clock)
    incidents = Incidents(db, notices, redactor, clock)
    most_output = given.models.max_output_tokens
    budgets = BudgetService(
        db,
        models.prices,
        notices,
        clock,
        most_output=most_output,
        limits=spending_settings.limits(given),
    )
    compacting = parts_models.compacting(ground, lives, models, budgets, checkpoints)
    project_notes = ProjectNotes(db, notices, redactor)
    assembler, projects = (
        Assembler(catalogue.specs, shelf.index),
        ProjectFiles(redactor, project_notes),
    )
    settings, gallery = _settings(given), ImageLoader(db)
    spending = Spending(db, models, budgets, clock, settings)
    model_turns = ModelTurns(
        hub,
        models,
        assembler,
        projects,
        Recalling(memory),
        gallery,
        compacting,
        redactor,
        clock,
        spending,
    )

    # Runs: ask, judge, do.
    judging = Authorizer(
        db, catalogue, policy, redactor, clock, settings, shadow=shadow, others=others.of
    )
    children = Children(db, lives, catalogue, models, clock, settings)
    tool_flow = ToolFlow(db, hub, judging, catalogue, redactor, checkpoints, clock, children)
    runs = Runs(db, lives, model_turns, tool_flow, lull)
    runs.on_end.append(children.ended)
    children.works_on = runs.works_on
    runs.on_end.append(embedding.said)
    if browsers is not None:
        runs.on_end.append(browsers.run_ended)

    # The verbs.
    answers = ApprovalService(db, judging, catalogue, policy, redactor, clock, policy_folder)
    kinds = Kinds(db, ByHand(catalogue, judging, policy), ground.fence)
    enclosures = Enclosures(References(db, lives, kinds, redactor), Attachments(db, redactor))
    gateway = Gateway(db, hub, lives, runs, answers, models, redactor, clock, settings, enclosures)
    default_workspace = given.workspace.root or here(ground.forbidden)
    sessions = Sessions(
        db,
        runs,
        redactor,
        clock,
        default_workspace=default_workspace,
        forbidden_roots=ground.forbidden,
    )
    restoring = Restoring(db, runs, checkpoints, clock)
    channels = parts_channels.channels(
        ground,
        env,
        gateway=gateway,
        sessions=sessions,
        answers=answers,
        judging=judging,
        policy=policy,
        catalogue=catalogue,
        memory=memory,
        models=models,
        notices=notices,
        hub=hub,
    )
    workers.presence.on_change = partial(hub.changed, ("workers",))

    # What is done behind everybody's back, kind by kind.
    tasks = Tasks(db, redactor, clock, lull)
    timekeeping = parts_schedules.timekeeping(
        ground,
        tasks,
        gateway,
        sessions,
        answers,
        notices,
        enclosures.attachments,
        runs,
        catalogue,
        models,
    )
    learning, feeder = parts_learning.learning(
        ground, memory, policy, models, budgets, notices, shelf, tasks
    )

    days = given.retention
    old = RetentionSettings(
        days.sessions_after_days, days.unused_files_after_days, days.chat_messages_after_days
    )
    retention = Retention(db, clock, home / "journal.db", old)
    retention.register(tasks)
    client_tools.register(tasks)

    # Who looks after all of it.
    health = HealthParts(
        ground,
        chosen,
        notices,
        incidents,
        runs=runs,
        tasks=tasks,
        catalogue=catalogue,
        sandbox=runner.sandbox,
        mcp=mcp,
        browsers=browsers,
        channels=channels,
        workers=workers,
    )

    # Go on with what was unfinished: files first, then those who work on them.
    tasks.on_jump.append(answers.clock_was_set)
    gateway.listeners.append(budgets.on_commit)
    gateway.listeners.append(workers.crew.on_commit)
    await budgets.start()
    await restoring.recover()
    await children.remember()
    await learning.recover()
    await workers.start()
    runs.on_end.append(feeder.ended)
    feeder.ended()
    await gateway.start()
    await children.go_on()
    await retention.start()
    tasks.start()
    await timekeeping.start()
    embedding.start()
    await mcp.apply(mcp_settings.servers(given))
    router = given.channel_router
    wanted = channel_settings.channels(given)
    await channels.apply(
        wanted,
        router_on=router.enabled,
        notices_to=router.notices_to,
        approvals_to=router.approvals_to,
    )
    health.watchdog.start()
    daemon = Daemon(
        loaded=loaded,
        chosen=chosen,
        db=db,
        clock=clock,
        hub=hub,
        redactor=redactor,
        vault=vault,
        certificates=certificates,
        catalogue=catalogue,
        policy=policy,
        shadow=shadow,
        policy_folder=policy_folder,
        models=models,
        budgets=budgets,
        forecasts=Forecasts(db, clock),
        runs=runs,
        answers=answers,
        gateway=gateway,
        callers=Callers(db, gateway, sessions, enclosures, redactor),
        retention=retention,
        children=children,
        tasks=tasks,
        task_verbs=TaskVerbs(db, tasks),
        timekeeping=timekeeping,
        enclosures=enclosures,
        sessions=sessions,
        rules=SessionRules(db, catalogue, clock, redactor),
        compacting=compacting,
        memory=memory,
        learning=learning,
        feeder=feeder,
        transcripts=transcripts,
        undoing=Undoing(db, checkpoints, restoring, redactor, workers.crew),
        replays=Replays(db, catalogue),
        forking=Forking(db, models, clock, settings, others),
        rewinding=Rewinding(db, runs, checkpoints, restoring, redactor),
        moments=Moments(db),
        restoring=restoring,
        shelf=shelf,
        jobs=jobs,
        mcp=mcp,
        project_notes=project_notes,
        workers=workers,
        late_channels=channels,
        notices=notices,
        incidents=incidents,
        watchdog=health.watchdog,
        doctor=health.doctor(loaded, env, models, policy, memory, certificates),
        browsers=browsers,
        settings=settings,
        setup=parts_setup.FileSetup(
            home,
            env,
            chosen,
            db=db,
            vault=vault,
            policy=policy,
            models=models,
            http=http,
            redactor=redactor,
        ),
        http=http,
        reloader=asyncio.create_task(_watch_policies(db, policy, shadow)),
    )
    for service in daemon.offered:
        daemon.services.add(service)
    daemon.services.add(daemon.setup, Setup)
    daemon.services.add(daemon.incidents, OpenIncidents)
    daemon.services.add(daemon.notices, UnreadNotices)
    return daemon


def _certificates(home: Path, given: Config, db: Database, clock: Clock) -> Certificates:
    tls = given.server.tls
    own = OwnFiles(tls.cert, tls.key) if tls.cert else None
    return Certificates(
        db,
        clock,
        home / "tls",
        config.write_private,
        own=own,
        label=socket.gethostname() or "localhost",
    )


def _settings(given: Config) -> Settings:
    timeouts = given.approvals.timeout_ms
    times = {
        name: 0 if (value := getattr(timeouts, name)) == "never" else int(value)
        for name in ApprovalTimes.__struct_fields__
    }
    per_run = given.budgets
    money = round(per_run.usd * 1_000_000)
    budgets = RunBudgets(
        per_run.turns, per_run.calls, per_run.active_minutes * 60_000, per_run.tokens, money
    )
    return Settings(budgets, ApprovalTimes(**times), given.mailbox.depth)


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
    now = _settings(fresh.config)
    settings = daemon.settings
    settings.budgets, settings.approval_times, settings.mailbox_depth = (
        now.budgets,
        now.approval_times,
        now.mailbox_depth,
    )
    daemon.watchdog.use(healing(fresh.config, daemon.chosen))
    learns = parts_learning.settings(fresh.config)
    daemon.learning.use(learns)
    daemon.feeder.use(learns)
    await daemon.mcp.apply(mcp_settings.servers(fresh.config))
    router, wanted = fresh.config.channel_router, channel_settings.channels(fresh.config)
    await daemon.late_channels.apply(
        wanted,
        router_on=router.enabled,
        notices_to=router.notices_to,
        approvals_to=router.approvals_to,
    )
    daemon.budgets.configure(spending_settings.limits(fresh.config))
    logging.getLogger("palyra").setLevel(fresh.config.log.level.upper())
    daemon.reloaded.update((key, after.get(key)) for key in live)
    reloaded = ConfigReloaded(live, tuple(key for key in changed if key not in live))
    event = AdminChanged(what="config", action="reloaded", details=msgspec.to_builtins(reloaded))
    await daemon.db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, [event]))
    return reloaded
