"""The endpoints of health and notices: rows of the table, apart because it is long."""

from typing import Any

from palyra.journal.incidents import Incident
from palyra.runtime.doctor import Diagnosis, Repaired
from palyra.runtime.incidents import IncidentList
from palyra.runtime.notices import NoticeList
from palyra.transports.http import health
from palyra.transports.http.routes import Gives, Route

HEALTH: tuple[Route[Any, Any], ...] = (
    Route(method="GET", path="/v1/doctor", summary="what is well and what is not, with a fix for each", handler=health.examine,
          scope="owner", query=health.Examine, gives=(Gives(200, Diagnosis),)),
    Route(method="POST", path="/v1/doctor/repair", summary="repair one check, or all that can be", handler=health.repair,
          scope="owner", body=health.WhichCheck, gives=(Gives(200, Repaired),), errors=(404, 409)),
    Route(method="GET", path="/v1/healing", summary="how watchful the daemon is, and when it looked last",
          handler=health.watching, gives=(Gives(200, health.Watching),)),
    Route(method="GET", path="/v1/incidents", summary="what went wrong with the daemon, and what was tried",
          handler=health.incidents, query=health.IncidentsQuery, gives=(Gives(200, IncidentList),)),
    Route(method="GET", path="/v1/incidents/{incident_id}", summary="one incident", handler=health.incident,
          gives=(Gives(200, Incident),)),
    Route(method="GET", path="/v1/notices", summary="what the caller was told without asking, newest first",
          handler=health.notices, query=health.NoticesQuery, gives=(Gives(200, NoticeList),), errors=(404,)),
    Route(method="POST", path="/v1/notices/read", summary="mark one notice as read, or all", handler=health.read_notices,
          scope="operator", body=health.WhichNotice, gives=(Gives(200, health.MarkedRead),), errors=(404,)),
)  # fmt: skip
