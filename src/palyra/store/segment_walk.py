"""All entries in commit order, from the database and from the segments, as if none had ever been
put away.

The rule: an entry of a tape that lies in a segment is taken from there. If a copy is still in the
database it must be the same.
"""

import zlib
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from palyra.core.errors import ChainBroken
from palyra.store import segments
from palyra.store.database import Tx
from palyra.store.dialect import Row
from palyra.store.segments import Segment

_CHUNK = 2_000


class Broken(Exception):
    """A segment is missing or not as it was sealed, or an entry cannot be read; `position` is of
    the first that is lost by it.
    """

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position
        self.problem = problem


def rows(tx: Tx, folder: Path | None, lying: Sequence[Segment]) -> Iterator[Row]:
    """Each as (position, tape, seq, time_ms, run_id, principal, kind, body, hash, link)."""
    tapes = segments.tapes(tx)
    waiting = sorted(lying, key=lambda each: each.first_position, reverse=True)
    # Segments that have been begun, by their next entry. A segment is open only while the walk
    # passes through it.
    begun: list[tuple[int, int, Row, Iterator[Row]]] = []
    table = _table(tx)
    row = next(table, None)
    while row is not None or begun or waiting:
        while (
            waiting
            and (row is None or waiting[-1].first_position <= row[0])
            and (not begun or waiting[-1].first_position <= begun[0][0])
        ):
            segment = waiting.pop()
            _push(begun, len(waiting), _of(tx, folder, segment, tapes))
        if begun and (row is None or begun[0][0] <= row[0]):
            position, number, stored, rest = heappop(begun)
            if row is not None and row[0] == position:
                if row != stored:
                    raise Broken(
                        position,
                        "the entry is in a segment and in the database, and they differ: it was"
                        " inserted or changed",
                    )
                row = next(table, None)
            yield stored
            _push(begun, number, rest)
        elif row is not None:
            yield row
            row = next(table, None)


def _push(
    begun: list[tuple[int, int, Row, Iterator[Row]]], number: int, rest: Iterator[Row]
) -> None:
    following = next(rest, None)
    if following is not None:
        heappush(begun, (following[0], number, following, rest))


def _of(tx: Tx, folder: Path | None, segment: Segment, tapes: dict[str, str]) -> Iterator[Row]:
    """The entries of a segment whose tapes lie in it and nowhere else."""
    try:
        body = segments.body_of(tx, folder, segment.segment_id)
        segments.look(body, segment.segment_id)
        for what, row in segments.records(body):
            if what == "entry" and tapes.get(row[1]) == segment.segment_id:
                yield row
    except ChainBroken as error:
        raise Broken(segment.first_position, error.message) from error
    except (zlib.error, msgspec.DecodeError, OSError) as error:
        raise Broken(
            segment.first_position, f"segment {segment.segment_id[:16]} cannot be read: {error}"
        ) from error


def _table(tx: Tx) -> Iterator[Row]:
    position = 0
    # A backup from before links had versions has none.
    versions = tx.connection.has_column("entries", "link")
    link = "link" if versions else "1"
    while True:
        try:
            found = _behind(tx, position, _CHUNK, link)
        except UnicodeError:
            yield from _up_to_what_is_no_text(tx, position, link)
            return
        yield from found
        if len(found) < _CHUNK:
            return
        position = found[-1][0]


def _behind(tx: Tx, position: int, limit: int, link: str) -> list[Row]:
    return tx.all(
        f"""SELECT position, tape, seq, time_ms, run_id, principal, kind, body, hash, {link}
        FROM entries WHERE position > :position ORDER BY position LIMIT :limit""",
        position=position,
        limit=limit,
    )


def _up_to_what_is_no_text(tx: Tx, position: int, link: str) -> Iterator[Row]:
    """One by one, so that it is known which one it is."""
    for (following,) in tx.all(
        "SELECT position FROM entries WHERE position > :position ORDER BY position LIMIT :limit",
        position=position,
        limit=_CHUNK,
    ):
        try:
            yield from _behind(tx, following - 1, 1, link)
        except UnicodeError as error:
            raise Broken(following, "its text cannot be read: it is not UTF-8") from error
