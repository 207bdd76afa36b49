"""A tree of causes: what an effect came from, back to the input or the schedule it began with."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

CauseRole = Literal[
    "effect",
    "undo",
    "reply",
    "cost",
    "answer",
    "attempt",
    "decision",
    "grant",
    "approval",
    "request",
    "call",
    "model",
    "route",
    "prompt",
    "memory",
    "result",
    "input",
    "message",
    "run",
    "subagent",
    "fork",
    "schedule",
    "notice",
    "entry",
]
_LONGEST = 200
# What a call is about, of the arguments that tools have.
_ABOUT = ("path", "command", "url", "to", "query", "pattern", "name", "task", "text")


class Cause(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of the way back. `tape` and `seq` are its entry, where it has one; `by` is who made
    it.

    `names` are what it names: files of an effect, policies of a decision, the approval behind a
    grant or a yes, the ids of remembered items, parts of a prompt, the model that was called.
    `causes` are what led to it; an undo stands among them, although it came later.
    """

    role: CauseRole
    text: str
    by: str = ""
    names: tuple[str, ...] = ()
    kind: str = ""
    tape: str = ""
    seq: int = 0
    position: int = 0
    time_ms: int = 0
    run_id: str = ""
    cost_microusd: int = 0
    # Of a decision: the policies that were in force.
    policy_version: str = ""
    causes: tuple["Cause", ...] = ()


class WhyAnswer(Struct, frozen=True, kw_only=True):
    """`about` is what was asked for, whole. `found` has a tree for each effect, newest first;
    `more`: there are older ones.
    """

    about: str
    found: tuple[Cause, ...]
    more: bool = False


def walk(cause: Cause) -> Iterator[Cause]:
    """Yield every step of a tree, the root first."""
    yield cause
    for each in cause.causes:
        yield from walk(each)


def shorten(text: str, most: int = _LONGEST) -> str:
    """A text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what a call does, in a few words."""
    for name in _ABOUT:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return shorten(f"{tool} {value}")
    return tool


def approval_ids(reason: str, policies: tuple[str, ...]) -> list[str]:
    """The approvals that a decision rests on: of a grant, or of a policy that an "always"
    wrote.
    """
    granted = reason.rpartition("approval ")[2] if reason.startswith("allowed before") else ""
    always = [each.removeprefix("always-") for each in policies if each.startswith("always-")]
    return [*([granted] if granted else []), *always]
