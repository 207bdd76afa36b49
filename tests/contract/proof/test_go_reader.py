"""What we sign and prove is read by Go's own packages (sumdb/note and sumdb/tlog), and what they sign
by us. Skipped where Go or its modules are not there.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scripts import tlog_reader

from palyra.core import merkle, signed_notes
from palyra.core.merkle import TileKey, TileTree
from palyra.core.signed_notes import LogCheckpoint, NoteKey, SigningKey
from palyra.store import log_keys, tree
from tests.journals import new_id, noting, run
from tests.proving import proving

SIZES = (1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 255, 256, 257, 300)


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return tlog_reader.built()
    except tlog_reader.Missing as missing:
        pytest.skip(f"the foreign reader of proofs is not there: {missing}")


def read(program: Path, **cases: Any) -> dict[str, Any]:
    done = subprocess.run(
        [program], input=json.dumps(cases), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def flipped(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def test_go_reads_our_checkpoints_and_checks_our_proofs(program: Path, tmp_path: Path) -> None:
    async def scenario() -> dict[str, Any]:
        async with proving(tmp_path) as (db, proof):
            tapes = new_id(), new_id()
            made = []
            for number in range(40):
                await db.write(noting(tapes[number % 2], f"entry {number}"))
                if number % 7 == 0:
                    made.append(await proof.checkpoint())
            made.append(await proof.checkpoint())
            key = proof.keys.signer.verifier.encode()
            included = [await proof.inclusion(at) for at in range(1, made[-1].size + 1)]
            grown = [await proof.consistency(each.size) for each in made]
            leaves = [tree.leaf(each.link, bytes.fromhex(each.hash)) for each in included]
            return {
                "checkpoints": [{"note": each.note, "key": key} for each in made],
                "inclusions": [
                    {
                        "old": each.position - 1,
                        "size": each.size,
                        "leaf": leaf.hex(),
                        "root": each.root,
                        "path": each.proof,
                    }
                    for each, leaf in zip(included, leaves, strict=True)
                ],
                "consistencies": [
                    {
                        "old": each.old,
                        "size": each.size,
                        "leaf": each.old_root,
                        "root": each.root,
                        "path": each.proof,
                    }
                    for each in grown
                ],
            }

    cases = run(scenario())
    assert len(cases["checkpoints"]) == 7
    found = read(program, **cases)
    for given, opened in zip(cases["checkpoints"], found["checkpoints"], strict=True):
        said = LogCheckpoint.parse(signed_notes.parse(given["note"]).text)
        assert opened == {
            "problem": "",
            "origin": said.origin,
            "size": said.size,
            "root": said.root.hex(),
        }
    assert set(found["inclusions"]) == {""}
    assert set(found["consistencies"]) == {""}
    # And it is not that everything passes.
    for name in ("inclusions", "consistencies"):
        for each in cases[name]:
            each["root"] = flipped(each["root"])
    for each in cases["checkpoints"]:
        each["note"] = each["note"].replace("\n", "x\n", 1)
    found = read(program, **cases)
    assert all(found["inclusions"])
    assert all(found["consistencies"])
    assert all(each["problem"] for each in found["checkpoints"])


def test_trees_of_many_sizes_are_the_same_in_go(program: Path) -> None:
    leaves = [merkle.leaf_hash(b"leaf %d" % number) for number in range(max(SIZES))]
    tiles: dict[TileKey, bytes] = {}
    grown = TileTree(tiles)
    grown.extend(leaves)
    inclusions = [
        {
            "old": index,
            "size": size,
            "leaf": leaves[index].hex(),
            "root": grown.root(size).hex(),
            "path": [each.hex() for each in grown.inclusion(index, size)],
        }
        for size in SIZES
        for index in {0, size // 2, size - 1}
    ]
    consistencies = [
        {
            "old": old,
            "size": size,
            "leaf": grown.root(old).hex(),
            "root": grown.root(size).hex(),
            "path": [each.hex() for each in grown.consistency(old, size)],
        }
        for size in SIZES
        for old in SIZES
        if old <= size
    ]
    found = read(program, inclusions=inclusions, consistencies=consistencies)
    assert found["inclusions"] == [""] * len(inclusions)
    assert found["consistencies"] == [""] * len(consistencies)


def test_go_signs_with_our_key_file_and_we_read_what_it_signed(
    program: Path, tmp_path: Path
) -> None:
    keys = log_keys.LogKeys(tmp_path / "keys", "example.org/journal")
    (tmp_path / "keys").mkdir()
    public = keys.signer.verifier
    private = (tmp_path / "keys" / "journal.key").read_text().strip()
    assert SigningKey.decode(private).verifier == public
    text = LogCheckpoint(public.name, 7, bytes(range(32))).text()
    note = signed_notes.parse(read(program, signer=private, text=text)["signed"])
    assert note.text == text
    assert note.signed_by(NoteKey.decode(public.encode()))
