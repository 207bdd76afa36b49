"""The security score over HTTP."""

from typing import Any

from palyra.api.calls import ApiCall, Count, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.features.security_score import files
from palyra.features.security_score.model import SecurityScore
from palyra.features.security_score.service import SecurityScores


class ScoreQuery(Input, frozen=True, kw_only=True):
    """`since_ms`: from when on; 0 for the last 30 days."""

    since_ms: Count = 0


async def score(call: ApiCall[ScoreQuery, Nothing]) -> HttpResponse:
    return ok(await call.services.get(SecurityScores).score(call.query.since_ms))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/security/score",
        summary="questions, unattended calls, repeated answers and instruction-like sources",
        scope="owner",
        handler=score,
        query=ScoreQuery,
        gives=(Gives(200, SecurityScore),),
    ),
    *files.ROUTES,
)
