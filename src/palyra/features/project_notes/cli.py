"""`palyra notes`: review AGENTS.md, CLAUDE.md and other notes. The agent follows one only with the
content that you accepted.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from palyra.cli import short_ids
from palyra.cli.commands import group, verb
from palyra.cli.confirm import confirm
from palyra.cli.notes_hint import waits
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.discovery import folder_of
from palyra.client.types.notes import Note
from palyra.core.errors import Conflict, InvalidInput, NotFound

notes = group(
    "notes",
    "Notes for agents (AGENTS.md, CLAUDE.md, PALYRA.md): list, show, diff, accept, reject.",
    default="list",
)
_STATES = {
    "accepted": ("Accepted", "green"),
    "changed": ("Changed", "yellow"),
    "new": ("Not accepted", "yellow"),
    "missing": ("Missing", "dim"),
    "unusable": ("Unusable", "red"),
}


def _place(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--workspace",
        default="",
        metavar="FOLDER",
        help="The notes of this folder.  [default: this one]",
    )(command)
    return click.option(
        "--session",
        "session_id",
        default="",
        metavar="ID",
        help="The notes of this session's folder.",
    )(command)


def _found(state: CliState, workspace: str, session_id: str) -> Sequence[Note]:
    if session_id and workspace:
        raise InvalidInput("give --session or --workspace, not both")
    if session_id:
        return state.api.list_notes(session_id=short_ids.session(state.api, session_id)).notes
    return state.api.list_notes(workspace=folder_of(workspace)).notes


def _one(found: Sequence[Note], file: str) -> Note:
    for each in found:
        if each.file == file:
            return each
    there = f"there are {', '.join(each.file for each in found)}" if found else "there are none"
    raise NotFound(f"there are no notes {clean(file)!r} here: {there}")


@verb(notes, "list", help="List the notes of a folder with their state.")
@_place
@click.option(
    "--all", "everywhere", is_flag=True, help="The notes of every folder that sessions use."
)
def list_(state: CliState, workspace: str, session_id: str, everywhere: bool) -> None:
    found = state.api.list_notes().notes if everywhere else _found(state, workspace, session_id)
    out = state.out
    if out.as_json:
        out.json({"notes": found})
        return
    if not found:
        out.line("no notes for agents here (AGENTS.md, CLAUDE.md, PALYRA.md)")
        return
    rows = [
        [
            clean(each.file),
            _STATES[each.state][0],
            f"{each.size:,} B",
            each.sha256[:12],
            clean(each.applies) or "everything",
            clean(each.workspace),
        ]
        for each in found
    ]
    out.table(["file", "state", "size", "sha-256", "for", "folder"], rows, right=["size"])
    for each in found:
        if each.problem:
            out.note(f"{each.file}: {one_line(each.problem)}")
        elif waits(each):
            out.note(
                f"{each.file}: the agent does not follow it; review it with `palyra notes diff"
                f" {each.file}`"
            )


@verb(notes, "show", help="Show one file as it is now.")
@click.argument("file")
@_place
def show(state: CliState, file: str, workspace: str, session_id: str) -> None:
    note = _one(_found(state, workspace, session_id), file)
    if state.out.as_json:
        state.out.json(note)
        return
    words, color = _STATES[note.state]
    state.out.line(
        f"{state.out.style(note.file, 'bold')}: {state.out.style(words, color)} "
        f" {one_line(note.problem)}".rstrip()
    )
    for line in note.text.splitlines():
        state.out.line(clean(line))


@verb(notes, "diff", help="Show what has changed since the file was accepted last.")
@click.argument("file")
@_place
def diff(state: CliState, file: str, workspace: str, session_id: str) -> None:
    note = _one(_found(state, workspace, session_id), file)
    if state.out.as_json:
        state.out.json(note)
        return
    if not note.diff:
        state.out.line(
            f"{note.file}: {one_line(note.problem) or _STATES[note.state][0].lower()}; nothing to"
            " compare"
        )
    _show_diff(state, note)


def _show_diff(state: CliState, note: Note) -> None:
    for line in note.diff.splitlines():
        state.out.line(
            state.out.style(clean(line), {"+": "green", "-": "red"}.get(line[:1], "dim"))
        )


@verb(
    notes, "accept", help="Let the agent follow notes as they are now. Without FILE: all that wait."
)
@click.argument("files", nargs=-1)
@_place
@click.option(
    "--sha256",
    "digest",
    default="",
    metavar="HEX",
    help="Accept FILE only with this digest; see `palyra notes show --json`.",
)
@click.option(
    "--yes", is_flag=True, help="Do not ask; for scripts that have looked at `palyra notes diff`."
)
def accept(
    state: CliState, files: tuple[str, ...], workspace: str, session_id: str, digest: str, yes: bool
) -> None:
    found = _found(state, workspace, session_id)
    chosen = (
        [_one(found, file) for file in files] if files else [each for each in found if waits(each)]
    )
    if digest and len(chosen) != 1:
        raise InvalidInput("--sha256 goes with one FILE")
    for each in chosen:
        if each.problem or each.state == "missing":
            raise Conflict(f"{each.file} cannot be accepted: {each.problem or 'the file is gone'}")
    waiting = [each for each in chosen if waits(each)]
    if not yes and waiting:
        if state.out.as_json or not sys.stdin.isatty():
            raise InvalidInput("look at `palyra notes diff FILE`, then give --yes")
        for each in waiting:
            _show_diff(state, each)
        confirm(
            f"Let the agent follow {', '.join(each.file for each in waiting)} in"
            f" {clean(waiting[0].workspace)}?"
        )
    done = []
    for each in waiting:
        # Exactly what was shown: the daemon refuses if the file is another one by now.
        done.append(
            state.api.accept_note(
                workspace=each.workspace, file=each.file, sha256=digest or each.sha256
            )
        )
    names = ", ".join(each.file for each in done)
    state.out.result(
        {"notes": done},
        f"accepted: {names}; the next run follows it" if done else "nothing waits to be accepted",
    )


@verb(notes, "reject", help="Revoke the acceptance of a file; runs go without it.")
@click.argument("file")
@_place
def reject(state: CliState, file: str, workspace: str, session_id: str) -> None:
    if session_id:
        workspace = _one(_found(state, workspace, session_id), file).workspace
    state.api.reject_note(workspace=folder_of(workspace), file=file)
    state.out.result({"rejected": file}, f"rejected: {clean(file)}; the next run goes without it")
