"""The endpoints of learning."""

from typing import Any

from palyra.api.calls import Nothing
from palyra.api.routes import Gives, Route
from palyra.features.learning import http
from palyra.features.learning.model import Candidate
from palyra.features.learning.reflection import Reflected
from palyra.features.learning.service import CandidateList, ShownCandidate
from palyra.features.learning.settings import LearningSettings

_ONE = "/v1/candidates/{candidate_id}"


def _json(type_: Any) -> tuple[Gives, ...]:
    return (Gives(200, type_),)


LEARNING: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/candidates",
        summary="what was learned and waits, or is in a state; newest first",
        handler=http.listing,
        query=http.CandidateListQuery,
        gives=_json(CandidateList),
    ),
    Route(
        method="GET",
        path="/v1/candidates/settings",
        summary="thresholds, cooldown and who reads",
        handler=http.settings,
        gives=_json(LearningSettings),
    ),
    Route(
        method="GET",
        path=_ONE,
        summary="one candidate: evidence, and what accepting would do",
        handler=http.show,
        gives=_json(ShownCandidate),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/accept",
        summary="accept it, which does it",
        handler=http.accept,
        scope="operator",
        body=http.Accepting,
        gives=_json(Candidate),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/reject",
        summary="reject it, for good",
        handler=http.reject,
        scope="operator",
        body=http.Rejecting,
        gives=_json(Candidate),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/rollback",
        summary="take back what was applied",
        handler=http.roll_back,
        scope="operator",
        body=Nothing,
        gives=_json(Candidate),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/runs/{run_id}/reflect",
        summary="look now for what can be learned from a run",
        handler=http.reflect,
        scope="operator",
        body=Nothing,
        gives=_json(Reflected),
    ),
)
