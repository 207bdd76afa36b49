"""`verify` says how far each witness and each anchor vouches, and believes no journal that is another
than an anchor has seen.
"""

import shutil
from pathlib import Path

from palyra.core import signed_notes
from palyra.core.signed_notes import COSIGNATURE, LogCheckpoint, SigningKey
from palyra.store import log_keys
from palyra.store.log_keys import KeptNote, LogKeys
from palyra.store.verify import VerifyReport
from tests.journals import new_id, noting, run
from tests.proving import proving, relink, retile, unguarded, verified

TAPE = new_id()
ATTIC = SigningKey("attic", bytes(range(32)), COSIGNATURE)
CELLAR = SigningKey("cellar", bytes(reversed(range(32))), COSIGNATURE)


async def _fill(home: Path, disk: Path) -> None:
    """Checkpoints over 3, 7 and 11 entries. The first is cosigned, the second lies on a disk."""
    async with proving(home) as (db, proof):
        for number in range(3):
            await db.write(noting(TAPE, *(f"entry {number}-{each}" for each in range(3))))
            made = await proof.checkpoint()
            if number == 0:
                text = signed_notes.parse(made.note).text
                await proof.cosigned(made.size, ATTIC.line(text, 5))
            if number == 1:
                disk.write_text(made.note)
        await db.write(noting(TAPE, "the last"))
    journal = home / "journal.db"
    log_keys.remember_witnesses(journal, (ATTIC.verifier, CELLAR.verifier))
    log_keys.remember_anchors(journal, (KeptNote(f"file {disk}", str(disk)),))


def _home(folder: Path) -> tuple[Path, Path]:
    home, disk = folder / "home", folder / "disk"
    run(_fill(home, disk))
    return home, disk


def _said(report: VerifyReport) -> dict[str, int]:
    assert report.ok, report.bad
    assert report.vouched is not None
    return {each.name: each.size for each in report.vouched.vouchers}


def test_each_who_vouches_is_named_with_how_far(tmp_path: Path) -> None:
    home, disk = _home(tmp_path)
    said = _said(verified(home))
    assert said == {"own key": 11, f"file {disk}": 7, "witness attic": 3, "witness cellar": 0}
    assert list(said) == ["own key", f"file {disk}", "witness attic", "witness cellar"]


def test_an_anchor_whose_disk_is_not_there_vouches_for_nothing(tmp_path: Path) -> None:
    home, disk = _home(tmp_path)
    disk.unlink()
    assert _said(verified(home))[f"file {disk}"] == 0


def test_what_is_not_signed_by_our_key_is_no_checkpoint_of_an_anchor(tmp_path: Path) -> None:
    home, disk = _home(tmp_path)
    name = LogKeys(home / "keys").signer.name
    other = SigningKey(name, bytes(32))
    for text in (
        "nothing",
        "",
        signed_notes.sign(LogCheckpoint(name, 5, bytes(32)).text(), [other]),
    ):
        disk.write_text(text)
        assert _said(verified(home))[f"file {disk}"] == 0


def test_who_has_the_keys_and_the_file_is_found_by_an_anchor_that_can_be_read(
    tmp_path: Path,
) -> None:
    home, disk = _home(tmp_path)
    raw = unguarded(home / "journal.db")
    raw.execute("UPDATE entries SET time_ms = 7 WHERE position = 2")
    raw.execute("DELETE FROM entries WHERE kind = 'journal.checkpointed' AND position > 11")
    raw.execute("DELETE FROM entries WHERE position > 3")
    relink(raw)
    retile(raw)
    raw.execute("DELETE FROM checkpoints")
    raw.close()
    # With the key nothing in the home knows better.
    (home / "keys" / "journal.checkpoint").unlink()
    bad = verified(home).bad
    assert bad is not None
    assert f"file {disk} has a checkpoint over 7 entries, and 3 are there" in bad.problem


def test_an_older_copy_of_the_whole_home_is_found_by_an_anchor(tmp_path: Path) -> None:
    home, disk = _home(tmp_path)
    shutil.copytree(home, tmp_path / "older")

    async def more() -> None:
        async with proving(home) as (db, proof):
            await db.write(noting(TAPE, "more", "and more"))
            disk.write_text((await proof.checkpoint()).note)

    run(more())
    assert verified(home).ok
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "older", home)
    assert not verified(home).ok


def test_another_history_than_an_anchor_has_is_named_with_the_anchor(tmp_path: Path) -> None:
    home, disk = _home(tmp_path)
    keys = LogKeys(home / "keys")
    text = LogCheckpoint(keys.signer.name, 7, bytes(32)).text()
    disk.write_text(signed_notes.sign(text, [keys.signer]))
    bad = verified(home).bad
    assert bad is not None
    assert f"the checkpoint of the anchor file {disk}" in bad.problem


def test_a_journal_restored_from_a_backup_is_not_held_against_what_was_seen_before(
    tmp_path: Path,
) -> None:
    """Its log has another name from then on."""
    home, disk = _home(tmp_path)
    LogKeys(home / "keys").begin_again()
    assert _said(verified(home))[f"file {disk}"] == 0
