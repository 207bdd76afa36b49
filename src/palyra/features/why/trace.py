"""The way back from an entry: each step reads the entries that it needs, and asks the next one.

The rule: whatever a run did leads to the input, the schedule or the message that began the run;
what a subagent did leads on to the call that started it.
"""

from palyra.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    InputAssembled,
    InputReceived,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelUsed,
    OwnerNotified,
    ReplyAbandoned,
    ReplySent,
    RoutePlanned,
    RunAccepted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    SessionCompacted,
    SessionRestored,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
    ToolUndone,
)
from palyra.features.why import calls, messages, rows
from palyra.features.why.calls import CallEntries, answer, request, step, undo
from palyra.features.why.model import Cause, approval_ids, call_text, shorten
from palyra.features.why.rows import TapedEvent
from palyra.store.database import Tx

_ENDS = ("run.completed", "run.failed", "run.cancelled")
_MODEL = ("model.replied", "model.failed")
_COST_KINDS = ModelReplied | ModelFailed | ModelUsed | SessionCompacted
_MOST_RESULTS = 20


class Tracer:
    """Tracer of causes within one read of the journal."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx

    def entry(self, entry: TapedEvent) -> Cause:
        """Say why an entry is there."""
        event = entry.event
        match event:
            case ToolUndone():
                found = self._call(entry.run_id, event.call_id)
                return undo(entry, self._outcome(found, entry))
            case SessionRestored():
                return undo(entry)
            case ReplySent() | ReplyAbandoned():
                return messages.sent(self, entry, event.message_id)
            case InputReceived():
                return self._input(entry)
            case InputAssembled():
                return self._prompt(entry)
            case ModelReplied() | ModelFailed() | ModelUsed() | SessionCompacted():
                return self._model(entry)
            case RunCompleted() | RunFailed() | RunCancelled():
                return self._end(entry)
            case RunAccepted():
                return step("run", entry, f"run accepted ({event.origin})", *self._origin(entry))
            case MessageReceived():
                return messages.described(entry)
            case OwnerNotified():
                return step("notice", entry, shorten(event.text))
            case _ if call_id := str(getattr(event, "call_id", "")):
                return self._step_of_call(entry, self._call(entry.run_id, call_id))
            case _ if entry.run_id:
                return step("entry", entry, entry.kind, *self._meanwhile(entry))
            case _:
                return step("entry", entry, entry.kind)

    def _meanwhile(self, entry: TapedEvent) -> tuple[Cause | None, ...]:
        """Return what wrote an entry of a run: the call at work, or else the run itself."""
        last = rows.newest(self.tx, entry.run_id, entry.seq, "tool.started", "tool.finished")
        if last is None or not isinstance(last.event, ToolStarted):
            return self._inputs(entry.run_id, entry.seq)
        call = self._call(entry.run_id, last.event.call_id)
        return tuple(self._behind(call, before=entry.seq))

    def call(self, run_id: str, call_id: str) -> Cause | None:
        """Say why a call did what it did."""
        found = self._call(run_id, call_id)
        newest = found.newest
        return self._step_of_call(newest, found) if newest is not None else None

    def approval(self, approval_id: str) -> Cause | None:
        place = rows.approval(self.tx, approval_id)
        if place is None:
            return None
        return self.entry(rows.at_position(self.tx, place.resolved or place.requested))

    def cost(self, run_id: str) -> Cause:
        """Return what a run cost: each model call with what it was shown, and who let it continue
        beyond a budget.
        """
        spent = [
            self._model(rows.at_position(self.tx, position), deep=False)
            for position in rows.positions_of_cost(self.tx, run_id)
        ]
        budget = [
            self._answered(each)
            for each in rows.of_run(self.tx, run_id, "approval.resolved")
            if not getattr(each.event, "call_id", "")
        ]
        total = sum(each.cost_microusd for each in spent)
        accepted = rows.of_run(self.tx, run_id, "run.accepted")
        return Cause(
            role="cost",
            text=f"{len(spent)} model calls" if len(spent) != 1 else "1 model call",
            by=accepted[0].principal if accepted else "",
            tape=accepted[0].tape if accepted else "",
            run_id=run_id,
            cost_microusd=total,
            causes=(*spent, *budget, *self._inputs(run_id, 1 << 53)),
        )

    def notice(self, notice_id: str) -> Cause | None:
        position = rows.notice_position(self.tx, notice_id)
        return self.entry(rows.at_position(self.tx, position)) if position else None

    def ended(self, run_id: str) -> Cause | None:
        """Say why a run ended as it did; what began it if it has not."""
        ends = rows.of_run(self.tx, run_id, *_ENDS)
        if ends:
            return self._end(ends[-1])
        inputs = self._inputs(run_id, 1 << 53)
        return inputs[0] if inputs else None

    def _end(self, entry: TapedEvent) -> Cause:
        event = entry.event
        text = ""
        match event:
            case RunCompleted(text=said):
                text = f"answered: {shorten(said)}"
            case RunFailed(reason=reason, message=said):
                text = f"failed ({reason}): {shorten(said)}"
            case RunCancelled(reason=reason):
                text = f"cancelled: {shorten(reason)}"
        last = rows.newest(self.tx, entry.run_id, entry.seq, *_MODEL)
        causes = (self._model(last),) if last else self._inputs(entry.run_id, entry.seq)
        return step("answer", entry, text, *causes)

    def _call(self, run_id: str, call_id: str) -> CallEntries:
        return calls.sort(rows.of_call(self.tx, run_id, call_id), call_id)

    def _step_of_call(self, entry: TapedEvent, call: CallEntries) -> Cause:
        """Say why an entry of a call is there: only what came before it counts."""
        event = entry.event
        match event:
            case ToolFinished():
                return self._outcome(call, entry)
            case ToolProposed():
                return self._proposed(call)
            case ToolDecided():
                return self._decided(entry, (self._proposed(call),) if call.proposed else ())
            case ApprovalRequested():
                return request(entry, self._decision(call, alone=True), self._proposed(call))
            case ApprovalResolved():
                return step(
                    "approval",
                    entry,
                    self._answered(entry).text,
                    request(call.requests[event.approval_id])
                    if event.approval_id in call.requests
                    else None,
                    self._proposed(call) if call.proposed else None,
                    *(() if call.proposed else self._inputs(entry.run_id, entry.seq)),
                    names=(event.approval_id,),
                )
            case _ if call.proposed is not None:
                return step(
                    "effect" if entry.kind == "tool.started" and call.effectful else "entry",
                    entry,
                    self._called(call),
                    *self._behind(call, before=entry.seq),
                    names=_call_id(call),
                )
            case _:
                return step("entry", entry, entry.kind, *self._inputs(entry.run_id, entry.seq))

    def _outcome(self, call: CallEntries, asked: TapedEvent) -> Cause:
        """Return what a call did, with how it was allowed and who asked for it."""
        finished = call.finished or asked
        event = finished.event
        names = tuple(each.path for each in call.changes)
        outcome = event.outcome if isinstance(event, ToolFinished) else "not finished"
        changed = f": {len(names)} files changed" if len(names) > 1 else ""
        changed = f": {call.changes[0].change} {names[0]}" if len(names) == 1 else changed
        return step(
            "effect" if call.effectful else "result",
            finished,
            f"{self._called(call)} · {outcome}{changed}",
            *(undo(each) for each in (*call.undone, *self._rewound(call)) if each != asked),
            *self._behind(call),
            names=names,
        )

    def _behind(self, call: CallEntries, before: int = 1 << 53) -> list[Cause | None]:
        """Return what let a call run: attempts, answers to doubts, the decision, the model."""
        attempts = [
            step("attempt", each, f"attempt {at}")
            for at, each in enumerate(call.starts, 1)
            if each.seq < before
        ]
        doubts = [
            self._answered(each, call.requests.get(approval_id))
            for approval_id, each in call.answers.items()
            if each.seq < before and _about(call, approval_id) == "in_doubt"
        ]
        return [
            *doubts,
            *attempts,
            self._decision(call) if call.decided else None,
            self._proposed(call) if call.proposed else None,
        ]

    def _rewound(self, call: CallEntries) -> list[TapedEvent]:
        """The rewinds of the session that put back what the call had changed."""
        if call.finished is None or not call.changes:
            return []
        paths = {each.path for each in call.changes}
        behind = rows.rewinds_behind(self.tx, call.finished.tape, call.finished.seq)
        return [
            each
            for each in behind
            if isinstance(each.event, SessionRestored)
            and any(change.path in paths for change in each.event.changes)
        ]

    def _called(self, call: CallEntries) -> str:
        event = call.proposed.event if call.proposed else None
        return call_text(event.tool, event.arguments) if isinstance(event, ToolProposed) else "call"

    def _decision(self, call: CallEntries, *, alone: bool = False) -> Cause | None:
        """Return what was decided about a call, with who was asked; `alone`: before anybody was."""
        if call.decided is None:
            return None
        answers = [
            self._answered(each, call.requests.get(approval_id))
            for approval_id, each in call.answers.items()
            if _about(call, approval_id) == "tool"
        ]
        pending = [
            request(each)
            for approval_id, each in call.requests.items()
            if approval_id not in call.answers and _about(call, approval_id) == "tool"
        ]
        return self._decided(call.decided, () if alone else (*answers, *pending))

    def _decided(self, entry: TapedEvent, causes: tuple[Cause, ...]) -> Cause:
        event = entry.event
        assert isinstance(event, ToolDecided)
        named = approval_ids(event.reason, event.policies)
        return step(
            "decision",
            entry,
            f"{event.verdict} by {event.by.replace('_', ' ')}: {shorten(event.reason)}",
            *(self._grant(each, entry) for each in named),
            *causes,
            names=event.policies,
            policy_version=event.policy_version,
        )

    def _grant(self, approval_id: str, decided: TapedEvent) -> Cause:
        """Return who had allowed it before: by an answer, or with the schedule that runs it."""
        place = rows.approval(self.tx, approval_id)
        if place is not None and place.resolved:
            resolved = rows.find_position(self.tx, place.resolved)
            if resolved is not None:
                asked = rows.find_position(self.tx, place.requested)
                return answer(resolved, asked, role="grant")
            text = "approved in a session that was sealed"
            return Cause(role="grant", text=text, by=decided.principal, names=(approval_id,))
        accepted = rows.of_run(self.tx, decided.run_id, "run.accepted")
        schedule = self._schedule(accepted[0]) if accepted else None
        return Cause(
            role="grant",
            text="approved beforehand with the schedule" if schedule else "approved before",
            by=schedule.by if schedule else decided.principal,
            names=(approval_id,),
            causes=(schedule,) if schedule else (),
        )

    def _answered(self, entry: TapedEvent, asked: TapedEvent | None = None) -> Cause:
        event = entry.event
        assert isinstance(event, ApprovalResolved)
        if asked is None and (place := rows.approval(self.tx, event.approval_id)):
            asked = rows.find_position(self.tx, place.requested)
        return answer(entry, asked)

    def _proposed(self, call: CallEntries) -> Cause:
        assert call.proposed is not None
        model = (
            (self._model(call.replied),)
            if call.replied
            else self._inputs(call.proposed.run_id, call.proposed.seq)
        )
        return step("call", call.proposed, self._called(call), *model, names=_call_id(call))

    def _model(self, entry: TapedEvent, *, deep: bool = True) -> Cause:
        """A model call: what it was shown and why this model. `deep`: and where that came from."""
        event = entry.event
        assert isinstance(event, _COST_KINDS)
        used = event.usage
        purpose = f" for {event.purpose or event.task}" if isinstance(event, ModelUsed) else ""
        said = f": {shorten(event.message)}" if isinstance(event, ModelFailed) else ""
        text = f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out{purpose}{said}"
        route = prompt = None
        inputs: tuple[Cause, ...] = ()
        if entry.run_id:
            planned = rows.newest(self.tx, entry.run_id, entry.seq, "route.planned")
            if planned is not None and isinstance(planned.event, RoutePlanned):
                route = step("route", planned, shorten(planned.event.reason))
            shown = rows.newest(self.tx, entry.run_id, entry.seq, "input.assembled")
            if shown is not None:
                prompt = self._prompt(shown, deep=deep)
            elif deep:
                inputs = self._inputs(entry.run_id, entry.seq)
        return step(
            "model",
            entry,
            text,
            route,
            prompt,
            *inputs,
            names=(f"{event.provider}/{event.model}",) if event.provider else (),
            cost_microusd=event.cost_microusd,
        )

    def _prompt(self, entry: TapedEvent, *, deep: bool = True) -> Cause:
        """Return what a model was shown, in parts; with its memory, results and inputs."""
        event = entry.event
        assert isinstance(event, InputAssembled)
        recalled = [
            self._memory(entry.principal, memory_id)
            for memory_id in (*(each for each, _ in event.recalled), *event.kept_memory)
        ]
        before = (
            rows.of_run(self.tx, entry.run_id, "tool.proposed", before=entry.seq) if deep else []
        )
        results = [
            step("result", each, call_text(each.event.tool, each.event.arguments))
            for each in before[-_MOST_RESULTS:]
            if isinstance(each.event, ToolProposed)
        ]
        inputs = self._inputs(entry.run_id, entry.seq) if deep else ()
        return step(
            "prompt",
            entry,
            f"turn {event.turn}: {event.tokens:,} of {event.budget:,} tokens",
            *recalled,
            *results,
            *inputs,
            names=tuple(each.source for each in event.parts),
        )

    def _memory(self, owner: str, memory_id: str) -> Cause:
        """An item that was recalled, with the entries that it was learned from."""
        text, taught = rows.remembered(self.tx, owner, memory_id)
        causes = [
            step("entry", each, shorten(str(getattr(each.event, "text", "")) or each.kind))
            for each in taught
        ]
        return Cause(
            role="memory",
            text=shorten(text) or "removed since",
            names=(memory_id,),
            causes=tuple(causes),
        )

    def _inputs(self, run_id: str, before: int) -> tuple[Cause, ...]:
        """Return a run's inputs before an entry. A run without any has another origin."""
        found = rows.of_run(self.tx, run_id, "input.received", before=before)
        if found:
            return tuple(self._input(each, first=at == 0) for at, each in enumerate(found))
        accepted = rows.of_run(self.tx, run_id, "run.accepted")
        return self._origin(accepted[0]) if accepted else ()

    def _input(self, entry: TapedEvent, *, first: bool = True) -> Cause:
        event = entry.event
        assert isinstance(event, InputReceived)
        accepted = rows.of_run(self.tx, entry.run_id, "run.accepted") if first else []
        origin = self._origin(accepted[0]) if accepted else ()
        return step("input", entry, shorten(event.text), *origin)

    def _origin(self, accepted: TapedEvent) -> tuple[Cause, ...]:
        """Return what began a run, if that was no person who typed: a schedule, a message from a
        chat, the call of another run, or a fork.
        """
        event = accepted.event
        assert isinstance(event, RunAccepted)
        if event.commission is not None:
            given = event.commission
            call = self._call(given.run_id, given.call_id)
            if call.spawned is None or call.proposed is None:
                return ()
            behind = self._behind(call, before=call.spawned.seq)
            return (step("subagent", call.spawned, shorten(given.task), *behind),)
        if event.forked_run_id:
            inputs = self._inputs(event.forked_run_id, 1 << 53)
            text = f"fork of run {event.forked_run_id}"
            return (step("fork", accepted, text, *inputs, names=(event.forked_run_id,)),)
        if event.schedule_id:
            schedule = self._schedule(accepted)
            return (schedule,) if schedule else ()
        if event.origin == "channel":
            named = rows.messages_of_run(self.tx, accepted.run_id)
            found = [messages.received(self.tx, each) for each in named]
            return tuple(each for each in found if each is not None)
        return ()

    def _schedule(self, accepted: TapedEvent) -> Cause | None:
        event = accepted.event
        assert isinstance(event, RunAccepted)
        if not event.schedule_id:
            return None
        known = rows.firing(self.tx, event.schedule_id, accepted.run_id)
        made = rows.on_system_tape(self.tx, "admin.changed", event.schedule_id)
        name = known.name or "a schedule that was removed"
        text = f"{name}{f': {known.note}' if known.note else ''}"
        return Cause(
            role="schedule",
            text=text,
            by=known.owner or (made.principal if made else accepted.principal),
            names=(event.schedule_id,),
            kind=made.kind if made else "",
            tape=made.tape if made else "",
            seq=made.seq if made else 0,
            position=made.position if made else 0,
            time_ms=known.due_ms or accepted.time_ms,
        )


def _about(call: CallEntries, approval_id: str) -> str:
    entry = call.requests.get(approval_id)
    event = entry.event if entry else None
    return event.about if isinstance(event, ApprovalRequested) else "tool"


def _call_id(call: CallEntries) -> tuple[str, ...]:
    event = call.proposed.event if call.proposed else None
    return (event.call_id,) if isinstance(event, ToolProposed) else ()
