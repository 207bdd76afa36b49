"""What the messages of a session's stream say."""

import msgspec

from palyra.client.http import LinkState, ServerSentEvent
from palyra.core import events
from palyra.core.errors import Conflict, Unavailable
from palyra.core.events import AnyEvent, Entry, LiveEvent, RunCancelled, RunCompleted, RunFailed

_entry = msgspec.json.Decoder(Entry)
_live: msgspec.json.Decoder[LiveEvent] = msgspec.json.Decoder(LiveEvent)
_ENDS = ("run.completed", "run.failed", "run.cancelled")


class RunBroke(Unavailable):
    """The run failed; `details` says why, and where to look."""

    retryable = False


def decode(message: ServerSentEvent | LinkState) -> Entry | LiveEvent | LinkState | None:
    """What a message of a session's stream says; None for what a newer daemon sends and we do not
    know.
    """
    if isinstance(message, LinkState):
        return message
    try:
        match message.event:
            case "entry":
                return _entry.decode(message.data)
            case "live":
                return _live.decode(message.data)
            case _:
                return None
    except msgspec.ValidationError:
        return None


def event_of(entry: Entry) -> AnyEvent:
    """What happened, as one of the kinds of events."""
    return events.decode(entry.event)


def ends(item: Entry | LiveEvent, run_id: str) -> bool:
    return isinstance(item, Entry) and item.run_id == run_id and item.kind in _ENDS


def answer_of(entry: Entry) -> str:
    """The answer that a run's last entry holds, or why there is none."""
    match event_of(entry):
        case RunCompleted(text=text):
            return text
        case RunFailed(reason=reason, message=message):
            raise RunBroke(message, reason=reason, run_id=entry.run_id, session_id=entry.tape)
        case RunCancelled(reason=reason):
            raise Conflict(
                f"the run was cancelled: {reason}", run_id=entry.run_id, session_id=entry.tape
            )
        case _:
            raise ValueError(f"{entry.kind} is not the end of a run")
