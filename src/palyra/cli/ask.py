"""`palyra ask`: one question, one answer. Standard output gets the answer and nothing else; everything else goes beside it."""

import os
import sys
from functools import partial

import click

from palyra.cli import client, entry_lines, exits, naming
from palyra.cli.answering import answer_at_terminal
from palyra.cli.chat import check_model
from palyra.cli.commands import command
from palyra.cli.exits import Interrupted
from palyra.cli.http import Link, Stopped
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import State
from palyra.cli.watcher import decode
from palyra.domain.errors import InvalidInput, PalyraError
from palyra.domain.events import (
    ApprovalRequested,
    ApprovalResolved,
    Call,
    Entry,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolFinished,
    ToolProposed,
)

_PATIENCE_S = 60.0
_MOST_INPUT = 256 << 10


@command("ask", help="Ask one thing and print the answer. What is piped in is added to the question.")
@click.argument("text", nargs=-1)
@click.option("--session", "session_id", default="", metavar="ID", help="Ask in this session instead of a new one.")
@click.option("--model", default="", metavar="NAME", help="Use this model, as provider/model.")
@click.option("--workspace", default="", metavar="FOLDER", help="Work in this folder instead of the current one.")
@click.option(
    "--approve",
    type=click.Choice(["ask", "deny"]),
    help="What to do when the agent needs an approval.  [default: ask on a terminal, deny otherwise]",
)
def ask(state: State, text: tuple[str, ...], session_id: str, model: str, workspace: str, approve: str | None) -> int:
    question = _question(" ".join(text))
    if model:
        check_model(state, model)
    if approve == "ask" and not _has_terminal():
        raise InvalidInput("there is no terminal to ask on: use --approve deny, and `palyra approvals` elsewhere")
    if session_id:
        session = client.session(state.api, naming.session(state.api, session_id))
    else:
        session = client.resolve(state.api, workspace=os.path.realpath(workspace or os.getcwd()), session_id=client.new_id())
    approve = approve or ("ask" if _has_terminal() else "deny")
    # Policy may be stricter where nobody is there to ask.
    origin = "interactive" if approve == "ask" else "api"
    submitted = client.submit(state.api, session.session_id, question, model=model, origin=origin)
    asking = _Asking(state, submitted, approve)
    try:
        return asking.run()
    except KeyboardInterrupt:
        client.cancel(state.api, submitted.run_id, "interrupted on the command line")
        raise Interrupted("interrupted; the run was stopped") from None


def _question(text: str) -> str:
    piped = ""
    if not sys.stdin.isatty():
        data = sys.stdin.buffer.read(_MOST_INPUT + 1)
        if len(data) > _MOST_INPUT:
            raise InvalidInput("more than 256 KB were piped in: put them into a file in this folder and name it")
        piped = data.decode("utf-8", "replace")
    question = "\n\n".join(filter(str.strip, (text, piped)))
    if not question:
        raise InvalidInput('ask what? for example: palyra ask "what is in this folder?"')
    return question


def _has_terminal() -> bool:
    """Whether a person can be asked: standard input may be a pipe while the terminal is still there."""
    if not sys.stderr.isatty():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


class _Asking:
    """Follows one run to its end."""

    def __init__(self, state: State, submitted: client.Submitted, approve: str) -> None:
        self._state = state
        self._run = submitted
        self._approve = approve
        self._style = partial(state.out.style, color=state.out.error_color)
        self._calls: dict[str, Call] = {}
        self._pending: dict[str, ApprovalRequested] = {}

    def run(self) -> int:
        stopped = Stopped()
        lost = False
        watching = client.watch(
            self._state.api, self._run.session_id, self._run.seq, stopped, until=self._run.run_id, patience_s=_PATIENCE_S
        )
        for message in watching:
            item = decode(message)
            if isinstance(item, Link):
                if item.state == "lost" and not lost:
                    self._note("the connection was lost, trying again")
                lost = item.state == "lost"
            elif isinstance(item, Entry) and item.run_id == self._run.run_id:
                code = self._follow(item)
                if code is not None:
                    return code
            if not lost:
                self._answer_pending()
        raise AssertionError("a watch ends with its run")

    def _follow(self, entry: Entry) -> int | None:
        """One entry of the run; its exit code when it was the last."""
        event = entry_lines.read(entry)
        match event:
            case ToolProposed():
                self._calls[event.call_id] = Call(event.call_id, event.tool, event.arguments)
            case ToolFinished():
                call = self._calls.get(event.call_id)
                for line in entry_lines.tool_lines(
                    self._style, call.tool if call else "tool", call.arguments if call else {}, event
                ):
                    self._say(line)
            case ModelReplied() if event.calls and event.text:
                self._note(one_line(event.text, 200))
            case ModelFailed():
                self._note(f"{one_line(event.provider)}: {event.failure}: {one_line(event.message, 200)}")
            case ApprovalRequested():
                self._pending[event.approval_id] = event
            case ApprovalResolved():
                self._pending.pop(event.approval_id, None)
            case RunCompleted():
                return self._end("done", event.text, "")
            case RunFailed():
                return self._end("failed", "", event.message, event.reason)
            case RunCancelled():
                return self._end("cancelled", "", event.reason)
        return None

    def _answer_pending(self) -> None:
        for approval_id, request in list(self._pending.items()):
            del self._pending[approval_id]
            try:
                if self._approve == "ask":
                    answer_at_terminal(self._state, self._run.session_id, request)
                else:
                    self._deny(request)
            except PalyraError as error:
                if error.code != "conflict":
                    raise
                self._note(error.message)

    def _deny(self, request: ApprovalRequested) -> None:
        self._note(f"denied, because nobody is here to ask: {one_line(request.preview.title, 200)}")
        decision = "skip" if request.about == "in_doubt" else "deny"
        reason = "" if decision == "skip" else "nobody is there to approve it; say what you would have done"
        client.answer(self._state.api, request.approval_id, decision, reason=reason)

    def _end(self, state: str, text: str, message: str, reason: str = "") -> int:
        code = exits.OK if state == "done" else exits.FAILED
        if self._state.as_json:
            shown = {"state": state, "text": text, "session_id": self._run.session_id, "run_id": self._run.run_id}
            self._state.out.json(shown | ({"message": message, "reason": reason} if code else {}))
        elif code:
            self._say(self._style(f"error: {state}: {clean(message)}", "red"))
        elif self._state.out.is_terminal:
            sys.stdout.write(clean(text) + "\n")
        else:
            sys.stdout.write(text + "\n")
        return code

    def _note(self, text: str) -> None:
        self._say(self._style(text, "dim"))

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
