"""Sessions: one row each, beside the tape that says how it came about."""

from typing import Any

from msgspec import Struct

from palyra.core import visible_ranges
from palyra.core.errors import Conflict, Forbidden, NotFound
from palyra.core.events import SessionBranched, SessionChanged, SessionCreated, SessionReset
from palyra.core.ids import SessionId
from palyra.store import rewinds, rights, session_rules, tape
from palyra.store.database import Tx
from palyra.store.rights import SESSIONS

TITLE_LENGTH = 72
_EVERYTHING = 1 << 53
_MOST_ANCESTORS = 64
_COLUMNS = """s.session_id, s.key, s.label, s.title, s.owner, s.device, s.channel, s.workspace,
    s.created_ms, s.updated_ms,
    s.archived, s.parent_id, s.parent_seq, s.fold_from, s.parent_run_id, s.segment_id, s.kept,
    s.model,
    coalesce((SELECT head_seq FROM tapes WHERE tape = s.session_id), 0)"""


_SELECTED = f"{', '.join(f's.{name}' for name in SESSIONS.columns.split(', '))}, {_COLUMNS}"


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: SessionId
    key: str | None = None
    label: str = ""
    title: str = ""
    owner: str
    device: str = ""
    channel: str = ""
    workspace: str = ""
    created_ms: int
    updated_ms: int
    archived: bool = False
    parent_id: str = ""
    parent_seq: int = 0
    fold_from: int = 1
    # Of a subagent's session: the run that it works for.
    parent_run_id: str = ""
    # Set when its tape lies in a segment, from which it can be restored.
    segment_id: str = ""
    # It stays in the journal however old it gets.
    kept: bool = False
    # Which model answers where a message names none; empty: the default one.
    model: str = ""
    # How long the tape is.
    head_seq: int = 0
    # The state of the oldest unfinished run, in listings.
    active: str = ""


def _session(row: tuple[Any, ...]) -> Session:
    names = Session.__struct_fields__
    values = dict(zip(names, row, strict=False))
    values["archived"], values["kept"] = bool(values["archived"]), bool(values["kept"])
    return Session(**values)


def _genuine(tx: Tx, row: tuple[Any, ...]) -> Session | None:
    """Return the session of a row. One that somebody else made, or gave to another, is none."""
    sealed = SESSIONS.width
    return _session(row[sealed:]) if rights.holds(tx, SESSIONS, row[:sealed]) else None


def find(
    tx: Tx,
    *,
    session_id: str = "",
    key: str = "",
    label: str = "",
    owner: str = "",
    device: str = "",
) -> Session | None:
    """A session by id, by unique key, or the owner's newest one with a label, made on a device if
    one is named.
    """
    if session_id:
        row = tx.one(
            f"SELECT {_SELECTED} FROM sessions s WHERE session_id = :session_id",
            session_id=session_id,
        )
    elif key:
        row = tx.one(f"SELECT {_SELECTED} FROM sessions s WHERE key = :key", key=key)
    else:
        row = tx.one(
            f"""SELECT {_SELECTED} FROM sessions s WHERE owner = :owner AND label = :label AND
            :device IN ('', device)
            ORDER BY session_id DESC LIMIT 1""",
            owner=owner,
            label=label,
            device=device,
        )
    return _genuine(tx, row) if row else None


def get(tx: Tx, session_id: str, principal: str, *, in_segment: bool = False) -> Session:
    """The session, if this principal may use it. One whose tape lies in a segment can be looked at,
    not used.
    """
    session = find(tx, session_id=session_id)
    if session is None:
        raise NotFound(f"there is no session {session_id}", session_id=session_id)
    if session.owner != principal:
        raise Forbidden("this session belongs to someone else", session_id=session_id)
    if session.segment_id and not in_segment:
        how = f"`palyra sessions restore {session_id}`"
        raise Conflict(f"this session is sealed: restore it with {how}", session_id=session_id)
    return session


def create(tx: Tx, session_id: str, event: SessionCreated) -> Session:
    tx.run(
        """INSERT INTO sessions (session_id, key, label, title, owner, device, channel, workspace,
        created_ms, updated_ms)
        VALUES (:session_id, :key, :label, :title, :owner, :device, :channel, :workspace, :now,
        :now)""",
        session_id=session_id,
        key=event.key or None,
        label=event.label,
        title=event.title,
        owner=event.owner,
        device=event.device,
        channel=event.channel,
        workspace=event.workspace,
        now=tx.now_ms,
    )
    (entry,) = tape.append(tx, session_id, event.owner, [event])
    rights.seal(tx, SESSIONS, entry.position, session_id=session_id)
    created = find(tx, session_id=session_id)
    assert created is not None
    return created


def branch(tx: Tx, parent: Session, parent_seq: int, child_id: str, title: str) -> Session:
    """A new session that continues from a position of another; both tapes say so."""
    created = SessionCreated(
        owner=parent.owner,
        title=title,
        device=parent.device,
        channel=parent.channel,
        workspace=parent.workspace,
    )
    create(tx, child_id, created)
    tx.run(
        "UPDATE sessions SET parent_id = :parent, parent_seq = :seq, fold_from = :fold, model ="
        " :model WHERE session_id = :child",
        parent=parent.session_id,
        model=parent.model,
        seq=parent_seq,
        # Positions of ancestors are counted back from the child's beginning, 0 being the entry
        # branched at: all of them.
        fold=1 - parent_seq - _before(tx, parent),
        child=child_id,
    )
    rights.seal(tx, SESSIONS, session_id=child_id)
    event = SessionBranched(
        parent=parent.session_id, parent_seq=parent_seq, child=SessionId(child_id)
    )
    tape.append(tx, child_id, parent.owner, [event])
    tape.append(tx, parent.session_id, parent.owner, [event])
    session_rules.inherit(tx, parent.session_id, parent_seq, child_id, parent.owner)
    child = find(tx, session_id=child_id)
    assert child is not None
    return child


def reset(tx: Tx, session: Session) -> None:
    """The next run starts with an empty conversation; session grants and rules are dropped with
    it.
    """
    (entry,) = tape.append(tx, session.session_id, session.owner, [SessionReset()])
    tx.run(
        "UPDATE sessions SET fold_from = :seq WHERE session_id = :id",
        seq=entry.seq,
        id=session.session_id,
    )
    tx.run("DELETE FROM grants WHERE session_id = :id", id=session.session_id)
    session_rules.drop(tx, session.session_id)


def change(tx: Tx, session: Session, event: SessionChanged, *, by: str = "") -> Session:
    """`by`: who changes it, if not its owner."""
    tape.append(tx, session.session_id, by or session.owner, [event])
    tx.run(
        """UPDATE sessions SET title = coalesce(:title, title), archived = coalesce(:archived,
        archived),
            kept = coalesce(:kept, kept), model = coalesce(:model, model), updated_ms = :now
        WHERE session_id = :id""",
        title=event.title,
        archived=event.archived,
        kept=event.kept,
        model=event.model,
        now=tx.now_ms,
        id=session.session_id,
    )
    changed = find(tx, session_id=session.session_id)
    assert changed is not None
    return changed


def touch(tx: Tx, session: Session, first_text: str) -> None:
    """Note that something was said; the first message gives the title if nobody gave one."""
    title = "" if session.title else title_from(first_text)
    if title:
        tx.run(
            "UPDATE sessions SET updated_ms = :now, title = :title WHERE session_id = :id",
            now=tx.now_ms,
            title=title,
            id=session.session_id,
        )
    else:
        tx.run(
            "UPDATE sessions SET updated_ms = :now WHERE session_id = :id",
            now=tx.now_ms,
            id=session.session_id,
        )


def title_from(text: str) -> str:
    # What marks off a file or what was piped in says nothing.
    line = " ".join(word for word in text.split() if not word.startswith("```"))
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def listing(
    tx: Tx,
    owner: str,
    *,
    archived: bool,
    before: tuple[int, str] | None,
    limit: int,
    device: str = "",
) -> list[Session]:
    """The owner's sessions, last used first, paged by (updated_ms, session_id). A subagent's is
    shown with whom it works for.
    """
    updated_ms, session_id = before or (1 << 62, "~")
    rows = tx.all(
        f"""SELECT {_SELECTED}, coalesce((SELECT r.state FROM runs r WHERE r.session_id =
        s.session_id
                AND r.state IN ('accepted', 'in_progress', 'waiting') ORDER BY r.accepted_position
                LIMIT 1), '')
        FROM sessions s WHERE s.owner = :owner AND s.archived = :archived AND s.parent_run_id = ''
            AND :device IN ('', s.device) AND (s.updated_ms, s.session_id) < (:updated_ms,
            :session_id)
        ORDER BY s.updated_ms DESC, s.session_id DESC LIMIT :limit""",
        owner=owner,
        archived=archived,
        updated_ms=updated_ms,
        session_id=session_id,
        limit=limit,
        device=device,
    )
    return [session for row in rows if (session := _genuine(tx, row)) is not None]


class TapeRange(Struct, frozen=True):
    """A part of a tape that belongs to a conversation; `offset` turns its positions into the
    session's own count.
    """

    tape: str
    first: int
    last: int
    offset: int


def lineage(tx: Tx, session: Session, upto: int | None = None) -> list[TapeRange]:
    """The stretches a session's conversation is folded from, oldest first: its ancestors', then its
    own.

    Going back ends where the window begins, or where the conversation began anew; what the session
    was taken back over is passed over. With `upto` the conversation is meant as it was after that
    entry, whatever the window is now.
    """
    window = session.fold_from if upto is None else -_EVERYTHING
    stretches, whole = _stretches(
        tx, session.session_id, window, _EVERYTHING if upto is None else upto, 0
    )
    offset, at = 0, session
    while whole and at.parent_id and window + offset <= 0:
        offset += at.parent_seq
        parent = find(tx, session_id=at.parent_id)
        if parent is None:
            break
        earlier, whole = _stretches(tx, parent.session_id, window + offset, at.parent_seq, offset)
        stretches += earlier
        at = parent
    return stretches[::-1]


def _stretches(
    tx: Tx, tape_id: str, window: int, upto: int, offset: int
) -> tuple[list[TapeRange], bool]:
    """Return what counts of one tape, newest first, and whether it counts from its beginning on."""
    found: list[TapeRange] = []
    for begin, end in reversed(visible_ranges.surviving(rewinds.returns(tx, tape_id), upto)):
        first = max(begin, window, _last_reset(tx, tape_id, begin, end))
        if first <= end:
            found.append(TapeRange(tape_id, first, end, -offset))
        if first > begin:
            return found, False
    return found, True


def _last_reset(tx: Tx, tape_id: str, begin: int, end: int) -> int:
    """Return where the conversation was last reset between two entries, or `begin`."""
    row = tx.one(
        "SELECT max(seq) FROM entries WHERE tape = :tape AND seq BETWEEN :begin AND :end AND kind ="
        " 'session.reset'",
        tape=tape_id,
        begin=begin,
        end=end,
    )
    return int(row[0]) if row and row[0] else begin


def fold_anew(tx: Tx, session_id: str) -> None:
    """Let the next fold of the conversation look for its beginning itself: where the window was
    says nothing any more.
    """
    session = find(tx, session_id=session_id)
    if session is not None:
        tx.run(
            "UPDATE sessions SET fold_from = :first WHERE session_id = :id",
            first=1 - _before(tx, session),
            id=session_id,
        )


def _before(tx: Tx, session: Session) -> int:
    """Return how many entries of its ancestors stand before a session's first one."""
    count, at = 0, session
    for _ in range(_MOST_ANCESTORS):
        if not at.parent_id:
            break
        count += at.parent_seq
        parent = find(tx, session_id=at.parent_id)
        if parent is None:
            break
        at = parent
    return count


def ancestors(tx: Tx, session_id: str) -> list[str]:
    """A session and those it was branched from, itself first."""
    found = [session_id]
    while len(found) < _MOST_ANCESTORS:
        row = tx.one("SELECT parent_id FROM sessions WHERE session_id = :id", id=found[-1])
        if not row or not row[0]:
            break
        found.append(str(row[0]))
    return found


def set_parent(tx: Tx, child: str, parent: str, parent_seq: int) -> None:
    """Make a session the branch of another from one of its entries on."""
    tx.run(
        "UPDATE sessions SET parent_id = :parent, parent_seq = :seq WHERE session_id = :child",
        parent=parent,
        seq=parent_seq,
        child=child,
    )
    rights.seal(tx, SESSIONS, session_id=child)
