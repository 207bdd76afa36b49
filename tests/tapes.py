"""Building tapes by hand for tests of the fold: events in, conversation out."""

from palyra.core import conversation
from palyra.core.conversation import Conversation
from palyra.core.events import (
    AnyEvent,
    Call,
    InputAssembled,
    InputReceived,
    ModelReplied,
    RunAccepted,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.ids import CallId, RunId
from palyra.core.messages import StopReason
from palyra.core.run_progress import RunProgress
from palyra.core.tools import Effect

RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def accepted(text: str = "hello") -> list[AnyEvent]:
    return [RunAccepted(), InputReceived(submission_id=RUN, text=text), RunStarted()]


def assembled(upto: int) -> InputAssembled:
    return InputAssembled(turn=1, upto_seq=upto, parts=(), tokens=0, budget=0)


def call(name: str) -> Call:
    return Call(CallId(name), "fs.read", {"path": name}, native_id=f"n-{name}")


def replied(*calls: str, text: str = "", stop: StopReason = "end") -> ModelReplied:
    return ModelReplied(
        turn=1, provider="p", model="m", text=text, calls=tuple(map(call, calls)), stop=stop
    )


def allowed(name: str, effect: Effect = "pure") -> list[AnyEvent]:
    return [
        ToolProposed(call_id=CallId(name), tool="fs.read", arguments={}, effect=effect),
        ToolDecided(call_id=CallId(name), verdict="allow", reason="r"),
    ]


def started(name: str, attempt: int = 1) -> ToolStarted:
    return ToolStarted(call_id=CallId(name), key=name, attempt=attempt)


def finished(name: str) -> ToolFinished:
    return ToolFinished(call_id=CallId(name), outcome="ok", text=f"result {name}")


def fold(*events: AnyEvent, run_id: str = RUN) -> Conversation:
    return conversation.fold((seq, run_id, seq * 10, event) for seq, event in enumerate(events, 1))


def run_of(folded: Conversation) -> RunProgress:
    return folded.runs[RunId(RUN)]
