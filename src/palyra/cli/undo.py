"""`palyra undo`: take back what the agent changed. Says what changes; --dry-run says it without doing it."""

import os

import click

from palyra.cli import client, entry_lines
from palyra.cli.commands import command
from palyra.cli.state import State
from palyra.domain.errors import InvalidInput, NotFound


@command("undo", help="Take back the newest change of this folder's last session, or the one of a call or a run.")
@click.option("--session", "session_id", default="", metavar="ID", help="In this session.  [default: the last one of this folder]")
@click.option("--call", "call_id", default="", metavar="ID", help="The change of this call.")
@click.option("--run", "run_id", default="", metavar="ID", help="All changes of this run, newest first.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--force", is_flag=True, help="Also where somebody changed the file since.")
def undo(state: State, session_id: str, call_id: str, run_id: str, dry_run: bool, force: bool) -> None:
    if call_id and run_id:
        raise InvalidInput("give --call or --run, not both")
    undone = client.undo(
        state.api,
        session_id or _session_of(state, run_id),
        call_id=client.checked(call_id) if call_id else "",
        run_id=client.checked(run_id) if run_id else "",
        dry_run=dry_run,
        force=force,
    )
    if state.out.as_json:
        state.out.json(undone)
        return
    state.out.line("would be taken back:" if undone.dry_run else "taken back:")
    for line in entry_lines.change_lines(state.out.style, undone.changes):
        state.out.line(line)


def _session_of(state: State, run_id: str) -> str:
    if run_id:
        return client.run(state.api, run_id).session_id
    found = client.last_session(state.api, os.path.realpath(os.getcwd()))
    if found is None:
        raise NotFound("this folder has no session: go to the folder, or name a session with --session")
    return found.session_id
