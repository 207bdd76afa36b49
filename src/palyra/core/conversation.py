"""The conversation of a session, folded from its tape.

`Conversation.apply` is the only way state comes about, live or after a crash, and it is pure: the
same entries always give the same conversation. `core/next_step.py` reads from it what to do next.
"""

from collections.abc import Iterable, Sequence
from typing import get_args

from palyra.core import degenerate, labels, run_state, tool_values, topics
from palyra.core.events import (
    AgentSpawned,
    AnswerRefused,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    PlanDeclared,
    RoutePlanned,
    RunAccepted,
    RunCancelled,
    RunClockChanged,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    SessionCompacted,
    SessionPinned,
    SessionReset,
    SessionRestored,
    SessionUncompacted,
    ToolDecided,
    ToolFinished,
    ToolHandedOver,
    ToolProposed,
    ToolStarted,
    ToolUndone,
    kind_of,
)
from palyra.core.ids import RunId
from palyra.core.labels import Label
from palyra.core.origins import ShownContent
from palyra.core.run_progress import CallProgress, ModelTurn, RunProgress, Summary, Turn, UserTurn

_MOST_NAMED = 20
# The parts of an input that are the conversation itself.
_SPOKEN = ("conversation", "input")
_OF_SESSIONS = (SessionReset, SessionCompacted, SessionPinned, SessionRestored, ToolUndone)
_OfCall = (
    ToolProposed
    | ToolDecided
    | ToolStarted
    | ToolFinished
    | ApprovalRequested
    | ApprovalResolved
    | AgentSpawned
)
_OF_CALLS = get_args(_OfCall)


class Conversation:
    """Everything a model may be shown of a session, and the unfinished runs of that session."""

    def __init__(self, session_id: str = "") -> None:
        self.session_id = session_id
        self.turns: list[Turn] = []
        self.runs: dict[RunId, RunProgress] = {}
        self.label: Label = labels.CLEAN
        # Where the values that a model was shown come from.
        self.shown = ShownContent()
        self.notes: list[str] = []
        # Where the runs were accepted that are to stay whole.
        self.pins: set[int] = set()
        # Tokens that the last request had beside the conversation.
        self.overhead = 0
        # What people have spoken of: only then some tools are worth their tokens.
        self.topics: frozenset[topics.Topic] = frozenset()
        # The budget of the last input if it was fitted to a small window, else 0; the tools that
        # the last such input offered, none: all; and the run that it was for.
        self.small_budget = 0
        self.offered: tuple[str, ...] = ()
        self.offered_in = ""
        self.seq = 0

    def apply(self, seq: int, run_id: str, time_ms: int, event: AnyEvent, offset: int = 0) -> None:
        """Fold one entry in. Raises IllegalTransition, and changes nothing, if the run's state
        forbids it.

        `offset` turns an ancestor's positions into this session's own count; it applies to
        positions inside events too.
        """
        seq += offset
        if not isinstance(event, _OF_SESSIONS):
            # Nearly every event.
            if run_id:
                self._apply_run(seq, RunId(run_id), time_ms, event, offset)
            self.seq = seq
            return
        match event:
            case SessionReset():
                self.turns.clear()
                self.notes.clear()
                self.pins.clear()
                self.label = labels.CLEAN
                self.shown.clear()
                self.topics = frozenset()
                self.offered, self.offered_in = (), ""
            case SessionCompacted():
                self._compact(seq, event, offset)
            case SessionPinned(accepted_seq=pinned, removed=removed):
                (self.pins.discard if removed else self.pins.add)(pinned + offset)
            case SessionRestored():
                self._restore(event, offset)
            case ToolUndone():
                self._undo(event)
        self.seq = seq

    def cut_off(self) -> None:
        """A branch begins here: the parent's runs are not ours to finish, but what was said in them
        was said.
        """
        for run in list(self.runs.values()):
            if run.begun:
                self._join_inputs(run, self.seq, self.seq)
        self.runs.clear()

    def _restore(self, event: SessionRestored, offset: int) -> None:
        """Note a rewind. Callers that fold a tape skip the rewound entries
        (`time_travel.surviving`): a fold cannot go back itself.
        """
        if event.conversation:
            self.turns = [turn for turn in self.turns if turn.seq <= event.to_seq + offset]
            self.cut_off()
        left = _named(event.left)
        if not event.conversation:
            self.notes.append(
                "The user put files back as they were earlier"
                f" ({_named(tuple(each.path for each in event.changes))})."
            )
        elif not event.files:
            self.notes.append(
                "The user took the conversation back to here. What you changed in files afterwards"
                " is still in them."
            )
        if left:
            self.notes.append(
                f"Somebody else had changed these files, so they were left as they are: {left}."
            )

    def _compact(self, seq: int, event: SessionCompacted, offset: int) -> None:
        """A summary takes the place of the turns it was made from, and of the summary before it."""
        self.pins.update(pin + offset for pin in event.pins)
        if event.kept_from:
            # The next fold begins there.
            self.shown.forget_before(event.kept_from + offset)
        upto = event.upto_seq + offset
        kept = [
            turn
            for turn in self.turns
            if not isinstance(turn, Summary)
            and (turn.seq > upto or turn.accepted_seq - offset in event.pins)
        ]
        # A summary says what was read in other words: it is as untrusted and as private as all of
        # that.
        self.label = labels.merge(event.label, self.label)
        from_seq = event.from_seq + offset if event.from_seq else 0
        self.turns = [
            Summary(seq, seq, event.summary, self.label, event.points, event.records, from_seq),
            *kept,
        ]

    def _undo(self, event: ToolUndone) -> None:
        found = self.find_call(event.call_id)
        if event.why == "settled":
            if found is not None:
                found[1].started = None
        else:
            if found is not None:
                found[1].undone = True
            paths = _named(tuple(change.path for change in event.changes))
            self.notes.append(f"The user undid your call of {event.tool or 'a tool'} ({paths}).")

    def _apply_run(
        self, seq: int, run_id: RunId, time_ms: int, event: AnyEvent, offset: int
    ) -> None:
        run = self.runs.get(run_id)
        if run is None:
            # The beginning of a window may cut a finished run in two: what is left of it has
            # nothing to tell.
            if not isinstance(event, RunAccepted):
                return
            self.runs[run_id] = RunProgress(
                run_id, "accepted", event, seq, last_time_ms=time_ms, wanted=event.wanted
            )
            if event.commission is not None:
                # The task was written by somebody who had read all this.
                self.label = labels.merge(self.label, event.commission.label)
            return
        state = run_state.advance(run.state, kind_of(event))
        assert state is not None
        if run.state == "in_progress" and not isinstance(event, RunResumed):
            run.active_ms += (
                event.active_ms
                if isinstance(event, RunClockChanged)
                else max(0, time_ms - run.last_time_ms)
            )
        run.last_time_ms = time_ms
        run.state = state
        if isinstance(event, _OF_CALLS):
            # Most events of a run.
            self._progress(run, seq, event)
            return
        match event:
            case InputReceived():
                run.inputs.append((seq, event))
                self._hear(run, seq, event)
                self.topics |= topics.spoken_of(event.text)
            case InputAssembled():
                self._join_inputs(run, event.upto_seq + offset, seq, event)
                # What slid out of the window still counts: the label of what the model has seen is
                # part of the event.
                self.label = labels.join([self.label, *(part.label for part in event.parts)])
                self.overhead = sum(
                    [part.tokens for part in event.parts if part.source not in _SPOKEN]
                )
                self.small_budget = event.budget if event.fitted else 0
                if event.offered:
                    self.offered, self.offered_in = event.offered, run_id
                if event.from_seq is not None:
                    self.turns = window(self.turns, event.from_seq + offset)
                    self.shown.forget_before(event.from_seq + offset)
            case ModelReplied():
                self._reply(run, seq, event)
            case ModelFailed():
                run.cost_microusd += event.cost_microusd
                run.tokens += event.usage.input_tokens + event.usage.output_tokens
                if event.text:
                    run.partial = event
            case ToolHandedOver():
                for call in run.last.calls if run.last else ():
                    call.handed_over = call.handed_over or call.call.id in event.calls
            case RunCompleted():
                self._end(run, seq)
            case RunFailed() | RunCancelled():
                self._end(run, seq)
                self._cut_off(run, seq, stopped=isinstance(event, RunCancelled))
            case AnswerRefused():
                run.refused, run.flaw = event.problem, event.flaw
                if event.flaw == "form":
                    run.refusals += 1
                elif event.flaw == "arguments":
                    run.told.append(f"arguments:{event.problem}")
                else:
                    run.told.append(event.flaw)
            case RunResumed(after="client", wanted=wanted):
                run.wanted, run.wanted_at, run.refusals = wanted, run.turns, 0
            case RunWaiting():
                self._wait(run, event)
            case RunResumed(after="provider", model=model):
                run.waiting, run.before_try_ms = None, run.active_ms
                run.chosen = model or run.chosen
            case RunStarted():
                run.begun = True
            case PlanDeclared():
                run.plans.append(event)
                self.shown.tickets += event.calls
            case RoutePlanned(provider=provider, model=model):
                run.route = f"{provider}/{model}"
            case _:
                pass

    def _hear(self, run: RunProgress, seq: int, event: InputReceived) -> None:
        """Keep what a person said, and what they named and attached, for the origins of values. A
        subagent's task was written by a model: it asks for something as long as that model had
        read nothing untrusted.
        """
        shown, label = self.shown, event.label
        commission = run.accepted.commission
        if commission is not None:
            shown.turn = event.text if commission.label.integrity == "trusted" else ""
        elif label.integrity == "trusted":
            shown.user(seq, event.text, more=run.heard or len(run.inputs) > 1)
        else:
            shown.source(seq, "untrusted", label.sources, event.text, "")
        given = event.given
        if given is not None:
            shown.user(seq, given.instructions, new=False)
            for role, told in given.told:
                if role == "user":
                    shown.user(seq, told, new=False)
                elif role == "tool":
                    shown.source(seq, "untrusted", ("client",), told, "")
        brought = [(each.label, each.text) for each in event.references]
        brought += [(each.label, each.text) for each in event.attachments]
        for label, text in brought:
            sources = label.sources or label.private_sources or ("attached",)
            shown.source(seq, label.integrity, sources, text, "")

    def _join_inputs(
        self, run: RunProgress, upto_seq: int, seq: int, shown: InputAssembled | None = None
    ) -> None:
        joined = tuple(event for at, event in run.inputs if at <= upto_seq)
        run.inputs = [(at, event) for at, event in run.inputs if at > upto_seq]
        if joined:
            run.interjected = True
            told = tuple(self.notes) if shown is None else shown.notes
            recalled = shown.recalled if shown is not None and not run.heard else ()
            items = tuple([memory_id for memory_id, _ in recalled])
            doubted = shown.doubted if recalled and shown is not None else ()
            self.turns.append(
                UserTurn(seq, run.run_id, run.accepted_seq, joined, told, items, doubted)
            )
            run.heard = True
            self.notes.clear()
            self.label = labels.join([self.label, *(event.brings for event in joined)])

    def _wait(self, run: RunProgress, event: RunWaiting) -> None:
        if run.waited is not None and run.waiting is None:
            run.active_ms = min(run.active_ms, run.before_try_ms)
        run.waiting = run.waited = event

    def _reply(self, run: RunProgress, seq: int, event: ModelReplied) -> None:
        run.waited = None
        turn = ModelTurn(
            seq, run.run_id, run.accepted_seq, event, [CallProgress(call) for call in event.calls]
        )
        before = run.last
        continued = (
            before is not None
            and not before.calls
            and before.reply.stop in degenerate.CUT_OFF
            and not run.interjected
            and not run.refused
        )
        run.pieces = [*run.pieces, before.reply.text] if before is not None and continued else []
        run.interjected = False
        run.repeats.turn_begins()
        run.refused = ""
        run.partial = run.partial if event.stop == "interrupted" and not event.text else None
        run.last = turn
        run.turns += 1
        run.calls += len(event.calls)
        run.cost_microusd += event.cost_microusd
        run.tokens += event.usage.input_tokens + event.usage.output_tokens
        self.turns.append(turn)

    def _progress(self, run: RunProgress, seq: int, event: _OfCall) -> None:
        for progress in run.last.calls if run.last else ():
            if progress.call.id == event.call_id:
                break
        else:
            _ask_for_more(run, event)
            return
        match event:
            case ToolProposed():
                progress.proposed = event
                tool_values.proposed(self.shown, event)
            case ToolDecided():
                progress.decided = event
            case ToolStarted():
                progress.started = event
                progress.attempts = event.attempt
            case ToolFinished():
                progress.finished = event
                progress.finished_seq = seq
                _note(run, progress, event)
                tool_values.finished(self.shown, seq, progress.proposed, event, self.label)
                self.label = labels.merge(self.label, event.label)
                if event.agent is not None:
                    run.agent_turns += event.agent.turns
                    run.agent_tokens += event.agent.input_tokens + event.agent.output_tokens
                    run.agent_microusd += event.agent.cost_microusd
                    run.calls += event.agent.calls
                    run.active_ms += event.agent.active_ms
                    run.cost_microusd += event.agent.cost_microusd
            case AgentSpawned():
                progress.spawned = event
            case ApprovalRequested():
                progress.asked = event
                run.pending[event.approval_id] = event
            case ApprovalResolved():
                run.pending.pop(event.approval_id, None)
                if event.decision == "again":
                    progress.started = None
                elif event.decision in ("allow", "deny", "expired"):
                    progress.answered = event

    def _end(self, run: RunProgress, seq: int) -> None:
        if run.begun and run.inputs:
            # What a person said stays said, even if the model never answered it.
            self._join_inputs(run, seq, seq)
        del self.runs[run.run_id]

    def _cut_off(self, run: RunProgress, seq: int, *, stopped: bool) -> None:
        """Keep the part of an unfinished reply that was shown, and tell the model that it was cut
        off.
        """
        failed, last = run.partial, run.last
        if failed is not None:
            reply = ModelReplied(
                turn=failed.turn,
                provider=failed.provider,
                model=failed.model,
                text=failed.text,
                reasoning=failed.reasoning,
                stop="interrupted",
            )
            self.turns.append(ModelTurn(seq, run.run_id, run.accepted_seq, reply, []))
        # One that input had interrupted is followed by that input, which says what to do instead.
        elif (
            last is None
            or last.reply.stop != "interrupted"
            or not last.reply.text
            or not self.turns
            or self.turns[-1] is not last
        ):
            return
        who = "the user stopped it" if stopped else "it could not be finished"
        self.notes.append(f"Your last reply is incomplete: {who}.")

    def find_call(self, call_id: str) -> tuple[ModelTurn, CallProgress] | None:
        for turn in reversed(self.turns):
            if isinstance(turn, ModelTurn):
                for call in turn.calls:
                    if call.call.id == call_id:
                        return turn, call
        return None


def _ask_for_more(run: RunProgress, event: object) -> None:
    """A question about a budget is about no call. A yes says how far the run may go on."""
    match event:
        case ApprovalRequested(about="budget"):
            run.pending[event.approval_id] = event
        case ApprovalResolved():
            asked = run.pending.pop(event.approval_id, None)
            if asked is not None and asked.budget is not None and event.decision == "allow":
                run.raised[asked.budget.account] = asked.budget.upto


def _named(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more


def window(turns: Iterable[Turn], from_seq: int) -> list[Turn]:
    """The turns of runs accepted at or behind a position, and every summary."""
    return [turn for turn in turns if isinstance(turn, Summary) or turn.accepted_seq >= from_seq]


# Entries of one tape as (seq, run_id, time_ms, event), with what turns their positions into the
# session's own count.
Segment = tuple[int, Sequence[tuple[int, str, int, AnyEvent]]]


def fold(entries: Iterable[tuple[int, str, int, AnyEvent]]) -> Conversation:
    """The conversation after these (seq, run_id, time_ms, event), oldest first."""
    return fold_segments("", [(0, list(entries))])


def fold_segments(session_id: str, segments: Sequence[Segment]) -> Conversation:
    """The conversation of a session whose tape continues others'. Compactions that were taken back
    later count as never made.
    """
    conversation = Conversation(session_id)
    undone = {
        made + offset
        for offset, entries in segments
        for _, _, _, event in entries
        if isinstance(event, SessionUncompacted)
        for made in event.compactions
    }
    for number, (offset, entries) in enumerate(segments):
        if number:
            # A stretch ends where it was branched, or left: its runs are not ours to finish.
            conversation.cut_off()
        for seq, run_id, time_ms, event in entries:
            if isinstance(event, SessionCompacted) and seq + offset in undone:
                conversation.seq = seq + offset
            else:
                conversation.apply(seq, run_id, time_ms, event, offset)
    return conversation


def _note(run: RunProgress, progress: CallProgress, event: ToolFinished) -> None:
    """Keep in mind what a call led to: whether it was done before, and whether it was one."""
    decided = progress.decided
    wrong = decided is not None and decided.by == "catalogue"
    run.repeats.judged(progress.call.tool, wrong=wrong)
    if not wrong and run.told:
        run.told = [each for each in run.told if each != f"arguments:{progress.call.tool}"]
    called = (progress.call.tool, progress.call.arguments)
    if run.repeats.finished(run.turns, called, (event.outcome, event.text)):
        run.told = [each for each in run.told if each.startswith("arguments:")]
