"""`palyra models test --faults`: an agent at work with a model that misbehaves, in every way once.

The rule: whatever the model does, its user gets an answer or a clear sentence, and the tape says
which fault it was. The daemon of the trial has a home of its own, a model that costs nothing, and
is gone afterwards.
"""

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from palyra.cli import daemon_process, lookup
from palyra.client import Client, discovery
from palyra.client.http import Api
from palyra.core.events import (
    AnswerRefused,
    AnyEvent,
    Call,
    ModelFailed,
    ModelReplied,
    RunCompleted,
    RunFailed,
    ToolDecided,
    ToolFinished,
    decode,
)
from palyra.models.faulty.behaviour import Fault
from palyra.models.faulty.faults import FAULTS

QUESTION = "what is in this folder?"
_LONGEST_S = 60.0
_POLL_S = 0.02
# Who may see the trial's settings: what is real stays out of them.
SETTINGS = """
[models]
default = "faulty/late"

[providers.faulty]
kind = "faulty"
stall_ms = 1000

[waiting.patience_ms]
interactive = 0
api = 0

[workspace]
root = {work}

[memory]
embeddings = false

[learning]
enabled = false

[browser]
enabled = false
"""


class FaultOutcome(Struct, frozen=True):
    """Outcome of a run: `problem` says what should not have been."""

    name: str
    says: str
    state: str
    text: str
    classes: tuple[str, ...]
    took_ms: int
    problem: str = ""


@contextmanager
def trial_daemon(home: Path, env: Mapping[str, str]) -> Iterator[tuple[Client, Path]]:
    """A daemon with the faulty provider, for as long as the block lasts, and its workspace. Its
    home stands beside that.
    """
    folder = home / "trials" / secrets.token_hex(6)
    own, work = folder / "home", folder / "work"
    for each in (own, work):
        each.mkdir(parents=True, mode=0o700)
    (own / "config.toml").write_text(SETTINGS.format(work=f'"{work}"'))
    kept = {
        name: value
        for name, value in env.items()
        if not name.startswith("PALYRA_") and "API_KEY" not in name
    }
    process = daemon_process.start(own, 0, lifeline=True, env=kept)
    try:
        daemon_process.wait_ready(process, own, {})
        yield Client.over(Api(lambda: discovery.discover(own, {}))), work
    finally:
        daemon_process.end(process)
        if process.stdin is not None:
            process.stdin.close()
        shutil.rmtree(folder, ignore_errors=True)
        # Another trial may go on beside this one.
        with suppress(OSError):
            folder.parent.rmdir()


def trial(
    home: Path, env: Mapping[str, str], told: Callable[[FaultOutcome], None]
) -> list[FaultOutcome]:
    """Try every fault, one after the other."""
    outcomes = []
    with trial_daemon(home, env) as (api, work):
        for name, fault in FAULTS.items():
            outcome = try_one(api, work, name, fault)
            told(outcome)
            outcomes.append(outcome)
    return outcomes


def try_one(api: Client, work: Path, name: str, fault: Fault) -> FaultOutcome:
    began = time.monotonic()
    session = api.resolve_session(workspace=str(work), key=lookup.new_id())
    run = lookup.submit(api, session.session_id, QUESTION, model=f"faulty/{name}")
    state: str = "in_progress"
    while time.monotonic() - began < _LONGEST_S and state not in lookup.TERMINAL:
        time.sleep(_POLL_S)
        state = api.get_run(run.run_id).state
    return judged(api, session.session_id, name, fault, state, time.monotonic() - began)


def judged(
    api: Client, session_id: str, name: str, fault: Fault, state: str, took_s: float
) -> FaultOutcome:
    """Return the outcome of a run by its tape, and what should not have been."""
    events = [decode(bytes(entry.event)) for entry in lookup.entries(api, session_id)]
    text = next(
        (each.text for each in reversed(events) if isinstance(each, RunCompleted)),
        next((each.message for each in reversed(events) if isinstance(each, RunFailed)), ""),
    )
    classes = tuple(dict.fromkeys(_classes(events)))
    return FaultOutcome(
        name=name,
        says=fault.says,
        state=state,
        text=text,
        classes=classes,
        took_ms=int(took_s * 1000),
        problem=problem(fault, state, text, classes, events),
    )


def _classes(events: list[AnyEvent]) -> Iterator[str]:
    for event in events:
        match event:
            case ModelFailed(failure=failure):
                yield failure
            case AnswerRefused(flaw=flaw):
                yield flaw
            case ModelReplied(stop=stop) if stop not in ("end", "tool_calls"):
                yield stop
            case ModelReplied(calls=calls) if any(call.repaired for call in calls):
                yield "repaired"
            case ToolDecided(verdict="deny"):
                yield "denied"
            case RunFailed(reason=reason):
                yield reason.removeprefix("model_")


def problem(
    fault: Fault, state: str, text: str, classes: tuple[str, ...], events: list[AnyEvent]
) -> str:
    """Return what is not as a user may expect it; empty: nothing."""
    if state not in lookup.TERMINAL:
        return f"the run was still {state} after {_LONGEST_S:.0f} s"
    if not text.strip():
        return f"the run ended as {state} without a word"
    if fault.ends == "answered" and state != "done":
        return f"the run ended as {state} where an answer could be had"
    if fault.ends == "failed" and state == "done":
        return "the run ended with an answer that is none"
    if fault.sees.lower() not in text.lower():
        return f"the user does not read of {fault.sees!r}"
    if fault.tape and fault.tape not in classes:
        return f"the tape does not say {fault.tape}"
    if not fault.tape and classes:
        return f"the tape says {classes[0]} where nothing failed"
    if fault.ends == "answered" and not _acted(events):
        return "the folder was not listed"
    return ""


def _acted(events: list[AnyEvent]) -> bool:
    """Return whether the folder was listed, as every model here tries to, once or twice."""
    calls: dict[str, Call] = {
        call.id: call for event in events if isinstance(event, ModelReplied) for call in event.calls
    }
    done: list[Any] = [
        event
        for event in events
        if isinstance(event, ToolFinished)
        and event.outcome == "ok"
        and calls[event.call_id].tool == "fs.list"
    ]
    return 0 < len(done) <= 2
