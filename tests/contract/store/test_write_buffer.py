"""Rows that a commit holds before it writes them: no step can tell, and one that fails takes only
its own with it.
"""

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import Conflict
from palyra.core.events import ModelUsed, RunAccepted, RunCompleted, RunStarted
from palyra.store import runs, tape
from palyra.store.database import Tx
from palyra.store.verify import verify
from tests.journals import new_id, note, noting, opened, run

OWNER = "user:owner"
_DOES = st.sampled_from(["note", "bill", "look", "mark", "fail"])
_STEPS = st.lists(
    st.lists(st.tuples(_DOES, st.sampled_from(["one", "two"])), max_size=5), min_size=1, max_size=12
)


class Model:
    """What the store should hold, kept by hand."""

    def __init__(self) -> None:
        self.heads = {"one": 0, "two": 0}
        self.bills = self.marks = 0

    def step(self, tx: Tx, does: list[tuple[str, str]]) -> None:
        heads, bills, marks = dict(self.heads), self.bills, self.marks
        for what, where in does:
            if what == "note":
                tape.append(tx, where, OWNER, [note("a"), note("b")])
                heads[where] += 2
            elif what == "bill":
                tape.append(
                    tx, where, OWNER, [ModelUsed(provider="p", model="m", task="background")]
                )
                heads[where] += 1
                bills += 1
            elif what == "mark":
                tx.run(
                    "INSERT INTO session_rules (rule_id, session_id, words, created_ms) VALUES (:id, 's', '', 0)",
                    id=new_id(),
                )
                marks += 1
            elif what == "look":
                assert (tape.head(tx, where), _count(tx, "usage")) == (heads[where], bills)
                assert _count(tx, "entries") == sum(heads.values())
            else:
                raise Conflict("no")
        self.heads, self.bills, self.marks = heads, bills, marks


def _count(tx: Tx, table: str) -> int:
    return int((tx.one(f"SELECT count(*) FROM {table}") or (0,))[0])


@settings(max_examples=40)
@given(batches=st.lists(_STEPS, min_size=1, max_size=3))
def test_steps_see_and_leave_what_they_would_if_each_were_written_at_once(
    batches: list[list[list[tuple[str, str]]]],
) -> None:
    async def scenario(path: Path) -> None:
        model = Model()
        async with opened(path) as db:
            for steps in batches:
                gate = threading.Event()
                first = db.write(lambda tx, gate=gate: gate.wait(20))  # type: ignore[misc]
                told = [db.write(lambda tx, does=does: model.step(tx, does)) for does in steps]  # type: ignore[misc]
                gate.set()
                assert await first
                for outcome in await asyncio.gather(*told, return_exceptions=True):
                    assert outcome is None or isinstance(outcome, Conflict), outcome
            report = await db.read(verify)
            assert (report.ok, report.entries) == (True, sum(model.heads.values()))
            found = await db.read(
                lambda tx: {table: _count(tx, table) for table in ("usage", "session_rules")}
            )
            assert found == {"usage": model.bills, "session_rules": model.marks}
            assert (
                await db.read(lambda tx: {name: tape.head(tx, name) for name in model.heads})
                == model.heads
            )

    with tempfile.TemporaryDirectory() as folder:
        run(scenario(Path(folder) / "j.db"))


@pytest.mark.sqlite
def test_what_another_process_appends_between_two_commits_is_not_overlooked(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_id = new_id()
        async with opened(tmp_path / "j.db") as ours, opened(tmp_path / "j.db") as theirs:
            await ours.write(
                lambda tx: tape.append(tx, "t", OWNER, [RunAccepted(), RunStarted()], run_id)
            )
            await theirs.write(
                lambda tx: tape.append(tx, "t", OWNER, [RunCompleted(text="done")], run_id)
            )
            await ours.write(noting("t", "behind it"))
            report = await ours.read(verify)
            assert (report.ok, report.entries) == (True, 4)
            assert (await ours.read(lambda tx: runs.get(tx, run_id, OWNER))).state == "done"

    run(scenario())


def test_many_rows_go_in_whatever_their_number_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "j.db") as db:
            for number in (1, 3, 4, 5, 63, 64, 65, 200):
                await db.write(noting("t", *map(str, range(number))))
            report = await db.read(verify)
            assert (report.ok, report.entries) == (True, 405)

    run(scenario())


@pytest.mark.sqlite
def test_positions_go_on_behind_what_another_process_has_appended(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "j.db"
        async with opened(path) as ours, opened(path) as theirs:
            for number in range(3):
                for db, where in ((ours, "one"), (ours, "one"), (theirs, "two"), (theirs, "one")):
                    await db.write(noting(where, f"{number}"))
            # What was taken back has used no positions.
            for db in (ours, theirs):
                try:
                    await db.write(_failing)
                except Conflict:
                    await db.write(noting("two", "behind a failure"))
            found = await ours.read(lambda tx: tx.all("SELECT position FROM entries ORDER BY 1"))
            assert [row[0] for row in found] == list(range(1, 15))
            await ours.read(verify)

    run(scenario())


def _failing(tx: Tx) -> None:
    noting("one", "a", "b", "c")(tx)
    raise Conflict("no")
