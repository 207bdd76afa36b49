"""The queue: many tasks with workers that are killed at random, and how often an idle daemon wakes
up.
"""

import re
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.crash.task_storm import KINDS, storm
from tests.daemon import DaemonProcess, start

from bench.common import Table, cpu_s

TASKS = 100_000
WORKERS = 3
KILL_EVERY_S = 0.5
IDLE_S = 180


def _killed() -> Table:
    with tempfile.TemporaryDirectory() as folder:
        found = storm(
            Path(folder), TASKS, workers=WORKERS, kill_every_s=KILL_EVERY_S, seed=1, limit_s=1_200
        )
    assert not found.problems, found.problems[:10]
    assert not found.unfinished, f"{found.unfinished} tasks are stuck"
    rows: list[tuple[str, ...]] = []
    for kind, promise in zip(
        KINDS, ("at least once", "at most once", "a step with its end: exactly once"), strict=True
    ):
        states = found.states[kind]
        more = sum(
            times > 1
            for times in (found.leaves if kind == "exact" else found.effects[kind]).values()
        )
        rows.append(
            (
                promise,
                str(sum(states.values())),
                str(states.get("done", 0)),
                str(states.get("failed", 0)),
                str(more),
            )
        )
    title = (
        f"{TASKS} tasks, {WORKERS} worker processes on one journal, {found.kills} of them killed"
        f" with SIGKILL: {found.seconds:.0f} s, {TASKS / found.seconds:.0f} a second, the longest"
        f" wait {found.longest_wait_s:.0f} s, none stuck"
    )
    return Table(
        title,
        ("promise", "tasks", "done", "failed: its worker vanished", "begun more than once"),
        rows,
    )


def _idle() -> Table:
    with (
        tempfile.TemporaryDirectory() as folder,
        start(Path(folder), config="[log]\nlevel = 'warning'\n") as daemon,
    ):
        time.sleep(30)  # What is done after a start is over.
        before, switches, cpu = (
            _wakes(daemon),
            _switches(daemon.process.pid),
            cpu_s(daemon.process.pid),
        )
        time.sleep(IDLE_S)
        minutes = IDLE_S / 60
        wakes, switched = _wakes(daemon) - before, _switches(daemon.process.pid) - switches
        spent = cpu_s(daemon.process.pid) - cpu
    return Table(
        f"An idle daemon over {minutes:.0f} minutes",
        (
            "wake-ups of the queue a minute",
            "wake-ups of the whole process a minute",
            "CPU a minute",
        ),
        [
            (
                f"{wakes / minutes:.1f}",
                f"{switched / minutes:.0f}",
                f"{spent / minutes * 1000:.0f} ms",
            )
        ],
    )


def _wakes(daemon: DaemonProcess) -> int:
    request = urllib.request.Request(
        f"{daemon.url}/metrics", headers={"Authorization": f"Bearer {daemon.token}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        found = re.search(rb"^palyra_tasks_wakes_total (\d+)", answer.read(), re.MULTILINE)
    assert found
    return int(found[1])


def _switches(pid: int) -> int:
    """Return how often any thread of a process has gone to sleep of its own will: each time it had
    been woken.
    """
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.MULTILINE)
        total += int(found[1]) if found else 0
    return total


def tables() -> Iterator[Table]:
    yield _killed()
    yield _idle()
