"""A program that brings tools asks, does its calls and brings what they gave, while the daemon dies
at every point.

Run as `python -m tests.crash.program_harness FOLDER`. Like a library that lost its connection, the
program sends everything again.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palyra.core.events import ClientTool
from palyra.core.ids import OWNER
from palyra.features.openai_api.history import HistoryTurn
from palyra.features.openai_api.names import CallName
from palyra.features.openai_api.sessions import CallerRequest
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from tests.crash.forking import Copies, Points, arm, ready_to_fork, told
from tests.inprocess import TERMINAL, body, daemon, entries, until

_CHILD_SECONDS = 300
_THEIRS = tuple(
    ScriptedCall(name="get_weather", arguments={"city": city}) for city in ("Brno", "Wien")
)
_OWN = ScriptedCall(name="test.reversible", arguments={"path": "once.txt", "line": "one"})
_TURNS: dict[str, Sequence[Turn]] = {
    "weather": [Turn(text="I ask you.", calls=(*_THEIRS, _OWN)), Turn(text="sunny in both")]
}
_ASKED = CallerRequest(
    text="weather",
    offered=(ClientTool("get_weather"),),
    key="once and for all",
    earlier=(HistoryTurn("user", "hello"),),
)
_TOLD = ("input.received", "model.replied", "tool.handed_over", "tool.finished", "run.completed")


async def drive(d: Daemon) -> dict[str, Any]:
    """From wherever it is to the answer; what the conversation is then."""
    begun = await d.callers.begin(OWNER, _ASKED)
    handed = await until(d, begun.session_id, "tool.handed_over", run_id=begun.run_id)
    results = {CallName(begun.run_id, call_id): "sun" for call_id in body(handed)["calls"]}
    going_on = await d.callers.begin(OWNER, CallerRequest(results=results))
    assert going_on.run_id == begun.run_id
    ended = await until(d, begun.session_id, *TERMINAL, run_id=begun.run_id, after=going_on.seq)
    kinds = [each.kind for each in await entries(d, begun.session_id) if each.kind in _TOLD]
    return {"kinds": kinds, "text": body(ended)["text"]}


def child(folder: Path, copies: Copies | None = None) -> tuple[int, dict[str, Any]]:
    async def work() -> dict[str, Any]:
        points = Points(0, stops=copies is not None)
        arm(points)
        return {**await live(folder), "points": points.count}

    return told(
        folder / "report.json", work, _CHILD_SECONDS, copies.keep if copies is not None else None
    )


async def live(folder: Path) -> dict[str, Any]:
    async with daemon(folder, _TURNS, "[memory]\nembeddings = false\n") as opened:
        return await drive(opened)


def prepare(folder: Path) -> Path:
    (folder / "home/policies").mkdir(parents=True)
    (folder / "home/policies/test.cedar").write_text("permit (principal, action, resource);")
    return folder


def problems(place: Path, reference: dict[str, Any]) -> list[str]:
    status, report = child(place)
    if status != 0:
        return [f"the daemon that recovered ended with status {status}"]
    found = [
        f"{name}: {report[name]} instead of {reference[name]}"
        for name in ("kinds", "text")
        if report[name] != reference[name]
    ]
    if (place / "work" / "once.txt").read_text() != "one\n":
        found.append("its own call was not done exactly once")
    if not sqlite_files.inspect(place / "home/journal.db").ok:
        found.append("the chain is broken")
    return found


def main(root: Path) -> None:
    began = time.monotonic()
    ready_to_fork(lambda: live(prepare(root / "warm")))
    place = prepare(root / "whole")
    copies = Copies(place, root / "copies")
    status, reference = child(place, copies)
    assert status == 0, "it does not even work without a crash"
    failures = {point: found for point in copies.each() if (found := problems(place, reference))}
    result = {
        "points": reference["points"], "states": copies.states, "tries": copies.points, "failures": failures,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
