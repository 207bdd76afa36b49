"""Procedures: sequences of calls that succeeded more than once, put together into steps with what
was different left open.

The rule: only what ran to its end and was left standing counts. A failed call, an undone one or a
run that was stopped is no example of how something is done.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import labels
from palyra.core.events import (
    AnyEvent,
    InputReceived,
    RunCompleted,
    ToolFinished,
    ToolProposed,
    ToolUndone,
)
from palyra.core.labels import CLEAN, Label
from palyra.core.redaction import PLACEHOLDER
from palyra.core.sentences import cut, sentences
from palyra.core.verdicts import Risk
from palyra.features.learning.model import LONGEST_CONTENT, Evidence, LearningFinding, ProcedureStep

OPEN = "…"
_FEWEST_STEPS = 2
_MOST_STEPS = 16
# Of the longer of two sequences, what both must have in common.
_SHARE = 0.6
_TWICE_BPS, _AGAIN_BPS, _MOST_BPS = 8_500, 500, 9_500
# Two requests with so few words in common were hardly the same task.
_LEAST_ALIKE, _UNALIKE_BPS = 0.2, 1_000
_LONGEST_VALUE = 120
# Looking around is how a step is prepared, not a step.
_LOOKING = frozenset(
    (
        "fs.read",
        "fs.list",
        "fs.search",
        "artifact.read",
        "memory.search",
        "memory.write",
        "session.search",
        "skill.read",
        "memory.forget",
    )
)
_FLAG_OR_PATH = re.compile(r"^-|[/.=]")
_NO_TASK = frozenset(
    (
        "the",
        "a",
        "an",
        "and",
        "to",
        "of",
        "for",
        "in",
        "on",
        "with",
        "please",
        "now",
        "again",
        "then",
        "it",
        "this",
        "that",
        "my",
        "our",
        "me",
    )
)


class Done(Struct, frozen=True, kw_only=True):
    """Record of what one run did, as far as it succeeded, and what had been asked for."""

    run_id: str
    session_id: str
    seq: int
    position: int
    request: str
    steps: tuple[ProcedureStep, ...]
    label: Label = CLEAN

    @property
    def signs(self) -> tuple[str, ...]:
        return tuple(map(sign, self.steps))


def of_run(
    session_id: str, run_id: str, entries: Iterable[tuple[int, int, AnyEvent]]
) -> Done | None:
    """The sequence of a run, from its entries as (seq, position, event); None if it did not
    complete, or did next to nothing.
    """
    proposed: dict[str, ToolProposed] = {}
    steps: dict[str, ProcedureStep] = {}
    asked: list[str] = []
    seen: list[Label] = []
    end: tuple[int, int] | None = None
    for seq, position, event in entries:
        match event:
            case InputReceived():
                asked.append(event.text if event.label.integrity == "trusted" else "")
                seen.append(event.brings)
            case ToolProposed():
                proposed[event.call_id] = event
                if event.asked is not None:
                    seen.append(event.asked.label)
            case ToolFinished(outcome="ok", call_id=call_id) if call_id in proposed:
                call = proposed[call_id]
                if call.tool not in _LOOKING:
                    steps[call_id] = ProcedureStep(call.tool, call.arguments)
            case ToolUndone():
                steps.pop(event.call_id, None)
            case RunCompleted():
                end = (seq, position)
            case _:
                pass
    whole = _without_repeats(steps.values())
    if end is None or not _FEWEST_STEPS <= len(whole) <= _MOST_STEPS:
        return None
    return Done(
        run_id=run_id,
        session_id=session_id,
        seq=end[0],
        position=end[1],
        request=cut(" ".join(filter(None, asked)), 300),
        steps=whole,
        label=labels.join(seen),
    )


def _without_repeats(steps: Iterable[ProcedureStep]) -> tuple[ProcedureStep, ...]:
    """Merge calls of one kind in a row into one step: a pattern for as many as there are."""
    found: list[ProcedureStep] = []
    for step in steps:
        if found and sign(found[-1]) == sign(step):
            found[-1] = _merged(found[-1], step)
        else:
            found.append(step)
    return tuple(found)


def sign(step: ProcedureStep) -> str:
    """Return the key that two calls of the same step share: the tool, and of a command its program
    with the verb behind it.
    """
    command = step.arguments.get("command")
    if isinstance(command, str):
        words = command.split()[:2]
        verb = words[1] if len(words) == 2 and not _FLAG_OR_PATH.search(words[1]) else ""
        return f"{step.tool} {words[0] if words else ''} {verb}".strip()
    return step.tool


def find(new: Done, before: Iterable[Done]) -> LearningFinding | None:
    """The procedure that a run has in common with earlier ones, if it was done twice or more."""
    steps, alike = new.steps, [new]
    for other in before:
        common = _common(steps, other.steps)
        if other.run_id != new.run_id and len(common) >= max(
            _FEWEST_STEPS, _SHARE * max(len(steps), len(other.steps))
        ):
            steps = common
            alike.append(other)
    if len(alike) < 2:
        return None
    return _finding(new, alike, steps)


def _finding(
    new: Done, alike: Sequence[Done], steps: tuple[ProcedureStep, ...]
) -> LearningFinding | None:
    bps = min(_MOST_BPS, _TWICE_BPS + _AGAIN_BPS * (len(alike) - 2))
    if max(_alikeness(new.request, other.request) for other in alike[1:]) < _LEAST_ALIKE:
        bps -= _UNALIKE_BPS
    label = labels.join(each.label for each in alike)
    content = describe(title(new.request), steps)
    if PLACEHOLDER.search(content):
        # What is left of a secret is nothing that a procedure could use.
        bps -= _UNALIKE_BPS
    oldest = sorted(alike, key=lambda each: each.position)
    return LearningFinding(
        kind="procedure",
        content=cut(content, LONGEST_CONTENT),
        confidence_bps=bps,
        evidence=tuple(
            Evidence(each.session_id, each.seq, cut(each.request, 160), each.position)
            for each in oldest
        ),
        risk=_risk(steps, label),
        label=label,
        memory_kind="procedure",
        about="procedure " + " > ".join(map(sign, steps)),
        steps=steps,
        runs=tuple(each.run_id for each in oldest),
    )


def _risk(steps: Iterable[ProcedureStep], label: Label) -> Risk:
    if label.integrity == "untrusted":
        return "high"
    return (
        "medium"
        if any(step.tool.startswith(("shell", "http", "browser", "mcp")) for step in steps)
        else "low"
    )


def title(request: str) -> str:
    first = next(iter(sentences(request)), "") or "a task done more than once"
    return cut(first.rstrip(".!?:"), 100)


def describe(name: str, steps: Sequence[ProcedureStep]) -> str:
    lines = "; ".join(f"{number}. {worded(step)}" for number, step in enumerate(steps, 1))
    return f"{name}: {lines}"


def worded(step: ProcedureStep) -> str:
    shown = ", ".join(f"{name}={_shown(value)}" for name, value in step.arguments.items())
    return f"{step.tool} {shown}".strip()


def _shown(value: Any) -> str:
    return cut(
        value if isinstance(value, str) else msgspec.json.encode(value).decode(), _LONGEST_VALUE
    )


def _common(
    one: Sequence[ProcedureStep], other: Sequence[ProcedureStep]
) -> tuple[ProcedureStep, ...]:
    """The longest sequence of steps that both have in this order."""
    a, b = [sign(step) for step in one], [sign(step) for step in other]
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            lengths[i][j] = (
                lengths[i + 1][j + 1] + 1
                if a[i] == b[j]
                else max(lengths[i + 1][j], lengths[i][j + 1])
            )
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found.append(_merged(one[i], other[j]))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def _merged(one: ProcedureStep, other: ProcedureStep) -> ProcedureStep:
    """The same step with what differs left open. Of a command the words that both have in the same
    place stay.
    """
    names = [name for name in one.arguments if name in other.arguments]
    return ProcedureStep(
        one.tool, {name: _same(one.arguments[name], other.arguments[name]) for name in names}
    )


def _same(one: Any, other: Any) -> Any:
    if one == other:
        return one
    if isinstance(one, str) and isinstance(other, str):
        a, b = one.split(), other.split()
        if len(a) == len(b) > 1 and a[0] == b[0]:
            return " ".join(x if x == y else OPEN for x, y in zip(a, b, strict=True))
        if a[:1] == b[:1] and a:
            return f"{a[0]} {OPEN}"
    return OPEN


def _alikeness(one: str, other: str) -> float:
    a, b = _words(one), _words(other)
    return len(a & b) / len(a | b) if a | b else 0.0


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if word not in _NO_TASK}
