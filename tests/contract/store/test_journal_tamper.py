"""Whatever is done to a stored journal, verify finds it and names the first bad entry."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from palyra.core.errors import Unavailable
from palyra.store import sqlite_files, tree
from palyra.store.verify import VerifyReport
from tests.journals import new_id, noting, opened, run

pytestmark = pytest.mark.sqlite

TAPES = [new_id() for _ in range(4)]
COUNT = 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of forty entries on four tapes, one file without a WAL. Position p holds text
    `entry p`.
    """
    path = tmp_path_factory.mktemp("whole") / "j.db"

    async def scenario() -> None:
        async with opened(path) as db:
            for n in range(1, COUNT + 1):
                await db.write(noting(TAPES[n % 4], f"entry {n}"))
            _, tiles = await db.read(lambda tx: tree.grow(tx, None))
            await db.write(lambda tx: tree.put_tiles(tx, tiles))

    run(scenario())
    raw = apsw.Connection(str(path))
    raw.execute("PRAGMA journal_mode=DELETE")
    raw.close()
    return path


def tampered(
    whole: Path, tmp_path: Path, change: Callable[[apsw.Connection], object]
) -> VerifyReport:
    path = tmp_path / "j.db"
    shutil.copy(whole, path)
    raw = apsw.Connection(str(path))
    raw.execute("DROP TRIGGER entries_are_never_changed; DROP TRIGGER entries_are_never_deleted")
    change(raw)
    raw.close()
    return sqlite_files.inspect(path)


def test_an_untouched_journal_verifies(whole: Path, tmp_path: Path) -> None:
    report = tampered(whole, tmp_path, lambda raw: None)
    assert (report.ok, report.entries, report.tapes) == (True, COUNT, 4)


FLIPS = {
    "body": "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'entry', 'Entry') AS BLOB) WHERE position = 17",
    "time": "UPDATE entries SET time_ms = time_ms + 1 WHERE position = 17",
    "principal": "UPDATE entries SET principal = 'user:mallory' WHERE position = 17",
    "run": "UPDATE entries SET run_id = 'X' WHERE position = 17",
    "kind": "UPDATE entries SET kind = 'session.reset' WHERE position = 17",
    "link": "UPDATE entries SET link = 1 WHERE position = 17",
    "unknown link": "UPDATE entries SET link = 3 WHERE position = 17",
    "hash": "UPDATE entries SET hash = zeroblob(32) WHERE position = 17",
    "type": "UPDATE entries SET body = 'text' WHERE position = 17",
}


@pytest.mark.parametrize("column", FLIPS)
def test_a_changed_column_is_found_and_named(whole: Path, tmp_path: Path, column: str) -> None:
    report = tampered(whole, tmp_path, lambda raw: raw.execute(FLIPS[column]))
    assert report.bad is not None
    assert report.bad.position == 17


@pytest.mark.parametrize("column", ["tape", "run_id", "principal", "kind"])
def test_a_text_that_is_none_any_more_is_found_and_named(
    whole: Path, tmp_path: Path, column: str
) -> None:
    def spoil(raw: apsw.Connection) -> None:
        raw.execute(f"UPDATE entries SET {column} = CAST(X'41D041' AS TEXT) WHERE position = 17")

    report = tampered(whole, tmp_path, spoil)
    assert report.bad is not None
    assert report.bad.position == 17
    assert "UTF-8" in report.bad.problem


def test_every_flipped_byte_of_every_body_is_found(whole: Path, tmp_path: Path) -> None:
    rng = random.Random(7)
    for position in range(1, COUNT + 1):

        def flip(raw: apsw.Connection, position: int = position) -> None:
            body = bytearray(
                raw.execute("SELECT body FROM entries WHERE position = ?", (position,)).get
            )
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
            raw.execute("UPDATE entries SET body = ? WHERE position = ?", (bytes(body), position))

        report = tampered(whole, tmp_path, flip)
        assert report.bad is not None
        assert report.bad.position == position


@pytest.mark.parametrize("position", [1, 2, 17, 39])
def test_a_dropped_entry_is_found(whole: Path, tmp_path: Path, position: int) -> None:
    report = tampered(
        whole,
        tmp_path,
        lambda raw: raw.execute("DELETE FROM entries WHERE position = ?", (position,)),
    )
    assert report.bad is not None
    assert report.bad.position == position + 1
    assert "removed" in report.bad.problem


@pytest.mark.parametrize("count", [1, 5, COUNT])
def test_a_cut_off_end_is_found(whole: Path, tmp_path: Path, count: int) -> None:
    report = tampered(
        whole,
        tmp_path,
        lambda raw: raw.execute("DELETE FROM entries WHERE position > ?", (COUNT - count,)),
    )
    assert report.bad is not None
    assert "cut off" in report.bad.problem


def test_swapped_entries_are_found(whole: Path, tmp_path: Path) -> None:
    def swap(raw: apsw.Connection) -> None:
        raw.execute("UPDATE entries SET position = -1 WHERE position = 10")
        raw.execute("UPDATE entries SET position = 10 WHERE position = 11")
        raw.execute("UPDATE entries SET position = 11 WHERE position = -1")

    report = tampered(whole, tmp_path, swap)
    assert report.bad is not None
    assert report.bad.position == 10


def test_swapped_contents_are_found(whole: Path, tmp_path: Path) -> None:
    def swap(raw: apsw.Connection) -> None:
        one, two = (
            raw.execute("SELECT body, hash FROM entries WHERE position = ?", (p,)).get
            for p in (10, 14)
        )
        raw.execute("UPDATE entries SET body = ?, hash = ? WHERE position = 10", two)
        raw.execute("UPDATE entries SET body = ?, hash = ? WHERE position = 14", one)

    report = tampered(whole, tmp_path, swap)
    assert report.bad is not None
    assert report.bad.position == 10


@pytest.mark.parametrize(
    "where", ["behind the end", "before the beginning", "on a tape of its own"]
)
def test_an_inserted_entry_is_found(whole: Path, tmp_path: Path, where: str) -> None:
    position, tape, seq = {
        "behind the end": (COUNT + 1, TAPES[0], COUNT // 4 + 1),
        "before the beginning": (-5, TAPES[0], 0),
        "on a tape of its own": (COUNT + 1, new_id(), 1),
    }[where]

    def insert(raw: apsw.Connection) -> None:
        raw.execute(
            "INSERT INTO entries SELECT ?, ?, ?, time_ms, run_id, principal, kind, body, hash, link FROM entries WHERE position = 3",
            (position, tape, seq),
        )

    report = tampered(whole, tmp_path, insert)
    assert report.bad is not None
    assert report.bad.position == position


def test_a_forged_entry_with_a_right_hash_but_no_head_is_found(whole: Path, tmp_path: Path) -> None:
    from palyra.core import chain

    def forge(raw: apsw.Connection) -> None:
        time_ms, body, kind = raw.execute(
            "SELECT time_ms, body, kind FROM entries WHERE position = 3"
        ).get
        seq, prev = raw.execute(
            "SELECT head_seq, head_hash FROM tapes WHERE tape = ?", (TAPES[0],)
        ).get
        digest = chain.link_of(
            2,
            prev,
            tape=TAPES[0],
            seq=seq + 1,
            position=COUNT + 1,
            time_ms=time_ms,
            run_id="",
            principal="p",
            kind=kind,
            body=body,
        )
        row = (COUNT + 1, TAPES[0], seq + 1, time_ms, "", "p", kind, body, digest, 2)
        raw.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    report = tampered(whole, tmp_path, forge)
    assert report.bad is not None
    assert "by hand" in report.bad.problem


def test_a_flipped_byte_anywhere_in_the_file_never_passes_as_a_different_history(
    whole: Path, tmp_path: Path
) -> None:
    """Below SQLite: a byte of the raw file. Either something is found, or every entry still says
    what it said.
    """
    original = whole.read_bytes()
    rng = random.Random(11)
    found = 0
    for _ in range(300):
        damaged = bytearray(original)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path = tmp_path / "raw.db"
        path.write_bytes(damaged)
        try:
            report = sqlite_files.inspect(path)
        except (Unavailable, apsw.Error):
            found += 1
            continue
        if not report.ok or sqlite_files.page_problems(path):
            found += 1
        else:
            assert report.entries == COUNT
    assert found > 10
