"""Incidents: what went wrong with the daemon itself, what was tried, and how it ended. At most one
is open for each key.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.core.events import (
    Domain,
    IncidentClosed,
    IncidentOpened,
    IncidentTried,
    Severity,
    TriedResult,
)
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Tx

_COLUMNS = "incident_id, key, domain, severity, summary, fix, opened_ms, closed_ms, outcome, tried"


class Tried(Struct, frozen=True, omit_defaults=True):
    """One remedy. It is `begun` from before its effect until its result is known."""

    remedy: str
    result: TriedResult
    time_ms: int
    detail: str = ""


class Incident(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`closed_ms` is 0 while it is open."""

    incident_id: str
    key: str
    domain: Domain
    severity: Severity
    summary: str
    fix: str = ""
    opened_ms: int
    closed_ms: int = 0
    outcome: str = ""
    tried: tuple[Tried, ...] = ()

    @property
    def attempts(self) -> int:
        return len(self.tried)


_tries = msgspec.json.Decoder(tuple[Tried, ...]).decode


def _incident(row: tuple[Any, ...]) -> Incident:
    values = dict(zip(Incident.__struct_fields__, row, strict=True))
    values["tried"] = _tries(values["tried"])
    return Incident(**values)


def _by_id(incident: Incident) -> str:
    return incident.incident_id


def open_(tx: Tx, event: IncidentOpened) -> Incident | None:
    """Open an incident, unless one is open for its key already: then nothing happens, and this is
    None.
    """
    if find_open(tx, event.key) is not None:
        return None
    tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])
    tx.run(
        """INSERT INTO incidents (incident_id, key, domain, severity, summary, fix, opened_ms)
        VALUES (:incident_id, :key, :domain, :severity, :summary, :fix, :now)""",
        incident_id=event.incident_id,
        key=event.key,
        domain=event.domain,
        severity=event.severity,
        summary=event.summary,
        fix=event.fix,
        now=tx.now_ms,
    )
    return get(tx, event.incident_id)


def tried(tx: Tx, event: IncidentTried) -> Incident:
    """Record a remedy: that it is begun, or how the one that was begun last went."""
    incident = get(tx, event.incident_id)
    tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])
    last = Tried(event.remedy, event.result, tx.now_ms, event.detail)
    ends = event.result != "begun" and incident.tried and incident.tried[-1].result == "begun"
    kept = incident.tried[:-1] if ends else incident.tried
    tx.run(
        "UPDATE incidents SET tried = :tried, severity = :severity WHERE incident_id = :id",
        tried=msgspec.json.encode((*kept, last)),
        severity=event.severity or incident.severity,
        id=event.incident_id,
    )
    return get(tx, event.incident_id)


def close(tx: Tx, incident_id: str, outcome: str) -> Incident:
    """Close an incident; one that is closed stays as it is."""
    incident = get(tx, incident_id)
    if incident.closed_ms:
        return incident
    tape.append(tx, SYSTEM_TAPE, SYSTEM, [IncidentClosed(incident_id=incident_id, outcome=outcome)])
    tx.run(
        "UPDATE incidents SET closed_ms = :now, outcome = :outcome WHERE incident_id = :id",
        now=tx.now_ms,
        outcome=outcome,
        id=incident_id,
    )
    return get(tx, incident_id)


def get(tx: Tx, incident_id: str) -> Incident:
    row = tx.one(f"SELECT {_COLUMNS} FROM incidents WHERE incident_id = :id", id=incident_id)
    if row is None:
        raise NotFound(f"there is no incident {incident_id}", incident_id=incident_id)
    return _incident(row)


def find_open(tx: Tx, key: str) -> Incident | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM incidents WHERE key = :key AND closed_ms = 0", key=key)
    return _incident(row) if row else None


def opened(tx: Tx) -> list[Incident]:
    """Return the open incidents, oldest first."""
    # Sorted here: few are ever open, and an order by id would lead through all there were.
    return sorted(
        (_incident(row) for row in tx.all(f"SELECT {_COLUMNS} FROM incidents WHERE closed_ms = 0")),
        key=_by_id,
    )


def open_by_domain(tx: Tx) -> dict[str, int]:
    rows = tx.all(
        "SELECT domain, count(*) FROM incidents WHERE closed_ms = 0 GROUP BY domain ORDER BY domain"
    )
    return {str(domain): int(count) for domain, count in rows}


def listing(
    tx: Tx, *, is_open: bool | None = None, before: str = "~", limit: int = 100
) -> list[Incident]:
    """Return incidents, newest first, paged by id."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM incidents WHERE incident_id < :before AND (:open < 0 OR
        (closed_ms = 0) = (:open > 0))
        ORDER BY incident_id DESC LIMIT :limit""",
        before=before,
        open=-1 if is_open is None else int(is_open),
        limit=limit,
    )
    return [_incident(row) for row in rows]
