"""The recorded tape as a script: what comes next, who has to bring it about, and what the world
answered.

Everything is looked up by position: what is behind the head of the replayed tape has happened, what
is before it has not. So a replay that starts in the middle, or again after a crash, needs no memory
of its own.

What came from outside, put on the replayed tape as it was recorded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from palyra.core import events
from palyra.core.events import (
    AgentEnd,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Attestation,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    RunClockChanged,
    RunFailed,
    RunResumed,
    RunWaiting,
    SessionBranched,
    SessionCreated,
    SessionReset,
    SessionRestored,
    SessionRuled,
    SessionUncompacted,
    ToolDecided,
    ToolFinished,
    ToolUndone,
)
from palyra.core.verdicts import SessionRule
from palyra.features.time_travel.replay.recording import Recording
from palyra.store import session_rules, sessions, tape
from palyra.store.database import Tx

# What the loop brings about by itself; everything else is brought to it.
_OWN_DOING = frozenset(
    {
        "run.started",
        "run.resumed",
        "run.waiting",
        "run.clock_changed",
        "run.completed",
        "run.failed",
        "input.assembled",
        "route.planned",
        "model.replied",
        "model.failed",
        "tool.proposed",
        "tool.decided",
        "tool.started",
        "tool.finished",
        "tool.undone",
        "approval.requested",
        "tool.handed_over",
        "answer.refused",
        "plan.declared",
        "agent.spawned",
    }
)
_ENDS = frozenset({"run.completed", "run.failed", "run.cancelled"})
_BUDGETS = frozenset({"turn_budget", "call_budget", "time_budget"})


@dataclass(slots=True, frozen=True)
class RecordedEntry:
    """One entry of the recorded tape."""

    seq: int
    time_ms: int
    run_id: str
    principal: str
    kind: str
    event: AnyEvent


@dataclass(slots=True, frozen=True)
class Unit:
    """Unit from outside that is due at a position: how to do it, and the last entry that comes of
    it.
    """

    how: Literal["feed", "answer", "cancel", "restart", "time"]
    entry: RecordedEntry
    last: int


class RecordedScript:
    def __init__(self, recording: Recording) -> None:
        self.entries = [
            RecordedEntry(
                entry.seq,
                entry.time_ms,
                entry.run_id,
                entry.principal,
                entry.kind,
                events.decode(bytes(entry.event)),
            )
            for entry in recording.own
        ]
        self.last = recording.last
        decided = (each.event for each in self.entries if isinstance(each.event, ToolDecided))
        self.decisions: dict[str, ToolDecided] = {event.call_id: event for event in decided}

    def at(self, seq: int) -> RecordedEntry | None:
        return self.entries[seq - 1] if 1 <= seq <= self.last else None

    def after(self, head: int, run_id: str = "") -> Iterator[RecordedEntry]:
        for number in range(head, self.last):
            entry = self.entries[number]
            if not run_id or entry.run_id == run_id:
                yield entry

    def expect(self, head: int, run_id: str, *kinds: str) -> RecordedEntry | None:
        """The next entry of a run of one of these kinds, unless the run is stopped before it."""
        for entry in self.after(head, run_id):
            if entry.kind in kinds:
                return entry
            if entry.kind in _ENDS or (
                isinstance(entry.event, RunResumed) and entry.event.after == "crash"
            ):
                return None
        return None

    def clock_changed(self, seq: int) -> RunClockChanged | None:
        """Return what the clock did before the entry behind this position."""
        entry = self.at(seq + 1)
        return (
            entry.event if entry is not None and isinstance(entry.event, RunClockChanged) else None
        )

    def before(self, head: int, run_id: str, kind: str) -> RecordedEntry | None:
        for number in range(min(head, self.last) - 1, -1, -1):
            entry = self.entries[number]
            if entry.run_id == run_id and entry.kind == kind:
                return entry
        return None

    def unit(self, seq: int) -> Unit | None:
        """Return what has to be done from outside so that the entry at this position comes about;
        None if the loop does it.
        """
        while self.clock_changed(seq - 1) is not None:
            # It comes with the entry behind it, whoever brings that about.
            seq += 1
        entry = self.at(seq)
        if entry is None:
            return None
        ending = self._ending(entry)
        if ending is not None:
            return self._ends(entry, ending)
        match entry.event:
            case RunResumed(after="crash"):
                return Unit("restart", entry, seq)
            case ModelFailed(failure="interrupted"):
                # A daemon that was stopped wrote it while it ended; one that starts writes it with
                # the line before.
                before = self.at(seq - 1)
                return (
                    None
                    if before is not None and before.kind == "run.resumed"
                    else Unit("feed", entry, seq)
                )
            case ApprovalResolved():
                return Unit("answer", entry, self._answered(entry))
            case (
                ToolUndone(why="undo")
                | ToolFinished(agent=AgentEnd())
                | RunResumed(after="child" | "client" | "provider")
            ):
                return Unit("feed", entry, seq)
            case RunWaiting() if self._waited(entry):
                # The clock was set, and the wait was planned again.
                return Unit("feed", entry, seq)
            case ToolFinished(attestation=Attestation(executor="client")):
                return Unit("feed", entry, seq)
        if entry.kind == "run.started":
            before = self.at(seq - 1)
            submitted = (
                before is not None
                and before.run_id == entry.run_id
                and before.kind in ("input.received", "run.accepted")
            )
            return Unit("feed", entry, seq) if submitted else None
        return None if entry.kind in _OWN_DOING else Unit("feed", entry, seq)

    def _ending(self, entry: RecordedEntry) -> RecordedEntry | None:
        """The early end of a run of which this entry is the first: what it still asked for and ran
        goes with it.
        """
        for each in self.after(entry.seq - 1):
            if each.run_id != entry.run_id or not each.run_id:
                return None
            match each.event:
                case ApprovalResolved(decision="withdrawn"):
                    continue
                case ToolFinished(outcome="cancelled" | "timeout", attestation=None):
                    continue
            return each if each.kind in ("run.cancelled", "run.failed") else None
        return None

    def _ends(self, entry: RecordedEntry, ending: RecordedEntry) -> Unit | None:
        if ending.kind == "run.cancelled":
            return Unit("cancel", ending, ending.seq)
        assert isinstance(ending.event, RunFailed)
        if ending.event.reason == "provider_unavailable" and self._waited(entry):
            # Its deadline passed while nobody worked on it.
            return Unit("feed", ending, ending.seq)
        # Only a clock can bring this about where the loop waits for something.
        return Unit("time", ending, ending.seq) if ending.event.reason == "time_budget" else None

    def _waited(self, entry: RecordedEntry) -> bool:
        """Return whether a run waited for its provider before this entry."""
        for number in range(entry.seq - 2, -1, -1):
            before = self.entries[number]
            if before.run_id == entry.run_id and before.kind != "input.received":
                return before.kind == "run.waiting"
        return False

    def _answered(self, entry: RecordedEntry) -> int:
        """An answer, the result of a call that was refused, and the end of the wait are one
        step.
        """
        last = entry.seq
        assert isinstance(entry.event, ApprovalResolved)
        following = self.at(last + 1)
        refused = entry.event.decision in ("deny", "expired", "happened", "skip")
        if refused and following is not None and isinstance(following.event, ToolFinished):
            last += following.event.call_id == entry.event.call_id
        following = self.at(last + 1)
        if (
            following is not None
            and following.run_id == entry.run_id
            and isinstance(following.event, RunResumed)
        ):
            last += following.event.after != "crash"
        return last

    def untold(self, head: int, outcome: RecordedEntry) -> int:
        """Return behind which entry a model call may end: what was assembled for a later turn may
        be told together with its outcome.
        """
        for entry in self.entries[head : outcome.seq - 1]:
            if entry.run_id == outcome.run_id and isinstance(entry.event, InputAssembled):
                before = self.at(entry.seq - 1)
                if entry.seq == outcome.seq - 1 and (
                    before is None or before.kind != "route.planned"
                ):
                    return entry.seq - 1
        made_room = self.made_room(head, outcome)
        return (made_room or outcome.seq) - 1

    def made_room(self, head: int, outcome: RecordedEntry | None) -> int:
        """Return where the conversation was condensed because a provider had found it too long; the
        failure is told after that.
        """
        if (
            outcome is not None
            and isinstance(outcome.event, ModelFailed)
            and outcome.event.failure == "context_too_long"
        ):
            for number in range(head, outcome.seq):
                if self.entries[number].kind == "session.compacted":
                    return self.entries[number].seq
        return 0

    def interrupted(self, head: int, outcome: RecordedEntry) -> bool:
        """Return whether a person ended this model call: there is their input, and nobody counted
        tokens.
        """
        reply = outcome.event
        if (
            not isinstance(reply, ModelReplied)
            or reply.stop != "interrupted"
            or reply.usage.input_tokens
        ):
            return False
        assembled = self.before(outcome.seq - 1, outcome.run_id, "input.assembled")
        since = (
            assembled.event.upto_seq
            if assembled and isinstance(assembled.event, InputAssembled)
            else head
        )
        return any(
            isinstance(entry.event, InputReceived) and entry.event.mode == "interrupt"
            for entry in self.entries[since : outcome.seq]
            if entry.run_id == outcome.run_id
        )

    def finished(self, head: int, run_id: str, call_id: str) -> RecordedEntry | None:
        """The recorded result of a call that runs now; None if it was never to have one."""
        for entry in self.after(head, run_id):
            if isinstance(entry.event, ToolFinished) and entry.event.call_id == call_id:
                late = entry.event.attestation is None and entry.event.outcome in (
                    "cancelled",
                    "timeout",
                )
                return None if late else entry
            if entry.kind in _ENDS or (
                isinstance(entry.event, RunResumed) and entry.event.after == "crash"
            ):
                return None
        return None

    def request(self, head: int, call_id: str) -> ApprovalRequested | None:
        for entry in self.after(head):
            if isinstance(entry.event, ApprovalRequested) and entry.event.call_id == call_id:
                return entry.event
        return None

    def failure(self, head: int, run_id: str) -> RunFailed | None:
        """The failure that comes next in this run, if nothing that is replayed can bring it
        about.
        """
        for entry in self.after(head, run_id):
            if isinstance(entry.event, RunFailed):
                known = entry.event.reason in _BUDGETS or entry.event.reason.startswith("model_")
                return None if known else entry.event
            cut_short = isinstance(entry.event, ToolFinished) and entry.event.attestation is None
            if not cut_short and not isinstance(entry.event, RunClockChanged):
                return None
        return None


def feed(tx: Tx, session_id: str, entry: RecordedEntry) -> None:
    """Put a recorded entry on the tape as it was, with the rows that it implies."""
    tx.now_ms = entry.time_ms
    match entry.event:
        case SessionCreated() as created:
            sessions.create(tx, session_id, created)
        case SessionReset():
            found = sessions.find(tx, session_id=session_id)
            assert found is not None
            sessions.reset(tx, found)
        case SessionRuled(rule_id=rule_id, words=words, removed=removed):
            if removed:
                session_rules.remove(tx, session_id, entry.principal, rule_id)
            else:
                session_rules.add(tx, session_id, entry.principal, SessionRule(rule_id, words))
        case SessionBranched(parent=parent, parent_seq=parent_seq, child=child):
            tape.append(tx, session_id, entry.principal, [entry.event])
            if child == session_id:
                sessions.set_parent(tx, child, parent, parent_seq)
                sessions.fold_anew(tx, child)
        case SessionRestored(conversation=True) | SessionUncompacted():
            tape.append(tx, session_id, entry.principal, [entry.event])
            sessions.fold_anew(tx, session_id)
        case _:
            tape.append(tx, session_id, entry.principal, [entry.event], entry.run_id)
