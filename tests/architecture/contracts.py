"""What users and programs rely on, read from the code as it is: routes, messages, settings, events,
commands, exit codes.

Each reader returns plain JSON. tests/architecture/recorded holds what they returned when it was
recorded; `python scripts/record_contracts.py` records it anew. Names of Python classes and modules
are in none of it: renaming them is free.
"""

import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

# All that is needed of the product's own modules.
from palyra.cli import exit_codes as cli_exit_codes
from palyra.cli.chat.slash_commands import COMMANDS as CHAT_COMMANDS
from palyra.cli.root import root as command_line
from palyra.core import errors
from palyra.serve.config.schema import settings as all_settings
from tests import daemon as daemons

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "recorded"
_SCHEMA = "#/components/schemas/"
# Words for people: they may change without breaking a program.
_PROSE = ("description", "summary", "title")
_METHODS = ("get", "post", "put", "patch", "delete")


@cache
def _document() -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        daemons.start(Path(folder), script={"*": [{"text": "hi"}]}) as daemon,
    ):
        document: dict[str, Any] = daemon.get("/openapi.json")
    return document


def openapi() -> dict[str, Any]:
    """Every operation and every schema of the HTTP API, without words for people."""
    document = _document()
    operations = {}
    for path, methods in document["paths"].items():
        common = {key: value for key, value in methods.items() if key not in _METHODS}
        for method in _METHODS:
            if method in methods:
                operation = _bare({**common, **methods[method]})
                operation["responses"] = _grouped(operation["responses"])
                operations[f"{method.upper()} {path}"] = operation
    components = {
        name: _bare(value) for name, value in document["components"].items() if name != "schemas"
    }
    schemas = {name: _bare(schema) for name, schema in document["components"]["schemas"].items()}
    return {"operations": operations, "components": components, "schemas": schemas}


def _bare(value: Any, *, names: bool = False) -> Any:
    """Without prose. `names`: the keys are names of fields, not words of JSON Schema."""
    if isinstance(value, dict):
        kept = (
            value.items()
            if names
            else [(key, each) for key, each in value.items() if key not in _PROSE]
        )
        return {key: _bare(each, names=key == "properties" and not names) for key, each in kept}
    if isinstance(value, list):
        return [_bare(each) for each in value]
    return value


def _grouped(responses: dict[str, Any]) -> dict[str, Any]:
    """Statuses with the same answer together: most errors of a route look alike."""
    by_answer: dict[str, list[str]] = {}
    for status, answer in responses.items():
        by_answer.setdefault(json.dumps(answer, sort_keys=True), []).append(status)
    return {
        " ".join(sorted(statuses)): json.loads(answer) for answer, statuses in by_answer.items()
    }


def events() -> dict[str, Any]:
    """Every kind of event with its fields: type, and default if it need not be there."""
    schemas = openapi()["schemas"]
    mapping = next(found for found in _mappings(schemas) if "run.accepted" in found)
    found = {}
    for kind, reference in mapping.items():
        schema = schemas[reference.removeprefix(_SCHEMA)]
        required = set(schema.get("required", ()))
        found[kind] = {
            name: _event_field(field)
            + ("" if name in required else f" = {json.dumps(field.get('default'))}")
            for name, field in schema["properties"].items()
        }
    return found


def _mappings(value: Any) -> Iterator[dict[str, str]]:
    """Every mapping from a tag to the schema that it stands for."""
    if isinstance(value, dict):
        if isinstance(value.get("discriminator"), dict):
            yield value["discriminator"]["mapping"]
        for each in value.values():
            yield from _mappings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _mappings(each)


def _event_field(field: dict[str, Any]) -> str:
    """A type in a word: refs are `object`, their own fields are compared with the schemas."""
    if "$ref" in field:
        return "object"
    if "anyOf" in field:
        return " | ".join(dict.fromkeys(_event_field(each) for each in field["anyOf"]))
    if "enum" in field:
        return "|".join(map(str, field["enum"]))
    kind = field.get("type", "any")
    inner = field.get("items") or field.get("additionalProperties")
    return f"{kind} of {_event_field(inner)}" if isinstance(inner, dict) and inner else str(kind)


def protos() -> dict[str, Any]:
    """Every RPC, and every message and enum with its numbers."""
    folder = ROOT / "proto"
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / "set"
        files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.proto"))]
        subprocess.run(
            [
                sys.executable,
                "-m",
                "grpc_tools.protoc",
                f"-I{folder}",
                f"--descriptor_set_out={made}",
                "--include_imports",
                *files,
            ],
            check=True,
            timeout=60,
        )
        described = FileDescriptorSet.FromString(made.read_bytes())
    rpcs, messages, enums = {}, {}, {}
    for file in described.file:
        if file.package.startswith("google."):
            continue
        for service in file.service:
            for method in service.method:
                rpcs[f"{file.package}.{service.name}/{method.name}"] = {
                    "takes": method.input_type,
                    "gives": method.output_type,
                    "streams": [method.client_streaming, method.server_streaming],
                }
        for message in file.message_type:
            messages.update(_messages(f".{file.package}", message))
        for enum in file.enum_type:
            enums[f".{file.package}.{enum.name}"] = {
                str(value.number): value.name for value in enum.value
            }
    return {"rpcs": rpcs, "messages": messages, "enums": enums}


def _messages(prefix: str, message: DescriptorProto) -> Iterator[tuple[str, dict[str, Any]]]:
    name = f"{prefix}.{message.name}"
    fields = {}
    for field in message.field:
        label = FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()
        kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
        fields[str(field.number)] = {
            "name": field.name,
            "label": label,
            "kind": kind,
            "type": field.type_name,
        }
    yield (
        name,
        {"fields": fields, "reserved": [[each.start, each.end] for each in message.reserved_range]},
    )
    for inner in message.nested_type:
        yield from _messages(name, inner)


def settings() -> dict[str, Any]:
    """Every setting with what it accepts and its default."""
    return {
        ".".join(each.path): {
            "accepts": _bare(msgspec.json.schema(each.type)),
            "default": _plain(each.default),
        }
        for each in all_settings()
    }


def _plain(value: Any) -> Any:
    return json.loads(
        json.dumps(
            value,
            default=lambda other: list(other) if isinstance(other, set | frozenset) else str(other),
        )
    )


def exit_codes() -> dict[str, Any]:
    """The exit codes there are, and the one that each error of ours becomes."""
    known = {
        cls.code: cls
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, errors.PalyraError)
    }
    return {
        "codes": sorted(
            value
            for name, value in vars(cli_exit_codes).items()
            if name.isupper() and isinstance(value, int)
        ),
        "errors": {
            code: cli_exit_codes.code_of(cls.__new__(cls)) for code, cls in sorted(known.items())
        },
    }


def commands() -> dict[str, Any]:
    """Every command with its arguments and options, and the commands of the chat."""
    return {"commands": dict(_commands(command_line, ())), "chat": sorted(CHAT_COMMANDS)}


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    yield " ".join(path) or "palyra", [_parameter(each) for each in command.params]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, (*path, name))


def _parameter(parameter: click.Parameter) -> str:
    """One line: `--by run|model = model`, `argument text...`."""
    choices = getattr(parameter.type, "choices", None)
    kind = "|".join(map(str, choices)) if choices else parameter.type.name
    names = (
        " ".join((*parameter.opts, *parameter.secondary_opts))
        if isinstance(parameter, click.Option)
        else "argument"
    )
    words = [names]
    if isinstance(parameter, click.Option) and parameter.is_flag:
        words.append("flag")
    else:
        words.append(
            kind + ("..." if parameter.nargs != 1 or getattr(parameter, "multiple", False) else "")
        )
    default = parameter.to_info_dict()["default"]
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        words.append(f"= {default}")
    if parameter.required:
        words.append("required")
    return " ".join(words)


def load(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


def save(name: str, value: dict[str, Any]) -> None:
    """One line for each entry of the first two levels: a difference in the repository names what it
    is about.
    """

    def line(key: str, inner: Any) -> str:
        return f"{json.dumps(key)}: {json.dumps(inner, sort_keys=True, ensure_ascii=False)}"

    parts = []
    for key, inner in value.items():
        if isinstance(inner, dict) and any(
            isinstance(each, dict | list) for each in inner.values()
        ):
            lines = ",\n  ".join(line(name, each) for name, each in sorted(inner.items()))
            parts.append(f"{json.dumps(key)}: {{\n  {lines}\n }}")
        else:
            parts.append(line(key, inner))
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{name}.json").write_text("{\n " + ",\n ".join(parts) + "\n}\n")


READERS = {
    "openapi": openapi,
    "events": events,
    "protos": protos,
    "settings": settings,
    "exit_codes": exit_codes,
    "commands": commands,
}
