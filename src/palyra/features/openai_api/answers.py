"""Answers of runs, as a calling program reads them: the words, the calls that are handed over, what
was used, how it ended; while they come, and from the journal.

The words of a request's answer are all that the agent says until it is done, turn after turn.
Deltas bring them early; the recorded replies say what they were, so that an answer is whole
whatever a slow connection missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from palyra.core import events
from palyra.core.errors import Conflict, InvalidInput, PalyraError, Unavailable
from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    InputReceived,
    ModelDelta,
    ModelReplied,
    RunAccepted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    ToolFinished,
    ToolHandedOver,
    ToolProposed,
    Wanted,
)
from palyra.core.messages import Usage
from palyra.features.openai_api.names import CallerRun, call_name

_BETWEEN = "\n\n"
_delta = msgspec.json.Decoder(ModelDelta)


class _Head(Struct, frozen=True):
    kind: str
    run_id: str = ""
    event: msgspec.Raw = msgspec.Raw()


_head = msgspec.json.Decoder(_Head)
_TOLD = frozenset(
    {
        "model.replied",
        "tool.proposed",
        "tool.handed_over",
        "approval.requested",
        "run.waiting",
        "run.resumed",
        "run.completed",
        "run.failed",
        "run.cancelled",
    }
)


class AnswerFailed(Unavailable):
    """The run that should have answered failed. Asking again starts another one, so nobody should
    do it unasked.
    """

    retryable = False


class HandedCall(Struct, frozen=True):
    name: str
    tool: str
    arguments: str


@dataclass
class Answering:
    """Answer to a request so far. Of a `formed` one only the last word counts, once it is known to
    fit.
    """

    begun: CallerRun
    formed: bool = False
    model: str = ""
    text: list[str] = field(default_factory=list)
    calls: tuple[HandedCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str = ""
    error: PalyraError | None = None
    # What the run waits for while no provider can answer, and how long the caller does.
    waiting: RunWaiting | None = None
    away_s: float = 30.0
    # Parameters of the request that had no effect.
    ignored: tuple[str, ...] = ()
    _stop: str = ""
    _turn: int = 0
    _heard: list[str] = field(default_factory=list)
    _proposed: dict[str, ToolProposed] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return bool(self.finish) or self.error is not None

    def live(self, wire: bytes) -> str:
        """The words that a live event adds."""
        # Most of what is live are words; what tools report on the way is none.
        if self.formed or not wire.startswith(b'{"kind":"model.delta"'):
            return ""
        delta = _delta.decode(wire)
        if delta.run_id != self.begun.run_id or not delta.text:
            return ""
        if delta.turn != self._turn:
            self._turn, self._heard = delta.turn, []
        text = delta.text
        if delta.whole:
            heard = "".join(self._heard)
            text = text[len(heard) :] if text.startswith(heard) else ""
        return self._said(text)

    def entry(self, wire: bytes) -> str:
        """The words that an entry adds, or a note for who looks on."""
        head = _head.decode(wire)
        if head.run_id != self.begun.run_id or head.kind not in _TOLD:
            return ""
        return self.told(events.decode(head.event))

    def told(self, event: AnyEvent) -> str:
        match event:
            case ModelReplied() as replied:
                return self._replied(replied)
            case ToolProposed() as proposed:
                self._proposed[proposed.call_id] = proposed
            case RunWaiting() as waiting:
                self.waiting = waiting
            case RunResumed():
                self.waiting = None
            case ToolHandedOver(calls=calls):
                self.calls = tuple(self._call(each) for each in calls)
                self.finish = "tool_calls"
            case RunCompleted(text=text):
                self.finish = self._stop if self._stop in ("length", "content_filter") else "stop"
                return self._said(text) if self.formed else ""
            case RunFailed(reason="model_bad_request", message=message):
                # The model's own refusal of what was asked for: asking the same again is no use.
                self.error = InvalidInput(message, reason="model_bad_request", **self._where())
            case RunFailed(reason=reason, message=message):
                self.error = AnswerFailed(message, reason=reason, **self._where())
            case RunCancelled(reason=reason):
                self.error = Conflict(
                    f"the run was cancelled: {reason}", reason="cancelled", **self._where()
                )
        return ""

    def asked(self, wire: bytes) -> ApprovalRequested | None:
        """The question that an entry asks a person, if it is one of this run."""
        if b'"approval.requested"' not in wire:
            return None
        head = _head.decode(wire)
        event = events.decode(head.event) if head.run_id == self.begun.run_id else None
        return event if isinstance(event, ApprovalRequested) else None

    def _where(self) -> dict[str, str]:
        return {"run_id": self.begun.run_id, "session_id": self.begun.session_id}

    def _replied(self, replied: ModelReplied) -> str:
        used, more = self.usage, replied.usage
        self.usage = Usage(
            used.input_tokens + more.input_tokens,
            used.output_tokens + more.output_tokens,
            used.cached_tokens + more.cached_tokens,
            used.cache_write_tokens + more.cache_write_tokens,
            used.reasoning_tokens + more.reasoning_tokens,
        )
        self.model = f"{replied.provider}/{replied.model}"
        self._stop = replied.stop
        if self.formed:
            return ""
        if replied.turn != self._turn:
            self._turn, self._heard = replied.turn, []
        heard = "".join(self._heard)
        if replied.text.startswith(heard):
            rest = self._said(replied.text[len(heard) :])
        else:
            # What was heard belonged to an attempt that failed.
            self._heard = []
            rest = self._said(replied.text)
        self._turn, self._heard = 0, []
        return rest

    def _said(self, text: str) -> str:
        if not text:
            return ""
        first = not self._heard
        self._heard.append(text)
        added = _BETWEEN + text if first and self.text else text
        self.text.append(added)
        return added

    def _call(self, call_id: str) -> HandedCall:
        proposed = self._proposed[call_id]
        arguments = msgspec.json.encode(proposed.arguments).decode()
        return HandedCall(call_name(self.begun.run_id, call_id), proposed.tool, arguments)


def asking(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return what was done in the step that asked for the response."""
    found: list[AnyEvent] = []
    for event in events:
        if not isinstance(
            event, RunAccepted | InputReceived | ToolFinished | RunStarted | RunResumed
        ):
            break
        found.append(event)
    return found


def wanted_by(accepted: RunAccepted, since: Sequence[AnyEvent]) -> Wanted | None:
    """Return what the request wanted that these events of a run begin with."""
    resumed = next((event for event in asking(since) if isinstance(event, RunResumed)), None)
    return resumed.wanted if resumed else accepted.wanted
