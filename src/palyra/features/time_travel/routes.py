"""The endpoints of time travel."""

from typing import Any

from palyra.api.routes import Gives, Route
from palyra.features.time_travel import http
from palyra.features.time_travel.rewind import Rewind, Rewound
from palyra.features.time_travel.session_snapshot import Moment

_SESSION = "/v1/sessions/{session_id}"

TRAVEL: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path=f"{_SESSION}/at/{{seq}}",
        summary="a session as it was after an entry, and what came since",
        handler=http.at,
        query=http.At,
        gives=(Gives(200, Moment),),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/rewind",
        summary="take files and conversation back to an entry, or preview it",
        handler=http.rewind,
        scope="operator",
        body=Rewind,
        gives=(Gives(200, Rewound),),
        errors=(409,),
    ),
)
