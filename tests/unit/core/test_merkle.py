"""The Merkle tree gives the roots and proofs of RFC 6962, and refuses every other proof."""

import json
from base64 import b64decode
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import merkle
from palyra.core.merkle import HASH, TILE_WIDTH, TileKey, TileTree
from tests.material import material

LEAVES = [merkle.leaf_hash(b"leaf %d" % n) for n in range(300)]


def root_by_definition(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 section 2.1, over hashes of leaves."""
    if not leaves:
        return merkle.EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    k = merkle.split(len(leaves))
    return merkle.node_hash(root_by_definition(leaves[:k]), root_by_definition(leaves[k:]))


ROOTS = [root_by_definition(LEAVES[:size]) for size in range(len(LEAVES) + 1)]


@pytest.fixture(scope="module")
def tree() -> TileTree:
    grown = TileTree({})
    grown.extend(LEAVES)
    return grown


def test_the_root_of_every_size_is_the_one_by_definition(tree: TileTree) -> None:
    assert [tree.root(size) for size in range(len(LEAVES) + 1)] == ROOTS


def test_every_leaf_of_every_size_is_proven(tree: TileTree) -> None:
    for size in range(1, len(LEAVES) + 1):
        for index in range(size):
            proof = tree.inclusion(index, size)
            assert merkle.proves_inclusion(index, size, LEAVES[index], proof, ROOTS[size])


def test_every_size_continues_every_smaller_one(tree: TileTree) -> None:
    for size in range(1, len(LEAVES) + 1):
        for old in range(1, size + 1):
            proof = tree.consistency(old, size)
            assert merkle.proves_consistency(old, size, proof, ROOTS[old], ROOTS[size])


@given(st.integers(1, 300), st.data())
def test_no_other_leaf_place_size_or_path_is_proven(size: int, data: st.DataObject) -> None:
    tree = TileTree({})
    tree.extend(LEAVES)
    index = data.draw(st.integers(0, size - 1))
    proof = tree.inclusion(index, size)
    other = data.draw(st.integers(0, 299).filter(lambda n: n != index))
    assert not merkle.proves_inclusion(index, size, LEAVES[other], proof, ROOTS[size])
    assert not merkle.proves_inclusion(other, size, LEAVES[index], proof, ROOTS[size])
    assert not merkle.proves_inclusion(
        index, size, LEAVES[index], [*proof, proof[0]] if proof else [LEAVES[0]], ROOTS[size]
    )
    if proof:
        assert not merkle.proves_inclusion(index, size, LEAVES[index], proof[:-1], ROOTS[size])
        at = data.draw(st.integers(0, len(proof) - 1))
        changed = [*proof[:at], merkle.leaf_hash(b"forged"), *proof[at + 1 :]]
        assert not merkle.proves_inclusion(index, size, LEAVES[index], changed, ROOTS[size])


@given(st.integers(2, 300), st.data())
def test_a_rewritten_history_is_not_consistent(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, size - 1))
    at = data.draw(st.integers(0, old - 1))
    forged = TileTree({})
    forged.extend([*LEAVES[:at], merkle.leaf_hash(b"forged"), *LEAVES[at + 1 : size]])
    proof = forged.consistency(old)
    assert not merkle.proves_consistency(old, size, proof, ROOTS[old], forged.root())


@given(st.lists(st.integers(0, 600), max_size=8))
def test_growing_in_any_portions_gives_the_same_tiles(portions: list[int]) -> None:
    leaves = [merkle.leaf_hash(b"%d" % n) for n in range(sum(portions))]
    at_once: dict[TileKey, bytes] = {}
    TileTree(at_once).extend(leaves)
    grown: dict[TileKey, bytes] = {}
    size = 0
    for portion in portions:
        TileTree(grown, size).extend(leaves[size : size + portion])
        size += portion
    assert grown == at_once


def test_tiles_are_laid_out_as_tlog_tiles_says() -> None:
    count = TILE_WIDTH * TILE_WIDTH + TILE_WIDTH + 3
    leaves = [merkle.leaf_hash(b"%d" % n) for n in range(count)]
    tiles: dict[TileKey, bytes] = {}
    tree = TileTree(tiles)
    tree.extend(leaves)
    assert len(tiles[0, TILE_WIDTH + 1]) == 3 * HASH
    assert len(tiles[1, 0]) == TILE_WIDTH * HASH
    assert len(tiles[1, 1]) == HASH
    assert tiles[2, 0] == merkle.complete_root(tiles[1, 0])
    assert max(tiles) == (2, 0)
    assert tree.root() == root_by_definition(leaves)


def test_a_leaf_or_size_that_the_tree_does_not_have_is_an_error(tree: TileTree) -> None:
    for wrong in (
        lambda: tree.inclusion(5, 5),
        lambda: tree.inclusion(-1),
        lambda: tree.root(301),
        lambda: tree.consistency(6, 5),
    ):
        with pytest.raises(IndexError):
            wrong()


def _vectors(kind: str) -> list[Any]:
    return [json.loads(path.read_bytes()) for path in material("tlog", kind).rglob("*.json")]


def _proof(vector: Any) -> list[bytes]:
    return [b64decode(each) for each in vector["proof"] or ()]


def test_the_published_vectors_of_inclusion() -> None:
    vectors = _vectors("merkle_inclusion")
    assert len(vectors) > 50
    for each in vectors:
        found = merkle.proves_inclusion(
            each["leafIdx"],
            each["treeSize"],
            b64decode(each["leafHash"] or ""),
            _proof(each),
            b64decode(each["root"] or ""),
        )
        assert found is not each["wantErr"], each["desc"]


def test_the_published_vectors_of_consistency() -> None:
    vectors = _vectors("merkle_consistency")
    assert len(vectors) > 50
    for each in vectors:
        found = merkle.proves_consistency(
            each["size1"],
            each["size2"],
            _proof(each),
            b64decode(each["root1"] or ""),
            b64decode(each["root2"] or ""),
        )
        assert found is not each["wantErr"], each["desc"]


def _entries(tile: Path) -> list[bytes]:
    body, found = tile.read_bytes(), []
    while body:
        length = int.from_bytes(body[:2], "big")
        found.append(body[2 : 2 + length])
        body = body[2 + length :]
    return found


def test_a_log_of_another_implementation_has_the_same_tiles_and_roots() -> None:
    folder = material("tlog", "tessera_log")
    leaves = [merkle.leaf_hash(each) for each in _entries(folder / "tile/entries/000.p/15")]
    sizes = range(1, len(leaves) + 1)
    for size in sizes:
        tiles: dict[TileKey, bytes] = {}
        tree = TileTree(tiles)
        tree.extend(leaves[:size])
        assert tiles[0, 0] == (folder / f"tile/0/000.p/{size}").read_bytes()
        signed = (folder / f"checkpoint.{size}").read_text().split("\n")
        assert (signed[1], b64decode(signed[2])) == (str(size), tree.root())
    for old, size in pairwise(sizes):
        proof = tree.consistency(old, size)
        assert merkle.proves_consistency(old, size, proof, tree.root(old), tree.root(size))
