"""`palyra why`: from an entry, a file, a message or a cost back to what it came from, as a tree."""

import os
import re
from collections.abc import Iterator

import click

from palyra.cli import formatting, short_ids
from palyra.cli.commands import command
from palyra.cli.output import Output
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client import Client
from palyra.client.types.journal import Cause

_ENTRY = re.compile(r"([0-9A-Za-z]{6,26}|system:local):([0-9]{1,15})\Z")
_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}[a-z]?\Z")
_PART = re.compile(r"[0-9A-HJKMNP-TV-Z]{6,25}\Z")
# Steps that somebody took; the others were made for whoever the run works for.
_PERSONAL = ("undo", "approval", "grant", "input", "message", "schedule", "entry")
_COLORS = {
    "effect": "bold",
    "reply": "bold",
    "cost": "bold",
    "undo": "yellow",
    "approval": "green",
    "grant": "green",
    "decision": "cyan",
    "input": "magenta",
    "message": "magenta",
    "schedule": "magenta",
}


@command(
    "why",
    help=(
        "Say what led to an entry, a file, a message or a cost: input, memory, prompt, model call,"
        " policy, approver.\n\nABOUT is SESSION:NUMBER or a position in the journal, a path, or the"
        " id of a call, an approval, a message to a chat or a run."
    ),
)
@click.argument("about")
@click.option(
    "--limit",
    type=click.IntRange(1, 50),
    default=1,
    show_default=True,
    help="Of a file: so many changes, newest first.",
)
@click.option("--file", "as_file", is_flag=True, help="ABOUT is a path, whatever it looks like.")
def why(state: CliState, about: str, limit: int, as_file: bool) -> None:
    answer = state.api.why(about=_named(state.api, about, as_file=as_file), limit=limit)
    if state.out.as_json:
        state.out.json(answer)
        return
    for at, tree in enumerate(answer.found):
        if at:
            state.out.line()
        for line in lines(state.out, tree):
            state.out.line(line)
    if answer.more:
        state.out.note("There are older changes: show more with --limit")


def _named(api: Client, about: str, *, as_file: bool) -> str:
    """Return what the daemon knows it by. A file that is there goes before an id."""
    about = about.strip()
    entry = None if as_file else _ENTRY.match(about)
    if entry is not None:
        tape = entry[1] if ":" in entry[1] else short_ids.session(api, entry[1])
        return f"{tape}:{int(entry[2])}"
    if as_file or os.path.lexists(about):
        return os.path.realpath(about)
    upper = about[:26].upper() + about[26:]
    if about.isdecimal() or _ID.match(upper):
        return upper
    if _PART.match(upper):
        return short_ids.run(api, upper)
    return os.path.realpath(about)


def lines(out: Output, cause: Cause, ahead: str = "", mark: str = "") -> Iterator[str]:
    """A tree, a line for each step."""
    role = out.style(cause.role, _COLORS.get(cause.role, "dim"))
    yield f"{ahead}{mark}{role}  {_told(out, cause)}"
    below = ahead + {"": "", "├─ ": "│  ", "└─ ": "   "}[mark]
    for at, each in enumerate(cause.causes):
        last = at == len(cause.causes) - 1
        yield from lines(out, each, below, "└─ " if last else "├─ ")


def _told(out: Output, cause: Cause) -> str:
    """Return what the step was, who made it, and where it stands."""
    parts = [one_line(cause.text, 120)]
    # A reader knows the files of an effect, and the id of a call, from its text.
    if cause.names and cause.role in ("decision", "model", "prompt", "memory", "grant", "approval"):
        parts.append(clean(", ".join(cause.names)))
    if cause.cost_microusd:
        parts.append(formatting.money(cause.cost_microusd))
    if cause.by and cause.role in _PERSONAL:
        parts.append(clean(cause.by))
    if cause.seq:
        parts.append(f"{cause.tape}:{cause.seq}")
    if cause.time_ms:
        parts.append(formatting.ago(cause.time_ms))
    return parts[0] + out.style("".join(f" · {each}" for each in parts[1:]), "dim")
