"""`palyra ask`: one question, one answer. Standard output gets what the model says, as it says it,
and nothing else.
"""

import os
import re
import select
import sys

import click

from palyra.cli import attachments, lookup, notes_hint, short_ids
from palyra.cli.chat.command import begin, check_model
from palyra.cli.commands import command
from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.follow_run import RunFollower
from palyra.cli.state import CliState
from palyra.client.discovery import folder_of
from palyra.core.errors import InvalidInput

_MOST_INPUT = 256 << 10
_SILENCE_S = 2.0


@command(
    "ask", help="Ask one thing and print the answer. What is piped in is put behind the question."
)
@click.argument("text", nargs=-1)
@click.option(
    "--session",
    "session_id",
    default="",
    metavar="ID",
    help="Ask in this session instead of a new one.",
)
@click.option("--model", default="", metavar="NAME", help="Use this model, as provider/model.")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Send this file along; may be given more than once.",
)
@click.option(
    "--workspace",
    default="",
    metavar="FOLDER",
    help="Work in this folder instead of the current one.",
)
@click.option(
    "--approve",
    type=click.Choice(["ask", "deny"]),
    help=(
        "What to do when the agent needs an approval.  [default: ask on a terminal, deny otherwise]"
    ),
)
@click.option("--final", is_flag=True, help="Print only the final answer, when the run has ended.")
def ask(
    state: CliState,
    text: tuple[str, ...],
    session_id: str,
    model: str,
    files: tuple[str, ...],
    workspace: str,
    approve: str | None,
    final: bool,
) -> int:
    question = _question(" ".join(text))
    if model:
        check_model(state, model)
    if approve == "ask" and not _has_terminal():
        raise InvalidInput(
            "there is no terminal to ask on: use --approve deny, and `palyra approvals` elsewhere"
        )
    for each in files:
        # Before there is a session that nobody asked anything in.
        attachments.find(each)
    if session_id:
        session = state.api.get_session(short_ids.session(state.api, session_id))
    else:
        session = begin(state, folder_of(workspace), label=lookup.ASKED)
    approve = approve or ("ask" if _has_terminal() else "deny")
    if session.workspace and (waiting := notes_hint.hint(state.api, session.session_id)):
        state.out.note(waiting)
    asking = RunFollower(state, session, approve, final=final)
    try:
        return asking.run(question, model, files)
    except KeyboardInterrupt:
        asking.cancel()
        raise InterruptedCommand("interrupted; the run was stopped") from None


def _question(text: str) -> str:
    piped = ""
    if not sys.stdin.isatty():
        _say_what_is_waited_for()
        data = sys.stdin.buffer.read(_MOST_INPUT + 1)
        if len(data) > _MOST_INPUT:
            raise InvalidInput(
                "more than 256 KB were piped in: put them into a file in this folder and name it"
            )
        piped = data.decode("utf-8", "replace")
    if not text.strip() and not piped.strip():
        raise InvalidInput('ask what? for example: palyra ask "what is in this folder?"')
    if not piped.strip():
        return text
    return f"{text}\n\n{fenced(piped)}" if text.strip() else piped


def _say_what_is_waited_for() -> None:
    """Whoever left the input open without knowing it, as schedulers and build servers do, must not
    guess why nothing happens.
    """
    try:
        readable, _, _ = select.select([sys.stdin.buffer], [], [], _SILENCE_S)
    except (OSError, ValueError):
        return
    if not readable:
        sys.stderr.write(
            "palyra: reading standard input until it ends; with nothing to add to the question, use"
            " `< /dev/null`\n"
        )


def fenced(text: str) -> str:
    """The text between marks that do not occur in it: nobody takes it for a part of the request."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _has_terminal() -> bool:
    """Whether a person can be asked: standard input may be a pipe while the terminal is still
    there.
    """
    if not sys.stderr.isatty():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
