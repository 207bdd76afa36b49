"""The endpoints of memory."""

from typing import Any

from palyra.domain.memory import Item
from palyra.runtime.memory import Change, Imported, MemoryStatus, Searched
from palyra.transports.http import memory
from palyra.transports.http.calls import NDJSON
from palyra.transports.http.routes import Gives, Route

_ONE = "/v1/memory/{memory_id}"


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


MEMORY: tuple[Route[Any, Any], ...] = (
    Route(method="GET", path="/v1/memory", summary="what is remembered, newest first", handler=memory.listing,
          query=memory.Listing, gives=_json(memory.ItemPage)),
    Route(method="POST", path="/v1/memory", summary="remember something", handler=memory.add, scope="operator",
          body=memory.Adding, gives=_json(Item, 201), errors=(404,)),
    Route(method="GET", path="/v1/memory/search", summary="search by words and meaning, with explained scores",
          handler=memory.search, query=memory.Search, gives=_json(Searched), errors=(404,)),
    Route(method="GET", path="/v1/memory/status", summary="how much is remembered, and how it is searched",
          handler=memory.status, gives=_json(MemoryStatus)),
    Route(method="GET", path="/v1/memory/export", summary="everything, also history, one item a line", handler=memory.export,
          scope="operator", gives=(Gives(200, media=NDJSON),)),
    Route(method="POST", path="/v1/memory/import", summary="remember many at once", handler=memory.import_, scope="operator",
          body=memory.Import, gives=_json(Imported), errors=(404,)),
    Route(method="POST", path="/v1/memory/purge", summary="remove items for good, with all their versions",
          handler=memory.purge, scope="operator", body=memory.Purge, gives=_json(memory.Purged), errors=(404,)),
    Route(method="GET", path=_ONE, summary="one item", handler=memory.get, gives=_json(Item)),
    Route(method="PATCH", path=_ONE, summary="correct or pin an item", handler=memory.change, scope="operator", body=Change,
          gives=_json(Item), errors=(409,)),
    Route(method="DELETE", path=_ONE, summary="forget an item; it can be brought back until it is purged",
          handler=memory.forget, scope="operator", gives=_json(Item)),
    Route(method="GET", path=f"{_ONE}/history", summary="all versions of what an item says, newest first",
          handler=memory.history, gives=_json(memory.ItemPage)),
    Route(method="POST", path=f"{_ONE}/review", summary="accept or reject an item that waits for a look, or was forgotten",
          handler=memory.review, scope="operator", body=memory.Review, gives=_json(Item), errors=(409,)),
)  # fmt: skip
