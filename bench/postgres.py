"""The journal in PostgreSQL beside the one in a file: durable appends from many producers, a query,
and what the drivers cost.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import uvloop
from tests import postgres_server

from bench.common import Table
from bench.curves import new_tape
from palyra.core.events import SessionRuled
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.dialect import Dialect
from palyra.store.lease import LeaderLease, now_s
from palyra.store.nodes import LONE_MS, NodeIdentity, NodeStore
from palyra.store.postgres import Postgres
from palyra.store.sqlite import Sqlite
from palyra.store.sqlite_schema import MIGRATIONS

PRODUCERS = 64
APPENDS = 12_800
ROUNDS = 5
STATEMENTS = 2_000
# About 400 bytes of body, as an entry of a run has.
_EVENT = SessionRuled(rule_id="r", words="w" * 340)


async def _produce(db: Database, count: int) -> None:
    mine = new_tape()
    for _ in range(count):
        await db.write(lambda tx: tape.append(tx, mine, "user:owner", [_EVENT]))


async def _appending(dialect: Dialect) -> tuple[float, float, float]:
    """CPU of this process for an event, events in a second, and the time of one commit alone."""
    db = Database(dialect, lambda: time.time_ns() // 1_000_000)
    db.open()
    await _produce(db, 50)
    cpu, began = time.process_time(), time.monotonic()
    await asyncio.gather(*(_produce(db, APPENDS // PRODUCERS) for _ in range(PRODUCERS)))
    spent, took = time.process_time() - cpu, time.monotonic() - began
    began = time.monotonic()
    await _produce(db, 100)
    alone = (time.monotonic() - began) / 100
    await db.close()
    return spent / APPENDS * 1e6, APPENDS / took, alone * 1000


def _each(folder: Path, number: int) -> Iterator[tuple[str, Dialect]]:
    yield "SQLite", Sqlite(folder / f"{number}.db")
    server = postgres_server.server()
    yield "PostgreSQL", Postgres(server.database(folder / str(number)))
    yield "PostgreSQL, leading nodes", _leading(server.database(folder / f"{number} led"))


def _leading(address: str) -> Postgres:
    """The same for the node that leads: every commit compares its epoch."""
    store, me = NodeStore(address), NodeIdentity("bench", "bench", "", "", MIGRATIONS[-1].number)
    store.join(me, b"")
    epoch = store.take(me, store.look(me), LONE_MS)
    assert epoch is not None
    lease = LeaderLease(epoch, print)
    lease.extend(now_s(), 3_600_000)
    return Postgres(address, lease=lease)


def tables() -> Iterator[Table]:
    server = postgres_server.server(durable=True)
    try:
        with tempfile.TemporaryDirectory() as made:
            found: dict[str, list[tuple[float, float, float]]] = {}
            for number in range(ROUNDS):
                for name, dialect in _each(Path(made), number):
                    found.setdefault(name, []).append(uvloop.run(_appending(dialect)))
        rows = []
        for name, each in found.items():
            cpu, rate, alone = (statistics.median(column) for column in zip(*each, strict=True))
            rows.append((name, f"{cpu:.1f} µs", f"{rate:,.0f}", f"{alone:.2f} ms"))
        yield Table(
            f"Durable appends, {PRODUCERS} producers, medians of {ROUNDS} rounds in turn",
            ("store", "CPU per event here", "events per second", "one commit alone"),
            rows,
        )
        yield _drivers(server.database("drivers"))
    finally:
        postgres_server.end()


def _drivers(address: str) -> Table:
    """A select by key and a commit of three statements, by the driver in use and, if it is
    installed, by asyncpg on a loop of the thread's own.
    """
    rows = [("psycopg", *_measured(*_psycopg(address)))]
    try:
        rows.append(("asyncpg", *_measured(*_asyncpg(address))))
    except ImportError:
        rows.append(("asyncpg", "not installed", ""))
    return Table(
        "Drivers on a thread whose calls wait, CPU here",
        ("driver", "select by key", "commit of three statements"),
        rows,
    )


_Calls = tuple[Callable[[], Any], Callable[[], Any]]
_MAKE = "CREATE TABLE IF NOT EXISTS driven (id bigint PRIMARY KEY, body bytea NOT NULL)"


def _psycopg(address: str) -> _Calls:
    raw = psycopg.connect(address, autocommit=True, prepare_threshold=2)
    raw.execute(_MAKE)
    cursor, body = raw.cursor(binary=True), b"x" * 400

    def commit() -> None:
        cursor.execute("BEGIN", prepare=False)
        cursor.execute("INSERT INTO driven VALUES (1, %s) ON CONFLICT DO NOTHING", [body])
        cursor.execute("COMMIT", prepare=False)

    return lambda: cursor.execute("SELECT body FROM driven WHERE id = %s", [1]).fetchall(), commit


def _asyncpg(address: str) -> _Calls:
    import asyncpg  # type: ignore[import-not-found, import-untyped, unused-ignore]

    turn = uvloop.new_event_loop().run_until_complete
    raw = turn(asyncpg.connect(address))
    turn(raw.execute(_MAKE))
    select = turn(raw.prepare("SELECT body FROM driven WHERE id = $1"))
    insert = turn(raw.prepare("INSERT INTO driven VALUES (1, $1) ON CONFLICT DO NOTHING"))
    body = b"x" * 400

    def commit() -> None:
        turn(raw.execute("BEGIN"))
        turn(insert.fetch(body))
        turn(raw.execute("COMMIT"))

    return lambda: turn(select.fetch(1)), commit


def _measured(*calls: Callable[[], Any]) -> tuple[str, ...]:
    found = []
    for call in calls:
        for _ in range(50):
            call()
        cpu = time.process_time()
        for _ in range(STATEMENTS):
            call()
        found.append(f"{(time.process_time() - cpu) / STATEMENTS * 1e6:.0f} µs")
    return tuple(found)
