"""`palyra refs`: what the references of a message would bring, before it is sent."""

import click

from palyra.cli import attachments, json_shapes, lookup, short_ids
from palyra.cli.chat.command import session_for
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.core.errors import InvalidInput

refs = group(
    "refs", "What a message names with @file:, @folder:, @diff, @staged, @url:, @memory: and @run:."
)


@verb(
    refs,
    "preview",
    help=(
        "Say what each reference of a message would bring, and what would be refused. Nothing is"
        " sent."
    ),
)
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--session",
    "session_id",
    default="",
    metavar="ID",
    help="In this session instead of this folder's last one.",
)
@click.option(
    "--workspace", default="", metavar="FOLDER", help="In this folder instead of the current one."
)
def preview(state: CliState, text: tuple[str, ...], session_id: str, workspace: str) -> int:
    if session_id and workspace:
        raise InvalidInput(
            "--session names a session that has its folder: it cannot go with --workspace"
        )
    where = (
        short_ids.session(state.api, session_id)
        if session_id
        else session_for(state, workspace).session_id
    )
    found = attachments.preview(state.api, lookup.checked(where), " ".join(text))
    wrong = bool(found.errors) or any(each.error for each in found.references)
    if state.out.as_json:
        state.out.json(json_shapes.references(found))
        return 1 if wrong else 0
    for each in found.references:
        state.out.line(
            f"{'✗' if each.error else '✓'} {clean(each.reference)}  {attachments.shown(each)}"
        )
        for warning in each.warnings:
            state.out.line(state.out.style(f"    {clean(warning)}", "yellow"))
    for error in found.errors:
        state.out.line(f"✗ {clean(error)}")
    if not found.references and not found.errors:
        state.out.line("it names nothing")
    else:
        state.out.line(
            state.out.style(
                f"{found.characters:,} characters, {found.tokens:,} tokens in all", "dim"
            )
        )
    return 1 if wrong else 0
