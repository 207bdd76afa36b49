"""Notes for agents over HTTP: reviewing, accepting and rejecting them."""

import asyncio
from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.agent.sessions import Sessions
from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, Ulid, ok
from palyra.api.routes import Gives, Route
from palyra.core.errors import InvalidInput
from palyra.features.project_notes.files import Digest, Note
from palyra.features.project_notes.service import ProjectNotes

Folder = Annotated[str, Meta(min_length=1, max_length=4096)]
FileName = Annotated[str, Meta(min_length=1, max_length=300)]


class NoteList(Struct, frozen=True):
    notes: tuple[Note, ...]


class WhichNotes(Input, frozen=True, kw_only=True):
    """The folder of a session, or a folder; neither: all folders in use, without text and diff."""

    session_id: Ulid | None = None
    workspace: Folder | None = None


class AcceptNote(Input, frozen=True, kw_only=True):
    """`sha256` is that of the content that was shown."""

    workspace: Folder
    file: FileName
    sha256: Digest


class WhichNote(Input, frozen=True, kw_only=True):
    workspace: Folder
    file: FileName


async def listing(call: ApiCall[WhichNotes, Nothing]) -> HttpResponse:
    services, wanted = call.services, call.query
    if wanted.session_id is not None and wanted.workspace is not None:
        raise InvalidInput("give session_id or workspace, not both")
    if wanted.session_id is not None:
        session = await services.get(Sessions).get(call.principal, wanted.session_id)
        return ok(
            NoteList(
                await services.get(ProjectNotes).of(session.workspace) if session.workspace else ()
            )
        )
    if wanted.workspace is not None:
        return ok(
            NoteList(await services.get(ProjectNotes).of(await _folder(call, wanted.workspace)))
        )
    return ok(NoteList(await services.get(ProjectNotes).everywhere(call.principal)))


async def accept(call: ApiCall[Nothing, AcceptNote]) -> HttpResponse:
    body = call.body
    return ok(
        await call.services.get(ProjectNotes).accept(
            call.principal, await _folder(call, body.workspace), body.file, body.sha256
        )
    )


async def reject(call: ApiCall[WhichNote, Nothing]) -> HttpResponse:
    await call.services.get(ProjectNotes).reject(
        call.principal, call.query.workspace, call.query.file
    )
    return HttpResponse(204)


async def _folder(call: ApiCall[Any, Any], given: str) -> str:
    """Return the folder as sessions name it, if a session could work in it."""
    return await asyncio.to_thread(call.services.get(Sessions).workspace, given)


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/notes",
        summary="notes for agents: what they say, and what has changed since they were accepted",
        handler=listing,
        scope="operator",
        query=WhichNotes,
        gives=(Gives(200, NoteList),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/notes/accept",
        summary="accept the content of a note that was shown",
        handler=accept,
        scope="owner",
        body=AcceptNote,
        gives=(Gives(200, Note),),
        errors=(404, 409),
    ),
    Route(
        method="DELETE",
        path="/v1/notes",
        summary="reject a note that was accepted; runs go without it",
        handler=reject,
        scope="owner",
        query=WhichNote,
        gives=(Gives(204),),
        errors=(404,),
    ),
)
