"""Calls that the program which asked does itself: handing them over, and taking in what came of
them.

The rule: both are one step. A run that has handed calls over waits like one that asks for an
approval: without a task, over any restart, until all of their results are there. Results are known
by their call: bringing them again changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from palyra.agent.client_tools import ABSENT, LONGEST_MS
from palyra.agent.large_results import LARGE_RESULT, summary
from palyra.agent.run_end import end
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.events import (
    AnyEvent,
    Attestation,
    RunFailed,
    RunResumed,
    ToolFinished,
    ToolHandedOver,
    ToolProposed,
    Wanted,
)
from palyra.core.ids import CallId
from palyra.core.labels import CLEAN, untrusted
from palyra.core.tools import Outcome, input_digest
from palyra.features.tasks.worker import Step, Tasks
from palyra.store import artifacts, runs, tape, tasks
from palyra.store.database import Tx
from palyra.store.runs import RunRow
from palyra.store.tasks import Task

_WENT_ON = "no result: the program that asked went on without one"


@dataclass(frozen=True)
class ToolResultsPosition:
    """Position of the tape before these results; what comes of them lies behind it."""

    run: RunRow
    seq: int


@dataclass
class _Handed:
    """The last calls that a run handed over, as its tape tells it."""

    calls: tuple[CallId, ...]
    proposed: dict[str, ToolProposed]
    finished: dict[str, tuple[int, ToolFinished]]


def _handed(tx: Tx, run_id: str, wanted: str = "") -> _Handed | None:
    """Return the handed-over calls with a certain call among them, or the last."""
    found: _Handed | None = None
    proposed: dict[str, ToolProposed] = {}
    finished: dict[str, tuple[int, ToolFinished]] = {}
    for seq, event in runs.numbered(tx, run_id):
        match event:
            case ToolProposed(call_id=call_id):
                proposed[call_id] = event
            case ToolFinished(call_id=call_id):
                finished[call_id] = (seq, event)
            case ToolHandedOver(calls=calls) if not wanted or wanted in calls:
                found = _Handed(calls, proposed, finished)
    return found


def waiting(tx: Tx, session_id: str) -> RunRow | None:
    """The run of a session that waits for its caller, if there is one."""
    return next(
        (run for run in runs.unfinished_of_session(tx, session_id) if run.reason == "client"), None
    )


def bring(
    tx: Tx, principal: str, run_id: str, results: Mapping[str, str], wanted: Wanted | None = None
) -> ToolResultsPosition:
    """Take in the results of a run's calls, all of them at once, and let it go on. The texts are
    redacted.
    """
    run = runs.get(tx, run_id, principal)
    handed = _handed(tx, run_id, next(iter(results)))
    if handed is None:
        raise NotFound(
            "these calls were never handed over: name those that the last answer asked for",
            run_id=run_id,
        )
    unknown = [call_id for call_id in results if call_id not in handed.calls]
    missing = [call_id for call_id in handed.calls if call_id not in results]
    if unknown or missing:
        raise InvalidInput(
            "bring the results of all calls of one answer, and of no others",
            unknown=unknown,
            missing=missing,
        )
    known = [handed.finished[call_id] for call_id in handed.calls if call_id in handed.finished]
    if known:
        if any(
            each.attestation is None
            or each.attestation.output_sha256 != _digest(results[each.call_id])
            for _, each in known
        ):
            raise Conflict(
                "these calls have other results already: the first ones count", run_id=run_id
            )
        return ToolResultsPosition(run, min(seq for seq, _ in known) - 1)
    if run.reason != "client":
        raise Conflict(
            f"run {run_id} does not wait for these results any more: it is {run.state}",
            run_id=run_id,
        )
    finished = [
        _result(tx, run, handed.proposed[call_id], "ok", results[call_id])
        for call_id in handed.calls
    ]
    return _go_on(tx, run, finished, wanted)


def leave(tx: Tx, run: RunRow, wanted: Wanted | None = None) -> None:
    """The program says something else instead of bringing results: the run goes on without them."""
    handed = _handed(tx, run.run_id)
    assert handed is not None
    open_ = [call_id for call_id in handed.calls if call_id not in handed.finished]
    _go_on(
        tx,
        run,
        [_result(tx, run, handed.proposed[call_id], "skipped", _WENT_ON) for call_id in open_],
        wanted,
    )


def _go_on(
    tx: Tx, run: RunRow, finished: Sequence[ToolFinished], wanted: Wanted | None
) -> ToolResultsPosition:
    following: list[AnyEvent] = [*finished, RunResumed(after="client", wanted=wanted)]
    appended = tape.append(tx, run.session_id, run.principal, following, run.run_id)
    for each in finished:
        tasks.drop(tx, ABSENT, each.call_id)
    return ToolResultsPosition(run, appended[0].seq - 1)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _result(
    tx: Tx, run: RunRow, proposed: ToolProposed, outcome: Outcome, text: str
) -> ToolFinished:
    body, artifact, shown = text.encode(), None, text
    if len(body) > LARGE_RESULT:
        artifact = artifacts.keep_artifact(tx, run.session_id, body, "text/plain; charset=utf-8")
        shown = summary(text, len(body), artifact)
    return ToolFinished(
        call_id=proposed.call_id,
        outcome=outcome,
        text=shown,
        size=len(body),
        artifact=artifact,
        # Where the program has it from is not known.
        label=untrusted(f"client:{proposed.tool}") if outcome == "ok" else CLEAN,
        attestation=Attestation(
            executor="client",
            tier="none",
            policy_version="",
            input_sha256=input_digest(proposed.arguments),
            output_sha256=_digest(text),
        ),
    )


def register(tasks_: Tasks) -> None:
    """Register the task that ends the runs whose caller never came back."""

    async def absent(task: Task) -> Step:
        return lambda tx: _give_up(tx, str(task.payload["run_id"]), str(task.payload["call_id"]))

    tasks_.register(ABSENT, absent)


def _give_up(tx: Tx, run_id: str, call_id: str) -> None:
    run = runs.find(tx, run_id)
    handed = _handed(tx, run_id, call_id) if run is not None and run.reason == "client" else None
    if handed is not None and call_id not in handed.finished:
        hours = LONGEST_MS // 3_600_000
        message = (
            f"the program that asked did not bring the results of its tools within {hours} hours:"
            " ask again"
        )
        end(tx, run_id, [], RunFailed(reason="client_absent", message=message))
