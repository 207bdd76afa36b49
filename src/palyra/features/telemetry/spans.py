"""Spans of a run, read off its tape when it has ended: a trace says what the journal says.

Names follow OpenTelemetry's conventions for generative AI. What was said, and what calls were given
and brought, is left out unless the settings ask for it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from palyra.core.events import (
    AgentSpawned,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    RunAccepted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    ToolDecided,
    ToolFinished,
    ToolHandedOver,
    ToolProposed,
    ToolStarted,
)
from palyra.core.trace_context import TraceParent, parse, span_of, trace_of
from palyra.features.telemetry.otlp import (
    CLIENT,
    INTERNAL,
    SERVER,
    Attributes,
    TraceEvent,
    TraceLink,
    TraceSpan,
    Value,
)

_MS = 1_000_000
_MOST_TEXT = 8_000
# What came of a call counts as an error of its span.
_WRONG = frozenset({"error", "denied", "cancelled", "interrupted", "timeout", "unknown"})


class RunEntry(NamedTuple):
    seq: int
    time_ms: int
    event: AnyEvent


class TracedRun(NamedTuple):
    """A run's entries, with whose they are. `parent_given`: the trace context of the run that
    commissioned it.
    """

    run_id: str
    session_id: str
    principal: str
    entries: Sequence[RunEntry]
    parent_given: str = ""


class _ToolCall:
    """What is known of a call until it ends."""

    __slots__ = ("asked", "attempts", "attributes", "links", "proposed_ms", "started_ms", "tool")

    def __init__(self, proposed: ToolProposed, time_ms: int) -> None:
        self.tool = proposed.tool
        self.proposed_ms = time_ms
        self.started_ms = 0
        self.attempts = 0
        self.asked: tuple[int, ApprovalRequested] | None = None
        self.links: tuple[TraceLink, ...] = ()
        self.attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": proposed.tool,
            "gen_ai.tool.call.id": proposed.call_id,
            "palyra.effect": proposed.effect,
        }


def spans_of(run: TracedRun, *, content: bool = False) -> list[TraceSpan]:
    """Return the spans of a run that has ended, its own first; none, if the program that asked does
    not trace.
    """
    tracing = _Tracing(run, content=content)
    return tracing.spans() if tracing.wanted else []


class _Tracing:
    def __init__(self, run: TracedRun, *, content: bool) -> None:
        self._run = run
        self._content = content
        accepted = (each.event for each in run.entries if isinstance(each.event, RunAccepted))
        self._accepted = next(accepted, RunAccepted())
        given = self._accepted.trace
        self._trace = trace_of(run.run_id, given)
        self._caller: TraceParent | None = parse(given)
        self._root = span_of(run.run_id, "run")
        self._found: list[TraceSpan] = []
        self._calls: dict[str, _ToolCall] = {}
        self._turn = 0
        self._turn_begun: tuple[int, dict[str, Value]] | None = None
        self._last_ms = 0
        self._waiting: tuple[int, int, str, dict[str, Value]] | None = None
        self._about: dict[str, Value] = {}
        self._error = ""
        self._tokens = [0, 0, 0]
        self._microusd = 0

    @property
    def wanted(self) -> bool:
        return self._caller is None or self._caller.sampled

    def spans(self) -> list[TraceSpan]:
        entries = self._run.entries
        if not entries:
            return []
        begun_ms = self._last_ms = entries[0].time_ms
        for entry in entries:
            self._take(entry)
            self._last_ms = entry.time_ms
        self._end_wait(self._last_ms)
        self._end_turn(self._last_ms)
        return [self._of_run(begun_ms), *self._found]

    def _of_run(self, begun_ms: int) -> TraceSpan:
        accepted, run = self._accepted, self._run
        sent, received, cached = self._tokens
        about: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "palyra",
            "gen_ai.conversation.id": run.session_id,
            "gen_ai.usage.input_tokens": sent,
            "gen_ai.usage.output_tokens": received,
            "gen_ai.usage.cache_read.input_tokens": cached,
            "palyra.run.id": run.run_id,
            "palyra.origin": accepted.origin,
            "palyra.cost.microusd": self._microusd,
            "palyra.turns": self._turn,
            "user.id": run.principal,
        }
        if accepted.schedule_id:
            about["palyra.schedule.id"] = accepted.schedule_id
        links: tuple[TraceLink, ...] = ()
        if (commission := accepted.commission) is not None:
            parent = trace_of(commission.run_id, run.parent_given)
            call = span_of(commission.run_id, "tool", commission.call_id)
            links = (TraceLink(parent, call, {"palyra.link": "commissioned by"}),)
        return TraceSpan(
            self._trace,
            self._root,
            self._caller.span_id if self._caller else b"",
            "invoke_agent palyra",
            SERVER if self._caller else INTERNAL,
            begun_ms * _MS,
            self._last_ms * _MS,
            about | self._about,
            events=tuple(self._inputs()),
            links=links,
            error=self._error,
        )

    def _inputs(self) -> Iterable[TraceEvent]:
        for entry in self._run.entries:
            if isinstance(entry.event, InputReceived):
                about: dict[str, Value] = {"palyra.mode": entry.event.mode}
                if self._content:
                    about["palyra.text"] = entry.event.text[:_MOST_TEXT]
                yield TraceEvent(entry.time_ms * _MS, "input.received", about)

    def _take(self, entry: RunEntry) -> None:
        now, event = entry.time_ms, entry.event
        match event:
            case RunStarted():
                if now > (queued := self._run.entries[0].time_ms):
                    self._add("wait queue", "queue", entry.seq, queued, now, {})
            case InputAssembled():
                self._begin_turn(event, now)
            case ModelReplied() | ModelFailed():
                self._model(entry, event)
            case ToolProposed():
                self._propose(event, now)
            case ToolDecided():
                self._decided(event)
            case ApprovalRequested():
                if (call := self._calls.get(event.call_id)) is not None:
                    call.asked = now, event
            case ApprovalResolved():
                self._answered(entry, event)
            case ToolStarted():
                if (call := self._calls.get(event.call_id)) is not None:
                    call.started_ms = call.started_ms or now
                    call.attempts = event.attempt
            case AgentSpawned():
                self._spawned(event)
            case ToolFinished():
                self._finished(event, now)
            case RunWaiting():
                about: dict[str, Value] = {"palyra.cause": event.cause, "palyra.model": event.model}
                self._begin_wait(entry, "wait provider", about)
            case ToolHandedOver():
                self._begin_wait(entry, "wait client", {"palyra.calls": len(event.calls)})
            case RunResumed():
                self._end_wait(now)
            case RunCompleted():
                self._about["palyra.state"] = "done"
                if self._content:
                    self._about["palyra.answer"] = event.text[:_MOST_TEXT]
            case RunFailed():
                self._about |= {"palyra.state": "failed", "error.type": event.reason}
                self._error = event.message if self._content else event.reason
            case RunCancelled():
                self._about |= {"palyra.state": "cancelled", "palyra.reason": event.reason}
            case _:
                pass

    def _begin_turn(self, event: InputAssembled, now: int) -> None:
        if self._turn_begun is not None and event.turn == self._turn:
            return  # asked once more: the turn goes on
        self._end_turn(now)
        self._turn = event.turn
        self._turn_begun = now, {"palyra.turn": event.turn, "palyra.tokens": event.tokens}

    def _model(self, entry: RunEntry, event: ModelReplied | ModelFailed) -> None:
        used = event.usage
        self._tokens[0] += used.input_tokens
        self._tokens[1] += used.output_tokens
        self._tokens[2] += used.cached_tokens
        self._microusd += event.cost_microusd
        about: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": event.provider,
            "gen_ai.request.model": event.model,
            "gen_ai.usage.input_tokens": used.input_tokens,
            "gen_ai.usage.output_tokens": used.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": used.cached_tokens,
            "palyra.cost.microusd": event.cost_microusd,
            "palyra.task": event.task,
        }
        if event.first_delta_ms:
            about["palyra.first_delta_ms"] = event.first_delta_ms
        error = ""
        if isinstance(event, ModelFailed):
            about |= {"error.type": event.failure, "palyra.attempt": event.attempt}
            error = event.failure
        else:
            about["gen_ai.response.finish_reasons"] = (event.stop,)
            if self._content:
                about["palyra.text"] = event.text[:_MOST_TEXT]
        self._add(
            f"chat {event.model}",
            "model",
            entry.seq,
            entry.time_ms - event.duration_ms,
            entry.time_ms,
            about,
            kind=CLIENT,
            error=error,
        )

    def _propose(self, event: ToolProposed, now: int) -> None:
        call = self._calls[event.call_id] = _ToolCall(event, now)
        if self._content:
            arguments = msgspec.json.encode(event.arguments).decode()
            call.attributes["gen_ai.tool.call.arguments"] = arguments[:_MOST_TEXT]

    def _decided(self, event: ToolDecided) -> None:
        if (call := self._calls.get(event.call_id)) is not None:
            call.attributes |= {"palyra.verdict": event.verdict, "palyra.decided_by": event.by}

    def _answered(self, entry: RunEntry, event: ApprovalResolved) -> None:
        call = self._calls.get(event.call_id)
        if call is None or call.asked is None:
            return
        (asked_ms, asked), call.asked = call.asked, None
        about: dict[str, Value] = {
            "gen_ai.tool.name": call.tool,
            "palyra.approval.id": event.approval_id,
            "palyra.risk": asked.risk,
            "palyra.decision": event.decision,
            "palyra.scope": event.scope,
        }
        name = f"wait approval {call.tool}"
        self._add(name, "approval", entry.seq, asked_ms, entry.time_ms, about)

    def _spawned(self, event: AgentSpawned) -> None:
        if (call := self._calls.get(event.call_id)) is not None:
            child = span_of(event.run_id, "run")
            call.links = (TraceLink(trace_of(event.run_id), child, {"palyra.link": "subagent"}),)

    def _finished(self, event: ToolFinished, now: int) -> None:
        call = self._calls.pop(event.call_id, None)
        if call is None:
            return
        about = call.attributes | {"palyra.outcome": event.outcome, "palyra.size": event.size}
        if call.attempts > 1:
            about["palyra.attempts"] = call.attempts
        if self._content:
            about["gen_ai.tool.call.result"] = event.text[:_MOST_TEXT]
        error = event.outcome if event.outcome in _WRONG else ""
        if error:
            about["error.type"] = error
        self._add(
            f"execute_tool {call.tool}",
            "tool",
            event.call_id,
            call.started_ms or call.proposed_ms,
            now,
            about,
            links=call.links,
            error=error,
        )

    def _begin_wait(self, entry: RunEntry, name: str, about: dict[str, Value]) -> None:
        self._end_wait(entry.time_ms)
        self._waiting = entry.seq, entry.time_ms, name, about

    def _end_wait(self, now: int) -> None:
        if self._waiting is not None:
            (seq, since_ms, name, about), self._waiting = self._waiting, None
            self._add(name, "wait", seq, since_ms, now, about)

    def _end_turn(self, now: int) -> None:
        if self._turn_begun is None:
            return
        (begun_ms, about), self._turn_begun = self._turn_begun, None
        span = TraceSpan(
            self._trace,
            span_of(self._run.run_id, "turn", self._turn),
            self._root,
            f"turn {self._turn}",
            INTERNAL,
            begun_ms * _MS,
            now * _MS,
            about,
        )
        self._found.append(span)

    def _add(
        self,
        name: str,
        what: str,
        key: object,
        since_ms: int,
        now_ms: int,
        about: Attributes,
        *,
        kind: int = INTERNAL,
        links: tuple[TraceLink, ...] = (),
        error: str = "",
    ) -> None:
        run_id = self._run.run_id
        parent = self._root
        if self._turn_begun is not None:
            parent = span_of(run_id, "turn", self._turn)
            since_ms = max(since_ms, self._turn_begun[0])
        span_id = span_of(run_id, what, key)
        span = TraceSpan(
            self._trace,
            span_id,
            parent,
            name,
            kind,
            since_ms * _MS,
            now_ms * _MS,
            about,
            links=links,
            error=error,
        )
        self._found.append(span)
