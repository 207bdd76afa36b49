"""A daemon that is killed at every commit and file operation of an install, an update, a removal has the old or the new afterwards.

The test runs this file as a program of its own: there everything is imported once and each life is a forked child.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import palyra.parts.ground
from palyra.app import Daemon
from palyra.domain.ids import OWNER, SYSTEM_TAPE
from palyra.journal import sqlite_files
from palyra.journal.database import Database
from palyra.models.scripted import Turn
from palyra.runtime.shelf import Publisher
from tests.crash.harness import Points
from tests.inprocess import body, daemon, entries
from tests.material import ROOT

DOUBLE_CRASHES = 12
_CHILD_SECONDS = 60
_KEY = "J0TeKMrxT5MfD/wz+38LdgnfUZ6fxkPdSIHQCFEVXoc="
_OPERATIONS = ("rename", "replace", "fsync", "unlink", "mkdir", "rmdir", "open")
State = dict[str, Any]
# What is there before the first step.
OTHER: State = {"other": ["Stays.", "quarantined"]}


def versions(root: Path) -> dict[str, Path]:
    """Two versions of a skill, and another skill that must stay as it is."""
    made = {}
    told = (("one", "subject", "First.", 3), ("two", "subject", "Second.", 2), ("other", "other", "Stays.", 1))
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
        (lambda d: d.shelf.set_state(OWNER, "subject", "enabled"), {**other, "subject": ["First.", "enabled"]}),
        (install("two"), {**other, "subject": ["Second.", "quarantined"]}),
        (lambda d: d.shelf.set_state(OWNER, "subject", "trusted"), {**other, "subject": ["Second.", "trusted"]}),
        (
            lambda d: d.shelf.add_publisher(OWNER, Publisher("maker", _KEY)),
            both,
        ),
        (lambda d: d.shelf.remove(OWNER, "subject"), {**other, "+": ["maker"]}),
        (lambda d: d.shelf.remove_publisher(OWNER, "maker"), other),
    ]


async def seen(d: Daemon) -> State:
    """Every skill with its instructions and state, as the daemon shows them; a half one has a problem."""
    found: State = {}
    for each in await d.shelf.listing():
        shown = await d.shelf.show(each.record.name)
        found[each.record.name] = [shown.instructions, each.problem or each.state]
        await d.shelf.export(each.record.name)
    publishers = [each.name for each in await d.shelf.publishers()]
    return {**found, **({"+": publishers} if publishers else {})}


async def live(root: Path, folder: Path, report: Path) -> None:
    """Say what is there, go on with the steps behind those that were done, and say so after each."""
    say = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    plan = steps({path.name: path for path in (root / "sources").iterdir()})
    async with daemon(folder, [Turn(text="hi")]) as d:
        now = await seen(d)
        told = [body(entry) for entry in await entries(d, SYSTEM_TAPE) if body(entry).get("what") == "skill"]
        os.write(say, json.dumps({"seen": now, "told": len(told)}).encode() + b"\n")
        states = [OTHER, *(state for _, state in plan)]
        done = sum("done" in line for line in lines(report))
        if now != states[done]:
            # The step was done and nobody could say so any more; if it is neither, `problems` says it.
            os.write(say, json.dumps({"done": done}).encode() + b"\n")
            done += 1
        for number in range(done, len(plan)):
            await plan[number][0](d)
            os.write(say, json.dumps({"done": number}).encode() + b"\n")
        os.write(say, json.dumps({"end": await seen(d)}).encode() + b"\n")


def lines(report: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []


def child(root: Path, folder: Path, die_at: int, report: Path) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(_CHILD_SECONDS)
            points = Points(die_at)
            arm(points)
            asyncio.run(live(root, folder, report))
            (folder / "points").write_text(str(points.count))
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def arm(points: Points) -> None:
    class Mortal(Database):
        def _commit(self, batch: list[Any]) -> None:
            points.reach()
            super()._commit(batch)
            points.reach()

    setattr(palyra.parts.ground, "Database", Mortal)  # noqa: B010  a name that the module only imports
    for name in _OPERATIONS:
        setattr(os, name, _around(points, getattr(os, name), name))


def _around(points: Points, real: Callable[..., Any], name: str) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        # Only what touches skills: a path below their folder, or what has none (a descriptor).
        where = str(arguments[0])
        counts = "/skills" in where or name in ("fsync", "unlink", "rmdir")
        if name == "open" and (len(arguments) < 2 or not arguments[1] & os.O_CREAT):
            counts = False
        # Before is enough: after one is before the next.
        if counts:
            points.reach()
        return real(*arguments, **named)

    return wrapped


def problems(root: Path, die_at: tuple[int, ...]) -> list[str]:
    folder = root / "-".join(map(str, die_at))
    shutil.copytree(root / "begin", folder)
    report = folder / "report"
    for point in die_at:
        if not os.WIFSIGNALED(child(root, folder, point, report)):
            break
    if (status := child(root, folder, 0, report)) != 0:
        return [f"the daemon that came back ended with status {status}"]
    states = [OTHER, *(state for _, state in steps({name: Path() for name in ("one", "two", "other")}))]
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
    left = sorted(path.name.partition("@")[0] for path in (folder / "home/skills/installed").iterdir())
    if left != ["other"]:
        found.append(f"left behind: {left}")
    verified = sqlite_files.inspect(folder / "home/journal.db")
    return found if verified.ok else [*found, f"the chain is broken: {verified.bad}"]


async def begin(folder: Path, other: Path) -> None:
    async with daemon(folder, [Turn(text="hi")]) as d:
        await d.shelf.install(OWNER, other, (await d.shelf.look(other)).digest)


def main(root: Path) -> None:
    sources = versions(root)
    (root / "begin").mkdir()
    asyncio.run(begin(root / "begin", sources["other"]))
    shutil.copytree(root / "begin", root / "whole")
    assert child(root, root / "whole", 0, root / "whole/report") == 0, "it does not even run without a crash"
    last = int((root / "whole/points").read_text())
    rng = random.Random(7)
    tries: list[tuple[int, ...]] = [(point,) for point in range(1, last + 1)]
    tries += [(rng.randint(1, last), rng.randint(1, last)) for _ in range(DOUBLE_CRASHES)]
    failures = {"-".join(map(str, each)): wrong for each in tries if (wrong := problems(root, each))}
    sys.stdout.write(json.dumps({"points": last, "tries": len(tries), "failures": failures}) + "\n")


@pytest.mark.timeout(600)
def test_killed_anywhere_in_a_change_of_skills_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"] == {}, f"{len(result['failures'])} of {result['tries']} failed"
    assert result["points"] >= 60, "too few points were tried to mean anything"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
