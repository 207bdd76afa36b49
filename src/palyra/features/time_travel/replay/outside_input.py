"""What came from outside, put on the replayed tape as it was recorded."""

from palyra.core.events import (
    SessionBranched,
    SessionCreated,
    SessionReset,
    SessionRestored,
    SessionRuled,
    SessionUncompacted,
)
from palyra.core.verdicts import SessionRule
from palyra.features.time_travel.replay.script import RecordedEntry
from palyra.store import session_rules, sessions, tape
from palyra.store.database import Tx


def feed(tx: Tx, session_id: str, entry: RecordedEntry) -> None:
    """Put a recorded entry on the tape as it was, with the rows that it implies."""
    tx.now_ms = entry.time_ms
    match entry.event:
        case SessionCreated() as created:
            sessions.create(tx, session_id, created)
        case SessionReset():
            found = sessions.find(tx, session_id=session_id)
            assert found is not None
            sessions.reset(tx, found)
        case SessionRuled(rule_id=rule_id, words=words, removed=removed):
            if removed:
                session_rules.remove(tx, session_id, entry.principal, rule_id)
            else:
                session_rules.add(tx, session_id, entry.principal, SessionRule(rule_id, words))
        case SessionBranched(parent=parent, parent_seq=parent_seq, child=child):
            tape.append(tx, session_id, entry.principal, [entry.event])
            if child == session_id:
                sessions.set_parent(tx, child, parent, parent_seq)
                sessions.fold_anew(tx, child)
        case SessionRestored(conversation=True) | SessionUncompacted():
            tape.append(tx, session_id, entry.principal, [entry.event])
            sessions.fold_anew(tx, session_id)
        case _:
            tape.append(tx, session_id, entry.principal, [entry.event], entry.run_id)
