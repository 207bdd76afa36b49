"""Upgrades of a home: the verified copy before one, and the upgrade itself.

The rule: the schema is not touched before the copy is whole and its entries are signed for. It
lies in the backups folder under the number of the schema that it has.
"""

import asyncio
from pathlib import Path

from palyra.features.backups import home_copy
from palyra.features.backups.home_copy import JOURNAL, keep_home, require_space, size_of
from palyra.features.backups.rollback import BEFORE, upgrade_copies
from palyra.store import log_keys, sqlite_files
from palyra.store.database import Database
from palyra.store.log_keys import LogKeys
from palyra.store.sqlite import Sqlite, finish_restore
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.store.upkeep import FileUpkeep, Upkeep
from palyra.system.clock import Clock
from palyra.system.private_files import make_private

NEWEST = MIGRATIONS[-1].number


def copy_before_migration(
    home: Path,
    policies: Path | None = None,
    *,
    origin: str = "",
    place: Upkeep | None = None,
) -> Path | None:
    """Copy a home whose journal has an older schema, and sign for what is there: a daemon that was
    killed has not. Return where the copy is, None if there is nothing to migrate. Raise
    Unavailable if there is no room.
    """
    journal = home / JOURNAL
    place = place or FileUpkeep(journal)
    if place.is_file:
        finish_restore(journal)
    schema = schema_of(journal) if place.is_file else place.schema()
    if not 0 < schema < NEWEST:
        return None
    copy = _copied(place, schema, policies)
    if sqlite_files.inspect(copy / JOURNAL, trust=log_keys.trust(journal)).ok:
        make_private(home / "keys")
        sqlite_files.sign_for(copy / JOURNAL, LogKeys(home / "keys", origin))
    return copy


def _copied(place: Upkeep, schema: int, policies: Path | None) -> Path:
    home = place.path.parent
    for made in upgrade_copies(home):
        if made.schema == schema and place.is_file and _same_state(made.path / JOURNAL, place.path):
            return made.path
    target = _unused(home / "backups" / f"{BEFORE}{schema}")
    needed = size_of(home) + (0 if place.is_file else place.size())
    require_space(home, needed, "the copy of the home that is made before an upgrade")
    make_private(target.parent)
    keep_home(home, target, policies=policies, journal=place)
    return target


def schema_of(journal: Path) -> int:
    """Return the number of a journal's schema, 0 if there is none yet."""
    if not journal.exists() or not journal.stat().st_size:
        return 0
    return sqlite_files.schema(journal)


def _same_state(copy: Path, journal: Path) -> bool:
    """Say if nothing was appended since a copy was made: then it is the one for this upgrade."""
    return sqlite_files.newest_entry(copy) == sqlite_files.newest_entry(journal)


def _unused(target: Path) -> Path:
    """Return the name, or the next one after those of earlier upgrades that were rolled back."""
    names = (target.with_name(f"{target.name}-{at}") for at in range(2, 10_000))
    return next(each for each in (target, *names) if not each.exists())


def migrate(home: Path) -> None:
    """Bring a home's journal up to this version, without a daemon, in one transaction. What gives
    rights is sealed by the daemon's next start, which also knows the files that give some.
    """

    async def opened() -> None:
        db = Database(Sqlite(home / JOURNAL), Clock().now_ms)
        db.open()
        await db.close()

    asyncio.run(opened())
    home_copy.remember_version(home, NEWEST)
