"""The trace that a run belongs to, as the header `traceparent` (W3C Trace Context) says it.

A run is one trace. Its id is the run's own in hexadecimal, unless the program that asked for the
run gave one: then the run is a part of that program's trace.
"""

import re
from contextvars import ContextVar
from hashlib import sha256
from typing import NamedTuple

_FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})\Z")
_DIGITS = {each: at for at, each in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}
_SAMPLED = 1

# What the request that is being answered gave; checked.
asked_in: ContextVar[str] = ContextVar("asked_in", default="")


class TracedTurn(NamedTuple):
    """The turn that is being worked on. `given`: the `traceparent` that the run was asked with."""

    run_id: str
    given: str
    turn: int


turn_at_work: ContextVar[TracedTurn | None] = ContextVar("turn_at_work", default=None)


class TraceParent(NamedTuple):
    trace_id: bytes
    span_id: bytes
    sampled: bool


def receive(header: bytes | None) -> None:
    """Keep the trace that a request belongs to, for what is asked for by it."""
    given = header.decode("latin-1") if header else ""
    asked_in.set(given if given and parse(given) is not None else "")


def parse(given: str) -> TraceParent | None:
    found = _FORM.match(given)
    if found is None:
        return None
    trace_id, span_id = bytes.fromhex(found[1]), bytes.fromhex(found[2])
    if not any(trace_id) or not any(span_id):
        return None
    return TraceParent(trace_id, span_id, bool(int(found[3], 16) & _SAMPLED))


def trace_of(run_id: str, given: str = "") -> bytes:
    """Return the trace that a run belongs to."""
    parent = parse(given) if given else None
    if parent is not None:
        return parent.trace_id
    number = 0
    for each in run_id:
        number = number * 32 + _DIGITS[each]
    return number.to_bytes(16, "big")


def span_of(run_id: str, *what: object) -> bytes:
    """Return the id of a span of a run: the same whenever it is made."""
    return sha256("\0".join((run_id, *map(str, what))).encode()).digest()[:8]


def handed_on(turn: TracedTurn) -> str:
    """Return the `traceparent` for whoever is asked in this turn."""
    span = span_of(turn.run_id, "turn", turn.turn)
    return f"00-{trace_of(turn.run_id, turn.given).hex()}-{span.hex()}-01"
