"""`palyra upgrade` and `palyra rollback`: to the state of this version, and back from it."""

import time
from pathlib import Path

import click

from palyra.cli import daemon_process, exit_codes, formatting
from palyra.cli.commands import command
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.core.errors import InvalidInput, NotFound
from palyra.serve.wiring.rehearsal import RehearsedStep, UpgradeRehearsal

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


@command(
    "upgrade",
    help=(
        "Upgrade the home to this version, after a rehearsal and a verified copy. The daemon must"
        " not run."
    ),
)
@click.option(
    "--rehearse",
    is_flag=True,
    help="Only try it on a copy: migrate, verify, replay runs. Changes nothing.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Kept runs to replay.  [default: runs in the home folder]",
)
@click.option(
    "--in",
    "scratch",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Where the copy is made for the rehearsal.  [default: the system's temporary folder]",
)
def upgrade(state: CliState, rehearse: bool, runs: Path | None, scratch: Path | None) -> int:
    from palyra.features.backups.switch import finish_switch
    from palyra.serve import config
    from palyra.serve.wiring import rehearsal
    from palyra.serve.wiring.upgrade import copy_before_migration, migrate

    if not (state.home / "journal.db").exists():
        if config.load(state.home, state.env).config.journal.store:
            raise InvalidInput(
                "the journal lies in PostgreSQL: the daemon upgrades it when it starts, and keeps"
                " a verified copy in the backups folder"
            )
        raise NotFound(f"there is no journal at {state.home / 'journal.db'} to upgrade")
    told = (lambda step: None) if state.out.as_json else (lambda step: _tell(state, step))
    if rehearse:
        tried = rehearsal.rehearse(state.home, state.env, scratch=scratch, runs=runs, told=told)
        return _report(state, tried, "")
    with daemon_process.exclusive(state.home):
        finish_switch(state.home)
        tried = rehearsal.rehearse(state.home, state.env, scratch=scratch, runs=runs, told=told)
        copied, due = None, tried.from_schema < tried.schema
        if tried.ok and due:
            origin = config.load(state.home, state.env).config.journal.origin
            copied = copy_before_migration(state.home, origin=origin)
            migrate(state.home)
    return _report(state, tried, str(copied or ""), done=tried.ok and due)


def _tell(state: CliState, step: RehearsedStep) -> None:
    mark, color = _MARKS[step.state]
    state.out.line(f"{state.out.style(mark, color)} {step.name}: {clean(step.detail)}")


def _report(state: CliState, tried: UpgradeRehearsal, copied: str, *, done: bool = False) -> int:
    if state.out.as_json:
        state.out.json({"rehearsal": tried, "upgraded": done, "copy": copied})
    elif not tried.ok:
        state.out.line("The rehearsal found a problem. The home is unchanged.")
    elif tried.from_schema == tried.schema:
        state.out.line(f"This home has schema {tried.schema} already. There is nothing to upgrade.")
    elif not done:
        state.out.line(f"This home can be upgraded to palyra {tried.version}. It is unchanged.")
    else:
        state.out.line(f"Upgraded to palyra {tried.version}, schema {tried.schema}.")
        if copied:
            state.out.line(f"The state before it is in {copied}. Go back with: palyra rollback")
    return exit_codes.OK if tried.ok else exit_codes.FAILED


@command(
    "rollback",
    help=(
        "Go back to the state before the last upgrade; what happened since is exported. The daemon"
        " must not run."
    ),
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rollback(state: CliState, yes: bool) -> None:
    from palyra.features.backups import rollback as rollbacks
    from palyra.features.backups.switch import finish_switch

    with daemon_process.exclusive(state.home):
        finish_switch(state.home)
        last = rollbacks.last_upgrade(state.home)
        plan = rollbacks.plan_rollback(state.home, last)
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(last.made_ms / 1000))
        if not yes:
            state.out.note(
                f"Back to {when}, schema {last.schema}, {formatting.count(plan.entries)} entries."
                f" {formatting.count(plan.since)} newer entries are exported to {plan.kept}."
            )
            confirm("Roll back?")
        done = rollbacks.roll_back(state.home, plan)
    if state.out.as_json:
        state.out.json({"rollback": done, "needs": last.needed})
        return
    state.out.line(
        f"The home is as it was on {when}, with {formatting.count(done.entries)} entries."
    )
    if not done.verified:
        state.out.line("The journal that was replaced does not verify. It is kept as it was.")
    state.out.line(
        f"What happened since ({formatting.count(done.since)} entries) is in {done.kept}"
    )
    state.out.line(
        f"Install {last.needed} before you start the daemon: this version upgrades again."
    )
