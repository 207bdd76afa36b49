"""Ends the daemon at every point of a scenario, starts it again, and says what it found.

Run as `python -m tests.crash.harness SCENARIO FOLDER`. Everything is imported once; each daemon is a forked child, so that a
crash costs milliseconds and hundreds of points can be tried. A point is the moment before or after a commit, or before or
after a file operation of a tool.

What `kill -9` leaves of a daemon are its files. So one daemon goes through the whole scenario; at every point it is stopped, all
its threads at once, and its files are copied: they are those of a daemon that was killed there. One start from each copy is then
enough. With `--kill` as a third argument every point gets a daemon of its own that really kills itself there, as those that crash
twice do in any case: the same answers, in twice the time.
"""

import asyncio
import gc
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import palyra.parts.ground
from palyra.domain import processors
from palyra.journal import sqlite_files
from palyra.journal.database import Database
from tests.crash.scenarios import SCENARIOS, Scenario, conversation_of, drive, folds_agree, problems, recorded
from tests.inprocess import daemon

DOUBLE_CRASHES = 6
_CHILD_SECONDS = 120


class Points:
    """Counts points and dies at the chosen one, or stops at each until it is told to go on."""

    def __init__(self, die_at: int, *, stops: bool = False) -> None:
        self.count = 0
        self._die_at = die_at
        self._stops = stops

    def reach(self) -> None:
        self.count += 1
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._stops:
            os.kill(os.getpid(), signal.SIGSTOP)


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


def child(folder: Path, scenario: Scenario, die_at: int, copies: Path | None = None) -> tuple[int, dict[str, Any]]:
    """Fork a daemon that drives the scenario; returns its exit status and what it reported.

    With `copies`, what it has written is copied at every point into a folder there that is named by the point's number.
    """
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(_CHILD_SECONDS)
            points = Points(die_at, stops=copies is not None)
            arm(points)
            conversation = asyncio.run(_live(folder, scenario))
            report.write_text(json.dumps({"points": points.count, "conversation": conversation}))
            code = 0
        finally:
            os._exit(code)
    point = 0
    while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
        point += 1
        assert copies is not None
        shutil.copytree(folder, copies / str(point))
        os.kill(pid, signal.SIGCONT)
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
        status, _ = child(folder, scenario, point)
        if not os.WIFSIGNALED(status):
            break
        if os.WTERMSIG(status) != signal.SIGKILL:
            return [f"died of signal {os.WTERMSIG(status)}"]
    return recovered(folder, scenario, reference)


def recovered(folder: Path, scenario: Scenario, reference: dict[str, Any]) -> list[str]:
    """Start from what a crash left, let it finish, and look."""
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


def main(name: str, root: Path, *, kill: bool = False) -> None:
    began = time.monotonic()
    processors.keep_together()
    # What was imported is never looked at again: a child that counted references in it would copy it page by page.
    gc.collect()
    gc.freeze()
    path, _, number = name.rpartition("#")
    scenario = recorded(Path(path), int(number)) if path else SCENARIOS[name]()
    copies = root / "copies"
    place = prepare(root / "whole", scenario)
    status, whole = child(place, scenario, 0, None if kill else copies)
    assert status == 0, "the scenario does not even run without a crash"
    reference = json.loads(json.dumps(whole["conversation"]))
    assert problems(scenario, place / "work", cancelled=False) == [] or any(c for _, c in scenario.says)
    rng = random.Random(5)
    last = whole["points"]
    failures = {}
    if not kill:
        # Two threads that reach a point at once are stopped once.
        for copy in sorted(copies.iterdir(), key=lambda each: int(each.name)):
            # A session knows where its workspace lies: each copy comes to where the first daemon was.
            shutil.rmtree(place)
            copy.rename(place)
            if found := recovered(place, scenario, reference):
                failures[copy.name] = found
    tries: list[tuple[int, ...]] = [(point,) for point in range(1, last + 1)] if kill else []
    tries += [(rng.randint(1, last), rng.randint(1, last)) for _ in range(DOUBLE_CRASHES)]
    for die_at in tries:
        if found := try_crashes(root, scenario, reference, die_at):
            failures["-".join(map(str, die_at))] = found
    result = {"points": last, "tries": last + DOUBLE_CRASHES, "failures": failures, "seconds": round(time.monotonic() - began, 1)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), kill="--kill" in sys.argv[3:])
