"""Responses that were given before. The journal has them: a response is a run, from where its tape
stood when it was asked for.
"""

from typing import Any, Literal

from msgspec import Struct

from palyra.agent import client_tokens
from palyra.agent.gateway import Gateway
from palyra.agent.sessions import Sessions
from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.core.errors import Conflict, NotFound
from palyra.core.events import (
    AnyEvent,
    InputReceived,
    RunAccepted,
    ToolFinished,
    Wanted,
)
from palyra.core.messages import ANY_CALL
from palyra.features.openai_api import rows
from palyra.features.openai_api.answers import Answering, asking, wanted_by
from palyra.features.openai_api.names import CallerRun, call_name, named_response
from palyra.features.openai_api.responses import Response, Wish, function_tool, shown
from palyra.store import runs, sessions
from palyra.store.database import Database, Tx
from palyra.store.runs import RunRow


class Deleted(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


class ItemsQuery(Input, frozen=True, kw_only=True):
    """A page of items. A response has few: all of its are one page."""

    order: Literal["asc", "desc"] = "desc"
    limit: int = 100
    after: str = ""


class ItemList(Struct, frozen=True, kw_only=True):
    data: list[dict[str, Any]]
    first_id: str
    last_id: str
    has_more: bool = False
    object: Literal["list"] = "list"


class _Kept(Struct, frozen=True):
    """A run, and what happened in it since the response was asked for."""

    run: RunRow
    seq: int
    offered: list[dict[str, Any]]
    wanted: Wanted | None
    events: tuple[AnyEvent, ...]


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(_shown(await _find(call)))


async def cancel(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    """Cancel the run that is working on a response. One that has ended stays as it is."""
    kept = await _find(call)
    if not kept.run.ended_ms:
        gateway = call.services.get(Gateway)
        await gateway.cancel(call.principal, kept.run.run_id, "the program cancelled its response")
        kept = await _find(call)
    return ok(_shown(kept))


def _shown(kept: _Kept) -> Response:
    wanted = kept.wanted or Wanted()
    begun = CallerRun(kept.run.session_id, kept.run.run_id, kept.seq, named=True)
    answering = Answering(begun, formed=wanted.form != "text")
    for event in kept.events:
        answering.told(event)
        if answering.over:
            break
    given = next((event.given for event in kept.events if isinstance(event, InputReceived)), None)
    wish = Wish(
        instructions=given.instructions or None if given else None,
        tools=kept.offered,
        tool_choice=_choice(wanted.call),
        form=_form(wanted),
        options=wanted.options,
    )
    return shown(wish, answering, kept.run.created_ms // 1000)


async def input_items(call: ApiCall[ItemsQuery, Nothing]) -> HttpResponse:
    kept = await _find(call)
    begun = CallerRun(kept.run.session_id, kept.run.run_id, kept.seq, named=True)
    items = [
        item
        for number, event in enumerate(asking(kept.events))
        if (item := brought_item(begun, number, event))
    ]
    if call.query.order == "desc":
        items.reverse()
    if call.query.after:
        # There is one page, and whoever has seen any of it has seen all.
        items = []
    ends = (items[0]["id"], items[-1]["id"]) if items else ("", "")
    return ok(ItemList(data=items, first_id=ends[0], last_id=ends[1]))


async def delete(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    """Archive its session, so that nobody finds or continues it: nothing is removed from a
    journal.
    """
    kept = await _find(call)
    session_id = kept.run.session_id
    others = await call.services.get(Database).read(
        lambda tx: len(runs.of_session(tx, session_id, limit=2)) > 1
    )
    if others:
        raise Conflict(
            f"this response is part of session {session_id}, which has others: archive the session"
            " (`palyra sessions archive`)",
            session_id=session_id,
        )
    await call.services.get(Sessions).change(call.principal, session_id, title=None, archived=True)
    return ok(Deleted(id=call.path["response"]))


async def _find(call: ApiCall[Any, Any]) -> _Kept:
    run_id, seq = named_response(call.path["response"])

    def read(tx: Tx) -> _Kept | None:
        client_tokens.check_run(tx, call.token, run_id)
        run = runs.get(tx, run_id, call.principal)
        session = sessions.get(tx, run.session_id, call.principal)
        if session.archived and not rows.rests(tx, session.session_id):
            return None
        entries = runs.numbered(tx, run_id)
        accepted = next((event for _, event in entries if isinstance(event, RunAccepted)), None)
        since = tuple(event for at, event in entries if at > seq)
        begins = since and isinstance(since[0], RunAccepted | InputReceived | ToolFinished)
        if accepted is None or not begins:
            return None
        wanted = wanted_by(accepted, since)
        return _Kept(
            run,
            seq,
            [function_tool(each.name, each.parameters) for each in accepted.offered],
            wanted,
            since,
        )

    kept = await call.services.get(Database).read(read)
    if kept is None:
        raise NotFound(
            f"there is no response {call.path['response']} any more, or its session was sealed"
        )
    return kept


def brought_item(begun: CallerRun, number: int, event: AnyEvent) -> dict[str, Any] | None:
    """What a request brought, as an item; None for what is none."""
    item_id = f"{begun.run_id}{begun.seq:x}_{number}"
    match event:
        case InputReceived(text=text, attachments=attachments):
            files = [{"type": "input_file", "filename": each.name} for each in attachments]
            content = [{"type": "input_text", "text": text}, *files]
            return {
                "id": f"msg_{item_id}",
                "type": "message",
                "role": "user",
                "status": "completed",
                "content": content,
            }
        case ToolFinished(call_id=call_id, text=text):
            output = {
                "call_id": call_name(begun.run_id, call_id),
                "output": text,
                "status": "completed",
            }
            return {"id": f"fc_{item_id}", "type": "function_call_output", **output}
    return None


def _choice(call: str) -> Any:
    if not call:
        return "auto"
    return "required" if call == ANY_CALL else {"type": "function", "name": call}


def _form(wanted: Wanted) -> dict[str, Any]:
    match wanted.form:
        case "schema":
            return {
                "type": "json_schema",
                "name": wanted.name,
                "schema": wanted.schema,
                "strict": wanted.strict,
            }
        case "object":
            return {"type": "json_object"}
        case "text":
            return {"type": "text"}
