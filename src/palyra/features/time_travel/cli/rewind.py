"""`palyra rewind`, `palyra sessions at`: a session as it was, and the way back to there. What
changes is shown before it does.
"""

from typing import Any

import click

from palyra.cli import formatting, json_shapes, short_ids
from palyra.cli.commands import command, verb
from palyra.cli.confirm import confirm
from palyra.cli.render import entries
from palyra.cli.safe_text import clean, one_line
from palyra.cli.sessions import sessions
from palyra.cli.state import CliState
from palyra.client.types.sessions import Lasting, Moment, Rewound, ShownTurn
from palyra.core.errors import Conflict, InvalidInput
from palyra.core.tools import Preview

_MOST_LISTED = 40
_REWINDING_S = 120.0


@command(
    "rewind",
    help=(
        "Take a session back to one of its entries: the files it changed since, and the"
        " conversation."
    ),
)
@click.argument("session_id", metavar="SESSION")
@click.argument("seq", type=click.IntRange(1))
@click.option("--files-only", is_flag=True, help="Leave the conversation as it is.")
@click.option("--conversation-only", is_flag=True, help="Leave the files as they are.")
@click.option("--preview", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--skip-conflicts",
    is_flag=True,
    help="Leave files as they are that somebody else changed, and rewind the others.",
)
@click.option("--stop", is_flag=True, help="Stop what runs or waits in the session first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rewind(
    state: CliState,
    session_id: str,
    seq: int,
    files_only: bool,
    conversation_only: bool,
    preview: bool,
    skip_conflicts: bool,
    stop: bool,
    yes: bool,
) -> None:
    if files_only and conversation_only:
        raise InvalidInput("give --files-only or --conversation-only, not both")
    whole = short_ids.session(state.api, session_id)
    patient = state.api.within(_REWINDING_S)
    wanted: dict[str, Any] = {
        "to": seq,
        "files": not conversation_only,
        "conversation": not files_only,
        "stop": stop,
        "conflicts": "skip" if skip_conflicts else "abort",
    }
    if preview or not yes:
        planned = patient.rewind_session(whole, **wanted, preview=True)
        if preview and state.out.as_json:
            state.out.json(planned)
            return
        if not state.out.as_json:
            _show_plan(state, planned)
        if preview:
            return
        _check(planned, stop=stop, skip=skip_conflicts)
        confirm("rewind this?")
    done = patient.rewind_session(whole, **wanted)
    if state.out.as_json:
        state.out.json(done)
        return
    for line in entries.change_lines(state.out.style, done.changes):
        state.out.line(line)
    state.out.line(
        f"back at entry {done.to}; to go forward again: palyra rewind {whole} {done.seq - 1}"
    )


def _check(planned: Rewound, *, stop: bool, skip: bool) -> None:
    """Raise what would be refused before anybody is asked."""
    if planned.running and not stop:
        raise Conflict(
            "a run works or waits in this session: wait for it, or add --stop", runs=planned.running
        )
    if planned.conflicts and not skip:
        named = ", ".join(clash.path for clash in planned.conflicts)
        raise Conflict(
            f"nobody's work is overwritten: {named}: look at it first; --skip-conflicts leaves it"
            " as it is"
        )


def _show_plan(state: CliState, planned: Rewound) -> None:
    out, style = state.out, state.out.style
    out.line(f"back to entry {planned.to}:")
    if planned.files:
        for line in entries.change_lines(style, planned.changes) or [
            style("  no file changes", "dim")
        ]:
            out.line(line)
        for line in entries.preview_lines(style, Preview("diff", "", planned.diff)):
            out.line(line)
    for clash in planned.conflicts:
        out.line(style(f"  conflict: {clean(clash.path)}: {clean(clash.why)}", "red"))
    if planned.conversation:
        out.line(
            f"  the conversation has {planned.turns_then} turns then; it has"
            f" {planned.turns_now} now"
        )
    for rule in planned.rules:
        out.line(f"  in force again: {one_line(rule, 120)}")
    for run_id in planned.running:
        out.line(style(f"  has to be stopped first: run {run_id}", "yellow"))
    _show_lasting(state, planned.lasting, "cannot be undone")


def _show_lasting(state: CliState, lasting: tuple[Lasting, ...], what: str) -> None:
    for each in lasting[:_MOST_LISTED]:
        told = (
            f"  {what}: {clean(each.tool)} {one_line(each.what, 100)} (entry {each.seq},"
            f" {each.outcome or 'no result'})"
        )
        state.out.line(state.out.style(told, "yellow"))
    if len(lasting) > _MOST_LISTED:
        state.out.line(f"  … and {len(lasting) - _MOST_LISTED} more")


@verb(
    sessions, "at", help="Show a session as it was after one of its entries, and what came since."
)
@click.argument("session_id")
@click.argument("seq", type=click.IntRange(1))
@click.option(
    "--turns",
    default=50,
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="How many turns, from the end.",
)
def at(state: CliState, session_id: str, seq: int, turns: int) -> None:
    moment = state.api.session_at(short_ids.session(state.api, session_id), seq, turns=turns)
    if state.out.as_json:
        state.out.json(json_shapes.moment(moment))
        return
    _show_moment(state, moment)


def _show_moment(state: CliState, moment: Moment) -> None:
    out, style = state.out, state.out.style
    out.line(
        style(
            f"entry {moment.seq} of {moment.head_seq}: {moment.kind},"
            f" {formatting.ago(moment.time_ms)}",
            "bold",
        )
    )
    if moment.left_out:
        out.line(style(f"… {moment.left_out} turns before", "dim"))
    for turn in moment.turns:
        for line in _turn_lines(state, turn):
            out.line(line)
    for text in moment.unread:
        out.line(style("> ", "bold", "blue") + clean(text) + style("  (not read yet)", "dim"))
    for rule in moment.rules:
        out.line(f"rule: {one_line(rule.words, 120)}")
    if moment.label.integrity == "untrusted" or moment.label.confidentiality != "public":
        out.line(f"label: {moment.label.integrity}, {moment.label.confidentiality}")
    for run in moment.runs[-5:]:
        out.line(style(f"run {run.run_id}: {run.state}", "dim"))
    for change in moment.changed[:_MOST_LISTED]:
        out.line(
            f"since: {change.change} {clean(change.path)} by {clean(change.by)} (entry"
            f" {change.seq})"
        )
    if len(moment.changed) > _MOST_LISTED:
        out.line(f"… and {len(moment.changed) - _MOST_LISTED} more changes of files since")
    _show_lasting(state, moment.lasting, "since")


def _turn_lines(state: CliState, turn: ShownTurn) -> list[str]:
    style = state.out.style
    lines = [style(f"[note] {one_line(note, 200)}", "dim") for note in turn.notes]
    match turn.who:
        case "user":
            lines.append(style("> ", "bold", "blue") + clean(turn.text))
        case "summary":
            lines.append(style("summary: ", "bold") + clean(turn.text))
        case "model":
            lines += [clean(turn.text)] if turn.text else []
    for call in turn.calls:
        undone = ", undone" if call.undone else ""
        lines.append(
            style(
                f"  {clean(call.tool)} {formatting.about(call.arguments)}:"
                f" {call.outcome or 'no result'}{undone}",
                "cyan",
            )
        )
    return lines
