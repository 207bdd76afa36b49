"""Entries that a commit's steps have appended and the store does not have yet.

Every statement costs the writer the interpreter's lock twice, so entries are not written one by
one: they are held, and put into the store together, many rows to a statement, when the commit is
made or when a step asks the store something. What was held is as much part of the transaction as
everything else in it. The heads of tapes and the states of runs are remembered from one commit to
the next; they are forgotten whenever another process has written.

Health of the journal's writing: how the last write went, and how long the oldest one has been
waiting.

A disk fails in two ways. It refuses, and says so; or it does not answer, and then only the time
that passes tells of it.

Topics that a statement changes, by its table: subscribers that show such rows are told that they
changed.

The rule: no code has to remember to tell. A step that changes a row of these tables has changed its
topic.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from palyra.core.errors import PalyraError
from palyra.core.events import Topic
from palyra.core.signals import Signal

_TABLE = re.compile(
    r"(?:INSERT(?: OR \w+)? INTO|REPLACE INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)"
)

BY_TABLE: dict[str, Topic] = {
    "candidates": "learning",
    "certificates": "certificates",
    "channel_asked": "channels",
    "channel_messages": "channels",
    "channel_outbox": "channels",
    "channel_pairings": "channels",
    "channel_people": "channels",
    "channel_settings": "channels",
    "channel_steps": "channels",
    "firings": "schedules",
    "incidents": "incidents",
    "schedules": "schedules",
    "task_kinds": "tasks",
    "tasks": "tasks",
    "tokens": "tokens",
    "worker_leases": "workers",
    "workers": "workers",
}


@lru_cache(maxsize=1024)
def of(sql: str) -> Topic | None:
    found = _TABLE.match(sql)
    return BY_TABLE.get(found[1]) if found else None


# A write that has waited for so long waits for a disk that does not answer.
STALLED_S = 3.0
# So long somebody waits who only wants to read then.
LONGEST_READ_S = 1.0
# What was written so recently needs no proof that it could be.
_RECENT_S = 5.0
# A disk that refused a moment ago is not asked again for every question.
_ASK_AGAIN_S = 1.0


class StoreSilence(NamedTuple):
    """Who is waited for when the store does not answer, and where a person looks then."""

    who: str
    advice: str


class Standing:
    """Written by the writer's thread, read on the event loop; each value on its own is enough for
    an answer.
    """

    def __init__(self, silence: StoreSilence) -> None:
        self._silence = silence
        # Why something could not be written; None once something was. Committing nothing proves
        # nothing.
        self.trouble: BaseException | None = None
        # Told once when the disk begins to refuse or to be silent.
        self.on_trouble = Signal[[]]("trouble with the store")
        self._since = 0.0
        self._written = 0.0
        self._failed = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._told = False

    def began(self, handed_over: float) -> None:
        """The writer begins with steps, the oldest of which was handed over then."""
        self._since = handed_over

    def succeeded(self, *, proven: bool) -> None:
        """The steps are committed. `proven`: something of theirs went to the disk."""
        self._since = 0.0
        if proven:
            self._written = time.monotonic()
            self.trouble = None

    def failed(self, error: BaseException) -> None:
        self._since = 0.0
        self._failed = time.monotonic()
        self.trouble = error

    def handed_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """A step waits from now on: look after a while whether it still does."""
        if self._alarm is None:
            self._alarm = loop.call_later(STALLED_S, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = None
        self.tell()
        if self._since:
            # The oldest may have been handed over after this was set.
            left = STALLED_S - self.waited_s
            self._alarm = loop.call_later(left if left > 0 else STALLED_S, self._look, loop)

    def tell(self) -> None:
        """Tell of a disk that has begun to refuse or to be silent, once until it is well again."""
        wrong = bool(self.problem)
        if wrong and not self._told:
            self._told = True
            self.on_trouble.send()
        self._told = wrong

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    @property
    def waited_s(self) -> float:
        """Seconds that the oldest step that is not durable has waited."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    @property
    def problem(self) -> str:
        """Reason why nothing can be written now, or empty."""
        trouble = self.trouble
        if trouble is not None:
            return (
                trouble.message
                if isinstance(trouble, PalyraError)
                else f"{type(trouble).__name__}: {trouble}"
            )
        return self.silent(self.waited_s) if self.waited_s >= STALLED_S else ""

    def silent(self, seconds: float) -> str:
        """Say who has not answered for so long."""
        return (
            f"{self._silence.who} has not answered for {seconds:.0f} s: what is to be written"
            f" waits for it ({self._silence.advice})"
        )

    @property
    def is_silent(self) -> bool:
        """Return whether the disk does not answer: then reading may wait for it as well."""
        return self.waited_s >= STALLED_S

    @property
    def known(self) -> bool:
        """Return whether the state is known well enough, without writing something to find out."""
        now = time.monotonic()
        if self.trouble is not None:
            return now - self._failed < _ASK_AGAIN_S
        return self.waited_s >= STALLED_S or now - self._written < _RECENT_S


# Beyond so many, all are forgotten and read again as they are needed.
_MOST_REMEMBERED = 4_096


class AppendTarget(NamedTuple):
    """Target of rows. `conflict` says what becomes of one that is there already."""

    table: str
    columns: tuple[str, ...]
    conflict: str = ""


ENTRIES = AppendTarget(
    "entries",
    ("position", "tape", "seq", "time_ms", "run_id", "principal", "kind", "body", "hash", "link"),
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
        "cache_write_tokens",
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
    """Size of the buffer before a step began."""

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
