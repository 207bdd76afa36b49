"""Kills the daemon at every point of a rewind, starts it again, and says what it found.

Run as `python -m tests.crash.rewind_harness FOLDER HOW`. A session that has changed files is made
once; each try begins with a copy of it. How daemons are ended and started again: see `forking`.
What comes back must be the old state or the new one.
"""

import json
import random
import shutil
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from palyra.core.ids import OWNER
from palyra.features.time_travel.rewind import Rewind
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import ScriptedModel
from palyra.store import rewinds, sqlite_files
from tests.crash.forking import FILES, Copies, Points, arm, killed, ready_to_fork, told
from tests.crash.scenarios import PERMIT_ALL
from tests.inprocess import daemon, entries, session
from tests.time_travelling import delete, do, obedient, patch, tree, write

NO_MEMORY = "[memory]\nembeddings = false\n"
KEY = "rewound"
DOUBLE_CRASHES = 10
CHILD_SECONDS = 300
Report = dict[str, Any]


def prepared(folder: Path) -> Path:
    (folder / "home/policies").mkdir(parents=True)
    (folder / "home/policies/test.cedar").write_text(PERMIT_ALL)
    return folder


def shown(folder: Path) -> dict[str, list[Any]]:
    return {
        name: [mode, content.decode()] for name, (mode, content) in tree(folder / "work").items()
    }


async def make(folder: Path, model: ScriptedModel) -> Report:
    """A session with changes of every kind, and what its files were in the middle and at the
    end.
    """
    async with daemon(folder, model, NO_MEMORY) as d:
        where = await session(d, key=KEY)
        await do(d, where, write("a.txt", "one\n"), write("x/b.txt", "b\n"))
        middle, to = shown(folder), len(await entries(d, where.session_id))
        run = await do(
            d,
            where,
            patch("a.txt", "one", "two"),
            delete("x/b.txt", "b\n"),
            write("y/z/c.txt", "c\n"),
            write("d.txt", "d\n"),
        )
        return {"to": to, "run": run, "old": shown(folder), "new": middle}


async def look(folder: Path, model: ScriptedModel) -> Report:
    """Start, and see what is there. Then do it again: it must be possible, and end in the new
    state.
    """
    async with daemon(folder, model, NO_MEMORY) as d:
        where = await session(d, key=KEY)
        kinds = [entry.kind for entry in await entries(d, where.session_id)]
        pending = await d.db.read(rewinds.pending)
        return {"files": shown(folder), "kinds": kinds[-1:], "pending": len(pending)}


async def go(folder: Path, model: ScriptedModel, how: str, made: Report) -> Report:
    async with daemon(folder, model, NO_MEMORY) as d:
        where = await session(d, key=KEY)
        if how == "rewind":
            await d.rewinding.rewind(OWNER, where.session_id, Rewind(to=made["to"]))
        else:
            await d.undoing.undo(OWNER, where.session_id, Undo(run_id=made["run"]))
        return {"files": shown(folder)}


def child(
    folder: Path,
    work: Callable[[], Coroutine[Any, Any, Report]],
    die_at: int = 0,
    copies: Copies | None = None,
) -> tuple[int, Report]:
    """Fork a daemon that does something; its exit status and what it reported."""

    async def armed() -> Report:
        points = Points(die_at, stops=copies is not None)
        arm(points, (*FILES, "rmdir", "mkdir"))
        return {**await work(), "points": points.count}

    return told(
        folder / "report.json", armed, CHILD_SECONDS, copies.keep if copies is not None else None
    )


class Tries:
    """One way back, tried with every crash."""

    def __init__(self, root: Path, how: str) -> None:
        self._root, self._how = root, how
        self.folder = prepared(root / "daemon")
        status, self.made = child(self.folder, lambda: make(self.folder, obedient()))
        assert status == 0, "the session could not even be made"
        shutil.copytree(self.folder, root / "kept")

    def _fresh(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._root / "kept", self.folder)

    def _go(self, die_at: int, copies: Copies | None = None) -> tuple[int, Report]:
        return child(
            self.folder, lambda: go(self.folder, obedient(), self._how, self.made), die_at, copies
        )

    def whole(self, copies: Copies) -> int:
        """Without a crash: how many points there are."""
        self._fresh()
        status, report = self._go(0, copies)
        assert status == 0, "it does not even work without a crash"
        assert report["files"] == self.made["new"]
        return int(report["points"])

    def crashed(self, die_at: int, again_at: int) -> list[str]:
        """Killed twice: also while it is being taken back, or while nothing was to be done any
        more.
        """
        self._fresh()
        status, _ = self._go(die_at)
        # Commits that come together are one, so that now and then there are fewer points than
        # before.
        if status != 0 and not killed(status):
            return [f"the daemon that was to die ended with status {status}"]
        status, _ = child(self.folder, lambda: look(self.folder, obedient()), again_at)
        if status != 0 and not killed(status):
            return [f"the daemon that was to die again ended with status {status}"]
        return self.judged()

    def judged(self) -> list[str]:
        """Start from what a crash left, and look."""
        status, found = child(self.folder, lambda: look(self.folder, obedient()))
        if status != 0:
            return [f"the daemon did not start again: status {status}"]
        return self._problems(found) + self._finish(found)

    def _problems(self, found: Report) -> list[str]:
        happened = found["kinds"] == [
            {"rewind": "session.restored", "undo": "tool.undone"}[self._how]
        ]
        wanted = self.made["new" if happened else "old"]
        problems = (
            []
            if found["files"] == wanted
            else [f"the tape says {happened}, the files are {found['files']}"]
        )
        return problems + (["something is still pending"] if found["pending"] else [])

    def _finish(self, found: Report) -> list[str]:
        """What did not happen can be done now; what did is not done twice."""
        if found["files"] == self.made["old"]:
            status, report = self._go(0)
            if status != 0 or report["files"] != self.made["new"]:
                return [f"it could not be done afterwards: status {status}"]
        verified = sqlite_files.inspect(self.folder / "home/journal.db")
        return [] if verified.ok else [f"the chain is broken: {verified.bad}"]


def main(root: Path, how: str) -> None:
    async def once() -> None:
        warm = prepared(root / "warm")
        await go(warm, obedient(), how, await make(warm, obedient()))
        await look(warm, obedient())

    ready_to_fork(once)
    tries = Tries(root, how)
    copies = Copies(tries.folder, root / "copies")
    last = tries.whole(copies)
    assert copies.points >= last, "it went on where it was to stop"
    failures = {point: found for point in copies.each() if (found := tries.judged())}
    rng = random.Random(7)
    twice = [(rng.randint(1, last), rng.randint(1, last // 2)) for _ in range(DOUBLE_CRASHES)]
    failures |= {
        f"{die_at}-{again_at}": found
        for die_at, again_at in twice
        if (found := tries.crashed(die_at, again_at))
    }
    result = {
        "points": last,
        "states": copies.states,
        "tries": last + DOUBLE_CRASHES,
        "failures": failures,
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
