"""Curves that must be flat: appending to a long journal, and a turn in a long session."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uvloop

from bench.common import Client, Table, cpu_s, daemon_with, fake_provider
from bench.runs import one_run
from palyra.core import ids
from palyra.core.events import ModelReplied
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.store.sqlite import Sqlite

SIZES = (1_000, 100_000, 1_000_000)
PRODUCERS = 100
ROUNDS = 7
RUNS_A_ROUND = 20
SESSION_ENTRIES = (10, 1_000, 10_000)
_EVENT = ModelReplied(turn=1, provider="p", model="m", text="a reply of an ordinary length " * 4)


def _step(tape_id: str, count: int = 1) -> Callable[[Tx], None]:
    def append(tx: Tx) -> None:
        tape.append(tx, tape_id, "user:owner", [_EVENT] * count)

    return append


def new_tape() -> str:
    return ids.make(time.time_ns() // 1_000_000, os.urandom(10))


async def fill(db: Database, count: int, session: str = "") -> None:
    """Append so many events, to one tape or twenty to each of many."""
    while count > 0:
        sizes = [min(20, count - at) for at in range(0, min(count, 4_000), 20)]
        await asyncio.gather(*(db.write(_step(session or new_tape(), size)) for size in sizes))
        count -= sum(sizes)


async def _produce(db: Database, count: int) -> None:
    mine = new_tape()
    for _ in range(count):
        await db.write(_step(mine))


async def _appending(folder: Path) -> tuple[list[tuple[str, ...]], float]:
    """CPU and time per durable append at growing sizes, from 100 producers at once, each to its own
    tape.
    """
    db = Database(Sqlite(folder / "journal.db"), lambda: time.time_ns() // 1_000_000)
    db.open()
    rows: list[tuple[str, ...]] = []
    first = rate = 0.0
    size = 0
    for goal in SIZES:
        await fill(db, goal - size)
        size = goal
        total = 20_000
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.gather(*(_produce(db, total // PRODUCERS) for _ in range(PRODUCERS)))
        each_us = (time.process_time() - cpu) / total * 1e6
        rate = total / (time.monotonic() - began)
        size += total
        first = first or each_us
        rows.append((f"{goal:,}", f"{each_us:.1f} µs", f"{each_us / first:.2f}", f"{rate:,.0f}"))
    await db.close()
    return rows, rate


def tables() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        rows, _ = uvloop.run(_appending(Path(folder)))
        yield Table(
            "Appending one durable event, 100 producers",
            ("entries in the journal", "CPU per event", "ratio", "events per second"),
            rows,
        )
    yield _turns()


def _turns() -> Table:
    """A run in a session that has this many entries already. The model's window is 8,000 tokens in
    all three.

    In turns, and of each the median: the machine changes its speed while this goes on.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        fake_provider() as url,
        daemon_with(Path(folder), url, window=8_000) as daemon,
    ):

        async def measure() -> list[list[float]]:
            client, watcher = Client(daemon.port, daemon.token), Client(daemon.port, daemon.token)

            async def runs(session: str, count: int) -> float:
                cpu = cpu_s(daemon.pid)
                for _ in range(count):
                    await one_run(client, watcher, session)
                return (cpu_s(daemon.pid) - cpu) / count * 1000

            async def session(entries: int) -> str:
                made = str((await client.post("/v1/sessions", {}))["session_id"])
                # A run leaves about 24 entries behind.
                await runs(made, max(0, entries - 10) // 24 + 1)
                return made

            long = [await session(entries) for entries in SESSION_ENTRIES[1:]]
            costs: list[list[float]] = [[] for _ in SESSION_ENTRIES]
            for _ in range(ROUNDS):
                # The short one is a new one each time: it would not stay short.
                for cost, where in zip(
                    costs, [await session(SESSION_ENTRIES[0]), *long], strict=True
                ):
                    cost.append(await runs(where, RUNS_A_ROUND))
            return costs

        medians = [statistics.median(each) for each in uvloop.run(measure())]
    rows = [
        (f"{entries:,}", f"{each_ms:.2f} ms", f"{each_ms / medians[0]:.2f}")
        for entries, each_ms in zip(SESSION_ENTRIES, medians, strict=True)
    ]
    return Table(
        "One run in a session that is already long (window of 8,000 tokens)",
        ("entries before", "CPU per run", "ratio"),
        rows,
    )
