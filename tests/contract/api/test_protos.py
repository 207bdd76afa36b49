"""The .proto files and what is made of them: in step with the route table and the event vocabulary,
and never renumbered.
"""

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.message_factory import GetMessageClass
from msgspec import inspect
from scripts import proto_code, protos

from palyra.api.grpc.binding import bound, services
from palyra.api.grpc.codec import filler, reader
from palyra.api.grpc.run_stream import message_of, messages_of
from palyra.api.grpc.verbs import (
    EVENT,
    Field,
    Json,
    Many,
    Map,
    MessageShape,
    OneOf,
    Scalar,
    answers_of,
    fields_of,
    kind_of,
    option_of,
)
from palyra.core.events import Entry, encode
from palyra.serve import routes as table
from palyra.v1 import events_pb2, options_pb2

ROOT = Path(__file__).parents[3]


def test_the_files_are_what_the_table_and_the_types_say() -> None:
    lock = msgspec.json.decode((ROOT / protos.LOCK).read_bytes())
    stale = [
        path for path, text in protos.written(lock).items() if (ROOT / path).read_text() != text
    ]
    assert stale == [], "run: python scripts/protos.py"


def test_the_generated_package_is_what_the_files_say() -> None:
    assert proto_code.stale() == [], "run: python scripts/proto_code.py"


def test_a_build_puts_the_generated_package_beside_the_rest(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=100, capture_output=True)
    built = tmp_path / proto_code.PACKAGE
    assert {each.name: each.read_text() for each in built.iterdir()} == proto_code.compiled()
    assert (tmp_path / "palyra" / "__init__.py").exists()


def test_every_row_that_is_an_rpc_is_served_under_its_own_scope() -> None:
    found: dict[str, str] = {}
    for service in services():
        for method in service.methods:
            options = method.GetOptions().Extensions
            found[options[options_pb2.route]] = options[options_pb2.scope]
    assert found == {
        f"{each.method} {each.path}": each.scope
        for each in table.ROUTES
        if kind_of(each) is not None
    }
    assert sum(len(bound(each, table.ROUTES)) for each in services()) == len(found)


@pytest.mark.parametrize("harm", ["renumbered", "removed", "renamed"])
def test_a_number_that_was_given_away_stays_given_away(harm: str) -> None:
    lock = msgspec.json.decode((ROOT / protos.LOCK).read_bytes())
    assert protos.renumbered(protos.lock_of(proto_code.descriptors()), protos.by_name(lock)) == []
    harmed: dict[str, Any] = copy.deepcopy(lock)
    fields = harmed["messages"]["ModelDelta"]["fields"]
    if harm == "renumbered":
        fields["1"], fields["2"] = fields["2"], fields["1"]
    elif harm == "removed":
        del fields["1"]
    else:
        fields["1"] = "optional string run"
    wrong = protos.renumbered(protos.lock_of(proto_code.descriptors()), protos.by_name(harmed))
    assert wrong
    assert all(each.startswith("ModelDelta: ") for each in wrong)


def test_what_is_gone_leaves_its_number_reserved() -> None:
    lock = msgspec.json.decode((ROOT / protos.LOCK).read_bytes())
    fields = lock["messages"]["RunCancelled"]["fields"]
    fields[str(len(fields) + 1)] = "optional string gone"
    fields[str(len(fields) + 1)] = "optional int64 reason"
    text = protos.Writer(lock).files()["events"]
    assert "message RunCancelled {\n  optional string reason = 1;\n  reserved 2, 3;\n}" in text


def example(struct: Any, depth: int = 0) -> Any:
    """A struct with something in every field, as far down as it goes."""
    types = {each.name: each.type for each in inspect.type_info(struct).fields}  # type: ignore[attr-defined]
    return struct(
        **{
            each.field: _value(each, each.shape, types[each.field], depth)
            for each in fields_of(struct)
        }
    )


def _value(field: Field, shape: Any, type_: Any, depth: int) -> Any:
    match shape:
        case Scalar(proto):
            value = {
                "string": "ž text",
                "int64": (1 << 53) + 1,
                "double": 0.5,
                "bool": True,
                "bytes": b"\0\xff",
            }[proto]
            return next(filter(None, _allowed(type_)), value)
        case Json():
            many = isinstance(type_, (inspect.ListType, inspect.VarTupleType))
            return (
                [{"n": (1 << 53) + 1}] if many else {"deep": [1, {"n": (1 << 53) + 1}], "text": "ž"}
            )
        case MessageShape(inner):
            return None if depth > 4 and field.nullable else example(inner, depth + 1)
        case OneOf(options):
            return example(options[-1][1], depth + 1)
        case Many(item):
            return (
                ()
                if depth > 4
                else (_value(field, item, type_, depth), _value(field, item, type_, depth))
            )
        case Map(value):
            return {key: _value(field, value, int, depth) for key in ("a", "b")}


def _allowed(type_: Any) -> Iterator[Any]:
    """Values that a field may hold, if it may not hold any: words of a list, the bound of a number."""
    match type_:
        case inspect.Metadata():
            yield from _allowed(type_.type)
        case inspect.IntType() | inspect.FloatType():
            yield type_.le
        case inspect.LiteralType():
            yield from type_.values  # type: ignore[misc]
        case inspect.UnionType():
            for each in type_.types:
                yield from _allowed(each)
        case inspect.ListType() | inspect.VarTupleType():
            yield from _allowed(type_.item_type)


def structs() -> list[Any]:
    answers = [
        each
        for route in table.ROUTES
        if kind_of(route) in ("one", "either")
        for each in answers_of(route)
    ]
    return list(dict.fromkeys([*(type_ for _, type_ in EVENT.options), *answers]))


def messages() -> dict[str, Any]:
    found = {
        option: field.message_type
        for option, field in events_pb2.Event.DESCRIPTOR.fields_by_name.items()
    }
    by_type = {type_: found[option] for option, type_ in EVENT.options}
    for service in services():
        for rpc in bound(service, table.ROUTES):
            output = service.methods_by_name[rpc.path.rpartition("/")[2]].output_type
            for each in answers_of(rpc.route) if rpc.kind in ("one", "either") else ():
                by_type[each] = (
                    output
                    if rpc.kind == "one"
                    else output.fields_by_name[option_of(each)].message_type
                )
    return by_type


def test_every_event_and_every_answer_comes_through_whole() -> None:
    by_type = messages()
    for struct in structs():
        given = example(struct)
        message = GetMessageClass(by_type[struct])()
        filler(struct)(message, given)
        back = reader(fields_of(struct))(message.FromString(message.SerializeToString()))
        # As JSON tells it: tuples and lists are the same there.
        assert msgspec.json.decode(msgspec.json.encode(back)) == _told(given), struct.__name__


def _told(struct: Any) -> Any:
    """Everything in it, also where the wire leaves out what is usual."""
    return msgspec.json.decode(msgspec.json.encode(_plain(struct)))


def _plain(value: Any, shape: Any = None) -> Any:
    if isinstance(value, msgspec.Struct):
        tag = (
            {value.__struct_config__.tag_field: value.__struct_config__.tag}
            if isinstance(shape, OneOf)
            else {}
        )
        return {
            **tag,
            **{
                each.name: _plain(getattr(value, each.field), each.shape)
                for each in fields_of(type(value))
                # A tree ends with nothing below it, and a message leaves out what is empty.
                if each.required or each.nullable or getattr(value, each.field) != ()
            },
        }
    if isinstance(value, (list, tuple)):
        return [_plain(each, shape.item if isinstance(shape, Many) else None) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def test_an_entry_carries_its_event_with_its_type() -> None:
    for option, type_ in EVENT.options:
        event = example(type_)
        kind = str(type_.__struct_config__.tag)
        entry = Entry(
            tape="t",
            seq=3,
            position=4,
            time_ms=5,
            principal="owner",
            kind=kind,
            hash="h",
            event=msgspec.Raw(encode(event)),
        )
        (wire,) = messages_of([(3, msgspec.json.encode(entry))])
        (happened,) = events_pb2.Batch.FromString(wire).happened
        assert (
            happened.entry.seq,
            happened.entry.kind,
            happened.entry.event.WhichOneof("one"),
        ) == (3, kind, option)
        expected = message_of(entry)
        assert wire == expected


def test_deltas_that_follow_each_other_become_one_and_nothing_else_does() -> None:
    def delta(**more: Any) -> tuple[int, bytes]:
        return 0, msgspec.json.encode({"kind": "model.delta", "run_id": "r", "turn": 1, **more})

    batch = [
        delta(text="a"), delta(text="b"), delta(reasoning="c"), delta(reasoning="d"), delta(text="e"), delta(call="fs.read"),
        delta(text="f"), delta(text="so far", whole=True), delta(text="g"), delta(text="h", turn=2),
        (0, b'{"kind":"tool.progress","run_id":"r","call_id":"c","text":"x"}'),
    ]  # fmt: skip
    (wire,) = messages_of(batch)
    told = [
        (
            each.model_delta.text
            or each.model_delta.reasoning
            or each.model_delta.call
            or each.tool_progress.text
        )
        for each in events_pb2.Batch.FromString(wire).happened
    ]
    assert told == ["ab", "cd", "e", "fs.read", "f", "so farg", "h", "x"]


def test_a_long_history_comes_in_messages_that_any_client_reads() -> None:
    event = msgspec.Raw(b'{"kind":"run.completed","text":"%b"}' % (b"x" * 100_000))
    entry = Entry(
        tape="t",
        seq=1,
        position=1,
        time_ms=1,
        principal="o",
        kind="run.completed",
        hash="h",
        event=event,
    )
    wires = list(messages_of([(1, msgspec.json.encode(entry))] * 40))
    assert sum(len(events_pb2.Batch.FromString(each).happened) for each in wires) == 40
    assert max(map(len, wires)) < 1 << 20
