"""The compactions of a session: which were made, which stand, and taking them back. They are
entries and nothing else.
"""

from msgspec import Struct

from palyra.core import events
from palyra.core.errors import Conflict, NotFound
from palyra.core.events import SessionCompacted, SessionPinned, SessionUncompacted
from palyra.store import sessions, tape
from palyra.store.database import Appended, Tx
from palyra.store.sessions import Session

_MOST_PINS = 16


class CompactionRow(Struct, frozen=True):
    seq: int
    time_ms: int
    event: SessionCompacted
    # Neither taken back, nor left behind by a reset or a rewind.
    stands: bool


def of_session(tx: Tx, session: Session) -> list[CompactionRow]:
    """Return the compactions on the session's own tape, oldest first."""
    rows = tx.all(
        """SELECT seq, time_ms, body FROM entries WHERE tape = :tape
            AND kind IN ('session.compacted', 'session.uncompacted') ORDER BY seq""",
        tape=session.session_id,
    )
    told = [(int(seq), int(time_ms), events.decode(body)) for seq, time_ms, body in rows]
    counts = [
        part
        for part in sessions.lineage(tx, session, session.head_seq)
        if part.tape == session.session_id
    ]

    def stands(seq: int) -> bool:
        return any(part.first <= seq <= part.last for part in counts)

    undone = {
        made
        for seq, _, event in told
        if isinstance(event, SessionUncompacted) and stands(seq)
        for made in event.compactions
    }
    return [
        CompactionRow(seq, time_ms, event, stands(seq) and seq not in undone)
        for seq, time_ms, event in told
        if isinstance(event, SessionCompacted)
    ]


def make(tx: Tx, session: Session, event: SessionCompacted, seen_seq: int) -> Appended | None:
    """Apply a compaction that was worked out for the conversation as of `seen_seq`; None if it has
    become another one since.
    """
    row = tx.one(
        """SELECT 1 FROM entries WHERE tape = :tape AND seq > :seq
            AND kind IN ('session.reset', 'session.compacted', 'session.uncompacted',
            'session.restored', 'session.pinned')""",
        tape=session.session_id,
        seq=seen_seq,
    )
    if row is not None:
        return None
    return tape.append(tx, session.session_id, session.owner, [event])[0]


def undo(tx: Tx, session: Session, seq: int) -> tuple[int, ...]:
    """Take back a compaction, and those that were built on it. The next fold begins where it did
    before.
    """
    made = of_session(tx, session)
    wanted = next((each for each in made if each.seq == seq), None)
    if wanted is None:
        raise NotFound(f"entry {seq} of this session is no compaction", seq=seq)
    if not wanted.stands:
        raise Conflict("that compaction does not stand any more", seq=seq)
    later = [each for each in made if each.stands and each.seq >= seq]
    taken_back = tuple(each.seq for each in later)
    tape.append(tx, session.session_id, session.owner, [SessionUncompacted(compactions=taken_back)])
    if all(each.event.checkpoint for each in later):
        tx.run(
            "UPDATE sessions SET fold_from = :checkpoint WHERE session_id = :id AND fold_from >"
            " :checkpoint",
            checkpoint=min(each.event.checkpoint for each in later),
            id=session.session_id,
        )
    else:
        sessions.fold_anew(tx, session.session_id)
    return taken_back


def pin(tx: Tx, session: Session, accepted_seq: int, known: set[int], *, removed: bool) -> None:
    """Keep a run whole, or no longer. `known` are those that are kept whole now."""
    if removed != (accepted_seq in known):
        raise Conflict(
            "that is not pinned" if removed else "that is pinned already", seq=accepted_seq
        )
    if not removed and len(known) >= _MOST_PINS:
        raise Conflict(f"a session may have {_MOST_PINS} pins: unpin another one", limit=_MOST_PINS)
    tape.append(
        tx,
        session.session_id,
        session.owner,
        [SessionPinned(accepted_seq=accepted_seq, removed=removed)],
    )
