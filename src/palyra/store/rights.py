"""Rows that give rights are sealed: each carries a MAC by a key that does not lie in the database,
and the entry that made it.

The rule: a right whose seal does not hold does not exist, and neither does one whose entry is not
the one that it was. So a row that somebody writes into the file, or changes there, gives nothing,
and who watches over the daemon is told of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palyra.core import events
from palyra.core.events import (
    AdminChanged,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    SessionCreated,
)
from palyra.store.database import Tx
from palyra.store.row_seals import Right, RowSeals

GRANTS = Right(
    "grants",
    ("approval_id",),
    (
        "approval_id",
        "principal",
        "session_id",
        "tool",
        "subject_kind",
        "subject_value",
        "until_ms",
        "seen",
    ),
)
TOKENS = Right(
    "tokens",
    ("token_id",),
    (
        "token_id",
        "digest",
        "name",
        "principal",
        "scope",
        "created_ms",
        "expires_ms",
        "revoked_ms",
        "workspace",
    ),
)
WORKERS = Right("workers", ("name",), ("name", "state", "fingerprint", "revoked_ms"))
RENEWALS = Right("worker_renewals", ("name",), ("name", "fingerprint", "request", "certificate"))
CODES = Right("worker_codes", ("digest",), ("digest", "name", "expires_ms"), ("name",))
PEOPLE = Right(
    "channel_people",
    ("connector", "sender"),
    ("connector", "sender", "principal", "paired_ms", "paired_until_ms", "revoked_ms"),
)
PAIRINGS = Right(
    "channel_pairings",
    ("pairing_id",),
    (
        "pairing_id",
        "connector",
        "kind",
        "sender",
        "conversation",
        "code",
        "grant_ms",
        "expires_ms",
    ),
)
NOTES = Right(
    "accepted_notes",
    ("workspace", "file", "digest"),
    ("workspace", "file", "digest", "accepted_by", "position"),
)
# A schedule's runs may do what its body says, without being asked.
SCHEDULES = Right("schedules", ("schedule_id",), ("schedule_id", "owner", "body"))
# Whose a session is, from where it is spoken to, where its tools work, and what it continues.
SESSIONS = Right(
    "sessions",
    ("session_id",),
    (
        "session_id",
        "key",
        "owner",
        "device",
        "channel",
        "workspace",
        "parent_id",
        "parent_seq",
        "parent_run_id",
    ),
)
# Who may answer, what is asked, and until when.
APPROVALS = Right(
    "approvals",
    ("approval_id",),
    (
        "approval_id",
        "session_id",
        "run_id",
        "call_id",
        "owner",
        "tool",
        "about",
        "origin",
        "requested_position",
        "expires_ms",
    ),
)
ROUTES = Right("approval_routes", ("approval_id", "principal"), ("approval_id", "principal"))
# Who may write on a channel, where that was changed over what the settings say.
CHANNELS = Right("channel_settings", ("connector",), ("connector", "paused", "rules"))
ALL = (
    GRANTS,
    TOKENS,
    WORKERS,
    RENEWALS,
    CODES,
    PEOPLE,
    PAIRINGS,
    NOTES,
    SCHEDULES,
    SESSIONS,
    APPROVALS,
    ROUTES,
    CHANNELS,
)
# Those that a home had when it got its key without saying which.
FIRST_SEALED = frozenset(right.table for right in ALL[:8])


def sealed_tables(keys: Path) -> frozenset[str]:
    """Return the tables whose rows are sealed by the key in a folder."""
    names = keys / "rights.tables"
    return frozenset(names.read_text().split()) if names.exists() else FIRST_SEALED


def seals_of(keys: Path) -> tuple[RowSeals | None, frozenset[str]]:
    """Return the seals by the key in a folder, to look with, and the tables that it sealed; None if
    it is not there.
    """
    try:
        return RowSeals((keys / "rights.key").read_bytes()), sealed_tables(keys)
    except OSError:
        return None, frozenset()


def holds(tx: Tx, right: Right, row: Sequence[Any]) -> bool:
    """Say if a right exists. A database without a key is one in which nobody has any to protect:
    that of a replay. An entry that lies in a segment is looked at by a deep verification.
    """
    if tx.seals is None:
        return True
    if not tx.seals.holds(right, row):
        return False
    entry, digest, _ = row[-3:]
    found = _hash_of(tx, entry) if entry else b""
    if found and found != digest:
        tx.seals.refuse(right, row)
        return False
    return True


def _hash_of(tx: Tx, position: int) -> bytes:
    row = tx.one("SELECT hash FROM entries WHERE position = :position", position=position)
    return bytes(row[0]) if row else b""


def genuine(tx: Tx, right: Right, where: str, **params: Any) -> bool:
    """Say if every row that a condition names holds."""
    rows = tx.all(f"SELECT {right.columns} FROM {right.table} WHERE {where}", **params)
    return False not in [holds(tx, right, row) for row in rows]


def seal(tx: Tx, right: Right, entry: int = 0, **key: Any) -> None:
    """Seal a row that was just written, by its key. `entry` is the position of the entry that made
    or changed it; 0: the one that it has.
    """
    if tx.seals is None:
        return
    new = _hash_of(tx, entry) if entry else b""
    where = " AND ".join(f"{name} = :{name}" for name in key) or "1 = 1"
    rows = tx.all(f"SELECT {right.columns} FROM {right.table} WHERE {where}", **key)
    for row in rows:
        *values, before, digest, _ = row
        made = (entry, new) if entry else (before, digest)
        named = dict(zip(right.fields, values, strict=True))
        exact = " AND ".join(f"{name} = :{name}" for name in right.key)
        tx.run(
            f"UPDATE {right.table} SET mac = :mac, entry = :made_at, entry_hash = :made_hash"
            f" WHERE {exact}",
            mac=tx.seals.mac(right, values, *made),
            made_at=made[0],
            made_hash=made[1],
            **{name: named[name] for name in right.key},
        )


def seal_all_but(tx: Tx, sealed: frozenset[str]) -> None:
    """Seal the rows of all other tables as they are: once, when the key is made or an upgrade
    brings a table whose rows give rights.
    """
    for right in ALL:
        if right.table not in sealed:
            seal(tx, right)
    if BOUND not in sealed:
        _bind(tx)


# In the list of what is sealed: rows say which entry made them.
BOUND = "+entries"
TELLING = ("admin.changed", "approval.requested", "approval.resolved", "session.created")


def told_of(tape: str, event: AnyEvent) -> tuple[tuple[str, str], ...]:
    """Return which rows that give rights an entry makes or changes, as (table, name)."""
    match event:
        case ApprovalRequested(approval_id=name):
            return (("approvals", name),)
        case ApprovalResolved(approval_id=name):
            return (("grants", name),)
        case SessionCreated():
            return (("sessions", tape),)
        case AdminChanged(what="token", subject=name):
            return (("tokens", name),)
        case AdminChanged(what="worker", subject=name):
            return tuple((table, name) for table in ("workers", "worker_renewals", "worker_codes"))
        case AdminChanged(what="pairing", subject=name, details=told):
            person = f"{told.get('connector', '')} {told.get('sender', '')}"
            return (("channel_pairings", name), ("channel_people", person))
        case AdminChanged(what="notes", subject=name, details=told):
            note = f"{told.get('workspace', '')} {name} {told.get('sha256', '')}"
            return (("accepted_notes", note),)
        case AdminChanged(what="schedule", subject=name):
            return (("schedules", name),)
        case AdminChanged(what="channel", action="approval handed on", subject=name, details=told):
            return (("approval_routes", f"{name} {told.get('to', '')}"),)
        case AdminChanged(what="channel", subject=name):
            return (("channel_settings", "" if name == ALL_CHANNELS else name),)
        case _:
            return ()


# How an entry names all channels at once; their row has no name.
ALL_CHANNELS = "all channels"


def names(right: Right, row: Sequence[Any]) -> str:
    """Return how entries name a row, selected by the right's columns."""
    return " ".join(str(row[right.fields.index(name)]) for name in right.told_as or right.key)


def _bind(tx: Tx) -> None:
    """Let the rows of a home from before they said so carry the newest entry that tells of them."""
    told: dict[tuple[str, str], int] = {}
    kinds = ", ".join(f"'{kind}'" for kind in TELLING)
    last = 0
    while rows := tx.all(
        f"SELECT position, tape, body FROM entries WHERE position > :last AND kind IN ({kinds})"
        " ORDER BY position LIMIT 2000",
        last=last,
    ):
        for position, tape, body in rows:
            for name in told_of(tape, events.decode(body)):
                told[name] = position
        last = rows[-1][0]
    for right in ALL:
        for row in tx.all(f"SELECT {right.columns} FROM {right.table} WHERE entry = 0"):
            entry = told.get((right.table, names(right, row)), 0)
            if entry and holds(tx, right, row):
                seal(tx, right, entry, **{key: row[right.fields.index(key)] for key in right.key})
