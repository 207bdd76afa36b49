"""Kills the daemon at every point of putting sessions away and of bringing one back, starts it again, and says what it found.

Run as `python -m tests.crash.retention_harness FOLDER`. The sessions are made once; each try begins with a copy. A point is the
moment before or after a commit or a file operation. Whatever it was, the journal verifies and every session reads as it did.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from palyra.domain.ids import OWNER
from palyra.journal import segments, sqlite_files
from palyra.models.scripted import Turn
from palyra.runtime.retention import DAY_MS
from tests.crash.harness import Points, arm
from tests.crash.scenarios import PERMIT_ALL, call
from tests.inprocess import daemon, entries, finished, say, session

SETTINGS = "[memory]\nembeddings = false\n"
KEYS = ("first", "second")
CHILD_SECONDS = 120
LONG = "one of many lines\n" * 900
TURNS: dict[str, Sequence[Turn]] = {
    "begin": [Turn(calls=(call("test.pure", text=LONG), call("fs.write", path="a.txt", content="x"))), Turn(text=("done",))]
}
Report = dict[str, Any]


class Late(Points):
    """Counts only from when it is told to: what a start does is tried elsewhere."""

    on = False

    def reach(self) -> None:
        if self.on:
            super().reach()


async def make(folder: Path, points: Late) -> Report:
    async with daemon(folder, TURNS, SETTINGS) as d:
        for key in KEYS:
            where = await session(d, key=key)
            await finished(d, await say(d, where, "begin"))
        old = d.clock.now_ms() - 100 * DAY_MS
        await d.db.write(lambda tx: tx.run("UPDATE sessions SET updated_ms = :old", old=old))
        return {"tapes": [await _read(d, key) for key in KEYS]}


async def _read(d: Any, key: str) -> list[str]:
    where = await session(d, key=key)
    await d.retention.restore(OWNER, where.session_id)
    return [f"{entry.position} {entry.hash} {bytes(entry.event).decode()}" for entry in await entries(d, where.session_id)]


async def go(folder: Path, points: Late) -> Report:
    """Put both away, and bring one back."""
    async with daemon(folder, TURNS, SETTINGS) as d:
        where = await session(d, key=KEYS[0])
        points.on = True
        await d.retention.archive_old(30)
        await d.retention.restore(OWNER, where.session_id)
        points.on = False
        return {}


async def look(folder: Path, points: Late) -> Report:
    """Finish what was begun, and see whether all is there."""
    begun = sqlite_files.inspect(folder / "home/journal.db")
    async with daemon(folder, TURNS, SETTINGS) as d:
        await d.retention.archive_old(30)
        left = await d.db.read(segments.unremoved)
        partial = [path.name for path in segments.folder_of(folder / "home/journal.db").glob("*.partial")]
        put_away = sqlite_files.inspect(folder / "home/journal.db")
        tapes = [await _read(d, key) for key in KEYS]
    brought_back = sqlite_files.inspect(folder / "home/journal.db")
    bad = [str(report.bad) for report in (begun, put_away, brought_back) if not report.ok]
    return {"tapes": tapes, "problems": [*bad, *left, *partial]}


def child(folder: Path, work: Callable[[Path, Late], Coroutine[Any, Any, Report]], die_at: int = 0) -> tuple[int, Report]:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(CHILD_SECONDS)
            points = Late(die_at)
            arm(points)
            segments.SLICE = 8
            done = asyncio.run(work(folder, points))
            report.write_text(json.dumps({**done, "points": points.count}))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return status, json.loads(report.read_text()) if report.exists() else {}


def main(root: Path) -> None:
    made = root / "made"
    for part in ("home/policies", "work"):
        (made / part).mkdir(parents=True)
    (made / "home/policies/all.cedar").write_text(PERMIT_ALL)
    status, before = child(made, make)
    assert status == 0, "the sessions could not be made"
    whole = root / "whole"
    shutil.copytree(made, whole)
    status, done = child(whole, go)
    assert status == 0, "it does not even work without a crash"
    failures: dict[int, Any] = {}
    for point in range(1, done["points"] + 1):
        folder = root / str(point)
        shutil.copytree(made, folder)
        status, _ = child(folder, go, point)
        died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        status, found = child(folder, look)
        if not died or status != 0 or found["problems"] or found["tapes"] != before["tapes"]:
            failures[point] = [died, status, found.get("problems"), found.get("tapes") == before["tapes"]]
        shutil.rmtree(folder)
    sys.stdout.write(json.dumps({"points": done["points"], "failures": failures}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
