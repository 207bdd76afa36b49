"""Rows that give rights are sealed: each carries a MAC by a key that does not lie in the database.

The rule: a right whose seal does not hold does not exist. So a row that somebody writes into the
file, or changes there, gives nothing, and who watches over the daemon is told of it.
"""

from collections.abc import Sequence
from typing import Any

from palyra.store.database import Tx
from palyra.store.row_seals import Right

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
CODES = Right("worker_codes", ("digest",), ("digest", "name", "expires_ms"))
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
ALL = (GRANTS, TOKENS, WORKERS, RENEWALS, CODES, PEOPLE, PAIRINGS, NOTES, SCHEDULES)
# Those that a home had when it got its key without saying which.
FIRST_SEALED = frozenset(right.table for right in ALL[:8])


def holds(tx: Tx, right: Right, row: Sequence[Any]) -> bool:
    """Say if a right exists. A database without a key is one in which nobody has any to protect:
    that of a replay.
    """
    return tx.seals is None or tx.seals.holds(right, row)


def genuine(tx: Tx, right: Right, where: str, **params: Any) -> bool:
    """Say if every row that a condition names holds."""
    rows = tx.all(f"SELECT {right.columns} FROM {right.table} WHERE {where}", **params)
    return False not in [holds(tx, right, row) for row in rows]


def seal(tx: Tx, right: Right, **key: Any) -> None:
    """Seal a row that was just written, by its key."""
    if tx.seals is None:
        return
    where = " AND ".join(f"{name} = :{name}" for name in key) or "1 = 1"
    rows = tx.all(f"SELECT {right.columns} FROM {right.table} WHERE {where}", **key)
    for row in rows:
        named = dict(zip(right.fields, row[:-1], strict=True))
        exact = " AND ".join(f"{name} = :{name}" for name in right.key)
        tx.run(
            f"UPDATE {right.table} SET mac = :mac WHERE {exact}",
            mac=tx.seals.mac(right, row[:-1]),
            **{name: named[name] for name in right.key},
        )


def seal_all_but(tx: Tx, sealed: frozenset[str]) -> None:
    """Seal the rows of all other tables as they are: once, when the key is made or an upgrade
    brings a table whose rows give rights.
    """
    for right in ALL:
        if right.table not in sealed:
            seal(tx, right)
