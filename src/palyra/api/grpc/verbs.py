"""Which rows of the route table are RPCs, and how. The table stays the only one: a verb, its scope
and its types are said there.

What is for browsers, for strangers who call in, or speaks somebody else's protocol is not offered
here.

How a type of ours looks in protobuf: one walk over what msgspec knows of it, for who writes the
files and who fills messages.

Words are strings, whole numbers int64. What has no shape of its own (a tool's arguments) is JSON
text, which keeps every number.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast, get_args

import msgspec
from msgspec import Struct, inspect

from palyra.agent.submit import Submitted
from palyra.api.calls import JSON, SSE, Count, Nothing, Ulid
from palyra.api.duplex import Ack, AnswerApproval, CancelRun, Ping, Pong, RefusedCommand, Submit
from palyra.api.routes import PARAMETERS, Route
from palyra.api.watch import all_events, session_events
from palyra.api.websocket import WS_PATH
from palyra.core.events import AnyEvent, Entry, LiveEvent
from palyra.store.approvals import Approval
from palyra.store.runs import RunRow


@dataclass(frozen=True)
class Scalar:
    proto: str


@dataclass(frozen=True)
class Json:
    """Free-form: the field's name ends in `_json` and holds JSON text."""


@dataclass(frozen=True)
class MessageShape:
    type: Any


@dataclass(frozen=True)
class OneOf:
    """One of several structs. `tag_field` names the key that tells them apart in JSON, "" where
    only the class does.
    """

    options: tuple[tuple[str, Any], ...]
    tag_field: str = ""


Single = Scalar | Json | MessageShape | OneOf


@dataclass(frozen=True)
class Many:
    item: Single


@dataclass(frozen=True)
class Map:
    value: Single


Shape = Single | Many | Map


@dataclass(frozen=True)
class Field:
    """`wrapped`: a list or map that must say whether it is there at all, so it lies in a message of
    its own.

    `field`: the name in Python; `name`: in JSON; `proto`: in protobuf.
    """

    field: str
    name: str
    shape: Shape
    nullable: bool = False
    required: bool = False
    wrapped: bool = False

    @property
    def proto(self) -> str:
        return f"{self.name}_json" if isinstance(self.shape, Json) else self.name


STRING, INT64, DOUBLE, BOOL, BYTES = (
    Scalar(each) for each in ("string", "int64", "double", "bool", "bytes")
)
_SCALARS: dict[type[inspect.Type], Scalar] = {
    inspect.StrType: STRING,
    inspect.LiteralType: STRING,
    inspect.IntType: INT64,
    inspect.FloatType: DOUBLE,
    inspect.BoolType: BOOL,
    inspect.BytesType: BYTES,
}


def choice_of(*types: Any) -> OneOf:
    """A choice among structs that have a tag each."""
    return OneOf(
        tuple((_word(each.__struct_config__.tag), each) for each in types),
        str(types[0].__struct_config__.tag_field or ""),
    )


def _word(tag: Any) -> str:
    return str(tag).replace(".", "_").replace("-", "_")


EVENT = choice_of(*get_args(AnyEvent))


@cache
def fields_of(struct: Any) -> tuple[Field, ...]:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType), f"{struct} is no struct"
    return tuple(_field(struct, each) for each in described.fields)


def _field(struct: Any, field: inspect.Field) -> Field:
    if struct is Entry and field.name == "event":
        return Field(field.name, field.encode_name, EVENT, required=True)
    shape, nullable = _shape(field.type)
    plural = isinstance(shape, (Many, Map))
    wrapped = plural and (nullable or bool(_default(field)))
    return Field(field.name, field.encode_name, shape, nullable, field.required, wrapped)


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def _shape(type_: inspect.Type) -> tuple[Shape, bool]:
    """The shape, and whether there may be nothing."""
    match type_:
        case inspect.Metadata():
            return _shape(type_.type)
        case inspect.UnionType():
            kinds = [each for each in type_.types if not isinstance(each, inspect.NoneType)]
            return _union(kinds), len(kinds) < len(type_.types)
        case (
            inspect.ListType()
            | inspect.VarTupleType()
            | inspect.SetType()
            | inspect.FrozenSetType()
        ):
            item, nullable = _shape(type_.item_type)
            return (
                Json() if nullable or isinstance(item, (Json, Many, Map)) else Many(item)
            ), False
        case inspect.DictType():
            value, nullable = _shape(type_.value_type)
            return (
                Map(value) if isinstance(value, (Scalar, MessageShape)) and not nullable else Json()
            ), False
        case inspect.StructType():
            return MessageShape(type_.cls), False
    return _SCALARS.get(type(type_), Json()), False


def _union(kinds: list[inspect.Type]) -> Shape:
    if len(kinds) == 1:
        return _shape(kinds[0])[0]
    if all(isinstance(each, inspect.StructType) for each in kinds):
        structs = [each for each in kinds if isinstance(each, inspect.StructType)]
        return choice_of(*(each.cls for each in structs))
    scalars = {_SCALARS.get(type(each)) for each in kinds}
    return STRING if scalars == {STRING} else DOUBLE if scalars == {INT64, DOUBLE} else Json()


def required_of(struct: Any) -> frozenset[str]:
    return frozenset(each.name for each in fields_of(struct) if each.required)


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
