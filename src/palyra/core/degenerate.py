"""Answers that lead nowhere: empty ones, loops, wrong arguments again and again, replies cut off.

Everything here is a function of what is on the tape, so that a run that is resumed decides as it
would have decided before.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from palyra.core.messages import StopReason

Flaw = Literal["form", "empty", "loop", "arguments", "repetition", "stray_call", "described"]
DeadEnd = Literal["empty_answer", "loop", "arguments", "repetition"]

# The same call with the same result so often: the model is told. Once more: the run ends.
SAME_CALLS: Final = 3
# Wrong arguments for a tool so often in a row: the model is shown its schema. Once more: the run
# ends.
WRONG_ARGUMENTS: Final = 3
# How often a reply that was cut off at its length is continued.
MOST_CONTINUATIONS: Final = 3
# A stream that ends without a finish reason: the server may never send one.
_MOST_AFTER_CUT: Final = 1
CUT_OFF: Final[tuple[StopReason, ...]] = ("length", "cut")
INCOMPLETE: Final = (
    "\n\n[The answer is incomplete: the model reached its output limit. Say “continue” for the"
    " rest.]"
)
# The tool, its arguments, the outcome and the text of its result, which the conversation holds
# anyway.
_CallKey = tuple[str, bytes, str, str]
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_LONGEST_OVERLAP: Final = 200
_SHORTEST_OVERLAP: Final = 20


class Repeats(Struct):
    """Record of what a run has done, by call and result, and how often since its last new step."""

    _seen: set[_CallKey] = msgspec.field(default_factory=set)
    _counts: dict[_CallKey, int] = msgspec.field(default_factory=dict)
    _turns: dict[_CallKey, int] = msgspec.field(default_factory=dict)
    # The most that one of the last turn's calls was repeated.
    most: int = 0
    # Wrong arguments in a row, by tool.
    wrong: dict[str, int] = msgspec.field(default_factory=dict)

    def turn_begins(self) -> None:
        self.most = 0

    def finished(
        self, turn: int, call: tuple[str, dict[str, Any]], result: tuple[str, str]
    ) -> bool:
        """A call has come to its end: whether that is something new. Calls that a turn makes twice
        count once.
        """
        key = (call[0], _encode_sorted(call[1]), *result)
        new = key not in self._seen
        if new:
            self._seen.add(key)
            self._counts.clear()
            self._turns.clear()
        if self._turns.get(key) != turn:
            self._turns[key] = turn
            self._counts[key] = self._counts.get(key, 0) + 1
        self.most = max(self.most, self._counts[key])
        return new

    def judged(self, tool: str, *, wrong: bool) -> None:
        """Note whether a call's arguments could be used."""
        if wrong:
            self.wrong[tool] = self.wrong.get(tool, 0) + 1
        else:
            self.wrong.pop(tool, None)


class Correct(Struct, frozen=True):
    """Tell the model what is wrong, and ask again."""

    flaw: Flaw
    problem: str


class EndRun(Struct, frozen=True):
    """Telling it has not helped: end the run."""

    reason: DeadEnd


def of_calls(
    tools: Sequence[str], repeats: Repeats, told: Sequence[str]
) -> Correct | EndRun | None:
    """Return what to do about the calls of a turn, once all of them have a result."""
    for tool in tools:
        wrong = repeats.wrong.get(tool, 0)
        if wrong >= WRONG_ARGUMENTS:
            again = f"arguments:{tool}" in told
            return EndRun("arguments") if again else Correct("arguments", tool)
    if repeats.most > SAME_CALLS and "loop" in told:
        return EndRun("loop")
    if repeats.most >= SAME_CALLS:
        return Correct("loop", f"the same call gave the same result {repeats.most} times")
    return None


def of_answer(text: str, stop: StopReason, told: Sequence[str]) -> Correct | EndRun | None:
    """Return what to do about an answer without calls, as it is put together."""
    if stop == "repetition":
        again = "repetition" in told
        return EndRun("repetition") if again else Correct("repetition", "the reply repeated itself")
    if stop == "stray_call" and "stray_call" not in told:
        return Correct("stray_call", "text followed a tool call")
    if stop == "described" and "described" not in told:
        return Correct("described", "the reply spoke of a tool and called none")
    if not text.strip() and stop != "content_filter":
        if "empty" in told:
            return EndRun("empty_answer")
        spent = "all its tokens were used before the answer" if stop == "length" else ""
        return Correct("empty", spent or "the reply was empty")
    return None


def goes_on(stop: StopReason, text: str, pieces: Sequence[str]) -> bool:
    """Return whether a reply that was cut off is to be continued; `pieces` came before it."""
    if not text.strip() or (pieces and text == pieces[-1]):
        return False
    most = {"length": MOST_CONTINUATIONS, "cut": _MOST_AFTER_CUT}.get(stop, 0)
    return len(pieces) < most


def join(pieces: Sequence[str]) -> str:
    """One answer out of the pieces that it came in. A piece that begins anew takes the place of
    what was before; one that repeats the last words is put over them.
    """
    whole = ""
    for piece in pieces:
        whole = piece if piece.startswith(whole) else whole + piece[_overlap(whole, piece) :]
    return whole


def _overlap(before: str, after: str) -> int:
    most = min(_LONGEST_OVERLAP, len(before), len(after))
    for size in range(most, _SHORTEST_OVERLAP - 1, -1):
        if before.endswith(after[:size]):
            return size
    return 0
