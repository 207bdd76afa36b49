"""A vault that is killed at every commit and every file operation has all its secrets afterwards,
and exactly one key.

The test runs this file as a program of its own. How vaults are ended and opened again: see
`tests.crash.forking`.
"""

import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import NotFound
from palyra.core.ids import OWNER
from palyra.store import sqlite_files
from tests.crash.everywhere import crash_everywhere
from tests.crash.forking import Copies, Points, forked, killed, ready_to_fork, told
from tests.unit.vault.test_sealing import Opened, opened

Verb = Callable[[Opened], Awaitable[Any]]
DOUBLE_CRASHES = 40
_CHILD_SECONDS = 60
# What is done, and what the vault holds when it was done.
STEPS: list[tuple[Verb, dict[str, str]]] = [
    (lambda v: v.set("A", "first value"), {"A": "first value"}),
    (lambda v: v.set("B", "value of B"), {"A": "first value", "B": "value of B"}),
    (lambda v: v.vault.rotate_key(OWNER), {"A": "first value", "B": "value of B"}),
    (
        lambda v: v.vault.rotate(OWNER, "global", "A", "second value"),
        {"A": "second value", "B": "value of B"},
    ),
    (lambda v: v.vault.rotate_key(OWNER), {"A": "second value", "B": "value of B"}),
    (lambda v: v.vault.remove(OWNER, "global", "B"), {"A": "second value"}),
    (lambda v: v.set("C", "value of C"), {"A": "second value", "C": "value of C"}),
]
_OPERATIONS = ("replace", "fsync", "unlink", "write", "open")


def live(folder: Path, die_at: int = 0, copies: Copies | None = None) -> int:
    """Go on with the steps, behind those that were acknowledged, and die at a point. The report
    gets one line a step.
    """

    async def armed() -> None:
        points, write = Points(die_at, stops=copies is not None), os.write
        acknowledged = os.open(folder / "report", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for name in _OPERATIONS:
            points.around(name)
        await work(folder, points, lambda: write(acknowledged, b".\n"))
        write(acknowledged, f"points {points.count}\n".encode())

    return forked(armed, _CHILD_SECONDS, copies.keep if copies is not None else None)


async def work(folder: Path, points: Points, acknowledge: Callable[[], Any]) -> None:
    done = steps_in(folder)
    async with opened(folder, points.mortal()) as v:
        held = await values(v)
        assert held in allowed(done), f"{held} after {done} steps"
        for verb, _ in STEPS[done:]:
            await again(verb, v)
            acknowledge()


async def again(verb: Verb, v: Opened) -> None:
    """Do a step that may have been done before the crash."""
    try:
        await verb(v)
    except NotFound:
        assert "global/B" not in await v.names()


def steps_in(folder: Path) -> int:
    report = folder / "report"
    return report.read_text().count(".\n") if report.exists() else 0


def allowed(done: int) -> list[dict[str, str]]:
    states = [{}, *(after for _, after in STEPS)]
    return states[done : done + 2]


async def values(v: Opened) -> dict[str, str]:
    return {
        label.removeprefix("global/"): await v.get(f"vault:{label}") for label in await v.names()
    }


def problems(folder: Path) -> list[str]:
    """What is wrong after the last crash."""

    async def look() -> list[str]:
        return await wrong_in(folder)

    status, wrong = told(folder / "problems", look, _CHILD_SECONDS)
    return list(wrong) if status == 0 else [f"opening it again ended with {status}"]


async def wrong_in(folder: Path) -> list[str]:
    done, wrong = steps_in(folder), []
    async with opened(folder) as v:
        held = await values(v)
        state = (await v.vault.look(OWNER)).state
        keys = sorted(path.name for path in (folder / "keys").iterdir())
        if held not in allowed(done):
            wrong.append(f"{held} after {done} acknowledged steps")
        if state != ("open" if held else "empty"):
            wrong.append(f"the vault is {state}")
        if held and keys != ["vault.key"]:
            wrong.append(f"the keys are {keys}")
        await v.set("D", "value of D")
        await v.vault.rotate_key(OWNER)
        if await values(v) != {**held, "D": "value of D"}:
            wrong.append("it cannot be gone on with")
    if not sqlite_files.inspect(folder / "journal.db").ok:
        wrong.append("the chain is broken")
    return wrong


def crashed(folder: Path, die_at: tuple[int, ...]) -> list[str]:
    """Killed at these points one after another."""
    folder.mkdir()
    statuses = [live(folder, point) for point in die_at]
    wrong = [
        f"ended with status {status}" for status in statuses if status != 0 and not killed(status)
    ]
    return wrong + problems(folder)


def main(root: Path) -> None:
    warm, place = root / "warm", root / "whole"

    async def once() -> None:
        warm.mkdir()
        await work(warm, Points(on=False), lambda: None)

    ready_to_fork(once)
    place.mkdir()
    copies = Copies(place, root / "copies")
    assert live(place, copies=copies) == 0, "the steps do not even run without a crash"
    last = int((place / "report").read_text().split("points ")[1])
    assert copies.points >= last, "it went on where it was to stop"
    failures = {point: wrong for point in copies.each() if (wrong := problems(place))}
    rng = random.Random(7)
    twice = {(rng.randint(1, last), rng.randint(1, last)): None for _ in range(DOUBLE_CRASHES)}
    for die_at in twice:
        name = "-".join(map(str, die_at))
        if wrong := crashed(root / name, die_at):
            failures[name] = wrong
    result = {
        "points": last,
        "states": copies.states,
        "tries": last + len(twice),
        "failures": failures,
    }
    sys.stdout.write(json.dumps(result) + "\n")


@pytest.mark.timeout(600)
def test_a_vault_killed_anywhere_has_all_its_secrets_and_exactly_one_key(tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 61, __name__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
