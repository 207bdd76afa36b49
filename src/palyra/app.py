"""The composition root: plain constructor calls, bottom to top. Reading it is reading the architecture."""

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from palyra import config
from palyra.config import Chosen, Config, Loaded, Provider
from palyra.config import mcp as mcp_settings
from palyra.domain.errors import ConfigInvalid, InvalidInput, PalyraError
from palyra.domain.events import AdminChanged, Budgets
from palyra.domain.ids import SYSTEM, SYSTEM_TAPE
from palyra.domain.labels import Label
from palyra.domain.ports import CallContext, ModelProvider
from palyra.domain.redaction import Redactor
from palyra.journal import tape, workspace
from palyra.journal.database import Database, Tx
from palyra.journal.sqlite import Sqlite
from palyra.journal.sqlite_files import fold_log
from palyra.models.dialects import open_provider
from palyra.models.embedding import LocalEmbedder
from palyra.models.http import Endpoint, HttpClient
from palyra.policy.shadow import open_shadow
from palyra.policy.store import PolicyStore, Reloaded
from palyra.policy.watch import watch
from palyra.runtime import policy_changes
from palyra.runtime.answers import Answers
from palyra.runtime.assembly import Assembler
from palyra.runtime.attachments import Attachments
from palyra.runtime.by_hand import ByHand
from palyra.runtime.checkpointing import Checkpoints
from palyra.runtime.clock import Clock
from palyra.runtime.compacting import Compacting
from palyra.runtime.compaction_notes import Notes
from palyra.runtime.enclosures import Enclosures
from palyra.runtime.forking import Forking, OtherPolicies
from palyra.runtime.gateway import Gateway
from palyra.runtime.hub import Hub
from palyra.runtime.judging import Judging
from palyra.runtime.live import LiveSessions
from palyra.runtime.mcp import Mcp, Opener
from palyra.runtime.memory import Memory
from palyra.runtime.memory_embedding import Embedding
from palyra.runtime.memory_keeper import SessionKeeper
from palyra.runtime.model_turns import ModelTurns
from palyra.runtime.moments import Moments
from palyra.runtime.pictures import Gallery
from palyra.runtime.project_files import ProjectFiles
from palyra.runtime.recalling import Recalling
from palyra.runtime.reference_kinds import Kinds
from palyra.runtime.references import References
from palyra.runtime.replay.replays import Replays
from palyra.runtime.restoring import Restoring
from palyra.runtime.rewind import Rewinding
from palyra.runtime.routing import Models, Target
from palyra.runtime.rules import Rules
from palyra.runtime.runs import Runs
from palyra.runtime.session_verbs import Sessions
from palyra.runtime.settings import ApprovalTimes, ConfigReloaded, Settings
from palyra.runtime.shelf import Shelf
from palyra.runtime.summarising import Summariser
from palyra.runtime.tool_flow import ToolFlow
from palyra.runtime.transcripts import Transcripts
from palyra.runtime.undo import Undoing
from palyra.runtime.vault import Vault
from palyra.runtime.vault_keys import KeyFile
from palyra.tools import http_fetch, session_search, standard
from palyra.tools import memory as memory_tools
from palyra.tools.browser import finding as browser_finding
from palyra.tools.catalogue import Catalogue, TypedTool
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.paths import Fence
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell import tools as shell
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.running import Runner
from palyra.tools.skills import network as skill_network
from palyra.tools.skills.host import Asked, World

if TYPE_CHECKING:
    from palyra.tools.browser.browsers import Browsers

log = logging.getLogger("palyra")


@dataclass(frozen=True)
class Daemon:
    """Everything that is running, for the transports to translate to."""

    loaded: Loaded
    chosen: Chosen
    db: Database
    clock: Clock
    hub: Hub
    redactor: Redactor
    vault: Vault
    catalogue: Catalogue
    policy: PolicyStore
    shadow: PolicyStore | None
    policy_folder: Path
    models: Models
    runs: Runs
    answers: Answers
    gateway: Gateway
    enclosures: Enclosures
    sessions: Sessions
    rules: Rules
    undoing: Undoing
    compacting: Compacting
    rewinding: Rewinding
    replays: Replays
    forking: Forking
    moments: Moments
    restoring: Restoring
    memory: Memory
    transcripts: Transcripts
    shelf: Shelf
    jobs: Jobs
    mcp: Mcp
    browsers: "Browsers | None"
    http: HttpClient
    settings: Settings
    reloader: "asyncio.Task[None]"
    # Settings that were changed since the start, and took effect.
    reloaded: dict[str, object] = field(default_factory=dict)

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

    async def close(self) -> None:
        """Leave every run where its tape ends; the next start goes on from there."""
        self.reloader.cancel()
        await self.restoring.close()
        await self.replays.close()
        await self.gateway.close()
        if self.browsers is not None:
            await self.browsers.close()
        await self.mcp.close()
        await self.memory.embedding.close()
        await self.jobs.close()
        await self.http.close()
        await self.vault.close()
        await self.db.close()


@dataclass(frozen=True)
class _Ground:
    """What everything else stands on. Nothing that works for somebody gets into the `forbidden` folders: they are the daemon's."""

    config: Config
    home: Path
    clock: Clock
    db: Database
    redactor: Redactor
    vault: Vault
    resolver: Resolver
    forbidden: tuple[str, ...]

    @property
    def fence(self) -> Fence:
        return Fence(self.forbidden)


async def start(
    loaded: Loaded,
    chosen: Chosen,
    env: Mapping[str, str],
    *,
    clock: Clock | None = None,
    providers: Mapping[str, ModelProvider] | None = None,
    resolver: Resolver | None = None,
) -> Daemon:
    """Build the daemon, open its journal and go on with what was unfinished.

    `providers` stand in for the configured ones of the same names: a test brings its own model, and its own names of hosts.
    """
    home, given = loaded.home, loaded.config
    policy_folder = _folders(home, given)
    ground = _ground(loaded, policy_folder, clock or Clock(), resolver or Resolver())
    await ground.vault.open()
    db, clock, redactor, vault = ground.db, ground.clock, ground.redactor, ground.vault

    # Who decides, and what takes back what was done.
    policy = PolicyStore(policy_folder, given.policy.preset)
    shadow = open_shadow(given.policy.shadow, policy_folder, given.policy.preset)
    others = OtherPolicies(lambda: policy.preset)
    checkpoints = Checkpoints(_key(home / "keys" / "seal.key"))

    # What can be done: our own tools, and those that come from elsewhere.
    runner = Runner(Sandbox(hidden=ground.forbidden), Egress(ground.resolver))
    jobs = Jobs(runner, home / "jobs", redactor, clock.now_ms)
    catalogue = _tools(ground, runner, jobs, rehearsal=given.rehearsal.tools)
    browsers = _browsers(ground, env, runner.sandbox, catalogue)
    embedding = Embedding(db, LocalEmbedder() if given.memory.embeddings else None)
    memory = Memory(db, redactor, clock, embedding, lambda: fold_log(home / "journal.db"))
    transcripts = Transcripts(db, embedding)
    _offer_memory(catalogue, db, memory, transcripts)
    mcp = Mcp(db, catalogue, _mcp_opener(ground, env, runner.sandbox))
    shelf = Shelf(db, catalogue, redactor, home / "skills", _lent_to_skills(ground))
    await shelf.open()

    # Who answers, and what is shown to them.
    http = HttpClient()
    models = _models(loaded, chosen, env, http, providers or {})
    hub, lives = Hub(), LiveSessions(db)
    compacting = _compacting(ground, lives, models, checkpoints)
    assembler, projects = Assembler(catalogue.specs, shelf.index), ProjectFiles(redactor)
    model_turns = ModelTurns(hub, models, assembler, projects, Recalling(memory), Gallery(db), compacting, redactor, clock)

    # Runs: ask, judge, do.
    settings = _settings(given)
    judging = Judging(db, catalogue, policy, redactor, clock, settings, shadow=shadow, others=others.of)
    tool_flow = ToolFlow(db, hub, judging, catalogue, redactor, checkpoints, clock)
    runs = Runs(db, lives, model_turns, tool_flow)
    runs.on_end.append(embedding.said)
    if browsers is not None:
        runs.on_end.append(browsers.run_ended)

    # The verbs.
    answers = Answers(db, judging, catalogue, policy, redactor, clock, policy_folder)
    kinds = Kinds(db, ByHand(catalogue, judging, policy), ground.fence)
    enclosures = Enclosures(References(db, lives, kinds, redactor), Attachments(db, redactor))
    gateway = Gateway(db, hub, lives, runs, answers, models, redactor, clock, settings, enclosures)
    default_workspace = given.workspace.root or _here(ground.forbidden)
    sessions = Sessions(db, runs, redactor, clock, default_workspace=default_workspace, forbidden_roots=ground.forbidden)
    restoring = Restoring(db, runs, checkpoints, clock)

    # Go on with what was unfinished: files first, then those who work on them.
    await restoring.recover()
    await gateway.start()
    embedding.start()
    await mcp.apply(mcp_settings.servers(given))
    return Daemon(
        loaded=loaded,
        chosen=chosen,
        db=db,
        clock=clock,
        hub=hub,
        redactor=redactor,
        vault=vault,
        catalogue=catalogue,
        policy=policy,
        shadow=shadow,
        policy_folder=policy_folder,
        models=models,
        runs=runs,
        answers=answers,
        gateway=gateway,
        enclosures=enclosures,
        sessions=sessions,
        rules=Rules(db, catalogue, clock, redactor),
        compacting=compacting,
        memory=memory,
        transcripts=transcripts,
        undoing=Undoing(db, checkpoints, restoring, redactor),
        replays=Replays(db, catalogue),
        forking=Forking(db, models, clock, settings, others),
        rewinding=Rewinding(db, runs, checkpoints, restoring, redactor),
        moments=Moments(db),
        restoring=restoring,
        shelf=shelf,
        jobs=jobs,
        mcp=mcp,
        browsers=browsers,
        settings=settings,
        http=http,
        reloader=asyncio.create_task(_watch_policies(db, policy, shadow)),
    )


# --- the ground -------------------------------------------------------------------------------------------------------


def _folders(home: Path, given: Config) -> Path:
    """Make the daemon's own folders, for its owner alone. Returns the one with the policies."""
    policies = Path(given.policy.folder) if given.policy.folder else home / "policies"
    for folder in (home, home / "keys", policies):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return policies


def _ground(loaded: Loaded, policy_folder: Path, clock: Clock, resolver: Resolver) -> _Ground:
    home = loaded.home
    db = Database(Sqlite(home / "journal.db"), clock.now_ms)
    db.open()
    redactor = Redactor(_key(home / "keys" / "redaction.key"))
    vault = Vault(db, redactor, clock, KeyFile(home / "keys" / "vault.key"))
    forbidden = (str(home.resolve()), str(policy_folder.resolve()))
    return _Ground(loaded.config, home, clock, db, redactor, vault, resolver, forbidden)


def _here(forbidden: tuple[str, ...]) -> str:
    """The folder the daemon was started in, unless that is one it must not work in."""
    here = os.getcwd()
    return "" if here == "/" or any(root == here or root.startswith(here + "/") for root in forbidden) else here


def _key(path: Path) -> bytes:
    """32 random bytes that are made once and stay. They appear whole or not at all, whenever the power goes."""
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        config.write_private(fresh, os.urandom(32))
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # Somebody else was faster: theirs counts.
        finally:
            fresh.unlink()
    key = path.read_bytes()
    if len(key) != 32:
        raise ConfigInvalid(f"the key file {path} is damaged: it must have 32 bytes; restore it from a backup")
    return key


def _settings(given: Config) -> Settings:
    timeouts = given.approvals.timeout_ms
    times = {name: 0 if (value := getattr(timeouts, name)) == "never" else int(value) for name in ApprovalTimes.__struct_fields__}
    budgets = Budgets(given.budgets.turns, given.budgets.calls, given.budgets.active_minutes * 60_000)
    return Settings(budgets, ApprovalTimes(**times), given.mailbox.depth)


async def _watch_policies(db: Database, policy: PolicyStore, shadow: PolicyStore | None) -> None:
    """Put changed policies into force, and record that."""

    async def changed(store: PolicyStore, change: Reloaded) -> None:
        try:
            await policy_changes.record(db, SYSTEM, change, shadow=store is shadow)
        except PalyraError as error:
            # The policies are in force whether or not the journal can say so now.
            log.error("a change of policy could not be recorded: %s", error.message)

    await watch((policy, shadow), changed)


def _compacting(ground: _Ground, lives: LiveSessions, models: Models, checkpoints: Checkpoints) -> Compacting:
    given, db, clock = ground.config, ground.db, ground.clock
    try:
        summariser = Summariser(models, given.models.summary, ground.redactor, clock)
    except InvalidInput as error:
        raise ConfigInvalid(f"models.summary: {error.message}") from error
    notes = Notes(db, checkpoints, ground.fence, clock) if given.compaction.notes else None
    share = given.compaction.threshold if given.compaction.automatic else None
    return Compacting(db, lives, models, summariser, share=share, keep=notes.keep if notes else None)


# --- tools ------------------------------------------------------------------------------------------------------------


def _tools(ground: _Ground, runner: Runner, jobs: Jobs, *, rehearsal: bool) -> Catalogue:
    fence = ground.fence

    def load(artifact_id: str, session_id: str) -> tuple[bytes, Label] | None:
        def query(tx: Tx) -> tuple[bytes, Label] | None:
            found = workspace.artifact(tx, session_id, artifact_id)
            return (found.body, workspace.artifact_label(tx, session_id, artifact_id)) if found else None

        return ground.db.read_from_thread(query)

    async def secret(reference: str, host: str, context: CallContext) -> str:
        return await ground.vault.resolve(
            reference, principal=context.principal, session=context.session_id, tool="http.fetch", host=host.partition(":")[0]
        )

    offered: tuple[TypedTool, ...] = (
        *standard.tools(fence, load),
        *shell.tools(runner, jobs, fence),
        *http_fetch.tools(ground.resolver, secret=secret),
    )
    if rehearsal:
        from palyra.tools import rehearsal as pretended

        offered += pretended.tools(fence)
    return Catalogue(offered)


def _offer_memory(catalogue: Catalogue, db: Database, memory: Memory, transcripts: Transcripts) -> None:
    catalogue.renew("memory", (*memory_tools.tools(SessionKeeper(db, memory)), *session_search.tools(transcripts)))


def tools_to_look_at(loaded: Loaded) -> Catalogue:
    """Our own tools without a daemon behind them: what they say of themselves and how they read arguments, nothing else."""
    home, clock = loaded.home, Clock()
    db = Database(Sqlite(home / "journal.db"), clock.now_ms)
    redactor, resolver = Redactor(bytes(32)), Resolver()
    vault = Vault(db, redactor, clock, KeyFile(home / "keys" / "vault.key"))
    runner = Runner(Sandbox(), Egress(resolver))
    jobs = Jobs(runner, home / "jobs", redactor, clock.now_ms)
    catalogue = _tools(_Ground(loaded.config, home, clock, db, redactor, vault, resolver, ()), runner, jobs, rehearsal=True)
    embedding = Embedding(db, None)
    _offer_memory(catalogue, db, Memory(db, redactor, clock, embedding), Transcripts(db, embedding))
    return catalogue


def _browsers(ground: _Ground, env: Mapping[str, str], sandbox: Sandbox, catalogue: Catalogue) -> "Browsers | None":
    """Where Playwright and Chromium are installed, the browser tools are on offer; a browser starts with the first page."""
    given = ground.config
    installed = browser_finding.find(env, given.browser.chromium) if given.browser.enabled else None
    if not isinstance(installed, browser_finding.Installed):
        if given.browser.chromium and installed is not None:
            log.warning("there is no browser: %s; %s", installed.what, installed.fix)
        return None
    from palyra.tools.browser import tools as browser
    from palyra.tools.browser.browsers import Browsers

    browsers = Browsers(sandbox, ground.resolver, installed)
    catalogue.renew("browser", browser.tools(browsers))
    return browsers


def _mcp_opener(ground: _Ground, env: Mapping[str, str], sandbox: Sandbox) -> Opener:
    def look_up(reference: str) -> str:
        return config.secret(reference, env)

    return Opener(ground.home / "mcp", sandbox, ground.resolver, ground.vault, look_up, closed=ground.forbidden)


def _lent_to_skills(ground: _Ground) -> World:
    async def secret(asked: Asked, context: CallContext) -> str:
        host = asked.host.partition(":")[0] if asked.host else None
        reference = f"vault:{asked.name}"
        return await ground.vault.resolve(
            reference, principal=context.principal, session=context.session_id, tool=asked.tool, host=host, skill=asked.skill
        )

    return World(ground.fence, skill_network.http(ground.resolver), secret)


# --- models -----------------------------------------------------------------------------------------------------------


def _models(loaded: Loaded, chosen: Chosen, env: Mapping[str, str], http: HttpClient, given: Mapping[str, ModelProvider]) -> Models:
    providers = {name: given.get(name) or _provider(name, settings, env, http) for name, settings in chosen.providers.items()}
    window = loaded.config.models.context_tokens

    def target(full: str) -> Target:
        provider, _, model = full.partition("/")
        given = chosen.providers[provider]
        return Target(provider, model, given.context_tokens or window, given.vision and given.kind != "demo")

    listed = [f"{name}/{model}" for name, settings in chosen.providers.items() for model in settings.models]
    wanted = dict.fromkeys((chosen.default, *chosen.fallbacks, *listed))
    return Models(providers, [target(full) for full in wanted], [target(full) for full in chosen.fallbacks])


def _provider(name: str, settings: Provider, env: Mapping[str, str], http: HttpClient) -> ModelProvider:
    if settings.kind == "demo":
        from palyra.models.demo import DemoModel

        return DemoModel()
    if settings.kind == "scripted":
        from palyra.models.scripted import Script, ScriptedModel

        return ScriptedModel(Script.load(Path(settings.script)))
    key = config.secret(settings.api_key, env) if settings.api_key else ""
    endpoint = Endpoint(name=name, base_url=settings.base_url, api_key=key, idle_s=settings.timeout_ms / 1000)
    return open_provider(settings.kind, endpoint, http)


# --- changing settings ------------------------------------------------------------------------------------------------


# What takes effect without a restart; everything else is said to need one.
_LIVE = ("budgets.", "approvals.", "mailbox.", "log.", "mcp.")


async def reload_config(daemon: Daemon, env: Mapping[str, str]) -> ConfigReloaded:
    """Read the config again and apply what can be applied. A file with problems is ConfigInvalid and changes nothing."""
    before = {shown.key: shown.value for shown in config.show(daemon.loaded)} | daemon.reloaded
    fresh = await asyncio.to_thread(config.load, daemon.home, env)
    after = {shown.key: shown.value for shown in config.show(fresh)}
    changed = sorted(key for key in {**before, **after} if before.get(key) != after.get(key))
    live = tuple(key for key in changed if key.startswith(_LIVE))
    now = _settings(fresh.config)
    settings = daemon.settings
    settings.budgets, settings.approval_times, settings.mailbox_depth = now.budgets, now.approval_times, now.mailbox_depth
    await daemon.mcp.apply(mcp_settings.servers(fresh.config))
    logging.getLogger("palyra").setLevel(fresh.config.log.level.upper())
    daemon.reloaded.update((key, after.get(key)) for key in live)
    reloaded = ConfigReloaded(live, tuple(key for key in changed if key not in live))
    event = AdminChanged(what="config", action="reloaded", details=msgspec.to_builtins(reloaded))
    await daemon.db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, [event]))
    return reloaded
