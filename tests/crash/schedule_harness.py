"""Kills the daemon before and after every commit while a schedule fires, starts it again, and
counts what came of it.

Run as `python -m tests.crash.schedule_harness FOLDER`. How daemons are ended and started again: see
`forking`.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from palyra.core import ids
from palyra.core.ids import OWNER
from palyra.features.schedules import rows
from palyra.features.schedules.service import NewSchedule
from palyra.store import sqlite_files
from palyra.store.database import Tx
from tests.clocks import HeldClock
from tests.crash.forking import Copies, Points, arm, killed, ready_to_fork, told
from tests.scheduling import moment, settle, timed

BEFORE = moment("2026-11-16T08:59")
DUE = moment("2026-11-16T09:00")
SCHEDULE = ids.derive(1_000, "crash")
_CHILD_SECONDS = 300
_SETTINGS = "[memory]\nembeddings = false\n"


def child(
    folder: Path, die_at: int = 0, copies: Copies | None = None
) -> tuple[int, dict[str, Any]]:
    """A daemon that lives until everything is quiet, or dies at a point. They count from the moment
    when the clock strikes.
    """

    async def work() -> dict[str, Any]:
        points = Points(die_at, stops=copies is not None, on=False)
        arm(points)
        return await _live(folder, points)

    return told(
        folder / "report.json", work, _CHILD_SECONDS, copies.keep if copies is not None else None
    )


async def _live(folder: Path, points: Points) -> dict[str, Any]:
    again = (folder / "home/journal.db").exists()
    clock = HeldClock(DUE + 2_000 if again else BEFORE)
    points.on = again
    async with timed(folder, clock, settings=_SETTINGS) as d:
        if not again:
            new = NewSchedule(text="look around", when="0 9 * * *", zone="Europe/Vienna")
            await d.timekeeping.schedules.add(OWNER, new, SCHEDULE)
            await settle(d)
            points.on = True
            clock.advance(DUE - BEFORE + 1_000)
            await asyncio.sleep(0)
        await settle(d)
        points.on = False
        return {"points": points.count, **await d.db.read(_found)}


def _found(tx: Tx) -> dict[str, Any]:
    firings = [[each.due_ms, each.state] for each in rows.firings(tx, SCHEDULE)]
    accepted = tx.all("SELECT run_id, schedule_id, state FROM runs")
    kinds: dict[str, int] = dict(
        tx.all("SELECT kind, count(*) FROM entries WHERE run_id <> '' GROUP BY kind")
    )
    return {
        "firings": firings,
        "runs": [[schedule_id, state] for _, schedule_id, state in accepted],
        "accepted": kinds.get("run.accepted", 0),
        "inputs": kinds.get("input.received", 0),
        "completed": kinds.get("run.completed", 0),
    }


WANTED = {
    "firings": [[DUE, "done"]],
    "runs": [[SCHEDULE, "done"]],
    "accepted": 1,
    "inputs": 1,
    "completed": 1,
}


def crashed(folder: Path, die_at: tuple[int, ...]) -> list[str]:
    """Killed at these points one after another."""
    folder.mkdir()
    for point in die_at:
        status, report = child(folder, point)
        if status == 0:
            return judged(folder, report)
        if not killed(status):
            return [f"ended with status {status}"]
    return recovered(folder)


def recovered(folder: Path) -> list[str]:
    """Start from what a crash left, let it finish, and look."""
    status, report = child(folder)
    return (
        judged(folder, report)
        if status == 0
        else [f"the daemon that recovered ended with status {status}"]
    )


def judged(folder: Path, report: dict[str, Any]) -> list[str]:
    found = {name: report[name] for name in WANTED}
    problems = [] if found == WANTED else [f"{found} instead of {WANTED}"]
    verified = sqlite_files.inspect(folder / "home/journal.db")
    return problems if verified.ok else [*problems, f"the chain is broken: {verified.bad}"]


def main(root: Path) -> None:
    warm, place = root / "warm", root / "whole"
    warm.mkdir()
    place.mkdir()
    ready_to_fork(lambda: _live(warm, Points(on=False)))
    copies = Copies(place, root / "copies")
    status, report = child(place, copies=copies)
    assert status == 0, "it does not even fire without a crash"
    last = report["points"]
    assert copies.points >= last, "it went on where it was to stop"
    failures = {point: found for point in copies.each() if (found := recovered(place))}
    # And again, while it recovers.
    twice = [(point, 1 + point % 7) for point in range(1, last + 1, 4)]
    failures |= {
        f"{first}-{then}": found
        for first, then in twice
        if (found := crashed(root / f"{first}-{then}", (first, then)))
    }
    result = {
        "points": last,
        "states": copies.states,
        "tries": last + len(twice),
        "failures": failures,
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
