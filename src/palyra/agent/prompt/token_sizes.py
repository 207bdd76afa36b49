"""Sizes of conversations, in tokens. Each turn is measured once: guessed from its length, counted
only near the window.

The rule: what is sent fits. Far from the window a bound by bytes proves that without a tokenizer;
near it every text is counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from palyra.core import caller_context, references
from palyra.core.run_progress import ModelTurn, Summary, Turn, UserTurn
from palyra.models import token_count, usage_estimate

_CALL_OVERHEAD = 16
# Twice as many as any window shows; then those that have slid out of it are forgotten.
_SPARE = 64
_MOST_FITTED = 4
_encode = msgspec.json.encode


class _Size(NamedTuple):
    state: int
    tokens: int
    most: int
    counted: bool


class Measure:
    """The sizes of one conversation's turns, by their place on the tape. A turn of calls grows
    until all have their result.
    """

    def __init__(self, frame: int = 0) -> None:
        """`frame`: tokens for the marks around each call and each message."""
        self._sizes: dict[int, _Size] = {}
        self._frame = frame
        # Of the same turns as they are cut for small windows, by budget.
        self._fitted: dict[int, Measure] = {}

    def fitted(self, budget: int, frame: int) -> "Measure":
        """The sizes of the turns as they are cut for a budget."""
        if budget not in self._fitted and len(self._fitted) >= _MOST_FITTED:
            self._fitted.clear()
        return self._fitted.setdefault(budget, Measure(frame))

    def tokens(self, turns: Iterable[Turn]) -> int:
        return sum(self.of(turn) for turn in turns)

    def of(self, turn: Turn) -> int:
        return self._size(turn).tokens

    def most(self, turns: Iterable[Turn]) -> int:
        """Return the most tokens that the turns can have."""
        return sum(self._size(turn).most for turn in turns)

    def _size(self, turn: Turn) -> _Size:
        state = _state(turn)
        known = self._sizes.get(turn.seq)
        if known is not None and known.state == state:
            return known
        text = text_of(turn)
        size = _Size(
            state,
            usage_estimate.tokens(text) + self._around(turn),
            token_count.at_most(text) + self._around(turn),
            False,
        )
        self._sizes[turn.seq] = size
        return size

    def _around(self, turn: Turn) -> int:
        return _overhead(turn) + self._frame * _pieces(turn)

    def uncounted(self, turns: Sequence[Turn]) -> list[Turn]:
        if len(self._sizes) > 2 * len(turns) + _SPARE:
            there = {turn.seq for turn in turns}
            self._sizes = {seq: size for seq, size in self._sizes.items() if seq in there}
        return [turn for turn in turns if not self._size(turn).counted]

    def learn(self, counts: Mapping[int, tuple[int, int]]) -> None:
        """(state, tokens) by turn, from `count`."""
        for seq, (state, tokens) in counts.items():
            self._sizes[seq] = _Size(state, tokens, tokens, True)

    def count(self, turns: Sequence[Turn]) -> dict[int, tuple[int, int]]:
        """Count for `learn`, with the marks around each turn. Call it off the event loop."""
        counts = count(turns)
        if not self._frame:
            return counts
        return {
            turn.seq: (counts[turn.seq][0], counts[turn.seq][1] + self._frame * _pieces(turn))
            for turn in turns
        }


def count(turns: Sequence[Turn]) -> dict[int, tuple[int, int]]:
    """(state, tokens) of each turn, by the tokenizer. Slow the first time: call it off the event
    loop.
    """
    return {
        turn.seq: (_state(turn), token_count.count(text_of(turn)) + _overhead(turn))
        for turn in turns
    }


def text_of(turn: Turn) -> str:
    """Everything of a turn that a model reads."""
    match turn:
        case UserTurn():
            brought = (
                text
                for event in turn.inputs
                for text in (caller_context.text_of(event), references.render(event))
            )
            return "\n".join(
                (*turn.notes, *filter(None, brought), *(event.text for event in turn.inputs))
            )
        case ModelTurn():
            pieces = [turn.reply.text, turn.reply.reasoning]
            for call in turn.calls:
                pieces += (
                    call.call.tool,
                    _encode(call.call.arguments).decode(),
                    call.finished.text if call.finished else "",
                )
            return "\n".join(pieces)
        case Summary():
            return turn.text


def _state(turn: Turn) -> int:
    match turn:
        case UserTurn():
            # What is not on the tape yet has no place of its own: its length tells it from what
            # stood there before.
            named = (
                len(event.text) + sum(len(each.text) for each in event.references)
                for event in turn.inputs
            )
            return sum(named) + sum(len(caller_context.text_of(event)) for event in turn.inputs)
        case ModelTurn():
            return sum(call.finished is not None for call in turn.calls)
        case Summary():
            return len(turn.text)


def _overhead(turn: Turn) -> int:
    return _CALL_OVERHEAD * len(turn.calls) if isinstance(turn, ModelTurn) else 0


def _pieces(turn: Turn) -> int:
    """Return how many texts of a turn stand between marks of their own."""
    match turn:
        case UserTurn():
            named = sum(len(event.references) + len(event.attachments) for event in turn.inputs)
            told = sum(len(event.given.turns) for event in turn.inputs if event.given)
            return len(turn.inputs) + len(turn.notes) + named + told
        case ModelTurn():
            return len(turn.calls)
        case Summary():
            return 1
