"""Rollback to the state from before the last upgrade, with what happened since exported.

The rule: nothing is lost. The present home is copied whole before anything moves, and what was
appended since the upgrade lies beside it as entries and as proof bundles.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.errors import ChainBroken, NotFound, PalyraError
from palyra.features.backups import switch
from palyra.features.backups.home_copy import (
    JOURNAL,
    keep_home,
    remove_leftovers,
    require_space,
    size_of,
    sync_tree,
    version_of,
)
from palyra.features.proof.bundle import Disclosure
from palyra.features.proof.service import JournalProof, ProofSettings
from palyra.store import log_keys, sqlite_files, tape
from palyra.store.database import Database, Tx
from palyra.store.log_keys import LogKeys
from palyra.store.sqlite import Sqlite
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.system.clock import Clock
from palyra.system.private_files import write_private

BEFORE = "before-upgrade-from-schema-"
_PAGE = 500
# So many entries go into one bundle: whoever checks it holds all of it in memory.
_BUNDLED = 10_000
Work = Callable[[Database], Awaitable[None]]


class UpgradeCopy(Struct, frozen=True):
    """The state from before an upgrade. `version` is empty if that version did not say."""

    path: Path
    schema: int
    version: str
    made_ms: int

    @property
    def needed(self) -> str:
        """Name the version that can use it."""
        if self.version:
            return f"palyra {self.version}"
        return f"the palyra from before the upgrade, which has schema {self.schema}"


class Rollback(Struct, frozen=True, kw_only=True):
    """Plan or result of a rollback. `exported` are the files with what happened since; `verified`
    is false where the present journal was wrong and was kept as it is.
    """

    schema: int
    version: str
    copy: str
    entries: int
    since: int
    kept: str
    exported: tuple[str, ...] = ()
    verified: bool = True


def upgrade_copies(home: Path) -> list[UpgradeCopy]:
    """Return the states from before upgrades, the newest first."""
    found = []
    for path in (home / "backups").glob(f"{BEFORE}*"):
        schema = path.name.removeprefix(BEFORE).partition("-")[0]
        if schema.isdecimal() and (path / JOURNAL).is_file():
            made_ms = (path / JOURNAL).stat().st_mtime_ns // 1_000_000
            found.append(UpgradeCopy(path, int(schema), version_of(path), made_ms))
    return sorted(found, key=lambda each: (each.made_ms, each.schema), reverse=True)


def last_upgrade(home: Path) -> UpgradeCopy:
    """Return the state from before the last upgrade. Raise NotFound if there was none."""
    journal = home / JOURNAL
    schema = sqlite_files.schema(journal) if journal.exists() else 0
    for each in upgrade_copies(home):
        if each.schema < schema:
            return each
    raise NotFound(
        f"there is nothing to go back to: {home / 'backups'} has no copy from before an upgrade to"
        f" schema {schema}",
        schema=schema,
    )


def plan_rollback(home: Path, copy: UpgradeCopy) -> Rollback:
    """Say what a rollback would do, after verifying the state it goes back to and the room for
    it. Nothing is changed.
    """
    trust = log_keys.trust(home / JOURNAL)
    # Fewer entries than were signed for since are what a rollback is about.
    report = sqlite_files.inspect(copy.path / JOURNAL, trust=trust.of_a_copy)
    if not report.ok:
        raise ChainBroken(
            f"the state from before the upgrade does not verify, so nothing was changed:"
            f" {report.bad}"
        )
    require_space(home, size_of(copy.path) + 2 * size_of(home), "a rollback")
    return Rollback(
        schema=copy.schema,
        version=copy.version,
        copy=str(copy.path),
        entries=report.entries,
        since=max(0, _last(home / JOURNAL) - report.entries),
        kept=str(_unused(home / "backups")),
    )


def roll_back(home: Path, plan: Rollback) -> Rollback:
    """Go back. The caller holds the home, and no daemon runs."""
    kept, source = Path(plan.kept), Path(plan.copy)
    remove_leftovers(kept.parent)
    # Another version's journal is not opened for writing: that would upgrade it.
    ours = sqlite_files.schema(home / JOURNAL) == MIGRATIONS[-1].number
    if ours:
        _sign_for_everything(home)
    report = keep_home(home, kept)
    exported = _export(home, kept, plan.entries) if ours else []
    done = msgspec.structs.replace(
        plan,
        since=max(0, _last(home / JOURNAL) - plan.entries),
        exported=tuple(str(each) for each in exported),
        verified=report.verified,
    )
    (kept / "rollback.json").write_bytes(msgspec.json.encode(done))
    sync_tree(kept)
    switch.stage(home, source, kept, entries=plan.entries)
    switch.finish_switch(home)
    return done


def _sign_for_everything(home: Path) -> None:
    """Sign a checkpoint over everything, so that what is exported can be proven. A journal that
    cannot be signed for is exported all the same.
    """

    async def sign(db: Database) -> None:
        proof = JournalProof(db, home / JOURNAL, LogKeys(home / "keys"), ProofSettings())
        await proof.try_checkpoint()

    with suppress(PalyraError):
        _with_database(home, sign)


def _export(home: Path, kept: Path, after: int) -> list[Path]:
    """Write the entries behind a position, as they stand on the tapes, and bundles that prove
    them.
    """
    found = [kept / "since.ndjson"]
    with open(found[0], "wb", opener=_private) as file:
        for line in _entries(home / JOURNAL, after):
            file.write(line)
    if os.path.getsize(found[0]):
        found += _bundles(home, kept, after)
    return found


def _entries(journal: Path, after: int) -> Iterator[bytes]:
    connection = Sqlite(journal).open_reader()
    try:
        connection.begin_read()
        tx = Tx(connection, 0)
        while page := tape.everything_after(tx, after, _PAGE):
            for each in page:
                yield bytes(each.wire) + b"\n"
            after = page[-1].position
    finally:
        connection.end_read()
        connection.close()


def _bundles(home: Path, kept: Path, after: int) -> list[Path]:
    made: list[Path] = []

    async def write(db: Database) -> None:
        proof = JournalProof(db, home / JOURNAL, LogKeys(home / "keys"), ProofSettings())
        newest = await proof.newest()
        last = newest.size if newest else 0
        for first in range(after + 1, last + 1, _BUNDLED):
            wanted = Disclosure(first=first, last=min(last, first + _BUNDLED - 1))
            bundle = await proof.bundle(wanted)
            made.append(kept / f"since-{first}-{wanted.last}.proof.json")
            write_private(made[-1], msgspec.json.encode(bundle))

    try:
        _with_database(home, write)
    except PalyraError:
        # A journal that does not verify proves nothing; its entries and the whole file are kept.
        return []
    return made


def _with_database(home: Path, work: Work) -> None:
    async def opened() -> None:
        db = Database(Sqlite(home / JOURNAL), Clock().now_ms)
        db.open()
        try:
            await work(db)
        finally:
            await db.close()

    asyncio.run(opened())


def _last(journal: Path) -> int:
    connection = Sqlite(journal).open_reader()
    try:
        connection.begin_read()
        return tape.last_position(Tx(connection, 0))
    finally:
        connection.end_read()
        connection.close()


def _unused(folder: Path) -> Path:
    """Return a name that no rollback has used, also not one that was cut short."""
    name = time.strftime("rolled-back-%Y%m%d-%H%M%S", time.gmtime())
    names = (folder / f"{name}{more}" for more in ("", *(f"-{at}" for at in range(2, 1_000))))
    return next(each for each in names if not each.exists())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
