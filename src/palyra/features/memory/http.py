"""Memory over HTTP: the caller's own, wherever it was remembered. Somebody else's is answered like what does not exist."""

from collections.abc import AsyncGenerator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from palyra.api.calls import NDJSON, Answer, Call, Input, Limit, Nothing, Streaming, Ulid, encode, ok
from palyra.features.memory.model import Item, NewMemory, State
from palyra.features.memory.service import ALL_STATES, MOST_IMPORTED, Change

_PAGE = 500


class Listing(Input, frozen=True, kw_only=True):
    state: Literal["active", "review", "superseded", "forgotten", "rejected", "all"] = "active"
    before: Ulid = ""
    limit: Limit = 100


class ItemPage(Struct, frozen=True):
    """`next` is the `before` of the page behind this one; empty: this was the last."""

    items: list[Item]
    next: str = ""


class Adding(NewMemory, frozen=True, kw_only=True):
    """Something to remember; a scope other than `principal` needs the session that it is about."""

    session_id: Ulid = ""


class Search(Input, frozen=True, kw_only=True):
    """With a session: what can be seen from there, as the agent in it would. Without: everything of the caller."""

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


async def listing(call: Call[Listing, Nothing]) -> Answer:
    query = call.query
    items = await call.parts.memory.listing(call.principal, _states(query.state), query.before, query.limit)
    return ok(ItemPage(items, items[-1].memory_id if len(items) == query.limit else ""))


async def add(call: Call[Nothing, Adding]) -> Answer:
    body = call.body
    where = await call.parts.memory.where(call.principal, body.session_id)
    given = {name: getattr(body, name) for name in NewMemory.__struct_fields__}
    return ok(await call.parts.memory.add(where, NewMemory(**given)), 201)


async def search(call: Call[Search, Nothing]) -> Answer:
    query = call.query
    where = await call.parts.memory.where(call.principal, query.session_id)
    return ok(await call.parts.memory.search(where, query.text, query.limit, everywhere=not query.session_id))


async def status(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.memory.status(call.principal))


async def get(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.memory.get(call.principal, call.path["memory_id"]))


async def history(call: Call[Nothing, Nothing]) -> Answer:
    return ok(ItemPage(await call.parts.memory.history(call.principal, call.path["memory_id"])))


async def change(call: Call[Nothing, Change]) -> Answer:
    where = await call.parts.memory.where(call.principal)
    return ok(await call.parts.memory.change(where, call.path["memory_id"], call.body))


async def forget(call: Call[Nothing, Nothing]) -> Answer:
    where = await call.parts.memory.where(call.principal)
    return ok(await call.parts.memory.forget(where, call.path["memory_id"]))


async def review(call: Call[Nothing, Review]) -> Answer:
    return ok(await call.parts.memory.review(call.principal, call.path["memory_id"], call.body.decision))


async def export(call: Call[Nothing, Nothing]) -> Streaming:
    return Streaming(NDJSON, _lines(call))


async def _lines(call: Call[Nothing, Nothing]) -> AsyncGenerator[bytes, None]:
    before = ""
    while items := await call.parts.memory.listing(call.principal, ALL_STATES, before, _PAGE):
        yield b"".join(encode(item) + b"\n" for item in items)
        before = items[-1].memory_id


async def import_(call: Call[Nothing, Import]) -> Answer:
    body = call.body
    where = await call.parts.memory.where(call.principal, body.session_id)
    given: list[Item | NewMemory] = [*body.new, *body.items]
    return ok(await call.parts.memory.import_(where, given))


async def purge(call: Call[Nothing, Purge]) -> Answer:
    return ok(Purged(await call.parts.memory.purge(call.principal, call.body.memory_ids, everything=call.body.everything)))
