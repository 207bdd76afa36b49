"""The watchdog's checks of the machine: room on the disk, the journal's log, leftover files and
processes of daemons that died.

Reserve for the day when the disk is full: a file that holds nothing but its size.

It is released then, so that what is under way can be written down and the owner can be told; and
reserved again once there is room.
"""

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from palyra.core.errors import Unavailable
from palyra.core.events import Domain
from palyra.features.health import home_checks, orphan_processes
from palyra.features.health.watchdog import Healing, HealthFinding, LookTime, Remedy, Watchdog
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday
from palyra.tools.sandbox.cgroups import free

NAME = "reserve"
BYTES = 8 << 20


def kept(home: Path) -> bool:
    path = home / NAME
    return path.exists() and path.stat().st_size == BYTES


def keep(home: Path) -> None:
    """Reserve the room. Raise OSError where there is none for it."""
    path = home / NAME
    if kept(home):
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, BYTES)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def give_back(home: Path) -> bool:
    """Return whether there was one."""
    path = home / NAME
    there = path.exists()
    path.unlink(missing_ok=True)
    return there


log = logging.getLogger("palyra.watchdog")


class ResourcesWatched:
    """All of it is files, so it is looked at on a thread, in one go."""

    def __init__(
        self, db: Database, clock: Clock, home: Path, journal: Path, mark: str, watchdog: Watchdog
    ) -> None:
        self._db = db
        self._clock = clock
        self._home = home
        self._journal = journal
        self._marks = orphan_processes.Marks(home, mark)
        self._watchdog = watchdog
        # Marks of daemons before this one whose processes may still be there.
        self._dead: list[str] | None = None
        # The disk was full, and there is not as much room yet as there should be.
        self._full = False

    def begin(self) -> None:
        """Mark this daemon's processes, before any is started."""
        try:
            self._marks.keep()
        except OSError as error:
            log.warning("the mark of this daemon's processes could not be kept: %s", error)

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        refused, found = self.refusal(), list[HealthFinding]()
        if not self._silent:
            # Nothing of this can be looked at while the disk does not answer.
            found = await everyday.run(self._look, self._watchdog.settings, moment.now_ms)
            refused = self.refusal()
        # First: without room nothing can be recorded of the others.
        return found if refused is None else [refused, *found]

    @property
    def _silent(self) -> bool:
        return self._db.trouble is None and bool(self._db.standing.problem)

    def refusal(self) -> HealthFinding | None:
        """Return what is wrong with the journal's disk, if it refuses or does not answer."""
        problem = self._db.standing.problem
        self._full |= self._db.trouble is not None and "disk is full" in problem
        return self._refused(problem) if self._full or problem else None

    def _look(self, settings: Healing, now_ms: int) -> list[HealthFinding]:
        return [*self._room(settings), *self._log(settings), *self._left(now_ms), *self._orphans()]

    def _refused(self, problem: str) -> HealthFinding:
        """The store said no to the last that was written, or says nothing.

        A full disk is not over because what was set aside is used up.
        """
        full = self._full
        return HealthFinding(
            key="resource:full" if full else "resource:store",
            domain="resource" if full else "journal",
            summary=(
                "the journal cannot be written:"
                f" {problem or 'the disk was full, and has hardly any room'}"
            ),
            severity="critical",
            fix=(
                "make room where the home folder lies: what is under way waits, and goes on by"
                " itself"
                if full
                else "see what is wrong with the disk"
            ),
            # What does not answer is not asked for more.
            remedies=() if self._silent else (self._make_room(),),
        )

    def _room(self, settings: Healing) -> list[HealthFinding]:
        left = free(str(self._home))
        if left >= settings.free_bytes:
            # What was given back makes room only for a while: the disk is well when that could be
            # set aside again.
            missing = 0 if kept(self._home) else BYTES
            self._full &= self._db.trouble is not None or left < settings.free_bytes + missing
            if settings.mode == "auto" and left >= settings.free_bytes + BYTES:
                self._set_aside()
            return []
        return [
            HealthFinding(
                key="resource:disk",
                domain="resource",
                summary=f"only {home_checks.size(left)} are free for {self._home}",
                severity="error",
                fix="make room, or move the home folder with PALYRA_HOME",
                remedies=(self._make_room(),),
                # One that is full is told of as that, and not twice.
                certain=not self._full,
            )
        ]

    def _set_aside(self) -> None:
        try:
            keep(self._home)
        except OSError as error:
            log.warning("no room could be set aside for a full disk: %s", error)

    def _make_room(self) -> Remedy:
        """Return the remedy: delete what is nobody's first. The reserve is only for a disk that is
        full: the rest is written with it.
        """

        def clear() -> str:
            said = [
                orphan_processes.remove(
                    self._home, orphan_processes.unfinished(self._home, self._clock.now_ms())
                )
            ]
            try:
                said.append(home_checks.fold(self._journal))
            except Unavailable as error:
                said.append(f"the journal's log could not be folded: {error.message}")
            if self._full and free(str(self._home)) < BYTES and give_back(self._home):
                said.append(f"gave back the {home_checks.size(BYTES)} that were set aside for this")
            return "; ".join(said)

        return Remedy("make room", partial(_on_thread, clear))

    def _log(self, settings: Healing) -> list[HealthFinding]:
        size = home_checks.log_size(self._journal)
        if size <= settings.log_bytes:
            return []
        return [
            HealthFinding(
                key="resource:log",
                domain="journal",
                summary=f"the journal's log has grown to {home_checks.size(size)}",
                fix="palyra doctor --repair folds it",
                remedies=(
                    Remedy(
                        "fold the log",
                        partial(_on_thread, partial(home_checks.fold, self._journal)),
                    ),
                ),
            )
        ]

    def _left(self, now_ms: int) -> list[HealthFinding]:
        found = []
        if stale := orphan_processes.stale_pid_files(self._home):
            found.append(
                self._files("resource:pid", "resource", "files of a process that is gone", stale)
            )
        if unfinished := orphan_processes.unfinished(self._home, now_ms):
            found.append(
                self._files(
                    "resource:unfinished",
                    "artifact",
                    "files that nobody goes on writing",
                    unfinished,
                )
            )
        return found

    def _files(self, key: str, domain: Domain, what: str, paths: list[Path]) -> HealthFinding:
        names = ", ".join(str(path.relative_to(self._home)) for path in paths)
        return HealthFinding(
            key=key,
            domain=domain,
            summary=f"{what} are left in the home folder: {names}",
            severity="info",
            fix="palyra doctor --repair removes them",
            remedies=(
                Remedy(
                    "remove the files",
                    partial(_on_thread, partial(orphan_processes.remove, self._home, paths)),
                ),
            ),
        )

    def _orphans(self) -> list[HealthFinding]:
        """Find what a dead daemon left. Once nothing of it is found, nothing of it can come any
        more, and it is forgotten.
        """
        if self._dead is None:
            self._dead = self._marks.dead()
        pids = orphan_processes.carrying(self._dead)
        if not pids:
            self._marks.forget(self._dead)
            self._dead = []
            return []
        end = partial(_on_thread, partial(home_checks.end_orphans, self._home, self._marks.own))
        return [
            HealthFinding(
                key="resource:orphans",
                domain="resource",
                summary=(
                    f"processes outlived the daemon that started them: {', '.join(map(str, pids))}"
                ),
                severity="error",
                fix="palyra doctor --repair ends them",
                remedies=(Remedy("end the processes", end),),
            )
        ]


async def _on_thread(work: Callable[[], str]) -> str:
    return await everyday.run(work)
