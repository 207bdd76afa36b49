"""The endpoints of time travel."""

from typing import Any

from palyra.runtime.moments import Moment
from palyra.runtime.rewind import Rewind, Rewound
from palyra.transports.http import travel
from palyra.transports.http.routes import Gives, Route

_SESSION = "/v1/sessions/{session_id}"

TRAVEL: tuple[Route[Any, Any], ...] = (
    Route(method="GET", path=f"{_SESSION}/at/{{seq}}", summary="a session as it was after an entry, and what came since",
          handler=travel.at, query=travel.At, gives=(Gives(200, Moment),)),
    Route(method="POST", path=f"{_SESSION}/rewind", summary="take files and conversation back to an entry, or preview it",
          handler=travel.rewind, scope="operator", body=Rewind, gives=(Gives(200, Rewound),), errors=(409,)),
)  # fmt: skip
