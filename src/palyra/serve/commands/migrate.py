"""`palyra migrate`: move the journal to a PostgreSQL server, or back into a file."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from palyra.cli import daemon_process, exit_codes, formatting
from palyra.cli.commands import command
from palyra.cli.confirm import confirm
from palyra.cli.state import CliState
from palyra.core.errors import ChainBroken, Conflict, InvalidInput

if TYPE_CHECKING:
    from palyra.serve.wiring.foundation import JournalPlace

_FILE = "sqlite"


class MigrationReport(Struct, frozen=True, omit_defaults=True):
    """Result of a move, or what one would copy. `kept`: the file that the journal was in."""

    source: str
    target: str
    tables: dict[str, int]
    bytes: int
    entries: int = 0
    moved: bool = False
    seconds: float = 0.0
    kept: str = ""


@command(
    "migrate",
    help=(
        "Move the journal to a PostgreSQL server, or back into a file. All of it is verified before"
        " and after. The daemon must not run."
    ),
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="ADDRESS",
    help="postgresql://USER@HOST/DATABASE, env:NAME or file:/PATH that holds it, or sqlite.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be copied. Changes nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def migrate(state: CliState, target: str, dry_run: bool, yes: bool) -> int:
    from palyra.serve import config
    from palyra.serve.config import checks, edit
    from palyra.serve.wiring.foundation import journal_place

    with daemon_process.exclusive(state.home):
        loaded = config.load(state.home, state.env)
        source = journal_place(state.home, loaded.config, state.env)
        problem = checks.objection(("journal", "store"), "" if target == _FILE else target)
        if problem:
            raise InvalidInput(f"--to {problem}")
        if source.upkeep.is_file == (target == _FILE):
            raise Conflict(
                f"the journal lies in {source.upkeep.place} already: name a"
                f" {'PostgreSQL server' if target == _FILE else 'file with --to sqlite'}"
            )
        plan = _plan(state, source, target)
        if dry_run:
            return _told(state, plan)
        if not yes:
            _say(state, plan)
            confirm("Move it?")
        began = time.monotonic()
        report = source.upkeep.inspect()
        if not report.ok:
            raise ChainBroken(f"the journal does not verify, so it is not moved: {report.bad}")
        if target == _FILE:
            _to_file(state, source)
        else:
            _to_server(state, source, target)
        edit.set_value(state.home, "journal.store", "" if target == _FILE else target)
        kept = "" if target == _FILE else str(_set_aside(state.home))
    done = MigrationReport(
        plan.source,
        plan.target,
        plan.tables,
        plan.bytes,
        entries=report.entries,
        moved=True,
        seconds=round(time.monotonic() - began, 1),
        kept=kept,
    )
    return _told(state, done)


def _plan(state: CliState, source: "JournalPlace", target: str) -> MigrationReport:
    from palyra.store import transfer

    connection = source.dialect.open_reader()
    try:
        connection.begin_read()
        rows = transfer.count(connection)
    finally:
        connection.close()
    where = str(state.home / "journal.db") if target == _FILE else _shown(state, target)
    return MigrationReport(source.upkeep.place, where, rows, source.upkeep.size())


def _shown(state: CliState, target: str) -> str:
    from palyra.store.postgres import shown

    return shown(_address(state, target))


def _address(state: CliState, target: str) -> str:
    from palyra.serve import config

    return config.secret(target, state.env) if target.startswith(("env:", "file:")) else target


def _to_server(state: CliState, source: "JournalPlace", target: str) -> None:
    from palyra.store.postgres_upkeep import ServerUpkeep

    there = ServerUpkeep(_address(state, target), source.upkeep.path)
    connection = source.dialect.open_reader()
    try:
        connection.begin_read()
        there.receive(connection, lambda table, rows: _progress(state, table, rows))
    finally:
        connection.close()
    report, wrong = there.inspect(), there.wrong_rows()
    if not report.ok or wrong:
        raise ChainBroken(f"the copy does not verify and is not used: {report.bad or wrong[0]}")


def _to_file(state: CliState, source: "JournalPlace") -> None:
    from palyra.store import log_keys, sqlite_files
    from palyra.store.postgres_upkeep import ServerUpkeep

    assert isinstance(source.upkeep, ServerUpkeep)
    journal = source.upkeep.path
    if journal.exists():
        raise Conflict(f"{journal} exists already: move it away first", path=str(journal))
    fresh = journal.with_name(journal.name + ".migrating")
    source.upkeep.give(fresh, lambda table, rows: _progress(state, table, rows))
    sqlite_files.fold_log(fresh)
    # Its keys and segments are known by the journal's own name.
    report = sqlite_files.inspect(fresh, trust=log_keys.trust(journal))
    if not report.ok or (wrong := sqlite_files.inspect_rows(fresh)):
        raise ChainBroken(f"the copy does not verify and is not used: {report.bad or wrong[0]}")
    for suffix in ("-wal", "-shm"):
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    os.rename(fresh, journal)


def _set_aside(home: Path) -> Path:
    """Put the file that the journal was in where no daemon takes it for the journal."""
    from palyra.store import sqlite_files
    from palyra.system.private_files import make_private

    journal, folder = home / "journal.db", home / "backups"
    sqlite_files.fold_log(journal)
    make_private(folder)
    kept = folder / time.strftime("replaced-%Y%m%d-%H%M%S.db", time.gmtime())
    os.rename(journal, kept)
    for suffix in ("-wal", "-shm"):
        journal.with_name(journal.name + suffix).unlink(missing_ok=True)
    return kept


def _progress(state: CliState, table: str, rows: int) -> None:
    if not state.out.as_json and rows % 50_000 == 0:
        state.out.note(f"{table}: {formatting.count(rows)} rows")


def _say(state: CliState, plan: MigrationReport) -> None:
    rows = sum(plan.tables.values())
    state.out.line(f"From {plan.source}")
    state.out.line(f"To   {plan.target}")
    state.out.line(
        f"{formatting.count(rows)} rows in {len(plan.tables)} tables, {formatting.size(plan.bytes)}"
    )


def _told(state: CliState, report: MigrationReport) -> int:
    if state.out.as_json:
        state.out.json(report)
        return exit_codes.OK
    _say(state, report)
    if not report.moved:
        state.out.line("Nothing was changed.")
        return exit_codes.OK
    state.out.line(
        f"Moved and verified: {formatting.count(report.entries)} entries in {report.seconds} s."
    )
    if report.kept:
        state.out.line(f"The file that the journal was in is kept as {report.kept}")
    else:
        state.out.line("The journal in the server is left as it is; drop the database yourself.")
    return exit_codes.OK
