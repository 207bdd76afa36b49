"""The policy that an "always" answer writes. It lets what was approved run unattended, and nothing
else, whatever it contains.
"""

import fcntl
import os
from datetime import UTC, datetime
from pathlib import Path

from palyra.core.errors import InvalidInput
from palyra.core.tools import Subject
from palyra.policy import request

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
        f" with {_WHAT[subject.kind]} {subject.value}"
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
        case "recipient":
            condition = f"context.recipients == [{quote(value)}]"
    return f" when {{\n  {condition}\n}}"


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
