"""Whoever hands something to the journal hears back, whatever a step does and whenever the journal
is closed.
"""

import asyncio
import threading
from pathlib import Path

import pytest

from palyra.core.errors import Unavailable
from palyra.store import tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.verify import verify
from tests.journals import new_id, noting, opened, run


class Panic(BaseException):
    """As a library in another language raises it."""


@pytest.mark.parametrize(
    "error", [StopIteration(), Panic("oh")], ids=lambda error: type(error).__name__
)
def test_whatever_a_step_raises_others_are_written_and_hear_of_it(
    tmp_path: Path, error: BaseException
) -> None:
    def fails(tx: Tx) -> None:
        noting("never", "never")(tx)
        raise error

    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            one, two = new_id(), new_id()
            together = [db.write(noting(one, "a")), db.write(fails), db.write(noting(two, "b"))]
            _, late = await asyncio.wait(together, timeout=20)
            assert not late
            assert [each.exception() is not None for each in together] == [False, True, False]
            # Alone in its commit, too.
            _, late = await asyncio.wait([db.write(fails)], timeout=20)
            assert not late
            await asyncio.wait_for(db.write(noting(one, "c")), 20)
            heads = await db.read(lambda tx: [tape.head(tx, each) for each in (one, two, "never")])
            assert heads == [2, 1, 0]
            assert (await db.read(verify)).ok

    run(scenario())


def test_a_defect_in_who_listens_keeps_nobody_waiting(tmp_path: Path) -> None:
    def fails(told: object) -> None:
        raise RuntimeError("a defect")

    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            for signal in (db.on_commit, db.on_signal, db.on_touched):
                signal.connect(fails)
            together = [
                db.write(lambda tx: tasks.enqueue(tx, "work")),
                db.write(noting("one", "a")),
                db.write(noting("two", "b")),
            ]
            _, late = await asyncio.wait(together, timeout=20)
            assert not late
            assert (await db.read(verify)).entries == 2

    run(scenario())


def test_a_thread_that_reads_after_the_end_is_refused(tmp_path: Path) -> None:
    found: list[object] = []

    async def scenario() -> Database:
        async with opened(tmp_path / "j.db") as db:
            return db

    def read(db: Database) -> None:
        try:
            found.append(db.read_from_thread(lambda tx: tape.head(tx, "none")))
        except Unavailable as error:
            found.append(error)

    reading = threading.Thread(target=read, args=(run(scenario()),), daemon=True)
    reading.start()
    reading.join(20)
    assert [type(each) for each in found] == [Unavailable]
