"""The endpoints of skills: rows of the table, apart because it is long."""

from typing import Any

from palyra.runtime.shelf import Publisher, ShownSkill
from palyra.tools.skills.package import MOST_ARCHIVE
from palyra.tools.skills.store import Proposal
from palyra.transports.http import skills
from palyra.transports.http.routes import Gives, Route, Takes

_SKILL = "/v1/skills/{skill}"
SKILLS: tuple[Route[Any, Any], ...] = (
    Route(method="GET", path="/v1/skills", summary="installed skills", handler=skills.listing,
          gives=(Gives(200, skills.SkillList),)),
    Route(method="POST", path="/v1/skills", summary="install or update a skill from a folder or zip file on the daemon's machine",
          handler=skills.install, scope="owner", body=skills.SkillSource,
          gives=(Gives(200, Proposal), Gives(201, ShownSkill)), errors=(409,)),
    Route(method="POST", path="/v1/skill-archives", summary="install or update a skill from a zip file that is sent",
          handler=skills.install_archive, scope="owner", query=skills.ConfirmedSkill, takes=Takes(skills.ZIP, MOST_ARCHIVE),
          gives=(Gives(200, Proposal), Gives(201, ShownSkill)), errors=(409,)),
    Route(method="GET", path=_SKILL, summary="one skill: what it may do, its tools, its instructions", handler=skills.show,
          gives=(Gives(200, ShownSkill),)),
    Route(method="DELETE", path=_SKILL, summary="remove a skill", handler=skills.remove, scope="owner", gives=(Gives(204),)),
    Route(method="POST", path=f"{_SKILL}/state", summary="put a skill in quarantine, enable it or trust it",
          handler=skills.set_state, scope="owner", body=skills.NewSkillState, gives=(Gives(200, ShownSkill),), errors=(409,)),
    Route(method="GET", path=f"{_SKILL}/export", summary="the skill as a zip file", handler=skills.export,
          gives=(Gives(200, media=skills.ZIP),), errors=(409,)),
    Route(method="GET", path="/v1/publishers", summary="whose signed skills are trusted", handler=skills.publishers,
          gives=(Gives(200, skills.PublisherList),), errors=(400,)),
    Route(method="POST", path="/v1/publishers", summary="trust the signed skills of a publisher", handler=skills.add_publisher,
          scope="owner", body=skills.NewPublisher, gives=(Gives(201, Publisher),)),
    Route(method="DELETE", path="/v1/publishers", summary="trust a publisher no longer; their skills go back into quarantine",
          handler=skills.remove_publisher, scope="owner", query=skills.WhichPublisher, gives=(Gives(204),), errors=(404,)),
)  # fmt: skip
