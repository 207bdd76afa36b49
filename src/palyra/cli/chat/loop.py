"""The chat: waits for keys and for events at once, and lets neither get in the other's way.

What comes in is shown above the line that is being written. An approval is only ever answered by
keys typed after it was shown, so none is asked while there is something in the line.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Literal, Protocol

from palyra.cli import lookup, notes_hint
from palyra.cli.chat.approval_cards import ApprovalCards
from palyra.cli.chat.screen import Screen
from palyra.cli.chat.status_line import SessionMeter
from palyra.cli.chat.terminal import Terminal
from palyra.cli.chat.watcher import Item, Watcher
from palyra.cli.render import entries
from palyra.cli.safe_text import clean, cut
from palyra.client import Client
from palyra.client.discovery import Unreachable
from palyra.client.http import LinkState
from palyra.client.types.sessions import Attaching, Session
from palyra.core.errors import Conflict, InvalidInput, PalyraError
from palyra.core.events import (
    Entry,
    InputMode,
    ModelDelta,
    RetryPlanned,
    ToolProgress,
)

_TWICE_S = 2.0
_SUBMIT_PATIENCE_S = 20.0
_TRY_AGAIN_S = 0.2
_LISTEN_S = 2.0
_LOOK_BACK = 200
_TURNS_SHOWN = 4
_LINES_SHOWN = 40
_SECOND_S = 1.0
_WAITING = "… waiting for the daemon"
# Does what it is told word for word; it is always there.
BUILT_IN = "demo/demo-1"

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
        # Files that go with what is said next.
        self.attached: list[Attaching] = []
        self.session: Session
        self._host = host
        self._commands = commands
        self._watcher: Watcher | None = None
        self._held: deque[Item] = deque()
        self.cards = ApprovalCards(self, host.env)
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
        self.cards.clear()
        self.terminal.line(
            self._style(clean(session.title) or "New session", "bold")
            + self._style(f"  session {session.session_id}", "dim")
        )
        self.screen.model = self._model_of(session)
        self._begin_status(session)
        where = clean(session.workspace) or "no folder"
        self.say(f"in {where} · {clean(self.screen.model)} · /help for commands")
        if waiting := notes_hint.hint(self.api, session.session_id):
            self.say(waiting, "yellow")
        self._show_past()
        self._watcher = Watcher(self.api, session.session_id, self.screen.seq)
        self.terminal.watch(self._watcher.wakes, self._heard)

    def _begin_status(self, session: Session) -> None:
        used = self.api.usage(by="session", session_id=session.session_id).total
        status = self.api.status()
        self.screen.meter = SessionMeter(
            preset=status.policy.preset,
            workspace=session.workspace,
            tokens=used.input_tokens + used.output_tokens,
            cost_microusd=used.cost_microusd,
        )

    def _model_of(self, session: Session) -> str:
        """The model that answers next here: the session's own, or the default one."""
        known = self.api.list_models().models
        if session.model in [each.name for each in known]:
            return session.model
        return next((each.name for each in known if each.default), "no model")

    def use_model(self, name: str) -> None:
        """Use another model from the next message on; empty: the default one."""
        self.session = self.api.change_session(self.session.session_id, model=name)
        self.screen.model = self._model_of(self.session)

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
        if past:
            self.screen.lines(past[-_LINES_SHOWN:])
            self.terminal.gap()
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
        self.cards.take_key()
        self._show_held()
        if self.over:
            self.terminal.leave()
            return
        self.cards.ask()
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
            case ModelDelta() | ToolProgress() | RetryPlanned():
                self.screen.live(item)
            case LinkState(state="up"):
                if self._link in ("lost", "ended"):
                    self.say("Reconnected")
                self._link = "up"
                self.screen.reply.connected()
            case LinkState():
                if self._link == "up":
                    self.say(
                        "Connection lost; reconnecting (Ctrl-C twice leaves)",
                        "yellow",
                    )
                if self._link != "ended" and self._host.daemon_has_ended():
                    self.say(
                        "Palyra has stopped: /up restarts it for this chat, Ctrl-D leaves",
                        "yellow",
                    )
                    self._link = "ended"
                self._link = self._link if self._link == "ended" else "lost"
            case PalyraError():
                self.say(f"error: {clean(item.message)}", "red")
                self.over = isinstance(item, Unreachable)

    def status_line(self) -> str:
        """Return what stands below the line: who answers, where, and what it has used."""
        said = self.screen.meter.words(self.screen.model, self.terminal.out.width - 1)
        return self._style(said, "dim")

    def prompt(self) -> str:
        """Return what stands before the text that is being written: while a run works and nothing
        is written, how it stands.
        """
        if self.cards.deciding:
            return self._style(self.cards.prompt, "bold", "magenta")
        if self._waiting:
            return self._style(_WAITING, "dim")
        if self.terminal.input.in_use or not self.screen.busy:
            return self._style(entries.SAYS, "bold", "blue")
        status = self.screen.status() if self._link == "up" else _WAITING
        return self._style(cut(status, self.terminal.out.width - 1), "dim")

    def entered(self, text: str) -> None:
        self._interrupted_at = 0.0
        with self.told():
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
        with self.told():
            self.stop()

    def ended(self) -> None:
        self.over = True

    def suspended(self) -> None:
        self.terminal.suspend()

    @contextmanager
    def told(self) -> Iterator[None]:
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
        if self.cards.deciding and not text.startswith("/"):
            self.cards.enter(text)
            return
        if not text.strip():
            return
        self.terminal.input.remember(text)
        self.terminal.gap()
        self.screen.lines(entries.said_lines(self._style, text, self.terminal.out.width))
        if text.startswith("!"):
            self.run_command(text[1:].strip())
        elif text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            command = self._commands.get(name)
            if command is None:
                near = get_close_matches(name, self._commands, 1)
                meant = f": did you mean /{near[0]}?" if near else ": /help lists the commands"
                self.say(f"there is no command /{clean(name)}{meant}", "yellow")
            else:
                command(self, rest.strip())
        else:
            self.terminal.gap()
            self.send(text)

    def run_command(self, command: str) -> None:
        """Run a command of the person's own: by the same tool, policy and record as the agent's,
        and as a part of the conversation. The built-in model does nothing but call the tool.
        """
        if not command:
            raise InvalidInput("which command? for example: !git status")
        self.cards.typed[self.send(f"!{command}", model=BUILT_IN)] = command

    def send(self, text: str, mode: InputMode = "followup", *, model: str = "") -> str:
        """Hand a message over, however long the daemon needs to come back; the id makes trying
        again safe. Return the id of its run.
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
                    model=model,
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
        return submitted.run_id

    def _interrupted_while_waiting(self) -> bool:
        self._waiting = True
        try:
            return self.terminal.interrupted_within(_TRY_AGAIN_S)
        finally:
            self._waiting = False

    def _listen(self) -> None:
        """Connect before speaking if that takes no time: then no word of the answer is missed."""
        self._show_held()
        deadline = time.monotonic() + _LISTEN_S
        while self._watcher and self._link == "" and time.monotonic() < deadline:
            if select.select([self._watcher.wakes], [], [], deadline - time.monotonic())[0]:
                self._held.extend(self._watcher.take())
                self._show_held()

    def start_daemon(self) -> None:
        """Start a daemon when the one we talked to belonged to somebody who left."""
        if self._link not in ("lost", "ended"):
            raise Conflict("the daemon runs already")
        self.say("starting the daemon; it ends with this chat")
        self._host.start_daemon()

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
