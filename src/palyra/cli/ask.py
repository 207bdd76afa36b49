"""`palyra ask`: one question, one answer. Standard output gets what the model says, as it says it,
and nothing else.
"""

import os
import re
import select
import sys
from typing import cast, get_args

import click

from palyra.cli import attachments, daemon_process, lookup, notes_hint, short_ids
from palyra.cli.chat.command import begin, check_model
from palyra.cli.commands import command
from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.follow_run import RunFollower
from palyra.cli.state import CliState
from palyra.client.discovery import folder_of
from palyra.client.types.sessions import Session
from palyra.core.call_options import NOTHING, CallOptions, Effort
from palyra.core.errors import InvalidInput, NotFound

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
    metavar="SESSION",
    help="Ask in this session instead of a new one: its number, name or id.",
)
@click.option(
    "-c", "--continue", "last", is_flag=True, help="Ask in the last session of this folder."
)
@click.option("--model", default="", metavar="NAME", help="Use this model, as provider/model.")
@click.option(
    "--effort",
    type=click.Choice([each for each in get_args(Effort) if each]),
    help="How much the model reasons, where it can be told.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(0, 2),
    metavar="NUMBER",
    help="How freely the model chooses its words, 0 to 2.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Longest reply, reasoning included.",
)
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
    last: bool,
    model: str,
    effort: str | None,
    temperature: float | None,
    max_tokens: int | None,
    files: tuple[str, ...],
    workspace: str,
    approve: str | None,
    final: bool,
) -> int:
    if last and session_id:
        raise InvalidInput("choose one of --continue and --session")
    question = _question(" ".join(text))
    for each in files:
        # Before there is a daemon, or a session that nobody asked anything in.
        attachments.find(each)
    daemon_process.ensure(state)
    if model:
        check_model(state, model)
    if approve == "ask" and not _has_terminal():
        raise InvalidInput(
            "there is no terminal to ask on: use --approve deny, and `palyra approvals` elsewhere"
        )
    if session_id:
        session = state.api.get_session(short_ids.session(state.api, session_id))
    elif last:
        session = _last_session(state, folder_of(workspace))
    else:
        session = begin(state, folder_of(workspace), label=lookup.ASKED)
    approve = approve or ("ask" if _has_terminal() else "deny")
    if session.workspace and (waiting := notes_hint.hint(state.api, session.session_id)):
        state.out.note(waiting)
    asking = RunFollower(state, session, approve, final=final)
    try:
        options = CallOptions(
            effort=cast("Effort", effort or ""), temperature=temperature, max_tokens=max_tokens
        )
        return asking.run(question, model, files, None if options == NOTHING else options)
    except KeyboardInterrupt:
        asking.cancel()
        raise InterruptedCommand("interrupted; the run was stopped") from None


def _last_session(state: CliState, folder: str) -> Session:
    """Return the session that was used last in a folder, in a chat or by `ask`."""
    found = lookup.sessions_of(state.api, folder)
    if not found:
        raise NotFound(f"there is no session in {folder} to continue: leave --continue out")
    return found[0]


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
    """Tell whoever left the input open without knowing it, as schedulers and build servers do, why
    nothing happens.
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
    """Return whether a person can be asked: standard input may be a pipe while the terminal is
    still there.
    """
    if not sys.stderr.isatty():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
