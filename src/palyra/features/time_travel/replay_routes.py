"""The endpoints of replays and forks."""

from typing import Any

from palyra.api.calls import Nothing
from palyra.api.routes import Gives, Route
from palyra.features.time_travel import replay_http
from palyra.features.time_travel.fork import Fork, Forked
from palyra.features.time_travel.replay.service import RunReplay

_RUN = "/v1/runs/{run_id}"

REPLAY: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path=f"{_RUN}/replay",
        summary="run the loop again over a recorded run, without any effect",
        handler=replay_http.start,
        scope="operator",
        body=Nothing,
        gives=(Gives(202, RunReplay),),
    ),
    Route(
        method="GET",
        path=f"{_RUN}/replay",
        summary="how far the replay of a run is, and where it differs",
        handler=replay_http.get,
        query=replay_http.Wait,
        gives=(Gives(200, RunReplay),),
    ),
    Route(
        method="POST",
        path=f"{_RUN}/fork",
        summary="take a run up again from an entry, live, with another model or policies",
        handler=replay_http.fork,
        scope="operator",
        body=Fork,
        gives=(Gives(201, Forked),),
    ),
)
