"""Curves that must be flat: appending to a long journal, and a turn in a long session."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uvloop

from bench.common import Client, Table, cpu_s, daemon_with, fake_provider
from bench.runs import one_run
from palyra.domain import ids
from palyra.domain.events import ModelReplied
from palyra.journal import tape
from palyra.journal.database import Database, Tx
from palyra.journal.sqlite import Sqlite

SIZES = (1_000, 100_000, 1_000_000)
PRODUCERS = 100
SESSION_ENTRIES = (10, 1_000, 10_000)
_EVENT = ModelReplied(turn=1, provider="p", model="m", text="a reply of an ordinary length " * 4)


def _step(tape_id: str, count: int = 1) -> Callable[[Tx], None]:
    def append(tx: Tx) -> None:
        tape.append(tx, tape_id, "user:owner", [_EVENT] * count)

    return append


def _new_tape() -> str:
    return ids.make(time.time_ns() // 1_000_000, os.urandom(10))


async def _produce(db: Database, count: int) -> None:
    mine = _new_tape()
    for _ in range(count):
        await db.write(_step(mine))


async def _appending(folder: Path) -> tuple[list[tuple[str, ...]], float]:
    """CPU and time per durable append at growing sizes, from 100 producers at once, each to its own tape."""
    db = Database(Sqlite(folder / "journal.db"), lambda: time.time_ns() // 1_000_000)
    db.open()
    rows: list[tuple[str, ...]] = []
    first = rate = 0.0
    size = 0
    for goal in SIZES:
        while size < goal:
            await asyncio.gather(*(db.write(_step(_new_tape(), 20)) for _ in range(min(200, (goal - size) // 20 + 1))))
            size += 20 * min(200, (goal - size) // 20 + 1)
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
    """A run in a session that has this many entries already. The model's window is 8,000 tokens in all three."""
    rows: list[tuple[str, ...]] = []
    first = 0.0
    with tempfile.TemporaryDirectory() as folder, fake_provider() as url, daemon_with(Path(folder), url, window=8_000) as daemon:

        async def measure(entries: int) -> float:
            client, watcher = Client(daemon.port, daemon.token), Client(daemon.port, daemon.token)
            session = (await client.post("/v1/sessions", {}))["session_id"]
            # A run leaves about 24 entries behind.
            for _ in range(max(0, entries - 10) // 24 + 1):
                await one_run(client, watcher, session)
            cpu, count = cpu_s(daemon.pid), 60
            for _ in range(count):
                await one_run(client, watcher, session)
            return (cpu_s(daemon.pid) - cpu) / count * 1000

        uvloop.run(measure(10))
        for entries in SESSION_ENTRIES:
            each_ms = uvloop.run(measure(entries))
            first = first or each_ms
            rows.append((f"{entries:,}", f"{each_ms:.2f} ms", f"{each_ms / first:.2f}"))
    return Table(
        "One run in a session that is already long (window of 8,000 tokens)", ("entries before", "CPU per run", "ratio"), rows
    )
