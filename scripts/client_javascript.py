"""The JavaScript client's generated files: the table of verbs, and the declarations of verbs and
types for TypeScript.
"""

import re
from typing import Any

import msgspec
from scripts import typescript_types
from scripts.client_python import fields_of, gives, is_number, kind_of
from scripts.client_verbs import named

from palyra.api.calls import SSE
from palyra.api.errors import ErrorBody
from palyra.api.routes import Route
from palyra.core.events import AnyEvent
from palyra.serve.routes import ROUTES

_HEAD = "// Written by scripts/clients.py from the daemon's route table.\n"
_BYTES = ("fetch", "pieces")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _rows() -> list[tuple[str, Route[Any, Any], str]]:
    """Return each verb with its route and how its answer is read."""
    found = []
    for name, route in named():
        kind = kind_of(route)
        found.append((name, route, "bytes" if kind in _BYTES else kind))
        if kind == "call" and any(give.media == SSE for give in route.gives):
            found.append((f"{name}_events", route, "events"))
    return found


def table() -> str:
    about = (
        "/** Each verb as [method, path], and how it is asked where that is not JSON both ways. */"
    )
    lines = [_HEAD, about, "export const VERBS = {"]
    for name, route, kind in _rows():
        how = "" if kind == "call" else f', "{kind}"'
        if route.takes is not None:
            media = route.takes.media.decode()
            how += f', "{"application/json" if media == "*/*" else media}"'
        lines.append(f'  {_camel(name)}: ["{route.method}", "{route.path}"{how}],')
    return "\n".join([*lines, "};", ""])


def declarations() -> str:
    schemas = _Schemas()
    lines = [_HEAD, 'import type * as t from "./types.js";', ""]
    lines += [
        "/** One server-sent event. */",
        "export type Message = { event?: string; id?: string; data: string };",
        "",
    ]
    lines.append("export interface Verbs {")
    for name, route, kind in _rows():
        ending = ": the events as they come" if kind == "events" else ""
        lines.append(f"  /** {route.summary[:1].upper()}{route.summary[1:]}{ending}. */")
        lines.append(
            f"  {_camel(name)}({', '.join(_takes(route, kind, schemas))}):"
            f" {_result(route, kind, schemas)};"
        )
    lines += [
        "}",
        "",
        (
            "export declare const VERBS: { [name in keyof Verbs]: [string, string, string?,"
            " string?] };"
        ),
        "",
    ]
    return "\n".join(lines)


def _takes(route: Route[Any, Any], kind: str, schemas: "_Schemas") -> list[str]:
    takes = [
        f"{_camel(each)}: {'number' if is_number(each) else 'string'}" for each in route.parameters
    ]
    takes += ["data: BodyInit"] if kind == "upload" else []
    if fields := fields_of(route):
        optional = "" if any(each.required for each in fields) else "?"
        takes.append(
            f"given{optional}: {schemas.of(route.body if route.body is not None else route.query)}"
        )
    return takes


def _result(route: Route[Any, Any], kind: str, schemas: "_Schemas") -> str:
    if kind == "events":
        return "AsyncGenerator<Message, void, void>"
    if kind == "bytes":
        return "Promise<Blob>"
    return f"Promise<{' | '.join(dict.fromkeys(map(schemas.of, gives(route).values()))) or 'void'}>"


class _Schemas:
    """Types by the names that types.d.ts has for them; those of queries are written out."""

    def __init__(self) -> None:
        # The same types as in the OpenAPI document: so those that share a name get the same longer
        # ones.
        wanted: list[Any] = [ErrorBody, AnyEvent, *(route.problem for route in ROUTES)]
        for route in ROUTES:
            wanted += [give.type for give in route.gives if give.type is not None]
            wanted += [each for each in (route.query, route.body) if each is not None]
        types = list(dict.fromkeys(wanted))
        schemas, self._components = msgspec.json.schema_components(
            types, ref_template="#/components/schemas/{name}"
        )
        self._schemas = dict(zip(types, schemas, strict=True))
        self._queries = {route.query for route in ROUTES} - {route.body for route in ROUTES}

    def of(self, type_: Any) -> str:
        schema = self._schemas[type_]
        if type_ in self._queries:
            return " ".join(
                typescript_types.object_of(
                    self._components[schema["$ref"].rpartition("/")[2]]
                ).split()
            )
        return f"t.{typescript_types.type_of(schema)}"


def console() -> str:
    """Return the console's verbs: one function each, so that a page is built with those that it
    uses and no others.
    """
    schemas = _Schemas()
    lines = [
        _HEAD,
        'import type * as t from "../types";',
        'import { ask, part, send, withQuery } from "./api";',
        "",
    ]
    for name, route, kind in _rows():
        path = (
            "`"
            + re.sub(r"\{(\w+)\}", lambda found: f"${{part({_camel(found[1])})}}", route.path)
            + "`"
        )
        given = "given" if fields_of(route) else ""
        takes = ", ".join(_takes(route, kind, schemas))
        lines.append(f"/** {route.summary[:1].upper()}{route.summary[1:]}. */")
        if kind in ("bytes", "events"):
            # Asked for by links, by streams and by whoever reads while it comes: these need the
            # address.
            asked = f"withQuery({path}, given)" if given and not route.has_effects else path
            lines.append(
                f"export const {_camel(name)}Path = ({takes if not route.has_effects else ''}) =>"
                f" {asked};"
            )
            continue
        result = _result(route, kind, schemas)
        if kind == "upload":
            where = f"withQuery({path}, given)" if given else path
            media = route.takes.media.decode() if route.takes is not None else ""
            asked = f'send("{route.method}", {where}, data, "{media}")'
        else:
            asked = f'"{route.method}", {path}{", given" if given else ""}'
        call = (
            f"ask<{result[8:-1]}>({asked})"
            if kind != "upload"
            else f"{asked}.then((it) => it.json() as {result})"
        )
        lines.append(f"export const {_camel(name)} = ({takes}) => {call};")
    return "\n".join([*lines, ""])


def files() -> dict[str, str]:
    """Return the generated files by their path in the repository."""
    client = {
        "verbs.js": table(),
        "verbs.d.ts": declarations(),
        "types.d.ts": typescript_types.text(),
    }
    return {
        **{f"clients/js/{name}": text for name, text in client.items()},
        "console/src/core/verbs.ts": console(),
    }
