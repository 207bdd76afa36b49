"""The journal as a file: online backup, restore, and what can be said about a file that may be
damaged.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from palyra.core import signed_notes
from palyra.core.errors import ChainBroken, Conflict, InvalidInput, NotFound, Unavailable
from palyra.core.signed_notes import LogCheckpoint
from palyra.store import log_keys, migrations, segments, tape, tree, verify
from palyra.store.database import Tx
from palyra.store.dialect import Connection
from palyra.store.log_keys import LogKeys, LogTrust
from palyra.store.sqlite import (
    Sqlite,
    SqliteConnection,
    finish_restore,
    ready_to_restore,
    sync_folder,
)
from palyra.store.verify_rows import WrongRow, wrong_rows

PARTIAL = ".partial"
_PAGES_AT_ONCE = 2_000
_TABLES = {"entries", "tapes"}
_SEGMENT_GUARDS = {"segments_are_never_changed", "segments_are_never_deleted"}
_GUARDS = {"entries_are_never_changed", "entries_are_never_deleted", *_SEGMENT_GUARDS}


def schema(journal: Path) -> int:
    """Return the number of a journal's schema."""
    connection = Sqlite(journal).open_reader()
    try:
        return migrations.newest(connection)
    except apsw.Error as error:
        raise Sqlite(journal).translate(error) or error from error
    finally:
        # Closing tidies up, which a disk may refuse; nothing was written.
        with suppress(apsw.Error):
            connection.close()


def newest_entry(journal: Path) -> tuple[int, bytes]:
    """Return the position and the hash of a journal's newest entry."""
    connection = Sqlite(journal).open_reader()
    try:
        rows = connection.all("SELECT position, hash FROM entries ORDER BY position DESC LIMIT 1")
        return (int(rows[0][0]), bytes(rows[0][1])) if rows else (0, b"")
    except apsw.Error as error:
        raise Sqlite(journal).translate(error) or error from error
    finally:
        with suppress(apsw.Error):
            connection.close()


def sign_for(journal: Path, keys: LogKeys) -> None:
    """Sign for every entry of a journal that verifies, of any version, unless that was done. The
    checkpoint is kept beside the keys; who signs for the journal next stores it.
    """
    connection = Sqlite(journal).open_reader()
    try:
        connection.begin_read()
        tx = Tx(connection, 0)
        grown = tree.rebuilt(tx, segments.folder_of(journal))
        telling = tape.kinds_between(tx, grown.size - 1, grown.size).get("journal.checkpointed", 0)
    finally:
        connection.close()
    mark = LogCheckpoint.parse(signed_notes.parse(keys.mark).text) if keys.mark else None
    if mark is None or mark.size < grown.size - telling:
        keys.sign(LogCheckpoint(keys.signer.name, grown.size, grown.root()))


def fold_log(journal: Path) -> None:
    """Fold the log into the journal and cut it to nothing, so that no older state of a page is left
    on disk.

    A reader in the middle of something keeps it for another moment; it is then folded by the next
    one, or at the next start.
    """
    connection = apsw.Connection(str(journal), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(2_000)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except apsw.Error as error:
        raise Sqlite(journal).translate(error) or error from error
    finally:
        connection.close()


def checkpoint(journal: Path, large: int) -> None:
    """Write what is in the log into the file, without holding anybody up; a log that has grown
    large is cut as well.
    """
    log = journal.with_name(journal.name + "-wal")
    if log.exists() and log.stat().st_size > large:
        fold_log(journal)
        return
    connection = apsw.Connection(str(journal), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    except apsw.Error as error:
        raise Sqlite(journal).translate(error) or error from error
    finally:
        connection.close()


def backup(
    source: Path, target: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> verify.VerifyReport:
    """Copy a journal that may be in use, consistently, then verify the copy. A target that exists
    is refused.
    """
    # Read first: what is signed while the copy is made is not in the copy.
    trust = log_keys.trust(source)
    with _copied(source, target, progress) as partial:
        report = inspect(partial, trust=trust)
        if not report.ok:
            raise ChainBroken(
                f"the journal does not verify, and neither does its copy: {report.bad}"
            )
    return report


def keep_evidence(source: Path, target: Path) -> None:
    """Copy a journal as it is, whatever is wrong with it."""
    with _copied(source, target, lambda done, total: None):
        pass


def remove_partial(folder: Path) -> None:
    """Remove what copies left that never ended, because the daemon was killed; one that is being
    made is held by a lock.
    """
    for each in (*folder.glob(f"*{PARTIAL}"), *folder.glob(f"*{PARTIAL}-journal")):
        try:
            with each.open("rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                each.unlink(missing_ok=True)
        except OSError:
            continue


@contextmanager
def _copied(source: Path, target: Path, progress: Callable[[int, int], None]) -> Iterator[Path]:
    """A copy that gets its name once the block is done with it."""
    if target.exists():
        raise Conflict(f"{target} exists already: choose another name", path=str(target))
    partial = target.with_name(target.name + PARTIAL)
    remove_partial(target.parent)
    held = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        reader = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        copy = apsw.Connection(str(partial))
        try:
            with copy.backup("main", reader, "main") as pages:
                while not pages.done:
                    pages.step(_PAGES_AT_ONCE)
                    progress(pages.page_count - pages.remaining, pages.page_count)
            carry_segments(SqliteConnection(copy), source)
            # One self-contained file: no WAL beside it that could be forgotten when it is moved.
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
            reader.close()
        yield partial
        os.rename(partial, target)
    except apsw.Error as error:
        raise Sqlite(source).translate(error) or error from error
    finally:
        partial.unlink(missing_ok=True)
        os.close(held)


def carry_segments(copy: Connection, source: Path) -> None:
    """A backup has the segments in it. One that is missing or not as it was sealed shows when the
    copy is verified.
    """
    folder = segments.folder_of(source)
    if not folder.exists():
        return
    copy.all("BEGIN")
    for (segment_id,) in copy.all("SELECT segment_id FROM segments"):
        path = segments.file_of(folder, str(segment_id))
        if path.exists():
            copy.all(
                "INSERT INTO segment_bodies (segment_id, body) VALUES (:id, :body)"
                " ON CONFLICT (segment_id) DO UPDATE SET body = excluded.body",
                {"id": segment_id, "body": path.read_bytes()},
            )
    copy.all("COMMIT")


def restore(source: Path, journal: Path, set_aside: Path) -> verify.VerifyReport:
    """Put a verified backup in the journal's place; the present journal is kept at `set_aside`. The
    daemon must not run.

    There is one moment at which it happens: when the copy gets its last name. Before it nothing has
    changed; after it, whoever opens the journal next finishes the work, however often the power
    goes.
    """
    if not source.exists():
        raise NotFound(f"there is no backup at {source}", path=str(source))
    known = log_keys.trust(journal)
    report = inspect(source, trust=known.of_a_copy)
    if not report.ok:
        raise ChainBroken(
            f"the backup {source} does not verify, so it was not restored: {report.bad}; a backup"
            " of another machine needs the keys folder of that machine"
        )
    for suffix in ("", "-wal", "-shm"):
        present = journal.with_name(journal.name + suffix)
        if present.exists():
            _copy(present, set_aside.with_name(set_aside.name + suffix))
    fresh = journal.with_name(journal.name + ".restoring")
    _copy(source, fresh)
    # The owner goes back behind what was signed for: from here on it is a log of its own.
    log_keys.begin_again(journal, report.entries)
    os.rename(fresh, ready_to_restore(journal))
    sync_folder(journal.parent)
    finish_restore(journal)
    return report


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    os.chmod(target, 0o600)
    with open(target, "rb") as handle:
        os.fsync(handle.fileno())


def inspect(
    path: Path,
    progress: Callable[[int], None] = lambda entries: None,
    *,
    trust: LogTrust | None = None,
) -> verify.VerifyReport:
    """Verify a journal file without the daemon, in use or not. `trust` is what its checkpoints are
    held against.

    A problem counts only if a second walk finds one too: whoever reads the answer may replace the
    journal because of it.
    """
    try:
        report = _walk(path, progress, trust)
    except Unavailable as error:
        if not error.details.get("damaged"):
            raise
        return _walk(path, progress, trust)
    return report if report.ok else _walk(path, progress, trust)


def inspect_rows(
    path: Path, progress: Callable[[int], None] = lambda entries: None
) -> list[WrongRow]:
    """Fold a journal that verifies anew, and return the rows that its tape does not imply."""
    connection = Sqlite(path).open_reader()
    try:
        connection.begin_read()
        keys = log_keys.folder_of(path)
        return wrong_rows(Tx(connection, 0), progress, segments.folder_of(path), keys)
    finally:
        connection.close()


def _walk(
    path: Path, progress: Callable[[int], None], trust: LogTrust | None
) -> verify.VerifyReport:
    """Walk everything once, in one read transaction: entries, heads and segments of one moment."""
    dialect = Sqlite(path)
    if not path.exists():
        raise NotFound(f"there is no journal at {path}", path=str(path))
    if not path.is_file():
        raise InvalidInput(
            f"{path} is not a file: name a journal or a backup of one", path=str(path)
        )
    try:
        connection = dialect.open_reader()
        try:
            connection.begin_read()
            _recognise(connection, path)
            return verify.verify(Tx(connection, 0), progress, segments.folder_of(path), trust)
        finally:
            connection.close()
    except apsw.SQLError as error:
        raise _foreign(path, str(error)) from error
    except apsw.Error as error:
        raise dialect.translate(error) or error from error


def _recognise(connection: Connection, path: Path) -> None:
    """Raise Unavailable if the file has not what every journal has had since the first version."""
    present = {
        name for (name,) in connection.all("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    if missing := sorted(_TABLES - present):
        raise _foreign(
            path,
            f"it has no table {' or '.join(missing)}" if path.stat().st_size else "it is empty",
        )


def _foreign(path: Path, why: str) -> Unavailable:
    advice = "name another file, or go back to a backup with `palyra journal restore BACKUP`"
    return Unavailable(
        f"{path} is not a journal of Palyra: {why}; {advice}", path=str(path), damaged=True
    )


def page_problems(path: Path) -> list[str]:
    """Return the errors that SQLite itself finds in the file's pages, at most a few lines."""
    try:
        connection = Sqlite(path).open_reader()
        try:
            rows = connection.all("PRAGMA integrity_check(5)")
        finally:
            connection.close()
    except apsw.Error as error:
        return [str(error)]
    return [str(row[0]) for row in rows if row[0] != "ok"]


def missing_guards(path: Path) -> list[str]:
    """The append-only triggers that someone dropped."""
    connection = Sqlite(path).open_reader()
    try:
        present = {
            name
            for (name,) in connection.all("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        }
        if not segments.known(Tx(connection, 0)):
            present |= _SEGMENT_GUARDS
    finally:
        connection.close()
    return sorted(_GUARDS - present)
