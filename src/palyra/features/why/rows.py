"""Reading the entries that an answer needs, and no others: by tape and number, by run, by call.

An id is made when the thing begins, so its entry stands near that time; it is looked for there
first.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import events, ids
from palyra.core.errors import NotFound
from palyra.core.events import AnyEvent
from palyra.core.ids import SYSTEM_TAPE
from palyra.store import decisions
from palyra.store.database import Tx

_COLUMNS = "tape, seq, position, time_ms, run_id, principal, kind, body"
_OF_RUN = "run_id = :run_id AND run_id <> ''"
_OF_CALL = (
    "model.replied",
    "tool.proposed",
    "tool.decided",
    "tool.started",
    "tool.finished",
    "tool.undone",
    "approval.requested",
    "approval.resolved",
    "agent.spawned",
    "agent.asked",
    "agent.answered",
)
_CHANGES = ("tool.finished", "tool.undone", "session.restored")
# How far around the time of an id its entry is looked for before everything is gone through.
_BEFORE, _BEHIND = 64, 4_096
# So many of the entries that an item of memory comes from are named.
_MOST_TAUGHT = 3
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class TapedEvent(Struct, frozen=True):
    """One entry with its event decoded."""

    tape: str
    seq: int
    position: int
    time_ms: int
    run_id: str
    principal: str
    kind: str
    event: AnyEvent


def _taped(row: tuple[Any, ...]) -> TapedEvent:
    tape, seq, position, time_ms, run_id, principal, kind, body = row
    event = events.decode(body)
    return TapedEvent(tape, seq, position, time_ms, run_id, principal, kind, event)


def _all(tx: Tx, which: str, **params: Any) -> list[TapedEvent]:
    return [
        _taped(row) for row in tx.all(f"SELECT {_COLUMNS} FROM entries WHERE {which}", **params)
    ]


def _json(values: tuple[str, ...]) -> str:
    return msgspec.json.encode(values).decode()


def at(tx: Tx, tape: str, seq: int) -> TapedEvent:
    found = _all(tx, "tape = :tape AND seq = :seq", tape=tape, seq=seq)
    if not found:
        raise NotFound(f"the session {tape} has no entry {seq}", session_id=tape, seq=seq)
    return found[0]


def at_position(tx: Tx, position: int) -> TapedEvent:
    found = find_position(tx, position)
    if found is None:
        raise NotFound(f"the journal has no entry at position {position}", position=position)
    return found


def find_position(tx: Tx, position: int) -> TapedEvent | None:
    """The entry at a position; None if there is none, or its session was put away."""
    found = _all(tx, "position = :position", position=position)
    return found[0] if found else None


def of_call(tx: Tx, run_id: str, call_id: str) -> list[TapedEvent]:
    """Return all that a run's entries say of one call, in order, with the reply that made it."""
    return _all(
        tx,
        f"""{_OF_RUN} AND kind IN (SELECT value FROM json_each(:kinds))
            AND instr(body, CAST(:call_id AS BLOB)) > 0 ORDER BY seq""",
        run_id=run_id,
        call_id=call_id,
        kinds=_json(_OF_CALL),
    )


def newest(tx: Tx, run_id: str, before: int, *kinds: str) -> TapedEvent | None:
    """The last entry of a run of one of these kinds before a number of its tape."""
    found = _all(
        tx,
        f"""{_OF_RUN} AND seq < :before AND kind IN (SELECT value FROM json_each(:kinds))
            ORDER BY seq DESC LIMIT 1""",
        run_id=run_id,
        before=before,
        kinds=_json(kinds),
    )
    return found[0] if found else None


def of_run(tx: Tx, run_id: str, *kinds: str, before: int = 1 << 53) -> list[TapedEvent]:
    """The entries of a run of these kinds before a number of its tape, in order."""
    return _all(
        tx,
        f"""{_OF_RUN} AND seq < :before AND kind IN (SELECT value FROM json_each(:kinds))
            ORDER BY seq""",
        run_id=run_id,
        before=before,
        kinds=_json(kinds),
    )


def positions_of_cost(tx: Tx, run_id: str) -> list[int]:
    """Return where the model calls of a run stand that count as usage."""
    rows = tx.all("SELECT position FROM usage WHERE run_id = :id ORDER BY position", id=run_id)
    return [int(position) for (position,) in rows]


def place_of_run(tx: Tx, run_id: str) -> tuple[str, str] | None:
    """The session of a run or of an input that joined one, and the run."""
    row = tx.one("SELECT session_id, run_id FROM runs WHERE run_id = :id", id=run_id) or tx.one(
        "SELECT session_id, run_id FROM submissions WHERE submission_id = :id", id=run_id
    )
    return (str(row[0]), str(row[1])) if row else None


def place_of_call(tx: Tx, call_id: str) -> tuple[str, str] | None:
    """The session and the run of a call."""
    row = tx.one("SELECT session_id, run_id FROM effects WHERE call_id = :id", id=call_id)
    if row is None:
        first = _near(tx, "position", "1 = 1", _time_of(call_id))
        row = tx.one(
            """SELECT tape, run_id FROM entries WHERE position BETWEEN :first AND :last
                AND kind = 'tool.proposed' AND instr(body, CAST(:id AS BLOB)) > 0
                ORDER BY position LIMIT 1""",
            first=first - _BEFORE,
            last=first + _BEHIND,
            id=call_id,
        )
    if row is not None:
        return str(row[0]), str(row[1])
    try:
        found = decisions.find(tx, call_id)
    except NotFound:
        return None
    return found.session_id, found.run_id


def on_system_tape(tx: Tx, kind: str, name: str, time_ms: int = 0) -> TapedEvent | None:
    """The first entry of a kind that names something, near the time of its id or the one given."""
    where = "tape = :tape AND kind = :kind AND instr(body, CAST(:name AS BLOB)) > 0"
    params = {"tape": SYSTEM_TAPE, "kind": kind, "name": name}
    first = _near(tx, "seq", "tape = :tape", time_ms or _time_of(name), tape=SYSTEM_TAPE)
    found = _all(
        tx,
        f"{where} AND seq BETWEEN :first AND :last ORDER BY seq LIMIT 1",
        first=first - _BEFORE,
        last=first + _BEHIND,
        **params,
    ) or _all(tx, f"{where} ORDER BY seq LIMIT 1", **params)
    return found[0] if found else None


def _time_of(name: str) -> int:
    """The time that a ULID was made at; 0 if it is none."""
    if not ids.is_ulid(name[:26]):
        return 0
    number = 0
    for char in name[:10]:
        number = number * 32 + _DIGITS.index(char)
    return number


def _near(tx: Tx, column: str, which: str, time_ms: int, **params: Any) -> int:
    """The number of the first entry that is not older than a time, as far as the clock only went
    forward: by halving, so that few entries are looked at.
    """
    row = tx.one(f"SELECT min({column}), max({column}) FROM entries WHERE {which}", **params)
    if row is None or row[0] is None:
        return 0
    low, high = int(row[0]), int(row[1]) + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.one(
            f"""SELECT {column}, time_ms FROM entries WHERE {which} AND {column} >= :middle
            ORDER BY {column} LIMIT 1""",
            middle=middle,
            **params,
        )
        if found is None or found[1] >= time_ms:
            high = middle
        else:
            low = int(found[0]) + 1
    return low


class FileMatch(Struct, frozen=True):
    """Place of a file: the workspace of sessions, and its path below that."""

    workspace: str
    path: str


def changes_of(tx: Tx, owner: str, places: list[FileMatch], limit: int) -> list[TapedEvent]:
    """The entries that changed a file, newest first."""
    found: list[TapedEvent] = []
    for place in places:
        # As the path stands in the entry's JSON.
        needle = msgspec.json.encode(place.path).decode()
        found += _all(
            tx,
            """tape IN (SELECT session_id FROM sessions WHERE owner = :owner AND workspace =
            :workspace)
                AND kind IN (SELECT value FROM json_each(:kinds))
                AND instr(body, CAST(:needle AS BLOB)) > 0 ORDER BY position DESC LIMIT :limit""",
            owner=owner,
            workspace=place.workspace,
            kinds=_json(_CHANGES),
            needle=f'"path":{needle},"change"',
            limit=limit,
        )
    return sorted(found, key=lambda each: -each.position)[:limit]


def rewinds_behind(tx: Tx, tape: str, seq: int) -> list[TapedEvent]:
    """The rewinds of a session behind an entry, in order."""
    return _all(
        tx,
        "tape = :tape AND seq > :seq AND kind = 'session.restored' ORDER BY seq",
        tape=tape,
        seq=seq,
    )


class ApprovalPlace(Struct, frozen=True):
    """Place where an approval was asked and answered in the journal."""

    session_id: str
    requested: int
    resolved: int


def approval(tx: Tx, approval_id: str) -> ApprovalPlace | None:
    row = tx.one(
        """SELECT session_id, requested_position, resolved_position FROM approvals
        WHERE approval_id = :id""",
        id=approval_id,
    )
    return ApprovalPlace(*row) if row else None


class ScheduleFacts(Struct, frozen=True):
    """Facts about the firing that began a run. `name` is empty if the schedule is gone."""

    owner: str = ""
    name: str = ""
    due_ms: int = 0
    note: str = ""


class _Named(Struct, frozen=True):
    name: str = ""


def firing(tx: Tx, schedule_id: str, run_id: str) -> ScheduleFacts:
    schedule = tx.one("SELECT owner, body FROM schedules WHERE schedule_id = :id", id=schedule_id)
    fired = tx.one("SELECT due_ms, note FROM firings WHERE run_id = :id", id=run_id)
    owner, body = schedule if schedule else ("", b"{}")
    due_ms, note = fired if fired else (0, "")
    name = msgspec.json.decode(body, type=_Named).name
    return ScheduleFacts(str(owner), name, int(due_ms), str(note))


def remembered(tx: Tx, owner: str, memory_id: str) -> tuple[str, list[TapedEvent]]:
    """The text of an item of memory and the entries that taught it; nothing if it is gone or
    somebody else's.
    """
    row = tx.one(
        "SELECT text, provenance FROM memory_items WHERE memory_id = :id AND owner = :owner",
        id=memory_id,
        owner=owner,
    )
    if row is None:
        return "", []
    taught = _all(
        tx,
        "position IN (SELECT value FROM json_each(:positions)) ORDER BY position LIMIT :most",
        positions=row[1],
        most=_MOST_TAUGHT,
    )
    return str(row[0]), taught


class SentReply(Struct, frozen=True):
    """A message to a chat; `message_id` is what it answers."""

    reply_id: str
    message_id: str
    connector: str
    conversation: str
    kind: str
    state: str
    ended_ms: int


def replies(tx: Tx, name: str) -> list[SentReply]:
    """Return what was sent under an id, or to answer a message, its first part each."""
    rows = tx.all(
        """SELECT reply_id, message_id, connector, conversation, kind, state, ended_ms
        FROM channel_outbox WHERE part = 0 AND reply_id = :id UNION
        SELECT reply_id, message_id, connector, conversation, kind, state, ended_ms
        FROM channel_outbox WHERE part = 0 AND message_id = :id AND message_id <> ''""",
        id=name,
    )
    return [SentReply(*row) for row in rows]


def messages_of_run(tx: Tx, run_id: str) -> list[str]:
    """The chat messages that a run answers. The first has the id of the run."""
    rows = tx.all(
        "SELECT message_id FROM channel_messages WHERE run_id = :id AND run_id <> '' ORDER BY"
        " number",
        id=run_id,
    )
    return [str(message_id) for (message_id,) in rows] or [run_id]


def run_of_message(tx: Tx, message_id: str) -> str:
    """The run that answers a chat message, empty if none does."""
    row = tx.one("SELECT run_id FROM channel_messages WHERE message_id = :id", id=message_id)
    if row and row[0]:
        return str(row[0])
    place = place_of_run(tx, message_id)
    return place[1] if place else ""


def question_in_chat(tx: Tx, reply_id: str) -> str:
    """The approval that a message to a chat asked for."""
    row = tx.one("SELECT approval_id FROM channel_asked WHERE reply_id = :id", id=reply_id)
    return str(row[0]) if row else ""


def notice_position(tx: Tx, notice_id: str) -> int:
    row = tx.one("SELECT position FROM notices WHERE notice_id = :id", id=notice_id)
    return int(row[0]) if row else 0
