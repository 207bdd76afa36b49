"""The endpoints of memory."""

from typing import Any

from palyra.api.calls import NDJSON
from palyra.api.routes import Gives, Route
from palyra.features.memory import http
from palyra.features.memory.model import Item
from palyra.features.memory.service import Imported, MemoryChange, MemoryStatus, Searched

_ONE = "/v1/memory/{memory_id}"


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


MEMORY: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/memory",
        summary="what is remembered, newest first",
        handler=http.listing,
        query=http.MemoryListQuery,
        gives=_json(http.ItemPage),
    ),
    Route(
        method="POST",
        path="/v1/memory",
        summary="remember something",
        handler=http.add,
        scope="operator",
        body=http.Adding,
        gives=_json(Item, 201),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/memory/search",
        summary="search by words and meaning, with explained scores",
        handler=http.search,
        query=http.MemorySearchQuery,
        gives=_json(Searched),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/memory/status",
        summary="how much is remembered, and how it is searched",
        handler=http.status,
        gives=_json(MemoryStatus),
    ),
    Route(
        method="GET",
        path="/v1/memory/export",
        summary="everything, also history, one item a line",
        handler=http.export,
        scope="operator",
        gives=(Gives(200, media=NDJSON),),
    ),
    Route(
        method="POST",
        path="/v1/memory/import",
        summary="remember many at once",
        handler=http.import_,
        scope="operator",
        body=http.Import,
        gives=_json(Imported),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/memory/purge",
        summary="remove items for good, with all their versions",
        handler=http.purge,
        scope="operator",
        body=http.Purge,
        gives=_json(http.Purged),
        errors=(404,),
    ),
    Route(method="GET", path=_ONE, summary="one item", handler=http.get, gives=_json(Item)),
    Route(
        method="PATCH",
        path=_ONE,
        summary="correct or pin an item",
        handler=http.change,
        scope="operator",
        body=MemoryChange,
        gives=_json(Item),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        summary="forget an item; it can be brought back until it is purged",
        handler=http.forget,
        scope="operator",
        gives=_json(Item),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/history",
        summary="all versions of what an item says, newest first",
        handler=http.history,
        gives=_json(http.ItemPage),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/review",
        summary="accept or reject an item that waits for a look, or was forgotten",
        handler=http.review,
        scope="operator",
        body=http.Review,
        gives=_json(Item),
        errors=(409,),
    ),
)
