"""Writes the verbs of the Python and the JavaScript client from the route table, so that neither
can ask for what is not there.

`python scripts/clients.py` writes src/palyra/client/{verbs,async_verbs}.py and
clients/js/{verbs.js,verbs.d.ts,types.d.ts}; with `--check` it only says whether they are up to
date. A route gets a verb when it is named here; every other one is reached with `request`.
"""

import keyword
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import NODEFAULT

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts import console_types

from palyra.api import openapi
from palyra.api.calls import JSON, Nothing
from palyra.api.routes import Route
from palyra.serve.routes import ROUTES

_ROOT = Path(__file__).parent.parent
_S = "/v1/sessions/{session_id}"
NAMES = {
    "POST /v1/sessions": "resolve_session",
    "GET /v1/sessions": "list_sessions",
    "GET /v1/sessions/search": "search_sessions",
    f"GET {_S}": "get_session",
    f"PATCH {_S}": "change_session",
    f"POST {_S}/reset": "reset_session",
    f"POST {_S}/branch": "branch_session",
    f"GET {_S}/entries": "list_entries",
    f"GET {_S}/runs": "list_runs",
    f"POST {_S}/messages": "submit",
    f"POST {_S}/undo": "undo",
    f"POST {_S}/rules": "add_rule",
    f"GET {_S}/rules": "list_rules",
    "GET /v1/runs/{run_id}": "get_run",
    "POST /v1/runs/{run_id}/cancel": "cancel",
    "POST /v1/stop": "stop",
    "GET /v1/approvals": "list_approvals",
    "GET /v1/approvals/{approval_id}": "get_approval",
    "POST /v1/approvals/{approval_id}/answer": "answer",
    "GET /v1/grants": "list_grants",
    "DELETE /v1/grants/{approval_id}": "remove_grant",
    "GET /v1/memory": "list_memory",
    "POST /v1/memory": "add_memory",
    "GET /v1/memory/search": "search_memory",
    "GET /v1/schedules": "list_schedules",
    "GET /v1/usage": "usage",
    "GET /v1/models": "list_models",
    "GET /v1/tools": "list_tools",
    "GET /v1/status": "status",
    "GET /v1/journal/verify": "verify_journal",
}


def chosen() -> list[tuple[str, Route[Any, Any]]]:
    by_place = {f"{route.method} {route.path}": route for route in ROUTES}
    missing = [place for place in NAMES if place not in by_place]
    assert not missing, f"these are no routes any more: {missing}"
    return [(name, by_place[place]) for place, name in NAMES.items()]


def _gives(route: Route[Any, Any]) -> Any:
    return next(
        (
            give.type
            for give in route.gives
            if give.type is not None and give.media == JSON and give.status < 300
        ),
        None,
    )


def _fields(route: Route[Any, Any]) -> tuple[msgspec.inspect.Field, ...]:
    """What a verb takes beside the parts of its path: a body's fields, or a query's."""
    given = route.body if route.body is not None else route.query
    if given is Nothing:
        return ()
    info = msgspec.inspect.type_info(given)
    assert isinstance(info, msgspec.inspect.StructType)
    return info.fields


_HEAD = '''"""Written by scripts/clients.py from the route table: the daemon's verbs{how}.

A verb decodes its answer into the daemon's own type when it is called: importing this costs
nothing.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from palyra.client.calling import {base}, new_id, part, sent

if TYPE_CHECKING:
'''


class _Python:
    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}

    def type(self, info: Any) -> str:
        match info:
            case msgspec.inspect.StrType():
                return "str"
            case msgspec.inspect.BoolType():
                return "bool"
            case msgspec.inspect.IntType():
                return "int"
            case msgspec.inspect.FloatType():
                return "float"
            case msgspec.inspect.NoneType():
                return "None"
            case msgspec.inspect.LiteralType(values=values):
                return f"Literal[{', '.join(map(_text, values))}]"
            case msgspec.inspect.UnionType(types=types):
                return " | ".join(dict.fromkeys(map(self.type, types)))
            case (
                msgspec.inspect.ListType(item_type=item)
                | msgspec.inspect.VarTupleType(item_type=item)
            ):
                return f"Sequence[{self.type(item)}]"
            case msgspec.inspect.DictType(value_type=value):
                return f"dict[str, {self.type(value)}]"
            case msgspec.inspect.StructType(cls=cls):
                return self.name(cls)
        return "Any"

    def name(self, cls: Any) -> str:
        self.imports.setdefault(cls.__module__, set()).add(cls.__name__)
        return str(cls.__name__)

    def verb(self, name: str, route: Route[Any, Any], *, waits: bool) -> str:
        fields, gives = _fields(route), _gives(route)
        needed = [each for each in fields if each.required]
        others = [each for each in fields if not each.required]
        defaults = {each.encode_name: _default(each) for each in others}
        takes = ["self", *(f"{each}: str" for each in route.parameters)]
        if fields:
            takes.append("*")
        takes += [f"{_safe(each.name)}: {self.type(each.type)}" for each in needed]
        takes += [
            f"{_safe(each.name)}: {self.type(each.type)} = {_text(defaults[each.encode_name])}"
            for each in others
        ]
        result = "None" if gives is None else self.name(gives)
        lines = [f"    {'async ' if waits else ''}def {name}({', '.join(takes)}) -> {result}:"]
        lines.append(f'        """{route.summary[:1].upper()}{route.summary[1:]}."""')
        path = (
            "f" * bool(route.parameters)
            + f'"{route.path.replace("{", "{part(").replace("}", ")}")}"'
        )
        given = "None"
        if fields:
            pairs = ", ".join(f'"{each.encode_name}": {_value(name, each)}' for each in fields)
            given = f"sent({{{pairs}}}, {_text(defaults)})"
        elif route.body is not None:
            given = "{}"
        type_ = f'"{gives.__module__}:{gives.__name__}"' if gives is not None else '""'
        call = f'self.call("{route.method}", {path}, {given}, {type_})'
        lines.append(
            f"        {'' if gives is None else 'return '}{'await ' if waits else ''}{call}"
        )
        return "\n".join(lines) + "\n"

    def text(self, *, waits: bool) -> str:
        verbs = "\n".join(self.verb(name, route, waits=waits) for name, route in chosen())
        imports = "".join(
            f"    from {module} import {', '.join(sorted(names))}\n"
            for module, names in sorted(self.imports.items())
        )
        base, how = ("AsyncCalling", ", to be awaited") if waits else ("Calling", "")
        name = "AsyncVerbs" if waits else "Verbs"
        return f"{_HEAD.format(base=base, how=how)}{imports}\n\nclass {name}({base}):\n{verbs}"


def _value(verb: str, field: msgspec.inspect.Field) -> str:
    """An input that is sent twice, because a connection broke, must be the same input."""
    return "run_id or new_id()" if (verb, field.name) == ("submit", "run_id") else _safe(field.name)


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _default(field: msgspec.inspect.Field) -> Any:
    if field.default is not NODEFAULT:
        return field.default
    return msgspec.to_builtins(field.default_factory())


def _text(value: Any) -> str:
    """A value as the formatter would write it."""
    match value:
        case str():
            return msgspec.json.encode(value).decode()
        case dict():
            return (
                "{" + ", ".join(f"{_text(key)}: {_text(each)}" for key, each in value.items()) + "}"
            )
    return repr(value)


_JS_HEAD = "// Written by scripts/clients.py from the daemon's route table.\n"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def javascript() -> str:
    lines = [_JS_HEAD, "/** Each verb as [method, path]. */", "export const VERBS = {"]
    for name, route in chosen():
        lines.append(f'  {_camel(name)}: ["{route.method}", "{route.path}"],')
    return "\n".join([*lines, "};", ""])


def declarations() -> str:
    schemas = _Schemas()
    lines = [_JS_HEAD, 'import type * as t from "./types.js";', "", "export interface Verbs {"]
    for name, route in chosen():
        takes = [f"{_camel(each)}: string" for each in route.parameters]
        if _fields(route):
            optional = "" if any(each.required for each in _fields(route)) else "?"
            takes.append(
                f"given{optional}:"
                f" {schemas.of(route.body if route.body is not None else route.query)}"
            )
        gives = _gives(route)
        result = "void" if gives is None else schemas.of(gives)
        lines.append(f"  /** {route.summary[:1].upper()}{route.summary[1:]}. */")
        lines.append(f"  {_camel(name)}({', '.join(takes)}): Promise<{result}>;")
    lines += [
        "}",
        "",
        "export declare const VERBS: { [name in keyof Verbs]: [string, string] };",
        "",
    ]
    return "\n".join(lines)


class _Schemas:
    """Types by the names that types.d.ts has for them; those of queries are written out."""

    def __init__(self) -> None:
        known = openapi.document([route for _, route in chosen()], "")["components"]["schemas"]
        self._known = {console_types.name_of(name) for name in known}

    def of(self, type_: Any) -> str:
        (schema,), components = msgspec.json.schema_components(
            [type_], ref_template="#/components/schemas/{name}"
        )
        name = console_types.type_of(schema)
        if name in self._known:
            return f"t.{name}"
        inner = components.get(schema.get("$ref", "").rpartition("/")[2], schema)
        return " ".join(console_types.object_of(inner).split())


def types() -> str:
    return console_types.text([route for _, route in chosen()]).replace(
        "scripts/console_types.py", "scripts/clients.py"
    )


def formatted(python: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [
        str(ruff),
        "format",
        "--config",
        str(_ROOT / "pyproject.toml"),
        "--stdin-filename",
        "verbs.py",
        "-",
    ]
    return subprocess.run(command, input=python, capture_output=True, text=True, check=True).stdout


def files() -> dict[Path, str]:
    return {
        _ROOT / "src" / "palyra" / "client" / "verbs.py": formatted(_Python().text(waits=False)),
        _ROOT / "src" / "palyra" / "client" / "async_verbs.py": formatted(
            _Python().text(waits=True)
        ),
        _ROOT / "clients" / "js" / "verbs.js": javascript(),
        _ROOT / "clients" / "js" / "verbs.d.ts": declarations(),
        _ROOT / "clients" / "js" / "types.d.ts": types(),
    }


def main() -> int:
    written = files()
    if "--check" in sys.argv[1:]:
        return (
            0
            if all(path.exists() and path.read_text() == text for path, text in written.items())
            else 1
        )
    for path, text in written.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
