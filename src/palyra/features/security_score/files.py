"""Labelled files over HTTP: which there are, and taking a label away."""

from typing import Any

from msgspec import Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Limit, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.store import file_labels
from palyra.store.database import Database
from palyra.store.file_labels import LabelledFile


class LabelledFilesQuery(Input, frozen=True, kw_only=True):
    """`after`: the last path of the page before."""

    after: str = ""
    limit: Limit = 100


class ClearLabel(Input, frozen=True, kw_only=True):
    """`path`: absolute; of a folder, everything in it."""

    path: str


class LabelledFiles(Struct, frozen=True):
    files: list[LabelledFile]


async def labelled(call: ApiCall[LabelledFilesQuery, Nothing]) -> HttpResponse:
    query = call.query
    found = await call.services.get(Database).read(
        lambda tx: file_labels.listing(tx, after=query.after, limit=query.limit)
    )
    return ok(LabelledFiles(found))


async def clear(call: ApiCall[Nothing, ClearLabel]) -> HttpResponse:
    path, principal = call.body.path, call.principal
    found = await call.services.get(Database).write(
        lambda tx: file_labels.clear(tx, principal, path)
    )
    return ok(LabelledFiles(found))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/security/files",
        summary="files that were written after untrusted content was read",
        scope="owner",
        handler=labelled,
        query=LabelledFilesQuery,
        gives=(Gives(200, LabelledFiles),),
    ),
    Route(
        method="POST",
        path="/v1/security/files/clear",
        summary="take the label of a file or a folder away",
        scope="owner",
        handler=clear,
        body=ClearLabel,
        gives=(Gives(200, LabelledFiles),),
        errors=(404,),
    ),
)
