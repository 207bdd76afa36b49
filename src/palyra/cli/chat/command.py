"""`palyra chat`: finds or makes the session of this folder and hands the terminal to the chat."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import click

from palyra.cli import daemon_process, lookup, short_ids
from palyra.cli.commands import command
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.client.types.sessions import Session
from palyra.core.errors import Forbidden, InvalidInput, PalyraError

_ELSEWHERE = "cd into the folder of a project, or name one with --workspace"


@command(
    "chat",
    help=(
        "Chat with the agent in this folder. Continues the folder's last session unless --new is"
        " given."
    ),
)
@click.option(
    "--session",
    "session_id",
    metavar="SESSION",
    help="Continue this session: its number, name or id.",
)
@click.option(
    "-c",
    "--continue",
    "last",
    is_flag=True,
    help="Continue the last session of this folder (the default).",
)
@click.option("--new", is_flag=True, help="Start a new session.")
@click.option("--model", default="", metavar="NAME", help="Use this model in the session.")
@click.option(
    "--workspace",
    default="",
    metavar="FOLDER",
    help="Work in this folder instead of the current one.",
)
def chat(
    state: CliState, session_id: str | None, last: bool, new: bool, model: str, workspace: str
) -> int:
    if session_id and (new or workspace):
        raise InvalidInput(
            "--session names a session that exists: it cannot go with --new or --workspace"
        )
    if last and (new or session_id):
        raise InvalidInput("choose one of --continue, --new and --session")
    need_terminal()
    if model:
        check_model(state, model)
    session = (
        state.api.get_session(short_ids.session(state.api, session_id))
        if session_id
        else session_for(state, workspace, new=new)
    )
    if model:
        session = state.api.change_session(session.session_id, model=model)
    talk(state, session)
    return 0


def need_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("a chat needs a terminal: use `palyra ask` in scripts")


def check_model(state: CliState, name: str) -> None:
    """Raise InvalidInput if a name means no model, or several."""
    from palyra.models import model_names

    known = state.api.list_models().models
    if "/" not in name and model_names.one(name, [(e.provider, e.model) for e in known]) is None:
        listed = ", ".join(each.name for each in known)
        raise InvalidInput(f"there is no model {name}: use one of {listed}")


def session_for(state: CliState, workspace: str = "", *, new: bool = False) -> Session:
    """The last chat of a folder, or a new one."""
    folder = discovery.folder_of(workspace)
    found = None if new else lookup.last_session(state.api, folder)
    return found or begin(state, folder)


def begin(state: CliState, folder: str, label: str = "") -> Session:
    """A new session in a folder, or how to choose another one."""
    try:
        return state.api.resolve_session(workspace=folder, session_id=lookup.new_id(), label=label)
    except (Forbidden, InvalidInput) as error:
        if "workspace" not in error.message:
            raise
        raise type(error)(f"{error.message}; {_ELSEWHERE}") from error


def check_folder(folder: str, home: Path) -> None:
    """Raise Forbidden if no agent can work here, before a daemon starts that would only refuse."""
    own = os.path.realpath(home)
    if (
        folder == "/"
        or own == folder
        or own.startswith(folder + "/")
        or folder.startswith(own + "/")
    ):
        why = "the whole machine" if folder == "/" else f"the daemon's own folder {own}"
        raise Forbidden(
            f"the agent cannot work in {folder}: that would be {why} as well; {_ELSEWHERE}"
        )
    if not os.path.isdir(folder):
        raise InvalidInput(f"{folder} is not a folder; {_ELSEWHERE}")


def talk(state: CliState, session: Session, farewell: str = "") -> None:
    """Chat until the person leaves."""
    from palyra.cli.chat.input_line import InputLine
    from palyra.cli.chat.loop import Chat
    from palyra.cli.chat.name_choices import NameChoices
    from palyra.cli.chat.slash_commands import COMMANDS, complete
    from palyra.cli.chat.terminal import Terminal

    history = state.home / "chat_history"
    names = NameChoices(state.api)
    line = InputLine(
        _history(history), lambda text: complete(text, talking.session.workspace, names)
    )
    host = _Here(state)
    talking = Chat(state.api, Terminal(state.out, line), host, COMMANDS)
    # Ctrl-C is a key here; the signal can only come while the terminal is lent or being put back.
    handlers = ((signal.SIGTERM, _leave), (signal.SIGHUP, _leave), (signal.SIGINT, _nothing))
    before = [(each, signal.signal(each, handler)) for each, handler in handlers]
    try:
        talking.run(session)
    finally:
        talking.close()
        _keep(history, line.history)
        for each, handler in before:
            signal.signal(each, handler)
        host.end()
    if talking.screen.working and not farewell:
        state.out.line("The run continues: `palyra chat` shows it, `palyra stop` cancels it")
    if farewell:
        state.out.line(farewell)


class _Here:
    """This machine, with the daemon that was started here if one was."""

    def __init__(self, state: CliState) -> None:
        self.env = state.env
        self._home = state.home
        self._started: subprocess.Popen[bytes] | None = None

    def daemon_has_ended(self) -> bool:
        """Return whether it said goodbye: one that died leaves its traces behind, and may be
        started again by whoever looks after it.
        """
        return not self.env.get("PALYRA_URL") and discovery.running(self._home) is None

    def start_daemon(self) -> None:

        self.end()
        self._started = daemon_process.start(self._home, None, lifeline=True)
        try:
            daemon_process.wait_ready(self._started, self._home, self.env)
        except PalyraError:
            self.end()
            raise

    def end(self) -> None:

        if self._started is not None:
            daemon_process.end(self._started)
            self._started = None


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


def _history(path: Path) -> list[str]:
    """Lines said before, oldest first. A newline inside a message is kept as an escape."""
    try:
        return [
            line.replace("\\n", "\n")
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
    except OSError:
        return []


def _keep(path: Path, lines: list[str]) -> None:
    """Keep what was said for the next chat, but no secret: what the journal must not hold, this
    file must not either.
    """
    import secrets

    from palyra.system.private_files import write_private
    from palyra.system.redactor import Redactor

    text = Redactor(secrets.token_bytes(32)).redact(
        "".join(line.replace("\n", "\\n") + "\n" for line in lines)
    )
    try:
        write_private(path, text.encode("utf-8", "replace"))
    except OSError as error:
        sys.stderr.write(f"the chat history was not kept: {error}\n")
