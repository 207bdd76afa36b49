"""Skills over HTTP. Installing takes two steps: the first says what a skill asks for, the second
confirms exactly those bytes.
"""

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, Upload, ok
from palyra.api.routes import Gives, Route, Takes
from palyra.core.errors import InvalidInput
from palyra.features.skills.package import MOST_ARCHIVE
from palyra.features.skills.records import State
from palyra.features.skills.registry import Publisher, ShownSkill, SkillRegistry
from palyra.features.skills.store import Listed, Proposal, Source

ZIP = b"application/zip"

# The digest of a proposal; without it nothing is installed.
Digest = Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]


class SkillSource(Input, frozen=True, kw_only=True):
    """`path`: a folder or a zip file on the daemon's machine. `confirm`: the proposal's digest;
    without it, get the proposal.
    """

    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    confirm: Digest = ""


class ConfirmedSkill(Input, frozen=True, kw_only=True):
    confirm: Digest = ""


class NewSkillState(Input, frozen=True, kw_only=True):
    state: State


class NewPublisher(Input, frozen=True, kw_only=True):
    """`key`: an Ed25519 public key in base64."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    key: str


class WhichPublisher(Input, frozen=True, kw_only=True):
    name: str


class SkillList(Struct, frozen=True):
    skills: list[Listed]


class PublisherList(Struct, frozen=True):
    publishers: list[Publisher]


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(SkillList(await call.services.get(SkillRegistry).listing()))


async def show(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(SkillRegistry).show(call.path["skill"]))


async def export(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return HttpResponse(
        200, await call.services.get(SkillRegistry).export(call.path["skill"]), media=ZIP
    )


async def install(call: ApiCall[Nothing, SkillSource]) -> HttpResponse:
    path = Path(call.body.path)
    if not path.is_absolute():
        raise InvalidInput("path must be absolute: the daemon works in another folder than you")
    return await _install(call.services.get(SkillRegistry), call.principal, path, call.body.confirm)


async def install_archive(call: ApiCall[ConfirmedSkill, Upload]) -> HttpResponse:
    return await _install(
        call.services.get(SkillRegistry), call.principal, call.body.data, call.query.confirm
    )


async def _install(shelf: SkillRegistry, by: str, source: Source, confirm: str) -> HttpResponse:
    if confirm:
        return ok(await shelf.install(by, source, confirm), 201)
    return ok(await shelf.look(source))


async def set_state(call: ApiCall[Nothing, NewSkillState]) -> HttpResponse:
    return ok(
        await call.services.get(SkillRegistry).set_state(
            call.principal, call.path["skill"], call.body.state
        )
    )


async def remove(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    await call.services.get(SkillRegistry).remove(call.principal, call.path["skill"])
    return HttpResponse(204)


async def publishers(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(PublisherList(await call.services.get(SkillRegistry).publishers()))


async def add_publisher(call: ApiCall[Nothing, NewPublisher]) -> HttpResponse:
    publisher = Publisher(call.body.name, call.body.key)
    await call.services.get(SkillRegistry).add_publisher(call.principal, publisher)
    return ok(publisher, 201)


async def remove_publisher(call: ApiCall[WhichPublisher, Nothing]) -> HttpResponse:
    await call.services.get(SkillRegistry).remove_publisher(call.principal, call.query.name)
    return HttpResponse(204)


_SKILL = "/v1/skills/{skill}"
ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/skills",
        summary="installed skills",
        handler=listing,
        gives=(Gives(200, SkillList),),
    ),
    Route(
        method="POST",
        path="/v1/skills",
        summary="install or update a skill from a folder or zip file on the daemon's machine",
        handler=install,
        scope="owner",
        body=SkillSource,
        gives=(Gives(200, Proposal), Gives(201, ShownSkill)),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/skill-archives",
        summary="install or update a skill from a zip file that is sent",
        handler=install_archive,
        scope="owner",
        query=ConfirmedSkill,
        takes=Takes(ZIP, MOST_ARCHIVE),
        gives=(Gives(200, Proposal), Gives(201, ShownSkill)),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=_SKILL,
        summary="one skill: what it may do, its tools, its instructions",
        handler=show,
        gives=(Gives(200, ShownSkill),),
    ),
    Route(
        method="DELETE",
        path=_SKILL,
        summary="remove a skill",
        handler=remove,
        scope="owner",
        gives=(Gives(204),),
    ),
    Route(
        method="POST",
        path=f"{_SKILL}/state",
        summary="put a skill in quarantine, enable it or trust it",
        handler=set_state,
        scope="owner",
        body=NewSkillState,
        gives=(Gives(200, ShownSkill),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=f"{_SKILL}/export",
        summary="the skill as a zip file",
        handler=export,
        gives=(Gives(200, media=ZIP),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/publishers",
        summary="whose signed skills are trusted",
        handler=publishers,
        gives=(Gives(200, PublisherList),),
        errors=(400,),
    ),
    Route(
        method="POST",
        path="/v1/publishers",
        summary="trust the signed skills of a publisher",
        handler=add_publisher,
        scope="owner",
        body=NewPublisher,
        gives=(Gives(201, Publisher),),
    ),
    Route(
        method="DELETE",
        path="/v1/publishers",
        summary="trust a publisher no longer; their skills go back into quarantine",
        handler=remove_publisher,
        scope="owner",
        query=WhichPublisher,
        gives=(Gives(204),),
        errors=(404,),
    ),
)
