"""Approvals and the grants they leave behind. A row says where on the tape the request stands; the
tape says the rest.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import events
from palyra.core.errors import Forbidden, NotFound
from palyra.core.events import ApprovalRequested, ApprovalResolved
from palyra.core.ids import OWNER, ApprovalId, CallId
from palyra.core.labels import Label
from palyra.core.tools import Subject
from palyra.core.verdicts import Grant, Origin
from palyra.store import rights, subagents
from palyra.store.database import Tx
from palyra.store.rights import APPROVALS, GRANTS, ROUTES

_COLUMNS = """a.approval_id, a.session_id, a.run_id, a.owner, a.origin, a.requested_ms,
    a.expires_ms, a.decision, a.resolved_ms,
    q.body, r.body, r.principal, q.seq"""
_FROM = """approvals a JOIN entries q ON q.position = a.requested_position
    LEFT JOIN entries r ON r.position = a.resolved_position"""
# How the names of those begin who come through a channel.
CHANNEL = "channel:"


class Approval(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`decision` is empty while the approval is pending. `seq`: where on the session's tape it was
    asked.
    """

    approval_id: ApprovalId
    session_id: str
    run_id: str
    owner: str
    origin: Origin
    requested_ms: int
    expires_ms: int = 0
    decision: str = ""
    resolved_ms: int = 0
    request: ApprovalRequested
    resolution: ApprovalResolved | None = None
    resolved_by: str = ""
    seq: int = 0


def _approval(row: tuple[Any, ...]) -> Approval:
    request = events.decode(row[9])
    resolution = events.decode(row[10]) if row[10] is not None else None
    assert isinstance(request, ApprovalRequested)
    assert resolution is None or isinstance(resolution, ApprovalResolved)
    return Approval(
        approval_id=row[0],
        session_id=row[1],
        run_id=row[2],
        owner=row[3],
        origin=row[4],
        requested_ms=row[5],
        expires_ms=row[6],
        decision=row[7],
        resolved_ms=row[8],
        request=request,
        resolution=resolution,
        resolved_by=row[11] or "",
        seq=row[12],
    )


def add(
    tx: Tx,
    *,
    session_id: str,
    run_id: str,
    owner: str,
    origin: str,
    request: ApprovalRequested,
    position: int,
) -> None:
    tx.run(
        """INSERT INTO approvals (approval_id, session_id, run_id, call_id, owner, tool, about,
        origin, requested_position,
            requested_ms, expires_ms)
        VALUES (:approval_id, :session_id, :run_id, :call_id, :owner, :tool, :about, :origin,
        :position, :now, :expires_ms)""",
        approval_id=request.approval_id,
        session_id=session_id,
        run_id=run_id,
        call_id=request.call_id,
        owner=owner,
        tool=request.tool,
        about=request.about,
        origin=origin,
        position=position,
        now=tx.now_ms,
        expires_ms=request.expires_ms,
    )
    rights.seal(tx, APPROVALS, position, approval_id=request.approval_id)
    if origin == "child":
        subagents.asked(tx, run_id, request)


def settle(tx: Tx, resolution: ApprovalResolved, position: int) -> None:
    tx.run(
        """UPDATE approvals SET decision = :decision, resolved_position = :position, resolved_ms =
        :now
        WHERE approval_id = :approval_id""",
        decision=resolution.decision,
        position=position,
        now=tx.now_ms,
        approval_id=resolution.approval_id,
    )
    row = tx.one(
        "SELECT run_id FROM approvals WHERE approval_id = :id AND origin = 'child'",
        id=resolution.approval_id,
    )
    if row:
        subagents.answered(tx, str(row[0]), resolution)


def withdraw(tx: Tx, withdrawn: Sequence[tuple[ApprovalResolved, int]]) -> None:
    """Settle many that are nobody's question any more, each with the position that says so. None of
    them is a subagent's.
    """
    tx.many(
        """UPDATE approvals SET decision = :decision, resolved_position = :position, resolved_ms =
        :now
        WHERE approval_id = :approval_id""",
        [
            {
                "decision": each.decision,
                "position": position,
                "now": tx.now_ms,
                "approval_id": each.approval_id,
            }
            for each, position in withdrawn
        ],
    )


def find(tx: Tx, approval_id: str) -> Approval | None:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE a.approval_id = :approval_id",
        approval_id=approval_id,
    )
    return _approval(row) if row else None


def get(tx: Tx, approval_id: str, principal: str) -> Approval:
    approval = find(tx, approval_id)
    if approval is None:
        raise NotFound(f"there is no approval {approval_id}", approval_id=approval_id)
    if not rights.genuine(tx, APPROVALS, "approval_id = :id", id=approval_id):
        raise Forbidden(
            "this approval was changed by somebody else than Palyra: nobody can answer it",
            approval_id=approval_id,
        )
    if approval.owner != principal and not _answers_for(tx, approval, principal):
        raise Forbidden("this approval is someone else's to answer", approval_id=approval_id)
    return approval


def _answers_for(tx: Tx, approval: Approval, principal: str) -> bool:
    """The owner answers for whoever comes through a channel, and anybody to whom an approval was
    handed on answers it.
    """
    if principal == OWNER and approval.owner.startswith(CHANNEL):
        return True
    row = tx.one(
        f"SELECT {ROUTES.columns} FROM approval_routes WHERE approval_id = :id AND principal ="
        " :principal",
        id=approval.approval_id,
        principal=principal,
    )
    return row is not None and rights.holds(tx, ROUTES, row)


def hand_on(tx: Tx, approval_id: str, principal: str, entry: int = 0) -> None:
    """Let somebody else answer an approval too, as an entry says."""
    tx.run(
        "INSERT INTO approval_routes (approval_id, principal) VALUES (:id, :principal) ON CONFLICT"
        " DO NOTHING",
        id=approval_id,
        principal=principal,
    )
    rights.seal(tx, ROUTES, entry, approval_id=approval_id, principal=principal)


def pending_of_run(tx: Tx, run_id: str) -> list[Approval]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE a.run_id = :run_id AND a.decision = ''",
        run_id=run_id,
    )
    return [_approval(row) for row in rows]


def pending_of_runs(tx: Tx, run_ids: Sequence[str]) -> dict[str, list[tuple[ApprovalId, CallId]]]:
    """Return what each of these runs waits for, as (approval, call)."""
    rows = tx.all(
        """SELECT a.run_id, a.approval_id, a.call_id FROM json_each(:ids) i
            JOIN approvals a ON a.run_id = i.value WHERE a.decision = ''""",
        ids=msgspec.json.encode(run_ids).decode(),
    )
    found: dict[str, list[tuple[ApprovalId, CallId]]] = {}
    for run_id, approval_id, call_id in rows:
        found.setdefault(run_id, []).append((approval_id, call_id))
    return found


def ending_with(tx: Tx, end: str) -> list[Approval]:
    """Return the pending approvals whose id ends like this."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE a.decision = '' AND a.approval_id LIKE '%' || :end"
        " LIMIT 2",
        end=end if end.isalnum() else "-",
    )
    return [_approval(row) for row in rows]


def listing(
    tx: Tx, owner: str, *, pending: bool | None, before: int = 1 << 62, limit: int = 100
) -> list[Approval]:
    """Newest first, paged by the position of the request. The owner's are also those of people who
    come through channels.
    """
    found: list[tuple[Any, ...]] = []
    for first, end in ((owner, owner), (CHANNEL, CHANNEL + "~"))[: 2 if owner == OWNER else 1]:
        found += tx.all(
            f"""SELECT a.requested_position, {_COLUMNS} FROM {_FROM}
            WHERE a.owner BETWEEN :first AND :end AND a.requested_position < :before
                AND (:pending < 0 OR (a.decision = '') = (:pending > 0))
            ORDER BY a.requested_position DESC LIMIT :limit""",
            first=first,
            end=end,
            before=before,
            pending=-1 if pending is None else int(pending),
            limit=limit,
        )
    return [_approval(row[1:]) for row in sorted(found, key=lambda row: -int(row[0]))[:limit]]


def position_of(tx: Tx, approval_id: str, owner: str) -> int:
    """Return where an approval stands in the listing, for the page after it."""
    row = tx.one(
        "SELECT requested_position FROM approvals WHERE approval_id = :id",
        id=get(tx, approval_id, owner).approval_id,
    )
    return int(row[0]) if row else 0


def pending_since(tx: Tx, before_ms: int, limit: int) -> list[Approval]:
    """Return the approvals that have been pending since before a time, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE a.decision = '' AND a.requested_ms < :before ORDER"
        " BY a.requested_ms LIMIT :limit",
        before=before_ms,
        limit=limit,
    )
    return [_approval(row) for row in rows]


def expired(tx: Tx, limit: int = 100) -> list[Approval]:
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM {_FROM} WHERE a.decision = '' AND a.expires_ms > 0 AND
        a.expires_ms <= :now
        ORDER BY a.expires_ms LIMIT :limit""",
        now=tx.now_ms,
        limit=limit,
    )
    return [_approval(row) for row in rows]


def next_expiry(tx: Tx) -> int:
    """Return when the next pending approval expires, or 0."""
    row = tx.one("SELECT min(expires_ms) FROM approvals WHERE decision = '' AND expires_ms > 0")
    return int(row[0]) if row and row[0] else 0


def add_grant(tx: Tx, grant: Grant, entry: int = 0) -> None:
    """Add a grant, as an entry says."""
    tx.run(
        """INSERT INTO grants (approval_id, principal, session_id, tool, subject_kind,
        subject_value, until_ms, seen, created_ms)
        VALUES (:approval_id, :principal, :session_id, :tool, :kind, :value, :until_ms, :seen,
        :now)""",
        approval_id=grant.approval_id,
        principal=grant.principal,
        session_id=grant.session_id,
        tool=grant.subject.tool,
        kind=grant.subject.kind,
        value=grant.subject.value,
        until_ms=grant.until_ms,
        seen=msgspec.json.encode(grant.seen),
        now=tx.now_ms,
    )
    rights.seal(tx, GRANTS, entry, approval_id=grant.approval_id)


def grants_for(tx: Tx, principal: str, session_id: str) -> list[Grant]:
    """The grants that may still cover a call of this principal in this session. One whose seal
    does not hold is none.
    """
    rows = tx.all(
        f"""SELECT {GRANTS.columns} FROM grants
        WHERE principal = :principal AND (session_id IS NULL OR session_id = :session_id)
            AND (until_ms IS NULL OR until_ms > :now)""",
        principal=principal,
        session_id=session_id,
        now=tx.now_ms,
    )
    return [_grant(row) for row in rows if rights.holds(tx, GRANTS, row)]


def grants_of(tx: Tx, principal: str, limit: int = 1_000) -> list[Grant]:
    """Everything a principal has said yes to that still holds, newest first."""
    rows = tx.all(
        f"""SELECT {GRANTS.columns} FROM grants
        WHERE principal = :principal AND (until_ms IS NULL OR until_ms > :now)
        ORDER BY approval_id DESC LIMIT :limit""",
        principal=principal,
        now=tx.now_ms,
        limit=limit,
    )
    return [_grant(row) for row in rows if rights.holds(tx, GRANTS, row)]


class GrantUse(Struct, frozen=True):
    """Use of a grant: how often, and when last."""

    calls: int
    last_ms: int


def used(tx: Tx, approval_id: str) -> None:
    """Note that a grant has answered for a call."""
    tx.run(
        "INSERT INTO grant_uses (approval_id, used_ms) VALUES (:id, :now)",
        id=approval_id,
        now=tx.now_ms,
    )


def uses(tx: Tx, approval_id: str, since_ms: int = 0) -> GrantUse:
    row = tx.one(
        "SELECT count(*), max(used_ms) FROM grant_uses WHERE approval_id = :id AND used_ms >="
        " :since_ms",
        id=approval_id,
        since_ms=since_ms,
    )
    return GrantUse(int(row[0]), int(row[1] or 0)) if row else GrantUse(0, 0)


def remove_grant(tx: Tx, principal: str, approval_id: str) -> None:
    row = tx.one(
        "SELECT 1 FROM grants WHERE approval_id = :id AND principal = :principal",
        id=approval_id,
        principal=principal,
    )
    if row is None:
        raise NotFound(f"there is no grant from approval {approval_id}", approval_id=approval_id)
    tx.run("DELETE FROM grants WHERE approval_id = :id", id=approval_id)
    tx.run("DELETE FROM grant_uses WHERE approval_id = :id", id=approval_id)


def forget_grants(tx: Tx, tools: str) -> int:
    """Drop everybody's grants for tools whose name begins like this; how many there were."""
    known = {"first": tools, "end": tools + "\U0010ffff"}
    found = tx.one("SELECT count(*) FROM grants WHERE tool >= :first AND tool < :end", **known)
    tx.run("DELETE FROM grants WHERE tool >= :first AND tool < :end", **known)
    return int(found[0]) if found else 0


def _grant(row: tuple[Any, ...]) -> Grant:
    return Grant(
        approval_id=row[0],
        principal=row[1],
        session_id=row[2],
        subject=Subject(row[3], row[4], row[5]),
        until_ms=row[6],
        seen=msgspec.json.decode(row[7], type=Label),
    )


def forget_grant(tx: Tx, approval_id: str) -> None:
    """Remove a grant that a replay does not need."""
    tx.run("DELETE FROM grants WHERE approval_id = :id", id=approval_id)
