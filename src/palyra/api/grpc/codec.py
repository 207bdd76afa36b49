"""Codec between our structs and protobuf messages, by their shapes alone: no event and no verb is
mapped by hand.

For each type a filler and a reader are made once. A filler leaves out what is empty: absent means
empty, and null where a field may be null. A reader gives what is there as plain values, for msgspec
to check like the JSON of a request.

Errors become gRPC statuses here. The one shape of every error goes along in the trailers, as
`palyra-error-bin`.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

import grpc
import msgspec

from palyra.api.errors import BodyTooSlow, Problem, problem_of
from palyra.api.grpc.verbs import (
    Field,
    Json,
    Many,
    Map,
    MessageShape,
    OneOf,
    Scalar,
    Single,
    fields_of,
)
from palyra.core.errors import (
    ChainBroken,
    ConfigInvalid,
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidInput,
    LimitExceeded,
    NotFound,
    PalyraError,
    Unauthenticated,
    Unavailable,
)
from palyra.core.events import decode as decode_event
from palyra.core.input_checks import check_json
from palyra.v1 import events_pb2

# A protobuf message; its class is made by protobuf at run time.
Proto = Any
Fill = Callable[[Proto, Any], None]
Read = Callable[[Proto], Any]

_encode = msgspec.json.Encoder(enc_hook=str).encode


@cache
def filler(struct: Any) -> Fill:
    """Return what puts a struct of this type into an empty message."""
    puts: list[tuple[Callable[[Any], Any], Fill]] = []

    def fill(message: Proto, value: Any) -> None:
        for get, put in puts:
            found = get(value)
            if found is not None:
                put(message, found)

    for field in fields_of(struct):
        puts.append((attrgetter(field.field), _putter(field)))
    return fill


def _putter(field: Field) -> Fill:
    name, shape = field.proto, field.shape
    match shape:
        case Scalar():
            return _set(name) if field.nullable else _set_unless_empty(name)
        case Json():
            return _put_json(name, field.nullable)
        case MessageShape() | OneOf():
            return _put_message(name, shape)
        case Many(item):
            return _put_many(name, item, field.wrapped)
        case Map(value):
            return _put_map(name, value, field.wrapped)


def _set(name: str) -> Fill:
    return lambda message, value: setattr(message, name, value)


def _set_unless_empty(name: str) -> Fill:
    def put(message: Proto, value: Any) -> None:
        if value:
            setattr(message, name, value)

    return put


def _put_json(name: str, nullable: bool) -> Fill:
    def put(message: Proto, value: Any) -> None:
        if nullable or value not in ({}, [], ()):
            setattr(message, name, _encode(value).decode())

    return put


def _put_message(name: str, shape: MessageShape | OneOf) -> Fill:
    fill = _single(shape)

    def put(message: Proto, value: Any) -> None:
        inner = getattr(message, name)
        inner.SetInParent()
        fill(inner, value)

    return put


def _single(shape: MessageShape | OneOf) -> Fill:
    if isinstance(shape, OneOf):
        return _chooser(shape)
    struct = shape.type
    made: list[Fill] = []

    def fill(message: Proto, value: Any) -> None:
        # Made when it is first needed: a type may contain itself.
        if not made:
            made.append(filler(struct))
        made[0](message, value)

    return fill


@cache
def _chooser(choice: OneOf) -> Fill:
    puts = {type_: _put_message(option, MessageShape(type_)) for option, type_ in choice.options}

    def put(message: Proto, value: Any) -> None:
        # An entry holds its event as the bytes that were stored.
        event = decode_event(bytes(value)) if isinstance(value, msgspec.Raw) else value
        puts[type(event)](message, event)

    return put


def _put_many(name: str, item: Single, wrapped: bool) -> Fill:
    inner = _single(item) if isinstance(item, (MessageShape, OneOf)) else None

    def put(message: Proto, value: Any) -> None:
        many = _items(message, name) if wrapped else getattr(message, name)
        if inner is None:
            many.extend(value)
            return
        for each in value:
            inner(many.add(), each)

    return put


def _put_map(name: str, value_shape: Single, wrapped: bool) -> Fill:
    inner = _single(value_shape) if isinstance(value_shape, (MessageShape, OneOf)) else None

    def put(message: Proto, value: Any) -> None:
        found = _items(message, name) if wrapped else getattr(message, name)
        for key, each in value.items():
            if inner is None:
                found[key] = each
            else:
                inner(found[key], each)

    return put


def _items(message: Proto, name: str) -> Any:
    wrapper = getattr(message, name)
    wrapper.SetInParent()
    return wrapper.items


@cache
def reader(fields: tuple[Field, ...]) -> Read:
    """Return what gives a message's fields by name, those that are there."""
    takes = [(each, _taker(each.shape, each)) for each in fields]

    def read(message: Proto) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field, take in takes:
            if field.wrapped:
                if message.HasField(field.proto):
                    found[field.name] = take(getattr(message, field.proto).items)
            elif isinstance(field.shape, (Many, Map)):
                if (value := getattr(message, field.proto)) or field.required:
                    found[field.name] = take(value)
            elif message.HasField(field.proto):
                found[field.name] = take(getattr(message, field.proto))
        return found

    return read


def _taker(shape: Any, field: Field) -> Read:
    match shape:
        case Json():
            return _from_json
        case MessageShape(type_):
            return lambda message: reader(fields_of(type_))(message)
        case OneOf():
            return lambda message: chosen(shape, message)
        case Many(item):
            each = _taker(item, field)
            return lambda values: [each(value) for value in values]
        case Map(value):
            one = _taker(value, field)
            return lambda values: {key: one(inner) for key, inner in values.items()}
    return lambda value: value


def chosen(choice: OneOf, message: Proto) -> dict[str, Any] | None:
    """The one option that is set, with the key that tells which; None if none is."""
    option = message.WhichOneof("one")
    if option is None:
        return None
    type_ = dict(choice.options)[option]
    return {
        choice.tag_field: type_.__struct_config__.tag,
        **reader(fields_of(type_))(getattr(message, option)),
    }


def _from_json(text: str) -> Any:
    raw = text.encode()
    check_json(raw)
    return msgspec.json.decode(raw)


ERROR_KEY = "palyra-error-bin"
_LONGEST_MESSAGE = 1_000
_LONGEST_DETAILS = 4_000

STATUS: dict[type[PalyraError], grpc.StatusCode] = {
    InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    ConfigInvalid: grpc.StatusCode.INVALID_ARGUMENT,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    NotFound: grpc.StatusCode.NOT_FOUND,
    BodyTooSlow: grpc.StatusCode.DEADLINE_EXCEEDED,
    Conflict: grpc.StatusCode.FAILED_PRECONDITION,
    IllegalTransition: grpc.StatusCode.FAILED_PRECONDITION,
    ChainBroken: grpc.StatusCode.DATA_LOSS,
    LimitExceeded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PalyraError: grpc.StatusCode.INTERNAL,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}
_fill = filler(Problem)


def status_of(error: PalyraError) -> grpc.StatusCode:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


async def refuse(context: "grpc.aio.ServicerContext[Any, Any]", error: PalyraError) -> None:
    """End the call with an error; never returns."""
    problem = events_pb2.Problem()
    _fill(problem, problem_of(error))
    # Trailers are headers: they must not grow with what somebody sent.
    problem.message = problem.message[:_LONGEST_MESSAGE]
    if len(problem.details_json) > _LONGEST_DETAILS:
        problem.ClearField("details_json")
    await context.abort(
        status_of(error), problem.message, ((ERROR_KEY, problem.SerializeToString()),)
    )
