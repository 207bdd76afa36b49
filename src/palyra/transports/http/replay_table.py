"""The endpoints of replays and forks."""

from typing import Any

from palyra.runtime.forking import Fork, Forked
from palyra.runtime.replay.replays import RunReplay
from palyra.transports.http import replay
from palyra.transports.http.calls import Nothing
from palyra.transports.http.routes import Gives, Route

_RUN = "/v1/runs/{run_id}"

REPLAY: tuple[Route[Any, Any], ...] = (
    Route(method="POST", path=f"{_RUN}/replay", summary="run the loop again over a recorded run, without any effect",
          handler=replay.start, scope="operator", body=Nothing, gives=(Gives(202, RunReplay),)),
    Route(method="GET", path=f"{_RUN}/replay", summary="how far the replay of a run is, and where it differs",
          handler=replay.get, query=replay.Wait, gives=(Gives(200, RunReplay),)),
    Route(method="POST", path=f"{_RUN}/fork", summary="take a run up again from an entry, live, with another model or policies",
          handler=replay.fork, scope="operator", body=Fork, gives=(Gives(201, Forked),)),
)  # fmt: skip
