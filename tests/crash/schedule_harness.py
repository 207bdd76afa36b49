"""Kills the daemon before and after every commit while a schedule fires, starts it again, and counts what came of it.

Run as `python -m tests.crash.schedule_harness FOLDER`. As in `harness`, everything is imported once and each daemon is a forked
child.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from palyra.domain.ids import OWNER
from palyra.journal import schedules as rows
from palyra.journal import sqlite_files
from palyra.journal.database import Tx
from palyra.runtime.schedule_steps import derived_id
from palyra.runtime.schedule_verbs import NewSchedule
from tests.clocks import HeldClock
from tests.crash.harness import Points, arm
from tests.scheduling import moment, settle, timed

BEFORE = moment("2026-11-16T08:59")
DUE = moment("2026-11-16T09:00")
SCHEDULE = derived_id(1_000, "crash")
_CHILD_SECONDS = 30
_SETTINGS = "[memory]\nembeddings = false\n"


class Armed(Points):
    """Counts from the moment when the clock strikes."""

    striking = False

    def reach(self) -> None:
        if self.striking:
            super().reach()


def child(folder: Path, die_at: int) -> tuple[int, dict[str, Any]]:
    """A daemon that lives until everything is quiet, or dies at a point."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(_CHILD_SECONDS)
            points = Armed(die_at)
            arm(points)
            report.write_text(json.dumps(asyncio.run(_live(folder, points))))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return status, json.loads(report.read_text()) if report.exists() else {}


async def _live(folder: Path, points: Armed) -> dict[str, Any]:
    again = (folder / "home/journal.db").exists()
    clock = HeldClock(DUE + 2_000 if again else BEFORE)
    points.striking = again
    async with timed(folder, clock, settings=_SETTINGS) as d:
        if not again:
            new = NewSchedule(text="look around", when="0 9 * * *", zone="Europe/Vienna")
            await d.timekeeping.schedules.add(OWNER, new, SCHEDULE)
            await settle(d)
            points.striking = True
            clock.advance(DUE - BEFORE + 1_000)
            await asyncio.sleep(0)
        await settle(d)
        points.striking = False
        return {"points": points.count, **await d.db.read(_found)}


def _found(tx: Tx) -> dict[str, Any]:
    firings = [[each.due_ms, each.state] for each in rows.firings(tx, SCHEDULE)]
    accepted = tx.all("SELECT run_id, schedule_id, state FROM runs")
    kinds: dict[str, int] = dict(tx.all("SELECT kind, count(*) FROM entries WHERE run_id <> '' GROUP BY kind"))
    return {
        "firings": firings,
        "runs": [[schedule_id, state] for _, schedule_id, state in accepted],
        "accepted": kinds.get("run.accepted", 0),
        "inputs": kinds.get("input.received", 0),
        "completed": kinds.get("run.completed", 0),
    }


WANTED = {"firings": [[DUE, "done"]], "runs": [[SCHEDULE, "done"]], "accepted": 1, "inputs": 1, "completed": 1}


def try_crash(root: Path, die_at: tuple[int, ...]) -> list[str]:
    folder = root / "-".join(map(str, die_at))
    folder.mkdir()
    for point in die_at:
        status, report = child(folder, point)
        if not os.WIFSIGNALED(status):
            break
        if os.WTERMSIG(status) != signal.SIGKILL:
            return [f"died of signal {os.WTERMSIG(status)}"]
    else:
        status, report = child(folder, 0)
    if status != 0:
        return [f"the daemon that recovered ended with status {status}"]
    found = {name: report[name] for name in WANTED}
    problems = [] if found == WANTED else [f"{found} instead of {WANTED}"]
    verified = sqlite_files.inspect(folder / "home/journal.db")
    return problems if verified.ok else [*problems, f"the chain is broken: {verified.bad}"]


def main(root: Path) -> None:
    whole = root / "whole"
    whole.mkdir()
    status, report = child(whole, 0)
    assert status == 0, "it does not even fire without a crash"
    last = report["points"]
    tries: list[tuple[int, ...]] = [(point,) for point in range(1, last + 1)]
    # And again, while it recovers.
    tries += [(point, 1 + point % 7) for point in range(1, last + 1, 4)]
    failures = {"-".join(map(str, die_at)): found for die_at in tries if (found := try_crash(root, die_at))}
    sys.stdout.write(json.dumps({"points": last, "tries": len(tries), "failures": failures}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
