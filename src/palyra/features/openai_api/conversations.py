"""Conversations of OpenAI's API: each is a session, under a name of their own."""

from typing import Any, Literal

from msgspec import Struct

from palyra.agent import client_tokens
from palyra.agent.sessions import Resolve, Sessions
from palyra.api.calls import ApiCall, HttpResponse, Nothing, ok
from palyra.core.errors import NotFound
from palyra.features.openai_api import parameters
from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.answers import Answering, asking, wanted_by
from palyra.features.openai_api.names import CallerRun, named_conversation
from palyra.features.openai_api.responses import output_of
from palyra.features.openai_api.stored_responses import (
    ItemList,
    ItemsQuery,
    brought_item,
)
from palyra.features.openai_api.wire_types import ConversationRequest
from palyra.store import runs, sessions
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session

_MOST_RUNS = 200


class ApiConversation(Struct, frozen=True, kw_only=True):
    id: str
    created_at: int
    metadata: dict[str, str] = {}
    object: Literal["conversation"] = "conversation"


class DeletedConversation(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: bool = True


async def create(call: ApiCall[Nothing, ConversationRequest]) -> HttpResponse:
    if call.body.items:
        refuse("items", "a conversation begins empty: send these with its first response")
    wanted = client_tokens.resolved(call.token, Resolve())
    session = await call.services.get(Sessions).resolve(call.principal, wanted)
    answer = ok(_shown(session))
    unused = parameters.header(call.unread)
    answer.headers = ((b"x-palyra-ignored", unused),) if unused else ()
    return answer


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(_shown(await _find(call)))


async def delete(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    """Archive its session: nothing is removed from a journal."""
    session = await _find(call)
    await call.services.get(Sessions).change(
        call.principal, session.session_id, title=None, archived=True
    )
    return ok(DeletedConversation(id=call.path["conversation"]))


async def items(call: ApiCall[ItemsQuery, Nothing]) -> HttpResponse:
    """What was said in it, a page at a time."""
    session = await _find(call)
    found = await call.services.get(Database).read(lambda tx: _items(tx, session.session_id))
    if call.query.order == "desc":
        found.reverse()
    names = [each["id"] for each in found]
    if call.query.after:
        begin = names.index(call.query.after) + 1 if call.query.after in names else len(names)
        found = found[begin:]
    page = found[: max(1, call.query.limit)]
    ends = (page[0]["id"], page[-1]["id"]) if page else ("", "")
    more = len(page) < len(found)
    return ok(ItemList(data=page, first_id=ends[0], last_id=ends[1], has_more=more))


async def _find(call: ApiCall[Any, Nothing]) -> Session:
    session_id = named_conversation(call.path["conversation"])

    def read(tx: Tx) -> Session:
        client_tokens.check_session(tx, call.token, session_id)
        return sessions.get(tx, session_id, call.principal)

    session = await call.services.get(Database).read(read)
    if session.archived:
        raise NotFound(f"there is no conversation {call.path['conversation']} any more")
    return session


def _shown(session: Session) -> ApiConversation:
    return ApiConversation(id=f"conv_{session.session_id}", created_at=session.created_ms // 1000)


def _items(tx: Tx, session_id: str) -> list[dict[str, Any]]:
    """The items of the newest runs, oldest first: what each request brought, then its answer."""
    found: list[dict[str, Any]] = []
    for run in reversed(runs.of_session(tx, session_id, limit=_MOST_RUNS)):
        events = runs.numbered(tx, run.run_id)
        seq = events[0][0] - 1
        while events:
            since = [event for _, event in events]
            wanted = wanted_by(runs.accepted(tx, run.run_id), since)
            begun = CallerRun(session_id, run.run_id, seq, named=True)
            answering = Answering(begun, formed=wanted is not None and wanted.form != "text")
            brought = (brought_item(begun, n, event) for n, event in enumerate(asking(since)))
            found += [item for item in brought if item is not None]
            taken = 0
            for _, event in events:
                answering.told(event)
                taken += 1
                if answering.over:
                    break
            found += output_of(answering) if answering.over else []
            seq, events = events[taken - 1][0], events[taken:]
            if not answering.calls:
                break
    return found
