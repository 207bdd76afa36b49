"""Messages from chat as rows: stored before anything else, moved from state to state, each step
written beside it.

The rule: a message is one row from the moment it is taken, and it is open until it is answered,
refused or failed and told.
"""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.core.events import MessageReceived, MessageRefused
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.labels import untrusted
from palyra.features.channels.model import Inbound, InboundFile, MessageState
from palyra.store import rights, tape
from palyra.store.database import Tx
from palyra.store.dialect import Row
from palyra.store.rights import CHANNELS

OPEN = "state IN ('received', 'held', 'queued')"
_SHOWN_ON_TAPE = 4_000
_LONGEST_DETAIL = 1_000
_COLUMNS = """number, message_id, connector, conversation, thread, sender, state, reason, principal,
    session_id, run_id, files,
    received_ms, ended_ms, body"""


class StoredMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`inbound` is what came, without its files; `files` says how many there are."""

    number: int
    message_id: str
    connector: str
    conversation: str
    thread: str = ""
    sender: str
    state: MessageState
    reason: str = ""
    principal: str = ""
    session_id: str = ""
    run_id: str = ""
    files: int = 0
    received_ms: int
    ended_ms: int = 0
    inbound: Inbound


class MessageStep(Struct, frozen=True):
    """One thing that happened to a message."""

    time_ms: int
    step: str
    detail: str = ""


def _message(row: tuple[Any, ...]) -> StoredMessage:
    values = dict(zip(StoredMessage.__struct_fields__, row, strict=True))
    values["inbound"] = msgspec.json.decode(row[-1], type=Inbound)
    return StoredMessage(**values)


def take(
    tx: Tx, connector: str, message_id: str, principal: str, inbound: Inbound
) -> tuple[str, bool]:
    """Store a message; its id, and whether it was there already. `inbound` has been redacted."""
    known = tx.one(
        "SELECT message_id FROM channel_messages WHERE connector = :connector AND native_id ="
        " :native",
        connector=connector,
        native=inbound.native_id,
    )
    if known is not None:
        add_step(
            tx, str(known[0]), "duplicate", "the platform delivered it again; nothing was done"
        )
        return str(known[0]), True
    tx.run(
        """INSERT INTO channel_messages (message_id, connector, native_id, conversation, thread,
        sender, state, principal, files,
            received_ms, body)
        VALUES (:id, :connector, :native, :conversation, :thread, :sender, 'received', :principal,
        :files, :now, :body)""",
        id=message_id,
        connector=connector,
        native=inbound.native_id,
        conversation=inbound.conversation,
        thread=inbound.thread,
        sender=inbound.sender.handle,
        principal=principal,
        files=len(inbound.files),
        now=tx.now_ms,
        body=msgspec.json.encode(msgspec.structs.replace(inbound, files=())),
    )
    for number, file in enumerate(inbound.files):
        tx.run(
            "INSERT INTO channel_files (message_id, number, name, media_type, data) VALUES (:id,"
            " :number, :name, :media, :data)",
            id=message_id,
            number=number,
            name=file.name,
            media=file.media_type,
            data=file.data,
        )
    event = MessageReceived(
        message_id=message_id,
        connector=connector,
        conversation=inbound.conversation,
        sender=inbound.sender.handle,
        text=inbound.text[:_SHOWN_ON_TAPE],
        label=untrusted(principal),
    )
    tape.append(tx, SYSTEM_TAPE, principal, [event])
    add_step(tx, message_id, "received", f"from {inbound.sender.handle} in {inbound.conversation}")
    return message_id, False


def add_step(tx: Tx, message_id: str, step: str, detail: str = "") -> None:
    tx.run(
        "INSERT INTO channel_steps (message_id, time_ms, step, detail) VALUES (:id, :now, :step,"
        " :detail)",
        id=message_id,
        now=tx.now_ms,
        step=step,
        detail=detail[:_LONGEST_DETAIL],
    )


def steps(tx: Tx, message_id: str) -> list[MessageStep]:
    rows = tx.all(
        "SELECT time_ms, step, detail FROM channel_steps WHERE message_id = :id ORDER BY number",
        id=message_id,
    )
    return [MessageStep(*row) for row in rows]


def find(tx: Tx, message_id: str) -> StoredMessage | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM channel_messages WHERE message_id = :id", id=message_id)
    return _message(row) if row else None


def get(tx: Tx, message_id: str) -> StoredMessage:
    message = find(tx, message_id)
    if message is None:
        raise NotFound(
            f"there is no message {message_id}: `palyra channels trace` lists the newest",
            message_id=message_id,
        )
    return message


def by_native_id(tx: Tx, connector: str, native_id: str) -> StoredMessage | None:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM channel_messages WHERE connector = :connector AND native_id ="
        " :native",
        connector=connector,
        native=native_id,
    )
    return _message(row) if row else None


def files(tx: Tx, message_id: str) -> list[InboundFile]:
    rows = tx.all(
        "SELECT name, data, media_type FROM channel_files WHERE message_id = :id ORDER BY number",
        id=message_id,
    )
    return [InboundFile(*row) for row in rows]


def drop_files(tx: Tx, message_id: str) -> None:
    """Drop the files: they belong to the session now, or nobody wants them."""
    tx.run("DELETE FROM channel_files WHERE message_id = :id", id=message_id)


def open_messages(tx: Tx, state: MessageState) -> list[StoredMessage]:
    """Return the messages in one open state, in the order in which they came."""
    # Not by the plain number: all messages there ever were would be gone through in that order.
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM channel_messages WHERE {OPEN} AND state = :state ORDER BY"
        " number + 0",
        state=state,
    )
    return [_message(row) for row in rows]


def of_run(tx: Tx, run_id: str) -> list[StoredMessage]:
    """The messages that a run answers, in their order."""
    if not run_id:
        return []
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM channel_messages WHERE run_id = :id AND run_id <> '' ORDER BY"
        " number",
        id=run_id,
    )
    return [_message(row) for row in rows]


def move(
    tx: Tx, message_id: str, state: MessageState, step: str, detail: str = "", reason: str = ""
) -> None:
    ended = state in ("answered", "refused", "failed")
    tx.run(
        """UPDATE channel_messages SET state = :state, ended_ms = :ended,
            reason = CASE WHEN :reason = '' THEN reason ELSE :reason END WHERE message_id = :id""",
        state=state,
        ended=tx.now_ms if ended else 0,
        reason=reason,
        id=message_id,
    )
    add_step(tx, message_id, step, detail)


def refuse(tx: Tx, message: StoredMessage, reason: str, sentence: str) -> None:
    move(tx, message.message_id, "refused", "refused", sentence, reason)
    drop_files(tx, message.message_id)
    event = MessageRefused(message_id=message.message_id, reason=reason)
    tape.append(tx, SYSTEM_TAPE, message.principal, [event])


def give_to_run(
    tx: Tx, message_id: str, principal: str, session_id: str, run_id: str, detail: str
) -> None:
    tx.run(
        """UPDATE channel_messages SET state = 'queued', principal = :principal, session_id =
        :session, run_id = :run
        WHERE message_id = :id""",
        id=message_id,
        principal=principal,
        session=session_id,
        run=run_id,
    )
    add_step(tx, message_id, "queued", detail)
    drop_files(tx, message_id)


def counts(tx: Tx, connector: str, sender: str, besides: str = "") -> tuple[int, int]:
    """Return how many messages of a sender came in the last minute, and how many are under way;
    `besides` is not counted.
    """
    recent = tx.one(
        """SELECT count(*) FROM channel_messages WHERE connector = :connector AND sender = :sender
        AND received_ms > :since
            AND message_id <> :besides AND reason <> 'over_limit'""",
        connector=connector,
        sender=sender,
        since=tx.now_ms - 60_000,
        besides=besides,
    )
    waiting = tx.one(
        f"""SELECT count(*) FROM channel_messages
        WHERE {OPEN} AND connector = :connector AND sender = :sender AND message_id <> :besides""",
        connector=connector,
        sender=sender,
        besides=besides,
    )
    return int(recent[0]) if recent else 0, int(waiting[0]) if waiting else 0


def refused_lately(tx: Tx, message: StoredMessage, reason: str, times: int = 1) -> bool:
    """Return whether the sender of a message was refused for this, so often, in the same place in
    the minute before.
    """
    rows = tx.all(
        """SELECT 1 FROM channel_messages WHERE connector = :connector AND sender = :sender AND
        received_ms > :since
            AND reason = :reason AND conversation = :conversation AND message_id <> :besides LIMIT
            :times""",
        connector=message.connector,
        sender=message.sender,
        since=tx.now_ms - 60_000,
        reason=reason,
        conversation=message.conversation,
        besides=message.message_id,
        times=times,
    )
    return len(rows) >= times


def forget_refused(tx: Tx, before_ms: int, after: int, most: int = 500) -> int:
    """Drop messages that were refused before a time, with their steps and what was said to them.
    Gives where to go on; 0: done.

    Anybody can write to us: what they are not heard with must not stay for ever.
    """
    rows = tx.all(
        """SELECT number, message_id FROM channel_messages WHERE number > :after AND state =
        'refused' AND ended_ms < :before
            ORDER BY number LIMIT :most""",
        after=after,
        before=before_ms,
        most=most,
    )
    return _forget(tx, rows, most)


def forget_ended(tx: Tx, before_ms: int, after: int, most: int = 500) -> int:
    """Drop messages that were answered, or failed, before a time, in the same way; what was said
    stays in its session.

    What waits to be sent about one, or is a dead letter that nobody has looked at, keeps it.
    """
    rows = tx.all(
        """SELECT number, message_id FROM channel_messages m WHERE number > :after AND state IN
        ('answered', 'failed')
            AND ended_ms < :before AND NOT EXISTS (SELECT 1 FROM channel_outbox o WHERE o.message_id
            = m.message_id
                AND o.message_id <> '' AND o.state NOT IN ('sent', 'dropped'))
            ORDER BY number LIMIT :most""",
        after=after,
        before=before_ms,
        most=most,
    )
    return _forget(tx, rows, most)


def _forget(tx: Tx, rows: list[Row], most: int) -> int:
    for _, message_id in rows:
        tx.run("DELETE FROM channel_steps WHERE message_id = :id", id=message_id)
        # The last row stays: who sends has read up to its number, which must not be given out
        # again.
        tx.run(
            """DELETE FROM channel_outbox WHERE message_id = :id AND message_id <> '' AND state IN
            ('sent', 'dropped')
                AND number < (SELECT max(number) FROM channel_outbox)""",
            id=message_id,
        )
        tx.run("DELETE FROM channel_messages WHERE message_id = :id", id=message_id)
    return int(rows[-1][0]) if len(rows) == most else 0


def listing(
    tx: Tx, *, connector: str = "", state: str = "", before: int = 1 << 62, limit: int = 100
) -> list[StoredMessage]:
    """The newest first."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM channel_messages WHERE number < :before AND (:connector = '' OR
        connector = :connector)
            AND (:state = '' OR state = :state) ORDER BY number DESC LIMIT :limit""",
        before=before,
        connector=connector,
        state=state,
        limit=limit,
    )
    return [_message(row) for row in rows]


def by_state(tx: Tx, connector: str) -> dict[str, int]:
    rows = tx.all(
        "SELECT state, count(*) FROM channel_messages WHERE connector = :connector GROUP BY state",
        connector=connector,
    )
    return {str(state): int(count) for state, count in rows}


class MessageChange(Struct, frozen=True):
    paused: bool = False
    rules: dict[str, Any] = {}


def changed(tx: Tx) -> dict[str, MessageChange]:
    """Return what was changed of channels. One that somebody else has changed is paused: its owner
    says anew what holds.
    """
    # A name with a colon is a conversation's, not a channel's.
    rows = tx.all(
        f"SELECT {CHANNELS.columns} FROM channel_settings WHERE connector NOT LIKE 'at:%'"
    )
    return {row[0]: _change(tx, row) for row in rows}


def _change(tx: Tx, row: Row) -> MessageChange:
    _, paused, rules, _, _, mac = row
    untouched = not paused and rules in ("{}", b"{}") and not mac
    if untouched or rights.holds(tx, CHANNELS, row):
        return MessageChange(bool(paused), msgspec.json.decode(rules))
    return MessageChange(paused=True)


def _own(tx: Tx, connector: str) -> None:
    """Take out what somebody else has put into a row that is about to be changed: it must not be
    sealed along.
    """
    row = tx.one(
        f"SELECT {CHANNELS.columns} FROM channel_settings WHERE connector = :name", name=connector
    )
    if row is not None and row[-1] and not rights.holds(tx, CHANNELS, row):
        tx.run(
            "UPDATE channel_settings SET paused = 0, rules = '{}' WHERE connector = :name",
            name=connector,
        )


def pause(tx: Tx, connector: str, *, paused: bool, entry: int = 0) -> None:
    _own(tx, connector)
    tx.run(
        """INSERT INTO channel_settings (connector, paused) VALUES (:connector, :paused)
        ON CONFLICT (connector) DO UPDATE SET paused = excluded.paused""",
        connector=connector,
        paused=int(paused),
    )
    rights.seal(tx, CHANNELS, entry, connector=connector)


def set_rules(tx: Tx, connector: str, rules: dict[str, Any], entry: int = 0) -> None:
    _own(tx, connector)
    tx.run(
        """INSERT INTO channel_settings (connector, rules) VALUES (:connector, :rules)
        ON CONFLICT (connector) DO UPDATE SET rules = excluded.rules""",
        connector=connector,
        rules=msgspec.json.encode(rules),
    )
    rights.seal(tx, CHANNELS, entry, connector=connector)


def remember(tx: Tx, connector: str, cursor: str) -> None:
    tx.run(
        """INSERT INTO channel_settings (connector, cursor) VALUES (:connector, :cursor)
        ON CONFLICT (connector) DO UPDATE SET cursor = excluded.cursor""",
        connector=connector,
        cursor=cursor,
    )


def recall(tx: Tx, connector: str) -> str:
    row = tx.one(
        "SELECT cursor FROM channel_settings WHERE connector = :connector", connector=connector
    )
    return str(row[0]) if row else ""


def rules_at(tx: Tx, key: str) -> bytes | None:
    """Return what was stored by `set_rules` under a key, as JSON."""
    row = tx.one("SELECT rules FROM channel_settings WHERE connector = :key", key=key)
    return row[0] if row else None
