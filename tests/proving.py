"""Journals with signed checkpoints, and what somebody does to them who can write their file."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from palyra.core import chain
from palyra.core.merkle import TileKey, TileTree
from palyra.features.proof.service import JournalProof, ProofSettings
from palyra.store import tree
from palyra.store.database import Database
from palyra.store.log_keys import LogKeys
from palyra.store.verify import VerifyReport
from tests import stores
from tests.journals import opened

_ENTRY = "position, tape, seq, time_ms, run_id, principal, kind, body, hash, link"


@asynccontextmanager
async def proving(home: Path) -> AsyncIterator[tuple[Database, JournalProof]]:
    """A journal in a home folder, and who signs for it."""
    (home / "keys").mkdir(parents=True, exist_ok=True)
    async with opened(home / "journal.db") as db:
        yield db, JournalProof(db, home / "journal.db", LogKeys(home / "keys"), ProofSettings())


def verified(home: Path) -> VerifyReport:
    journal = home / "journal.db"
    return stores.upkeep(journal).inspect()


def raw_file(journal: Path) -> apsw.Connection:
    """The file as another program opens it; it waits while the daemon writes."""
    raw = apsw.Connection(str(journal))
    raw.set_busy_timeout(30_000)
    return raw


def unguarded(journal: Path) -> apsw.Connection:
    """The file for somebody who takes the guards away first."""
    raw = raw_file(journal)
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    return raw


def relink(raw: apsw.Connection) -> None:
    """Make every link and every head anew, so that the chain is whole."""
    heads: dict[str, tuple[int, bytes]] = {}
    for row in raw.execute(f"SELECT {_ENTRY} FROM entries ORDER BY position").fetchall():
        position, tape, seq, time_ms, run_id, principal, kind, body, _, link = row
        _, prev = heads.get(tape, (0, chain.GENESIS))
        digest = chain.link_of(
            link,
            prev,
            tape=tape,
            seq=seq,
            position=position,
            time_ms=time_ms,
            run_id=run_id,
            principal=principal,
            kind=kind,
            body=body,
        )
        heads[tape] = (seq, digest)
        raw.execute("UPDATE entries SET hash = ? WHERE position = ?", (digest, position))
    raw.execute("DELETE FROM tapes")
    for tape, (seq, digest) in heads.items():
        raw.execute("INSERT INTO tapes VALUES (?, ?, ?)", (tape, seq, digest))


def renumber(raw: apsw.Connection) -> None:
    """Close the gaps that removed entries have left, in positions and on tapes."""
    heads: dict[str, int] = {}
    rows = raw.execute("SELECT position, tape FROM entries ORDER BY position").fetchall()
    for at, (position, tape) in enumerate(rows, 1):
        heads[tape] = heads.get(tape, 0) + 1
        raw.execute(
            "UPDATE entries SET position = ?, seq = ? WHERE position = ?",
            (at, heads[tape], position),
        )


def retile(raw: apsw.Connection) -> TileTree:
    """Make every tile anew, so that the tree is that of the entries."""
    tiles: dict[TileKey, bytes] = {}
    grown = TileTree(tiles)
    rows = raw.execute("SELECT link, hash FROM entries ORDER BY position").fetchall()
    grown.extend([tree.leaf(link, digest) for link, digest in rows])
    raw.execute("DELETE FROM tree_tiles")
    for (level, index), tile in tiles.items():
        raw.execute("INSERT INTO tree_tiles VALUES (?, ?, ?)", (level, index, tile))
    return grown
