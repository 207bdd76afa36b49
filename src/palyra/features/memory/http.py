"""Memory over HTTP: the caller's own, wherever it was remembered. Somebody else's is answered like
what does not exist.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from palyra.api.calls import (
    NDJSON,
    ApiCall,
    HttpResponse,
    Input,
    Limit,
    Nothing,
    StreamingResponse,
    Ulid,
    encode,
    ok,
)
from palyra.api.routes import Gives, Route, json_of
from palyra.features.memory.model import Item, NewMemory, State
from palyra.features.memory.recall import SaidPage, Transcripts
from palyra.features.memory.service import (
    ALL_STATES,
    MOST_IMPORTED,
    Imported,
    Memory,
    MemoryChange,
    MemoryStatus,
    Searched,
)

_PAGE = 500


class MemoryListQuery(Input, frozen=True, kw_only=True):
    state: Literal["active", "review", "superseded", "forgotten", "rejected", "all"] = "active"
    before: Ulid = ""
    limit: Limit = 100


class ItemPage(Struct, frozen=True):
    """`next` is the `before` of the page behind this one; empty: this was the last."""

    items: list[Item]
    next: str = ""


class Adding(NewMemory, frozen=True, kw_only=True):
    """New item of memory; a scope other than `principal` needs the session that it is about."""

    session_id: Ulid = ""


class MemorySearchQuery(Input, frozen=True, kw_only=True):
    """Query of memory. With a session: what can be seen from there, as the agent in it would.
    Without: everything of the caller.
    """

    text: Annotated[str, Meta(min_length=1, max_length=2_000)]
    session_id: Ulid = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class Review(Input, frozen=True, kw_only=True):
    decision: Literal["accept", "reject"]


class Import(Input, frozen=True, kw_only=True):
    """New ones in `new`, exported ones in `items`."""

    new: Annotated[list[NewMemory], Meta(max_length=MOST_IMPORTED)] = []
    items: Annotated[list[Item], Meta(max_length=MOST_IMPORTED)] = []
    session_id: Ulid = ""


class Purge(Input, frozen=True, kw_only=True):
    memory_ids: Annotated[list[Ulid], Meta(max_length=500)] = []
    everything: bool = False


class Purged(Struct, frozen=True):
    removed: int


def _states(wanted: str) -> tuple[State, ...]:
    return tuple(state for state in ALL_STATES if wanted in ("all", state))


async def listing(call: ApiCall[MemoryListQuery, Nothing]) -> HttpResponse:
    query = call.query
    items = await call.services.get(Memory).listing(
        call.principal, _states(query.state), query.before, query.limit
    )
    return ok(ItemPage(items, items[-1].memory_id if len(items) == query.limit else ""))


async def add(call: ApiCall[Nothing, Adding]) -> HttpResponse:
    body = call.body
    where = await call.services.get(Memory).where(call.principal, body.session_id)
    given = {name: getattr(body, name) for name in NewMemory.__struct_fields__}
    return ok(await call.services.get(Memory).add(where, NewMemory(**given)), 201)


async def search(call: ApiCall[MemorySearchQuery, Nothing]) -> HttpResponse:
    query = call.query
    where = await call.services.get(Memory).where(call.principal, query.session_id)
    return ok(
        await call.services.get(Memory).search(
            where, query.text, query.limit, everywhere=not query.session_id
        )
    )


async def status(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Memory).status(call.principal))


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Memory).get(call.principal, call.path["memory_id"]))


async def history(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        ItemPage(await call.services.get(Memory).history(call.principal, call.path["memory_id"]))
    )


async def change(call: ApiCall[Nothing, MemoryChange]) -> HttpResponse:
    where = await call.services.get(Memory).where(call.principal)
    return ok(await call.services.get(Memory).change(where, call.path["memory_id"], call.body))


async def forget(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    where = await call.services.get(Memory).where(call.principal)
    return ok(await call.services.get(Memory).forget(where, call.path["memory_id"]))


async def review(call: ApiCall[Nothing, Review]) -> HttpResponse:
    return ok(
        await call.services.get(Memory).review(
            call.principal, call.path["memory_id"], call.body.decision
        )
    )


async def export(call: ApiCall[Nothing, Nothing]) -> StreamingResponse:
    return StreamingResponse(NDJSON, _lines(call))


async def _lines(call: ApiCall[Nothing, Nothing]) -> AsyncGenerator[bytes, None]:
    before = ""
    while items := await call.services.get(Memory).listing(
        call.principal, ALL_STATES, before, _PAGE
    ):
        yield b"".join(encode(item) + b"\n" for item in items)
        before = items[-1].memory_id


async def import_(call: ApiCall[Nothing, Import]) -> HttpResponse:
    body = call.body
    where = await call.services.get(Memory).where(call.principal, body.session_id)
    given: list[Item | NewMemory] = [*body.new, *body.items]
    return ok(await call.services.get(Memory).import_(where, given))


async def purge(call: ApiCall[Nothing, Purge]) -> HttpResponse:
    return ok(
        Purged(
            await call.services.get(Memory).purge(
                call.principal, call.body.memory_ids, everything=call.body.everything
            )
        )
    )


_ONE = "/v1/memory/{memory_id}"


class SessionSearchQuery(Input, frozen=True, kw_only=True):
    """`semantic`: by meaning too, not by words alone."""

    q: Annotated[str, Meta(min_length=1, max_length=500)]
    semantic: bool = True
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


async def session_search(call: ApiCall[SessionSearchQuery, Nothing]) -> HttpResponse:
    query = call.query
    return ok(
        await call.services.get(Transcripts).search(
            call.principal, query.q, query.limit, semantic=query.semantic
        )
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/memory",
        summary="what is remembered, newest first",
        handler=listing,
        query=MemoryListQuery,
        gives=json_of(ItemPage),
    ),
    Route(
        method="POST",
        path="/v1/memory",
        summary="remember something",
        handler=add,
        scope="operator",
        body=Adding,
        gives=json_of(Item, 201),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/memory/search",
        summary="search by words and meaning, with explained scores",
        handler=search,
        query=MemorySearchQuery,
        gives=json_of(Searched),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/memory/status",
        summary="how much is remembered, and how it is searched",
        handler=status,
        gives=json_of(MemoryStatus),
    ),
    Route(
        method="GET",
        path="/v1/memory/export",
        summary="everything, also history, one item a line",
        handler=export,
        scope="operator",
        gives=(Gives(200, media=NDJSON),),
    ),
    Route(
        method="POST",
        path="/v1/memory/import",
        summary="remember many at once",
        handler=import_,
        scope="operator",
        body=Import,
        gives=json_of(Imported),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/memory/purge",
        summary="remove items permanently, with all their versions",
        handler=purge,
        scope="operator",
        body=Purge,
        gives=json_of(Purged),
        errors=(404,),
    ),
    Route(method="GET", path=_ONE, summary="one item", handler=get, gives=json_of(Item)),
    Route(
        method="PATCH",
        path=_ONE,
        summary="correct or pin an item",
        handler=change,
        scope="operator",
        body=MemoryChange,
        gives=json_of(Item),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        summary="forget an item; it can be brought back until it is purged",
        handler=forget,
        scope="operator",
        gives=json_of(Item),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/history",
        summary="all versions of what an item says, newest first",
        handler=history,
        gives=json_of(ItemPage),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/review",
        summary="accept or reject an item that needs review, or was forgotten",
        handler=review,
        scope="operator",
        body=Review,
        gives=json_of(Item),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/sessions/search",
        summary="what was said in sessions, by words and meaning",
        handler=session_search,
        query=SessionSearchQuery,
        gives=json_of(SaidPage),
    ),
)
