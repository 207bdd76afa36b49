"""Leases and codes in the journal: one holder at a time, each end once."""

from pathlib import Path

import pytest

from palyra.core.errors import NotFound
from palyra.features.workers import rows as workers_rows
from palyra.features.workers.rows import Lease
from palyra.store.database import Database
from tests.journals import FakeClock, new_id, opened, run


def lease(call_id: str, worker: str = "attic", attempt: int = 1) -> Lease:
    return Lease(call_id, worker, attempt, new_id(), new_id(), "shell.run", "held", 0, 0)


def test_a_call_has_one_holder_and_its_lease_one_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            call_id = new_id()
            assert await db.write(lambda tx: workers_rows.claim(tx, lease(call_id)))
            # Neither another worker nor another attempt gets what is held.
            assert not await db.write(
                lambda tx: workers_rows.claim(tx, lease(call_id, "cellar", 2))
            )
            assert not await db.write(lambda tx: workers_rows.end_lease(tx, call_id, 2, "done"))
            assert await db.write(lambda tx: workers_rows.end_lease(tx, call_id, 1, "lost"))
            # What came too late changes nothing.
            assert not await db.write(lambda tx: workers_rows.end_lease(tx, call_id, 1, "done"))
            # The same attempt is never given twice; a later one is.
            assert not await db.write(lambda tx: workers_rows.claim(tx, lease(call_id)))
            assert await db.write(lambda tx: workers_rows.claim(tx, lease(call_id, "cellar", 2)))
            found = await db.read(lambda tx: workers_rows.find_lease(tx, call_id))
            assert found is not None
            assert (found.worker, found.attempt, found.state) == ("cellar", 2, "held")
            assert [each.call_id for each in await db.read(workers_rows.held)] == [call_id]

    run(scenario())


def test_a_code_is_used_up_by_being_tried_and_the_newest_of_a_name_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        async with opened(tmp_path / "j.db") as db:
            await codes(db, clock)

    async def codes(db: Database, clock: FakeClock) -> None:
        later = clock.ms + 1_000
        await db.write(lambda tx: workers_rows.add_code(tx, b"old", "attic", later))
        await db.write(lambda tx: workers_rows.add_code(tx, b"new", "attic", later))
        await db.write(lambda tx: workers_rows.add_code(tx, b"over", "cellar", clock.ms - 1))
        assert await db.write(lambda tx: workers_rows.use_code(tx, b"old")) == ""
        assert await db.write(lambda tx: workers_rows.use_code(tx, b"over")) == ""
        assert await db.write(lambda tx: workers_rows.use_code(tx, b"new")) == "attic"
        assert await db.write(lambda tx: workers_rows.use_code(tx, b"new")) == ""

    run(scenario())


def test_a_name_that_is_enrolled_anew_has_only_its_new_certificate(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            await db.write(lambda tx: workers_rows.admit(tx, "attic", "one"))
            await db.write(lambda tx: workers_rows.set_state(tx, "attic", "revoked"))
            await db.write(lambda tx: workers_rows.admit(tx, "attic", "two"))
            assert await db.read(lambda tx: workers_rows.by_fingerprint(tx, "one")) is None
            row = await db.read(lambda tx: workers_rows.get(tx, "attic"))
            assert (row.state, row.fingerprint, row.revoked_ms, row.tools) == (
                "enrolled",
                "two",
                0,
                (),
            )
            with pytest.raises(NotFound, match="palyra workers"):
                await db.read(lambda tx: workers_rows.get(tx, "nobody"))

    run(scenario())
