"""Kills the daemon at every point of a scenario, starts it again, and says what it found.

Run as `python -m tests.crash.harness SCENARIO FOLDER`. Everything is imported once; each daemon is a forked child, so that a
crash costs milliseconds and hundreds of points can be tried. A point is the moment before or after a commit, or before or
after a file operation of a tool. The child kills itself there with SIGKILL.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import palyra.parts.ground
from palyra.journal import sqlite_files
from palyra.journal.database import Database
from tests.crash.scenarios import SCENARIOS, Scenario, conversation_of, drive, folds_agree, problems, recorded
from tests.inprocess import daemon

DOUBLE_CRASHES = 6
_CHILD_SECONDS = 60


class Points:
    """Counts points and dies at the chosen one."""

    def __init__(self, die_at: int) -> None:
        self.count = 0
        self._die_at = die_at

    def reach(self) -> None:
        self.count += 1
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def arm(points: Points) -> None:
    """Put points around every commit and around the file operations that tools use."""

    class Mortal(Database):
        def _commit(self, batch: list[Any]) -> None:
            points.reach()
            super()._commit(batch)
            points.reach()

    palyra.parts.ground.Database = Mortal  # type: ignore[misc]
    for name in ("rename", "replace", "fsync", "unlink"):
        setattr(os, name, _around(points, getattr(os, name)))


def _around(points: Points, real: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        points.reach()
        result = real(*arguments, **named)
        points.reach()
        return result

    return wrapped


def child(folder: Path, scenario: Scenario, die_at: int) -> tuple[int, dict[str, Any]]:
    """Fork a daemon that drives the scenario; returns its exit status and what it reported."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(_CHILD_SECONDS)
            points = Points(die_at)
            arm(points)
            conversation = asyncio.run(_live(folder, scenario))
            report.write_text(json.dumps({"points": points.count, "conversation": conversation}))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return status, json.loads(report.read_text()) if report.exists() else {}


async def _live(folder: Path, scenario: Scenario) -> dict[str, Any]:
    async with daemon(folder, scenario.turns, window=scenario.window) as opened:
        session_id = await drive(opened, scenario)
        await folds_agree(opened, scenario, session_id)
        return await conversation_of(opened, session_id)


def prepare(folder: Path, scenario: Scenario) -> Path:
    for part in ("home", "home/policies", "work"):
        (folder / part).mkdir(parents=True)
    (folder / "home/policies/test.cedar").write_text(scenario.policy)
    for name, text in scenario.files.items():
        (folder / "work" / name).write_text(text)
    return folder


def try_crashes(root: Path, scenario: Scenario, reference: dict[str, Any], die_at: tuple[int, ...]) -> list[str]:
    """Crash at these points one after another, then let it finish and look."""
    folder = prepare(root / "-".join(map(str, die_at)), scenario)
    for point in die_at:
        status, report = child(folder, scenario, point)
        if not os.WIFSIGNALED(status):
            break
        if os.WTERMSIG(status) != signal.SIGKILL:
            return [f"died of signal {os.WTERMSIG(status)}"]
    else:
        status, report = child(folder, scenario, 0)
    if status != 0:
        return [f"the daemon that recovered ended with status {status}"]
    found = problems(scenario, folder / "work", cancelled=any(cancels for _, cancels in scenario.says))
    if not any(cancels for _, cancels in scenario.says) and report["conversation"] != reference:
        found.append(f"another conversation: {report['conversation']} instead of {reference}")
    verified = sqlite_files.inspect(folder / "home/journal.db")
    if not verified.ok:
        found.append(f"the chain is broken: {verified.bad}")
    return found


def main(name: str, root: Path) -> None:
    began = time.monotonic()
    path, _, number = name.rpartition("#")
    scenario = recorded(Path(path), int(number)) if path else SCENARIOS[name]()
    status, whole = child(prepare(root / "whole", scenario), scenario, 0)
    assert status == 0, "the scenario does not even run without a crash"
    reference = json.loads(json.dumps(whole["conversation"]))
    assert problems(scenario, root / "whole/work", cancelled=False) == [] or any(c for _, c in scenario.says)
    rng = random.Random(5)
    last = whole["points"]
    tries: list[tuple[int, ...]] = [(point,) for point in range(1, last + 1)]
    tries += [(rng.randint(1, last), rng.randint(1, last)) for _ in range(DOUBLE_CRASHES)]
    failures = {}
    for die_at in tries:
        found = try_crashes(root, scenario, reference, die_at)
        if found:
            failures["-".join(map(str, die_at))] = found
    result = {"points": last, "tries": len(tries), "failures": failures, "seconds": round(time.monotonic() - began, 1)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
