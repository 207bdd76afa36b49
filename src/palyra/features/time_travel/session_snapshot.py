"""A session as it was after any entry of its tape: what had been said, by which rules, how far its
runs were, and what came since.

The rule: looking changes nothing, and what is shown is folded from the tape by the code that folds
it for a model.
"""

from typing import Any, Literal

from msgspec import Struct

from palyra.agent import session_cache
from palyra.core import ids
from palyra.core.conversation import Conversation
from palyra.core.errors import InvalidInput
from palyra.core.labels import Label
from palyra.core.run_progress import ModelTurn, Summary, Turn, UserTurn
from palyra.core.verdicts import SessionRule
from palyra.features.time_travel import rows
from palyra.features.time_travel.rows import ChangedFile, Lasting, RunThen
from palyra.store import session_rules, sessions, tape
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session

_MOST_RUNS = 100


class ShownCall(Struct, frozen=True, omit_defaults=True):
    call_id: str
    tool: str
    arguments: dict[str, Any]
    # Empty while it has no result.
    outcome: str = ""
    text: str = ""
    undone: bool = False


class ShownTurn(Struct, frozen=True, omit_defaults=True):
    """One turn as a model would have been shown it; `notes` are the daemon's own words to it."""

    seq: int
    who: Literal["user", "model", "summary"]
    text: str = ""
    run_id: str = ""
    notes: tuple[str, ...] = ()
    calls: tuple[ShownCall, ...] = ()


class Moment(Struct, frozen=True, kw_only=True):
    """`unread` was said and had not reached the model; `changed` and `lasting` came after this
    entry.
    """

    session_id: str
    seq: int
    head_seq: int
    time_ms: int
    kind: str
    turns: tuple[ShownTurn, ...]
    left_out: int
    unread: tuple[str, ...]
    label: Label
    rules: tuple[SessionRule, ...]
    runs: tuple[RunThen, ...]
    changed: tuple[ChangedFile, ...]
    lasting: tuple[Lasting, ...]


class Moments:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def at(self, principal: str, session_id: str, seq: int, most_turns: int) -> Moment:
        """The newest turns of the conversation as it was after an entry, and what belongs to it."""
        ids.check(session_id, "session_id")
        return await self._db.read(
            lambda tx: _moment(tx, sessions.get(tx, session_id, principal), seq, most_turns)
        )


def check(session: Session, seq: int) -> None:
    if not 1 <= seq <= session.head_seq:
        raise InvalidInput(
            f"the tape has entries 1 to {session.head_seq}, not {seq}", last=session.head_seq
        )


def _moment(tx: Tx, session: Session, seq: int, most_turns: int) -> Moment:
    check(session, seq)
    conversation = session_cache.conversation_at(tx, session, seq)
    (stored,) = tape.after(tx, session.session_id, seq - 1, 1)
    since = rows.behind(tx, session.session_id, seq)
    turns = conversation.turns[-most_turns:]
    return Moment(
        session_id=session.session_id,
        seq=seq,
        head_seq=session.head_seq,
        time_ms=stored.time_ms,
        kind=stored.kind,
        turns=tuple(map(_shown, turns)),
        left_out=len(conversation.turns) - len(turns),
        unread=_unread(conversation),
        label=conversation.label,
        rules=tuple(session_rules.as_of(tx, session.session_id, seq)),
        runs=rows.run_states(tx, session.session_id, seq, _MOST_RUNS),
        changed=since.changed,
        lasting=since.lasting,
    )


def _unread(conversation: Conversation) -> tuple[str, ...]:
    return tuple(event.text for run in conversation.runs.values() for _, event in run.inputs)


def _shown(turn: Turn) -> ShownTurn:
    match turn:
        case UserTurn():
            said = "\n".join(event.text for event in turn.inputs)
            return ShownTurn(turn.seq, "user", said, turn.run_id, turn.notes)
        case ModelTurn():
            return ShownTurn(turn.seq, "model", turn.reply.text, turn.run_id, calls=_calls(turn))
        case Summary():
            return ShownTurn(turn.seq, "summary", turn.text)


def _calls(turn: ModelTurn) -> tuple[ShownCall, ...]:
    return tuple(
        ShownCall(
            call.call.id,
            call.call.tool,
            call.arguments,
            call.finished.outcome if call.finished else "",
            call.finished.text if call.finished else "",
            call.undone,
        )
        for call in turn.calls
    )
