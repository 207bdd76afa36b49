"""Kills the daemon at every point of putting sessions away and of bringing one back, starts it
again, and says what it found.

Run as `python -m tests.crash.retention_harness FOLDER`. How daemons are ended and started again:
see `forking`. Whatever the point was, the journal verifies and every session reads as it did.
"""

import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from palyra.core.ids import OWNER
from palyra.features.retention.service import DAY_MS
from palyra.models.scripted import Turn
from palyra.store import segments, sqlite_files
from tests.crash.forking import Copies, Points, arm, ready_to_fork, told
from tests.crash.scenarios import PERMIT_ALL, call
from tests.inprocess import daemon, entries, finished, say, session

SETTINGS = "[memory]\nembeddings = false\n"
KEYS = ("first", "second")
CHILD_SECONDS = 300
LONG = "one of many lines\n" * 900
TURNS: dict[str, Sequence[Turn]] = {
    "begin": [
        Turn(calls=(call("test.pure", text=LONG), call("fs.write", path="a.txt", content="x"))),
        Turn(text=("done",)),
    ]
}
Report = dict[str, Any]


async def make(folder: Path, points: Points) -> Report:
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
    return [
        f"{entry.position} {entry.hash} {bytes(entry.event).decode()}"
        for entry in await entries(d, where.session_id)
    ]


async def go(folder: Path, points: Points) -> Report:
    """Put both away, and bring one back."""
    async with daemon(folder, TURNS, SETTINGS) as d:
        where = await session(d, key=KEYS[0])
        points.on = True
        await d.retention.archive_old(30)
        await d.retention.restore(OWNER, where.session_id)
        points.on = False
        return {}


async def look(folder: Path, points: Points) -> Report:
    """Finish what was begun, and see whether all is there."""
    begun = sqlite_files.inspect(folder / "home/journal.db")
    async with daemon(folder, TURNS, SETTINGS) as d:
        await d.retention.archive_old(30)
        left = await d.db.read(segments.unremoved)
        partial = [
            path.name for path in segments.folder_of(folder / "home/journal.db").glob("*.partial")
        ]
        put_away = sqlite_files.inspect(folder / "home/journal.db")
        tapes = [await _read(d, key) for key in KEYS]
    brought_back = sqlite_files.inspect(folder / "home/journal.db")
    bad = [str(report.bad) for report in (begun, put_away, brought_back) if not report.ok]
    return {"tapes": tapes, "problems": [*bad, *left, *partial]}


def child(
    folder: Path,
    work: Callable[[Path, Points], Coroutine[Any, Any, Report]],
    copies: Copies | None = None,
) -> tuple[int, Report]:
    """Points count only from when the work says so: what a start does is tried elsewhere."""

    async def armed() -> Report:
        points = Points(stops=copies is not None, on=False)
        arm(points)
        return {**await work(folder, points), "points": points.count}

    return told(
        folder / "report.json", armed, CHILD_SECONDS, copies.keep if copies is not None else None
    )


def prepared(folder: Path) -> Path:
    for part in ("home/policies", "work"):
        (folder / part).mkdir(parents=True)
    (folder / "home/policies/all.cedar").write_text(PERMIT_ALL)
    return folder


def main(root: Path) -> None:
    segments.SLICE = 8

    async def once() -> None:
        warm = prepared(root / "warm")
        for work in (make, go, look):
            await work(warm, Points(on=False))

    ready_to_fork(once)
    place = prepared(root / "place")
    status, before = child(place, make)
    assert status == 0, "the sessions could not be made"
    copies = Copies(place, root / "copies")
    status, done = child(place, go, copies)
    assert status == 0, "it does not even work without a crash"
    assert copies.points >= done["points"], "it went on where it was to stop"
    failures: dict[str, Any] = {}
    for point in copies.each():
        status, found = child(place, look)
        if status != 0 or found["problems"] or found["tapes"] != before["tapes"]:
            failures[point] = [status, found.get("problems"), found.get("tapes") == before["tapes"]]
    sys.stdout.write(
        json.dumps({"points": done["points"], "states": copies.states, "failures": failures}) + "\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
