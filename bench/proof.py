"""Proof of a long journal: what signing for it, verifying it, a proof and a bundle take."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.common import Table
from bench.curves import fill, new_tape
from palyra.features.proof.bundle import Disclosure
from palyra.features.proof.service import JournalProof, ProofSettings
from palyra.store import log_keys, sqlite_files
from palyra.store.database import Database
from palyra.store.log_keys import LogKeys
from palyra.store.sqlite import Sqlite

SIZES = (10_000, 100_000, 1_000_000)
SESSION = 200
PROOFS = 50


async def _measured(home: Path, size: int) -> tuple[str, ...]:
    (home / "keys").mkdir()
    journal = home / "journal.db"
    db = Database(Sqlite(journal), lambda: time.time_ns() // 1_000_000)
    db.open()
    try:
        await fill(db, size - SESSION)
        session = new_tape()
        await fill(db, SESSION, session)
        proof = JournalProof(db, journal, LogKeys(home / "keys"), ProofSettings())
        began = time.perf_counter()
        await proof.checkpoint()
        signing = time.perf_counter() - began
        proving: list[float] = []
        for number in range(PROOFS):
            began = time.perf_counter()
            await proof.inclusion(1 + number * (size // PROOFS))
            proving.append(time.perf_counter() - began)
        began = time.perf_counter()
        await proof.bundle(Disclosure(session_id=session))
        bundling = time.perf_counter() - began
    finally:
        await db.close()
    began = time.perf_counter()
    report = sqlite_files.inspect(journal, trust=log_keys.trust(journal))
    verifying = time.perf_counter() - began
    assert report.ok, report.bad
    return (
        f"{size:,}",
        f"{signing * 1e6 / size:.2f} µs",
        f"{verifying:.1f} s",
        f"{statistics.median(proving) * 1e3:.2f} ms",
        f"{max(proving) * 1e3:.2f} ms",
        f"{bundling * 1e3:.0f} ms",
    )


def tables() -> Iterator[Table]:
    rows = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(_measured(Path(folder), size)))
    yield Table(
        f"Proof: a journal of so many entries, one session of {SESSION} at its end",
        (
            "entries",
            "tree and signature, an entry",
            "verify",
            "inclusion proof (median)",
            "the slowest",
            "bundle of the session",
        ),
        rows,
    )
