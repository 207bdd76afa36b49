"""Runs, approvals and grants over HTTP."""

import asyncio
from typing import Annotated, Literal

from msgspec import Meta, Struct

from palyra.agent import approval_groups, grant_rates
from palyra.agent.approval_groups import GroupAnswer
from palyra.agent.approval_steps import Answer as ApprovalAnswer
from palyra.agent.approvals import ApprovalDraft, ApprovalService
from palyra.agent.gateway import Gateway
from palyra.api.auth import check_standing
from palyra.api.calls import ApiCall, HttpResponse, Input, Limit, Nothing, Ulid, ok
from palyra.api.sessions import RunPage, RunsQuery
from palyra.core.errors import InvalidInput
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.verdicts import Grant
from palyra.store import approvals, prompt_breakdown, runs, tape
from palyra.store.approvals import Approval, GrantUse
from palyra.store.database import Database, Tx
from palyra.store.prompt_breakdown import BilledTurn

_PENDING = {"true": True, "false": False, "any": None}


class Cancel(Input, frozen=True, kw_only=True):
    reason: str = ""


class ApprovalsQuery(Input, frozen=True, kw_only=True):
    """`pending`: true, false (those that were answered) or any. `before`: the id of the last
    approval of the page before.
    """

    pending: Literal["true", "false", "any"] = "true"
    before: Ulid = ""
    limit: Limit = 100


class ApprovalPage(Struct, frozen=True):
    approvals: list[Approval]
    next: str | None


class PastQuery(Input, frozen=True, kw_only=True):
    """`subject`: its number among the request's subjects, from 1."""

    subject: Annotated[int, Meta(ge=1, le=100)] = 1
    days: Annotated[int, Meta(ge=1, le=366)] = 30


class ApprovalGroup(Struct, frozen=True):
    approvals: list[Approval]


class GrantList(Struct, frozen=True):
    """`uses`: of those that were used, by approval."""

    grants: list[Grant]
    uses: dict[str, GrantUse] = {}


class TokenBill(Struct, frozen=True):
    turns: list[BilledTurn]


async def recent(call: ApiCall[RunsQuery, Nothing]) -> HttpResponse:
    query, principal = call.query, call.principal
    found = await call.services.get(Database).read(
        lambda tx: runs.of_principal(tx, principal, before=query.before, limit=query.limit)
    )
    return ok(RunPage(found, found[-1].run_id if len(found) == query.limit else None))


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Gateway).run(call.principal, call.path["run_id"]))


async def tokens(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    run = await call.services.get(Gateway).run(call.principal, call.path["run_id"])
    return ok(
        TokenBill(
            await call.services.get(Database).read(
                lambda tx: prompt_breakdown.of_run(tx, run.run_id)
            )
        )
    )


async def cancel(call: ApiCall[Nothing, Cancel]) -> HttpResponse:
    reason = call.body.reason or "cancelled by the user"
    return ok(await call.services.get(Gateway).cancel(call.principal, call.path["run_id"], reason))


async def stop(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Gateway).stop(call.principal))


async def listing(call: ApiCall[ApprovalsQuery, Nothing]) -> HttpResponse:
    query = call.query

    def page(tx: Tx) -> list[Approval]:
        before = (
            approvals.position_of(tx, query.before, call.principal) if query.before else 1 << 62
        )
        return approvals.listing(
            tx, call.principal, pending=_PENDING[query.pending], before=before, limit=query.limit
        )

    found = await call.services.get(Database).read(page)
    return ok(ApprovalPage(found, found[-1].approval_id if len(found) == query.limit else None))


async def approval(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        await call.services.get(Database).read(
            lambda tx: approvals.get(tx, call.path["approval_id"], call.principal)
        )
    )


async def answer(call: ApiCall[Nothing, ApprovalAnswer]) -> HttpResponse:
    check_standing(call.token, call.body)
    surface = "console" if call.by_cookie else f"api:{call.token.name}"
    return ok(
        await call.services.get(ApprovalService).answer(
            call.principal, call.path["approval_id"], call.body, surface
        )
    )


async def past(call: ApiCall[PastQuery, Nothing]) -> HttpResponse:
    db, query, principal = call.services.get(Database), call.query, call.principal
    found = await db.read(lambda tx: approvals.get(tx, call.path["approval_id"], principal))
    subjects = found.request.subjects
    if query.subject > len(subjects):
        raise InvalidInput(f"this approval has {len(subjects)} subjects", offered=len(subjects))
    subject = subjects[query.subject - 1]
    since_ms = found.requested_ms - query.days * 86_400_000
    return ok(await asyncio.to_thread(grant_rates.past, db, found.owner, subject, since_ms))


async def group(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    approval_id, principal = call.path["approval_id"], call.principal
    found = await call.services.get(Database).read(
        lambda tx: approval_groups.lines(tx, approval_id, principal)
    )
    return ok(ApprovalGroup(found))


async def answer_group(call: ApiCall[Nothing, GroupAnswer]) -> HttpResponse:
    check_standing(call.token, ApprovalAnswer(decision="allow", scope=call.body.scope))
    surface = "console" if call.by_cookie else f"api:{call.token.name}"
    return ok(
        await approval_groups.answer(
            call.services.get(Database),
            call.services.get(ApprovalService),
            call.principal,
            call.path["approval_id"],
            call.body,
            surface,
        )
    )


async def preview(call: ApiCall[Nothing, ApprovalDraft]) -> HttpResponse:
    return ok(
        await call.services.get(ApprovalService).preview(
            call.principal, call.path["approval_id"], call.body
        )
    )


async def grants(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    def query(tx: Tx) -> GrantList:
        found = approvals.grants_of(tx, call.principal)
        uses = {each.approval_id: approvals.uses(tx, each.approval_id) for each in found}
        return GrantList(found, {name: each for name, each in uses.items() if each.calls})

    return ok(await call.services.get(Database).read(query))


async def remove_grant(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    approval_id = call.path["approval_id"]

    def step(tx: Tx) -> None:
        approvals.remove_grant(tx, call.principal, approval_id)
        removed = AdminChanged(what="policy", action="grant removed", subject=approval_id)
        tape.append(tx, SYSTEM_TAPE, call.principal, [removed])

    await call.services.get(Database).write(step)
    return HttpResponse(204)
