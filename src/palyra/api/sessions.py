"""Sessions over HTTP."""

from functools import partial
from typing import Annotated
from urllib.parse import quote

import msgspec
from msgspec import Meta, Struct

from palyra.agent import client_tokens
from palyra.agent.gateway import Gateway
from palyra.agent.sessions import Resolve, Sessions
from palyra.agent.submit import Submission
from palyra.api.calls import ApiCall, Count, HttpResponse, Input, Limit, Nothing, Ulid, ok
from palyra.core.errors import NotFound
from palyra.core.events import Entry
from palyra.models.routing import Models
from palyra.store import artifacts, runs, sessions, tape
from palyra.store.artifacts import Artifact
from palyra.store.database import Database, Tx
from palyra.store.runs import RunRow
from palyra.store.sessions import Session
from palyra.store.tape import StoredEntry


class SessionListQuery(Input, frozen=True, kw_only=True):
    """`before`: the id of the last session of the page before."""

    archived: bool = False
    before: Ulid = ""
    limit: Limit = 50


class SessionPage(Struct, frozen=True):
    sessions: list[Session]
    next: str | None


class SessionChange(Input, frozen=True, kw_only=True):
    """`kept`: it stays in the journal however old it gets. `model`: which one its runs ask, as
    `provider/model` or by a unique name; empty: the default one.
    """

    title: str | None = None
    archived: bool | None = None
    kept: bool | None = None
    model: Annotated[str, Meta(max_length=200)] | None = None


class Branch(Input, frozen=True, kw_only=True):
    """`at`: the last entry that the new session shares; without it, all of them."""

    at: Count | None = None
    title: str = ""


class EntriesQuery(Input, frozen=True, kw_only=True):
    after: Count = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 200


class EntryPage(Struct, frozen=True):
    """`next` is the cursor of the next page, null on the last one."""

    entries: list[Entry]
    next: int | None


class _EntryPage(Struct, frozen=True):
    """The same page from stored bytes."""

    entries: list[msgspec.Raw]
    next: int | None


class ArtifactName(Input, frozen=True, kw_only=True):
    """`name`: what the file is to be called where it is downloaded."""

    name: Annotated[str, Meta(max_length=200)] = ""


class RunsQuery(Input, frozen=True, kw_only=True):
    """`before`: the id of the last run of the page before."""

    before: Ulid = ""
    limit: Limit = 50


class RunPage(Struct, frozen=True):
    runs: list[RunRow]
    next: str | None


async def resolve(call: ApiCall[Nothing, Resolve]) -> HttpResponse:
    session, is_new = await call.services.get(Sessions).find_or_create(
        call.principal, client_tokens.resolved(call.token, call.body)
    )
    return ok(session, 201 if is_new else 200)


async def listing(call: ApiCall[SessionListQuery, Nothing]) -> HttpResponse:
    query = call.query
    page = await call.services.get(Sessions).listing(
        call.principal,
        archived=query.archived,
        before=query.before,
        limit=query.limit,
        device=call.token.device,
    )
    return ok(SessionPage(page, page[-1].session_id if len(page) == query.limit else None))


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Sessions).get(call.principal, call.path["session_id"]))


async def change(call: ApiCall[Nothing, SessionChange]) -> HttpResponse:
    body = call.body
    change = partial(call.services.get(Sessions).change, call.principal, call.path["session_id"])
    model = call.services.get(Models).find(body.model).name if body.model else body.model
    return ok(await change(title=body.title, archived=body.archived, kept=body.kept, model=model))


async def reset(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Sessions).reset(call.principal, call.path["session_id"]))


async def branch(call: ApiCall[Nothing, Branch]) -> HttpResponse:
    body = call.body
    return ok(
        await call.services.get(Sessions).branch(
            call.principal, call.path["session_id"], body.at, body.title
        ),
        201,
    )


async def entries(call: ApiCall[EntriesQuery, Nothing]) -> HttpResponse:
    session_id, query = call.path["session_id"], call.query

    def page(tx: Tx) -> list[StoredEntry]:
        sessions.get(tx, session_id, call.principal)
        return tape.after(tx, session_id, query.after, query.limit)

    stored = await call.services.get(Database).read(page)
    following = stored[-1].seq if len(stored) == query.limit else None
    return ok(_EntryPage([msgspec.Raw(entry.wire) for entry in stored], following))


async def messages(call: ApiCall[Nothing, Submission]) -> HttpResponse:
    origin = client_tokens.origin_of(call.token, attended=call.body.attended)
    return ok(
        await call.services.get(Gateway).submit(
            call.principal, call.path["session_id"], call.body, origin=origin
        ),
        202,
    )


async def runs_of(call: ApiCall[RunsQuery, Nothing]) -> HttpResponse:
    session_id, query = call.path["session_id"], call.query

    def page(tx: Tx) -> list[RunRow]:
        sessions.get(tx, session_id, call.principal)
        before = runs.position_of(tx, query.before) if query.before else 1 << 62
        return runs.of_session(tx, session_id, before=before, limit=query.limit)

    found = await call.services.get(Database).read(page)
    return ok(RunPage(found, found[-1].run_id if len(found) == query.limit else None))


async def artifact(call: ApiCall[ArtifactName, Nothing]) -> HttpResponse:
    session_id, artifact_id = call.path["session_id"], call.path["artifact_id"]

    def query(tx: Tx) -> Artifact | None:
        sessions.get(tx, session_id, call.principal)
        return artifacts.artifact(tx, session_id, artifact_id)

    found = await call.services.get(Database).read(query)
    if found is None:
        raise NotFound(f"this session has no artifact {artifact_id}", artifact_id=artifact_id)
    # What a tool fetched is never shown as a page of ours, whatever it says it is.
    disposition = (
        b"attachment; filename*=UTF-8''%b"
        % quote(call.query.name or artifact_id[:16], safe="").encode()
    )
    return HttpResponse(
        200, found.body, _media(found.media_type), ((b"content-disposition", disposition),)
    )


def _media(stored: str) -> bytes:
    printable = stored.isascii() and stored.isprintable() and "/" in stored
    return stored.encode() if printable else b"application/octet-stream"
