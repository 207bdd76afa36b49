"""Worker processes on one journal, killed at random with SIGKILL while they work, and what became
of every task.

`python -m bench queue` does the same at full size. Workers are forked from a process that has
everything imported and no thread, so that a new one costs milliseconds.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palyra.features.tasks.worker import Step, Tasks
from palyra.store import tasks
from palyra.store.database import Database, Tx
from palyra.store.sqlite import Sqlite
from palyra.store.tasks import PRIORITIES, Task
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from tests.crash.forking import fork

LEASE_MS = 600
KINDS = ("least", "most", "exact")
_LIMIT = 16
_BATCH = 5_000
# The storm has its own limit; this only ends workers whose storm is gone.
_WORKER_SECONDS = 3_600


@dataclass
class Storm:
    """`effects`: how often the handler of each task of `least` and `most` did its deed; `leaves`:
    the same for `exact`.
    """

    tasks: int
    kills: int
    seconds: float
    states: dict[str, dict[str, int]]
    effects: dict[str, Counter[str]]
    leaves: Counter[str]
    unfinished: int
    longest_wait_s: float
    problems: list[str] = field(default_factory=list)


def storm(
    folder: Path, count: int, *, workers: int, kill_every_s: float, seed: int, limit_s: float
) -> Storm:
    """Fill the queue, work it off with workers that die, and account for every task."""
    journal = folder / "journal.db"
    asyncio.run(_fill(journal, count))
    rng = random.Random(seed)
    began = time.monotonic()
    alive = [_fork(folder, number) for number in range(workers)]
    kills, forked = 0, workers
    next_kill = began + rng.uniform(0, 2 * kill_every_s)
    while alive:
        if time.monotonic() - began > limit_s:
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            break
        for pid in list(alive):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                alive.remove(pid)
                if os.WIFSIGNALED(status):
                    alive.append(_fork(folder, forked))
                    forked += 1
        if alive and time.monotonic() >= next_kill:
            os.kill(rng.choice(alive), signal.SIGKILL)
            kills += 1
            next_kill = time.monotonic() + rng.uniform(0, 2 * kill_every_s)
        time.sleep(0.005)  # Other processes: there is nothing to wait on but the clock.
    return asyncio.run(_account(folder, count, kills, time.monotonic() - began))


async def _fill(journal: Path, count: int) -> None:
    clock = Clock()
    db = Database(Sqlite(journal), clock.now_ms)
    db.open()
    for first in range(0, count, _BATCH):

        def step(tx: Tx, first: int = first) -> None:
            for n in range(first, min(count, first + _BATCH)):
                tasks.enqueue(
                    tx,
                    KINDS[n % len(KINDS)],
                    {"n": n},
                    priority=PRIORITIES[n // 3 % 3],
                    max_attempts=1_000,
                )

        await db.write(step)
    await db.close()


def _fork(folder: Path, number: int) -> int:
    sys.stdout.flush()
    return fork(lambda: _work(folder, number), _WORKER_SECONDS)


async def _work(folder: Path, number: int) -> None:
    """One worker, until nothing is left to do for anybody."""
    clock = Clock()
    db = Database(Sqlite(folder / "journal.db"), clock.now_ms)
    db.open()
    worker = Tasks(db, Redactor(b"k" * 32), clock, lease_ms=LEASE_MS)
    deeds = os.open(folder / f"deeds-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def deed(task: Task) -> None:
        os.write(deeds, f"{task.task_id}\n".encode())
        await asyncio.sleep(0)

    async def grow(task: Task) -> Step:
        await asyncio.sleep(0)
        return lambda tx: tasks.enqueue(tx, "leaf", {"of": task.task_id})

    worker.register("least", deed, limit=_LIMIT)
    worker.register("most", deed, limit=_LIMIT, promise="at_most_once")
    worker.register("exact", grow, limit=_LIMIT)
    worker.start(alone=False)
    while await db.read(_left):
        await worker.settled()
        await asyncio.sleep(0.02)  # What others hold is theirs until their lease is over.
    await worker.close()
    await db.close()


def _left(tx: Tx) -> bool:
    return any(kind in KINDS for kind, _, _ in tasks.unfinished(tx))


async def _account(folder: Path, count: int, kills: int, seconds: float) -> Storm:
    db = Database(Sqlite(folder / "journal.db"), Clock().now_ms)
    db.open()

    def query(tx: Tx) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        rows = tx.all(
            "SELECT task_id, kind, state, started_ms - ready_ms FROM tasks WHERE kind <> 'leaf'"
        )
        return rows, tx.all(
            "SELECT json_extract(payload, '$.of'), count(*) FROM tasks WHERE kind = 'leaf' GROUP BY 1"
        )

    rows, leaves = await db.read(query)
    await db.close()
    kind_of = {row[0]: row[1] for row in rows}
    effects: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for path in folder.glob("deeds-*"):
        for line in path.read_text().splitlines():
            effects[kind_of[line]][line] += 1
    states: dict[str, dict[str, int]] = {kind: Counter() for kind in KINDS}
    for _, kind, state, _ in rows:
        states[kind][state] += 1
    found = Storm(
        tasks=count,
        kills=kills,
        seconds=seconds,
        states={kind: dict(each) for kind, each in states.items()},
        effects=effects,
        leaves=Counter(dict(leaves)),
        unfinished=sum(state in ("queued", "running") for _, _, state, _ in rows),
        longest_wait_s=max(row[3] for row in rows) / 1000,
    )
    found.problems = _problems(found, rows)
    return found


def _problems(storm: Storm, rows: list[tuple[Any, ...]]) -> list[str]:
    """Every way in which a promise was broken."""
    found = [] if len(rows) == storm.tasks else [f"{len(rows)} tasks instead of {storm.tasks}"]
    for task_id, kind, state, _ in rows:
        times = storm.leaves[task_id] if kind == "exact" else storm.effects[kind][task_id]
        right = {
            "least": state == "done" and times >= 1,
            "most": (state == "done" and times == 1) or (state == "failed" and times <= 1),
            "exact": state == "done" and times == 1,
        }[kind]
        if not right:
            found.append(f"{kind} {task_id} is {state} and was done {times} times")
    return found
