"""Workers on other machines, the one-time codes they are enrolled with, their next certificates,
and who holds which call.

The rule of a lease: it is taken by compare-and-set, and a call is held by one worker at a time. Its
end is written in the step that puts the call's result on the tape, or not at all.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.core.tools import Tier
from palyra.store import rights
from palyra.store.database import Tx
from palyra.store.rights import CODES, RENEWALS, WORKERS

WorkerState = Literal["enrolled", "draining", "revoked"]
LeaseState = Literal["held", "done", "lost", "cancelled"]
_COLUMNS = (
    "name, state, fingerprint, instance, version, platform, tier, tools, slots, enrolled_ms,"
    " seen_ms, revoked_ms"
)
_LEASE = "call_id, worker, attempt, session_id, run_id, tool, state, since_ms, ended_ms"
# How long it is remembered what became of a lease: a worker that was away longer is told that its
# result is unknown.
_REMEMBERED_MS = 30 * 86_400_000


class WorkerRow(Struct, frozen=True):
    """One worker. `fingerprint` is the digest of the certificate that it is let in with; a next one
    may be on its way.
    """

    name: str
    state: WorkerState
    fingerprint: str
    instance: str
    version: str
    platform: str
    tier: Tier
    tools: tuple[str, ...]
    slots: int
    enrolled_ms: int
    seen_ms: int
    revoked_ms: int


class Lease(Struct, frozen=True):
    call_id: str
    worker: str
    attempt: int
    session_id: str
    run_id: str
    tool: str
    state: LeaseState
    since_ms: int
    ended_ms: int


def _row(values: Sequence[object]) -> WorkerRow:
    named = dict(zip(_COLUMNS.split(", "), values, strict=True))
    return msgspec.convert({**named, "tools": msgspec.json.decode(str(named["tools"]))}, WorkerRow)


def listing(tx: Tx) -> list[WorkerRow]:
    return [_row(row) for row in tx.all(f"SELECT {_COLUMNS} FROM workers ORDER BY name")]


def find(tx: Tx, name: str) -> WorkerRow | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM workers WHERE name = :name", name=name)
    return _row(row) if row else None


def get(tx: Tx, name: str) -> WorkerRow:
    found = find(tx, name)
    if found is None:
        raise NotFound(
            f"there is no worker {name!r}: `palyra workers list` names them, `palyra workers enrol`"
            " makes one"
        )
    return found


def by_fingerprint(tx: Tx, fingerprint: str) -> WorkerRow | None:
    """Return whose certificate this is, the one in use or the next one; nobody's if a seal does
    not hold.
    """
    row = tx.one(
        f"""SELECT {_COLUMNS} FROM workers WHERE fingerprint = :fingerprint
            OR name = (SELECT name FROM worker_renewals WHERE fingerprint = :fingerprint)""",
        fingerprint=fingerprint,
    )
    if row is None:
        return None
    worker = _row(row)
    known = rights.genuine(tx, WORKERS, "name = :name", name=worker.name)
    if worker.fingerprint != fingerprint:
        known = rights.genuine(tx, RENEWALS, "name = :name", name=worker.name) and known
    return worker if known else None


def admit(tx: Tx, name: str, fingerprint: str, entry: int = 0) -> None:
    """A worker with a new certificate. Whoever had the name before has nothing any more."""
    tx.run(
        """INSERT INTO workers (name, state, fingerprint, enrolled_ms) VALUES (:name, 'enrolled',
        :fingerprint, :now)
        ON CONFLICT (name) DO UPDATE SET state = 'enrolled', fingerprint = :fingerprint, instance =
        '', enrolled_ms = :now,
            revoked_ms = 0, tools = '[]'""",
        name=name,
        fingerprint=fingerprint,
        now=tx.now_ms,
    )
    rights.seal(tx, WORKERS, entry, name=name)
    tx.run("DELETE FROM worker_renewals WHERE name = :name", name=name)


class Offer(Struct, frozen=True, kw_only=True):
    """Facts that a worker states of itself when it connects."""

    instance: str
    version: str
    platform: str
    tier: Tier
    tools: tuple[str, ...]
    slots: int


def seen(tx: Tx, name: str, offer: Offer) -> None:
    tx.run(
        """UPDATE workers SET instance = :instance, version = :version, platform = :platform, tier =
        :tier, tools = :tools,
            slots = :slots, seen_ms = :now WHERE name = :name""",
        **{**msgspec.structs.asdict(offer), "tools": msgspec.json.encode(offer.tools).decode()},
        now=tx.now_ms,
        name=name,
    )


def set_state(tx: Tx, name: str, state: WorkerState, entry: int = 0) -> None:
    known = rights.genuine(tx, WORKERS, "name = :name", name=name)
    tx.run(
        "UPDATE workers SET state = :state, revoked_ms = :revoked WHERE name = :name",
        state=state,
        revoked=tx.now_ms if state == "revoked" else 0,
        name=name,
    )
    # One that nobody has enrolled stays nobody.
    if known or state == "revoked":
        rights.seal(tx, WORKERS, entry, name=name)


class Renewal(Struct, frozen=True):
    """A certificate that a worker was given and has not come with yet. `request` is the digest of
    what it asked with.
    """

    name: str
    fingerprint: str
    request: str
    certificate: str
    asked_ms: int


def find_renewal(tx: Tx, name: str) -> Renewal | None:
    row = tx.one(
        "SELECT name, fingerprint, request, certificate, asked_ms FROM worker_renewals WHERE name ="
        " :name",
        name=name,
    )
    return Renewal(*row) if row else None


def keep_renewal(tx: Tx, renewal: Renewal) -> None:
    tx.run("DELETE FROM worker_renewals WHERE name = :name", name=renewal.name)
    tx.run(
        """INSERT INTO worker_renewals (name, fingerprint, request, certificate, asked_ms)
        VALUES (:name, :fingerprint, :request, :certificate, :asked_ms)""",
        **msgspec.structs.asdict(renewal),
    )
    # Nothing is said of it before the worker comes with it: it is the enrolled worker's.
    row = tx.one("SELECT entry FROM workers WHERE name = :name", name=renewal.name)
    rights.seal(tx, RENEWALS, int(row[0]) if row else 0, name=renewal.name)


def renewed(tx: Tx, name: str, fingerprint: str, entry: int = 0) -> None:
    """Know it by its next certificate from now on."""
    tx.run(
        "UPDATE workers SET fingerprint = :fingerprint WHERE name = :name",
        fingerprint=fingerprint,
        name=name,
    )
    rights.seal(tx, WORKERS, entry, name=name)
    tx.run("DELETE FROM worker_renewals WHERE name = :name", name=name)


def certificates_of(tx: Tx, fingerprint: str) -> tuple[str, ...]:
    """Return both certificates of the worker that has one of them, the given one first."""
    row = tx.one(
        """SELECT workers.fingerprint, worker_renewals.fingerprint FROM workers JOIN worker_renewals
        USING (name)
            WHERE workers.fingerprint = :fingerprint OR worker_renewals.fingerprint =
            :fingerprint""",
        fingerprint=fingerprint,
    )
    return (
        (fingerprint, *(str(each) for each in row if each != fingerprint))
        if row
        else (fingerprint,)
    )


def add_code(tx: Tx, digest: bytes, name: str, expires_ms: int, entry: int = 0) -> None:
    """A code for a name; an older one for the same name is no longer good."""
    tx.run(
        "DELETE FROM worker_codes WHERE name = :name OR expires_ms <= :now",
        name=name,
        now=tx.now_ms,
    )
    tx.run(
        "INSERT INTO worker_codes (digest, name, expires_ms) VALUES (:digest, :name, :expires)",
        digest=digest,
        name=name,
        expires=expires_ms,
    )
    rights.seal(tx, CODES, entry, digest=digest)


def codes(tx: Tx) -> int:
    row = tx.one("SELECT count(*) FROM worker_codes WHERE expires_ms > :now", now=tx.now_ms)
    return int(row[0]) if row else 0


def use_code(tx: Tx, digest: bytes) -> str:
    """The name that a code is for, which is then used up; empty if there is no such code, or not
    any more.
    """
    row = tx.one("SELECT name, expires_ms FROM worker_codes WHERE digest = :digest", digest=digest)
    good = rights.genuine(tx, CODES, "digest = :digest", digest=digest)
    tx.run("DELETE FROM worker_codes WHERE digest = :digest", digest=digest)
    return str(row[0]) if row and good and row[1] > tx.now_ms else ""


def drop_codes(tx: Tx, name: str) -> None:
    tx.run("DELETE FROM worker_codes WHERE name = :name", name=name)


def claim(tx: Tx, lease: Lease) -> bool:
    """Give a call to a worker; False, and nothing changes, if somebody holds it."""
    before = find_lease(tx, lease.call_id)
    if before is not None and (before.state == "held" or before.attempt >= lease.attempt):
        return False
    tx.run(
        """INSERT INTO worker_leases (call_id, worker, attempt, session_id, run_id, tool, state,
        since_ms)
        VALUES (:call_id, :worker, :attempt, :session_id, :run_id, :tool, 'held', :now)
        ON CONFLICT (call_id) DO UPDATE SET worker = :worker, attempt = :attempt, state = 'held',
        since_ms = :now, ended_ms = 0""",
        call_id=lease.call_id,
        worker=lease.worker,
        attempt=lease.attempt,
        session_id=lease.session_id,
        run_id=lease.run_id,
        tool=lease.tool,
        now=tx.now_ms,
    )
    tx.run(
        "DELETE FROM worker_leases WHERE state <> 'held' AND ended_ms < :old",
        old=tx.now_ms - _REMEMBERED_MS,
    )
    return True


def find_lease(tx: Tx, call_id: str) -> Lease | None:
    row = tx.one(f"SELECT {_LEASE} FROM worker_leases WHERE call_id = :call_id", call_id=call_id)
    return Lease(*row) if row else None


def end_lease(tx: Tx, call_id: str, attempt: int, state: LeaseState) -> bool:
    """End a held lease, once; False if it is not held, or by another attempt."""
    found = find_lease(tx, call_id)
    if found is None or found.state != "held" or found.attempt != attempt:
        return False
    tx.run(
        "UPDATE worker_leases SET state = :state, ended_ms = :now WHERE call_id = :id",
        state=state,
        now=tx.now_ms,
        id=call_id,
    )
    return True


def held(tx: Tx) -> list[Lease]:
    return [
        Lease(*row)
        for row in tx.all(
            f"SELECT {_LEASE} FROM worker_leases WHERE state = 'held' ORDER BY call_id"
        )
    ]


def let_go(tx: Tx) -> None:
    """Release leases of runs that have ended, after a start: nobody waits any more for them."""
    tx.run(
        """UPDATE worker_leases SET state = 'cancelled', ended_ms = :now WHERE state = 'held' AND
        run_id IN
            (SELECT run_id FROM runs WHERE state IN ('done', 'failed', 'cancelled'))""",
        now=tx.now_ms,
    )


def recent(tx: Tx, name: str, limit: int) -> list[Lease]:
    rows = tx.all(
        f"SELECT {_LEASE} FROM worker_leases WHERE worker = :name ORDER BY since_ms DESC, call_id"
        " DESC LIMIT :limit",
        name=name,
        limit=limit,
    )
    return [Lease(*row) for row in rows]
