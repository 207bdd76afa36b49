"""A session on the screen: entries and live events become lines, and what the chat must know about them is kept beside."""

from collections.abc import Callable

from palyra.cli import entry_lines, words
from palyra.cli.reply import ReplyText
from palyra.cli.safe_text import clean, one_line
from palyra.cli.terminal import Terminal
from palyra.domain.events import (
    ApprovalRequested,
    ApprovalResolved,
    Call,
    Entry,
    InputReceived,
    LiveEvent,
    ModelDelta,
    ModelFailed,
    ModelReplied,
    RunAccepted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    SessionBranched,
    SessionReset,
    ToolFinished,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    ToolUndone,
)


class Screen:
    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.reply = ReplyText(self._say_reply, lambda text: self._dim(text))
        self.unfolded = False
        self.clear()

    def clear(self) -> None:
        """Forget a session, for another one."""
        self.seq = 0
        self.working: dict[str, str] = {}
        self.pending: dict[str, ApprovalRequested] = {}
        self.calls: dict[str, Call] = {}
        self.mine: set[str] = set()
        self._thought = 0
        self._folded = False
        self._tail = ""
        self._doing = ""
        self.reply.connected()

    # --- what the chat asks ---------------------------------------------------------------------------------------------

    @property
    def busy(self) -> str:
        """The run that works or waits now, if there is one."""
        return next((run_id for run_id, state in self.working.items() if state != "queued"), "")

    def status(self) -> str:
        if not self.busy:
            return ""
        queued = sum(state == "queued" for state in self.working.values())
        more = f" · {queued} queued" if queued else ""
        if self._doing:
            return f"⚙ {self._doing}{more}"
        return f"∴ {one_line(self._tail)[-60:]}" if self._tail else f"… working · Ctrl-C stops · type to add{more}"

    # --- entries --------------------------------------------------------------------------------------------------------

    def past(self, entry: Entry) -> None:
        """An entry from before: only what was said and how it ended."""
        self.seq = max(self.seq, entry.seq)
        event = entry_lines.read(entry)
        match event:
            case InputReceived():
                self.terminal.line(self._style("> ", "bold", "blue") + self._style(clean(event.text), "dim"))
            case RunCompleted(text=text) if text:
                self.terminal.line(self._style(clean(text), "dim"))
            case RunFailed() | RunCancelled() | SessionReset() | SessionBranched() | ToolUndone():
                self._ends(event)
            case ToolProposed():
                self._proposed(event)
            case _:
                pass

    def show(self, entry: Entry) -> None:
        self.seq = max(self.seq, entry.seq)
        event = entry_lines.read(entry)
        match event:
            case RunAccepted():
                self.working.setdefault(entry.run_id, "queued")
            case RunStarted():
                self.working[entry.run_id] = "working"
            case RunResumed():
                self.working[entry.run_id] = "working"
                if event.after == "crash":
                    self.reply.began_again()
                    self._dim("the daemon was restarted; the run goes on where it was")
            case InputReceived() if event.submission_id not in self.mine:
                self.terminal.line(self._style("> ", "bold", "blue") + clean(event.text))
            case ModelReplied():
                self._replied(entry.run_id, event)
            case ModelFailed():
                self.reply.began_again()
                again = f"; trying again in {words.duration(event.wait_ms)}" if event.will_retry else ""
                self._dim(f"{one_line(event.provider)}: {event.failure}: {one_line(event.message, 200)}{again}")
            case ToolProposed():
                self._proposed(event)
            case ToolStarted():
                call = self.calls.get(event.call_id)
                self._doing = f"{call.tool} {words.about(call.arguments)}" if call else "working"
            case ToolFinished():
                self._finished(event)
            case ApprovalRequested():
                self.working[entry.run_id] = "waiting"
                self.pending[event.approval_id] = event
            case ApprovalResolved():
                self._resolved(event)
            case RunCompleted() | RunFailed() | RunCancelled():
                self.working.pop(entry.run_id, None)
                self._doing = self._tail = ""
                self._ends(event)
            case SessionReset() | SessionBranched() | ToolUndone():
                self._ends(event)
            case _:
                pass

    def live(self, event: LiveEvent) -> None:
        match event:
            case ModelDelta():
                if event.reasoning:
                    self._reasoning(event.reasoning)
                if event.text:
                    self._fold()
                    self.reply.piece(event.run_id, event.turn, event.text)
                if event.call:
                    self._tail = ""
            case ToolProgress():
                call = self.calls.get(event.call_id)
                self._doing = f"{call.tool if call else 'tool'} {one_line(event.text, 60)}"

    # --- pieces ---------------------------------------------------------------------------------------------------------

    def _proposed(self, event: ToolProposed) -> None:
        self.calls[event.call_id] = Call(event.call_id, event.tool, event.arguments)

    def _replied(self, run_id: str, event: ModelReplied) -> None:
        for call in event.calls:
            self.calls.setdefault(call.id, call)
        self._thought = self._thought or len(event.reasoning.split())
        self._fold()
        self.reply.finished(run_id, event.turn, event.text)
        self._thought, self._folded = 0, False
        self.terminal.end_line()

    def _finished(self, event: ToolFinished) -> None:
        self._doing = ""
        call = self.calls.get(event.call_id)
        for line in entry_lines.tool_lines(self._style, call.tool if call else "tool", call.arguments if call else {}, event):
            self.terminal.line(line)

    def _resolved(self, event: ApprovalResolved) -> None:
        request = self.pending.pop(event.approval_id, None)
        if request is None:
            return
        where = f" ({one_line(event.surface)})" if event.surface else ""
        reason = f": {one_line(event.reason, 200)}" if event.reason else ""
        scope = f" for {event.scope}" if event.scope != "once" else ""
        self._dim(f"{clean(request.tool)}: {event.decision}{scope}{where}{reason}")

    def _ends(self, event: RunCompleted | RunFailed | RunCancelled | SessionReset | SessionBranched | ToolUndone) -> None:
        match event:
            case RunFailed():
                self.terminal.line(self._style(f"failed: {clean(event.message)}", "red") + self._style(f" ({event.reason})", "dim"))
            case RunCancelled():
                self.terminal.line(self._style(f"stopped: {one_line(event.reason, 200)}", "yellow"))
            case SessionReset():
                self._dim("the session was reset: the conversation starts empty")
            case SessionBranched(child=child):
                self._dim(f"branched at {event.parent_seq} into {child}")
            case ToolUndone() if event.why == "undo":
                self.terminal.line(self._style("undone:", "cyan"))
                for line in entry_lines.change_lines(self._style, event.changes):
                    self.terminal.line(line)
            case _:
                pass

    def _reasoning(self, text: str) -> None:
        self._thought += len(text.split())
        if self.unfolded:
            self.terminal.say(self._style(clean(text), "dim"))
        else:
            self._tail = (self._tail + text)[-200:]

    def _fold(self) -> None:
        """The reasoning is over: one line stays of it."""
        if self._thought and not self._folded:
            self.terminal.end_line()
            if not self.unfolded:
                self._dim(f"∴ thought, {self._thought} words")
        self._folded = self._thought > 0
        self._tail = ""

    def _say_reply(self, text: str) -> None:
        self.terminal.say(clean(text))

    def _dim(self, text: str) -> None:
        self.terminal.line(self._style(text, "dim"))

    @property
    def _style(self) -> Callable[..., str]:
        return self.terminal.out.style
