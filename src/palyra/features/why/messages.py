"""Messages to and from chats: why one was sent, and what came in."""

from typing import TYPE_CHECKING

from palyra.core.events import MessageReceived
from palyra.features.why import rows
from palyra.features.why.calls import step
from palyra.features.why.model import Cause, shorten
from palyra.features.why.rows import SentReply, TapedEvent
from palyra.store.database import Tx

if TYPE_CHECKING:
    from palyra.features.why.trace import Tracer


def received(tx: Tx, message_id: str) -> Cause | None:
    """A message that came in."""
    found = rows.on_system_tape(tx, "message.received", message_id)
    return described(found) if found is not None else None


def described(entry: TapedEvent) -> Cause:
    event = entry.event
    assert isinstance(event, MessageReceived)
    text = f"{event.sender} on {event.connector}: {shorten(event.text)}"
    return step("message", entry, text, names=(event.message_id,))


def sent(tracer: "Tracer", entry: TapedEvent, message_id: str) -> Cause:
    """Say why an entry says that something was sent. Several things can be said to one message:
    what it led to is the same for each.
    """
    run_id = rows.run_of_message(tracer.tx, message_id)
    text = "message sent" if entry.kind == "reply.sent" else "message given up"
    because = (tracer.ended(run_id) if run_id else None) or received(tracer.tx, message_id)
    return step("reply", entry, text, because, names=(message_id,))


def reply(tracer: "Tracer", given: SentReply) -> Cause:
    """Say why a message went to a chat."""
    found = (
        rows.on_system_tape(tracer.tx, "reply.sent", given.message_id, given.ended_ms)
        if given.message_id and given.state == "sent"
        else None
    )
    text = f"{given.kind} to {given.conversation} on {given.connector}: {given.state}"
    because = _because(tracer, given)
    if found is not None:
        return step("reply", found, text, because, names=(given.reply_id,))
    return Cause(
        role="reply",
        text=text,
        names=(given.reply_id,),
        time_ms=given.ended_ms,
        causes=() if because is None else (because,),
    )


def _because(tracer: "Tracer", given: SentReply) -> Cause | None:
    """An answer has the id of its run, a message of the agent that of its call."""
    match given.kind:
        case "answer" | "failure":
            return tracer.ended(given.reply_id) or received(tracer.tx, given.message_id)
        case "message":
            place = rows.place_of_call(tracer.tx, given.reply_id)
            by_call = tracer.call(place[1], given.reply_id) if place else None
            return by_call or tracer.notice(given.reply_id)
        case "approval" | "edit":
            return tracer.approval(rows.question_in_chat(tracer.tx, given.reply_id[:26]))
        case _:
            return received(tracer.tx, given.message_id)
