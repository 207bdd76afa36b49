"""The tamper matrix of the journal itself: whoever writes the file, with every hash made anew, is
found out and the place is named. Nothing here has the daemon's key, except where it says so.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from palyra.core import signed_notes
from palyra.core.signed_notes import LogCheckpoint, SigningKey
from palyra.features.proof.service import JournalProof
from palyra.store import tree, verify
from palyra.store.log_keys import LogKeys
from tests.journals import new_id, noting, run
from tests.proving import proving, relink, renumber, retile, unguarded, verified

TAPES = [new_id() for _ in range(4)]
# Checkpoints lie over 30, 61 and 92 entries; each is told of by the entry behind it.
SIGNED = (30, 61, 92)
OTHER = SigningKey("palyra.local/other", bytes(range(32)))


async def _fill(home: Path) -> None:
    async with proving(home) as (db, proof):
        for n in range(90):
            await db.write(noting(TAPES[n % 4], f"entry {n}"))
            if n % 30 == 29:
                await proof.checkpoint()
        await db.write(noting(TAPES[0], "the last"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole")
    run(_fill(home))
    raw = apsw.Connection(str(home / "journal.db"))
    raw.execute("PRAGMA journal_mode=DELETE")
    raw.close()
    return home


def _body(raw: apsw.Connection, position: int) -> None:
    raw.execute(
        "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'entry', 'Entry') AS BLOB)"
        " WHERE position = ?",
        (position,),
    )


def _set(column: str, value: object) -> Callable[[apsw.Connection], None]:
    def change(raw: apsw.Connection) -> None:
        raw.execute(f"UPDATE entries SET {column} = ? WHERE position = 17", (value,))
        relink(raw)

    return change


def _rewritten(raw: apsw.Connection, position: int = 17) -> None:
    _body(raw, position)
    relink(raw)


def _with_tiles(raw: apsw.Connection) -> None:
    _rewritten(raw)
    retile(raw)


def _without_checkpoints(raw: apsw.Connection) -> None:
    _with_tiles(raw)
    raw.execute("DELETE FROM checkpoints")


def _without_any_trace(raw: apsw.Connection) -> None:
    """No checkpoint, no tile, and no entry that tells of one."""
    _body(raw, 17)
    raw.execute("DELETE FROM entries WHERE kind = 'journal.checkpointed'")
    raw.execute("DELETE FROM checkpoints")
    raw.execute("DELETE FROM tree_tiles")
    renumber(raw)
    relink(raw)


def _resigned(key: SigningKey) -> Callable[[apsw.Connection], None]:
    def change(raw: apsw.Connection) -> None:
        _rewritten(raw)
        grown = retile(raw)
        for size in SIGNED:
            text = LogCheckpoint(key.name, size, grown.root(size)).text()
            note = signed_notes.sign(text, [key])
            raw.execute("UPDATE checkpoints SET note = ? WHERE size = ?", (note, size))

    return change


def _cut(count: int, *, checkpoints: bool) -> Callable[[apsw.Connection], None]:
    def change(raw: apsw.Connection) -> None:
        last = raw.execute("SELECT max(position) FROM entries").get - count
        raw.execute("DELETE FROM entries WHERE position > ?", (last,))
        relink(raw)
        retile(raw)
        if checkpoints:
            raw.execute("DELETE FROM checkpoints WHERE size > ?", (last,))

    return change


def _dropped(raw: apsw.Connection) -> None:
    raw.execute("DELETE FROM entries WHERE position = 40")
    renumber(raw)
    relink(raw)
    retile(raw)


def _tape_removed(raw: apsw.Connection) -> None:
    raw.execute("DELETE FROM entries WHERE tape = ?", (TAPES[2],))
    renumber(raw)
    relink(raw)
    retile(raw)


def _inserted(raw: apsw.Connection) -> None:
    raw.execute("UPDATE entries SET position = -position WHERE position >= 50")
    raw.execute("UPDATE entries SET position = 1 - position WHERE position < 0")
    raw.execute(
        "INSERT INTO entries SELECT 50, 'forged', 1, time_ms, run_id, principal, kind, body, hash,"
        " link FROM entries WHERE position = 3"
    )
    relink(raw)
    retile(raw)


def _swapped(raw: apsw.Connection) -> None:
    raw.execute("UPDATE entries SET position = -1 WHERE position = 10")
    raw.execute("UPDATE entries SET position = 10 WHERE position = 11")
    raw.execute("UPDATE entries SET position = 11 WHERE position = -1")
    relink(raw)
    retile(raw)


def _moved_to_another_tape(raw: apsw.Connection) -> None:
    raw.execute("UPDATE entries SET tape = ?, seq = 999 WHERE position = 90", ("another",))
    renumber(raw)
    relink(raw)
    retile(raw)


def _weaker_link(raw: apsw.Connection) -> None:
    raw.execute("UPDATE entries SET link = 1 WHERE position = 17")
    relink(raw)
    retile(raw)


def _tile(raw: apsw.Connection) -> None:
    raw.execute("UPDATE tree_tiles SET hashes = zeroblob(length(hashes)) WHERE level = 0")


def _tile_beyond(raw: apsw.Connection) -> None:
    raw.execute("INSERT INTO tree_tiles VALUES (0, 7, zeroblob(32))")


def _checkpoint_removed(raw: apsw.Connection) -> None:
    raw.execute("DELETE FROM checkpoints WHERE size = 61")


def _checkpoint_moved(raw: apsw.Connection) -> None:
    raw.execute("UPDATE checkpoints SET size = 62 WHERE size = 61")


def _checkpoint_spoiled(raw: apsw.Connection) -> None:
    raw.execute("UPDATE checkpoints SET note = 'nothing' WHERE size = 61")


def _checkpoint_of_another_log(raw: apsw.Connection) -> None:
    text = LogCheckpoint(OTHER.name, 61, bytes(32)).text()
    note = signed_notes.sign(text, [OTHER])
    raw.execute("UPDATE checkpoints SET note = ? WHERE size = 61", (note,))


def _checkpoint_in_the_future(raw: apsw.Connection) -> None:
    text = LogCheckpoint(OTHER.name, 5_000, bytes(32)).text()
    note = signed_notes.sign(text, [OTHER])
    raw.execute("INSERT INTO checkpoints VALUES (5000, 0, ?)", (note,))


# What is done, and the position that must be named; 0: a checkpoint is at fault, not an entry.
ATTACKS: dict[str, tuple[Callable[[apsw.Connection], None], int]] = {
    "body, chain made anew": (_rewritten, 17),
    "time, chain made anew": (_set("time_ms", 5), 17),
    "principal, chain made anew": (_set("principal", "user:mallory"), 17),
    "run, chain made anew": (_set("run_id", "X"), 17),
    "body and tiles": (_with_tiles, 1),
    "body, tiles, checkpoints removed": (_without_checkpoints, 1),
    "every trace of checkpoints removed": (_without_any_trace, 92),
    "signed by another key": (_resigned(OTHER), 0),
    "signed by another key under the same name": (
        lambda raw: _resigned(SigningKey(_name(raw), bytes(32)))(raw),
        0,
    ),
    "cut by one behind the checkpoint's entry": (_cut(3, checkpoints=False), 92),
    "cut far back": (_cut(50, checkpoints=False), 45),
    "cut far back with checkpoints": (_cut(50, checkpoints=True), 45),
    "cut to nothing": (_cut(94, checkpoints=True), 1),
    "dropped": (_dropped, 31),
    "a whole tape removed": (_tape_removed, 0),
    "inserted": (_inserted, 31),
    "swapped": (_swapped, 1),
    "moved to another tape": (_moved_to_another_tape, 62),
    "an older version of the link": (_weaker_link, 1),
    "tile spoiled": (_tile, 1),
    "tile for entries that are not there": (_tile_beyond, 1793),
    "checkpoint removed": (_checkpoint_removed, 62),
    "checkpoint moved": (_checkpoint_moved, 0),
    "checkpoint spoiled": (_checkpoint_spoiled, 0),
    "checkpoint of another log": (_checkpoint_of_another_log, 0),
    "checkpoint in the future": (_checkpoint_in_the_future, 0),
}


def _name(raw: apsw.Connection) -> str:
    note = raw.execute("SELECT note FROM checkpoints LIMIT 1").get
    return LogCheckpoint.parse(signed_notes.parse(note).text).origin


def _copy(whole: Path, target: Path) -> Path:
    shutil.copytree(whole, target)
    return target


def test_the_journal_is_proven_before_anything_is_done_to_it(whole: Path) -> None:
    report = verified(whole)
    assert report.ok
    assert report.vouched is not None
    assert (report.vouched.size, report.vouched.newer, report.entries) == (92, 2, 94)


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_is_found_and_its_place_named(whole: Path, tmp_path: Path, name: str) -> None:
    change, position = ATTACKS[name]
    home = _copy(whole, tmp_path / "home")
    raw = unguarded(home / "journal.db")
    change(raw)
    raw.close()
    bad = verified(home).bad
    assert bad is not None, "this was not found"
    if position:
        assert bad.position == position, bad
    else:
        assert "checkpoint" in bad.problem or "signed for" in bad.problem, bad


def test_the_daemon_does_not_sign_for_a_history_that_was_written_anew(
    whole: Path, tmp_path: Path
) -> None:
    home = _copy(whole, tmp_path / "home")
    raw = unguarded(home / "journal.db")
    _without_any_trace(raw)
    raw.close()

    async def go_on() -> str:
        async with proving(home) as (db, proof):
            await db.write(noting(TAPES[1], *(f"more {n}" for n in range(40))))
            assert not await proof.try_checkpoint()
            return proof.problem

    assert "rewritten" in run(go_on())


def test_with_the_daemons_key_a_rewritten_history_passes_where_nobody_else_has_signed(
    whole: Path, tmp_path: Path
) -> None:
    """What the threat model says: who has the key and the file is caught by a witness alone."""
    home = _copy(whole, tmp_path / "home")
    keys = LogKeys(home / "keys")
    raw = unguarded(home / "journal.db")
    _rewritten(raw)
    grown = retile(raw)
    for size in SIGNED:
        text = LogCheckpoint(keys.signer.name, size, grown.root(size)).text()
        note = signed_notes.sign(text, [keys.signer])
        raw.execute("UPDATE checkpoints SET note = ? WHERE size = ?", (note, size))
        (home / "keys" / "journal.checkpoint").write_text(note)
    raw.close()
    report = verified(home)
    assert report.bad is not None
    # The entries that tell of the checkpoints say other roots: they have to be forged as well.
    assert "another checkpoint" in report.bad.problem
    witnessed = (whole / "keys" / "journal.checkpoint").read_text()
    before = LogCheckpoint.parse(signed_notes.parse(witnessed).text)
    assert grown.root(before.size) != before.root


def test_a_mark_that_the_key_has_not_signed_is_not_believed(whole: Path, tmp_path: Path) -> None:
    home = _copy(whole, tmp_path / "home")
    note = signed_notes.sign(LogCheckpoint(OTHER.name, 1, bytes(32)).text(), [OTHER])
    (home / "keys" / "journal.checkpoint").write_text(note)
    assert verified(home).bad is not None


def test_a_backup_is_held_against_the_keys_and_a_restored_one_begins_a_log_of_its_own(
    whole: Path, tmp_path: Path
) -> None:
    from palyra.store import sqlite_files

    home = _copy(whole, tmp_path / "home")
    backup = tmp_path / "backup.db"
    assert sqlite_files.backup(home / "journal.db", backup).ok

    async def more() -> JournalProof:
        async with proving(home) as (db, proof):
            await db.write(noting(TAPES[1], "more"))
            await proof.checkpoint()
            assert len(await db.read(tree.checkpoints))
            return proof

    before = run(more()).keys.signer.name
    sqlite_files.restore(backup, home / "journal.db", tmp_path / "aside.db")
    assert verified(home).ok
    after = run(more()).keys.signer.name
    assert (after, verified(home).ok) == (f"{before}~2", True)
    raw = unguarded(backup)
    _rewritten(raw)
    raw.close()
    from palyra.core.errors import ChainBroken

    with pytest.raises(ChainBroken):
        sqlite_files.restore(backup, home / "journal.db", tmp_path / "aside2.db")


def test_the_watchdogs_walk_finds_an_old_entry_that_was_changed_and_linked_anew(
    whole: Path, tmp_path: Path
) -> None:
    home = _copy(whole, tmp_path / "home")

    async def suspect() -> int:
        async with proving(home) as (db, _):
            return (await db.read(lambda tx: verify.pass_over(tx, 0, 500))).suspect

    assert run(suspect()) == 0
    raw = unguarded(home / "journal.db")
    _rewritten(raw)
    raw.close()
    assert run(suspect()) == 17
