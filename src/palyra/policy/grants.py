"""Grants: what a person has already approved. A grant answers what policy asks, for exactly what
was approved, and touches no denial.

The policy that an "always" answer writes. It lets what was approved run unattended, and nothing
else, whatever it contains.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from palyra.core import labels
from palyra.core.argument_roles import SINKS, STRICT
from palyra.core.errors import InvalidInput
from palyra.core.labels import MOST_SOURCES, Label
from palyra.core.tools import Subject
from palyra.core.verdicts import Grant, Question
from palyra.policy import request, risk

FILE = "always.cedar"
_HEADING = """\
// What was answered with "always". Each policy here lets one thing run without asking; delete it to be asked again.
// A policy here permits only what the other files let run at all.
"""  # noqa: E501
_NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Kinds whose condition compares a value; an empty one would match calls that have nothing to
# compare.
_WHAT = {
    "path_prefix": "files below",
    "program": "the program",
    "command": "the command",
    "host": "the host",
    "recipient": "messages to",
    "arguments": "arguments within",
}


def quote(text: str) -> str:
    """A Cedar string with exactly this value."""
    return f'"{_escape(text)}"'


def pattern(text: str) -> str:
    """The inside of a Cedar `like` pattern that matches exactly this value."""
    return _escape(text).replace("*", "\\*")


def _escape(text: str) -> str:
    # Everything that is not plainly visible is spelled out, so that a reader of the file sees what
    # is there.
    return "".join(
        _NAMED.get(char) or (char if char.isprintable() else f"\\u{{{ord(char):x}}}")
        for char in text
    )


def always_policy(
    subject: Subject, principal: str, approval_id: str, when_ms: int, *, sends_private: bool = False
) -> str:
    """Cedar text for the policy folder. It permits exactly what `subject.covers`, for this
    principal.

    `sends_private`: the prompt said that private data could leave, so the yes permits that too.
    """
    return permit(
        subject,
        principal,
        name=f"always-{approval_id}",
        reason=(
            "approved for always:"
            f" {described(subject)}{', also with private data' if sends_private else ''}"
        ),
        origin=f"approval {approval_id}, {stamp(when_ms)}",
        sends_private=sends_private,
    )


def permit(
    subject: Subject,
    principal: str,
    *,
    name: str,
    reason: str,
    origin: str,
    sends_private: bool = False,
) -> str:
    """A policy that lets exactly what `subject.covers` run unattended, for this principal."""
    values = (subject.tool, subject.value, name)
    if any("\ud800" <= char <= "\udfff" for value in values for char in value):
        raise InvalidInput(
            "the approved value is not valid text and cannot be written as a policy; approve it for"
            " the session instead"
        )
    kind, who = request.principal(principal)
    unattended = 'action == Action::"run_unattended"'
    both = 'action in [Action::"run_unattended", Action::"send_private"]'
    return (
        f"@id({quote(name)})\n"
        f"@reason({quote(reason)})\n"
        f"@origin({quote(origin)})\n"
        "permit (\n"
        f"  principal == {kind}::{quote(who)},\n"
        f"  {both if sends_private else unattended},\n"
        f"  resource == Tool::{quote(subject.tool)}\n"
        f"){_condition(subject)};\n"
    )


def described(subject: Subject) -> str:
    what = (
        f" with {_WHAT[subject.kind]} {subject.value.replace(chr(10), ', ')}"
        if subject.kind != "tool"
        else ", whatever its arguments"
    )
    return f"{subject.tool}{what}"


def stamp(when_ms: int) -> str:
    return datetime.fromtimestamp(when_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _condition(subject: Subject) -> str:
    value = subject.value
    if subject.kind == "tool":
        return ""
    if not value:
        raise InvalidInput(
            f"an approval for always needs a {subject.kind}; an empty one would cover everything"
        )
    match subject.kind:
        case "path_prefix":
            prefix = value.rstrip("/")
            itself = f"context.path == {quote(prefix)} || " if prefix else ""
            condition = f'{itself}context.path like "{pattern(prefix)}/*"'
        case "program":
            condition = f"context.program == {quote(value)}"
        case "command":
            condition = f"context.command == {quote(value)}"
        case "host":
            condition = f"context.hosts == [{quote(request.canonical_host(value))}]"
        case "arguments":
            condition = _bound(value)
        case "recipient":
            condition = f"context.recipients == [{quote(value)}]"
    return f" when {{\n  {condition}\n}}"


def _bound(limits: str) -> str:
    """Every value that says where a call goes is one of these."""
    named: dict[str, list[str]] = {}
    most = -1
    conditions: list[str] = []
    for line in limits.split("\n"):
        if line.startswith("calls<="):
            raise InvalidInput(
                "a policy file cannot count calls: give a rate for the session or for a time"
            )
        if line.endswith("~source") and "=" not in line:
            raise InvalidInput("the rest of a plan is for this session, not for always")
        if line.endswith("~trusted") and "=" not in line:
            role = line.removesuffix("~trusted")
            named.setdefault(role, [])
            origin = f"context.arguments.{role}.origin"
            conditions.append(f'["none", "user", "trusted"].contains({origin})')
            continue
        if line.startswith("amount<="):
            most = max(most, request.most([line.removeprefix("amount<=")]))
        else:
            role, _, text = line.partition("=")
            named.setdefault(role, []).append(text)
    if most >= 0:
        conditions.append(f"context.arguments.amount.most <= {most}")
    strict = not STRICT.isdisjoint(named)
    for role in sorted(SINKS):
        if role in named and not named[role]:
            continue
        if role in named:
            listed = ", ".join(map(quote, sorted(named[role])))
            conditions.append(f"[{listed}].containsAll(context.arguments.{role}.values)")
        elif not (role == "when" and strict) and not (role == "amount" and most >= 0):
            conditions.append(f'context.arguments.{role}.origin == "none"')
    conditions.append('context.arguments.content.origin != "untrusted"')
    return " &&\n  ".join(conditions)


def append_always(folder: Path, text: str) -> Path:
    """Add the policy to the folder's always.cedar: all of it or nothing, and only once."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        before = path.read_text("utf-8") if path.exists() else _HEADING
        if text not in before:
            _replace(path, f"{before.rstrip()}\n\n{text}")
            os.fsync(place)
    finally:
        os.close(place)
    return path


def _replace(path: Path, text: str) -> None:
    # Not *.cedar, so that a half-written file is never read as a policy.
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def covering(
    grants: Iterable[Grant], question: Question, *, sends_private: bool = False
) -> Grant | None:
    """The first grant that still holds and covers the whole call, however often it was used.
    `sends_private`: as the Ask that it would answer says.
    """
    return next(all_covering(grants, question, sends_private=sends_private), None)


def all_covering(
    grants: Iterable[Grant], question: Question, *, sends_private: bool = False
) -> Iterator[Grant]:
    """The grants that still hold and cover the whole call."""
    tool, scope, values = question.tool.name, question.scope, question.values
    covers = (grant for grant in grants if grant.subject.covers(tool, scope, values))
    return (grant for grant in covers if _holds(grant, question, sends_private))


def _holds(grant: Grant, question: Question, sends_private: bool) -> bool:
    if grant.principal != question.principal:
        return False
    if grant.session_id is not None and grant.session_id != question.session_id:
        return False
    if grant.until_ms is not None and question.now_ms >= grant.until_ms:
        return False
    if grant.subject.kind == "arguments" and not request.obeyed(question):
        # Whoever wants it and whatever was read: it goes where the person said that it may go, and
        # no further. Secret data is no question.
        return True
    if sends_private and labels.secrecy(grant.seen) < labels.secrecy(question.label):
        return False  # The yes was to a prompt that did not say that private data could go there.
    # Only a command's results come here; what a worker's file tools write stays there.
    from_afar = (
        question.tool.source.startswith("worker:") and "process" in question.tool.capabilities
    )
    if (from_afar or question.label.integrity == "untrusted") and request.obeyed(question):
        # A yes to a folder or to the tool was no yes to this file, and none to what others make of
        # it.
        itself = set(question.label.sources) == {question.tool.source}
        return _names_it(grant, question) and (itself or _was_seen(grant.seen, question.label))
    return not risk.reaches_out(question) or _was_seen(grant.seen, question.label)


def _names_it(grant: Grant, question: Question) -> bool:
    """Return whether the grant is for this very file, or for this very command; or for a skill,
    whose folders the prompt showed.
    """
    subject, scope = grant.subject, question.scope
    if question.tool.source.startswith("skill:"):
        return True
    if subject.kind == "command":
        return bool(subject.value) and subject.value == scope.command
    return subject.kind == "path_prefix" and scope.paths == (subject.value,)


def _was_seen(seen: Label, now: Label) -> bool:
    """Untrusted content that came in after the yes may be what asks now, so the yes does not speak
    for it.
    """
    if now.integrity == "trusted":
        return True
    if seen.integrity == "trusted" or not 0 < len(now.sources) < MOST_SOURCES:
        return False
    # A name for several sources may hide one that nobody has seen.
    return set(now.sources) <= set(seen.sources) and not any(map(labels.is_several, now.sources))
