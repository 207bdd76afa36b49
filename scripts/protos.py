"""Write the .proto files from the route table and the types behind it, then compile them
(scripts/proto_code.py).

    python scripts/protos.py            write proto/ and src/palyra/v1
    python scripts/protos.py --check    only say whether they are up to date

proto/numbers.json remembers every number and every name that was ever given: it only grows. A field
that is gone, or has another type, leaves its number reserved; so a client that was built last year
still reads what it knows.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts import proto_code

from palyra.api.errors import ErrorBody
from palyra.api.grpc.verbs import (
    EVENT,
    HAPPENED,
    UP,
    Field,
    Json,
    Many,
    Map,
    MessageShape,
    OneOf,
    Scalar,
    Shape,
    Single,
    answers_of,
    fields_of,
    kind_of,
    option_of,
    request_fields,
)
from palyra.api.routes import Route
from palyra.serve import routes as table

ROOT = proto_code.ROOT
PACKAGE = proto_code.PACKAGE
LOCK = "proto/numbers.json"
_HEAD = (
    "// Written by scripts/protos.py from the route table: do not edit.\nsyntax ="
    ' "proto3";\npackage palyra.v1;\n'
)
_SERVICES = {
    "sessions": "Sessions",
    "events": "Sessions",
    "runs": "Runs",
    "stop": "Runs",
    "approvals": "Approvals",
    "grants": "Approvals",
    "memory": "Memory",
    "candidates": "Memory",
    "schedules": "Schedules",
    "journal": "Journal",
    "workers": "Workers",
}
_OPTIONS = """\
import "google/protobuf/descriptor.proto";

extend google.protobuf.MethodOptions {
  // The row of the route table that the RPC is: its method and path over HTTP.
  optional string route = 51420;
  // The least scope that the caller's token must have.
  optional string scope = 51421;
}
"""
# What a handler is called where that says too little to somebody who sees the RPC alone.
_NAMES = {
    "all_events": "watch_all",
    "entries": "list_entries",
    "import_": "import",
    "listing": "list",
    "messages": "submit",
    "not_upgraded": "run_stream",
    "resolve": "find_or_create",
    "runs_of": "list_runs",
    "session_events": "watch",
}


class Writer:
    """The files of one state of the table. `lock` is extended in place."""

    def __init__(self, lock: dict[str, Any]) -> None:
        self._messages: dict[str, Any] = lock.setdefault("messages", {})
        self._methods: dict[str, str] = lock.setdefault("methods", {})
        self._names: dict[Any, str] = {}
        self._texts: dict[str, str] = {}
        self._file: dict[str, str] = {}
        self._current = "events"

    def files(self) -> dict[str, str]:
        self._choice(EVENT, "Event")
        self._choice(HAPPENED, "Happened")
        self._write(
            "Batch", "Batch", ["repeated Happened happened"], "What happened since the last batch."
        )
        self._current = "types"
        self._struct(ErrorBody)
        self._choice(UP, "Up")
        self._write("Piece", "Piece", ["bytes data"], "A part of a file, in order.")
        services: dict[str, list[Route[Any, Any]]] = {}
        for route in table.ROUTES:
            if kind_of(route) is not None:
                services.setdefault(self._method(route).partition(".")[0], []).append(route)
        texts = {name: self._service(name, routes) for name, routes in sorted(services.items())}
        found = {"options": f"{_HEAD}{_OPTIONS}"}
        for file in ("events", "types", *(name.lower() for name in texts)):
            own = [text for name, text in self._texts.items() if self._file[name] == file]
            found[file] = self._joined(
                file, [*own, *(text for name, text in texts.items() if name.lower() == file)]
            )
        return found

    def _joined(self, file: str, texts: list[str]) -> str:
        # A comment that has the name of a message in it needs no import.
        code = re.sub(r"//.*", "", "\n".join(texts))
        words = set(re.findall(r"\w+", code))
        needed = {self._file[word] for word in words & self._file.keys()} - {file} | (
            {"options"} if "option" in words else set()
        )
        imports = "".join(f'import "{PACKAGE}/{each}.proto";\n' for each in sorted(needed))
        return "\n".join([f"{_HEAD}{imports}", *texts])

    def _method(self, route: Route[Any, Any]) -> str:
        key = f"{route.method} {route.path}"
        if key not in self._methods:
            service = _SERVICES.get(route.path.split("/")[2], "Admin")
            module = route.handler.__module__.rpartition(".")[2]
            verb = _camel(_NAMES.get(route.handler.__name__, route.handler.__name__))
            name = f"{service}.{verb}"
            if (service == "Admin" and module != "admin") or name in self._methods.values():
                name = f"{service}.{_camel(module)}{verb}"
            assert name not in self._methods.values(), (
                f"{key} would be {name}, which there is: name it in {LOCK}"
            )
            self._methods[key] = name
        return self._methods[key]

    def _service(self, service: str, routes: list[Route[Any, Any]]) -> str:
        lines = []
        for route in routes:
            verb = self._method(route).partition(".")[2]
            kind = kind_of(route)
            if kind == "talk":
                asked, answered = "stream .palyra.v1.Up", "stream .palyra.v1.Batch"
            else:
                self._current = service.lower()
                of, fields = f"{route.method} {route.path}", self._declared(request_fields(route))
                # With the package in front: an RPC may be called like a message.
                asked = f".palyra.v1.{self._write(f'{service}{verb}Request', of, fields, '')}"
                self._current = "types"
                answered = self._answer(f"{service}{verb}Answer", route)
            options = (
                f'option (route) = "{route.method} {route.path}"; option (scope) = "{route.scope}";'
            )
            lines += [
                f"  // {_sentence(route.summary)}",
                f"  rpc {verb}({asked}) returns ({answered}) {{ {options} }}",
            ]
        return f"service {service} {{\n" + "\n".join(lines) + "\n}\n"

    def _answer(self, name: str, route: Route[Any, Any]) -> str:
        types = answers_of(route)
        match kind_of(route):
            case "events":
                return "stream .palyra.v1.Batch"
            case "pieces":
                return "stream .palyra.v1.Piece"
            case "either":
                choice = OneOf(tuple((option_of(each), each) for each in types))
                return f".palyra.v1.{self._choice(choice, name)}"
        return f".palyra.v1.{self._struct(types[0])}"

    def _struct(self, struct: Any) -> str:
        if struct not in self._names:
            of = f"{struct.__module__}.{struct.__qualname__}"
            name = self._names[struct] = self._name(struct.__name__, of)
            about = " ".join((struct.__doc__ or "").partition("\n\n")[0].split())
            self._write(name, of, self._declared(fields_of(struct)), about)
        return self._names[struct]

    def _name(self, short: str, of: str) -> str:
        """The name it always had, or its own, or that with its module's in front if another has
        it.
        """
        known = next((name for name, message in self._messages.items() if message["of"] == of), "")
        if known:
            return known
        holder = self._messages.get(short)
        if holder is None or (
            holder["of"] not in _known_types() and holder["of"].rpartition(".")[2] == short
        ):
            return short
        return f"{_camel(of.split('.')[-2])}{short}"

    def _choice(self, choice: OneOf, name: str) -> str:
        if choice not in self._names:
            self._names[choice] = name
            options = [f"{self._struct(type_)} {option}" for option, type_ in choice.options]
            self._write(name, name, options, "", oneof=True)
        return self._names[choice]

    def _declared(self, fields: tuple[Field, ...]) -> list[str]:
        return [self._declaration(each) for each in fields]

    def _declaration(self, field: Field) -> str:
        match field.shape:
            case Many(item) if field.wrapped:
                return (
                    f"{self._wrapper('ListOf', f'repeated {self._single(item, field)} items', item, field)}"  # noqa: E501
                    f" {field.proto}"
                )
            case Map(value) if field.wrapped:
                return (
                    f"{self._wrapper('MapOf', f'map<string, {self._single(value, field)}> items', value, field)}"  # noqa: E501
                    f" {field.proto}"
                )
            case Many(item):
                return f"repeated {self._single(item, field)} {field.proto}"
            case Map(value):
                return f"map<string, {self._single(value, field)}> {field.proto}"
            case MessageShape() | OneOf() as shape:
                return f"{self._single(shape, field)} {field.proto}"
        assert isinstance(field.shape, (Scalar, Json))
        return f"optional {self._single(field.shape, field)} {field.proto}"

    def _single(self, shape: Single, field: Field) -> str:
        match shape:
            case Scalar(proto):
                return proto
            case Json():
                return "string"
            case MessageShape(type_):
                return self._struct(type_)
        return self._choice(shape, f"{_camel(field.field)}Choice")

    def _wrapper(self, prefix: str, declaration: str, item: Shape, field: Field) -> str:
        assert not isinstance(item, (Many, Map))
        name = f"{prefix}{_camel(self._single(item, field))}"
        if name not in self._texts:
            self._write(
                name, name, [declaration], "May be empty, and may be absent: that is not the same."
            )
        return name

    def _write(
        self, name: str, of: str, declarations: list[str], about: str, *, oneof: bool = False
    ) -> str:
        known = self._messages.setdefault(name, {"of": of, "fields": {}})
        known["of"] = of
        numbers = {declaration: int(number) for number, declaration in known["fields"].items()}
        for declaration in declarations:
            if declaration not in numbers:
                numbers[declaration] = len(known["fields"]) + 1
                known["fields"][str(numbers[declaration])] = declaration
        gone = [
            number for declaration, number in numbers.items() if declaration not in declarations
        ]
        lines = [f"{declaration} = {numbers[declaration]};" for declaration in declarations]
        lines.sort(key=lambda line: int(line.rpartition(" ")[2][:-1]))
        if oneof:
            lines = ["oneof one {", *(f"  {line}" for line in lines), "}"]
        if gone:
            lines.append(f"reserved {', '.join(map(str, sorted(gone)))};")
        comment = f"// {about}\n" if about else ""
        body = "".join(f"  {line}\n" for line in lines)
        self._texts[name] = (
            f"{comment}message {name} {{\n{body}}}\n"
            if lines
            else f"{comment}message {name} {{}}\n"
        )
        # A message lies where it was first needed: events need nothing of the rest.
        self._file.setdefault(
            name,
            self._current if self._current in ("events", "types") or "Request" in name else "types",
        )
        return name


def _known_types() -> set[str]:
    found: set[Any] = set()

    def walk(struct: Any) -> None:
        if struct in found:
            return
        found.add(struct)
        for field in fields_of(struct):
            for each in _inside(field.shape):
                walk(each)

    for choice in (EVENT, HAPPENED, UP):
        for _, type_ in choice.options:
            walk(type_)
    walk(ErrorBody)
    for route in table.ROUTES:
        if kind_of(route) not in (None, "talk"):
            for each in answers_of(route) if kind_of(route) in ("one", "either") else ():
                walk(each)
            for field in request_fields(route):
                for each in _inside(field.shape):
                    walk(each)
    return {f"{each.__module__}.{each.__qualname__}" for each in found}


def _inside(shape: Shape) -> Iterator[Any]:
    match shape:
        case MessageShape(type_):
            yield type_
        case OneOf(options):
            yield from (type_ for _, type_ in options)
        case Many(item):
            yield from _inside(item)
        case Map(value):
            yield from _inside(value)


def _camel(words: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[_\W]+", words))


def _sentence(summary: str) -> str:
    return summary[:1].upper() + summary[1:] + "."


def written(lock: dict[str, Any]) -> dict[str, str]:
    """Every file by its path, with the lock as it is from now on."""
    protos = {f"proto/{PACKAGE}/{name}.proto": text for name, text in Writer(lock).files().items()}
    return {**protos, LOCK: msgspec.json.format(msgspec.json.encode(lock)).decode() + "\n"}


def renumbered(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what was said of a number and is said no more. Nobody built with it could read it."""
    wrong = []
    for name, message in before.get("messages", {}).items():
        now = after.get("messages", {}).get(name, {"fields": {}})["fields"]
        wrong += [
            f"{name}: {number} was {declaration!r} and is {now.get(number, 'nothing')!r}"
            for number, declaration in message["fields"].items()
            if now.get(number) != declaration
        ]
    names = after.get("methods", {})
    wrong += [
        f"{row} was {name} and is {names.get(row)}"
        for row, name in before.get("methods", {}).items()
        if names.get(row) != name
    ]
    return wrong


def lock_of(files: bytes) -> dict[str, Any]:
    """Return the numbers that the .proto files in proto/ give: what was given away, whatever the
    lock says now.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    messages: dict[str, Any] = {}
    for file in FileDescriptorSet.FromString(files).file:
        for message in file.message_type:
            messages[message.name] = {
                "fields": {str(each.number): each.name for each in message.field}
            }
    return {"messages": messages}


def by_name(lock: dict[str, Any]) -> dict[str, Any]:
    """A lock with nothing but the names of its fields, as a descriptor tells them."""
    messages = {
        name: {
            "fields": {
                number: declaration.rpartition(" ")[2]
                for number, declaration in message["fields"].items()
            }
        }
        for name, message in lock["messages"].items()
    }
    return {"messages": messages}


def main() -> int:
    lock = msgspec.json.decode((ROOT / LOCK).read_bytes()) if (ROOT / LOCK).exists() else {}
    files = written(lock)
    if wrong := renumbered(lock_of(proto_code.descriptors()), by_name(lock)):
        sys.stderr.write(
            "\n".join(
                [f"{LOCK} gives numbers away that were taken; put back what it said:", *wrong, ""]
            )
        )
        return 1
    stale = [
        path
        for path, text in files.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text() != text
    ]
    if "--check" in sys.argv:
        sys.stdout.write(
            "".join(f"{path} is not up to date: python scripts/protos.py\n" for path in stale)
        )
        return 1 if stale else proto_code.main()
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(files[path])
    proto_code.write()
    sys.stdout.write(f"{len(files)} files, {len(stale)} of them changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
