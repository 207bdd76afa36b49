"""Backups of a home: made, listed, removed when there are enough, and tried by restoring them.

The rule: only a backup that was restored and verified is known to be one. Nothing here touches the
home but its `backups` folder and the file that says how the last backup went.
"""

import asyncio
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from palyra.agent.ports import JournalCheckpoints
from palyra.core.errors import ChainBroken, NotFound, PalyraError
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.features.backups import home_copy, switch
from palyra.features.backups.home_copy import JOURNAL, PARTIAL, CopyReport
from palyra.features.backups.model import (
    BackupSettings,
    BackupStatus,
    CheckedBackup,
    MadeBackup,
    RestoredHome,
    Secret,
    StoredBackup,
    belongs_to,
    interval_ms,
    is_name,
    name_of,
)
from palyra.features.backups.targets import BackupTarget, open_target
from palyra.features.tasks.worker import Step, Tasks
from palyra.store import log_keys, sqlite_files, tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.upkeep import FileUpkeep, Upkeep
from palyra.system.clock import Clock
from palyra.system.private_files import make_private, write_private
from palyra.system.thread_pool import ThreadPool, everyday

log = logging.getLogger("palyra.backups")
MAKE, DRILL = "backups.make", "backups.drill"
STATUS = "backup_status.json"
_MINUTE_MS = 60_000
_LONGEST_MS = 6 * 3_600_000
# A backup that fails is tried again and again, an hour apart at most.
_TRIES = 1_000


class HomeBackups:
    """The backups of one home, by blocking calls: for the command line and for threads."""

    def __init__(
        self,
        home: Path,
        settings: BackupSettings,
        secret: Secret,
        policies: Path | None = None,
        journal: Upkeep | None = None,
    ) -> None:
        self._journal = journal or FileUpkeep(home / JOURNAL)
        self.home = home
        self.settings = settings
        self._secret = secret
        self._policies = policies

    @property
    def target(self) -> BackupTarget:
        return open_target(self.settings, self.home, self._secret)

    @property
    def passphrase(self) -> str:
        reference = self.settings.passphrase
        return self._secret(reference) if reference else ""

    @property
    def home_id(self) -> str:
        """Eight digits by which backups of this home are known among others; empty for a home that
        is not there yet.
        """
        path = self.home / "keys" / "redaction.key"
        if not path.exists():
            return ""
        return hashlib.sha256(b"palyra backups of " + path.read_bytes()).hexdigest()[:8]

    @property
    def status(self) -> BackupStatus:
        try:
            return msgspec.json.decode((self.home / STATUS).read_bytes(), type=BackupStatus)
        except (OSError, msgspec.MsgspecError):
            return BackupStatus()

    def say(self, status: BackupStatus) -> None:
        write_private(self.home / STATUS, msgspec.json.encode(status))

    def make(self, now_ms: int) -> MadeBackup:
        """Make a backup, put it where it belongs, and remove those that are too many."""
        target, passphrase, home_id = self.target, self.passphrase, self.home_id
        if not home_id or (self._journal.is_file and not self._journal.path.exists()):
            raise NotFound(f"there is no journal in {self.home} to back up: start the daemon once")
        with self._scratch() as scratch:
            # The copy, and what is packed from it.
            home_copy.require_space(scratch, 2 * home_copy.size_of(self.home), "a backup")
            report, archive = self._pack(scratch, now_ms, passphrase)
            target.tidy(f"home-{home_id}-")
            name = _unused(target, home_id, now_ms)
            target.put(archive, name)
            made = MadeBackup(
                name=name,
                target=target.name,
                bytes=archive.stat().st_size,
                entries=report.entries,
                encrypted=bool(passphrase),
                keys=(
                    "in the backup, encrypted with it"
                    if passphrase
                    else f"not in the backup: they stay in {self.home / 'keys'}"
                ),
                made_ms=now_ms,
                removed=self._prune(target, home_id, name),
            )
        self.say(msgspec.structs.replace(self.status, last=made, problem="", failures=0))
        return made

    def _pack(self, scratch: Path, now_ms: int, passphrase: str) -> tuple[CopyReport, Path]:
        from palyra.features.backups import archive as archives

        report = home_copy.copy_home(
            self.home, scratch / "copy", policies=self._policies, journal=self._journal
        )
        if not report.verified:
            raise ChainBroken(
                "the journal does not verify, so it was not backed up: see `palyra journal verify`"
            )
        archives.pack(scratch / "copy", report, scratch / "archive", now_ms, passphrase)
        shutil.rmtree(scratch / "copy")
        return report, scratch / "archive"

    def _prune(self, target: BackupTarget, home_id: str, newest: str) -> tuple[str, ...]:
        """Remove the oldest, so that no more are left than are to be kept. The new one stays."""
        found = sorted(
            (each.name for each in target.listing() if belongs_to(each.name, home_id)), reverse=True
        )
        surplus = [name for name in found[self.settings.keep :] if name != newest]
        for name in surplus:
            target.remove(name)
        return tuple(surplus)

    def failed(self, error: Exception, now_ms: int) -> None:
        """Remember that no backup could be made."""
        before = self.status
        said = error.message if isinstance(error, PalyraError) else str(error)
        self.say(
            msgspec.structs.replace(
                before, problem=said, failed_ms=now_ms, failures=before.failures + 1
            )
        )

    def listing(self) -> list[StoredBackup]:
        """Return the backups of this home at the target, the newest first. A home that is not
        there yet may be restored from any.
        """
        home_id = self.home_id
        found = [each for each in self.target.listing() if belongs_to(each.name, home_id)]
        return sorted(found, key=lambda each: each.name, reverse=True)

    def check(self, name: str, now_ms: int) -> CheckedBackup:
        """Restore a backup into a scratch home and verify it; the newest if none is named. What is
        wrong with it is in the answer.
        """
        if not name:
            found = self.listing()
            if not found:
                raise NotFound(f"there is no backup of this home in {self.target.name} yet")
            name = found[0].name
        with self._scratch() as scratch:
            try:
                return self._check(self.fetch(name, scratch), scratch / "home", now_ms)
            except PalyraError as error:
                return CheckedBackup(
                    name=Path(name).name, ok=False, checked_ms=now_ms, problem=error.message
                )

    def fetch(self, name: str, scratch: Path) -> Path:
        """Return a backup as a file here: one of the target by its name, or a file."""
        if not is_name(name) or Path(name).is_absolute():
            if not Path(name).is_file():
                raise NotFound(f"there is no backup {name}: `palyra backup list` lists them")
            return Path(name)
        target = self.target
        size = next((each.bytes for each in target.listing() if each.name == name), 0)
        home_copy.require_space(scratch, 8 * size, "a backup that is restored")
        target.get(name, scratch / name)
        return scratch / name

    def _check(self, archive: Path, place: Path, now_ms: int) -> CheckedBackup:
        from palyra.features.backups import archive as archives

        encrypted = archives.is_encrypted(archive)
        contents = archives.unpack(archive, place, self.passphrase)
        problem = verify_copy(place)
        return CheckedBackup(
            name=archive.name,
            ok=not problem,
            entries=contents.entries,
            schema=contents.schema,
            version=contents.version,
            files=len(contents.files),
            encrypted=encrypted,
            keys=contents.keys,
            checked_ms=now_ms,
            problem=problem,
        )

    def restore(self, name: str, now_ms: int) -> RestoredHome:
        """Put a backup in the place of the home, after verifying it. The caller holds the home, and
        no daemon runs. The present home is kept.
        """
        from palyra.features.backups import archive as archives

        with self._scratch() as scratch:
            archive, place = self.fetch(name, scratch), scratch / "home"
            contents = archives.unpack(archive, place, self.passphrase)
            if problem := verify_copy(place):
                raise ChainBroken(f"the backup {archive.name} was not restored: {problem}")
            if not contents.keys and (problem := self._foreign(place)):
                raise ChainBroken(f"the backup {archive.name} was not restored: {problem}")
            home_copy.require_space(
                self.home,
                home_copy.size_of(place) + home_copy.size_of(self.home),
                "a restored home",
            )
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now_ms / 1000))
            kept = _first_unused(self.home / "backups" / f"replaced-{stamp}")
            had_one = (self.home / JOURNAL).exists()
            if had_one:
                home_copy.keep_home(self.home, kept)
            switch.stage(self.home, place, kept, entries=contents.entries, secrets=contents.keys)
            switch.finish_switch(self.home)
        return RestoredHome(
            name=archive.name,
            entries=contents.entries,
            version=contents.version,
            kept=str(kept) if had_one else "",
            keys=contents.keys,
        )

    def _foreign(self, place: Path) -> str:
        """A backup without keys is verified by the public ones that came with it: whoever made it
        up made those as well. Where this home knows its own, they count.
        """
        known = log_keys.trust(self.home / JOURNAL)
        if not known.keys:
            return ""
        trust = known.of_a_copy
        report = sqlite_files.inspect(place / JOURNAL, trust=trust)
        return "" if report.ok else f"it is not of this home: {report.bad}"

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder for work in progress. What a killed one left is removed at the next start."""
        folder = self.home / "backups"
        make_private(folder)
        with tempfile.TemporaryDirectory(suffix=PARTIAL, prefix="work-", dir=folder) as made:
            yield Path(made)


def verify_copy(place: Path) -> str:
    """Verify the journal of an unpacked home, its tree, its checkpoints and its rows. Return what
    is wrong, empty if nothing is.
    """
    journal = place / JOURNAL
    if not journal.exists():
        return "it has no journal"
    report = sqlite_files.inspect(journal, trust=log_keys.trust(journal))
    if report.bad is not None:
        return f"its journal does not verify: {report.bad}"
    if pages := sqlite_files.page_problems(journal):
        return f"its journal is damaged: {pages[0]}"
    rows = sqlite_files.inspect_rows(journal)
    if rows:
        return f"{rows[0].table} {rows[0].row}: {rows[0].problem}"
    return ""


def _first_unused(path: Path) -> Path:
    names = (path.with_name(f"{path.name}-{at}") for at in range(2, 1_000))
    return next(each for each in (path, *names) if not each.exists())


def _unused(target: BackupTarget, home_id: str, now_ms: int) -> str:
    there = {each.name for each in target.listing()}
    names = (name_of(home_id, now_ms, number) for number in (0, *range(2, 1_000)))
    return next(name for name in names if name not in there)


class Backups:
    """Backups of a running daemon: on demand and by the task queue."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        backups: HomeBackups,
        checkpoints: JournalCheckpoints | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self.of_home = backups
        self._checkpoints = checkpoints
        self._one_at_a_time = asyncio.Lock()
        # Of its own, and nobody waits for it at the end: what it leaves, the next start removes.
        self._thread = ThreadPool("backups", least=1, most=1, roams=True)

    @property
    def settings(self) -> BackupSettings:
        return self.of_home.settings

    async def status(self) -> BackupStatus:
        return await everyday.run(lambda: self.of_home.status)

    async def listing(self) -> list[StoredBackup]:
        return await everyday.run(self.of_home.listing)

    async def make(self, by: str = SYSTEM) -> MadeBackup:
        """Make a backup now. What fails is remembered, and raised."""
        async with self._one_at_a_time:
            await self._checkpoint()
            try:
                made = await self._thread.run(self.of_home.make, self._clock.now_ms())
            except (PalyraError, OSError) as error:
                await everyday.run(self.of_home.failed, error, self._clock.now_ms())
                raise
            event = AdminChanged(
                what="journal",
                action="backed up",
                subject=made.name,
                details={"target": made.target, "entries": made.entries, "bytes": made.bytes},
            )
            await self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))
            await self._checkpoint()
            return made

    async def _checkpoint(self) -> None:
        if self._checkpoints is not None:
            await self._checkpoints.try_checkpoint()

    async def check(self, name: str = "") -> CheckedBackup:
        """Restore a backup into a scratch home, verify it, and remember how that went."""
        async with self._one_at_a_time:
            checked = await self._thread.run(self.of_home.check, name, self._clock.now_ms())
            status = msgspec.structs.replace(self.of_home.status, drill=checked)
            await everyday.run(self.of_home.say, status)
            return checked

    def register(self, queue: Tasks) -> None:
        kinds = {MAKE: self._make_task, DRILL: self._drill_task}
        for kind, handler in kinds.items():
            queue.register(
                kind,
                handler,
                limit=1,
                max_attempts=_TRIES,
                backoff_ms=_MINUTE_MS,
                timeout_ms=_LONGEST_MS,
                unhurried=True,
            )

    async def start(self) -> None:
        """See to it that what is scheduled has its next time, and nothing else has one."""
        status = await self.status()
        made_ms = status.last.made_ms if status.last else 0
        drilled_ms = status.drill.checked_ms if status.drill else 0
        times = {MAKE: (self._every, made_ms), DRILL: (self._drill_every, drilled_ms)}

        def step(tx: Tx) -> None:
            for kind, (every, last_ms) in times.items():
                if every():
                    # What was missed while the daemon was away is made up for.
                    _next(tx, kind, last_ms + every() if last_ms else tx.now_ms)
                else:
                    tasks.drop(tx, kind, "scheduled")

        await self._db.write(step)

    def _every(self) -> int:
        return interval_ms(self.settings.every)

    def _drill_every(self) -> int:
        return interval_ms(self.settings.drill)

    async def _make_task(self, task: tasks.Task) -> Step | None:
        if not self._every():
            return None
        await self.make()
        return partial(_again, kind=MAKE, every_ms=self._every)

    async def _drill_task(self, task: tasks.Task) -> Step | None:
        if not self._drill_every():
            return None
        if not await self.listing():
            # Nothing to try yet: the first backup is under way.
            return partial(_again, kind=DRILL, every_ms=lambda: 60 * _MINUTE_MS)
        await self.check()
        return partial(_again, kind=DRILL, every_ms=self._drill_every)


def _again(tx: Tx, kind: str, every_ms: Callable[[], int]) -> None:
    _next(tx, kind, tx.now_ms + every_ms())


def _next(tx: Tx, kind: str, at_ms: int) -> None:
    tasks.enqueue(tx, kind, key="scheduled", again=True, priority=tasks.LOW, not_before_ms=at_ms)
