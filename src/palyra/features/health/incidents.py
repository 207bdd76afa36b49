"""Incidents: opened once for what is wrong, with one notice; closed when it is over. A remedy is
recorded before its effect.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from palyra.core.errors import Unavailable
from palyra.core.events import Domain, IncidentOpened, IncidentTried, NoticeAbout, Severity
from palyra.core.ids import OWNER
from palyra.features.health import rows
from palyra.features.health.rows import Incident
from palyra.features.notices.service import Notices
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

LINK = "#/health"
# What stands among the remedies when no more are tried.
ESCALATED = "escalate"
_WORSE: dict[Severity, Severity] = {
    "info": "warning",
    "warning": "error",
    "error": "critical",
    "critical": "critical",
}


class IncidentList(Struct, frozen=True):
    incidents: list[Incident]


class Incidents:
    def __init__(self, db: Database, notices: Notices, redactor: Redactor, clock: Clock) -> None:
        self._db = db
        self._notices = notices
        self._redactor = redactor
        self._clock = clock
        # What cannot be recorded now, by key: told all the same to whoever asks.
        self._in_mind: dict[str, Incident] = {}

    @property
    def unrecorded(self) -> int:
        return len(self._in_mind)

    def open_by_domain(self, tx: Tx) -> dict[str, int]:
        return rows.open_by_domain(tx)

    def keep_in_mind(
        self,
        domain: Domain,
        key: str,
        summary: str,
        *,
        severity: Severity = "warning",
        fix: str = "",
    ) -> None:
        """Show an incident that the journal does not take now, until it is recorded or over."""
        if key in self._in_mind:
            return
        summary = self._redactor.redact(summary)
        opened_ms, incident_id = self._clock.now_ms(), self._clock.new_id()
        self._in_mind[key] = Incident(
            incident_id=incident_id,
            key=key,
            domain=domain,
            severity=severity,
            summary=summary,
            fix=fix,
            opened_ms=opened_ms,
        )
        self._notices.show(key, "incident", _text(summary, fix), LINK)

    def forget(self, key: str) -> None:
        """Forget an incident: it is recorded now, or over."""
        if self._in_mind.pop(key, None) is not None:
            self._notices.show_no_more(key)

    def opening(
        self,
        domain: Domain,
        key: str,
        summary: str,
        *,
        severity: Severity = "warning",
        fix: str = "",
        told: "tuple[NoticeAbout, str, str, str, str] | None" = None,
    ) -> Callable[[Tx], Incident | None]:
        """The step that opens an incident and tells the owner; it gives None if one is open for
        this key.

        `told` is another notice than the usual one: what about, key, text, link, and whom.
        """
        incident_id = self._clock.new_id()
        summary = self._redactor.redact(summary)
        event = IncidentOpened(
            incident_id=incident_id,
            domain=domain,
            severity=severity,
            summary=summary,
            key=key,
            fix=fix,
        )
        about, notice, text, link, to = told or (
            "incident",
            f"incident:{incident_id}",
            _text(summary, fix),
            LINK,
            OWNER,
        )
        tell = self._notices.telling(about, notice, text, link, to=to)

        def step(tx: Tx) -> Incident | None:
            opened = rows.open_(tx, event)
            if opened is not None:
                tell(tx)
            return opened

        return step

    async def open(
        self,
        domain: Domain,
        key: str,
        summary: str,
        *,
        severity: Severity = "warning",
        fix: str = "",
        told: "tuple[NoticeAbout, str, str, str, str] | None" = None,
    ) -> Incident | None:
        """Open one, unless one is open for this key: then None. `key` names what is wrong:
        `run:ID`, `disk`.
        """
        return await self._db.write_soon(
            self.opening(domain, key, summary, severity=severity, fix=fix, told=told)
        )

    async def close(self, key: str, outcome: str) -> Incident | None:
        """Close the one that is open for this key, if there is one."""

        def step(tx: Tx) -> Incident | None:
            found = rows.find_open(tx, key)
            return (
                rows.close(tx, found.incident_id, self._redactor.redact(outcome)) if found else None
            )

        return await self._db.write_soon(step)

    async def begin(self, incident: Incident, remedy: str) -> Incident:
        """Record that a remedy is about to be tried. Durable when this returns."""
        event = IncidentTried(incident_id=incident.incident_id, remedy=remedy, result="begun")
        return await self._db.write_soon(partial(rows.tried, event=event))

    async def settle(
        self, incident: Incident, remedy: str, *, worked: bool, detail: str = ""
    ) -> Incident:
        """Record how the remedy went."""
        event = IncidentTried(
            incident_id=incident.incident_id,
            remedy=remedy,
            result="done" if worked else "failed",
            detail=self._redactor.redact(detail),
        )
        return await self._db.write_soon(partial(rows.tried, event=event))

    async def escalate(self, incident: Incident, why: str) -> Incident:
        """Escalate an incident that nothing more is tried for: it is worse than it was, and the
        owner is told, once more and for the last time.
        """
        event = IncidentTried(
            incident_id=incident.incident_id,
            remedy=ESCALATED,
            result="done",
            detail=why,
            severity=_WORSE[incident.severity],
        )
        text = f"{incident.summary}: {why}"
        tell = self._notices.telling(
            "incident", f"incident:{incident.incident_id}:escalated", text, LINK
        )

        def step(tx: Tx) -> Incident:
            tell(tx)
            return rows.tried(tx, event)

        return await self._db.write_soon(step)

    async def opened(self) -> list[Incident]:
        """Return the recorded incidents that are not over."""
        return await self._db.read(rows.opened)

    async def current(self) -> list[Incident]:
        """Return the incidents that are not over, also where they cannot be recorded now."""
        try:
            recorded = await self.opened()
        except Unavailable:
            # While the disk does not answer, what is known without it is the answer.
            if not self._in_mind:
                raise
            recorded = []
        return [
            *self._in_mind.values(),
            *(each for each in recorded if each.key not in self._in_mind),
        ]

    async def get(self, incident_id: str) -> Incident:
        for incident in self._in_mind.values():
            if incident.incident_id == incident_id:
                return incident
        return await self._db.read(lambda tx: rows.get(tx, incident_id))

    async def listing(
        self, *, is_open: bool | None = None, before: str = "", limit: int = 100
    ) -> IncidentList:
        shown = [] if before or is_open is False else list(self._in_mind.values())
        try:
            found = await self._db.read(
                lambda tx: rows.listing(tx, is_open=is_open, before=before or "~", limit=limit)
            )
        except Unavailable:
            if not shown:
                raise
            found = []
        return IncidentList([*shown, *found][:limit])


def _text(summary: str, fix: str) -> str:
    return f"{summary}: {fix}" if fix else summary
