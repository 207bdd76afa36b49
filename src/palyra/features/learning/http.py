"""Candidates over HTTP: the caller's own. What changes policies is answered by the owner only."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from palyra.api.calls import ApiCall, HttpResponse, Input, Limit, Nothing, Ulid, ok
from palyra.api.routes import Gives, Route
from palyra.features.learning.model import (
    LONGEST_CONTENT,
    STATES,
    WAITING,
    Candidate,
    CandidateKind,
    CandidateState,
    LearningSettings,
)
from palyra.features.learning.reflection import Reflected
from palyra.features.learning.service import CandidateList, Learning, ShownCandidate


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


_ONE = "/v1/candidates/{candidate_id}"


def _json(type_: Any) -> tuple[Gives, ...]:
    return (Gives(200, type_),)


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/candidates",
        summary="what was learned and waits, or is in a state; newest first",
        handler=listing,
        query=CandidateListQuery,
        gives=_json(CandidateList),
    ),
    Route(
        method="GET",
        path="/v1/candidates/settings",
        summary="thresholds, cooldown and who reads",
        handler=settings,
        gives=_json(LearningSettings),
    ),
    Route(
        method="GET",
        path=_ONE,
        summary="one candidate: evidence, and what accepting would do",
        handler=show,
        gives=_json(ShownCandidate),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/accept",
        summary="accept it, which does it",
        handler=accept,
        scope="operator",
        body=Accepting,
        gives=_json(Candidate),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/reject",
        summary="reject it permanently",
        handler=reject,
        scope="operator",
        body=Rejecting,
        gives=_json(Candidate),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/rollback",
        summary="roll back what was applied",
        handler=roll_back,
        scope="operator",
        body=Nothing,
        gives=_json(Candidate),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/runs/{run_id}/reflect",
        summary="look now for what can be learned from a run",
        handler=reflect,
        scope="operator",
        body=Nothing,
        gives=_json(Reflected),
    ),
)
