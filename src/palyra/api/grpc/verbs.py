"""Which rows of the route table are RPCs, and how. The table stays the only one: a verb, its scope
and its types are said there.

What is for browsers, for strangers who call in, or speaks somebody else's protocol is not offered
here.
"""

import re
from typing import Any, Literal, cast, get_args

from msgspec import Struct

from palyra.agent.gateway import Submitted
from palyra.api.calls import JSON, SSE, Count, Nothing, Ulid
from palyra.api.duplex import Ack, AnswerApproval, CancelRun, Ping, Pong, RefusedCommand, Submit
from palyra.api.grpc.shapes import BYTES, INT64, STRING, Field, OneOf, choice_of, fields_of
from palyra.api.routes import PARAMETERS, Route
from palyra.api.watch import all_events, session_events
from palyra.api.websocket import WS_PATH
from palyra.core.events import Entry, LiveEvent
from palyra.store.approvals import Approval
from palyra.store.runs import RunRow

Kind = Literal["one", "either", "pieces", "events", "talk"]
# Browsers end their sessions; programs forget their token.
_BROWSERS = ("/v1/logout",)
# Doors for clients of other products.
_OTHERS = ("/v1/chat/", "/v1/completions", "/v1/embeddings", "/v1/responses")


class Open(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="open", forbid_unknown_fields=True
):
    """The first message of a RunStream: which session, and the number of the last entry that is
    known.
    """

    session_id: Ulid
    after: Count = 0


class Accepted(Struct, frozen=True, kw_only=True):
    """What was asked is done: `id` is the message's own, and one of the others is what came of
    it.
    """

    id: str
    submitted: Submitted | None = None
    approval: Approval | None = None
    run: RunRow | None = None


def accepted(ack: Ack) -> Accepted:
    match ack.result:
        case Submitted() as submitted:
            return Accepted(id=ack.id, submitted=submitted)
        case Approval() as approval:
            return Accepted(id=ack.id, approval=approval)
        case run:
            return Accepted(id=ack.id, run=run)


UP = choice_of(Open, Submit, AnswerApproval, CancelRun, Ping)
HAPPENED = OneOf(
    (
        ("entry", Entry),
        *choice_of(*get_args(LiveEvent)).options,
        ("accepted", Accepted),
        ("refused", RefusedCommand),
        ("pong", Pong),
    )
)


def kind_of(route: Route[Any, Any]) -> Kind | None:
    """What the RPC of a row answers: one message, one of several, pieces of a file, events; or None
    if there is none.
    """
    if route.path == WS_PATH:
        return "talk"
    if (
        route.scope is None
        or not route.path.startswith("/v1/")
        or route.path in _BROWSERS
        or route.path.startswith(_OTHERS)
    ):
        return None
    types = {give.type for give in route.gives if give.type is not None}
    if types:
        return "one" if len(types) == 1 else "either"
    if route.handler in (session_events, all_events):
        return "events"
    if all(give.media == JSON for give in route.gives):
        return "one"
    return None if any(give.media == SSE for give in route.gives) else "pieces"


def request_fields(route: Route[Any, Any]) -> tuple[Field, ...]:
    """What a request carries: the path's parameters, the query's, the body's fields, or the bytes
    of an upload.
    """
    path = [
        Field(name, name, INT64 if is_number(name) else STRING, required=True)
        for name in route.parameters
    ]
    query, sent = cast("Any", route.query), cast("Any", route.body)
    body = () if sent is None else fields_of(sent)
    upload = () if route.takes is None else (Field("data", "data", BYTES, required=True),)
    fields = (*path, *fields_of(query), *body, *upload)
    names = [each.name for each in fields]
    assert len(names) == len(set(names)), (
        f"{route.method} {route.path} has two fields of one name: {names}"
    )
    return fields


def is_number(parameter: str) -> bool:
    return PARAMETERS[parameter].startswith("^[1-9][0-9]")


def answers_of(route: Route[Any, Any]) -> tuple[Any, ...]:
    """The types it may answer with, in the table's order; nothing to say is Nothing."""
    return tuple(dict.fromkeys(give.type for give in route.gives if give.type is not None)) or (
        Nothing,
    )


def option_of(type_: Any) -> str:
    """What an answer of this type is called where it is one of several."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type_.__name__).lower()
