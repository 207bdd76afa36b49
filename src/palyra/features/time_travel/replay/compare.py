"""Comparison of a replayed entry with the recorded one: all must be equal but what is named here,
each with its reason.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    InputAssembled,
    ToolProposed,
    encode,
    kind_of,
)
from palyra.core.tools import Preview

# By kind: the field, and why two runs of the same thing differ in it.
VOLATILE: dict[str, dict[str, str]] = {
    "model.replied": {
        "first_delta_ms": "how long a provider took is not part of what it said",
        "duration_ms": "how long a provider took is not part of what it said",
        "cost_microusd": "prices change",
        "priced": "prices change",
        "estimated": "the recorded reply says what was used",
        "task": "what a call is asked for depends on settings that the tape does not hold",
    },
    "model.failed": {
        "first_delta_ms": "how long a provider took is not part of what it said",
        "duration_ms": "how long a provider took is not part of what it said",
        "usage": "our own count, of what was said before it was redacted",
        "estimated": "our own count, of what was said before it was redacted",
        "cost_microusd": "prices change",
        "priced": "prices change",
        "task": "what a call is asked for depends on settings that the tape does not hold",
    },
    "route.planned": {
        "task": "what a call is asked for depends on settings that the tape does not hold",
        "reasons": "health, prices, rules and budgets are not on the tape; who was asked is",
        "passed_over": "health, prices, rules and budgets are not on the tape; who was asked is",
        "rule": "health, prices, rules and budgets are not on the tape; who was asked is",
        "expected_input_tokens": "guessed or counted, as the process had counted before",
        "expected_output_tokens": "what was to be expected then",
        "expected_microusd": "prices change",
    },
    "tool.finished": {"duration_ms": "the recorded result is there at once"},
    "tool.proposed": {"asked.now_ms": "when policy was asked lies a moment before the entry"},
    "tool.decided": {"shadow": "a second set of policies is not asked again"},
    "approval.requested": {
        "expires_ms": (
            "how long a person has to answer is a setting of the daemon, counted from its clock"
        ),
        "cost_microusd": "prices change",
    },
    "input.assembled": {
        "tokens": "guessed or counted, as the process had counted before",
        "parts.tokens": "guessed or counted, as the process had counted before",
    },
    "run.started": {"node": "which machine worked on it"},
    "run.resumed": {"node": "which machine worked on it"},
}
# Of every entry: its position in the whole journal and the hash that covers it, because other
# sessions lie between; its time, because the replay's clock is the recorded one.

_LONGEST = 4_000


class Side(Struct, frozen=True, omit_defaults=True):
    """One of the two entries; `at` is what stands at the place where they differ."""

    kind: str
    at: Any = None
    body: Any = None


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first entry that is not the same. A side is absent where its tape has no such entry."""

    seq: int
    where: str = ""
    recorded: Side | None = None
    replayed: Side | None = None
    hint: str = ""


def differ(seq: int, recorded: AnyEvent, replayed: AnyEvent) -> Difference | None:
    if recorded == replayed:
        return None
    one, other = comparable(recorded, recorded), comparable(replayed, recorded)
    if kind_of(recorded) == kind_of(replayed):
        where = _first(one, other, "")
        if where is None:
            return None
    else:
        where = "kind"
    return Difference(
        seq=seq,
        where=where,
        recorded=Side(kind_of(recorded), _at(one, where), _short(one)),
        replayed=Side(kind_of(replayed), _at(other, where), _short(other)),
        hint=_hint(recorded, where),
    )


def comparable(event: AnyEvent, recorded: AnyEvent) -> Any:
    """An event as plain values without what is volatile; without what the recorded one could not
    say, too.
    """
    plain = msgspec.json.decode(encode(event))
    for name in VOLATILE.get(kind_of(event), ()):
        _drop(plain, name.split("."))
    match recorded:
        case ToolProposed(asked=asked) if asked is not None and not asked.exact:
            # Policy was told more than the tape may say, so the replay cannot tell it.
            _drop(plain, ["asked", "exact"])
        case InputAssembled(digest=""):
            # An entry from before requests were digested.
            _drop(plain, ["digest"])
            _drop(plain, ["surroundings"])
        case ApprovalRequested(preview=Preview(digest="")):
            # An entry from before previews had a digest. What it showed comes from the recording
            # anyway.
            _drop(plain, ["preview"])
    return plain


def _drop(plain: Any, path: list[str]) -> None:
    name, *rest = path
    if not isinstance(plain, dict) or name not in plain:
        return
    if not rest:
        del plain[name]
        return
    for each in plain[name] if isinstance(plain[name], list) else [plain[name]]:
        _drop(each, rest)


def _first(one: Any, other: Any, path: str) -> str | None:
    """The path of the first place at which two plain values differ, or None."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            inside = f"{path}.{name}" if path else str(name)
            if name not in one or name not in other:
                return inside
            found = _first(one[name], other[name], inside)
            if found is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        for number, (left, right) in enumerate(zip(one, other, strict=False)):
            found = _first(left, right, f"{path}.{number}")
            if found is not None:
                return found
        return None if len(one) == len(other) else f"{path}.{min(len(one), len(other))}"
    return None if one == other and type(one) is type(other) else path


def _at(plain: Any, where: str) -> Any:
    for name in where.split("."):
        if isinstance(plain, dict):
            plain = plain.get(name)
        elif isinstance(plain, list):
            plain = plain[int(name)] if int(name) < len(plain) else None
    return _short(plain)


def _short(plain: Any) -> Any:
    """A long text or body is cut: whoever looks wants to see where it differs, not all of it."""
    if isinstance(plain, str):
        return plain if len(plain) <= _LONGEST else plain[:_LONGEST] + "…"
    if isinstance(plain, dict):
        return {name: _short(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_short(each) for each in plain]
    return plain


def _hint(recorded: AnyEvent, where: str) -> str:
    if isinstance(recorded, InputAssembled) and where in ("digest", "surroundings"):
        return (
            "the model would be sent something else now: the instructions, the description of a"
            " tool, what is remembered, or the way the conversation is shown have changed"
        )
    return ""


class Replayed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`entries` is how many were compared and are the same; `difference` is the first that is
    not.
    """

    session_id: str
    run_id: str = ""
    title: str = ""
    identical: bool
    entries: int
    difference: Difference | None = None
