"""`palyra undo`: take back what the agent changed. Says what changes, and where; --preview says it
without doing it.
"""

import click
from msgspec import Struct

from palyra.cli import lookup, short_ids
from palyra.cli.commands import command
from palyra.cli.render import entries
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.cli.undo_refusal import _UNDONE, explained
from palyra.client import Client
from palyra.client.discovery import folder_of
from palyra.client.types.sessions import Session
from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.core.tools import Preview

_MOST_SESSIONS = 20


@command(
    "undo",
    help=(
        "Undo the newest change that was made in this folder, or the one of a session, a call"
        " or a run."
    ),
)
@click.option(
    "--session",
    "session_id",
    default="",
    metavar="ID",
    help="In this session.  [default: those of this folder]",
)
@click.option("--call", "call_id", default="", metavar="ID", help="The change of this call.")
@click.option(
    "--run", "run_id", default="", metavar="ID", help="All changes of this run, newest first."
)
@click.option(
    "--preview",
    "--dry-run",
    "dry_run",
    is_flag=True,
    help="Show what would change, and change nothing.",
)
@click.option("--force", is_flag=True, help="Also where somebody changed the file since.")
def undo(
    state: CliState, session_id: str, call_id: str, run_id: str, dry_run: bool, force: bool
) -> None:
    if call_id and run_id:
        raise InvalidInput("give --call or --run, not both")
    run_id = short_ids.run(state.api, run_id) if run_id else ""
    place = _place(state.api, session_id, call_id, run_id)
    try:
        undone = state.api.undo(
            place.session.session_id,
            call_id=place.call_id,
            run_id=run_id,
            dry_run=dry_run,
            force=force,
        )
    except Conflict as error:
        raise explained(error, "--force") from error
    if state.out.as_json:
        state.out.json(undone)
        return
    title = f" ({one_line(place.session.title, 60)})" if place.session.title else ""
    where = f"in session {place.session.session_id}{title}"
    state.out.line(f"would be undone, {where}:" if undone.dry_run else f"undone, {where}:")
    for line in entries.change_lines(state.out.style, undone.changes):
        state.out.line(line)
    for line in entries.preview_lines(state.out.style, Preview("diff", "", undone.diff)):
        state.out.line(line)
    for left in undone.left:
        state.out.line(
            state.out.style(
                f"  not put back: {clean(left.tool)}: {one_line(left.why, 200)}", "yellow"
            )
        )
    for path in undone.conflicts if undone.dry_run else ():
        state.out.line(state.out.style(f"  changed by somebody else since: {clean(path)}", "red"))


class _Place(Struct, frozen=True):
    session: Session
    call_id: str = ""


def _place(api: Client, session_id: str, call_id: str, run_id: str) -> _Place:
    call_id = lookup.checked(call_id) if call_id else ""
    if session_id:
        return _Place(api.get_session(short_ids.session(api, session_id)), call_id)
    if run_id:
        return _Place(api.get_session(api.get_run(run_id).session_id))
    found = lookup.sessions_of(api, folder_of(""))[:_MOST_SESSIONS]
    if not found:
        raise NotFound(
            "there is no session in this folder: change to the right folder, or use --session"
        )
    return _with_call(api, found, call_id) if call_id else _newest(api, found)


def _with_call(api: Client, sessions: list[Session], call_id: str) -> _Place:
    for session in sessions:
        try:
            api.undo(session.session_id, call_id=call_id, dry_run=True)
        except NotFound:
            continue
        except Conflict:
            pass
        return _Place(session, call_id)
    raise NotFound(
        f"no session of this folder made the call {call_id}: name its session with --session"
    )


def _newest(api: Client, sessions: list[Session]) -> _Place:
    """Return where the newest change was made that can be taken back: ids of calls sort by their
    time.
    """
    open_ones: list[_Place] = []
    refused: list[Conflict] = []
    away: Unavailable | None = None
    for session in sessions:
        try:
            open_ones.append(_Place(session, api.undo(session.session_id, dry_run=True).calls[0]))
        except NotFound:
            continue
        except Conflict as error:
            refused.append(error)
        except Unavailable as error:
            # Its newest change is at a worker that is not there.
            away = error
    if open_ones:
        return max(open_ones, key=lambda place: place.call_id)
    if away is not None:
        raise away
    working = next((error for error in refused if _UNDONE not in error.message), None)
    if working is not None:
        raise working
    if refused:
        raise NotFound(
            "nothing left to undo: all that the agent changed in this folder was undone already"
        )
    raise NotFound("there is nothing to undo: the agent changed nothing in this folder")
