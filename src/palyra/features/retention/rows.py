"""Queries for what is old enough to be sealed, and what nobody refers to any more. They change
nothing.
"""

import re
from collections.abc import Collection

from msgspec import Struct

from palyra.core.ids import SYSTEM_TAPE
from palyra.store.database import Tx

_ARTIFACT = re.compile(rb"[0-9a-f]{64}")
_PAGE = 500
_WORKS = """EXISTS (SELECT 1 FROM runs r WHERE r.session_id = s.session_id
    AND r.state IN ('accepted', 'in_progress', 'waiting'))"""
_BRANCHED = """EXISTS (SELECT 1 FROM sessions b WHERE b.parent_id = s.session_id
    AND b.parent_id <> '' AND b.segment_id = '')"""
_AWAITED = """EXISTS (SELECT 1 FROM children c WHERE c.session_id = s.session_id
    AND c.delivered = 0)"""
_OLD = f"""FROM sessions s JOIN tapes t ON t.tape = s.session_id
    WHERE s.segment_id = '' AND s.kept = 0 AND s.updated_ms < :before
        AND NOT {_WORKS} AND NOT {_BRANCHED} AND NOT {_AWAITED}"""


class Old(Struct, frozen=True, kw_only=True):
    """A session that nobody has used for a long time, nobody keeps, and nothing that is in use goes
    on from.
    """

    session_id: str
    owner: str
    title: str
    updated_ms: int
    entries: int


def old(tx: Tx, before_ms: int, limit: int, *, but: Collection[str] = ()) -> list[Old]:
    """Return old sessions, oldest first."""
    rows = tx.all(
        f"SELECT s.session_id, s.owner, s.title, s.updated_ms, t.head_seq {_OLD} ORDER BY"
        " s.updated_ms, s.session_id LIMIT :limit",
        before=before_ms,
        limit=limit + len(but),
    )
    found = [
        Old(session_id=row[0], owner=row[1], title=row[2], updated_ms=row[3], entries=row[4])
        for row in rows
    ]
    return [each for each in found if each.session_id not in but][:limit]


def still_as(tx: Tx, before_ms: int, heads: dict[str, tuple[int, bytes]]) -> bool:
    """Return whether these sessions are still old, and their tapes end where they ended."""
    for session_id, head in heads.items():
        row = tx.one(
            f"SELECT t.head_seq, t.head_hash {_OLD} AND s.session_id = :id",
            before=before_ms,
            id=session_id,
        )
        if row is None or (row[0], row[1]) != head:
            return False
    return True


def obstacle(tx: Tx, session_id: str) -> str:
    """Return why a session cannot leave the journal now, and what to do; empty if it can."""
    row = tx.one(
        f"SELECT s.kept, {_WORKS} OR {_AWAITED}, {_BRANCHED} FROM sessions s"
        " WHERE s.session_id = :id",
        id=session_id,
    )
    kept, works, branched = row or (0, 0, 0)
    if kept:
        return "it is pinned: unpin it first"
    if works:
        return "a run of it is unfinished: stop the run first"
    return "another session was branched from it: delete the branch first" if branched else ""


def bytes_of(tx: Tx, session_id: str) -> int:
    """Return how much room a session takes in the database, without its indexes."""
    row = tx.one(
        """SELECT coalesce((SELECT sum(length(body)) FROM entries WHERE tape = :id), 0)
            + coalesce((SELECT sum(length(body)) FROM artifacts WHERE session_id = :id), 0)
            + coalesce((SELECT sum(length(checkpoint)) FROM effects WHERE session_id = :id), 0)""",
        id=session_id,
    )
    return int(row[0]) if row else 0


class Unused(Struct, frozen=True, kw_only=True):
    """Artifacts of a session that no entry names; `upto` is how far each tape that could name them
    was read.
    """

    session_id: str
    artifacts: dict[str, int]
    upto: dict[str, int]


def with_artifacts(tx: Tx, before_ms: int) -> list[str]:
    """The sessions that have artifacts from before then. What prompts took from outside is the
    system's, and stays.
    """
    rows = tx.all(
        "SELECT DISTINCT session_id FROM artifacts WHERE created_ms < :before AND session_id <>"
        " :system ORDER BY session_id",
        before=before_ms,
        system=SYSTEM_TAPE,
    )
    return [str(session_id) for (session_id,) in rows]


def unused(tx: Tx, session_id: str, before_ms: int) -> Unused:
    """A branch names what its ancestors have, so the tapes of all branches are read as well.

    One that lies in a segment cannot be read here: while there is one, nothing is unused. Neither
    is what a webhook brought for a firing that has not begun.
    """
    rows = tx.all(
        """SELECT artifact_id, length(body) FROM artifacts WHERE session_id = :id AND created_ms <
        :before
            AND artifact_id NOT IN (SELECT artifact FROM firings WHERE state IN ('due', 'queued',
            'started'))""",
        id=session_id,
        before=before_ms,
    )
    left = {str(artifact_id): int(size) for artifact_id, size in rows}
    upto: dict[str, int] = {}
    family = _family(tx, session_id)
    if any(_lies_in_segment(tx, tape) for tape in family):
        left = {}
    for tape in family if left else ():
        seq = 0
        while page := tx.all(
            "SELECT seq, body FROM entries WHERE tape = :tape AND seq > :seq ORDER BY seq LIMIT"
            " :limit",
            tape=tape,
            seq=seq,
            limit=_PAGE,
        ):
            for _, body in page:
                for named in _ARTIFACT.findall(body):
                    left.pop(named.decode(), None)
            seq = int(page[-1][0])
        upto[tape] = seq
    return Unused(session_id=session_id, artifacts=left, upto=upto)


def _lies_in_segment(tx: Tx, session_id: str) -> bool:
    return (
        tx.one("SELECT 1 FROM sessions WHERE session_id = :id AND segment_id <> ''", id=session_id)
        is not None
    )


def _family(tx: Tx, session_id: str) -> list[str]:
    rows = tx.all(
        """WITH RECURSIVE family (id) AS (SELECT :id UNION SELECT s.session_id FROM sessions s JOIN
        family f ON s.parent_id = f.id
            WHERE s.parent_id <> '') SELECT id FROM family""",
        id=session_id,
    )
    return [str(each) for (each,) in rows]


def forget(tx: Tx, found: Unused, before_ms: int) -> int:
    """Delete unused artifacts, unless something has been written since that may name one; how many
    bytes that freed.
    """
    heads = {tape: _head(tx, tape) for tape in _family(tx, found.session_id)}
    if heads != found.upto:
        return 0
    freed = 0
    for artifact_id, size in found.artifacts.items():
        known = tx.one(
            "SELECT 1 FROM artifacts WHERE session_id = :session AND artifact_id = :id AND"
            " created_ms < :before",
            session=found.session_id,
            id=artifact_id,
            before=before_ms,
        )
        if known is not None:
            tx.run(
                "DELETE FROM artifacts WHERE session_id = :session AND artifact_id = :id",
                session=found.session_id,
                id=artifact_id,
            )
            freed += size
    return freed


def _head(tx: Tx, tape: str) -> int:
    row = tx.one("SELECT coalesce(max(seq), 0) FROM entries WHERE tape = :tape", tape=tape)
    return int(row[0]) if row else 0


def free_pages(tx: Tx) -> tuple[int, int]:
    """Pages of the file that hold nothing, and how large a page is."""
    (free,), (size,) = tx.all("PRAGMA freelist_count")[0], tx.all("PRAGMA page_size")[0]
    return int(free), int(size)


def release_pages(tx: Tx, most: int) -> None:
    """Give some of them back to the file system, where the file was made so that this is
    possible.
    """
    tx.run(f"PRAGMA incremental_vacuum({most})")


def optimize(tx: Tx) -> None:
    """Renew the planner's statistics where they are stale."""
    tx.run("PRAGMA optimize")
