"""The Python client's generated modules: verbs that wait, verbs that are awaited, and the types of
what they give.

A type of the core is imported: importing it is cheap. Every other type is written out again,
because importing the original would load the daemon, and a command would take longer to start than
to run. One module for each area, loaded when a verb of it is used.
"""

import keyword
import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec
from msgspec import NODEFAULT, inspect
from scripts.client_verbs import named

from palyra.api.calls import JSON, NDJSON, SSE, Nothing
from palyra.api.routes import PARAMETERS, Route
from palyra.core import errors

_ROOT = Path(__file__).parent.parent
_EVENTS = "palyra.core.events"
_CORE = errors.__name__.rpartition(".")[0] + "."
_NUMBERS = "proto/numbers.json"
# Read piece by piece: these may be larger than memory.
_STREAMED = (NDJSON, b"application/vnd.sqlite3")
# The area of a path's first part where it is not called like that. The order is that of the imports
# between areas.
_AREAS = {
    "sessions": ("sessions", "events"),
    "runs": ("runs", "stop"),
    "approvals": ("approvals", "grants"),
    "journal": ("journal",),
    "status": ("", "assets", "healthz", "readyz", "status", "tools", "metrics"),
    "policy": ("policy",),
    "admin": ("tokens", "login", "login-links", "logout", "config", "providers", "restart"),
    "openai": ("chat", "responses", "embeddings", "models"),
    "usage": ("usage", "budgets"),
    "learning": ("candidates",),
    "skills": ("skills", "skill-archives", "publishers"),
    "schedules": ("schedules", "hooks"),
    "health": ("doctor", "healing", "incidents", "notices"),
}


def area_of(route: Route[Any, Any]) -> str:
    part = route.path.removeprefix("/v1").split("/")[1]
    return next((area for area, parts in _AREAS.items() if part in parts), re.sub(r"\W", "_", part))


def gives(route: Route[Any, Any]) -> dict[int, Any]:
    """Return the types of the JSON answers of a success, by status."""
    found = {
        give.status: give.type
        for give in route.gives
        if give.type is not None and give.media == JSON and give.status < 300
    }
    return found if len(set(found.values())) > 1 else dict(list(found.items())[:1])


def kind_of(route: Route[Any, Any]) -> str:
    """Return how an answer is read: `call` (JSON or nothing), `upload`, `events`, `pieces` or
    `fetch` (bytes).
    """
    if route.takes is not None:
        return "upload"
    media = {give.media for give in route.gives}
    if gives(route) or media == {JSON}:
        return "call"
    if SSE in media:
        return "events"
    return "pieces" if media & set(_STREAMED) else "fetch"


def fields_of(route: Route[Any, Any]) -> tuple[inspect.Field, ...]:
    """Return what a verb takes beside the parts of its path: a body's fields, or a query's."""
    given = route.body if route.body is not None else route.query
    if given is Nothing:
        return ()
    info = inspect.type_info(given)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _inside(info: Any) -> Iterator[type]:
    """Yield the structs that a type mentions, without those that they mention."""
    match info:
        case inspect.StructType(cls=cls):
            yield cls
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            for each in types:
                yield from _inside(each)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from _inside(item)
        case inspect.DictType(value_type=value):
            yield from _inside(value)
        case inspect.Metadata(type=inner):
            yield from _inside(inner)


def text_of(value: Any) -> str:
    """Return a value as the formatter would write it."""
    match value:
        case str():
            return msgspec.json.encode(value).decode()
        case dict():
            return (
                "{"
                + ", ".join(f"{text_of(key)}: {text_of(each)}" for key, each in value.items())
                + "}"
            )
        case msgspec.Struct():
            said = (
                f"{field.name}={text_of(found)}"
                for field in msgspec.structs.fields(value)
                if (found := getattr(value, field.name)) != field.default
            )
            return f"{type(value).__name__}({', '.join(said)})"
    return repr(value)


def _default(field: inspect.Field) -> Any:
    if field.default is NODEFAULT and field.default_factory is NODEFAULT:
        return None
    return field.default if field.default is not NODEFAULT else field.default_factory()


def _may_lack(field: inspect.Field) -> str:
    """Return what an annotation needs for a field that may be missing without having a default."""
    missing = (
        not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT
    )
    return " | None" * (missing and not isinstance(field.type, inspect.AnyType))


class Types:
    """Every type that a verb gives or takes: its name, and the area whose module holds it."""

    def __init__(self) -> None:
        lock = msgspec.json.decode((_ROOT / _NUMBERS).read_bytes())["messages"]
        # One name in every language: gRPC's messages have kept theirs from the first.
        self._known = {message["of"]: name for name, message in lock.items()}
        self.areas: dict[type, str] = {}
        self.names: dict[type, str] = {}
        # What the verbs of an area give, also where another area has the type.
        self._given: dict[str, dict[type, None]] = {}
        order = list(_AREAS)
        rows = sorted(
            named(),
            key=lambda row: (
                order.index(area_of(row[1])) if area_of(row[1]) in order else len(order)
            ),
        )
        for _, route in rows:
            area = area_of(route)
            mentioned = [inspect.type_info(type_) for type_ in gives(route).values()]
            for info in (*mentioned, *(each.type for each in fields_of(route))):
                for cls in _inside(info):
                    self._add(cls, area)
            self._given.setdefault(area, {}).update(dict.fromkeys(gives(route).values()))

    def _add(self, cls: Any, area: str) -> None:
        # One that is named and has no area yet is inside of itself: a tree.
        if cls in self.areas or cls in self.names:
            return
        self._name(cls)
        if not self.imported(cls):
            for field in inspect.type_info(cls).fields:  # type: ignore[attr-defined]
                for inner in _inside(field.type):
                    self._add(inner, area)
        # Behind what it is made of: a module is read from its top.
        self.areas[cls] = area

    def _name(self, cls: Any) -> None:
        known = self._known.get(f"{cls.__module__}.{cls.__qualname__}", "")
        name = known or cls.__name__
        if not known and (name in self._known.values() or name in self.names.values()):
            name = (
                "".join(word.title() for word in cls.__module__.rpartition(".")[2].split("_"))
                + name
            )
        assert name not in self.names.values(), f"two types of the API would be called {name}"
        self.names[cls] = name

    def imported(self, cls: Any) -> bool:
        return bool(cls.__module__.startswith(_CORE))

    def place(self, cls: Any) -> str:
        return f"{self.areas[cls]}:{self.names[cls]}"

    def annotation(self, info: Any, *, given: bool = False) -> str:
        """Return a type as an annotation. What is `given` may be any sequence."""
        again = lambda inner: self.annotation(inner, given=given)  # noqa: E731
        match info:
            case inspect.Metadata(type=inner):
                return again(inner)
            case inspect.LiteralType(values=values):
                return f"Literal[{', '.join(map(text_of, values))}]"
            case inspect.UnionType(types=types):
                return " | ".join(dict.fromkeys(map(again, types)))
            case inspect.ListType(item_type=item):
                return f"{'Sequence' if given else 'list'}[{again(item)}]"
            case inspect.VarTupleType(item_type=item):
                return f"Sequence[{again(item)}]" if given else f"tuple[{again(item)}, ...]"
            case inspect.TupleType(item_types=items):
                return f"tuple[{', '.join(map(again, items))}]"
            case inspect.DictType(key_type=key, value_type=value):
                return f"dict[{again(key)}, {again(value)}]"
            case inspect.StructType(cls=cls):
                return self.names[cls]
        plain = {
            inspect.StrType: "str",
            inspect.BoolType: "bool",
            inspect.IntType: "int",
            inspect.FloatType: "float",
        }
        plain |= {
            inspect.NoneType: "None",
            inspect.BytesType: "bytes",
            inspect.RawType: "msgspec.Raw",
            inspect.AnyType: "Any",
        }
        return plain[type(info)]

    def modules(self) -> dict[str, str]:
        return {
            area: self._module(area)
            for area in self._given
            if self._given[area] or area in self.areas.values()
        }

    def _module(self, area: str) -> str:
        own = dict.fromkeys(
            [*(cls for cls, place in self.areas.items() if place == area), *self._given[area]]
        )
        made = [cls for cls in own if self.areas[cls] == area and not self.imported(cls)]
        body = "\n\n".join(self._struct(cls) for cls in made)
        wanted = [cls for cls in own if cls not in made]
        for cls in made:
            for field in inspect.type_info(cls).fields:  # type: ignore[attr-defined]
                wanted += [each for each in _inside(field.type) if self.areas[each] != area]
        head = (
            f'"""Written by scripts/clients.py from the route table: types of the verbs about'
            f' {area}."""\n'
        )
        typing = [name for name in ("Any", "Literal") if re.search(rf"\b{name}\b", body)]
        lines = [f"from typing import {', '.join(typing)}"] if typing else []
        lines += ["", "import msgspec"] if "msgspec.Raw" in body else []
        helpers = ["Struct"] * bool(made) + ["field"] * ("field(default_factory" in body)
        lines += ["", f"from msgspec import {', '.join(helpers)}"] if helpers else []
        names = text_of_list(sorted(self.names[cls] for cls in own))
        return "\n".join(
            [head, *lines, "", *self._imports(wanted), "", f"__all__ = {names}", "", body, ""]
        )

    def _imports(self, types: Iterable[Any]) -> list[str]:
        lines = set()
        for cls in types:
            module = f"palyra.client.types.{self.areas[cls]}"
            if self.imported(cls):
                # Events come from one place, whichever file they stand in.
                module = _EVENTS if cls.__module__.startswith(_EVENTS) else cls.__module__
            name = self.names[cls]
            renamed = (
                f"{cls.__name__} as {name}" if self.imported(cls) and cls.__name__ != name else name
            )
            lines.add(f"from {module} import {renamed}")
        return sorted(lines)

    def _struct(self, cls: Any) -> str:
        info, config = inspect.type_info(cls), cls.__struct_config__
        assert isinstance(info, inspect.StructType)
        options = ["frozen=True", "kw_only=True"] + ["omit_defaults=True"] * config.omit_defaults
        if config.tag is not None:
            options += [f"tag_field={text_of(config.tag_field)}", f"tag={text_of(config.tag)}"]
        renamed = {
            each.name: each.encode_name for each in info.fields if each.name != each.encode_name
        }
        options += [f"rename={text_of(renamed)}"] if renamed else []
        lines = [f"class {self.names[cls]}(Struct, {', '.join(options)}):"]
        lines += _docstring(cls.__doc__ or ("" if info.fields else "Nothing."))
        for field in info.fields:
            default = "" if field.required else f" = {self._default(field)}"
            annotation = self.annotation(field.type)
            if cls in _inside(field.type):
                annotation = annotation.replace(self.names[cls], f'"{self.names[cls]}"')
            lines.append(f"    {field.name}: {annotation}{_may_lack(field)}{default}")
        return "\n".join(lines) + "\n"

    def _default(self, field: inspect.Field) -> str:
        value = _default(field)
        if isinstance(value, msgspec.Struct):
            return self.names[type(value)] + text_of(value).removeprefix(type(value).__name__)
        filled = isinstance(value, dict | list) and value
        return f"field(default_factory=lambda: {text_of(value)})" if filled else text_of(value)


def _docstring(text: str) -> list[str]:
    """Return the first paragraph of a docstring as it stands in a class."""
    first, *rest = cleandoc(text).partition("\n\n")[0].split("\n")
    if not first:
        return []
    ends = [*(f"    {line}" for line in rest), '    """', ""] if rest else []
    return [f'    """{first}', *ends] if rest else [f'    """{first}"""', ""]


def text_of_list(names: Iterable[str]) -> str:
    return f"[{', '.join(map(text_of, names))}]"


_HEAD = '''"""Written by scripts/clients.py from the route table: the daemon's verbs{how}.

A verb decodes its answer into a type of palyra.client.types when it is called: importing this costs
nothing.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import {iterator}, Sequence
from typing import TYPE_CHECKING, Any, Literal

from palyra.client.calling import {base}, new_id, part, sent

if TYPE_CHECKING:
    from palyra.client.http import ServerSentEvent
'''


class Verbs:
    """The class with all verbs, that waits or is to be awaited."""

    def __init__(self, types: Types, *, awaited: bool) -> None:
        self._types = types
        self._awaited = awaited
        self._wanted: dict[Any, None] = {}

    def text(self) -> str:
        verbs = "\n".join(text for name, route in named() for text in self._verbs(name, route))
        imports = "".join(f"    {line}\n" for line in self._imports())
        base, how = ("AsyncCalling", ", to be awaited") if self._awaited else ("Calling", "")
        head = _HEAD.format(
            base=base, how=how, iterator="AsyncIterator" if self._awaited else "Iterator"
        )
        return (
            f"{head}{imports}\n\nclass"
            f" {'AsyncVerbs' if self._awaited else 'Verbs'}({base}):\n{verbs}"
        )

    def _imports(self) -> list[str]:
        places = (
            f"from palyra.client.types.{self._types.areas[cls]} import {self._types.names[cls]}"
            for cls in self._wanted
        )
        return sorted(set(places))

    def _verbs(self, name: str, route: Route[Any, Any]) -> Iterator[str]:
        kind = kind_of(route)
        yield self._verb(name, route, kind)
        if kind == "call" and any(give.media == SSE for give in route.gives):
            yield self._verb(f"{name}_events", route, "events")

    def _verb(self, name: str, route: Route[Any, Any], kind: str) -> str:
        waits = self._awaited and kind not in ("events", "pieces")
        result = self._result(route, kind)
        path = (
            "f" * bool(route.parameters)
            + f'"{route.path.replace("{", "{part(").replace("}", ")}")}"'
        )
        arguments = [f'"{route.method}"', path, self._given(name, route)]
        if kind == "upload":
            arguments.append("data")
            arguments.append(
                "media" if self._any_media(route) else f'"{route.takes.media.decode()}"'
            )  # type: ignore[union-attr]
        if kind in ("call", "upload"):
            arguments.append(self._gives(route))
        call = f"{'await ' if waits else ''}self.{kind}({', '.join(arguments)})"
        said = f"{route.summary[:1].upper()}{route.summary[1:]}" + (
            ": the events as they come." if kind == "events" else "."
        )
        lines = [
            f"    {'async ' if waits else ''}def {name}({', '.join(self._takes(route, kind))}) ->"
            f" {result}:"
        ]
        lines.append(f'        """{said}"""')
        lines.append(f"        {'' if result == 'None' else 'return '}{call}")
        return "\n".join(lines) + "\n"

    def _any_media(self, route: Route[Any, Any]) -> bool:
        return route.takes is not None and route.takes.media == b"*/*"

    def _takes(self, route: Route[Any, Any], kind: str) -> list[str]:
        takes = [
            "self",
            *(f"{each}: {'int' if is_number(each) else 'str'}" for each in route.parameters),
        ]
        takes += ["data: bytes"] if kind == "upload" else []
        takes += ['media: str = "application/json"'] if self._any_media(route) else []
        fields = fields_of(route)
        takes += ["*"] if fields else []
        for field in sorted(fields, key=lambda each: not each.required):
            self._wanted |= dict.fromkeys(_inside(field.type))
            default = "" if field.required else f" = {text_of(_plain(field))}"
            annotation = self._types.annotation(field.type, given=True) + _may_lack(field)
            if (
                not field.required
                and _plain(field) is None
                and "None" not in annotation
                and annotation != "Any"
            ):
                annotation += " | None"
            takes.append(f"{_safe(field.name)}: {annotation}{default}")
        return takes

    def _given(self, verb: str, route: Route[Any, Any]) -> str:
        fields = fields_of(route)
        if not fields:
            return "{}" if route.body is not None else "None"
        # An input that is sent twice, because a connection broke, must be the same input.
        own = {"run_id": "run_id or new_id()"} if verb == "submit" else {}
        pairs = ", ".join(
            f'"{each.encode_name}": {own.get(each.name, _safe(each.name))}' for each in fields
        )
        # A PUT says everything: it replaces what there was.
        defaults = {
            each.encode_name: _plain(each)
            for each in fields
            if not each.required and route.method != "PUT"
        }
        return f"sent({{{pairs}}}, {text_of(defaults)})" if defaults else f"{{{pairs}}}"

    def _gives(self, route: Route[Any, Any]) -> str:
        found = {status: self._types.place(type_) for status, type_ in gives(route).items()}
        if len(found) > 1:
            return text_of(found)
        return text_of(next(iter(found.values()), ""))

    def _result(self, route: Route[Any, Any], kind: str) -> str:
        iterator = "AsyncIterator" if self._awaited else "Iterator"
        if kind not in ("call", "upload"):
            return {
                "events": f"{iterator}[ServerSentEvent]",
                "pieces": f"{iterator}[bytes]",
                "fetch": "bytes",
            }[kind]
        found = dict.fromkeys(gives(route).values())
        self._wanted |= found
        return " | ".join(self._types.names[each] for each in found) or "None"


def is_number(parameter: str) -> bool:
    return PARAMETERS[parameter].startswith("^[1-9][0-9]")


def _plain(field: inspect.Field) -> Any:
    """Return a default that a signature may have: an empty mapping is one that is not given."""
    found = msgspec.to_builtins(_default(field))
    return None if found == {} else () if found == [] else found


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def files() -> dict[str, str]:
    """Return the generated modules by their path below the package, not yet formatted."""
    types = Types()
    modules = {f"types/{area}.py": text for area, text in types.modules().items()}
    init = (
        '"""Written by scripts/clients.py: what the daemon answers, one module for each area of the'
        ' API."""\n'
    )
    verbs = {
        "verbs.py": Verbs(types, awaited=False).text(),
        "async_verbs.py": Verbs(types, awaited=True).text(),
    }
    return {**modules, "types/__init__.py": init, **verbs}
