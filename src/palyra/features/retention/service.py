"""Putting old things away without stopping: sessions into segments, unused artifacts out, free
pages back to the disk.

The rule: what is put away can be verified and brought back, and everything happens in steps so
small that nobody waits for them. Killed at any moment, what was begun is finished by the next
round.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from palyra.agent.ports import JournalCheckpoints
from palyra.core import ids
from palyra.core.errors import Conflict, Unavailable
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.channels.rows import messages, outbox, people
from palyra.features.retention import rows as retention_rows
from palyra.features.retention.rows import Old
from palyra.features.tasks.worker import Tasks
from palyra.store import segments, sessions, sqlite_files, tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.dialect import Row
from palyra.store.segments import Sealed, Segment
from palyra.store.sessions import Session
from palyra.store.upkeep import Upkeep
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday

DAY_MS = 24 * 3_600_000
ARCHIVE, CLEAN, MAINTAIN = "retention.archive", "retention.clean", "journal.maintain"
# One segment holds about so many entries: sealing, and removing what was sealed, stays short.
_ENTRIES = 5_000
_MOST_SESSIONS = 200
_PAGES_AT_ONCE = 256
_LEAST_FREE_PAGES = 512
_LARGE_LOG = 32 << 20
# How long it can be seen what was refused in chats, and why.
_REFUSED_DAYS = 30
_WHATEVER_AGE = 1 << 62


class RetentionSettings(Struct, frozen=True):
    """Settings of retention. 0 days: sessions stay in the journal forever."""

    sessions_after_days: int = 0
    unused_files_after_days: int = 7
    chat_messages_after_days: int = 90


class Archived(Struct, frozen=True, kw_only=True):
    """Result of sealing, or its preview. `bytes` is what it took in the database, `sealed_bytes`
    what the segments take.
    """

    dry_run: bool
    days: int
    sessions: list[Old]
    entries: int
    bytes: int
    segments: list[str]
    sealed_bytes: int = 0


class DeletedSession(Struct, frozen=True, kw_only=True):
    """A session that was deleted: `segment_id` names the sealed file that still proves it."""

    session_id: str
    segment_id: str
    entries: int
    bytes: int


class Cleaned(Struct, frozen=True, kw_only=True):
    dry_run: bool
    artifacts: int
    bytes: int


class Maintained(Struct, frozen=True, kw_only=True):
    """`log_bytes` is what is left of the write-ahead log; `released_bytes` went back to the file
    system.
    """

    log_bytes: int
    free_bytes: int
    released_bytes: int


class Retention:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        journal: Upkeep,
        settings: RetentionSettings,
        checkpoints: JournalCheckpoints | None = None,
    ) -> None:
        self._checkpoints = checkpoints
        self._db = db
        self._clock = clock
        self._journal = journal
        self._settings = settings
        self._folder = segments.folder_of(journal.path)
        self._one_at_a_time = asyncio.Lock()

    async def archive_old(
        self, days: int | None = None, *, dry_run: bool = False, by: str = ids.SYSTEM
    ) -> Archived:
        """Put away every session that was not used for so many days. Those that are kept stay, and
        what is in use.
        """
        days = self._settings.sessions_after_days if days is None else days
        before = self._clock.now_ms() - days * DAY_MS
        async with self._one_at_a_time:
            if dry_run:
                return await self._would_archive(days, before)
            await self.finish()
            await self._checkpoint()
            archived = await self._archive(days, before)
            if archived.segments:
                await self._checkpoint()
            return archived

    async def _checkpoint(self) -> None:
        """Have the journal signed for, where somebody does."""
        if self._checkpoints is not None:
            await self._checkpoints.try_checkpoint()

    async def _would_archive(self, days: int, before: int) -> Archived:
        found = await self._db.read(lambda tx: retention_rows.old(tx, before, 10_000))
        size = await self._db.read(
            lambda tx: sum(retention_rows.bytes_of(tx, each.session_id) for each in found)
        )
        entries = sum(each.entries for each in found)
        return Archived(
            dry_run=True, days=days, sessions=found, entries=entries, bytes=size, segments=[]
        )

    async def _archive(self, days: int, before: int) -> Archived:
        done: list[Old] = []
        made: list[Sealed] = []
        size, passed = 0, set[str]()
        while batch := await self._db.read(partial(_batch, before=before, passed=passed)):
            names = [each.session_id for each in batch]
            size_now = await self._db.read(partial(_sizes, names=names))
            sealed = await self._seal(names, partial(_record, before=before))
            if sealed is None:
                # Somebody came back to one of them just now: nothing refers to the file, and there
                # is another round.
                passed.update(names)
                continue
            made.append(sealed)
            done += batch
            size += size_now
        return Archived(
            dry_run=False,
            days=days,
            sessions=done,
            entries=sum(each.entries for each in made),
            bytes=size,
            segments=[each.segment_id for each in made],
            sealed_bytes=sum(each.size for each in made),
        )

    async def _seal(self, names: list[str], record: Callable[[Tx, Sealed], bool]) -> Sealed | None:
        """Move tapes into one segment, unless `record` finds that they changed meanwhile."""
        body = await self._db.read(partial(segments.pack, tapes=names))
        sealed = await everyday.run(segments.seal, body, self._folder)

        def step(tx: Tx) -> bool:
            if self._db.is_shared:
                segments.keep_body(tx, sealed.segment_id, body)
            return record(tx, sealed)

        if not await self._db.write(step):
            return None
        for name in names:
            await self._remove(name)
        return sealed

    async def delete(self, principal: str, session_id: str) -> DeletedSession:
        """Take a session out of the journal, the lists and search, whatever its age.

        Its sealed copy stays: without it nobody could prove the entries around it. Raise Conflict
        if it is pinned, at work or branched from.
        """
        ids.check(session_id, "session_id")
        async with self._one_at_a_time:
            await self._db.read(lambda tx: _check_deletable(tx, principal, session_id))
            await self._checkpoint()
            size = await self._db.read(lambda tx: retention_rows.bytes_of(tx, session_id))
            sealed = await self._seal([session_id], partial(_record_deleted, by=principal))
            if sealed is None:
                raise Conflict("the session was used just now: try again", session_id=session_id)
            await self._checkpoint()
        return DeletedSession(
            session_id=session_id,
            segment_id=sealed.segment_id,
            entries=sealed.entries,
            bytes=size,
        )

    async def finish(self) -> None:
        """Remove what was sealed and not removed when the daemon last stopped, and what it had not
        written to its end.
        """
        if self._db.is_shared:
            await self._carry()
        for name in await self._db.read(segments.unremoved):
            await self._remove(name)
        await everyday.run(_drop_unfinished, self._folder)

    async def _carry(self) -> None:
        """Give the other nodes the segments from before there were any."""
        for name in await self._db.read(segments.without_body):
            with suppress(FileNotFoundError):
                body = await everyday.run(segments.file_of(self._folder, name).read_bytes)
                await self._db.write(partial(segments.keep_body, segment_id=name, body=body))

    async def _remove(self, name: str) -> None:
        whole = False
        while not whole:
            whole = await self._db.write(partial(segments.remove_slice, name=name))

    async def restore(self, principal: str, session_id: str) -> Session:
        """Bring a session back from its segment, with those it was branched from. One that is not
        in a segment is as it is.
        """
        ids.check(session_id, "session_id")
        async with self._one_at_a_time:
            session = await self._db.read(
                lambda tx: sessions.get(tx, session_id, principal, in_segment=True)
            )
            line = await self._db.read(lambda tx: sessions.ancestors(tx, session_id))
            for name in reversed(line):
                await self._restore(name)
            if not session.segment_id:
                return session
            return await self._db.read(lambda tx: sessions.get(tx, session_id, principal))

    async def _restore(self, name: str) -> None:
        lying = await self._db.read(segments.tapes)
        if name not in lying:
            return
        body = await self._db.read(lambda tx: segments.body_of(tx, self._folder, lying[name]))
        rows = await everyday.run(_rows_of, body, lying[name], name)
        if name in await self._db.read(segments.unremoved):
            # It is not to be removed while it comes back.
            await self._remove(name)
        for at in range(0, len(rows), segments.SLICE):
            await self._db.write(partial(segments.put_back, rows=rows[at : at + segments.SLICE]))
        await self._db.write(partial(segments.restored, name=name))

    async def listing(self) -> list[Segment]:
        return await self._db.read(segments.listing)

    async def clean(self, *, dry_run: bool = False) -> Cleaned:
        """Remove artifacts that no entry names: files that were sent and never attached, what a
        crash left.
        """
        before = self._clock.now_ms() - max(1, self._settings.unused_files_after_days) * DAY_MS
        count = size = 0
        for session_id in await self._db.read(lambda tx: retention_rows.with_artifacts(tx, before)):
            found = await self._db.read(
                partial(retention_rows.unused, session_id=session_id, before_ms=before)
            )
            if not found.artifacts:
                continue
            if dry_run:
                freed = sum(found.artifacts.values())
            else:
                freed = await self._db.write(
                    partial(retention_rows.forget, found=found, before_ms=before)
                )
            count += len(found.artifacts) if freed else 0
            size += freed
        if not dry_run:
            await self._forget_strangers()
            await self._forget_chats()
        return Cleaned(dry_run=dry_run, artifacts=count, bytes=size)

    async def _forget_strangers(self) -> None:
        """Delete what people wrote in chats who were not heard, and who they were."""
        before, after = self._clock.now_ms() - _REFUSED_DAYS * DAY_MS, 0
        while after := await self._db.write(
            partial(messages.forget_refused, before_ms=before, after=after)
        ):
            pass
        await self._db.write(partial(people.forget_strangers, before_ms=before))

    async def _forget_chats(self) -> None:
        """Forget which way messages from chats went. What was said is in the sessions; dead letters
        stay until somebody sees to them.
        """
        if not self._settings.chat_messages_after_days:
            return
        before, after = self._clock.now_ms() - self._settings.chat_messages_after_days * DAY_MS, 0
        while after := await self._db.write(
            partial(messages.forget_ended, before_ms=before, after=after)
        ):
            pass
        while await self._db.write(partial(outbox.forget, before_ms=before)):
            pass

    async def maintain(self) -> Maintained:
        """Look after the database file while it is in use: statistics, the write-ahead log, free
        pages.
        """
        if not self._journal.is_file:
            return Maintained(log_bytes=0, free_bytes=0, released_bytes=0)
        await self._db.write(retention_rows.optimize)
        free, page = await self._db.read(retention_rows.free_pages)
        before = free
        while free > _LEAST_FREE_PAGES:
            await self._db.write(partial(retention_rows.release_pages, most=_PAGES_AT_ONCE))
            left, _ = await self._db.read(retention_rows.free_pages)
            if left >= free:
                break  # The file was made without room for this; its free pages are used again.
            free = left
        await everyday.run(sqlite_files.checkpoint, self._journal.path, _LARGE_LOG)
        return Maintained(
            log_bytes=await everyday.run(
                _size, self._journal.path.with_name(self._journal.path.name + "-wal")
            ),
            free_bytes=free * page,
            released_bytes=(before - free) * page,
        )

    def register(self, queue: Tasks) -> None:
        """Register the jobs. Each is done once a day, and again the day after it was done."""
        queue.register(
            ARCHIVE, partial(self._daily, ARCHIVE, self.archive_old), limit=1, timeout_ms=3_600_000
        )
        queue.register(
            CLEAN, partial(self._daily, CLEAN, self.clean), limit=1, timeout_ms=3_600_000
        )
        queue.register(
            MAINTAIN, partial(self._daily, MAINTAIN, self.maintain), limit=1, timeout_ms=3_600_000
        )

    async def start(self) -> None:
        """See to it that each kind has its next time."""
        kinds = (CLEAN, MAINTAIN, *((ARCHIVE,) if self._settings.sessions_after_days else ()))

        def step(tx: Tx) -> None:
            for kind in kinds:
                _next(tx, kind, again=False)

        await self._db.write(step)

    async def _daily(
        self, kind: str, work: Callable[[], Any], task: tasks.Task
    ) -> Callable[[Tx], None] | None:
        if kind == ARCHIVE and not self._settings.sessions_after_days:
            return None
        report = await work()

        def step(tx: Tx) -> None:
            if isinstance(report, Archived) and report.segments:
                details = {
                    "sessions": len(report.sessions),
                    "entries": report.entries,
                    "segments": report.segments,
                }
                told = AdminChanged(what="journal", action="archived old sessions", details=details)
                tape.append(tx, SYSTEM_TAPE, ids.SYSTEM, [told])
            _next(tx, kind, again=True)

        return step


def _next(tx: Tx, kind: str, *, again: bool) -> None:
    tasks.enqueue(
        tx, kind, key="daily", again=again, priority=tasks.LOW, not_before_ms=tx.now_ms + DAY_MS
    )


def _batch(tx: Tx, before: int, passed: set[str]) -> list[Old]:
    """Sessions for one segment: as many as fit, and at least one however long it is."""
    found = retention_rows.old(tx, before, _MOST_SESSIONS, but=passed)
    taken: list[Old] = []
    for each in found:
        if taken and sum(one.entries for one in taken) + each.entries > _ENTRIES:
            break
        taken.append(each)
    return taken


def _sizes(tx: Tx, names: list[str]) -> int:
    return sum(retention_rows.bytes_of(tx, name) for name in names)


def _check_deletable(tx: Tx, principal: str, session_id: str) -> None:
    sessions.get(tx, session_id, principal)
    obstacle = retention_rows.obstacle(tx, session_id)
    if obstacle:
        raise Conflict(f"this session cannot be deleted: {obstacle}", session_id=session_id)


def _record_deleted(tx: Tx, sealed: Sealed, by: str) -> bool:
    """Record one tape's segment if the tape still ends where it was sealed."""
    (session_id,) = sealed.heads
    _check_deletable(tx, by, session_id)
    if not retention_rows.still_as(tx, _WHATEVER_AGE, sealed.heads):
        return False
    segments.record(tx, sealed, searchable=False)
    details = {"segment": sealed.segment_id, "entries": sealed.entries}
    told = AdminChanged(
        what="journal", action="deleted a session", subject=session_id, details=details
    )
    tape.append(tx, SYSTEM_TAPE, by, [told])
    return True


def _record(tx: Tx, sealed: Sealed, before: int) -> bool:
    if not retention_rows.still_as(tx, before, sealed.heads):
        return False
    segments.record(tx, sealed)
    return True


def _rows_of(body: bytes, segment_id: str, name: str) -> list[tuple[str, Row]]:
    """Return a segment's rows of one tape, after checking that it is as it was sealed."""
    segments.look(body, segment_id)
    key = {"entry": 1, "artifact": 0, "effect": 1}
    return [(what, row) for what, row in segments.records(body) if row[key[what]] == name]


def _drop_unfinished(folder: Path) -> None:
    try:
        for path in folder.glob("*.partial"):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be cleared up: {error}") from error


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
