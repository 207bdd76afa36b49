"""Entries on the tape and in the tables about one call, as it is begun, asked about and ended."""

from typing import Any

import msgspec

from palyra.agent.active_run import ActiveRun
from palyra.core import labels
from palyra.core.events import ApprovalRequested, FileChange, ToolFinished, ToolStarted
from palyra.core.ids import ApprovalId
from palyra.core.labels import Label
from palyra.core.run_progress import CallProgress
from palyra.core.tools import Outcome, Preview, Scope
from palyra.store import approvals, artifacts, tape
from palyra.store.database import Appended, Tx


def who_stopped(call: CallProgress) -> str:
    """Return why nobody knows what came of a call."""
    worker = call.call.tool.partition("/")[0]
    return (
        f"the daemon stopped, or lost the {worker.replace(':', ' ')},"
        if at_worker(call)
        else "the daemon stopped"
    )


def at_worker(call: CallProgress) -> bool:
    return call.call.tool.startswith("worker:") and "/" in call.call.tool


def record_start(tx: Tx, run: ActiveRun, call: CallProgress, sealed: bytes) -> None:
    """The start, and in the same step what takes it back. Of a call at a worker, who keeps that
    itself: only that there is such.
    """
    (entry,) = tape.append(tx, run.session_id, run.principal, [start(call)], run.run_id)
    there = at_worker(call) and call.proposed is not None and call.proposed.effect == "reversible"
    if sealed or there:
        artifacts.keep_effect(
            tx,
            call_id=call.call.id,
            session_id=run.session_id,
            run_id=run.run_id,
            tool=call.call.tool,
            position=entry.position,
            checkpoint=sealed,
        )


def record_request(
    tx: Tx, run: ActiveRun, origin: str, request: ApprovalRequested, appended: list[Appended]
) -> None:
    position = next(entry.position for entry in appended if entry.event is request)
    approvals.add(
        tx,
        session_id=run.session_id,
        run_id=run.run_id,
        owner=run.principal,
        origin=origin,
        request=request,
        position=position,
    )


def start(call: CallProgress) -> ToolStarted:
    return ToolStarted(call_id=call.call.id, key=call.call.id, attempt=call.attempts + 1)


def ended(
    call: CallProgress, outcome: Outcome, text: str, label: Label = labels.CLEAN
) -> ToolFinished:
    return ToolFinished(
        call_id=call.call.id, outcome=outcome, text=text, size=len(text), label=label
    )


def in_doubt(call: CallProgress, approval_id: ApprovalId) -> ApprovalRequested:
    """The question what came of a call that was running when everything stopped."""
    return ApprovalRequested(
        approval_id=approval_id,
        call_id=call.call.id,
        tool=call.call.tool,
        about="in_doubt",
        preview=Preview(
            "text",
            f"{call.call.tool} was running when {who_stopped(call)}",
            msgspec.json.encode(call.arguments).decode(),
        ),
        risk="high",
        why=(
            "it cannot be known whether it happened: say that it happened, run it again, or skip it"
        ),
        # Nobody is hurried into guessing.
        expires_ms=0,
    )


def files(call: CallProgress) -> Label:
    """The label of something that shows the files of a call."""
    scope = call.proposed.scope if call.proposed else Scope()
    return labels.private(
        *(f"file:{path.removeprefix(scope.workspace + '/')}" for path in scope.paths)
    )


def changes(data: Any) -> tuple[FileChange, ...]:
    """Return what a tool says it changed, if it says so."""
    told = data.get("changes") if isinstance(data, dict) else None
    return msgspec.convert(told, tuple[FileChange, ...]) if told else ()
