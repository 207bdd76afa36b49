"""Facts that Cedar gets about one call, made from the question alone. A question that is not exact
is refused, never guessed at.
"""

import math
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from palyra.core import obeyed_files
from palyra.core.argument_roles import ROLES
from palyra.core.errors import InvalidInput
from palyra.core.ids import check_principal
from palyra.core.obeyed_files import ObeyedFiles
from palyra.core.tools import Scope
from palyra.core.verdicts import Question

# (section of groups.toml, member) -> names of its groups
Groups = Mapping[tuple[str, str], tuple[str, ...]]

_RESOLVED = re.compile(r"/|(?:/(?!\.{1,2}(?:/|\Z))[^/]+)+")
_HOUR_MS = 3_600_000
_TOO_MUCH = 10**15
_HOMES = ("/home", "/Users")
_SENDING = frozenset({"network", "message", "browser"})
_BELOW_HOMES = ("/home/", "/Users/")
_LONE_HOMES = ("/root", "/var/root")
_ANYTHING = ObeyedFiles("programs", "some program", (), "told")


def check(question: Question) -> None:
    """Refuse a scope that a policy could misread: `/a/../etc` does not look like /etc."""
    scope = question.scope
    for path in (*scope.paths, *((scope.workspace,) if scope.workspace else ())):
        if not _RESOLVED.fullmatch(path):
            raise InvalidInput(
                f"the path {path!r} is not absolute and resolved; a decision needs the real path"
            )


def principal(name: str) -> tuple[str, str]:
    """The Cedar type and id of a principal."""
    kind, _, rest = check_principal(name).partition(":")
    match kind:
        case "user":
            return "User", rest
        case "channel":
            return "ChannelSender", rest
        case "worker":
            return "Worker", rest
        case _:
            return "System", "system"


def uid(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "id": name}


def entities(question: Question, groups: Groups) -> str:
    """The principal, tool, agent, channel and skill of the question, in Cedar's JSON: all that
    stays the same between calls.
    """
    tool = question.tool
    kind, name = principal(question.principal)
    connector = {"connector": name.partition(":")[0]} if kind == "ChannelSender" else {}
    about_tool = {"capabilities": tool.capabilities, "effect": tool.effect, "source": tool.source}
    skills = (
        [uid("Skill", tool.source.removeprefix("skill:"))]
        if tool.source.startswith("skill:")
        else []
    )

    def entity(
        this: dict[str, str], section: str, member: str, attributes: dict[str, Any]
    ) -> dict[str, Any]:
        parents = [uid("Group", group) for group in groups.get((section, member), ())]
        return {
            "uid": this,
            "attrs": attributes,
            "parents": parents + (skills if section == "tools" else []),
        }

    known = [
        entity(uid(kind, name), "principals", question.principal, connector),
        entity(uid("Agent", question.agent), "agents", question.agent, {}),
        entity(uid("Channel", question.channel), "channels", question.channel, {}),
        entity(uid("Tool", tool.name), "tools", tool.name, about_tool),
        *(entity(skill, "skills", skill["id"], {}) for skill in skills),
    ]
    return msgspec.json.encode(known).decode()


def in_workspace(scope: Scope) -> bool:
    """False without paths: a tool that does not say where it goes is not known to stay inside."""
    root = scope.workspace.rstrip("/")
    if not scope.workspace or not scope.paths:
        return False
    return all(path == scope.workspace or path.startswith(root + "/") for path in scope.paths)


def wide(scope: Scope) -> bool:
    return any(_is_wide(path, scope.workspace) for path in scope.paths)


def _is_wide(path: str, workspace: str) -> bool:
    if (
        path == "/"
        or path in _HOMES
        or path in _LONE_HOMES
        or (path.count("/") == 2 and path.startswith(_BELOW_HOMES))
    ):
        return True
    return workspace.startswith(path + "/")


def obeyed(question: Question) -> dict[str, ObeyedFiles]:
    """Return the files that a call would write and other programs obey, each with the row of the
    table that names it.

    A skill says in which folders it writes and not what, so each of its folders may come to hold
    such a file.
    """
    tool, scope = question.tool, question.scope
    if "fs.write" not in tool.capabilities:
        return {}
    if tool.source.startswith("skill:"):
        return dict.fromkeys(scope.paths or (scope.workspace or "/",), _ANYTHING)
    root = scope.workspace.rstrip("/") + "/"
    # A workspace may lie in a folder that some program obeys; what counts is the name inside.
    found = {
        path: obeyed_files.obeyed(path.removeprefix(root) if scope.workspace else path)
        for path in scope.paths
    }
    return {path: row for path, row in found.items() if row is not None}


def obeyed_by(question: Question) -> list[str]:
    return sorted({row.who for row in obeyed(question).values()})


def common_path(paths: tuple[str, ...]) -> str:
    """All paths in one string, such that `like "P/*"` holds for it exactly when it holds for each
    of them.
    """
    if not paths:
        return ""
    shared = posixpath.commonpath(paths)
    return shared if shared in paths or shared == "/" else shared + "/"


def touches(paths: tuple[str, ...]) -> list[str]:
    """Every path and every folder above it."""
    found: set[str] = set()
    for path in paths:
        while path not in found:
            found.add(path)
            path = path[: path.rfind("/")] or "/"
    return sorted(found)


def hosts(scope: Scope) -> list[str]:
    return sorted({canonical_host(host) for host in scope.hosts})


def canonical_host(host: str) -> str:
    """Names are the same in any case and with or without the root's dot, and a forbid must not be
    dodged by spelling.
    """
    return host.lower().rstrip(".")


def domains(scope: Scope) -> list[str]:
    found: set[str] = set()
    for host in hosts(scope):
        found.add(host)
        name, colon, port = host.rpartition(":")
        name = name if colon and port.isdecimal() and ":" not in name else host
        if ":" in name or name.replace(".", "").isdecimal():
            continue  # an address has no domains above it
        while name:
            found.add(name)
            name = name.partition(".")[2]
    return sorted(found)


def sends_private(question: Question) -> bool:
    """Return whether what the model has read and is not public could leave with this call."""
    return question.label.confidentiality != "public" and sends(question)


def sends(question: Question) -> bool:
    """Return whether the call takes anything out. A process does so only if it is given hosts:
    without, it has no network.
    """
    scope = question.scope
    return bool(scope.hosts or scope.recipients) or not _SENDING.isdisjoint(
        question.tool.capabilities
    )


def _only_host(question: Question) -> str:
    found = hosts(question.scope)
    return found[0] if len(found) == 1 else ""


# From the best to the worst. "none": the call has no such argument.
_ORIGINS = ("none", "user", "trusted", "unknown", "untrusted")


def arguments(question: Question) -> dict[str, dict[str, Any]]:
    """The values of a call by what they are for; of several arguments for the same, the worst
    origin.
    """
    found: dict[str, dict[str, Any]] = {}
    for role in ROLES:
        alike = [each for each in question.values.arguments if each.role == role]
        origin = max((each.origin for each in alike), key=_ORIGINS.index, default="none")
        found[role] = {
            "origin": origin,
            "said_by_user": origin == "user",
            "sources": sorted({source for each in alike for source in each.sources}),
            "values": sorted({value for each in alike for value in each.values}),
            "most": most(value for each in alike for value in each.values)
            if role == "amount"
            else 0,
        }
    return found


def most(values: Iterable[str]) -> int:
    """The largest of some amounts, in whole units, rounded up; what cannot be read is larger than
    any.
    """
    found = 0
    for value in values:
        try:
            number = Decimal(value)
        except InvalidOperation:
            return _TOO_MUCH
        if not number.is_finite() or abs(number) > _TOO_MUCH:
            return _TOO_MUCH
        found = max(found, math.ceil(number))
    return found


def _reference(kind: str, name: str) -> dict[str, Any]:
    return {"__entity": uid(kind, name)}


CONTEXT = {"Var": "context"}

# One entry for each attribute of `Call` in the schema. A call is told only what the loaded policies
# mention, so a fact costs nothing until a policy uses it.
FACTS: dict[str, Callable[[Question], Any]] = {
    "agent": lambda q: _reference("Agent", q.agent),
    "channel": lambda q: _reference("Channel", q.channel),
    "session": lambda q: _reference("Session", q.session_id),
    "capabilities": lambda q: q.tool.capabilities,
    "effect": lambda q: q.tool.effect,
    "paths": lambda q: q.scope.paths,
    "path": lambda q: common_path(q.scope.paths),
    "touches": lambda q: touches(q.scope.paths),
    "workspace": lambda q: q.scope.workspace,
    "in_workspace": lambda q: in_workspace(q.scope),
    "wide": lambda q: wide(q.scope),
    "obeyed": lambda q: bool(obeyed(q)),
    "obeyed_by": obeyed_by,
    "program": lambda q: q.scope.program,
    "command": lambda q: q.scope.command,
    "harmless": lambda q: q.scope.harmless,
    "hosts": lambda q: hosts(q.scope),
    "host": _only_host,
    "domains": lambda q: domains(q.scope),
    "recipients": lambda q: q.scope.recipients,
    "integrity": lambda q: q.label.integrity,
    "confidentiality": lambda q: q.label.confidentiality,
    "sources": lambda q: q.label.sources,
    "private_sources": lambda q: q.label.private_sources,
    "worker": lambda q: (
        q.tool.source.removeprefix("worker:") if q.tool.source.startswith("worker:") else ""
    ),
    "arguments": lambda q: arguments(q),
    "reads_only": lambda q: q.values.reads_only,
    "same_source": lambda q: q.values.same_source,
    "vouched": lambda q: q.values.vouched,
    "planned": lambda q: q.values.planned,
    "origin": lambda q: q.origin,
    "now_ms": lambda q: q.now_ms,
    "hour": lambda q: q.now_ms // _HOUR_MS % 24,
}


# The facts that policies read; of a set with members named here, only those are told, because no
# policy asks for others.
Uses = Mapping[str, frozenset[Any] | None]


def facts(question: Question, names: Uses | frozenset[str]) -> dict[str, Any]:
    if isinstance(names, frozenset):
        names = dict.fromkeys(names)
    return {
        name: _told(fact(question), names[name]) for name, fact in FACTS.items() if name in names
    }


def _told(value: Any, members: frozenset[Any] | None) -> Any:
    return value if members is None else [each for each in value if each in members]


def mentioned(tree: Any) -> frozenset[str]:
    """The facts a policy can read, from Cedar's JSON form of it. Any use of `context` but
    `context.name` counts as all of them.
    """
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node == CONTEXT:
            return frozenset(FACTS)
        if isinstance(node, dict):
            for key, value in node.items():
                if key in (".", "has") and isinstance(value, dict) and value.get("left") == CONTEXT:
                    found.add(value["attr"])
                else:
                    waiting.append(value)
        elif isinstance(node, list):
            waiting += node
    return frozenset(found)
