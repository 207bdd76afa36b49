"""Foundation of everything else: the daemon's folders, its keys, its journal and the redactor."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from palyra.core.errors import ConfigInvalid
from palyra.serve import config
from palyra.serve.config import Config, Loaded
from palyra.store import rights
from palyra.store.active_time import Measured
from palyra.store.database import Database
from palyra.store.dialect import Dialect
from palyra.store.lease import LeaderLease
from palyra.store.row_seals import RowSeals
from palyra.store.sqlite import Sqlite, sync_folder
from palyra.store.upkeep import FileUpkeep, Upkeep
from palyra.system.clock import Clock
from palyra.system.private_files import write_private
from palyra.system.redactor import Redactor
from palyra.tools.net.resolve import Resolver
from palyra.tools.paths import PathGuard


@dataclass(frozen=True)
class Foundation:
    """Foundation of everything else. Nothing that works for somebody gets into the `forbidden`
    folders: they are the daemon's.
    """

    config: Config
    home: Path
    clock: Clock
    db: Database
    redactor: Redactor
    resolver: Resolver
    forbidden: tuple[str, ...]

    @property
    def fence(self) -> PathGuard:
        return PathGuard(self.forbidden)


def folders(home: Path, given: Config) -> Path:
    """Make the daemon's own folders, for its owner alone. Returns the one with the policies."""
    policies = Path(given.policy.folder) if given.policy.folder else home / "policies"
    for folder in (home, home / "keys", policies):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return policies


class JournalPlace(NamedTuple):
    """Place of the journal: how it is opened, and what can be done to it as a whole."""

    dialect: Dialect
    upkeep: Upkeep


def journal_place(
    home: Path, given: Config, env: Mapping[str, str], lease: LeaderLease | None = None
) -> JournalPlace:
    """Return where a home's journal lies. `lease`: of a node that leads those that share it."""
    path, store = home / "journal.db", given.journal.store
    if not store:
        return JournalPlace(Sqlite(path), FileUpkeep(path))
    # Late: few have a server.
    try:
        from palyra.store.postgres import Postgres
        from palyra.store.postgres_upkeep import ServerUpkeep
    except ImportError as error:
        raise ConfigInvalid(
            f"journal.store names a PostgreSQL server, and its driver is missing ({error}): install"
            " it with pip install 'palyra[postgres]'"
        ) from error
    address = server_address(given, env)
    return JournalPlace(Postgres(address, lease=lease), ServerUpkeep(address, path))


def server_address(given: Config, env: Mapping[str, str]) -> str:
    """Return the address of the journal's server."""
    store = given.journal.store
    return config.secret(store, env) if store.startswith(("env:", "file:")) else store


def refuse_two_journals(home: Path, given: Config) -> None:
    """Raise ConfigInvalid if a journal lies in the home although the settings name a server: a
    backup was restored, or a move was broken off.
    """
    if given.journal.store and (home / "journal.db").exists():
        raise ConfigInvalid(
            f"there are two journals: {home / 'journal.db'}, and the one that journal.store names."
            " To use the file: palyra config unset journal.store (then palyra migrate moves it to"
            " an empty database). To use the server: move the file away"
        )


def lay(
    loaded: Loaded, policy_folder: Path, clock: Clock, resolver: Resolver, place: JournalPlace
) -> Foundation:
    home = loaded.home
    db = Database(place.dialect, clock.now_ms, pace=Measured(clock.ticks_ms, clock.slept_ms))
    db.open()
    redactor = Redactor(key(home / "keys" / "redaction.key"))
    forbidden = (str(home.resolve()), str(policy_folder.resolve()))
    return Foundation(loaded.config, home, clock, db, redactor, resolver, forbidden)


async def protect_rights(db: Database, keys: Path) -> Callable[[], None]:
    """Give the database the key by which what gives rights is sealed.

    Rows and files from before there was one are sealed as they are. Return what gives the key its
    name, once features have sealed their files: a daemon that dies before seals them again.
    """
    path, tables = keys / "rights.key", keys / "rights.tables"
    fresh = path.with_name("rights.key.new")
    made = path.exists()
    db.seals = RowSeals(key(path if made else fresh), adopts=not made)
    sealed = rights.sealed_tables(keys) if made else frozenset()
    known = frozenset(right.table for right in rights.ALL) | {rights.BOUND}
    if known - sealed:
        await db.write(partial(rights.seal_all_but, sealed=sealed))

    def everything_is_sealed() -> None:
        # The names first: a key without them is one from before there were names.
        if known - sealed or not tables.exists():
            write_private(tables, "\n".join(sorted(known | sealed)).encode())
        if not made:
            os.replace(fresh, path)
            sync_folder(keys)

    return everything_is_sealed


def here(forbidden: tuple[str, ...]) -> str:
    """The folder the daemon was started in, unless that is one it must not work in."""
    folder = os.getcwd()
    return (
        ""
        if folder == "/"
        or any(root == folder or root.startswith(folder + "/") for root in forbidden)
        else folder
    )


def key(path: Path) -> bytes:
    """32 random bytes that are made once and stay. They appear whole or not at all, whenever the
    power goes.
    """
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            config.write_private(fresh, os.urandom(32))
            os.link(fresh, path)
        except FileExistsError:
            pass  # Somebody else was faster: theirs counts.
        finally:
            fresh.unlink(missing_ok=True)
    found = path.read_bytes()
    if len(found) != 32:
        raise ConfigInvalid(
            f"the key file {path} is damaged: it must have 32 bytes; restore it from a backup"
        )
    return found
