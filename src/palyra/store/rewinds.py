"""Going back in a session: what changed files and when, which of it is still in force, and what is
being put back right now.

An undo and a rewind change files like a call does, so each leaves an effect of its own with what
was there before. The rule: that row stands before the first file is touched, without a place on the
tape; it gets its place with the entry that tells of it.
"""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from palyra.core import events, visible_ranges
from palyra.core.events import SessionRestored, ToolFinished, ToolUndone
from palyra.core.visible_ranges import Return
from palyra.store.database import Tx

Travel = Literal["@undo", "@rewind"]
# Behind every place: what has this one has not been told on the tape.
_UNTOLD = 1 << 62
_ENDS = ("run.completed", "run.failed", "run.cancelled")


class PendingRestore(Struct, frozen=True):
    """Files were being put back; `checkpoint` puts them where they were before that began."""

    travel_id: str
    session_id: str
    workspace: str
    checkpoint: bytes


class FileEffect(Struct, frozen=True):
    """A change of files, with the entry it belongs to: the start of a call, or what tells of an
    undo or a rewind.
    """

    call_id: str
    run_id: str
    tool: str
    seq: int
    undone: bool

    @property
    def by_call(self) -> bool:
        return not self.tool.startswith("@")


def begin(tx: Tx, travel_id: str, session_id: str, travel: Travel, checkpoint: bytes) -> None:
    tx.run(
        """INSERT INTO effects (call_id, session_id, run_id, tool, position, checkpoint)
        VALUES (:id, :session_id, '', :travel, :untold, :checkpoint)""",
        id=travel_id,
        session_id=session_id,
        travel=travel,
        untold=_UNTOLD,
        checkpoint=checkpoint,
    )


def tell(tx: Tx, travel_id: str, session_id: str, travel: Travel, position: int) -> None:
    """Note that a rewind is done, and the entry that says so. One that touched no file is noted all
    the same.
    """
    tx.run(
        """INSERT INTO effects (call_id, session_id, run_id, tool, position, checkpoint)
        VALUES (:id, :session_id, '', :travel, :position, :nothing) ON CONFLICT (call_id) DO UPDATE
        SET position = :position""",
        id=travel_id,
        session_id=session_id,
        travel=travel,
        position=position,
        nothing=b"",
    )


def forget(tx: Tx, travel_id: str) -> None:
    """Forget a rewind that did not happen."""
    tx.run(
        "DELETE FROM effects WHERE call_id = :id AND position = :untold",
        id=travel_id,
        untold=_UNTOLD,
    )


def pending(tx: Tx, session_id: str = "") -> list[PendingRestore]:
    """Return rewinds that were begun and are neither done nor cancelled: in one session or all."""
    if session_id:
        found = [session_id]
    else:
        # Only the index is looked at: checkpoints are large.
        found = [
            str(row[0])
            for row in tx.all(
                "SELECT DISTINCT session_id FROM effects WHERE position = :at", at=_UNTOLD
            )
        ]
    rows = [
        row
        for each in found
        for row in tx.all(
            """SELECT e.call_id, e.session_id, s.workspace, e.checkpoint FROM effects e
            JOIN sessions s ON s.session_id = e.session_id WHERE e.session_id = :id AND e.position =
            :at""",
            id=each,
            at=_UNTOLD,
        )
    ]
    return [PendingRestore(*row) for row in rows]


def returns(
    tx: Tx, tape: str, *, of: Literal["conversation", "files"] = "conversation"
) -> list[Return]:
    """Return where a session was rewound, oldest first."""
    rows = tx.all(
        """SELECT n.seq, n.body FROM effects e JOIN entries n ON n.position = e.position
        WHERE e.session_id = :tape AND e.tool = '@rewind' ORDER BY e.position""",
        tape=tape,
    )
    told = [(int(seq), events.decode(body)) for seq, body in rows]
    return [
        Return(seq, event.to_seq)
        for seq, event in told
        if isinstance(event, SessionRestored) and getattr(event, of)
    ]


def effects(tx: Tx, session_id: str) -> list[FileEffect]:
    """Every change of files of a session here, oldest first. Those of workers are not reached by
    going back.
    """
    rows = tx.all(
        """SELECT e.call_id, e.run_id, e.tool, n.seq, e.undone_ms > 0 FROM effects e JOIN entries n
        ON n.position = e.position
        WHERE e.session_id = :id AND e.tool NOT LIKE 'worker:%' ORDER BY e.position""",
        id=session_id,
    )
    return [
        FileEffect(call_id, run_id, tool, seq, bool(undone))
        for call_id, run_id, tool, seq, undone in rows
    ]


def behind(tx: Tx, session_id: str, known: list[FileEffect], seq: int) -> list[FileEffect]:
    """Return the changes that came after an entry, oldest first. A call that had begun and not
    finished comes after it.
    """
    later = [effect for effect in known if effect.seq > seq]
    before = [effect for effect in known if effect.seq <= seq]
    if before and before[-1].by_call and not _finished(tx, before[-1], seq):
        later.insert(0, before[-1])
    return later


def _finished(tx: Tx, effect: FileEffect, seq: int) -> bool:
    rows = tx.all(
        f"""SELECT kind, body FROM entries WHERE run_id = :run_id AND run_id <> '' AND seq > :begun
        AND seq <= :seq
            AND kind IN ('tool.finished', 'tool.undone', {
            ", ".join(f"'{kind}'" for kind in _ENDS)
        })""",
        run_id=effect.run_id,
        begun=effect.seq,
        seq=seq,
    )
    for kind, body in rows:
        event = events.decode(body)
        if kind in _ENDS or (
            isinstance(event, ToolFinished | ToolUndone) and event.call_id == effect.call_id
        ):
            return True
    return False


def in_force(tx: Tx, session_id: str, known: list[FileEffect], seq: int) -> set[str]:
    """The calls whose changes stood in the files after an entry: made, and neither undone nor
    rewound.
    """
    rows = tx.all(
        "SELECT seq, body FROM entries WHERE tape = :tape AND seq <= :seq AND kind = 'tool.undone'"
        " ORDER BY seq",
        tape=session_id,
        seq=seq,
    )
    undone = [
        (int(at), event)
        for at, body in rows
        if isinstance(event := events.decode(body), ToolUndone)
    ]
    standing: set[str] = set()
    for first, last in visible_ranges.surviving(returns(tx, session_id, of="files"), seq):
        standing |= {
            effect.call_id for effect in known if effect.by_call and first <= effect.seq <= last
        }
        standing -= {
            event.call_id for at, event in undone if first <= at <= last and event.why == "undo"
        }
    return standing


def mark(tx: Tx, known: Collection[FileEffect], standing: Collection[str]) -> None:
    """From now on these can be undone, and no others."""
    for effect in known:
        if effect.by_call and effect.undone == (effect.call_id in standing):
            at = 0 if effect.undone else tx.now_ms
            tx.run(
                "UPDATE effects SET undone_ms = :at WHERE call_id = :id", at=at, id=effect.call_id
            )


def drop_grants(tx: Tx, session_id: str, seq: int) -> None:
    """Drop the grants that the session got after an entry."""
    tx.run(
        """DELETE FROM grants WHERE session_id = :id AND approval_id IN (SELECT approval_id FROM
        approvals
            WHERE session_id = :id AND resolved_position > (SELECT position FROM entries WHERE tape
            = :id AND seq = :seq))""",
        id=session_id,
        seq=seq,
    )
