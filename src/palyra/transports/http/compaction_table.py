"""The endpoints of compaction."""

from typing import Any

from palyra.runtime.compacting import Compact, Compaction, Pinned, Uncompacted
from palyra.transports.http import compaction
from palyra.transports.http.routes import Gives, Route

_SESSION = "/v1/sessions/{session_id}"


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


COMPACTION: tuple[Route[Any, Any], ...] = (
    Route(method="POST", path=f"{_SESSION}/compaction", summary="condense the older turns of a session, or say what that would be",
          handler=compaction.compact, scope="operator", body=Compact, gives=_json(Compaction), errors=(409,)),
    Route(method="GET", path=f"{_SESSION}/compactions", summary="the compactions of a session, oldest first",
          handler=compaction.listing, gives=_json(compaction.CompactionPage)),
    Route(method="POST", path=f"{_SESSION}/compactions/{{seq}}/undo", summary="take back a compaction and those built on it",
          handler=compaction.undo, scope="operator", gives=_json(Uncompacted), errors=(409,)),
    Route(method="POST", path=f"{_SESSION}/pins", summary="keep an exchange whole in every compaction, or no longer",
          handler=compaction.pin, scope="operator", body=compaction.Pin, gives=_json(Pinned), errors=(409,)),
)  # fmt: skip
