"""Compaction `session_window_v1`: which turns of a conversation a summary may take the place of,
and when.

The rule: a run is condensed whole or not at all, and never one that is unfinished, pinned or among
the last turns. What is condensed is condensed once: the next summary is made from this one and from
what has come since.
"""

from msgspec import Struct

from palyra.core.conversation import Conversation
from palyra.core.run_progress import ModelTurn, Summary, UserTurn

STRATEGY = "session_window_v1"
# Turns at the end that always stay as they were said.
TAIL = 6
LEAST_THRESHOLD = 480
# A summary that does not save at least this share is not worth what it loses.
LEAST_SAVED = 0.25
_LEAST_SUMMARY = 240
_MOST_SUMMARY = 4_096
_SUMMARY_SHARE = 0.2

Spoken = UserTurn | ModelTurn


class Material(Struct, frozen=True, kw_only=True):
    """Material for a new summary, and what would stay."""

    summary: Summary | None
    turns: tuple[Spoken, ...]
    from_seq: int
    upto_seq: int
    kept_from: int
    pins: tuple[int, ...] = ()

    @property
    def records(self) -> int:
        """Return how many turns the new summary would stand for."""
        return (self.summary.records if self.summary else 0) + len(self.turns)


def threshold(budget: int, share: float) -> int:
    """The size in tokens from which on an input is worth condensing."""
    return max(LEAST_THRESHOLD, int(budget * share))


def most_tokens(budget: int) -> int:
    """Return how large a summary may become for a model with this budget, however long the
    conversation is.
    """
    return min(_MOST_SUMMARY, max(_LEAST_SUMMARY, int(budget * _SUMMARY_SHARE)))


def material(conversation: Conversation) -> Material | None:
    """Return what can be condensed now; None if everything there is must stay as it is."""
    summary = next((turn for turn in conversation.turns if isinstance(turn, Summary)), None)
    spoken = [turn for turn in conversation.turns if not isinstance(turn, Summary)]
    end = _boundary(spoken)
    older = [turn for turn in spoken[:end] if turn.accepted_seq not in conversation.pins]
    if not older:
        return None
    pinned = sorted({turn.accepted_seq for turn in spoken[:end]} & conversation.pins)
    kept = [
        *pinned,
        *(turn.accepted_seq for turn in spoken[end:]),
        *(run.accepted_seq for run in conversation.runs.values()),
    ]
    return Material(
        summary=summary,
        turns=tuple(older),
        from_seq=summary.from_seq if summary and summary.from_seq else older[0].accepted_seq,
        upto_seq=spoken[end - 1].seq,
        kept_from=min(kept),
        pins=tuple(pinned),
    )


def _boundary(spoken: list[Spoken]) -> int:
    """Return how many turns from the beginning on are not in the tail, without splitting a run. An
    unfinished run is always the last.
    """
    end = max(0, len(spoken) - TAIL)
    while 0 < end < len(spoken) and spoken[end - 1].run_id == spoken[end].run_id:
        end -= 1
    return end


def is_smaller(before: int, after: int) -> bool:
    return after <= before * (1 - LEAST_SAVED)
