"""Candidates as rows, each change with its event on the system's tape in the same step; and how far
each session was read.

The rule: a candidate moves only through the table in `domain.learning`, and only here.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import events
from palyra.core.errors import NotFound
from palyra.core.events import AnyEvent, CandidateProposed, CandidateSettled
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.features.learning import model
from palyra.features.learning.model import (
    Candidate,
    CandidateKind,
    CandidateState,
    LearningFinding,
    Move,
)
from palyra.features.learning.procedures import Done
from palyra.features.memory import words
from palyra.store import tape
from palyra.store.database import Tx

_decode = msgspec.json.Decoder(Candidate).decode
_encode = msgspec.json.encode
# What a reflection reads of a tape.
_READ = """('run.accepted', 'input.received', 'tool.proposed', 'tool.finished', 'tool.undone', 'run.completed',
    'session.compacted', 'session.restored')"""  # noqa: E501
# The kinds that the index on what was said knows.
_SAID = "kind IN ('input.received', 'run.completed')"
_MOST_ENTRIES = 2_000


def key(kind: CandidateKind, content: str, about: str) -> bytes:
    """The same for what says the same: a procedure and a permit by what they do, the others by
    their words.
    """
    if kind in ("procedure", "policy"):
        return sha256(f"{kind} {about}".encode()).digest()[:16]
    return words.same_key(content)


def get(tx: Tx, owner: str, candidate_id: str) -> Candidate:
    row = tx.one(
        "SELECT body FROM candidates WHERE candidate_id = :id AND owner = :owner",
        id=candidate_id,
        owner=owner,
    )
    if row is None:
        raise NotFound(
            f"there is no candidate {candidate_id[:64]}: `palyra learn` lists them",
            candidate_id=candidate_id[:64],
        )
    return _decode(row[0])


def listing(
    tx: Tx,
    owner: str,
    states: Sequence[CandidateState],
    kinds: Sequence[CandidateKind] = (),
    before: str = "",
    limit: int = 100,
) -> list[Candidate]:
    """An owner's candidates in these states, newest first, behind the one with this id."""
    in_states = ",".join(f"'{state}'" for state in states)
    of_kinds = f"AND kind IN ({','.join(repr(kind) for kind in kinds)})" if kinds else ""
    rows = tx.all(
        f"""SELECT body FROM candidates WHERE owner = :owner AND state IN ({in_states}) {of_kinds}
        AND (:before = '' OR candidate_id < :before) ORDER BY candidate_id DESC LIMIT :limit""",
        owner=owner,
        before=before,
        limit=limit,
    )
    return [_decode(body) for (body,) in rows]


def counts(tx: Tx, owner: str) -> dict[str, int]:
    return dict(
        tx.all(
            "SELECT state, count(*) FROM candidates WHERE owner = :owner GROUP BY state",
            owner=owner,
        )
    )


def same(tx: Tx, owner: str, finding: LearningFinding) -> Candidate | None:
    """The candidate that says the same already."""
    row = tx.one(
        "SELECT body FROM candidates WHERE owner = :owner AND kind = :kind AND key = :key",
        owner=owner,
        kind=finding.kind,
        key=key(finding.kind, finding.content, finding.about),
    )
    return _decode(row[0]) if row else None


def about_same(tx: Tx, owner: str, finding: LearningFinding) -> list[Candidate]:
    """Candidates that wait and are about the same thing."""
    rows = tx.all(
        """SELECT body FROM candidates WHERE owner = :owner AND about = :about AND about <> '' AND
        kind = :kind
            AND state = 'pending_review'""",
        owner=owner,
        about=finding.about,
        kind=finding.kind,
    )
    return [_decode(body) for (body,) in rows]


def unfinished(tx: Tx) -> list[Candidate]:
    """Return the candidates whose files a crash may have left between two states, anybody's."""
    return [
        _decode(body)
        for (body,) in tx.all("SELECT body FROM candidates WHERE doing <> '' ORDER BY candidate_id")
    ]


def propose(tx: Tx, candidate: Candidate) -> Candidate:
    """Add a candidate, or say anew what is known of one that is there."""
    (entry,) = tape.append(
        tx,
        SYSTEM_TAPE,
        SYSTEM,
        [
            CandidateProposed(
                candidate_id=candidate.candidate_id,
                candidate_kind=candidate.kind,
                content=candidate.content,
                confidence_bps=candidate.confidence_bps,
                risk=candidate.risk,
                evidence=tuple(each.position for each in candidate.evidence),
                owner=candidate.owner,
                session_id=candidate.session_id,
                label=candidate.label,
                found_by=candidate.found_by,
            )
        ],
    )
    return _put(
        tx, msgspec.structs.replace(candidate, position=candidate.position or entry.position)
    )


def settle(
    tx: Tx,
    candidate: Candidate,
    by: Move,
    who: str,
    reason: str = "",
    *,
    reworded: str = "",
    **changes: Any,
) -> Candidate:
    """Move a candidate. What may not move so is an error, and nothing is written. `reworded`: what
    a person has it say from now on.
    """
    if reworded:
        changes["content"] = reworded
    state = model.move(candidate.state, by, candidate.candidate_id)
    changed = msgspec.structs.replace(candidate, state=state, reason=reason, **changes)
    assert state != "proposed"
    event = CandidateSettled(
        candidate_id=candidate.candidate_id,
        state=state,
        reason=reason,
        automatic=changed.automatic,
        became=_became(changed),
        content=reworded,
    )
    tape.append(tx, SYSTEM_TAPE, who, [event])
    return _put(tx, changed)


def note(tx: Tx, candidate: Candidate, **changes: Any) -> Candidate:
    """Change what only the daemon needs to know: whether files are being worked on."""
    return _put(tx, msgspec.structs.replace(candidate, **changes))


def _became(candidate: Candidate) -> str:
    effect = candidate.effect
    named = (("memory", effect.memory_id), ("skill", effect.skill), ("policy", effect.file))
    return (
        next((f"{what} {which}" for what, which in named if which), "")
        if candidate.state in ("applied", "rolled_back")
        else ""
    )


def _put(tx: Tx, candidate: Candidate) -> Candidate:
    candidate = msgspec.structs.replace(candidate, updated_ms=tx.now_ms)
    tx.run(
        """INSERT INTO candidates (candidate_id, owner, kind, state, key, about, doing, body)
        VALUES (:id, :owner, :kind, :state, :key, :about, :doing, :body)
        ON CONFLICT (candidate_id) DO UPDATE SET state = :state, doing = :doing, body = :body""",
        id=candidate.candidate_id,
        owner=candidate.owner,
        kind=candidate.kind,
        state=candidate.state,
        key=key(candidate.kind, candidate.content, candidate.about),
        about=candidate.about,
        doing=candidate.doing,
        body=_encode(candidate),
    )
    return candidate


class SessionLine(Struct, frozen=True):
    """One entry of a session that says something to a reflection."""

    seq: int
    position: int
    run_id: str
    event: AnyEvent


class UnreadStretch(Struct, frozen=True):
    """Unread part of a session, up to the end of a run. `more`: there is still more behind it."""

    session_id: str
    lines: tuple[SessionLine, ...]
    upto_seq: int
    more: bool = False


def stretch(tx: Tx, session_id: str, run_id: str = "") -> UnreadStretch:
    """Return what is to be read of a session now; of one run, if it is named, whether it was read
    before or not.
    """
    begin = 0 if run_id else read_upto(tx, session_id)
    rows = tx.all(
        f"""SELECT seq, position, run_id, body FROM entries WHERE tape = :tape AND seq > :begin AND
        kind IN {_READ}
            AND (:run_id = '' OR run_id = :run_id) ORDER BY seq LIMIT :limit""",
        tape=session_id,
        begin=begin,
        run_id=run_id,
        limit=_MOST_ENTRIES,
    )
    lines = _still_counts(
        [SessionLine(seq, position, run, events.decode(body)) for seq, position, run, body in rows]
    )
    full = len(rows) == _MOST_ENTRIES
    ends = [at for at, line in enumerate(lines) if isinstance(line.event, events.RunCompleted)]
    if not ends:
        # So many entries of one run that its end is not among them: it is passed over, or nothing
        # would ever be read again.
        return UnreadStretch(session_id, (), int(rows[-1][0]) if full else begin, full)
    kept = lines[: ends[-1] + 1]
    return UnreadStretch(session_id, tuple(kept), kept[-1].seq, full)


def _still_counts(lines: list[SessionLine]) -> list[SessionLine]:
    """Drop what was said in parts of a conversation that a rewind removed."""
    for line in lines:
        back = line.event
        if isinstance(back, events.SessionRestored) and back.conversation:
            lines = [each for each in lines if not back.to_seq < each.seq < line.seq]
    return lines


def shortened(whole: UnreadStretch, last_input: int) -> UnreadStretch:
    """Keep only the runs whose inputs lie before or at an entry; all if not even one run does."""
    left_out = next(
        (
            line.seq
            for line in whole.lines
            if isinstance(line.event, events.InputReceived) and line.seq > last_input
        ),
        0,
    )
    ends = [
        at
        for at, line in enumerate(whole.lines)
        if isinstance(line.event, events.RunCompleted) and line.seq < left_out
    ]
    if not left_out or not ends:
        return whole
    kept = whole.lines[: ends[-1] + 1]
    return UnreadStretch(whole.session_id, kept, kept[-1].seq, more=True)


def read_upto(tx: Tx, session_id: str) -> int:
    row = tx.one("SELECT upto_seq FROM reflections WHERE session_id = :id", id=session_id)
    return int(row[0]) if row else 0


def mark_read(tx: Tx, session_id: str, upto_seq: int) -> None:
    tx.run(
        """INSERT INTO reflections (session_id, upto_seq, reflected_ms) VALUES (:id, :seq, :now)
        ON CONFLICT (session_id) DO UPDATE SET upto_seq = max(reflections.upto_seq, :seq),
            reflected_ms = :now""",
        id=session_id,
        seq=upto_seq,
        now=tx.now_ms,
    )


def reflected_ms(tx: Tx, session_id: str) -> int:
    row = tx.one("SELECT reflected_ms FROM reflections WHERE session_id = :id", id=session_id)
    return int(row[0]) if row else 0


class Fed(Struct, frozen=True):
    """A session in which a run was completed since the queue was last fed."""

    session_id: str
    owner: str
    position: int


def feed(tx: Tx, limit: int) -> tuple[list[Fed], bool]:
    """The sessions to reflect on, and whether there are more; the cursor moves behind them."""
    row = tx.one("SELECT fed_position FROM learning_state")
    fed = int(row[0]) if row else 0
    rows = tx.all(
        f"""SELECT e.tape, s.owner, e.position FROM entries e JOIN sessions s ON s.session_id =
        e.tape
        WHERE {_SAID} AND e.kind = 'run.completed' AND e.position > :fed ORDER BY e.position LIMIT
        :limit""",
        fed=fed,
        limit=limit,
    )
    if rows:
        tx.run("UPDATE learning_state SET fed_position = :position", position=rows[-1][2])
    return [Fed(*row) for row in {row[0]: row for row in rows}.values()], len(rows) == limit


def sequences(tx: Tx, owner: str, limit: int) -> list[Done]:
    """Return what runs of this owner did, newest first."""
    rows = tx.all(
        "SELECT body FROM sequences WHERE owner = :owner ORDER BY position DESC LIMIT :limit",
        owner=owner,
        limit=limit,
    )
    return [msgspec.json.decode(body, type=Done) for (body,) in rows]


def keep_sequence(tx: Tx, owner: str, done: Done, most: int) -> None:
    """Remember what a run did; of each owner only so many."""
    tx.run(
        """INSERT INTO sequences (run_id, owner, position, body)
        VALUES (:run_id, :owner, :position, :body)
        ON CONFLICT (run_id) DO UPDATE SET owner = excluded.owner, position = excluded.position,
            body = excluded.body""",
        run_id=done.run_id,
        owner=owner,
        position=done.position,
        body=_encode(done),
    )
    tx.run(
        """DELETE FROM sequences WHERE owner = :owner AND position < coalesce((SELECT position FROM
        sequences
            WHERE owner = :owner ORDER BY position DESC LIMIT 1 OFFSET :most), 0)""",
        owner=owner,
        most=most - 1,
    )


def forget_sequence(tx: Tx, run_id: str) -> None:
    """Forget what a run did: it was undone, so it is no example."""
    tx.run("DELETE FROM sequences WHERE run_id = :run_id", run_id=run_id)


def answers_since(tx: Tx, owner: str, every_ms: int) -> int:
    """The position of this owner's newest answer to an approval that no suggestion was made from; 0
    if one was made lately.
    """
    looked = tx.one(
        "SELECT position, looked_ms FROM learned_answers WHERE owner = :owner", owner=owner
    )
    if looked is not None and looked[1] + every_ms > tx.now_ms:
        return 0
    row = tx.one(
        """SELECT max(position) FROM entries WHERE kind = 'approval.resolved' AND principal = :owner
            AND position > coalesce(:position, (SELECT answers_position FROM learning_state))""",
        owner=owner,
        position=looked[0] if looked else None,
    )
    return int(row[0]) if row and row[0] else 0


def mark_answers(tx: Tx, owner: str, position: int) -> None:
    tx.run(
        """INSERT INTO learned_answers (owner, position, looked_ms) VALUES (:owner, :position, :now)
        ON CONFLICT (owner) DO UPDATE SET position = :position, looked_ms = :now""",
        owner=owner,
        position=position,
        now=tx.now_ms,
    )


def seq_of(tx: Tx, position: int) -> int:
    row = tx.one("SELECT seq FROM entries WHERE position = :position", position=position)
    return int(row[0]) if row else 0
