"""Settings of the kernel and of each feature, from the config, as values of theirs."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from palyra.agent.settings import ApprovalTimes, ProviderPatience, Settings
from palyra.api.exposure import Exposure, ListenerSettings
from palyra.core.events import Budgets as RunBudgets
from palyra.core.services import Services
from palyra.features.budgets.service import BudgetSettings
from palyra.features.channels.contract import ChannelSettings
from palyra.features.compaction.service import CompactionSettings
from palyra.features.health.assembly import ConfigChecks
from palyra.features.health.doctor import DoctorCheck
from palyra.features.health.watchdog import Healing
from palyra.features.learning.model import LearningSettings, Threshold, Thresholds
from palyra.features.mcp.settings import McpServers
from palyra.features.memory.service import MemorySettings
from palyra.features.openai_api.idle_sessions import CallerSettings
from palyra.features.proof.service import ProofSettings
from palyra.features.retention.service import RetentionSettings
from palyra.features.telemetry.exporter import TelemetrySettings
from palyra.features.tls.model import CertificateSettings, OwnFiles
from palyra.features.web_search.model import SearchSettings
from palyra.features.workers.service import WorkerSettings
from palyra.serve import config
from palyra.serve.config import ChosenModels, Config, Loaded, call_limits
from palyra.serve.config import backups as backup_settings
from palyra.serve.config import budgets as budget_settings
from palyra.serve.config import channels as channel_settings
from palyra.serve.config import mcp as mcp_settings
from palyra.serve.config.sections import BUILT_IN
from palyra.tools.browser import discovery

# What a provider is given for its own limit to end a silent call, before anybody else does.
_AFTER_PROVIDER_MS = 30_000
_ENDLESS_MS = 1 << 50


def of_the_loop(given: Config) -> Settings:
    timeouts = given.approvals.timeout_ms
    times = {
        name: 0 if (value := getattr(timeouts, name)) == "never" else int(value)
        for name in ApprovalTimes.__struct_fields__
    }
    per_run = given.budgets
    budgets = RunBudgets(
        per_run.turns,
        per_run.calls,
        per_run.active_minutes * 60_000,
        per_run.tokens,
        round(per_run.usd * 1_000_000),
    )
    wanted = given.waiting.patience_ms
    patience = ProviderPatience(
        interactive=wanted.interactive,
        api=wanted.api,
        scheduled=wanted.scheduled,
        channel=wanted.channel,
    )
    return Settings(
        budgets,
        ApprovalTimes(**times),
        given.mailbox.depth,
        patience,
        given.waiting.longest_pause_ms,
    )


def of_features(loaded: Loaded, chosen: ChosenModels, env: Mapping[str, str]) -> Services:
    """The settings of every feature, by class."""
    given, found = loaded.config, Services()
    days, tls, router = given.retention, given.server.tls, given.channel_router
    condensed = given.compaction
    found.add(BudgetSettings(budget_settings.limits(given), given.models.max_output_tokens))
    found.add(MemorySettings(given.memory.embeddings))
    found.add(
        CompactionSettings(
            given.models.summary,
            condensed.threshold if condensed.automatic else None,
            condensed.notes,
        )
    )
    found.add(_learning(given))
    found.add(
        ProofSettings(
            given.journal.origin,
            given.journal.checkpoint_entries,
            given.journal.checkpoint_seconds,
            given.journal.anchors,
            keyring=given.journal.key_store == "keyring",
            witness_for=given.journal.witness_for,
        )
    )
    found.add(
        RetentionSettings(
            days.sessions_after_days, days.unused_files_after_days, days.chat_messages_after_days
        )
    )
    found.add(CallerSettings(days.unnamed_archived_after_hours))
    found.add(backup_settings.settings(given))
    found.add(_telemetry(given, env))
    found.add(CertificateSettings(OwnFiles(tls.cert, tls.key) if tls.cert else None))
    found.add(WorkerSettings(given.workers.lease_ms))
    found.add(
        ListenerSettings(
            exposure=exposure(given),
            quic_port=given.server.quic_port,
            grpc_port=given.server.grpc_port,
            workers_quic=given.workers.quic,
        )
    )
    found.add(McpServers(mcp_settings.servers(given)))
    found.add(
        ChannelSettings(
            channel_settings.channels(given),
            router_on=router.enabled,
            notices_to=router.notices_to,
            approvals_to=router.approvals_to,
        )
    )
    found.add(_web_search(given))
    found.add(healing(given, chosen))
    found.add(
        ConfigChecks(
            config.DEMO,
            settings=lambda: config_checks(loaded.home, env),
            browser=lambda: browser_checks(given, env),
        )
    )
    return found


def _web_search(given: Config) -> SearchSettings:
    wanted = given.web_search
    return SearchSettings(
        engine=wanted.engine,
        url=wanted.url,
        key=wanted.key,
        results=wanted.results,
        cache_minutes=wanted.cache_minutes,
    )


def _learning(given: Config) -> LearningSettings:
    wanted = given.learning
    return LearningSettings(
        enabled=wanted.enabled,
        thresholds=Thresholds(
            automatic=wanted.automatic,
            fact=Threshold(wanted.fact_review_bps, wanted.fact_auto_bps),
            preference=Threshold(wanted.preference_review_bps, wanted.preference_auto_bps),
            procedure=Threshold(wanted.procedure_review_bps),
            policy=Threshold(wanted.policy_review_bps),
        ),
        cooldown_ms=wanted.cooldown_minutes * 60_000,
        model=given.models.extraction,
    )


def healing(given: Config, chosen: ChosenModels) -> Healing:
    wanted = given.healing
    silences = [
        call_limits.longest_silence_ms(each)
        for each in chosen.providers.values()
        if each.kind not in BUILT_IN
    ]
    # Who may keep quiet without end is not called stuck; the others end by their own limits.
    longest = max((_ENDLESS_MS if each is None else each for each in silences), default=0)
    return Healing(
        mode=wanted.mode,
        every_ms=wanted.every_ms,
        run_ms=wanted.run_ms,
        call_ms=longest + _AFTER_PROVIDER_MS if longest else 0,
        task_ms=wanted.task_ms,
        helper_ms=wanted.helper_ms,
        approval_ms=wanted.approval_ms,
        forgotten=wanted.forgotten,
        free_bytes=wanted.free_mb << 20,
        log_bytes=wanted.log_mb << 20,
    )


def config_checks(home: Path, env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """The config as it is on disk now, which the daemon may not have read yet."""
    problems = config.check(home, env)
    for at, problem in enumerate(problems):
        fix = (
            f"unset {problem.where}, or give it another value"
            if problem.where in env
            else f"edit {home / config.FILE}"
        )
        yield DoctorCheck(
            id=f"config:{at}", title="config", state="fail", detail=str(problem), fix=fix
        )
    if problems:
        return
    yield DoctorCheck(id="config", title="config", state="ok", detail="valid")
    for at, note in enumerate(config.load(home, env).notes):
        yield DoctorCheck(id=f"config:note{at}", title="config", state="warn", detail=note)


def browser_checks(given: Config, env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    found = discovery.find(env, given.browser.chromium)
    if not given.browser.enabled:
        yield DoctorCheck(
            id="browser", title="browser", state="ok", detail="switched off by browser.enabled"
        )
    elif isinstance(found, discovery.Installed):
        yield DoctorCheck(
            id="browser", title="browser", state="ok", detail=f"{found.chromium}, in the sandbox"
        )
    else:
        # Nobody needs one; but who installed Playwright or named a Chromium wants one.
        wanted = found != discovery.NO_PLAYWRIGHT
        detail = f"not offered: {found.what}"
        yield DoctorCheck(
            id="browser",
            title="browser",
            state="warn" if wanted else "ok",
            detail=detail,
            fix=found.fix,
        )


def exposure(given: Config) -> Exposure:
    """Return who can reach a daemon with these settings."""
    server = given.server
    return Exposure(
        host=server.host,
        tls=server.tls.enabled,
        own_files=bool(server.tls.cert),
        grpc=server.grpc,
        quic=server.quic,
        workers=given.workers.listen,
        names=server.tls.names,
        allowed_hosts=server.allowed_hosts,
        allowed_origins=server.allowed_origins,
    )


def _telemetry(given: Config, env: Mapping[str, str]) -> TelemetrySettings:
    section = given.telemetry
    key = config.secret(section.authorization, env) if section.authorization else ""
    return TelemetrySettings(
        endpoint=section.endpoint,
        authorization=key,
        service=section.service,
        traces=section.traces,
        metrics=section.metrics,
        logs=section.logs,
        content=section.content,
        metrics_seconds=section.metrics_seconds,
    )
