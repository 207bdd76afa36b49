"""Backup checks of the watchdog and the doctor: one that failed, is overdue, or could not be
restored.
"""

from collections.abc import Iterator, Sequence

from palyra.features.backups.model import BackupSettings, BackupStatus, interval_ms
from palyra.features.backups.service import Backups
from palyra.features.health.doctor import DoctorCheck, State
from palyra.features.health.watchdog import HealthFinding, LookTime

# So much later than planned is overdue.
_LATE = 2


class BackupsWatched:
    def __init__(self, backups: Backups) -> None:
        self._backups = backups

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        status = await self._backups.status()
        return list(findings(self._backups.settings, status, moment.now_ms))


def findings(
    settings: BackupSettings, status: BackupStatus, now_ms: int
) -> Iterator[HealthFinding]:
    every = interval_ms(settings.every)
    if status.problem:
        yield HealthFinding(
            key="backup:failed",
            domain="journal",
            summary=f"no backup could be made ({_times(status.failures)}): {status.problem}",
            severity="error",
            fix="palyra backup now",
        )
    elif every and status.last and now_ms - status.last.made_ms > _LATE * every:
        yield HealthFinding(
            key="backup:late",
            domain="journal",
            summary=f"the last backup is {_ago(now_ms - status.last.made_ms)} old",
            fix="palyra backup now",
        )
    if status.drill is not None and not status.drill.ok:
        yield HealthFinding(
            key="backup:drill",
            domain="journal",
            summary=f"the backup {status.drill.name} cannot be restored: {status.drill.problem}",
            severity="critical",
            fix="palyra backup now, then palyra backup check",
        )


def check(settings: BackupSettings, status: BackupStatus, now_ms: int) -> Iterator[DoctorCheck]:
    """One line for the doctor."""
    state: State = "ok"
    said, fix = [], ""
    if status.last is None:
        said.append(
            "none yet"
            if settings.every
            else "not scheduled; `palyra config set backups.every daily` makes one a day"
        )
    else:
        said.append(f"the last one is {_ago(now_ms - status.last.made_ms)} old")
        said.append(f"in {status.last.target}")
    if status.drill is not None and status.drill.ok:
        said.append(f"restored and verified {_ago(now_ms - status.drill.checked_ms)} ago")
    for found in findings(settings, status, now_ms):
        state = "fail" if found.severity in ("error", "critical") else "warn"
        said, fix = [found.summary], found.fix
    yield DoctorCheck(
        id="backups",
        title="backups",
        state=state,
        detail=", ".join(said),
        fix="" if state == "ok" else fix,
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _ago(ms: int) -> str:
    minutes = max(0, ms) // 60_000
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"
