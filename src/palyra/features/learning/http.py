"""Candidates over HTTP: the caller's own. What changes policies is answered by the owner only."""

from typing import Annotated, Literal

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Limit, Nothing, Ulid, ok
from palyra.features.learning.model import (
    LONGEST_CONTENT,
    STATES,
    WAITING,
    CandidateKind,
    CandidateState,
)
from palyra.features.learning.service import Learning


class CandidateListQuery(Input, frozen=True, kw_only=True):
    """`waiting` are those that a person is asked about."""

    state: CandidateState | Literal["waiting", "all"] = "waiting"
    kind: CandidateKind | Literal["any"] = "any"
    before: Ulid = ""
    limit: Limit = 100


class Accepting(Input, frozen=True, kw_only=True):
    """`text`: a fact or a preference in other words."""

    text: Annotated[str, Meta(max_length=LONGEST_CONTENT)] = ""


class Rejecting(Input, frozen=True, kw_only=True):
    reason: Annotated[str, Meta(max_length=500)] = ""


def _states(wanted: str) -> tuple[CandidateState, ...]:
    if wanted == "waiting":
        return WAITING
    return tuple(state for state in STATES if wanted in ("all", state))


async def listing(call: ApiCall[CandidateListQuery, Nothing]) -> HttpResponse:
    query = call.query
    kinds = () if query.kind == "any" else (query.kind,)
    return ok(
        await call.services.get(Learning).listing(
            call.principal, _states(query.state), kinds, query.before, query.limit
        )
    )


async def settings(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(call.services.get(Learning).settings)


async def show(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Learning).show(call.principal, call.path["candidate_id"]))


async def accept(call: ApiCall[Nothing, Accepting]) -> HttpResponse:
    governs = call.token.scope == "owner"
    return ok(
        await call.services.get(Learning).accept(
            call.principal, call.path["candidate_id"], call.body.text, governs=governs
        )
    )


async def reject(call: ApiCall[Nothing, Rejecting]) -> HttpResponse:
    return ok(
        await call.services.get(Learning).reject(
            call.principal, call.path["candidate_id"], call.body.reason
        )
    )


async def roll_back(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    governs = call.token.scope == "owner"
    return ok(
        await call.services.get(Learning).roll_back(
            call.principal, call.path["candidate_id"], governs=governs
        )
    )


async def reflect(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Learning).reflect(call.principal, call.path["run_id"]))
