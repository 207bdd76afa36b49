"""What only a server can do to a journal: go away in the middle of a commit, come back, refuse, and
belong to somebody else.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from palyra.core.errors import ConfigInvalid, InvalidInput, Unavailable
from palyra.store import postgres_schema, tape
from palyra.store.database import Database, Tx
from palyra.store.postgres import Postgres, PostgresConnection, shown
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.store.verify import verify
from tests.cut_wire import CutWire
from tests.journals import FakeClock, note, noting, run
from tests.postgres_server import server

pytestmark = pytest.mark.postgres


@pytest.fixture
def address(tmp_path: Path) -> str:
    return server().database(tmp_path)


@pytest.fixture
def wire(address: str) -> Iterator[CutWire]:
    """A wire to the server, whole until a test cuts it."""
    made = CutWire(server().port)
    yield made
    made.close()


def _through(wire: CutWire, address: str) -> Postgres:
    return Postgres(address.replace(f":{server().port}/", f":{wire.port}/"))


def _opened(dialect: Postgres) -> Database:
    db = Database(dialect, FakeClock())
    db.open()
    return db


def _texts(tx: Tx) -> list[str]:
    return [str(each[3].title) for each in tape.events_between(tx, "t", 1, 1_000)]  # type: ignore[union-attr]


def test_a_commit_whose_answer_is_lost_is_known_to_be_done_and_not_done_twice(
    address: str, wire: CutWire
) -> None:
    async def scenario() -> None:
        db = _opened(_through(wire, address))
        await db.write(noting("t", "first"))
        armed = [True]

        def commits(data: bytes) -> bool:
            return b"COMMIT" in data and bool(armed and armed.pop())

        wire.after = commits
        # Whoever waits is told that it is durable, because it is.
        await db.write(noting("t", "second"))
        assert wire.cuts >= 1
        await db.write(noting("t", "third"))
        assert await db.read(_texts) == ["first", "second", "third"]
        assert (await db.read(verify)).ok
        await db.close()

    run(scenario())


def test_a_commit_that_never_arrived_is_an_error_and_leaves_nothing(
    address: str, wire: CutWire
) -> None:
    async def scenario() -> None:
        db = _opened(_through(wire, address))
        await db.write(noting("t", "first"))
        armed = [True]

        def commits(data: bytes) -> bool:
            return b"COMMIT" in data and bool(armed and armed.pop())

        wire.before = commits
        with pytest.raises(Unavailable, match="nothing acknowledged was lost"):
            await db.write(noting("t", "lost"))
        await db.write(noting("t", "second"))
        assert await db.read(_texts) == ["first", "second"]
        report = await db.read(verify)
        assert (report.ok, report.entries) == (True, 2)
        await db.close()

    run(scenario())


def test_a_server_that_was_away_is_found_again_by_writers_and_readers(
    address: str, wire: CutWire
) -> None:
    async def scenario() -> None:
        db = _opened(_through(wire, address))
        await db.write(noting("t", "first"))
        assert await db.read(_texts) == ["first"]
        wire.cut()
        # Nobody who asks afterwards hears of it.
        await db.write(noting("t", "second"))
        assert await db.read(_texts) == ["first", "second"]
        await db.close()

    run(scenario())


def test_cuts_at_every_message_lose_nothing_and_repeat_nothing(address: str, wire: CutWire) -> None:
    """The wire is cut at each of the first messages of a client, before it or after it."""

    async def scenario() -> None:
        acknowledged: list[str] = []
        for at in range(24):
            db = _opened(_through(wire, address))
            left = [at]

            def counted(data: bytes, left: list[int] = left) -> bool:
                left[0] -= 1
                return left[0] == 0

            name = "before" if at % 2 else "after"
            setattr(wire, name, counted)
            for number in range(4):
                text = f"{at}.{number}"
                try:
                    await db.write(noting("t", text))
                    acknowledged.append(text)
                except Unavailable:
                    # What was refused can be said again, and stands there once.
                    await db.write(noting("t", text))
                    acknowledged.append(text)
            wire.before = wire.after = lambda data: False
            await db.close()
        db = _opened(Postgres(address))
        assert await db.read(_texts) == acknowledged
        assert (await db.read(verify)).ok
        await db.close()

    run(scenario(), seconds=200)


def test_a_step_that_fails_leaves_no_gap_behind_it(address: str) -> None:
    async def scenario() -> None:
        db = _opened(Postgres(address))

        def fails(tx: Tx) -> None:
            tape.append(tx, "t", "user:owner", [note("never")])
            raise ValueError("no")

        for number in range(3):
            with pytest.raises(ValueError, match="no"):
                await db.write(fails)
            await db.write(noting("t", f"{number}"))
        report = await db.read(verify)
        assert (report.ok, report.entries) == (True, 3)
        await db.close()

    run(scenario())


def test_a_second_daemon_is_refused_and_let_in_when_the_first_is_gone(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palyra.store.postgres._LOCK_S", 0.3)

    async def scenario() -> None:
        first = _opened(Postgres(address))
        with pytest.raises(Unavailable, match="another daemon uses the journal"):
            _opened(Postgres(address))
        await first.close()
        second = _opened(Postgres(address))
        await second.write(noting("t", "mine"))
        await second.close()

    run(scenario())


def test_a_server_that_takes_no_writes_says_so_and_what_to_do(address: str) -> None:
    async def scenario() -> None:
        db = _opened(Postgres(address))
        await db.write(noting("t", "first"))
        with psycopg.connect(address, autocommit=True) as other:
            other.execute(
                f"ALTER DATABASE {address.rpartition('/')[2]} SET default_transaction_read_only = on"
            )
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(Unavailable) as refused:
            await db.write(noting("t", "second"))
        if "terminating" in refused.value.message:
            # The server ends a connection a moment after it was told to.
            with pytest.raises(Unavailable) as refused:
                await db.write(noting("t", "second"))
        assert "takes no writes" in refused.value.message
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SET default_transaction_read_only = off")
            other.execute(
                f"ALTER DATABASE {address.rpartition('/')[2]} RESET default_transaction_read_only"
            )
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        await db.write(noting("t", "third"))
        assert await db.read(_texts) == ["first", "third"]
        await db.close()

    run(scenario())


def test_a_server_that_is_not_there_is_an_error_that_names_it() -> None:
    async def scenario() -> None:
        with pytest.raises(Unavailable, match=r"PostgreSQL at 127\.0\.0\.1:9, database x does"):
            _opened(Postgres("postgresql://u:secret@127.0.0.1:9/x"))

    run(scenario())
    assert "secret" not in shown("postgresql://u:secret@127.0.0.1:9/x")


def test_a_database_with_other_tables_is_left_alone(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("CREATE TABLE theirs (x int)")

    async def scenario() -> None:
        with pytest.raises(ConfigInvalid, match="name an empty database"):
            _opened(Postgres(address))

    run(scenario())


def test_a_text_that_the_server_cannot_hold_is_refused_and_harms_nobody(address: str) -> None:
    async def scenario() -> None:
        db = _opened(Postgres(address))

        def odd(tx: Tx) -> None:
            tx.run("INSERT INTO task_kinds (kind, paused) VALUES (:kind, 0)", kind="a\0b")

        results = await asyncio.gather(
            db.write(noting("t", "one")),
            db.write(odd),
            db.write(noting("t", "two")),
            return_exceptions=True,
        )
        assert isinstance(results[1], InvalidInput)
        assert await db.read(_texts) == ["one", "two"]
        await db.close()

    run(scenario())


# The schema that the first journal on a server had.
_FIRST = 34


def test_an_older_schema_becomes_what_a_fresh_database_has(address: str, tmp_path: Path) -> None:
    older = [each for each in MIGRATIONS if each.number <= _FIRST]
    with psycopg.connect(address, autocommit=True) as raw:
        postgres_schema.bring_up_to_date(PostgresConnection(raw, Postgres(address)), tuple(older))
        postgres_schema.bring_up_to_date(PostgresConnection(raw, Postgres(address)))
        stepwise = _schema(raw)
    fresh = server().database(tmp_path / "fresh")
    with psycopg.connect(fresh, autocommit=True) as raw:
        postgres_schema.bring_up_to_date(PostgresConnection(raw, Postgres(fresh)))
        assert _schema(raw) == stepwise
    assert len(stepwise) > 300


def _schema(raw: psycopg.Connection[Any]) -> set[tuple[Any, ...]]:
    columns = raw.execute(
        "SELECT table_name, column_name, data_type, collation_name, column_default, is_nullable"
        " FROM information_schema.columns WHERE table_schema = 'public'"
    ).fetchall()
    indexes = raw.execute("SELECT indexname, indexdef FROM pg_indexes").fetchall()
    numbers = raw.execute("SELECT number, checksum FROM migrations").fetchall()
    return {*columns, *indexes, *numbers}


def test_readers_that_found_no_server_find_it_when_it_is_back(address: str, wire: CutWire) -> None:
    async def scenario() -> None:
        db = _opened(_through(wire, address))
        await db.write(noting("t", "first"))
        assert await db.read(_texts) == ["first"]
        wire.before = lambda data: True
        wire.cut()
        for _ in range(3):
            with pytest.raises(Unavailable, match="does not answer"):
                await db.read(_texts)
        wire.before = lambda data: False
        assert await db.read(_texts) == ["first"]
        await db.close()

    run(scenario())
