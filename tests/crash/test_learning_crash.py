"""A daemon that is killed at every commit and file operation of accepting and rolling back has the
old or the new afterwards.

The test runs this file as a program of its own. How daemons are ended and started again: see
`forking`.
"""

import asyncio
import json
import os
import random
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from palyra.features.learning.model import STATES
from palyra.models.scripted import ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from tests import faults
from tests.crash.everywhere import crash_everywhere
from tests.crash.forking import Copies, Points, arm, forked, killed, ready_to_fork
from tests.crash.scenarios import call
from tests.inprocess import daemon, finished, say, session

DOUBLE_CRASHES = 8
_CHILD_SECONDS = 300
_SETTINGS = (
    '[memory]\nembeddings = false\n[learning]\nenabled = false\n[healing]\nmode = "disabled"\n'
)
# What belongs to a change of what was learned: the skills, the kept runs, the policies.
_PLACES = ("/skills", "/learned", "/policies")
_OPERATIONS = ("rename", "replace", "unlink", "mkdir", "rmdir")
State = dict[str, Any]


def model() -> ScriptedModel:
    def answer(request: Any) -> Turn:
        asked = (
            next(part.text for part in request.messages[-1].parts)
            if hasattr(request.messages[-1], "parts")
            else ""
        )
        words = asked.split()
        if words[:1] == ["publish"]:
            made = f"--- /dev/null\n+++ b/notes/{words[1]}.txt\n@@ -0,0 +1 @@\n+x\n"
            return Turn(
                calls=(
                    call("fs.write", path=f"notes/{words[1]}.md", content="x"),
                    call("fs.patch", diff=made),
                )
            )
        return Turn(text="ok")

    return ScriptedModel(answer)


async def begin(folder: Path) -> None:
    """A home with one candidate of each kind that waits, and a run that nobody has read yet."""
    policies = folder / "home/policies"
    policies.mkdir(parents=True)
    # So that there is one thing that is approved again and again, not two.
    (policies / "patch.cedar").write_text(
        'permit (principal, action == Action::"run_unattended", resource == Tool::"fs.patch");\n'
    )
    async with daemon(folder, model(), _SETTINGS) as d:
        for text in (
            "Our staging host is stage7.example.",
            "publish one",
            "publish two",
            "publish three",
        ):
            await d.learning.reflect(OWNER, await told(d, text))
        last = await told(d, "Remember that my locker is number 17.")
        (folder / "last").write_text(last)
        kinds = sorted(
            (each.kind, each.state) for each in (await d.learning.listing(OWNER, STATES)).candidates
        )
        assert [kind for kind, state in kinds if state == "pending_review"] == [
            "fact",
            "policy",
            "procedure",
        ], kinds


async def told(d: Daemon, text: str) -> str:
    where = await session(d)
    run = await say(d, where, text)
    end = asyncio.ensure_future(finished(d, run))
    while not end.done():
        for approval in await faults.pending(d):
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        await asyncio.wait([end], timeout=0.01)
    assert end.result().kind == "run.completed"
    return str(run.run_id)


async def of_kind(d: Daemon, kind: str) -> str:
    found = [
        each
        for each in (await d.learning.listing(OWNER, STATES)).candidates
        if each.kind == kind and not each.automatic
    ]
    return next(each.candidate_id for each in found if each.state != "suppressed")


def accept(kind: str) -> Callable[[Daemon, str], Awaitable[Any]]:
    async def do(d: Daemon, last: str) -> None:
        await d.learning.accept(OWNER, await of_kind(d, kind))

    return do


def roll_back(kind: str) -> Callable[[Daemon, str], Awaitable[Any]]:
    async def do(d: Daemon, last: str) -> None:
        await d.learning.roll_back(OWNER, await of_kind(d, kind))

    return do


async def reflect(d: Daemon, last: str) -> None:
    await d.learning.reflect(OWNER, last)


def steps() -> list[tuple[Callable[[Daemon, str], Awaitable[Any]], State]]:
    """What is done, and how everything is when it was done."""
    waits = {"fact": "pending_review", "policy": "pending_review", "procedure": "pending_review"}
    nothing: State = {**waits, "memory": 0, "skills": [], "tests": 0, "policies": 0, "in force": 0}
    plan: list[tuple[Callable[[Daemon, str], Awaitable[Any]], State]] = []
    state = nothing

    def then(do: Callable[[Daemon, str], Awaitable[Any]], **changes: Any) -> None:
        nonlocal state
        state = {**state, **changes}
        plan.append((do, state))

    then(accept("fact"), fact="applied", memory=1)
    then(accept("procedure"), procedure="applied", skills=["quarantined"], tests=2)
    then(accept("policy"), policy="applied", policies=1, **{"in force": 1})
    then(roll_back("procedure"), procedure="rolled_back", skills=[], tests=0)
    then(roll_back("policy"), policy="rolled_back", policies=0, **{"in force": 0})
    then(roll_back("fact"), fact="rolled_back", memory=0)
    then(reflect, memory=1)
    return [(lambda d, last: asyncio.sleep(0), nothing), *plan]


async def seen(d: Daemon) -> State:
    found = (await d.learning.listing(OWNER, STATES)).candidates
    kinds: State = {
        each.kind: each.state for each in found if not each.automatic and each.state != "suppressed"
    }
    assert not any(each.doing for each in found), "files are still being worked on"
    tests = d.home / "learned"
    return {
        **kinds,
        "memory": len(await d.memory.listing(OWNER, ("active", "review"))),
        "skills": [each.problem or each.state for each in await d.shelf.listing()],
        "tests": len(list(tests.rglob("*.run.json"))) if tests.is_dir() else 0,
        "policies": len(list(d.policy_folder.glob("learned-*.cedar"))),
        "in force": sum(rule.startswith("learned-") for rule in d.policy.current.by_id),
    }


async def live(folder: Path, report: Path) -> None:
    """Say what is there, go on with the steps behind those that were done, and say so after
    each.
    """
    say_to = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    plan, last = steps(), (folder / "last").read_text()
    async with daemon(folder, model(), _SETTINGS) as d:
        now = await seen(d)
        os.write(say_to, json.dumps({"seen": now}).encode() + b"\n")
        done = sum("done" in line for line in lines(report))
        if now != plan[done][1]:
            # The step was done and nobody could say so any more; if it is neither, `problems` says
            # it.
            os.write(say_to, json.dumps({"done": done}).encode() + b"\n")
            done += 1
        for number in range(done + 1, len(plan)):
            await plan[number][0](d, last)
            os.write(say_to, json.dumps({"done": number}).encode() + b"\n")
        os.write(say_to, json.dumps({"end": await seen(d)}).encode() + b"\n")


def lines(report: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []


def child(folder: Path, die_at: int = 0, copies: Copies | None = None) -> int:
    async def work() -> None:
        points = Points(die_at, stops=copies is not None)
        # Before is enough: after one is before the next.
        arm(
            points,
            _OPERATIONS,
            lambda name, arguments: any(place in str(arguments[0]) for place in _PLACES),
            after=False,
        )
        await live(folder, folder / "report")
        (folder / "points").write_text(str(points.count))

    return forked(work, _CHILD_SECONDS, copies.keep if copies is not None else None)


def crashed(root: Path, die_at: tuple[int, ...]) -> list[str]:
    """Killed at these points one after another."""
    folder = root / "-".join(map(str, die_at))
    shutil.copytree(root / "begin", folder)
    for point in die_at:
        if (status := child(folder, point)) == 0:
            break
        if not killed(status):
            return [f"the daemon that was to die ended with status {status}"]
    return problems(folder)


def problems(folder: Path) -> list[str]:
    """Start from what a crash left, let it finish, and look."""
    report = folder / "report"
    if (status := child(folder)) != 0:
        return [f"the daemon that came back ended with status {status}"]
    states = [state for _, state in steps()]
    found, done = [], 0
    for line in lines(report):
        if "done" in line:
            done += 1
        elif "seen" in line and line["seen"] not in states[done : done + 2]:
            found.append(f"after {done} steps there is {line['seen']}")
    if lines(report)[-1].get("end") != states[-1]:
        found.append(f"at the end there is {lines(report)[-1]}")
    verified = sqlite_files.inspect(folder / "home/journal.db")
    return found if verified.ok else [*found, f"the chain is broken: {verified.bad}"]


def main(root: Path) -> None:
    (root / "begin").mkdir()

    async def once() -> None:
        await begin(root / "begin")
        shutil.copytree(root / "begin", root / "warm")
        await live(root / "warm", root / "warm/report")

    ready_to_fork(once)
    place = root / "whole"
    shutil.copytree(root / "begin", place)
    copies = Copies(place, root / "copies")
    assert child(place, copies=copies) == 0, "it does not even run without a crash"
    last = int((place / "points").read_text())
    assert copies.points >= last, "it went on where it was to stop"
    failures = {point: wrong for point in copies.each() if (wrong := problems(place))}
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
def test_killed_anywhere_in_accepting_applying_or_rolling_back_leaves_the_old_or_the_new(
    tmp_path: Path,
) -> None:
    crash_everywhere(tmp_path, 40, __name__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
