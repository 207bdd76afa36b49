"""A vault that is killed at every commit and every file operation has all its secrets afterwards, and exactly one key.

The test runs this file as a program of its own: there everything is imported once and each life is a forked child.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from palyra.domain.errors import NotFound
from palyra.domain.ids import OWNER
from palyra.journal import sqlite_files
from palyra.journal.database import Database
from tests.unit.test_vault import Opened, opened

Verb = Callable[[Opened], Awaitable[Any]]
DOUBLE_CRASHES = 40
_CHILD_SECONDS = 60
# What is done, and what the vault holds when it was done.
STEPS: list[tuple[Verb, dict[str, str]]] = [
    (lambda v: v.set("A", "first value"), {"A": "first value"}),
    (lambda v: v.set("B", "value of B"), {"A": "first value", "B": "value of B"}),
    (lambda v: v.vault.rotate_key(OWNER), {"A": "first value", "B": "value of B"}),
    (lambda v: v.vault.rotate(OWNER, "global", "A", "second value"), {"A": "second value", "B": "value of B"}),
    (lambda v: v.vault.rotate_key(OWNER), {"A": "second value", "B": "value of B"}),
    (lambda v: v.vault.remove(OWNER, "global", "B"), {"A": "second value"}),
    (lambda v: v.set("C", "value of C"), {"A": "second value", "C": "value of C"}),
]
_OPERATIONS = ("replace", "fsync", "unlink", "write", "open")


class Points:
    """Counts points and dies at the chosen one."""

    def __init__(self, die_at: int) -> None:
        self.count = 0
        self._die_at = die_at

    def reach(self) -> None:
        self.count += 1
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.reach()
            result = real(*arguments, **named)
            self.reach()
            return result

        return wrapped


def fork(work: Callable[[], Awaitable[None]]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(_CHILD_SECONDS)
            asyncio.run(work())  # type: ignore[arg-type]
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def live(folder: Path, die_at: int, report: Path) -> int:
    """Go on with the steps, behind those that were acknowledged, and die at a point. The report gets one line a step."""

    async def work() -> None:
        done = steps_in(report)
        write = os.write
        acknowledged = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        points = Points(die_at)

        class Mortal(Database):
            def _commit(self, batch: list[Any]) -> None:
                points.reach()
                super()._commit(batch)
                points.reach()

        for name in _OPERATIONS:
            setattr(os, name, points.around(getattr(os, name)))
        async with opened(folder, Mortal) as v:
            held = await values(v)
            assert held in allowed(done), f"{held} after {done} steps"
            for verb, _ in STEPS[done:]:
                await again(verb, v)
                write(acknowledged, b".\n")
        write(acknowledged, f"points {points.count}\n".encode())

    return fork(work)


async def again(verb: Verb, v: Opened) -> None:
    """Do a step that may have been done before the crash."""
    try:
        await verb(v)
    except NotFound:
        assert "global/B" not in await v.names()


def steps_in(report: Path) -> int:
    return report.read_text().count(".\n") if report.exists() else 0


def allowed(done: int) -> list[dict[str, str]]:
    states = [{}, *(after for _, after in STEPS)]
    return states[done : done + 2]


async def values(v: Opened) -> dict[str, str]:
    return {label.removeprefix("global/"): await v.get(f"vault:{label}") for label in await v.names()}


def problems(folder: Path, report: Path) -> list[str]:
    """What is wrong after the last crash, as a file, because it is found in a child."""
    found = folder / "problems"
    found.unlink(missing_ok=True)

    async def work() -> None:
        done, wrong = steps_in(report), []
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
        found.write_text(json.dumps(wrong))

    status = fork(work)
    return json.loads(found.read_text()) if status == 0 and found.exists() else [f"opening it again ended with {status}"]


def main(root: Path) -> None:
    def folder_for(name: str) -> Path:
        (root / name).mkdir(parents=True)
        return root / name

    whole = folder_for("whole")
    assert live(whole, 0, whole / "report") == 0, "the steps do not even run without a crash"
    last = int((whole / "report").read_text().split("points ")[1])
    rng = random.Random(7)
    tries: list[tuple[int, ...]] = [(point,) for point in range(1, last + 1)]
    tries += [(rng.randint(1, last), rng.randint(1, last)) for _ in range(DOUBLE_CRASHES)]
    failures = {}
    for die_at in dict.fromkeys(tries):
        name = "-".join(map(str, die_at))
        folder = folder_for(name)
        statuses = [live(folder, point, folder / "report") for point in die_at]
        wrong = [f"ended with status {status}" for status in statuses if status not in (0, signal.SIGKILL)]
        if len(die_at) == 1 and statuses != [signal.SIGKILL]:
            wrong.append("it did not die")
        wrong += problems(folder, folder / "report")
        if wrong:
            failures[name] = wrong
    sys.stdout.write(json.dumps({"points": last, "tries": len(tries), "failures": failures}) + "\n")


def test_a_vault_killed_anywhere_has_all_its_secrets_and_exactly_one_key(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.e2e.test_vault_crash", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    result = json.loads(ran.stdout)
    assert result["failures"] == {}
    assert result["points"] > 60, "the points are not where the work is"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
