"""The conversation of a session, folded from its tape, and what its run must do next.

`Conversation.apply` is the only way state comes about, live or after a crash; `what_next` reads it
and has no memory of its own. Both are pure: the same entries always give the same conversation and
the same next step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from palyra.core import labels, run_state, time_words
from palyra.core.events import (
    AgentSpawned,
    AnswerRefused,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Budgets,
    Call,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    Point,
    RoutePlanned,
    RunAccepted,
    RunCancelled,
    RunClockChanged,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
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
    WaitReason,
    Wanted,
    kind_of,
)
from palyra.core.ids import ApprovalId, RunId
from palyra.core.labels import Label
from palyra.core.run_state import TERMINAL, RunState

_MOST_NAMED = 20
# The tool whose calls are done by subagents, and how many of them work for one run at once.
SPAWN = "agent.spawn"
AGENTS_AT_ONCE = 4
# The parts of an input that are the conversation itself.
_SPOKEN = ("conversation", "input")


@dataclass(slots=True)
class CallProgress:
    """How far one tool call has come."""

    call: Call
    proposed: ToolProposed | None = None
    decided: ToolDecided | None = None
    asked: ApprovalRequested | None = None
    answered: ApprovalResolved | None = None
    started: ToolStarted | None = None
    attempts: int = 0
    finished: ToolFinished | None = None
    undone: bool = False
    # Set when a run of its own does it.
    spawned: AgentSpawned | None = None
    # Set when the program that asked does it.
    handed_over: bool = False

    @property
    def away(self) -> bool:
        """A subagent works on it."""
        return self.spawned is not None and self.finished is None

    @property
    def clients(self) -> bool:
        """It is for the program that asked to do."""
        return self.decided is not None and self.decided.by == "client"

    @property
    def arguments(self) -> dict[str, Any]:
        """Those a person put in their place, else those proposed, else those the model wrote."""
        if self.answered is not None and self.answered.arguments is not None:
            return self.answered.arguments
        return self.proposed.arguments if self.proposed is not None else self.call.arguments

    @property
    def ready(self) -> bool:
        """Decided in its favour and not yet begun."""
        if self.finished or self.started or self.handed_over or not self.decided:
            return False
        return self.decided.verdict == "allow" or (
            self.answered is not None and self.answered.decision == "allow"
        )


@dataclass(slots=True)
class UserTurn:
    """What people said, and `notes` on what happened to the model's work since it last spoke."""

    seq: int
    run_id: str
    accepted_seq: int
    inputs: tuple[InputReceived, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ModelTurn:
    seq: int
    run_id: str
    accepted_seq: int
    reply: ModelReplied
    calls: list[CallProgress]


@dataclass(slots=True)
class Summary:
    """What a compaction left of the turns before it; `points` is what the next one builds on."""

    seq: int
    accepted_seq: int
    text: str
    label: Label = labels.CLEAN
    points: tuple[Point, ...] = ()
    records: int = 0
    from_seq: int = 0


Turn = UserTurn | ModelTurn | Summary


@dataclass(slots=True)
class RunProgress:
    """One unfinished run: its state, its last reply's calls, what it used up."""

    run_id: RunId
    state: RunState
    accepted: RunAccepted
    accepted_seq: int
    inputs: list[tuple[int, InputReceived]] = field(default_factory=list)
    pending: dict[ApprovalId, ApprovalRequested] = field(default_factory=dict)
    last: ModelTurn | None = None
    begun: bool = False
    turns: int = 0
    calls: int = 0
    continued: bool = False
    active_ms: int = 0
    cost_microusd: int = 0
    # Who is being asked, and how far a person let the run go on beyond a budget, by account.
    route: str = ""
    raised: dict[str, int] = field(default_factory=dict)
    last_time_ms: int = 0
    # Model turns of its subagents that have ended. Their calls, their time and their cost are
    # counted with its own.
    agent_turns: int = 0
    tokens: int = 0
    agent_tokens: int = 0
    agent_microusd: int = 0
    # What was shown of a reply that failed, unless a whole one has come since.
    partial: ModelFailed | None = None
    # What the calling program wants, and how many turns there had been when it said so.
    wanted: Wanted | None = None
    wanted_at: int = 0
    # What is wrong with the form of the last answer, and how often that was so.
    refused: str = ""
    refusals: int = 0

    @property
    def waits_for(self) -> WaitReason | None:
        for request in self.pending.values():
            match request.about:
                case "tool":
                    return "approval"
                case "in_doubt":
                    return "in_doubt"
                case "budget":
                    return "budget"
        return None

    @property
    def formed(self) -> bool:
        """The answer is to have a form that can be checked."""
        return self.wanted is not None and self.wanted.form != "text"

    @property
    def budgets(self) -> Budgets:
        return self.accepted.budgets


class Conversation:
    """Everything a model may be shown of a session, and the unfinished runs of that session."""

    def __init__(self, session_id: str = "") -> None:
        self.session_id = session_id
        self.turns: list[Turn] = []
        self.runs: dict[RunId, RunProgress] = {}
        self.label: Label = labels.CLEAN
        self.notes: list[str] = []
        # Where the runs were accepted that are to stay whole.
        self.pins: set[int] = set()
        # Tokens that the last request had beside the conversation.
        self.overhead = 0
        # Whether a person has spoken of times: only then the tools for schedules are worth their
        # tokens.
        self.timely = False
        self.seq = 0

    def apply(self, seq: int, run_id: str, time_ms: int, event: AnyEvent, offset: int = 0) -> None:
        """Fold one entry in. Raises IllegalTransition, and changes nothing, if the run's state
        forbids it.

        `offset` turns an ancestor's positions into this session's own count; it applies to
        positions inside events too.
        """
        seq += offset
        match event:
            case SessionReset():
                self.turns.clear()
                self.notes.clear()
                self.pins.clear()
                self.label = labels.CLEAN
                self.timely = False
            case SessionCompacted():
                self._compact(seq, event, offset)
            case SessionPinned(accepted_seq=pinned, removed=removed):
                (self.pins.discard if removed else self.pins.add)(pinned + offset)
            case SessionRestored():
                self._restore(event, offset)
            case ToolUndone():
                self._undo(event)
            case _ if run_id:
                self._apply_run(seq, RunId(run_id), time_ms, event, offset)
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
        """Whoever folds a tape passes over what does not count any more (`time_travel.surviving`):
        a fold cannot go back itself.
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
        match event:
            case InputReceived():
                run.inputs.append((seq, event))
                self.timely = self.timely or time_words.speaks_of_time(event.text)
            case InputAssembled():
                self._join_inputs(run, event.upto_seq + offset, seq, event.notes)
                # What slid out of the window still counts: the label of what the model has seen is
                # part of the event.
                self.label = labels.join([self.label, *(part.label for part in event.parts)])
                self.overhead = sum(
                    [part.tokens for part in event.parts if part.source not in _SPOKEN]
                )
                if event.from_seq is not None:
                    self.turns = window(self.turns, event.from_seq + offset)
            case ModelReplied():
                self._reply(run, seq, event)
            case ModelFailed():
                run.cost_microusd += event.cost_microusd
                run.tokens += event.usage.input_tokens + event.usage.output_tokens
                if event.text:
                    run.partial = event
            case (
                ToolProposed()
                | ToolDecided()
                | ToolStarted()
                | ToolFinished()
                | ApprovalRequested()
                | ApprovalResolved()
                | AgentSpawned()
            ):
                self._progress(run, event)
            case ToolHandedOver():
                for call in run.last.calls if run.last else ():
                    call.handed_over = call.handed_over or call.call.id in event.calls
            case RunCompleted():
                self._end(run, seq)
            case RunFailed() | RunCancelled():
                self._end(run, seq)
                self._cut_off(run, seq, stopped=isinstance(event, RunCancelled))
            case AnswerRefused(problem=problem):
                run.refused = problem
                run.refusals += 1
            case RunResumed(after="client", wanted=wanted):
                run.wanted, run.wanted_at, run.refusals = wanted, run.turns, 0
            case RunStarted():
                run.begun = True
            case RoutePlanned(provider=provider, model=model):
                run.route = f"{provider}/{model}"
            case _:
                pass

    def _join_inputs(
        self, run: RunProgress, upto_seq: int, seq: int, notes: tuple[str, ...] | None = None
    ) -> None:
        joined = tuple(event for at, event in run.inputs if at <= upto_seq)
        run.inputs = [(at, event) for at, event in run.inputs if at > upto_seq]
        if joined:
            told = tuple(self.notes) if notes is None else notes
            self.turns.append(UserTurn(seq, run.run_id, run.accepted_seq, joined, told))
            self.notes.clear()
            self.label = labels.join([self.label, *(event.brings for event in joined)])

    def _reply(self, run: RunProgress, seq: int, event: ModelReplied) -> None:
        turn = ModelTurn(
            seq, run.run_id, run.accepted_seq, event, [CallProgress(call) for call in event.calls]
        )
        if run.last and run.last.reply.stop == "length" and not run.last.calls:
            run.continued = True
        run.refused = ""
        run.partial = run.partial if event.stop == "interrupted" and not event.text else None
        run.last = turn
        run.turns += 1
        run.calls += len(event.calls)
        run.cost_microusd += event.cost_microusd
        run.tokens += event.usage.input_tokens + event.usage.output_tokens
        self.turns.append(turn)

    def _progress(
        self,
        run: RunProgress,
        event: (
            ToolProposed
            | ToolDecided
            | ToolStarted
            | ToolFinished
            | ApprovalRequested
            | ApprovalResolved
            | AgentSpawned
        ),
    ) -> None:
        for progress in run.last.calls if run.last else ():
            if progress.call.id == event.call_id:
                break
        else:
            _ask_for_more(run, event)
            return
        match event:
            case ToolProposed():
                progress.proposed = event
            case ToolDecided():
                progress.decided = event
            case ToolStarted():
                progress.started = event
                progress.attempts = event.attempt
            case ToolFinished():
                progress.finished = event
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
        """What was shown of a reply that never came to its end stays said, and the model is told
        that it was cut off.
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


class AskModel(Struct, frozen=True):
    """Assemble the input and ask; `continuing` when the last reply was cut off at its length."""

    continuing: bool = False


class Decide(Struct, frozen=True):
    """Validate and judge these calls, all before any of them runs."""

    call_ids: tuple[str, ...]


class Perform(Struct, frozen=True):
    call_ids: tuple[str, ...]


class Settle(Struct, frozen=True):
    """A call began and its result is not on the tape: decide by its effect what that means."""

    call_id: str


class WaitForPerson(Struct, frozen=True):
    reason: WaitReason


class Finish(Struct, frozen=True):
    text: str


class GiveUp(Struct, frozen=True):
    reason: Literal["turn_budget", "call_budget", "time_budget"]


Next = AskModel | Decide | Perform | Settle | WaitForPerson | Finish | GiveUp


def what_next(run: RunProgress) -> Next:
    """The next step of a run that is in progress or waiting. Pure: resume, replay and live work are
    the same call.
    """
    if run.state in TERMINAL or run.state == "accepted":
        raise ValueError(f"a run that is {run.state} has no next step")
    reason = run.waits_for
    if reason is not None:
        return WaitForPerson(reason)
    calls = run.last.calls if run.last is not None else []
    in_doubt = next(
        (call for call in calls if call.started and not call.finished and not call.spawned), None
    )
    if in_doubt is not None:
        # Before any budget: what was begun must be settled, however late it is.
        return Settle(in_doubt.call.id)
    if run.active_ms >= run.budgets.active_ms:
        return GiveUp("time_budget")
    if run.last is not None:
        undecided = tuple(call.call.id for call in calls if not call.decided and not call.finished)
        if undecided:
            if run.calls > run.budgets.calls:
                return GiveUp("call_budget")
            return Decide(undecided)
        ready = _to_perform(calls)
        if ready:
            return Perform(ready)
        if any(call.away for call in calls):
            return WaitForPerson("child")
        if any(call.handed_over and not call.finished for call in calls):
            return WaitForPerson("client")
        if (
            not calls
            and not run.inputs
            and not run.refused
            and run.last.reply.stop != "interrupted"
        ):
            # Two pieces of JSON are none: one that was cut off is refused, and then asked for again
            # as a whole.
            if run.last.reply.stop != "length" or run.continued or run.formed:
                return Finish(_answer(run))
            return (
                AskModel(continuing=True)
                if run.turns + run.agent_turns < run.budgets.turns
                else GiveUp("turn_budget")
            )
    if run.turns + run.agent_turns >= run.budgets.turns:
        return GiveUp("turn_budget")
    return AskModel()


def _to_perform(calls: Sequence[CallProgress]) -> tuple[str, ...]:
    """The calls whose turn it is. While subagents work, only those beside them that are subagents
    too, up to so many at once.
    """
    if not any(call.away for call in calls):
        return tuple(call.call.id for call in calls if call.ready)
    free = AGENTS_AT_ONCE - sum(call.away for call in calls)
    following: list[str] = []
    for call in calls:
        if call.ready and call.call.tool == SPAWN:
            following.append(call.call.id)
        elif call.ready:
            break
    return tuple(following[: max(0, free)])


def _answer(run: RunProgress) -> str:
    return run.last.reply.text if run.last else ""
