"""Runs, approvals and grants over HTTP."""

from typing import Literal

from msgspec import Struct

from palyra.domain.events import AdminChanged
from palyra.domain.ids import SYSTEM_TAPE
from palyra.domain.verdicts import Grant
from palyra.journal import approvals, bills, tape
from palyra.journal.approvals import Approval
from palyra.journal.bills import BilledTurn
from palyra.journal.database import Tx
from palyra.runtime.answers import Answer as ApprovalAnswer
from palyra.runtime.answers import ApprovalDraft
from palyra.transports.auth import check_standing
from palyra.transports.http.calls import Answer, Call, Input, Limit, Nothing, Ulid, ok

_PENDING = {"true": True, "false": False, "any": None}


class Cancel(Input, frozen=True, kw_only=True):
    reason: str = ""


class ApprovalsQuery(Input, frozen=True, kw_only=True):
    """`pending`: true, false (those that were answered) or any. `before`: the id of the last approval of the page before."""

    pending: Literal["true", "false", "any"] = "true"
    before: Ulid = ""
    limit: Limit = 100


class ApprovalPage(Struct, frozen=True):
    approvals: list[Approval]
    next: str | None


class GrantList(Struct, frozen=True):
    grants: list[Grant]


class TokenBill(Struct, frozen=True):
    turns: list[BilledTurn]


async def get(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.gateway.run(call.principal, call.path["run_id"]))


async def tokens(call: Call[Nothing, Nothing]) -> Answer:
    run = await call.parts.gateway.run(call.principal, call.path["run_id"])
    return ok(TokenBill(await call.parts.db.read(lambda tx: bills.of_run(tx, run.run_id))))


async def cancel(call: Call[Nothing, Cancel]) -> Answer:
    reason = call.body.reason or "cancelled by the user"
    return ok(await call.parts.gateway.cancel(call.principal, call.path["run_id"], reason))


async def stop(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.gateway.stop(call.principal))


async def listing(call: Call[ApprovalsQuery, Nothing]) -> Answer:
    query = call.query

    def page(tx: Tx) -> list[Approval]:
        before = approvals.position_of(tx, query.before, call.principal) if query.before else 1 << 62
        return approvals.listing(tx, call.principal, pending=_PENDING[query.pending], before=before, limit=query.limit)

    found = await call.parts.db.read(page)
    return ok(ApprovalPage(found, found[-1].approval_id if len(found) == query.limit else None))


async def approval(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.db.read(lambda tx: approvals.get(tx, call.path["approval_id"], call.principal)))


async def answer(call: Call[Nothing, ApprovalAnswer]) -> Answer:
    check_standing(call.token, call.body)
    surface = "console" if call.by_cookie else f"api:{call.token.name}"
    return ok(await call.parts.answers.answer(call.principal, call.path["approval_id"], call.body, surface))


async def preview(call: Call[Nothing, ApprovalDraft]) -> Answer:
    return ok(await call.parts.answers.preview(call.principal, call.path["approval_id"], call.body))


async def grants(call: Call[Nothing, Nothing]) -> Answer:
    return ok(GrantList(await call.parts.db.read(lambda tx: approvals.grants_of(tx, call.principal))))


async def remove_grant(call: Call[Nothing, Nothing]) -> Answer:
    approval_id = call.path["approval_id"]

    def step(tx: Tx) -> None:
        approvals.remove_grant(tx, call.principal, approval_id)
        removed = AdminChanged(what="policy", action="grant removed", subject=approval_id)
        tape.append(tx, SYSTEM_TAPE, call.principal, [removed])

    await call.parts.db.write(step)
    return Answer(204)
