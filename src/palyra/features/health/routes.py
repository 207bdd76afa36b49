"""The endpoints of health and notices: rows of the table, apart because it is long."""

from typing import Any

from palyra.api.routes import Gives, Route
from palyra.features.health import http
from palyra.features.health.doctor import Diagnosis, Repaired
from palyra.features.health.incidents import IncidentList
from palyra.features.health.rows import Incident
from palyra.features.notices.service import NoticeList

HEALTH: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/doctor",
        summary="what is well and what is not, with a fix for each",
        handler=http.examine,
        scope="owner",
        query=http.Examine,
        gives=(Gives(200, Diagnosis),),
    ),
    Route(
        method="POST",
        path="/v1/doctor/repair",
        summary="repair one check, or all that can be",
        handler=http.repair,
        scope="owner",
        body=http.WhichCheck,
        gives=(Gives(200, Repaired),),
        errors=(404, 409),
    ),
    Route(
        method="GET",
        path="/v1/healing",
        summary="how watchful the daemon is, and when it looked last",
        handler=http.watching,
        gives=(Gives(200, http.Watching),),
    ),
    Route(
        method="GET",
        path="/v1/incidents",
        summary="what went wrong with the daemon, and what was tried",
        handler=http.incidents,
        query=http.IncidentsQuery,
        gives=(Gives(200, IncidentList),),
    ),
    Route(
        method="GET",
        path="/v1/incidents/{incident_id}",
        summary="one incident",
        handler=http.incident,
        gives=(Gives(200, Incident),),
    ),
    Route(
        method="GET",
        path="/v1/notices",
        summary="what the caller was told without asking, newest first",
        handler=http.notices,
        query=http.NoticesQuery,
        gives=(Gives(200, NoticeList),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/notices/read",
        summary="mark one notice as read, or all",
        handler=http.read_notices,
        scope="operator",
        body=http.WhichNotice,
        gives=(Gives(200, http.MarkedRead),),
        errors=(404,),
    ),
)
