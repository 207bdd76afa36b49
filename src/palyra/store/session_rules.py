"""Rules of sessions: what is in force, in a table beside the tape that says who laid it down, when,
and what was removed.
"""

from msgspec import Struct

from palyra.core import events
from palyra.core.errors import LimitExceeded, NotFound
from palyra.core.events import SessionReset, SessionRuled
from palyra.core.verdicts import SessionRule
from palyra.store import tape
from palyra.store.database import Tx

MOST = 32
# A branch's tape begins with its creation and where it comes from; the rules it inherits follow at
# once.
_BIRTH = 2


class StoredRule(Struct, frozen=True):
    rule_id: str
    session_id: str
    words: str
    created_ms: int


def of_session(tx: Tx, session_id: str) -> list[StoredRule]:
    """The rules in force, oldest first."""
    rows = tx.all(
        "SELECT rule_id, session_id, words, created_ms FROM session_rules WHERE session_id = :id"
        " ORDER BY rule_id",
        id=session_id,
    )
    return [StoredRule(*row) for row in rows]


def laid_down(tx: Tx, session_id: str) -> tuple[SessionRule, ...]:
    """The rules in force, as policy is told of them."""
    return tuple(SessionRule(rule.rule_id, rule.words) for rule in of_session(tx, session_id))


def add(tx: Tx, session_id: str, by: str, rule: SessionRule) -> StoredRule:
    """Lay a rule down. One that says the same and is in force already is that one."""
    known = of_session(tx, session_id)
    same = next((each for each in known if each.words == rule.words), None)
    if same is not None:
        return same
    if len(known) >= MOST:
        raise LimitExceeded(f"a session may have {MOST} rules: remove one first", limit=MOST)
    tape.append(tx, session_id, by, [SessionRuled(rule_id=rule.rule_id, words=rule.words)])
    return _insert(tx, session_id, rule)


def _insert(tx: Tx, session_id: str, rule: SessionRule) -> StoredRule:
    made = StoredRule(rule.rule_id, session_id, rule.words, tx.now_ms)
    tx.run(
        "INSERT INTO session_rules (session_id, rule_id, words, created_ms) VALUES (:session_id,"
        " :rule_id, :words, :now)",
        session_id=session_id,
        rule_id=rule.rule_id,
        words=rule.words,
        now=tx.now_ms,
    )
    return made


def remove(tx: Tx, session_id: str, by: str, rule_id: str) -> StoredRule:
    found = next((rule for rule in of_session(tx, session_id) if rule.rule_id == rule_id), None)
    if found is None:
        raise NotFound(f"there is no rule {rule_id} in this session", rule_id=rule_id)
    tape.append(
        tx, session_id, by, [SessionRuled(rule_id=rule_id, words=found.words, removed=True)]
    )
    tx.run(
        "DELETE FROM session_rules WHERE session_id = :id AND rule_id = :rule_id",
        id=session_id,
        rule_id=rule_id,
    )
    return found


def drop(tx: Tx, session_id: str) -> None:
    """A reset ends all rules of a session."""
    tx.run("DELETE FROM session_rules WHERE session_id = :id", id=session_id)


def inherit(tx: Tx, parent_id: str, parent_seq: int, child_id: str, owner: str) -> None:
    """A branch begins with the rules that were in force where it was branched."""
    inherited = as_of(tx, parent_id, parent_seq)
    if inherited:
        tape.append(
            tx,
            child_id,
            owner,
            [SessionRuled(rule_id=each.rule_id, words=each.words) for each in inherited],
        )
    for each in inherited:
        _insert(tx, child_id, each)


def bring_back(tx: Tx, session_id: str, by: str, seq: int) -> None:
    """Put in force again what was in force after an entry and is not now. What was laid down since
    stays: fewer is never meant.
    """
    known = {rule.words for rule in of_session(tx, session_id)}
    missing = [rule for rule in as_of(tx, session_id, seq) if rule.words not in known]
    if missing:
        tape.append(
            tx,
            session_id,
            by,
            [SessionRuled(rule_id=each.rule_id, words=each.words) for each in missing],
        )
    for each in missing:
        _insert(tx, session_id, each)


def as_of(tx: Tx, session_id: str, seq: int) -> list[SessionRule]:
    """The rules that were in force after an entry of a tape."""
    rows = tx.all(
        """SELECT seq, body FROM entries WHERE tape = :tape AND kind IN ('session.ruled', 'session.reset') ORDER BY seq""",  # noqa: E501
        tape=session_id,
    )
    in_force: dict[str, SessionRule] = {}
    branched = tx.one(
        "SELECT 1 FROM sessions WHERE session_id = :id AND parent_id <> ''", id=session_id
    )
    born_with = _BIRTH if branched else -1
    for at, body in rows:
        event = events.decode(body)
        # What a branch was born with holds from its first entry on.
        if at == born_with + 1 and isinstance(event, SessionRuled) and not event.removed:
            born_with += 1
        elif at > seq:
            break
        match event:
            case SessionRuled(removed=True):
                in_force.pop(event.rule_id, None)
            case SessionRuled():
                in_force[event.rule_id] = SessionRule(event.rule_id, event.words)
            case SessionReset():
                in_force.clear()
            case _:
                pass
    return list(in_force.values())
