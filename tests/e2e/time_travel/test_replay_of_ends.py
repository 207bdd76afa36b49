"""Replays of runs that were ended in the middle of something: by their time, or by a person."""

from pathlib import Path

import msgspec
import pytest

from palyra.agent.runs import _BUDGETS
from palyra.core import chain, events
from palyra.core.events import AnyEvent, RunCancelled, RunFailed, kind_of
from palyra.features.time_travel.replay.recording import Recording, Tape
from palyra.features.time_travel.replay.replay import replay
from tests.e2e.time_travel.test_replay import ours, simple, told

MADE = "(1 model turns and 2 tool calls were made)"


def ended_early(recorded: Recording, ending: AnyEvent) -> Recording:
    """The same run, ended after its model has answered and before anything that it wanted was
    decided.
    """
    replied = next(
        number for number, entry in enumerate(recorded.own) if entry.kind == "model.replied"
    )
    kept = recorded.own[: replied + 1]
    last = msgspec.structs.replace(kept[-1], seq=kept[-1].seq + 1, position=kept[-1].position + 1)
    named = {
        name: getattr(last, name)
        for name in ("tape", "seq", "position", "time_ms", "run_id", "principal")
    }
    body, kind = events.encode(ending), kind_of(ending)
    digest = chain.link_of(last.link, bytes.fromhex(kept[-1].hash), **named, kind=kind, body=body)
    entry = msgspec.structs.replace(last, kind=kind, event=msgspec.Raw(body), hash=digest.hex())
    return msgspec.structs.replace(
        recorded, tapes=(Tape(recorded.session_id, (*kept, entry)),), last=entry.seq
    )


@pytest.mark.parametrize(
    "ending",
    [
        RunFailed(reason="time_budget", message=f"{_BUDGETS['time_budget']} {MADE}"),
        RunCancelled(reason="enough"),
    ],
)
def test_what_a_run_did_not_come_to_before_it_was_ended_is_not_replayed(
    tmp_path: Path, ending: AnyEvent
) -> None:
    again = replay(ended_early(simple(tmp_path), ending), ours())
    assert again.identical, told(again)
