"""What the config says to the kernel and to each feature, as values of theirs."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from palyra.agent.settings import ApprovalTimes, Settings
from palyra.core.events import Budgets as RunBudgets
from palyra.core.services import Services
from palyra.features.budgets.service import BudgetSettings
from palyra.features.channels.settings import ChannelSettings
from palyra.features.compaction.service import CompactionSettings
from palyra.features.health.assembly import ConfigChecks
from palyra.features.health.doctor import DoctorCheck
from palyra.features.health.watchdog import Healing
from palyra.features.learning.model import Threshold, Thresholds
from palyra.features.learning.settings import LearningSettings
from palyra.features.mcp.settings import McpServers
from palyra.features.memory.service import MemorySettings
from palyra.features.retention.service import RetentionSettings
from palyra.features.tls.service import CertificateSettings, OwnFiles
from palyra.features.workers.service import WorkerSettings
from palyra.serve import config
from palyra.serve.config import ChosenModels, Config, Loaded
from palyra.serve.config import budgets as budget_settings
from palyra.serve.config import channels as channel_settings
from palyra.serve.config import mcp as mcp_settings
from palyra.tools.browser import discovery

# What a provider is given for its own limit to end a silent call, before anybody else does.
_AFTER_PROVIDER_MS = 30_000


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
    return Settings(budgets, ApprovalTimes(**times), given.mailbox.depth)


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
        RetentionSettings(
            days.sessions_after_days, days.unused_files_after_days, days.chat_messages_after_days
        )
    )
    found.add(CertificateSettings(OwnFiles(tls.cert, tls.key) if tls.cert else None))
    found.add(WorkerSettings(given.workers.lease_ms))
    found.add(McpServers(mcp_settings.servers(given)))
    found.add(
        ChannelSettings(
            channel_settings.channels(given),
            router_on=router.enabled,
            notices_to=router.notices_to,
            approvals_to=router.approvals_to,
        )
    )
    found.add(healing(given, chosen))
    found.add(
        ConfigChecks(
            config.DEMO,
            settings=lambda: config_checks(loaded.home, env),
            browser=lambda: browser_checks(given, env),
        )
    )
    return found


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
    remote = [
        each.timeout_ms
        for each in chosen.providers.values()
        if each.kind not in ("demo", "scripted")
    ]
    return Healing(
        mode=wanted.mode,
        every_ms=wanted.every_ms,
        run_ms=wanted.run_ms,
        call_ms=max(remote) + _AFTER_PROVIDER_MS if remote else 0,
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
