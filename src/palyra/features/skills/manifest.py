"""skill.toml: the WASM tools of a skill, and everything they ask for.

The rule: nothing is implied. A tool can do what is listed here and was confirmed, and an update
shows what it adds.

Arguments of a skill's tool, checked by the JSON Schema in its manifest: no network, no slow
patterns.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.tools import Capability

Check = Callable[[Mapping[str, Any]], None]


def checker(tool: str, schema: dict[str, Any]) -> Check:
    """Return a check of arguments, which raises InvalidInput for those that do not fit, as this
    does for a schema that is wrong.
    """
    import jsonschema_rs

    try:
        validator = jsonschema_rs.Draft202012Validator(
            schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidInput(
            f"{tool}: the schema of its arguments is not valid: {str(error)[:200]}"
        ) from None

    def check(arguments: Mapping[str, Any]) -> None:
        for error in validator.iter_errors(dict(arguments)):
            where = ".".join(map(str, error.instance_path))
            raise InvalidInput(
                f"{tool}: {f'argument {where}: ' if where else ''}{error.message[:300]}", tool=tool
            )

    return check


MOST_TOOLS = 32
_MOST_SCHEMA = 16 << 10
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,39}")
_HOST = re.compile(
    r"(?=.{1,260}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::[1-9][0-9]{0,4})?"
)
_SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

# What a module can import from "host" beyond log and take, by what it must have asked for.
Kind = Literal["host", "read", "write", "secret"]


class Wants(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Paths are relative to the workspace and stand for themselves and everything below; "." is all
    of it.
    """

    hosts: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        pairs: tuple[tuple[tuple[str, ...], Capability], ...] = (
            (self.read, "fs.read"),
            (self.write, "fs.write"),
            (self.hosts, "network"),
            (self.secrets, "secrets"),
        )
        return tuple(capability for wanted, capability in pairs if wanted)


class Bounds(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits of one call."""

    fuel: int = 100_000_000
    memory_bytes: int = 16 << 20
    time_ms: int = 2_000
    output_bytes: int = 128 << 10


# No manifest gets more than this.
_CEILING = Bounds(fuel=20_000_000_000, memory_bytes=256 << 20, time_ms=60_000, output_bytes=1 << 20)


class ToolEntry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    description: str
    module: str
    effect: Literal["pure", "idempotent", "once"]
    arguments: dict[str, Any] = {}
    wants: Wants = Wants()
    limits: Bounds = Bounds()


class Manifest(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    tools: tuple[ToolEntry, ...] = ()


class Permission(Struct, frozen=True, order=True):
    """One thing a skill asks for, as a person reads it."""

    tool: str
    kind: Literal["effect", "host", "read", "write", "secret", "limit"]
    value: str

    @property
    def words(self) -> str:
        match self.kind:
            case "effect":
                says = {
                    "pure": "changes nothing",
                    "idempotent": "can be repeated",
                    "once": "cannot be undone",
                }
                return f"{self.tool}: a tool that {says[self.value]} ({self.value})"
            case "host":
                return f"{self.tool}: talk to {self.value}"
            case "read" | "write":
                where = (
                    "every file of the workspace"
                    if self.value == "."
                    else f"{self.value} in the workspace"
                )
                return f"{self.tool}: {self.kind} {where}"
            case "secret":
                return f"{self.tool}: be given the secret {self.value}"
            case "limit":
                return f"{self.tool}: use more than usual: {self.value.replace('=', ' ')}"


def read(data: bytes) -> Manifest:
    try:
        manifest = msgspec.convert(tomllib.loads(data.decode()), Manifest)
    except UnicodeDecodeError:
        raise InvalidInput("skill.toml is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(f"skill.toml: {error}") from None
    if len(manifest.tools) > MOST_TOOLS:
        raise InvalidInput(f"skill.toml: more than {MOST_TOOLS} tools")
    names = [tool.name for tool in manifest.tools]
    if len(set(names)) != len(names):
        raise InvalidInput("skill.toml: two tools have the same name")
    for tool in manifest.tools:
        _check(tool)
    return manifest


def permissions(manifest: Manifest) -> tuple[Permission, ...]:
    """Return everything the tools ask for, in a stable order."""
    asked = []
    for tool in manifest.tools:
        asked.append(Permission(tool.name, "effect", tool.effect))
        kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (
            ("host", tool.wants.hosts),
            ("read", tool.wants.read),
            ("write", tool.wants.write),
            ("secret", tool.wants.secrets),
        )
        asked += [Permission(tool.name, kind, value) for kind, values in kinds for value in values]
        usual = msgspec.structs.asdict(Bounds())
        more = msgspec.structs.asdict(tool.limits)
        asked += [
            Permission(tool.name, "limit", f"{key}={more[key]}")
            for key in usual
            if more[key] > usual[key]
        ]
    return tuple(sorted(asked))


def added(granted: Iterable[Permission], asked: Iterable[Permission]) -> tuple[Permission, ...]:
    """Return what is asked beyond what was granted. A smaller limit or a path below a granted one
    is not more.
    """
    held = tuple(granted)
    return tuple(each for each in asked if not any(_covers(one, each) for one in held))


def _covers(held: Permission, asked: Permission) -> bool:
    if (held.tool, held.kind) != (asked.tool, asked.kind):
        return False
    if held.kind in ("read", "write"):
        return covers_path(held.value, asked.value)
    if held.kind == "limit":
        (key, most), (wanted_key, wanted) = held.value.split("="), asked.value.split("=")
        return key == wanted_key and int(wanted) <= int(most)
    return held.value == asked.value


def covers_path(granted: str, relative: str) -> bool:
    return granted == "." or relative == granted or relative.startswith(granted + "/")


def _check(tool: ToolEntry) -> None:
    def fail(what: str) -> InvalidInput:
        return InvalidInput(f"skill.toml: tool {tool.name[:40]!r}: {what}", tool=tool.name[:40])

    if not _TOOL.fullmatch(tool.name):
        raise fail("a name is lower case letters, digits and underscores, at most 40")
    if not 1 <= len(tool.description) <= 1024 or not tool.description.isprintable():
        raise fail("the description must be one line of at most 1024 characters")
    if not tool.module.endswith((".wasm", ".wat")):
        raise fail("module must name a .wasm or .wat file of the skill")
    if (
        tool.arguments.get("type", "object") != "object"
        or len(msgspec.json.encode(tool.arguments)) > _MOST_SCHEMA
    ):
        raise fail(
            f"arguments must be a JSON Schema of type object, at most {_MOST_SCHEMA >> 10} KiB"
        )
    if tool.effect == "pure" and tool.wants.write:
        raise fail("a tool that writes files is not pure: say idempotent or once")
    for host in tool.wants.hosts:
        if not _HOST.fullmatch(host):
            raise fail(f"{host[:80]!r} is not a host name in lower case, with a port or without")
    for path in (*tool.wants.read, *tool.wants.write):
        if not _is_plain(path):
            raise fail(f"{path[:80]!r} is not a plain path below the workspace")
    for secret in tool.wants.secrets:
        if not _SECRET.fullmatch(secret):
            raise fail(f"{secret[:80]!r} is not the name of a secret")
    for key, most in msgspec.structs.asdict(_CEILING).items():
        if not 1 <= getattr(tool.limits, key) <= most:
            raise fail(f"{key} must be between 1 and {most}")


def _is_plain(path: str) -> bool:
    if path == ".":
        return True
    parts = path.split("/")
    return (
        path.isprintable()
        and "\\" not in path
        and len(path) <= 512
        and all(part not in ("", ".", "..") for part in parts)
    )
