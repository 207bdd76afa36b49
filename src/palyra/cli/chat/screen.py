"""A session on the screen: entries and live events become lines, and what the chat must know about
them is kept beside.
"""

import time
from collections.abc import Callable

from palyra.cli import compactions, formatting
from palyra.cli.chat.status_line import SessionMeter
from palyra.cli.chat.terminal import Terminal
from palyra.cli.render import corrections, entries
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.render.reply import ReplyText, ToolCallLines
from palyra.cli.safe_text import clean, one_line
from palyra.cli.waiting import WaitingClock
from palyra.core import plans, wait_words
from palyra.core.events import (
    AgentAnswered,
    AgentAsked,
    AgentSpawned,
    AnswerRefused,
    ApprovalRequested,
    ApprovalResolved,
    Entry,
    InputAssembled,
    InputReceived,
    LiveEvent,
    ModelDelta,
    ModelFailed,
    ModelReplied,
    PlanDeclared,
    RetryPlanned,
    RoutePlanned,
    RunAccepted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    SessionBranched,
    SessionCompacted,
    SessionReset,
    SessionRestored,
    SessionUncompacted,
    ToolFinished,
    ToolHandedOver,
    ToolProgress,
    ToolStarted,
    ToolUndone,
)


class Screen:
    """`answered_ms` is asked when an approval was answered that lies on another tape."""

    def __init__(
        self, terminal: Terminal, answered_ms: Callable[[str], int] = lambda approval_id: 0
    ) -> None:
        self.terminal = terminal
        self.reply = ReplyText(self._say_reply, self._remark)
        self.unfolded = False
        # The model that answers next here, and the one that is being asked.
        self.model = ""
        self.meter = SessionMeter()
        self._answered_ms = answered_ms
        self._words = self._prose()
        self._thoughts = Prose(
            self._style, lambda: terminal.out.width, base=("dim",), markdown=False
        )
        self.clear()

    def _prose(self, *base: str) -> Prose:
        out = self.terminal.out
        return Prose(self._style, lambda: out.width, base=base, markdown=out.color)

    def clear(self) -> None:
        """Forget a session, for another one."""
        self.seq = 0
        self.working: dict[str, str] = {}
        self.pending: dict[str, ApprovalRequested] = {}
        # The runs that approvals belong to.
        self.asked_by: dict[str, str] = {}
        self.calls = ToolCallLines(self._answered_ms)
        self.mine: set[str] = set()
        self._tail = ""
        # Failures that were shown, and when the model is asked again, if it is.
        self._failures: set[tuple[str, str]] = set()
        self._retry = ("", 0)
        # The run that waits for its provider, with what it waits for and when that is asked next.
        self.waiting_run = ""
        self._wait = ("", 0)
        self._doing = ""
        self._waiting = WaitingClock()
        self.reply.connected()

    @property
    def busy(self) -> str:
        """The run that works or waits now, if there is one."""
        return next((run_id for run_id, state in self.working.items() if state != "queued"), "")

    @property
    def counting(self) -> bool:
        """Return whether the status changes by itself as time goes by."""
        counting = self.meter.counting or self._retry[1] or self.waiting_run
        return bool(self.busy and counting)

    def status(self) -> str:
        if not self.busy:
            return ""
        queued = sum(state == "queued" for state in self.working.values())
        more = f" · {queued} queued" if queued else ""
        if self.waiting_run:
            cause, next_ms = self._wait
            left_ms = next_ms - int(time.time() * 1000)
            when = f"next try in {wait_words.span(left_ms)}" if left_ms > 0 else "trying again"
            return f"… {cause}; {when}. /model switches · /retry tries now · Ctrl-C cancels{more}"
        who, at_ms = self._retry
        if at_ms:
            left = max(0, at_ms - int(time.time() * 1000))
            return (
                f"… retrying {who} in {-(-left // 1000)} s · Ctrl-C stops{more}"
                if left
                else f"… retrying {who}{more}"
            )
        if self._doing:
            return f"⚙ {self._doing}{more}"
        return (
            f"∴ {one_line(self._tail)[-60:]}"
            if self._tail
            else f"… {self._waiting.words(self.model)} · Ctrl-C stops · type to add{more}"
        )

    def past(self, entry: Entry) -> list[str]:
        """An entry from before, as lines: only what was said and how it ended."""
        self.seq = max(self.seq, entry.seq)
        event = entries.read(entry)
        self.calls.follow(entry, event)
        match event:
            case InputReceived():
                said = entries.said_lines(
                    self._style, entries.said(event), self.terminal.out.width, "dim"
                )
                return ["", *said, ""]
            case RunCompleted(text=text) if text:
                return self._prose("dim").whole(text).rstrip("\n").split("\n")
            case (
                ModelReplied(stop="interrupted", text=text)
                | ModelFailed(will_retry=False, text=text)
            ) if text:
                # What was shown of it before it was broken off: it has no end that would be shown
                # instead.
                return [
                    *self._prose("dim").whole(text).rstrip("\n").split("\n"),
                    self._style("(incomplete)", "yellow"),
                ]
            case (
                RunFailed()
                | RunCancelled()
                | SessionReset()
                | SessionBranched()
                | SessionRestored()
                | ToolUndone()
            ):
                return self._ends(event)
            case SessionCompacted() | SessionUncompacted():
                return self._condensed(event)
            case _:
                return []

    def show(self, entry: Entry) -> None:
        self.seq = max(self.seq, entry.seq)
        event = entries.read(entry)
        self.calls.follow(entry, event)
        match event:
            case RunAccepted():
                self.working.setdefault(entry.run_id, "queued")
            case RunStarted():
                self.working[entry.run_id] = "working"
                self._waiting.begin()
                self.meter.began()
            case InputAssembled():
                self.meter.assembled(event)
            case RoutePlanned(provider=provider, model=model):
                self._waiting.asked(f"{provider}/{model}")
            case RunWaiting():
                self._waits(entry.run_id, event)
            case RunResumed():
                self.working[entry.run_id] = "working"
                self.waiting_run = ""
                self._waiting.begin()
                self.meter.resumed()
                if event.after == "crash":
                    self.reply.began_again()
                    self._dim("Palyra was restarted; the run continues where it was")
            case InputReceived() if event.submission_id not in self.mine:
                self.terminal.gap()
                self.lines(
                    entries.said_lines(self._style, entries.said(event), self.terminal.out.width)
                )
                self.terminal.gap()
            case ModelReplied():
                self.meter.replied(event)
                self._replied(entry.run_id, event)
            case ModelFailed():
                self._failed(entry, event)
            case ToolStarted():
                call = self.calls.get(event.call_id)
                self._doing = (
                    f"{call.tool} {formatting.about(call.arguments)}" if call else "working"
                )
            case ToolFinished():
                self._finished(event)
            case ApprovalRequested():
                self.working[entry.run_id] = "waiting"
                self.pending[event.approval_id] = event
                self.asked_by[event.approval_id] = entry.run_id
                self.meter.paused()
            case ApprovalResolved():
                self._resolved(event)
            case AgentSpawned():
                self.working[entry.run_id] = "waiting"
                self._dim(f"a subagent works on it: palyra sessions show {event.session_id}")
            case ToolHandedOver():
                self.working[entry.run_id] = "waiting"
                self._dim("the program that asked does the rest of these calls itself")
            case AnswerRefused(flaw=flaw):
                self._dim(corrections.SAID[flaw])
            case PlanDeclared(calls=calls) if calls:
                self._dim(f"plan: {plans.words(calls)}")
            case AgentAsked():
                self.pending[event.request.approval_id] = event.request
            case AgentAnswered():
                self._resolved(event.answer)
            case RunCompleted() | RunFailed() | RunCancelled():
                self.working.pop(entry.run_id, None)
                self.meter.paused()
                self._doing = self._tail = self.waiting_run = ""
                self._waiting.end()
                self._retry = ("", 0)
                self.terminal.finish()
                self.lines(self._ends(event))
                self.terminal.gap()
            case SessionReset() | SessionBranched() | SessionRestored() | ToolUndone():
                self.lines(self._ends(event))
            case SessionCompacted() | SessionUncompacted():
                self.terminal.finish()
                self.lines(self._condensed(event))
            case _:
                pass

    def live(self, event: LiveEvent) -> None:
        match event:
            case ModelDelta():
                self._retry = ("", 0)
                self._waiting.heard(event)
                if event.reasoning and not (event.whole and self.unfolded):
                    self._reasoning(event.reasoning)
                if event.text:
                    self._tail = ""
                    (self.reply.so_far if event.whole else self.reply.piece)(
                        event.run_id, event.turn, event.text
                    )
                if event.call:
                    self._tail = ""
            case RetryPlanned(run_id=run_id) if run_id == self.waiting_run:
                self._wait = (wait_words.cause(event.cause), event.next_try_ms)
            case ToolProgress():
                call = self.calls.get(event.call_id)
                self._doing = f"{call.tool if call else 'tool'} {one_line(event.text, 60)}"

    def _replied(self, run_id: str, event: ModelReplied) -> None:
        self._tail, self._retry = "", ("", 0)
        self.reply.finished(run_id, event.turn, event.text)
        self.terminal.finish()
        self.terminal.end_line()

    def _failed(self, entry: Entry, event: ModelFailed) -> None:
        """One line for each different failure; how long it takes until the next try is said in the
        changing line.
        """
        self.reply.began_again()
        self.terminal.finish()
        said = f"{one_line(event.provider)}: {event.failure}: {formatting.failure(event.message)}"
        if (entry.run_id, said) not in self._failures:
            self._failures.add((entry.run_id, said))
            self._dim(said)
        self._waiting.begin()
        self._retry = (
            (one_line(event.provider), entry.time_ms + event.wait_ms)
            if event.will_retry
            else ("", 0)
        )

    def _waits(self, run_id: str, event: RunWaiting) -> None:
        """One line when the wait begins; the rest is in the line that changes."""
        self.terminal.finish()
        self.working[run_id] = "waiting"
        if not self.waiting_run and event.attempt == 1:
            self._dim(f"{wait_words.cause(event.cause)}: the run waits and retries by itself")
        self.waiting_run, self._retry = run_id, ("", 0)
        self._wait = (wait_words.cause(event.cause), event.next_try_ms)

    def _finished(self, event: ToolFinished) -> None:
        self._doing = ""
        self._waiting.begin()
        self.lines(self.calls.lines(self._style, event))

    def lines(self, lines: list[str]) -> None:
        for line in lines:
            self.terminal.line(line)

    def _resolved(self, event: ApprovalResolved) -> None:
        request = self.pending.pop(event.approval_id, None)
        if request is None:
            return
        where = f" ({one_line(event.surface.removeprefix('api:'))})" if event.surface else ""
        reason = f": {one_line(event.reason, 200)}" if event.reason else ""
        scope = {
            "session": " for this session",
            "timed": " for a time",
            "always": " from now on",
        }.get(event.scope, "")
        scope += ", with edited arguments" if event.arguments is not None else ""
        said = {"allow": "allowed", "deny": "denied"}.get(event.decision, event.decision)
        self._dim(f"{clean(request.tool)}: {said}{scope}{where}{reason}")

    def _ends(
        self,
        event: (
            RunCompleted
            | RunFailed
            | RunCancelled
            | SessionReset
            | SessionBranched
            | SessionRestored
            | ToolUndone
        ),
    ) -> list[str]:
        match event:
            case RunFailed():
                said = clean(formatting.without_noise(event.message))
                return entries.wrapped(
                    self._style, f"failed: {said} ({event.reason})", self.terminal.out.width, "red"
                )
            case RunCancelled():
                return [self._style(f"stopped: {one_line(event.reason, 200)}", "yellow")]
            case SessionReset():
                return [self._style("the session was reset: the conversation starts empty", "dim")]
            case SessionRestored():
                what = " and ".join(
                    filter(None, ("files" * event.files, "conversation" * event.conversation))
                )
                said = self._style(f"rewound to entry {event.to_seq}: {what}", "cyan")
                return [said, *entries.change_lines(self._style, event.changes)]
            case SessionBranched(child=child):
                return [self._style(f"branched at {event.parent_seq} into {child}", "dim")]
            case ToolUndone() if event.why == "undo":
                return [
                    self._style("undone:", "cyan"),
                    *entries.change_lines(self._style, event.changes),
                ]
            case _:
                return []

    def _condensed(self, event: SessionCompacted | SessionUncompacted) -> list[str]:
        return entries.wrapped(
            self._style, compactions.notice(event), self.terminal.out.width, "dim"
        )

    def _reasoning(self, text: str) -> None:
        if self.unfolded:
            self.terminal.speak(self._thoughts, text)
        else:
            self._tail = (self._tail + text)[-200:]

    def _say_reply(self, text: str) -> None:
        if text:
            self.terminal.speak(self._words, text)

    def _remark(self, text: str) -> None:
        self.terminal.finish()
        self._dim(text)

    def _dim(self, text: str) -> None:
        self.lines(entries.wrapped(self._style, text, self.terminal.out.width, "dim"))

    @property
    def _style(self) -> Callable[..., str]:
        return self.terminal.out.style
