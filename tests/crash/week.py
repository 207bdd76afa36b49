"""A week in the life of a daemon, told by a clock that nobody waits for: seven days of schedules,
people, faults and deaths.

Run as `python -m tests.crash.week FOLDER`; it prints what it found. The daemon is the real one, put
together by the composition root; the clock, the model and the disk are the test's. Each life is a
forked child, so that `kill -9` is a real one.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import msgspec

from palyra.core.budgets import Spender
from palyra.core.ids import OWNER
from palyra.features.learning import rows as learning_rows
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, segment_walk, segments, sqlite_files, usage
from palyra.store.database import Tx
from palyra.store.usage import UsageFilter
from tests.crash.forking import Points, arm, killed, ready_to_fork, told
from tests.crash.week_story import (
    BOUNDED,
    DAY,
    HOUR,
    MINUTE,
    PRICES,
    SETTINGS,
    WINDOW,
    Life,
    Week,
    WeekClock,
    WeekModel,
)
from tests.faults import FullDisk
from tests.inprocess import daemon

_CHILD_SECONDS = 300
# Killed when schedules strike; once after it has just been started; away for minutes, hours and
# most of a day.
LIVES = (
    Life(0, 18 * HOUR, 3),
    Life(18 * HOUR + 2 * MINUTE, DAY + 9 * HOUR, 9),
    Life(DAY + 9 * HOUR + MINUTE, DAY + 9 * HOUR + 2 * MINUTE, 1),
    Life(DAY + 12 * HOUR + 3 * MINUTE, 2 * DAY + 3 * HOUR, 16),
    Life(2 * DAY + 3 * HOUR + 4 * MINUTE, 2 * DAY + 21 * HOUR),
    Life(3 * DAY + 17 * HOUR, 3 * DAY + 18 * HOUR, 28),
    Life(3 * DAY + 18 * HOUR + 30_000, 7 * DAY),
)


async def accounts(d: Daemon) -> dict[str, Any]:
    """Everything that must add up, read from the rows and from the tapes."""
    state = await d.budgets.states(Spender(principal=OWNER, schedule_id=BOUNDED))
    found = await d.db.read(_rows)
    folder = segments.folder_of(d.journal_path)
    found["tapes"] = await d.db.read(lambda tx: _tapes(tx, folder))
    found["ledger"] = {each.name: each.spent for each in state}
    found["overdue"] = await d.db.read(
        lambda tx: tx.all(
            "SELECT kind, task_id FROM tasks WHERE state = 'queued' AND ready_ms <= :now",
            now=d.clock.now_ms(),
        )
    )
    incidents = (await d.incidents.listing()).incidents
    found["incidents"] = [[each.domain, each.key, bool(each.closed_ms)] for each in incidents]
    return found


def _rows(tx: Tx) -> dict[str, Any]:
    spent = usage.spent(tx, UsageFilter())
    learned = learning_rows.listing(
        tx,
        OWNER,
        ("proposed", "pending_review", "accepted", "applied", "suppressed", "conflicted"),
        limit=1_000,
    )
    return {
        "firings": tx.all("SELECT schedule_id, due_ms, state, run_id FROM firings ORDER BY due_ms"),
        "runs": tx.all("SELECT run_id, schedule_id, state, reason FROM runs"),
        "tasks": tx.all("SELECT kind, state, count(*) FROM tasks GROUP BY kind, state"),
        "spent": [spent.tokens, spent.microusd],
        "learned": [[each.state, each.content, each.automatic] for each in learned],
        "remembered": [row[0] for row in tx.all("SELECT text FROM memory_items")],
        "days": {
            row.group: row.input_tokens + row.output_tokens
            for row in usage.grouped(tx, "day", UsageFilter())
        },
        "by schedule": {
            row.group: row.input_tokens + row.output_tokens
            for row in usage.grouped(tx, "schedule", UsageFilter())
        },
        "uploads": tx.all(
            """SELECT count(*) FROM artifacts JOIN sessions USING (session_id) WHERE sessions.key LIKE 'uploads %'
            AND artifacts.created_ms < :before""",
            before=tx.now_ms - 3 * DAY,
        )[0][0],
        "pending": [each.run_id for each in approvals.listing(tx, OWNER, pending=True)],
        "notices": [[row[0], row[1]] for row in tx.all("SELECT about, key FROM notices")],
    }


def _tapes(tx: Tx, folder: Path) -> dict[str, Any]:
    """Read off every entry there is, wherever it lies."""
    kinds: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    inputs: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    troubles: Counter[str] = Counter()
    tokens = cost = 0
    for _, _, _, _, run_id, _, kind, body, *_ in segment_walk.rows(
        tx, folder, segments.listing(tx)
    ):
        kinds[kind] += 1
        if kind == "run.accepted":
            accepted[run_id] += 1
        elif kind == "input.received":
            inputs[run_id] += 1
        elif kind == "model.failed":
            troubles[msgspec.json.decode(body)["failure"]] += 1
        elif kind == "run.failed":
            failures[msgspec.json.decode(body)["reason"]] += 1
        elif kind in ("model.replied", "model.used", "session.compacted"):
            event = msgspec.json.decode(body)
            used = event.get("usage") or {}
            tokens += used.get("input_tokens", 0) + used.get("output_tokens", 0)
            cost += event.get("cost_microusd", 0)
    return {
        "kinds": kinds,
        "accepted": accepted,
        "inputs": inputs,
        "failures": failures,
        "troubles": troubles,
        "spent": [tokens, cost],
    }


def child(folder: Path, life: Life) -> tuple[int, dict[str, Any]]:
    async def work() -> dict[str, Any]:
        # They count from the moment when it is to die.
        points = Points(life.dies_at, on=False)
        arm(points)
        return await _live(folder, life, points)

    return told(folder / "report.json", work, _CHILD_SECONDS)


async def _live(folder: Path, life: Life, points: Points) -> dict[str, Any]:
    disk = FullDisk(apsw.vfs_names()[0])
    apsw.set_default_vfs("full disk")
    clock = WeekClock(life.begin)
    async with daemon(
        folder, WeekModel(clock), SETTINGS, window=WINDOW, summary="scripted/one", clock=clock
    ) as d:
        week = Week(folder, d, clock, disk)
        # It dies at a point after the last moment, in what schedules that strike then set off.
        last = Life(life.begin, life.end - 1) if life.dies_at else life
        await week.live(last)
        if life.dies_at:
            points.on = True
            await week.pass_until(life.end + 1_000)
            os.kill(os.getpid(), signal.SIGKILL)
        return {
            "samples": week.samples,
            **(await accounts(d) if life is LIVES[-1] else {}),
            "failed writes": disk.failed,
        }


def main(root: Path) -> dict[str, Any]:
    began = time.monotonic()
    ready_to_fork()
    folder = root / "week"
    for part in ("home/policies", "work/inbox"):
        (folder / part).mkdir(parents=True)
    (folder / "home/prices.toml").write_text(PRICES)
    (folder / "work/inbox/letter.txt").write_text("the first")
    report: dict[str, Any] = {}
    for life in LIVES:
        status, report = child(folder, life)
        if (status != 0 and not life.dies_at) or killed(status) != bool(life.dies_at):
            raise SystemExit(f"the life from {life.begin / HOUR:.1f} h ended with status {status}")
    verified = sqlite_files.inspect(folder / "home/journal.db")
    return {
        **report,
        "verified": verified.ok,
        "problem": str(verified.bad or ""),
        "entries": verified.entries,
        "segments": verified.segments,
        "seconds": round(time.monotonic() - began, 1),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))) + "\n")
