"""RPCs bound to rows of the route table: the compiled files say which row an RPC is, the row says
everything else.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from palyra.api.calls import HttpResponse, Nothing, Upload
from palyra.api.decoding import check_path, invalid
from palyra.api.grpc.codec import filler, reader
from palyra.api.grpc.verbs import Kind, kind_of, option_of, request_fields
from palyra.api.routes import Route
from palyra.core.errors import InvalidInput
from palyra.v1 import options_pb2

FILES = ("sessions", "runs", "approvals", "memory", "schedules", "journal", "admin", "workers")


@dataclass(frozen=True)
class Rpc:
    """One RPC. `path` is gRPC's own, `/service/method`."""

    path: str
    route: Route[Any, Any]
    kind: Kind
    read: "Callable[[bytes], RpcCall]"
    write: Callable[[HttpResponse], bytes]


@dataclass(frozen=True)
class RpcCall:
    path: dict[str, str]
    query: Any
    body: Any


def services() -> Iterator[Any]:
    """The descriptors of every service there is."""
    for name in FILES:
        try:
            file = import_module(f"palyra.v1.{name}_pb2")
        except ModuleNotFoundError:
            continue
        yield from file.DESCRIPTOR.services_by_name.values()


def bound(service: Any, routes: Sequence[Route[Any, Any]]) -> list[Rpc]:
    rows = {f"{route.method} {route.path}": route for route in routes}
    found = []
    for method in service.methods:
        route = rows.get(method.GetOptions().Extensions[options_pb2.route])
        kind = kind_of(route) if route is not None else None
        if route is not None and kind is not None:
            path = f"/{service.full_name}/{method.name}"
            found.append(
                Rpc(path, route, kind, _reading(route, kind, method), _writing(route, kind, method))
            )
    return found


def parsed(message: Any, raw: bytes) -> Any:
    try:
        return message.FromString(raw)
    except (DecodeError, ValueError) as error:
        raise InvalidInput(
            f"the message is not a valid {message.DESCRIPTOR.name}: {error}"
        ) from error


def _reading(route: Route[Any, Any], kind: Kind, method: Any) -> "Callable[[bytes], RpcCall]":
    if kind == "talk":
        return lambda raw: RpcCall({}, None, None)
    message = GetMessageClass(method.input_type)
    read = reader(request_fields(route))
    query_names = [field.encode_name for field in msgspec.structs.fields(route.query)]

    def request(raw: bytes) -> RpcCall:
        try:
            values = read(parsed(message, raw))
        except msgspec.DecodeError as error:
            raise InvalidInput(f"a field that ends in _json is not valid JSON: {error}") from error
        path = {name: str(values.pop(name, "")) for name in route.parameters}
        check_path(path)
        query = _converted(
            {name: values.pop(name) for name in query_names if name in values}, route.query
        )
        if route.takes is not None:
            return RpcCall(path, query, Upload(values.get("data", b"")))
        return RpcCall(
            path, query, Nothing() if route.body is None else _converted(values, route.body)
        )

    return request


def _converted(values: dict[str, Any], type_: Any) -> Any:
    try:
        return msgspec.convert(values, type_)
    except msgspec.ValidationError as error:
        raise invalid("the request", error) from error


def _writing(route: Route[Any, Any], kind: Kind, method: Any) -> Callable[[HttpResponse], bytes]:
    """Convert the body that HTTP would send: the handlers are the same, and say it all once."""
    message = GetMessageClass(method.output_type)
    types = {give.status: give.type for give in route.gives if give.type is not None}
    decoders = {status: msgspec.json.Decoder(type_).decode for status, type_ in types.items()}

    def written(answer: HttpResponse) -> bytes:
        made = message()
        if answer.body:
            type_ = types[answer.status]
            inner = made if kind == "one" else getattr(made, option_of(type_))
            inner.SetInParent()
            filler(type_)(inner, decoders[answer.status](answer.body))
        return bytes(made.SerializeToString())

    return written
