"""The endpoints of learning."""

from typing import Any

from palyra.domain.learning import Candidate
from palyra.runtime.learning.learning import CandidateList, ShownCandidate
from palyra.runtime.learning.reflecting import Reflected
from palyra.runtime.learning.settings import LearningSettings
from palyra.transports.http import learning
from palyra.transports.http.calls import Nothing
from palyra.transports.http.routes import Gives, Route

_ONE = "/v1/candidates/{candidate_id}"


def _json(type_: Any) -> tuple[Gives, ...]:
    return (Gives(200, type_),)


LEARNING: tuple[Route[Any, Any], ...] = (
    Route(method="GET", path="/v1/candidates", summary="what was learned and waits, or is in a state; newest first",
          handler=learning.listing, query=learning.Listing, gives=_json(CandidateList)),
    Route(method="GET", path="/v1/candidates/settings", summary="thresholds, cooldown and who reads",
          handler=learning.settings, gives=_json(LearningSettings)),
    Route(method="GET", path=_ONE, summary="one candidate: evidence, and what accepting would do", handler=learning.show,
          gives=_json(ShownCandidate)),
    Route(method="POST", path=f"{_ONE}/accept", summary="accept it, which does it", handler=learning.accept, scope="operator",
          body=learning.Accepting, gives=_json(Candidate), errors=(409,)),
    Route(method="POST", path=f"{_ONE}/reject", summary="reject it, for good", handler=learning.reject, scope="operator",
          body=learning.Rejecting, gives=_json(Candidate), errors=(409,)),
    Route(method="POST", path=f"{_ONE}/rollback", summary="take back what was applied", handler=learning.roll_back,
          scope="operator", body=Nothing, gives=_json(Candidate), errors=(409,)),
    Route(method="POST", path="/v1/runs/{run_id}/reflect", summary="look now for what can be learned from a run",
          handler=learning.reflect, scope="operator", body=Nothing, gives=_json(Reflected)),
)  # fmt: skip
