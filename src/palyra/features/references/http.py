"""Attachments and references of a message, over HTTP: files are sent first and named in the
message; references can be looked at before.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, Upload, ok
from palyra.api.routes import Gives, Route, Takes
from palyra.core.input_checks import check_line
from palyra.features.references.attachments import MOST_BYTES, StoredFile
from palyra.features.references.message_inputs import Enclosures
from palyra.features.references.service import ReferencesPreview

_SESSION = "/v1/sessions/{session_id}"
BYTES = b"application/octet-stream"


class FileName(Input, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=200)]


class MessageDraft(Input, frozen=True, kw_only=True):
    """A message that is not sent yet."""

    text: Annotated[str, Meta(max_length=256 << 10)]


class PathPrefix(Input, frozen=True, kw_only=True):
    """The beginning of a path, as somebody is typing it."""

    prefix: Annotated[str, Meta(max_length=1_000)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class PathList(Struct, frozen=True):
    """Folders end in a slash."""

    paths: list[str]


async def keep(call: ApiCall[FileName, Upload]) -> HttpResponse:
    check_line("name", call.query.name)
    attachments = call.services.get(Enclosures).attachments
    return ok(
        await attachments.keep(
            call.principal, call.path["session_id"], call.query.name, call.body.data
        ),
        201,
    )


async def preview(call: ApiCall[Nothing, MessageDraft]) -> HttpResponse:
    return ok(
        await call.services.get(Enclosures).references.preview(
            call.principal, call.path["session_id"], call.body.text
        )
    )


async def paths(call: ApiCall[PathPrefix, Nothing]) -> HttpResponse:
    query, references = call.query, call.services.get(Enclosures).references
    return ok(
        PathList(
            await references.names(
                call.principal, call.path["session_id"], query.prefix, query.limit
            )
        )
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path=f"{_SESSION}/files",
        summary="store a file that a message can then have as an attachment",
        handler=keep,
        scope="operator",
        client=True,
        query=FileName,
        takes=Takes(BYTES, MOST_BYTES),
        gives=(Gives(201, StoredFile),),
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/references/preview",
        summary="what the references of a message would bring",
        handler=preview,
        scope="operator",
        client=True,
        body=MessageDraft,
        gives=(Gives(200, ReferencesPreview),),
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/paths",
        summary="paths of the workspace that begin so, for completing a reference",
        handler=paths,
        scope="operator",
        client=True,
        query=PathPrefix,
        gives=(Gives(200, PathList),),
    ),
)
