"""The chat: waits for keys and for events at once, and lets neither get in the other's way.

What comes in is shown above the line that is being written. An approval is only ever answered by
keys typed after it was shown, so none is asked while there is something in the line.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from palyra.cli import edit_arguments, lookup, notes_hint
from palyra.cli.approval_prompt import (
    ApprovalDecision,
    ApprovalPrompt,
    EditRequested,
    Leave,
    Say,
    ViewRequested,
)
from palyra.cli.chat.screen import Screen
from palyra.cli.chat.terminal import Terminal
from palyra.cli.chat.watcher import Item, Watcher
from palyra.cli.render import entries
from palyra.cli.safe_text import clean, cut, width_of
from palyra.cli.terminal_approval import send, viewed
from palyra.client import Client
from palyra.client.discovery import Unreachable
from palyra.client.http import LinkState
from palyra.client.types.sessions import Attaching, Session
from palyra.core.errors import Conflict, PalyraError
from palyra.core.events import Entry, InputMode, ModelDelta, ToolProgress

_TWICE_S = 2.0
_SUBMIT_PATIENCE_S = 20.0
_TRY_AGAIN_S = 0.2
_LISTEN_S = 2.0
_LOOK_BACK = 200
_TURNS_SHOWN = 4
_LINES_SHOWN = 40
_SECOND_S = 1.0
_WAITING = "… waiting for the daemon"

Command = Callable[["Chat", str], None]


class ChatHost(Protocol):
    """The machine a chat runs on: its environment, and its daemon."""

    env: dict[str, str]

    def daemon_has_ended(self) -> bool: ...
    def start_daemon(self) -> None: ...


class Chat:
    """One terminal and one session at a time."""

    def __init__(
        self, api: Client, terminal: Terminal, host: ChatHost, commands: dict[str, Command]
    ) -> None:
        self.api = api
        self.terminal = terminal
        self.screen = Screen(terminal, lambda approval_id: lookup.answered_ms(api, approval_id))
        self.model = ""
        # Files that go with what is said next.
        self.attached: list[Attaching] = []
        self.session: Session
        self._host = host
        self._commands = commands
        self._watcher: Watcher | None = None
        self._held: deque[Item] = deque()
        self._deciding: ApprovalPrompt | None = None
        self._left: set[str] = set()
        self._link: Literal["up", "lost", "ended", ""] = ""
        self._interrupted_at = 0.0
        self._ticking = False
        self._waiting = False
        self.over = False

    def open(self, session: Session) -> None:
        """Show a session: what was said last, what is unfinished, and what comes."""
        self.close()
        self.session = session
        self.attached = []
        self.screen.clear()
        self._deciding = None
        self._left.clear()
        self.terminal.line(
            self._style(f"session {session.session_id}", "bold")
            + f"  {clean(session.title)}".rstrip()
        )
        self.say(f"in {clean(session.workspace) or 'no folder'} · /help for commands")
        if waiting := notes_hint.hint(self.api, session.session_id):
            self.say(waiting, "yellow")
        self._show_past()
        self._watcher = Watcher(self.api, session.session_id, self.screen.seq)
        self.terminal.watch(self._watcher.wakes, self._heard)

    def _show_past(self) -> None:
        head = lookup.head(self.api, self.session)
        stored = list(lookup.entries(self.api, self.session.session_id, max(0, head - _LOOK_BACK)))
        ended = {
            entry.run_id
            for entry in stored
            if entry.kind in ("run.completed", "run.failed", "run.cancelled")
        }
        unfinished = {run.run_id for run in lookup.unfinished(self.api, self.session.session_id)}
        turns = [
            entry.seq
            for entry in stored
            if entry.run_id in ended and entry.kind == "input.received"
        ]
        since = turns[-_TURNS_SHOWN:][0] if turns else head + 1
        past: list[str] = []
        for entry in stored:
            if entry.seq >= since and entry.run_id not in unfinished:
                past += self.screen.past(entry)
        if len(past) > _LINES_SHOWN or len(turns) > _TURNS_SHOWN or head > _LOOK_BACK:
            self.say(
                f"… `palyra sessions show {self.session.session_id}` shows what was said before"
            )
        self.screen.lines(past[-_LINES_SHOWN:])
        for entry in stored:
            if entry.run_id in unfinished:
                self.screen.show(entry)
        self.screen.seq = max(self.screen.seq, stored[-1].seq if stored else head)
        self._add_older_approvals()
        if self.screen.pending:
            self.say("an approval is pending from before", "yellow")
        elif self.screen.busy:
            self.say("a run is working here; Ctrl-C stops it", "yellow")

    def _add_older_approvals(self) -> None:
        """One that was asked for so long ago that it lies before what was read."""
        for approval in lookup.pending(self.api):
            if approval.session_id == self.session.session_id:
                self.screen.pending.setdefault(approval.approval_id, approval.request)
                self.screen.working[approval.run_id] = "waiting"

    def close(self) -> None:
        if self._watcher is not None:
            self.terminal.unwatch(self._watcher.wakes)
            self._watcher.close()
            self._watcher = None
        self._held.clear()
        self._link = ""

    def run(self, session: Session) -> None:
        self.terminal.run(self, lambda: self.open(session))

    def _heard(self) -> None:
        if self._watcher is not None:
            self._held.extend(self._watcher.take())
        self.settle()

    def settle(self) -> None:
        """Show what has come, ask what is to be asked, or leave."""
        self._show_held()
        if self.over:
            self.terminal.leave()
            return
        self._ask()
        self.terminal.redraw()
        if self.screen.counting and not self._ticking:
            self._ticking = True
            self.terminal.call_later(_SECOND_S, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        self.settle()

    def _show_held(self) -> None:
        while self._held and not self.over:
            self._show(self._held.popleft())

    def _show(self, item: Item) -> None:
        match item:
            case Entry():
                self.screen.show(item)
            case ModelDelta() | ToolProgress():
                self.screen.live(item)
            case LinkState(state="up"):
                if self._link in ("lost", "ended"):
                    self.say("connected again")
                self._link = "up"
                self.screen.reply.connected()
            case LinkState():
                if self._link == "up":
                    self.say(
                        "the connection to the daemon was lost; trying again (Ctrl-C twice leaves)",
                        "yellow",
                    )
                if self._link != "ended" and self._host.daemon_has_ended():
                    self.say(
                        "the daemon has ended: /up starts one that ends with this chat, Ctrl-D"
                        " leaves",
                        "yellow",
                    )
                    self._link = "ended"
                self._link = self._link if self._link == "ended" else "lost"
            case PalyraError():
                self.say(f"error: {clean(item.message)}", "red")
                self.over = isinstance(item, Unreachable)

    def _ask(self) -> None:
        """Put the next pending approval to the person, or take back one that was answered
        elsewhere.
        """
        pending = self.screen.pending
        if self._deciding and self._deciding.request.approval_id not in pending:
            self._deciding = None
        if self._deciding or self.terminal.input.in_use:
            return
        request = next(
            (each for each in pending.values() if each.approval_id not in self._left), None
        )
        if request is None:
            return
        self.screen.lines(
            entries.approval_lines(self._style, request, width=self.terminal.out.width)
        )
        self._deciding = ApprovalPrompt(request, hidden=entries.hides(request.preview))
        if not self._fits(self._deciding.prompt):
            self.screen.lines(
                entries.wrapped(
                    self._style, self._deciding.prompt.removesuffix(" > "), self.terminal.out.width
                )
            )
        self.terminal.forget_typed()

    def prompt(self) -> str:
        """Return what stands before the text that is being written: while a run works and nothing
        is written, how it stands.
        """
        if self._deciding:
            return self._style(self._short_prompt(self._deciding), "bold", "magenta")
        if self._waiting:
            return self._style(_WAITING, "dim")
        if self.terminal.input.in_use or not self.screen.busy:
            return self._style("> ", "bold", "blue")
        status = self.screen.status() if self._link == "up" else _WAITING
        return self._style(cut(status, self.terminal.out.width - 1), "dim")

    def _short_prompt(self, deciding: ApprovalPrompt) -> str:
        return deciding.prompt if self._fits(deciding.prompt) else "> "

    def _fits(self, prompt: str) -> bool:
        """Whether there is room for an answer behind the prompt."""
        return width_of(prompt) < self.terminal.out.width - 10

    def entered(self, text: str) -> None:
        self._interrupted_at = 0.0
        with self._told():
            self._enter(text)

    def interrupted(self) -> None:
        now = time.monotonic()
        if self._interrupted_at and now - self._interrupted_at < _TWICE_S:
            self.over = True
            return
        self._interrupted_at = now
        if not self.screen.working:
            self.say("Ctrl-C again leaves")
            return
        self.say("stopping; Ctrl-C again leaves")
        with self._told():
            self.stop()

    def ended(self) -> None:
        self.over = True

    def suspended(self) -> None:
        self.terminal.suspend()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what went wrong, and go on."""
        try:
            yield
        except PalyraError as error:
            self.say(f"error: {clean(error.message)}", "red")

    def stop(self) -> None:
        """Cancel every run of this session, those that wait first, so that ending one does not
        begin the next.
        """
        for run_id, _ in sorted(self.screen.working.items(), key=lambda item: item[1] != "queued"):
            self.api.cancel(run_id, reason="stopped in the chat")

    def _enter(self, text: str) -> None:
        if self._deciding and not text.startswith("/"):
            prompt = self._short_prompt(self._deciding)
            self.screen.lines(
                entries.wrapped(self._style, prompt + clean(text), self.terminal.out.width, "dim")
            )
            self._decide(self._deciding, text)
            return
        if not text.strip():
            return
        self.terminal.input.remember(text)
        self.screen.lines(entries.said_lines(self._style, text, self.terminal.out.width))
        if text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            command = self._commands.get(name)
            if command is None:
                self.say(f"there is no command /{clean(name)}: see /help", "yellow")
            else:
                command(self, rest.strip())
        else:
            self.send(text)

    def send(self, text: str, mode: InputMode = "followup") -> None:
        """Hand a message over, however long the daemon needs to come back; the id makes trying
        again safe.
        """
        submission_id = lookup.new_id()
        self.screen.mine.add(submission_id)
        self._listen()
        deadline = time.monotonic() + _SUBMIT_PATIENCE_S
        while True:
            try:
                submitted = lookup.submit(
                    self.api,
                    self.session.session_id,
                    text,
                    mode=mode,
                    model=self.model,
                    run_id=submission_id,
                    attachments=self.attached,
                )
                self.attached = []
                break
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
                if self._interrupted_while_waiting():
                    raise
        if self._link == "up":
            self.screen.reply.started(submitted.run_id)
        self.screen.working.setdefault(
            submitted.run_id, "queued" if submitted.outcome == "queued" else "working"
        )
        match submitted.outcome:
            case "queued":
                self.say(
                    "queued: it follows when the run has ended (/steer and /interrupt reach it now)"
                )
            case "joined":
                self.say("handed to the run")

    def _interrupted_while_waiting(self) -> bool:
        self._waiting = True
        try:
            return self.terminal.interrupted_within(_TRY_AGAIN_S)
        finally:
            self._waiting = False

    def _listen(self) -> None:
        """Be connected before speaking, if that takes no time: then no word of the answer can be
        missed.
        """
        self._show_held()
        deadline = time.monotonic() + _LISTEN_S
        while self._watcher and self._link == "" and time.monotonic() < deadline:
            if select.select([self._watcher.wakes], [], [], deadline - time.monotonic())[0]:
                self._held.extend(self._watcher.take())
                self._show_held()

    def _decide(self, deciding: ApprovalPrompt, text: str) -> None:
        step = deciding.enter(text)
        if isinstance(step, ViewRequested):
            step = viewed(self.api, deciding, self._style, lambda line: self.screen.lines([line]))
        if isinstance(step, EditRequested):
            try:
                step = deciding.edited(self._edited(deciding))
            except PalyraError as error:
                step = Say(error.message)
        match step:
            case ApprovalDecision():
                self._answer(deciding, step)
            case Say(text=said):
                if said:
                    self.say(clean(said))
            case Leave():
                self._left.add(deciding.request.approval_id)
                self._deciding = None
                self.say(
                    "the approval stays pending: `palyra chat` or `palyra approvals` answers it"
                )
                self.over = True

    def _edited(self, deciding: ApprovalPrompt) -> dict[str, object]:
        call_id = deciding.request.call_id
        known = self.screen.calls.get(call_id)
        arguments = (
            known.arguments
            if known
            else edit_arguments.proposed(self.api, self.session.session_id, call_id)
        )
        with self.terminal.lent():
            changed = edit_arguments.edit(arguments, self._host.env)
        self.screen.lines(entries.edited_lines(self._style, arguments, changed))
        return changed

    def _answer(self, deciding: ApprovalPrompt, step: ApprovalDecision) -> None:
        approval_id = deciding.request.approval_id
        self._deciding = None
        self._left.add(approval_id)
        try:
            send(self.api, approval_id, step)
        except PalyraError as error:
            if error.code != "conflict":
                # It was not answered: ask again.
                self._left.discard(approval_id)
            raise

    def start_daemon(self) -> None:
        """When the one we talked to belonged to somebody who left."""
        if self._link not in ("lost", "ended"):
            raise Conflict("the daemon runs already")
        self.say("starting the daemon; it ends with this chat")
        self._host.start_daemon()

    def ask_again(self) -> None:
        """Put approvals that were left pending back on the screen."""
        self._left.clear()
        self._deciding = None

    def forget_line(self) -> None:
        """Take the last line out of the history: it holds what must not be kept."""
        self.terminal.input.forget()

    def say(self, text: str, *styles: str) -> None:
        self.screen.lines(
            entries.wrapped(self._style, text, self.terminal.out.width, *(styles or ("dim",)))
        )

    @property
    def _style(self) -> Callable[..., str]:
        return self.terminal.out.style
