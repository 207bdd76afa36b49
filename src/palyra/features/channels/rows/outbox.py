"""The outbox of chats, as rows: one for each message of the platform, in the order in which they
are sent.

The rule: the start of an attempt is on disk before it begins, so that after a crash it is known
which message may have been sent.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.core.events import ReplyAbandoned, ReplySent
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.features.channels.model import Button
from palyra.features.channels.rows import messages
from palyra.store import tape
from palyra.store.database import Tx

# `failure`: what whoever asked is told when their run failed; it ends the message, too.
ReplyKind = Literal[
    "answer", "failure", "told", "approval", "pairing", "command", "message", "edit"
]
_ENDING: frozenset[ReplyKind] = frozenset({"answer", "failure", "command"})
# A dead letter stays until it is sent after all, or dropped by somebody.
ReplyState = Literal["waiting", "sending", "sent", "dead", "dropped"]
# The signal that there is something to send, as the queue's kinds have theirs.
SIGNAL = "channels.outbox"
_COLUMNS = """number, reply_id, part, parts, message_id, connector, conversation, thread, kind,
    state, attempts, ready_ms, error,
    native_id, doubtful, created_ms, ended_ms, body"""


class SentFile(Struct, frozen=True):
    """A file of a session that goes with a message."""

    session_id: str
    artifact: str
    name: str
    media_type: str = "application/octet-stream"


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`edits` is the reply whose text this one replaces."""

    text: str
    reply_to: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[SentFile, ...] = ()
    ping_everyone: bool = False
    edits: str = ""


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message to a chat. `message_id`: what it answers, if it does.

    `doubtful`: nobody knows what became of an attempt. If it was sent, it may have arrived twice;
    if given up, once.
    """

    number: int
    reply_id: str
    part: int
    parts: int
    message_id: str = ""
    connector: str
    conversation: str
    thread: str = ""
    kind: ReplyKind
    state: ReplyState
    attempts: int = 0
    ready_ms: int = 0
    error: str = ""
    native_id: str = ""
    doubtful: bool = False
    created_ms: int
    ended_ms: int = 0
    body: Body

    @property
    def key(self) -> str:
        return f"{self.reply_id}-{self.part}"

    @property
    def lane(self) -> tuple[str, str]:
        return self.connector, self.conversation


def _reply(row: tuple[Any, ...]) -> Reply:
    values = dict(zip(Reply.__struct_fields__, row, strict=True))
    values["doubtful"] = bool(values["doubtful"])
    values["body"] = msgspec.json.decode(row[-1], type=Body)
    return Reply(**values)


def add(
    tx: Tx,
    *,
    reply_id: str,
    connector: str,
    conversation: str,
    thread: str,
    kind: ReplyKind,
    bodies: list[Body],
    message_id: str = "",
) -> bool:
    """Put a reply, in its parts, at the end of what is to be sent; False if it is there already."""
    if tx.one("SELECT 1 FROM channel_outbox WHERE reply_id = :id LIMIT 1", id=reply_id) is not None:
        return False
    for part, body in enumerate(bodies):
        tx.run(
            """INSERT INTO channel_outbox (reply_id, part, parts, message_id, connector,
            conversation, thread, kind, state,
                created_ms, body)
            VALUES (:id, :part, :parts, :message, :connector, :conversation, :thread, :kind,
            'waiting', :now, :body)""",
            id=reply_id,
            part=part,
            parts=len(bodies),
            message=message_id,
            connector=connector,
            conversation=conversation,
            thread=thread,
            kind=kind,
            now=tx.now_ms,
            body=msgspec.json.encode(body),
        )
    tx.signal(SIGNAL)
    return True


def waiting(tx: Tx, connector: str, after: int = 0, limit: int = 1_000) -> list[Reply]:
    """Return what is to be sent behind a number, in its order."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM channel_outbox WHERE state IN ('waiting', 'sending') AND
        connector = :connector
            AND number > :after ORDER BY number LIMIT :limit""",
        connector=connector,
        after=after,
        limit=limit,
    )
    return [_reply(row) for row in rows]


def begin(tx: Tx, reply: Reply) -> Reply | None:
    """An attempt begins, if it is still to be sent. One that a crash cut short may have been sent,
    and has not failed.
    """
    now = find(tx, reply.number)
    if now is None or now.state not in ("waiting", "sending"):
        return None
    cut_short = now.state == "sending"
    tx.run(
        "UPDATE channel_outbox SET state = 'sending', attempts = :attempts, doubtful = :doubtful"
        " WHERE number = :number",
        number=reply.number,
        attempts=max(1, now.attempts) if cut_short else now.attempts + 1,
        doubtful=int(now.doubtful or cut_short),
    )
    return find(tx, reply.number)


def sent(tx: Tx, reply: Reply, native_id: str, *, idempotent: bool) -> None:
    """Mark it as delivered. With the last part of an answer, the messages that it answers are
    answered.
    """
    # Where the platform knows the key, whatever came before was the same message.
    doubtful = reply.doubtful and not idempotent
    tx.run(
        """UPDATE channel_outbox SET state = 'sent', native_id = :native, error = '', ended_ms =
        :now, doubtful = :doubtful
        WHERE number = :number""",
        number=reply.number,
        native=native_id,
        now=tx.now_ms,
        doubtful=int(doubtful),
    )
    if not reply.message_id:
        return
    about = f"part {reply.part + 1} of {reply.parts}" if reply.parts > 1 else ""
    messages.add_step(
        tx,
        reply.message_id,
        "sent",
        " ".join(filter(None, (about, "possibly twice" if doubtful else ""))),
    )
    event = ReplySent(
        message_id=reply.message_id, native_id=native_id, possibly_duplicated=doubtful
    )
    tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])
    if reply.kind in _ENDING and not _unsent(tx, reply.reply_id):
        for message in _answered_by(tx, reply):
            if reply.kind == "failure":
                messages.move(tx, message, "failed", "told", "that the run failed", "run_failed")
            else:
                messages.move(tx, message, "answered", "answered")


def _unsent(tx: Tx, reply_id: str) -> bool:
    return (
        tx.one(
            "SELECT 1 FROM channel_outbox WHERE reply_id = :id AND state <> 'sent' LIMIT 1",
            id=reply_id,
        )
        is not None
    )


def _answered_by(tx: Tx, reply: Reply) -> list[str]:
    """The messages that this reply is the answer to and that are still open, or that failed because
    it could not be sent.
    """
    first = messages.find(tx, reply.message_id)
    if first is None:
        return []
    together = messages.of_run(tx, first.run_id) or [first]
    return [
        each.message_id
        for each in together
        if each.state == "queued" or each.reason == "undeliverable"
    ]


def retry(tx: Tx, reply: Reply, error: str, ready_ms: int, *, counts: bool, doubtful: bool) -> None:
    """Queue it for a retry: it was not sent. `doubtful`: perhaps it was."""
    tx.run(
        """UPDATE channel_outbox SET state = 'waiting', error = :error, ready_ms = :ready, attempts
        = attempts - :back,
            doubtful = CASE WHEN :doubtful = 1 THEN 1 ELSE doubtful END WHERE number = :number AND
            state = 'sending'""",
        number=reply.number,
        doubtful=int(doubtful),
        error=error,
        ready=ready_ms,
        back=0 if counts else 1,
    )
    if reply.message_id and counts:
        messages.add_step(tx, reply.message_id, "not sent", f"attempt {reply.attempts}: {error}")


def abandon(tx: Tx, reply: Reply, error: str, *, doubtful: bool) -> None:
    """Make it a dead letter, with the rest of the same reply: half an answer behind a hole is worse
    than none.
    """
    if doubtful:
        tx.run("UPDATE channel_outbox SET doubtful = 1 WHERE number = :number", number=reply.number)
    tx.run(
        """UPDATE channel_outbox SET state = 'dead', error = :error, ended_ms = :now
        WHERE reply_id = :id AND state IN ('waiting', 'sending')""",
        id=reply.reply_id,
        error=error,
        now=tx.now_ms,
    )
    if not reply.message_id:
        return
    tape.append(
        tx, SYSTEM_TAPE, SYSTEM, [ReplyAbandoned(message_id=reply.message_id, reason=error)]
    )
    if reply.kind in _ENDING:
        for message in _answered_by(tx, reply):
            messages.move(tx, message, "failed", "abandoned", error, "undeliverable")
    else:
        messages.add_step(tx, reply.message_id, "abandoned", error)


def find(tx: Tx, number: int) -> Reply | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM channel_outbox WHERE number = :number", number=number)
    return _reply(row) if row else None


def of_reply(tx: Tx, reply_id: str) -> list[Reply]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM channel_outbox WHERE reply_id = :id ORDER BY part", id=reply_id
    )
    return [_reply(row) for row in rows]


def of_message(tx: Tx, message_id: str) -> list[Reply]:
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM channel_outbox WHERE message_id = :id AND message_id <> '' ORDER"
        " BY number",
        id=message_id,
    )
    return [_reply(row) for row in rows]


def dead(tx: Tx, connector: str = "", limit: int = 100) -> list[Reply]:
    """Dead letters, newest first."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM channel_outbox WHERE state = 'dead' AND (:connector = '' OR
        connector = :connector)
        ORDER BY number DESC LIMIT :limit""",
        connector=connector,
        limit=limit,
    )
    return [_reply(row) for row in rows]


def replay(tx: Tx, reply_id: str) -> list[Reply]:
    """Send a dead letter again, with all its attempts; what of it has arrived is not sent again."""
    if (
        tx.one(
            "SELECT 1 FROM channel_outbox WHERE reply_id = :id AND state = 'dead' LIMIT 1",
            id=reply_id,
        )
        is None
    ):
        raise NotFound(
            f"there is no dead letter {reply_id}: `palyra channels dead` lists them",
            reply_id=reply_id,
        )
    tx.run(
        """UPDATE channel_outbox SET state = 'waiting', attempts = 0, ready_ms = 0, ended_ms = 0
        WHERE reply_id = :id AND state = 'dead'""",
        id=reply_id,
    )
    tx.signal(SIGNAL)
    replies = of_reply(tx, reply_id)
    if replies[0].message_id:
        messages.add_step(tx, replies[0].message_id, "replayed", "sent again by hand")
    return replies


def drop(tx: Tx, reply_id: str) -> list[Reply]:
    """Give a dead letter up for good."""
    if (
        tx.one(
            "SELECT 1 FROM channel_outbox WHERE reply_id = :id AND state = 'dead' LIMIT 1",
            id=reply_id,
        )
        is None
    ):
        raise NotFound(
            f"there is no dead letter {reply_id}: `palyra channels dead` lists them",
            reply_id=reply_id,
        )
    tx.run(
        "UPDATE channel_outbox SET state = 'dropped', ended_ms = :now WHERE reply_id = :id AND"
        " state = 'dead'",
        id=reply_id,
        now=tx.now_ms,
    )
    replies = of_reply(tx, reply_id)
    if replies[0].message_id:
        messages.add_step(tx, replies[0].message_id, "dropped", "given up by hand")
    return replies


def forget(tx: Tx, before_ms: int, most: int = 500) -> bool:
    """Drop what was sent of our own accord before a time, or given up, and where approvals were
    asked that are long answered.

    Whether there is more. What answers a message goes with it.
    """
    rows = tx.all(
        # The last row stays: who sends has read up to its number, which must not be given out
        # again.
        """DELETE FROM channel_outbox WHERE number IN (
            SELECT number FROM channel_outbox WHERE state IN ('sent', 'dropped') AND message_id = ''
            AND ended_ms < :before
                AND number < (SELECT max(number) FROM channel_outbox) LIMIT :most) RETURNING
                number""",
        before=before_ms,
        most=most,
    )
    tx.run(
        """DELETE FROM channel_asked WHERE EXISTS (SELECT 1 FROM approvals a
            WHERE a.approval_id = channel_asked.approval_id AND a.decision <> '' AND a.resolved_ms <
            :before)""",
        before=before_ms,
    )
    return len(rows) == most


def by_state(tx: Tx, connector: str) -> dict[str, int]:
    rows = tx.all(
        """SELECT state, count(*) FROM channel_outbox WHERE connector = :connector AND state NOT IN
        ('sent', 'dropped')
            GROUP BY state""",
        connector=connector,
    )
    return {str(state): int(count) for state, count in rows}


class AskedApproval(Struct, frozen=True):
    approval_id: str
    reply_id: str
    connector: str
    conversation: str
    thread: str


def was_asked(tx: Tx, asked: AskedApproval) -> bool:
    """Note where an approval is asked; False if it is asked there already."""
    rows = tx.all(
        """INSERT INTO channel_asked (approval_id, reply_id, connector, conversation, thread)
        VALUES (:approval_id, :reply_id, :connector, :conversation, :thread) ON CONFLICT DO NOTHING
        RETURNING 1""",
        **{name: getattr(asked, name) for name in AskedApproval.__struct_fields__},
    )
    return bool(rows)


def asked_where(tx: Tx, approval_id: str) -> list[AskedApproval]:
    rows = tx.all(
        "SELECT approval_id, reply_id, connector, conversation, thread FROM channel_asked WHERE"
        " approval_id = :id",
        id=approval_id,
    )
    return [AskedApproval(*row) for row in rows]


# What is put in place of a question when it was answered.
ANSWERED = "e"


def unclosed(tx: Tx) -> list[str]:
    """Approvals that were answered, and whose question in a chat does not say so yet."""
    rows = tx.all(
        """SELECT DISTINCT k.approval_id FROM channel_asked k JOIN approvals a ON a.approval_id =
        k.approval_id
        WHERE a.decision <> '' AND NOT EXISTS (SELECT 1 FROM channel_outbox o WHERE o.reply_id =
        k.reply_id || :answered)""",
        answered=ANSWERED,
    )
    return [str(approval_id) for (approval_id,) in rows]
