"""The endpoints of compaction."""

from typing import Any

from palyra.api.routes import Gives, Route
from palyra.features.compaction import http
from palyra.features.compaction.service import Compact, Compaction, Pinned, Uncompacted

_SESSION = "/v1/sessions/{session_id}"


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


COMPACTION: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path=f"{_SESSION}/compaction",
        summary="condense the older turns of a session, or say what that would be",
        handler=http.compact,
        scope="operator",
        body=Compact,
        gives=_json(Compaction),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/compactions",
        summary="the compactions of a session, oldest first",
        handler=http.listing,
        gives=_json(http.CompactionPage),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/compactions/{{seq}}/undo",
        summary="take back a compaction and those built on it",
        handler=http.undo,
        scope="operator",
        gives=_json(Uncompacted),
        errors=(409,),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/pins",
        summary="keep an exchange whole in every compaction, or no longer",
        handler=http.pin,
        scope="operator",
        body=http.Pin,
        gives=_json(Pinned),
        errors=(409,),
    ),
)
