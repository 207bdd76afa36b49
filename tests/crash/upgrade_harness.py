"""Kills whoever upgrades a home, backs it up, rolls it back or restores it, at every point, and
looks what is left.

Run as `python -m tests.crash.upgrade_harness FOLDER WORK[:SCHEMA]`. How they are ended and started again:
see `forking`. Points stand around every commit, every statement of a migration and every file
operation. With `--kill` as a third argument a process of its own really kills itself at each of a
few points.

Whatever the point was: the home is the one state or the other and verifies, what was appended is
there or exported, no checkpoint says more than the tree, half a file has no name of a whole one,
and the next start leaves none.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import palyra.features.backups.rollback
import palyra.serve.wiring.upgrade
from palyra.core.errors import PalyraError
from palyra.features.backups import rollback, targets
from palyra.features.backups.model import BackupSettings
from palyra.features.backups.service import HomeBackups
from palyra.features.backups.switch import finish_switch
from palyra.models.scripted import Turn
from palyra.serve.wiring import upgrade
from palyra.store import tokens
from palyra.store.sqlite import SqliteConnection
from palyra.store.sqlite_schema import MIGRATIONS
from tests.crash.forking import Copies, Points, arm, killed, ready_to_fork, told
from tests.inprocess import daemon, finished, say, session
from tests.proving import verified
from tests.upgrading import older_home, schema_of

# The schema that a home has before it is upgraded; the second part of the argument.
OLD = int((sys.argv[2:] or [""])[0].partition(":")[2] or 20)
NEWEST = MIGRATIONS[-1].number
CHILD_SECONDS = 300
REALLY_KILLED = 8
Report = dict[str, Any]
SETTINGS = "[memory]\nembeddings = false\n"


async def _talk(folder: Path, text: str) -> list[str]:
    """Start the daemon on a home, whatever state it is in, and say something."""
    async with daemon(folder, [Turn(text="well")], SETTINGS) as d:
        await finished(d, await say(d, await session(d), text))
        return [token.name for _, token in await d.db.read(tokens.valid)]


def _backups(folder: Path) -> HomeBackups:
    settings = BackupSettings(target=str(folder / "attic"), passphrase="env:WORDS", keep=2)
    return HomeBackups(folder / "home", settings, lambda reference: "correct horse")


# What is done, after a home was made for it.


def do_upgrade(folder: Path) -> None:
    home = folder / "home"
    upgrade.copy_before_migration(home)
    upgrade.migrate(home)


def do_rollback(folder: Path) -> None:
    home = folder / "home"
    rollback.roll_back(home, rollback.plan_rollback(home, rollback.last_upgrade(home)))


def do_backup(folder: Path) -> None:
    _backups(folder).make(1_800_000_000_000)


def do_restore(folder: Path) -> None:
    backups = _backups(folder)
    backups.restore(backups.listing()[-1].name, 1_800_000_000_000)


def prepare(folder: Path, work: str) -> None:
    """Make the home on which the work begins."""
    home = folder / "home"
    (folder / "work").mkdir(parents=True)
    (folder / "attic").mkdir()
    older_home(home, OLD)
    (home / "keys" / "vault.key").write_bytes(b"v" * 32)
    (home / "policies").mkdir()
    (home / "policies" / "own.cedar").write_text("// one\n")
    if work == "upgrade":
        return
    asyncio.run(_talk(folder, "said before"))
    (home / "policies" / "own.cedar").write_text("// two\n")
    (home / "keys" / "vault.key").write_bytes(b"w" * 32)
    if work in ("backup", "restore"):
        # One that is whole must stay so, whatever becomes of the next.
        _backups(folder).make(1_700_000_000_000)
    if work == "restore":
        (home / "policies" / "own.cedar").write_text("// three\n")
    if work in ("rollback", "restore"):
        asyncio.run(_talk(folder, "said last"))


WORKS: dict[str, Callable[[Path], None]] = {
    "upgrade": do_upgrade,
    "rollback": do_rollback,
    "backup": do_backup,
    "restore": do_restore,
}


def problems(folder: Path, work: str) -> list[str]:
    """What is wrong with what a kill left, after the next start."""
    home = folder / "home"
    found = [] if verified_or_switching(home) else ["the journal does not verify where it lies"]
    finish_switch(home)
    schema, policy = schema_of(home / "journal.db"), (home / "policies/own.cedar").read_text()
    vault = (home / "keys" / "vault.key").read_bytes()[:1]
    states = {
        "upgrade": {(OLD, "// one\n", b"v"), (NEWEST, "// one\n", b"v")},
        "rollback": {(NEWEST, "// two\n", b"w"), (OLD, "// one\n", b"v")},
        "backup": {(NEWEST, "// two\n", b"w")},
        "restore": {(NEWEST, "// three\n", b"w"), (NEWEST, "// two\n", b"w")},
    }[work]
    if (schema, policy, vault) not in states:
        found.append(f"a half state: {(schema, policy, vault)}")
    report = verified(home)
    if not report.ok:
        found.append(f"the journal does not verify: {report.bad}")
    if work in ("rollback", "restore") and not _still_there(home, b"said last"):
        found.append("what was said last is lost")
    if work == "upgrade" and report.entries < 3:
        found.append("entries are lost")
    found += _backups_left(folder, work)
    # And on: the daemon starts, upgrades if it must, and what gave rights still does.
    if "old" not in asyncio.run(_talk(folder, "said after")):
        found.append("a right from before is lost")
    if not (after := verified(home)).ok:
        found.append(f"the journal does not verify after the start: {after.bad}")
    left = [str(each) for each in (*home.glob("*.partial"), *(home / "backups").glob("*.partial"))]
    left += [str(each) for each in home.glob("switch.*")]
    return [*found, *(f"left behind: {each}" for each in left)]


def verified_or_switching(home: Path) -> bool:
    """A journal whose place is being taken is looked at afterwards."""
    if (home / "switch.ready").exists() or (home / "journal.db.restore").exists():
        return True
    return verified(home).ok


def _still_there(home: Path, text: bytes) -> bool:
    places = [home / "journal.db", *home.glob("backups/*/journal.db")]
    return any(_holds(each, text) for each in places)


def _holds(journal: Path, text: bytes) -> bool:
    import apsw

    raw = apsw.Connection(str(journal), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        bodies = raw.execute("SELECT body FROM entries WHERE kind = 'input.received'").fetchall()
        return any(text in body for (body,) in bodies)
    finally:
        raw.close()


def _backups_left(folder: Path, work: str) -> list[str]:
    """Every backup that has a name of one can be restored; the next removes what is left."""
    if work != "backup":
        return []
    backups, found = _backups(folder), []
    for each in backups.listing():
        checked = backups.check(each.name, 1)
        if not checked.ok:
            found.append(f"{each.name} is named as a backup: {checked.problem}")
    if not backups.listing():
        found.append("no backup is left")
    try:
        backups.make(1_900_000_000_000)
    except PalyraError as error:
        found.append(f"the next backup fails: {error.message}")
    left = sorted(each.name for each in (folder / "attic").iterdir())
    return found + [f"left behind: {each}" for each in left if each.endswith(".partial")]


def child(
    folder: Path, work: str, copies: Copies | None = None, die_at: int = 0
) -> tuple[int, Report]:
    async def armed() -> Report:
        points = Points(die_at, stops=copies is not None)
        arm(points)
        for module in (palyra.features.backups.rollback, palyra.serve.wiring.upgrade):
            setattr(module, "Database", points.mortal())  # noqa: B010  a name that the module only imports
        _arm_migrations(points)
        _arm_uploads(points)
        await asyncio.to_thread(WORKS[work], folder)
        return {"points": points.count}

    stopped = copies.keep if copies is not None else None
    return told(folder / "report.json", armed, CHILD_SECONDS, stopped)


def _arm_migrations(points: Points) -> None:
    """Points around every statement that changes the schema, and its commit."""
    all_, commit = SqliteConnection.all, SqliteConnection.commit

    def changing(self: SqliteConnection, sql: str, *more: Any) -> Any:
        if sql.lstrip().startswith(("CREATE", "ALTER", "DROP", "INSERT INTO migrations", "BEGIN")):
            points.reach()
        return all_(self, sql, *more)

    def committing(self: SqliteConnection) -> None:
        points.reach()
        commit(self)
        points.reach()

    SqliteConnection.all = changing  # type: ignore[method-assign]
    SqliteConnection.commit = committing  # type: ignore[method-assign]


def _arm_uploads(points: Points) -> None:
    """Points while a backup is on its way to its folder."""

    def copying(source: IO[bytes], target: IO[bytes], length: int = 0) -> None:
        while piece := source.read(4 << 10):
            target.write(piece)
            target.flush()
            points.reach()

    setattr(targets.shutil, "copyfileobj", copying)  # noqa: B010  the module's own name for it


def look(folder: Path, work: str) -> tuple[int, Report]:
    async def looked() -> Report:
        return {"problems": await asyncio.to_thread(problems, folder, work)}

    return told(folder / "report.json", looked, CHILD_SECONDS)


def prepared(folder: Path, work: str) -> Path:
    async def made() -> Report:
        await asyncio.to_thread(prepare, folder, work)
        return {}

    folder.mkdir()
    status, _ = told(folder / "report.json", made, CHILD_SECONDS)
    assert status == 0, "the home could not be made"
    return folder


def main(root: Path, work: str, *, really: bool) -> None:
    ready_to_fork(lambda: asyncio.to_thread(_warm, root / "warm", work))
    place = prepared(root / "place", work)
    failures: Report = {}
    if really:
        points, states = _kill(root, work, failures)
    else:
        copies = Copies(place, root / "copies")
        (root / "copies").mkdir(exist_ok=True)
        status, done = child(place, work, copies)
        assert status == 0, "it does not even work without a crash"
        points, states = done["points"], copies.states
        for point in copies.each():
            status, found = look(place, work)
            if status != 0 or found["problems"]:
                failures[point] = [status, found.get("problems")]
    told_ = {"points": points, "states": states, "failures": failures}
    sys.stdout.write(json.dumps(told_) + "\n")


def _kill(root: Path, work: str, failures: Report) -> tuple[int, int]:
    """Die at a few points, spread over all of them, and look at each."""
    status, done = child(prepared(root / "whole", work), work)
    assert status == 0, "it does not even work without a crash"
    points = int(done["points"])
    chosen = sorted({1 + at * (points - 1) // (REALLY_KILLED - 1) for at in range(REALLY_KILLED)})
    for point in chosen:
        place = prepared(root / f"killed-{point}", work)
        status, _ = child(place, work, die_at=point)
        if not killed(status):
            failures[str(point)] = [status, "it was not killed"]
            continue
        status, found = look(place, work)
        if status != 0 or found["problems"]:
            failures[str(point)] = [status, found.get("problems")]
    return points, len(chosen)


def _warm(folder: Path, work: str) -> None:
    folder.mkdir()
    prepare(folder, work)
    WORKS[work](folder)
    problems(folder, work)


if __name__ == "__main__":
    os.environ.setdefault("TMPDIR", sys.argv[1])
    main(Path(sys.argv[1]), sys.argv[2].partition(":")[0], really="--kill" in sys.argv)
