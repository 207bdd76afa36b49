"""What a commit's steps have appended and the store does not have yet.

Every statement costs the writer the interpreter's lock twice, so entries are not written one by
one: they are held, and put into the store together, many rows to a statement, when the commit is
made or when a step asks the store something. What was held is as much part of the transaction as
everything else in it. The heads of tapes and the states of runs are remembered from one commit to
the next; they are forgotten whenever somebody else has written.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

# Beyond so many, all are forgotten and read again as they are needed.
_MOST_REMEMBERED = 4_096


class AppendTarget(NamedTuple):
    """Where rows go. `conflict` says what becomes of one that is there already."""

    table: str
    columns: tuple[str, ...]
    conflict: str = ""


ENTRIES = AppendTarget(
    "entries", ("position", "tape", "seq", "time_ms", "run_id", "principal", "kind", "body", "hash")
)
HEADS = AppendTarget(
    "tapes",
    ("tape", "head_seq", "head_hash"),
    "ON CONFLICT (tape) DO UPDATE SET head_seq = excluded.head_seq, head_hash = excluded.head_hash",
)
USAGE = AppendTarget(
    "usage",
    (
        "position",
        "time_ms",
        "session_id",
        "run_id",
        "principal",
        "provider",
        "model",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cost_microusd",
        "duration_ms",
        "first_delta_ms",
        "task",
        "unpriced",
        "estimated",
    ),
)


# Where a run has got to.
MOVES = """UPDATE runs SET state = :state, reason = :reason, heartbeat_ms = :now,
        started_ms = CASE WHEN started_ms = 0 AND :active THEN :now ELSE started_ms END,
        ended_ms = CASE WHEN :ended THEN :now ELSE ended_ms END
    WHERE run_id = :run_id"""


class Inserts(Protocol):
    def insert(self, into: AppendTarget, rows: Sequence[tuple[Any, ...]]) -> None: ...

    def many(self, sql: str, rows: Sequence[dict[str, Any]]) -> None: ...


class Savepoint(NamedTuple):
    """How much was held before a step began."""

    entries: int
    usage: int
    moves: int


NOTHING = Savepoint(0, 0, 0)


class WriteBuffer:
    """The rows of one connection's current transaction. Rows are tuples in the order of their
    columns.
    """

    __slots__ = ("_connection", "entries", "heads", "moves", "states", "usage")

    def __init__(self, connection: Inserts) -> None:
        self._connection = connection
        self.entries: list[tuple[Any, ...]] = []
        self.usage: list[tuple[Any, ...]] = []
        self.moves: list[dict[str, Any]] = []
        # The head of a tape, as (seq, hash), and of a run its (state, reason): as they are with
        # what is held.
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.states: dict[str, tuple[Any, str]] = {}

    @property
    def mark(self) -> Savepoint:
        return Savepoint(len(self.entries), len(self.usage), len(self.moves))

    def __bool__(self) -> bool:
        return bool(self.entries or self.usage or self.moves)

    def flush(self, upto: Savepoint | None = None) -> None:
        """Put what is held into the store, or only what was held at a mark."""
        mark = upto or self.mark
        entries, usage, moves = (
            self.entries[: mark.entries],
            self.usage[: mark.usage],
            self.moves[: mark.moves],
        )
        del self.entries[: mark.entries], self.usage[: mark.usage], self.moves[: mark.moves]
        if entries:
            self._connection.insert(ENTRIES, entries)
            self._connection.insert(
                HEADS, list({row[1]: (row[1], row[2], row[8]) for row in entries}.values())
            )
        if usage:
            self._connection.insert(USAGE, usage)
        if moves:
            self._connection.many(MOVES, moves)

    def drop(self, mark: Savepoint) -> None:
        """Forget what a step had held that failed, and everything that it may have moved."""
        del self.entries[mark.entries :], self.usage[mark.usage :], self.moves[mark.moves :]
        self.forget()

    def forget(self) -> None:
        self.heads.clear()
        self.states.clear()

    def remember(
        self, tape: str, head: tuple[int, bytes], run_id: str, state: tuple[Any, str] | None
    ) -> None:
        if len(self.heads) > _MOST_REMEMBERED or len(self.states) > _MOST_REMEMBERED:
            self.forget()
        self.heads[tape] = head
        if state is not None:
            self.states[run_id] = state
