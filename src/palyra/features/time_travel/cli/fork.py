"""`palyra fork`: take a run up again from one of its entries, live, and lay what comes of it beside
the original.

What came of a run, in a few values that can be laid beside those of another: decisions, calls,
answer, usage.
"""

from collections.abc import Iterable
from pathlib import Path

import click
from msgspec import Struct

from palyra.cli import exit_codes, formatting, lookup, short_ids
from palyra.cli.commands import command
from palyra.cli.safe_text import one_line
from palyra.cli.state import CliState
from palyra.client.http import ServerSentEvent, StopSignal, decode
from palyra.client.types.runs import Forked
from palyra.core import events
from palyra.core.events import (
    Entry,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolDecided,
    ToolFinished,
)


class CallOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call: what was asked for, what was decided, what came of it."""

    tool: str
    arguments: dict[str, object]
    verdict: str = ""
    by: str = ""
    outcome: str = ""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: str = "in_progress"
    text: str = ""
    calls: tuple[CallOutcome, ...] = ()
    models: tuple[str, ...] = ()
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0


def of(entries: Iterable[Entry], run_id: str, after: int = 0) -> Outcome:
    """Return the outcome of one run's entries behind a position."""
    replies: list[ModelReplied] = []
    # Every call that was sent costs, whatever came of it.
    billed: list[ModelReplied | ModelFailed] = []
    decided: dict[str, ToolDecided] = {}
    finished: dict[str, ToolFinished] = {}
    state, text = "in_progress", ""
    for entry in entries:
        if entry.run_id != run_id or entry.seq <= after:
            continue
        match events.decode(bytes(entry.event)):
            case ModelReplied() as reply:
                replies.append(reply)
                billed.append(reply)
            case ModelFailed() as failed:
                billed.append(failed)
            case ToolDecided() as event:
                decided[event.call_id] = event
            case ToolFinished() as event:
                finished[event.call_id] = event
            case RunCompleted() as event:
                state, text = "done", event.text
            case RunFailed() as event:
                state, text = "failed", f"{event.reason}: {event.message}"
            case RunCancelled() as event:
                state, text = "cancelled", event.reason
            case _ if entry.kind in ("approval.requested", "run.waiting"):
                state = "waiting"
            case _ if entry.kind == "run.resumed":
                state = "in_progress"
    calls = [
        CallOutcome(
            tool=call.tool,
            arguments=call.arguments,
            verdict=decided[call.id].verdict if call.id in decided else "",
            by=decided[call.id].by if call.id in decided else "",
            outcome=finished[call.id].outcome if call.id in finished else "",
        )
        for reply in replies
        for call in reply.calls
    ]
    return Outcome(
        state=state,
        text=text,
        calls=tuple(calls),
        models=tuple(dict.fromkeys(f"{reply.provider}/{reply.model}" for reply in replies)),
        turns=len(replies),
        input_tokens=sum(each.usage.input_tokens for each in billed),
        output_tokens=sum(each.usage.output_tokens for each in billed),
        cost_microusd=sum(each.cost_microusd for each in billed),
    )


_ENDS = ("run.completed", "run.failed", "run.cancelled")
_PATIENCE_S = 60.0


class ComparedRuns(Struct, frozen=True, kw_only=True):
    """Two runs from the same entry on."""

    fork: Forked
    original: Outcome
    forked: Outcome


@command(
    "fork",
    help=(
        "Take a run up again from an entry, live, in a branch: with another model, or under other"
        " policies."
    ),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--at",
    default=0,
    metavar="SEQ",
    help="The entry to go on from.  [default: the beginning of the run]",
)
@click.option("--model", default="", metavar="NAME", help="Another model.")
@click.option(
    "--policy", default="", metavar="FOLDER", help="A folder of policies to be in force instead."
)
def fork(state: CliState, run: str, at: int, model: str, policy: str) -> int:
    folder = str(Path(policy).resolve()) if policy else ""
    forked = state.api.fork_run(short_ids.run(state.api, run), at=at, model=model, policy=folder)
    if not state.out.as_json:
        state.out.note(f"forked behind entry {forked.at} into session {forked.session_id}")
    asked = _until_it_rests(state, forked)
    original = lookup.entries(state.api, forked.forked_session_id, forked.at, None)
    ours = lookup.entries(state.api, forked.session_id, forked.seq, None)
    compared = ComparedRuns(
        fork=forked,
        original=of(original, forked.forked_run_id, forked.at),
        forked=of(ours, forked.run_id),
    )
    if state.out.as_json:
        state.out.json(compared)
    else:
        _tell(state, compared)
        if asked:
            state.out.line("the fork needs approval: see `palyra approvals`")
    return exit_codes.OK


def _until_it_rests(state: CliState, forked: Forked) -> bool:
    """Wait for the fork's end. True: it waits for a person instead."""
    for message in lookup.watch(
        state.api, forked.session_id, forked.seq, StopSignal(), patience_s=_PATIENCE_S
    ):
        item = decode(message) if isinstance(message, ServerSentEvent) else None
        if isinstance(item, Entry) and item.run_id == forked.run_id:
            if item.kind in _ENDS:
                return False
            if item.kind == "approval.requested":
                return True
    return False


def _tell(state: CliState, compared: ComparedRuns) -> None:
    one, other = compared.original, compared.forked
    rows = [
        ("ended", one.state, other.state),
        ("model", ", ".join(one.models), ", ".join(other.models)),
        ("turns", str(one.turns), str(other.turns)),
        ("tokens in", formatting.count(one.input_tokens), formatting.count(other.input_tokens)),
        ("tokens out", formatting.count(one.output_tokens), formatting.count(other.output_tokens)),
    ]
    for number in range(max(len(one.calls), len(other.calls))):
        rows.append((f"call {number + 1}", _call(one, number), _call(other, number)))
    rows.append(("answer", one_line(one.text, 60), one_line(other.text, 60)))
    state.out.table(
        ["", "original", "fork"],
        [(("" if left == right else "≠ ") + name, left, right) for name, left, right in rows],
    )


def _call(outcome: Outcome, number: int) -> str:
    return _shown(outcome.calls[number]) if number < len(outcome.calls) else ""


def _shown(call: CallOutcome) -> str:
    import msgspec

    arguments = one_line(msgspec.json.encode(call.arguments).decode(), 40)
    return f"{call.tool} {arguments} {call.verdict}" + (f", {call.outcome}" if call.outcome else "")
