"""Checkpoints say what the journal holds, are made when something happened, and survive restarts."""

import shutil
from pathlib import Path

import pytest

from palyra.core import merkle, signed_notes
from palyra.core.errors import ChainBroken, NotFound
from palyra.core.events import Entry
from palyra.core.signed_notes import LogCheckpoint
from palyra.features.proof.service import JournalProof, ProofSettings
from palyra.store import tape, tree
from palyra.store.log_keys import LogKeys
from tests.journals import new_id, noting, opened, run
from tests.proving import proving, verified

ONE, TWO = new_id(), new_id()


def test_a_checkpoint_covers_what_is_there_and_is_told_of_on_the_tape(tmp_path: Path) -> None:
    async def scenario() -> tuple[str, Entry]:
        async with proving(tmp_path) as (db, proof):
            await db.write(noting(ONE, "a", "b"))
            made = await proof.checkpoint()
            return made.note, await db.read(lambda tx: tape.entry_at(tx, 3))

    note, entry = run(scenario())
    read = LogCheckpoint.parse(signed_notes.parse(note).text)
    assert (read.size, entry.kind) == (2, "journal.checkpointed")
    report = verified(tmp_path)
    assert report.ok
    assert report.vouched is not None
    assert (report.vouched.size, report.vouched.by, report.vouched.newer) == (2, ("own key",), 1)
    assert report.vouched.origin == read.origin


def test_a_checkpoint_over_nothing_is_borne_out_and_so_are_those_after_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with proving(tmp_path) as (db, proof):
            assert (await proof.checkpoint()).size == 0
            await db.write(noting(ONE, "one", "two"))
            await proof.checkpoint()

    run(scenario())
    report = verified(tmp_path)
    assert report.ok, report.bad
    assert report.vouched is not None
    assert report.vouched.size == 3


def test_nothing_new_means_no_new_checkpoint(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        async with proving(tmp_path) as (db, proof):
            await db.write(noting(ONE, "a"))
            first = await proof.checkpoint()
            again = await proof.checkpoint()
            assert first == again
            await db.write(noting(ONE, "b"))
            await proof.checkpoint()
            return [each.size for each in await db.read(tree.checkpoints)]

    assert run(scenario()) == [1, 3]


def test_proofs_of_every_entry_and_every_pair_of_checkpoints_hold(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with proving(tmp_path) as (db, proof):
            for n in range(300):
                await db.write(noting((ONE, TWO)[n % 2], f"entry {n}"))
                if n % 50 == 0:
                    await proof.checkpoint()
            last = await proof.checkpoint()
            for position in range(1, last.size + 1):
                made = await proof.inclusion(position)
                said = LogCheckpoint.parse(signed_notes.parse(made.checkpoint).text)
                assert (said.size, said.root.hex()) == (made.size, made.root)
                assert merkle.proves_inclusion(
                    position - 1,
                    made.size,
                    tree.leaf(made.link, bytes.fromhex(made.hash)),
                    [bytes.fromhex(each) for each in made.proof],
                    said.root,
                )
            for each in await db.read(tree.checkpoints):
                found = await proof.consistency(each.size)
                assert merkle.proves_consistency(
                    found.old,
                    found.size,
                    [bytes.fromhex(one) for one in found.proof],
                    bytes.fromhex(found.old_root),
                    bytes.fromhex(found.root),
                )
            with pytest.raises(NotFound):
                await proof.inclusion(last.size + 1)

    run(scenario())
    assert verified(tmp_path).ok


def test_enough_entries_make_a_checkpoint_by_themselves_and_closing_makes_the_last(
    tmp_path: Path,
) -> None:
    async def scenario() -> list[int]:
        (tmp_path / "keys").mkdir()
        async with opened(tmp_path / "journal.db") as db:
            settings = ProofSettings(entries=5, seconds=3_600)
            proof = JournalProof(db, tmp_path / "journal.db", LogKeys(tmp_path / "keys"), settings)
            await proof.start()
            await db.write(noting(ONE, "a", "b", "c", "d", "e"))
            while not await db.read(tree.checkpoints):
                pass
            await db.write(noting(ONE, "f"))
            await proof.close()
            return [each.size for each in await db.read(tree.checkpoints)]

    assert run(scenario()) == [5, 7]
    assert verified(tmp_path).ok


def test_an_older_copy_in_the_journals_place_is_found_and_not_signed_for(tmp_path: Path) -> None:
    async def some(*texts: str) -> None:
        async with proving(tmp_path) as (db, proof):
            await db.write(noting(ONE, *texts))
            await proof.checkpoint()

    run(some("a", "b"))
    shutil.copy(tmp_path / "journal.db", tmp_path / "older.db")
    run(some("c"))
    assert verified(tmp_path).ok
    shutil.copy(tmp_path / "older.db", tmp_path / "journal.db")
    report = verified(tmp_path)
    assert report.bad is not None
    assert (report.bad.position, "older copy" in report.bad.problem) == (4, True)
    with pytest.raises(ChainBroken):
        run(some("another c", "and d", "and e"))
    assert not verified(tmp_path).ok


def test_a_rotated_key_is_signed_for_by_the_old_one_and_old_checkpoints_still_verify(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with proving(tmp_path) as (db, proof):
            await db.write(noting(ONE, "a"))
            await proof.checkpoint()
            old = proof.keys.signer.verifier
            new = signed_notes.NoteKey.decode(await proof.rotate("user:owner"))
            await proof.checkpoint()
            (rotation,) = proof.keys.rotations
            read = signed_notes.parse(rotation)
            assert read.signed_by(old)
            assert read.signed_by(new)
            assert proof.keys.public == (new, old)
            last = signed_notes.parse((await db.read(tree.checkpoints))[-1].note)
            assert last.signed_by(new)
            assert not last.signed_by(old)

    run(scenario())
    report = verified(tmp_path)
    assert report.ok
    assert report.vouched is not None
    assert report.vouched.checkpoints == 2


def test_keys_are_for_their_owner_alone_and_stay(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    first = LogKeys(tmp_path / "keys")
    assert LogKeys(tmp_path / "keys").signer == first.signer
    assert (tmp_path / "keys" / "journal.key").stat().st_mode & 0o777 == 0o600
    named = LogKeys(tmp_path / "keys", "example.org/journal")
    assert named.signer.name == "example.org/journal"
    assert len(named.public) == 2


def test_what_was_signed_right_before_a_crash_is_told_of_and_signed_for(tmp_path: Path) -> None:
    """The keys folder knows of a checkpoint that the journal does not: the daemon was killed
    between the two.
    """

    async def crashed() -> None:
        async with proving(tmp_path) as (db, proof):
            await db.write(noting(ONE, "a", "b"))
            grown, _ = await db.read(lambda tx: tree.grow(tx, tmp_path))
            proof.keys.sign(LogCheckpoint(proof.keys.signer.name, grown.size, grown.root()))

    async def recovered() -> None:
        async with proving(tmp_path) as (db, proof):
            await db.write(noting(ONE, "c"))
            await proof.checkpoint()
            assert [each.size for each in await db.read(tree.checkpoints)] == [2, 4]

    run(crashed())
    run(recovered())
    report = verified(tmp_path)
    assert report.ok, report.bad
    assert report.vouched is not None
    assert (report.vouched.size, report.vouched.newer) == (4, 1)
