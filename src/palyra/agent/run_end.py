"""Ending runs early: what a cancel, a failure and STOP write. The first terminal event wins."""

from collections.abc import Sequence

import msgspec

from palyra.core import run_state
from palyra.core.events import AnyEvent, ApprovalResolved, RunCancelled, RunFailed, ToolFinished
from palyra.core.ids import ApprovalId, CallId
from palyra.core.run_progress import RunProgress
from palyra.core.tools import Outcome
from palyra.store import approvals, runs, subagents, tape
from palyra.store.database import Tx
from palyra.store.runs import RunRow

_CUT_SHORT = "cancelled while it ran: its effect may have happened in part"


def end(
    tx: Tx, run_id: str, late: Sequence[ToolFinished], ending: RunFailed | RunCancelled
) -> RunRow:
    """End a run. What it still asked for is withdrawn with it, and those that work for it end with
    it in the same step.
    """
    run = runs.find(tx, run_id)
    assert run is not None
    if run.state not in run_state.TERMINAL:
        for pending in approvals.pending_of_run(tx, run_id):
            withdrawn = _withdrawn(pending.approval_id, pending.request.call_id)
            (entry,) = tape.append(tx, run.session_id, run.principal, [withdrawn], run_id)
            approvals.settle(tx, withdrawn, entry.position)
        # Whoever does not know what it was doing says at least that it was cut short: every call
        # has a result.
        late = late or [
            _cut_short(call_id)
            for call_id in subagents.unfinished_calls(tx, [run_id]).get(run_id, ())
        ]
        tape.append(tx, run.session_id, run.principal, [*late, ending], run_id)
        for child in subagents.of_run(tx, run_id):
            end(tx, child.run_id, [], RunCancelled(reason="the run that it worked for has ended"))
    after = runs.find(tx, run_id)
    assert after is not None
    return after


def cancel_all(tx: Tx, found: Sequence[RunRow], reason: str) -> list[RunRow]:
    """End many runs, which have not ended, as `end` does it: with a few questions to the store for
    all of them together.
    """
    if not found:
        return []
    ids = [run.run_id for run in found]
    related = subagents.related(tx, ids)
    plain = [run for run in found if run.run_id not in related]
    asked, begun = approvals.pending_of_runs(tx, ids), subagents.unfinished_calls(tx, ids)
    tape.expect(tx, [(run.session_id, run.run_id) for run in plain])
    ending, settled = RunCancelled(reason=reason), list[tuple[ApprovalResolved, int]]()
    for run in plain:
        withdrawn = [_withdrawn(*each) for each in asked.get(run.run_id, ())]
        late = [_cut_short(call_id) for call_id in begun.get(run.run_id, ())]
        events: list[AnyEvent] = [*withdrawn, *late, ending]
        appended = tape.append(tx, run.session_id, run.principal, events, run.run_id)
        settled += [
            (each, entry.position) for each, entry in zip(withdrawn, appended, strict=False)
        ]
    approvals.withdraw(tx, settled)
    ended = [
        msgspec.structs.replace(run, state="cancelled", reason=reason, ended_ms=tx.now_ms)
        for run in plain
    ]
    # Those that work for each other end one by one: one may take others with it.
    return [*ended, *(end(tx, run.run_id, [], ending) for run in found if run.run_id in related)]


def _withdrawn(approval_id: ApprovalId, call_id: CallId) -> ApprovalResolved:
    return ApprovalResolved(
        approval_id=approval_id, call_id=call_id, decision="withdrawn", reason="the run ended"
    )


def _cut_short(call_id: CallId) -> ToolFinished:
    return ToolFinished(call_id=call_id, outcome="cancelled", text=_CUT_SHORT, size=len(_CUT_SHORT))


def unfinished_calls(progress: RunProgress, outcome: Outcome, text: str) -> list[ToolFinished]:
    """The results of the calls that a run had begun when it was ended."""
    calls = progress.last.calls if progress.last else []
    begun = [call for call in calls if call.started and not call.finished]
    return [
        ToolFinished(call_id=call.call.id, outcome=outcome, text=text, size=len(text))
        for call in begun
    ]
