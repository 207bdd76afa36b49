"""A daemon that is killed at every commit and file operation of an install, an update, a removal
has the old or the new afterwards.

The test runs this file as a program of its own. How daemons are ended and started again: see
`forking`.
"""

import json
import os
import random
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.skills.registry import Publisher
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from tests.crash.everywhere import crash_everywhere
from tests.crash.forking import Copies, Points, arm, forked, killed, ready_to_fork
from tests.inprocess import body, daemon, entries

DOUBLE_CRASHES = 12
_CHILD_SECONDS = 300
_KEY = "J0TeKMrxT5MfD/wz+38LdgnfUZ6fxkPdSIHQCFEVXoc="
_OPERATIONS = ("rename", "replace", "fsync", "unlink", "mkdir", "rmdir", "open")
State = dict[str, Any]
# What is there before the first step.
OTHER: State = {"other": ["Stays.", "quarantined"]}


def versions(root: Path) -> dict[str, Path]:
    """Two versions of a skill, and another skill that must stay as it is."""
    made = {}
    told = (
        ("one", "subject", "First.", 3),
        ("two", "subject", "Second.", 2),
        ("other", "other", "Stays.", 1),
    )
    for name, skill, text, files in told:
        folder = root / "sources" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {skill}\ndescription: {text}\n---\n{text}\n")
        for number in range(files):
            (folder / f"{name}-{number}.md").write_text(text * 100)
        made[name] = folder
    return made


def steps(sources: dict[str, Path]) -> list[tuple[Callable[[Daemon], Awaitable[Any]], State]]:
    """What is done, and how everything is when it was done."""

    def install(name: str) -> Callable[[Daemon], Awaitable[Any]]:
        async def do(d: Daemon) -> None:
            await d.shelf.install(OWNER, sources[name], (await d.shelf.look(sources[name])).digest)

        return do

    other = OTHER
    both = {**other, "subject": ["Second.", "trusted"], "+": ["maker"]}
    return [
        (install("one"), {**other, "subject": ["First.", "quarantined"]}),
        (
            lambda d: d.shelf.set_state(OWNER, "subject", "enabled"),
            {**other, "subject": ["First.", "enabled"]},
        ),
        (install("two"), {**other, "subject": ["Second.", "quarantined"]}),
        (
            lambda d: d.shelf.set_state(OWNER, "subject", "trusted"),
            {**other, "subject": ["Second.", "trusted"]},
        ),
        (
            lambda d: d.shelf.add_publisher(OWNER, Publisher("maker", _KEY)),
            both,
        ),
        (lambda d: d.shelf.remove(OWNER, "subject"), {**other, "+": ["maker"]}),
        (lambda d: d.shelf.remove_publisher(OWNER, "maker"), other),
    ]


async def seen(d: Daemon) -> State:
    """Every skill with its instructions and state, as the daemon shows them; a half one has a
    problem.
    """
    found: State = {}
    for each in await d.shelf.listing():
        shown = await d.shelf.show(each.record.name)
        found[each.record.name] = [shown.instructions, each.problem or each.state]
        await d.shelf.export(each.record.name)
    publishers = [each.name for each in await d.shelf.publishers()]
    return {**found, **({"+": publishers} if publishers else {})}


async def live(root: Path, folder: Path, report: Path) -> None:
    """Say what is there, go on with the steps behind those that were done, and say so after
    each.
    """
    say = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    plan = steps({path.name: path for path in (root / "sources").iterdir()})
    async with daemon(folder, [Turn(text="hi")]) as d:
        now = await seen(d)
        told = [
            body(entry)
            for entry in await entries(d, SYSTEM_TAPE)
            if body(entry).get("what") == "skill"
        ]
        os.write(say, json.dumps({"seen": now, "told": len(told)}).encode() + b"\n")
        states = [OTHER, *(state for _, state in plan)]
        done = sum("done" in line for line in lines(report))
        if now != states[done]:
            # The step was done and nobody could say so any more; if it is neither, `problems` says
            # it.
            os.write(say, json.dumps({"done": done}).encode() + b"\n")
            done += 1
        for number in range(done, len(plan)):
            await plan[number][0](d)
            os.write(say, json.dumps({"done": number}).encode() + b"\n")
        os.write(say, json.dumps({"end": await seen(d)}).encode() + b"\n")


def lines(report: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []


def child(root: Path, folder: Path, die_at: int = 0, copies: Copies | None = None) -> int:
    async def work() -> None:
        points = Points(die_at, stops=copies is not None)
        # Before is enough: after one is before the next.
        arm(points, _OPERATIONS, touches_skills, after=False)
        await live(root, folder, folder / "report")
        (folder / "points").write_text(str(points.count))

    return forked(work, _CHILD_SECONDS, copies.keep if copies is not None else None)


def touches_skills(name: str, arguments: tuple[Any, ...]) -> bool:
    """A path below their folder, or what has none (a descriptor)."""
    if name == "open" and (len(arguments) < 2 or not arguments[1] & os.O_CREAT):
        return False
    return "/skills" in str(arguments[0]) or name in ("fsync", "unlink", "rmdir")


def crashed(root: Path, die_at: tuple[int, ...]) -> list[str]:
    """Killed at these points one after another."""
    folder = root / "-".join(map(str, die_at))
    shutil.copytree(root / "begin", folder)
    for point in die_at:
        if (status := child(root, folder, point)) == 0:
            break
        if not killed(status):
            return [f"the daemon that was to die ended with status {status}"]
    return problems(root, folder)


def problems(root: Path, folder: Path) -> list[str]:
    """Start from what a crash left, let it finish, and look."""
    report = folder / "report"
    if (status := child(root, folder)) != 0:
        return [f"the daemon that came back ended with status {status}"]
    states = [
        OTHER,
        *(state for _, state in steps({name: Path() for name in ("one", "two", "other")})),
    ]
    found, done = [], 0
    for line in lines(report):
        if "done" in line:
            done += 1
        elif "seen" in line:
            if line["seen"] not in states[done : done + 2]:
                found.append(f"after {done} steps there is {line['seen']}")
            if line["told"] < done + 1:
                found.append(f"after {done} steps only {line['told']} are on the tape")
    if lines(report)[-1].get("end") != states[-1]:
        found.append(f"at the end there is {lines(report)[-1]}")
    left = sorted(
        path.name.partition("@")[0] for path in (folder / "home/skills/installed").iterdir()
    )
    if left != ["other"]:
        found.append(f"left behind: {left}")
    verified = sqlite_files.inspect(folder / "home/journal.db")
    return found if verified.ok else [*found, f"the chain is broken: {verified.bad}"]


async def begin(folder: Path, other: Path) -> None:
    async with daemon(folder, [Turn(text="hi")]) as d:
        await d.shelf.install(OWNER, other, (await d.shelf.look(other)).digest)


def main(root: Path) -> None:
    sources = versions(root)
    for name in ("begin", "warm"):
        (root / name).mkdir()

    async def once() -> None:
        await begin(root / "begin", sources["other"])
        shutil.copytree(root / "begin", root / "warm", dirs_exist_ok=True)
        await live(root, root / "warm", root / "warm/report")

    ready_to_fork(once)
    place = root / "whole"
    shutil.copytree(root / "begin", place)
    copies = Copies(place, root / "copies")
    assert child(root, place, copies=copies) == 0, "it does not even run without a crash"
    last = int((place / "points").read_text())
    assert copies.points >= last, "it went on where it was to stop"
    failures = {point: wrong for point in copies.each() if (wrong := problems(root, place))}
    rng = random.Random(7)
    twice = [(rng.randint(1, last), rng.randint(1, last)) for _ in range(DOUBLE_CRASHES)]
    failures |= {
        "-".join(map(str, each)): wrong for each in twice if (wrong := crashed(root, each))
    }
    result = {
        "points": last,
        "states": copies.states,
        "tries": last + DOUBLE_CRASHES,
        "failures": failures,
    }
    sys.stdout.write(json.dumps(result) + "\n")


@pytest.mark.timeout(600)
def test_killed_anywhere_in_a_change_of_skills_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 60, __name__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
