"""The endpoints of skills: rows of the table, apart because it is long."""

from typing import Any

from palyra.api.routes import Gives, Route, Takes
from palyra.features.skills import http
from palyra.features.skills.package import MOST_ARCHIVE
from palyra.features.skills.registry import Publisher, ShownSkill
from palyra.features.skills.store import Proposal

_SKILL = "/v1/skills/{skill}"
SKILLS: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/skills",
        summary="installed skills",
        handler=http.listing,
        gives=(Gives(200, http.SkillList),),
    ),
    Route(
        method="POST",
        path="/v1/skills",
        summary="install or update a skill from a folder or zip file on the daemon's machine",
        handler=http.install,
        scope="owner",
        body=http.SkillSource,
        gives=(Gives(200, Proposal), Gives(201, ShownSkill)),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/skill-archives",
        summary="install or update a skill from a zip file that is sent",
        handler=http.install_archive,
        scope="owner",
        query=http.ConfirmedSkill,
        takes=Takes(http.ZIP, MOST_ARCHIVE),
        gives=(Gives(200, Proposal), Gives(201, ShownSkill)),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=_SKILL,
        summary="one skill: what it may do, its tools, its instructions",
        handler=http.show,
        gives=(Gives(200, ShownSkill),),
    ),
    Route(
        method="DELETE",
        path=_SKILL,
        summary="remove a skill",
        handler=http.remove,
        scope="owner",
        gives=(Gives(204),),
    ),
    Route(
        method="POST",
        path=f"{_SKILL}/state",
        summary="put a skill in quarantine, enable it or trust it",
        handler=http.set_state,
        scope="owner",
        body=http.NewSkillState,
        gives=(Gives(200, ShownSkill),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SKILL}/export",
        summary="the skill as a zip file",
        handler=http.export,
        gives=(Gives(200, media=http.ZIP),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/publishers",
        summary="whose signed skills are trusted",
        handler=http.publishers,
        gives=(Gives(200, http.PublisherList),),
        errors=(400,),
    ),
    Route(
        method="POST",
        path="/v1/publishers",
        summary="trust the signed skills of a publisher",
        handler=http.add_publisher,
        scope="owner",
        body=http.NewPublisher,
        gives=(Gives(201, Publisher),),
    ),
    Route(
        method="DELETE",
        path="/v1/publishers",
        summary="trust a publisher no longer; their skills go back into quarantine",
        handler=http.remove_publisher,
        scope="owner",
        query=http.WhichPublisher,
        gives=(Gives(204),),
        errors=(404,),
    ),
)
