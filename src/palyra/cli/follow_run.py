"""One run from its question to its end. Its words appear as they come, on a terminal and in a pipe.

A pipe gets the model's own text and nothing else: no colours, no line breaks of ours but one behind
each reply. Everything else is said beside it, on standard error.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType

from palyra.cli import attachments, exit_codes, formatting, lookup
from palyra.cli.render import entries
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.render.reply import ReplyText, ToolCallLines
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.cli.terminal_approval import answer_at_terminal
from palyra.cli.wait_clock import WaitClock
from palyra.cli.waiting import WaitingClock, WaitingLine
from palyra.client.http import LinkState, StopSignal, decode
from palyra.client.types.sessions import Attaching, Session
from palyra.core import degenerate
from palyra.core.call_options import CallOptions
from palyra.core.errors import NotFound, PalyraError
from palyra.core.events import (
    AgentAnswered,
    AgentAsked,
    ApprovalRequested,
    ApprovalResolved,
    Decision,
    Entry,
    ModelDelta,
    ModelFailed,
    ModelReplied,
    RetryPlanned,
    RoutePlanned,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunWaiting,
    ToolFinished,
    ToolProposed,
)
from palyra.core.tools import Effect

_PATIENCE_S = 60.0
_ON_ITS_WAY_S = 2.0
_LOOK_S = 0.05


class RunFollower:
    def __init__(
        self, state: CliState, session: Session, approve: str, *, final: bool = False
    ) -> None:
        """`final`: print the final answer alone, when the run has ended."""
        self._state = state
        self._session = session
        self._approve = approve
        self._run_id = lookup.new_id()
        self._submitted = False
        self._style = partial(state.out.style, color=state.out.error_color)
        self._calls = ToolCallLines(lambda approval_id: lookup.answered_ms(state.api, approval_id))
        self._pending: dict[str, ApprovalRequested] = {}
        self._failures: set[str] = set()
        # What became of the calls that do more than look.
        self._effects: dict[str, Effect] = {}
        self._changed = self._denied = 0
        self._undoable = False
        out = state.out
        self._streams = not out.as_json and not final
        # Whether a person reads along: then lines are wrapped and Markdown is drawn.
        self._live = out.is_terminal and self._streams
        self._prose = Prose(out.style, lambda: out.width, markdown=out.color)
        self._reply = ReplyText(self._stream, self._restarted)
        self._midway = False
        self._waiting = WaitingClock()
        self._clock = WaitingLine(self._waiting, self._draw)
        self._streamed = ""
        # An answer that was cut off and is being continued, as far as it is printed.
        self._cut = ""
        self._attachments: list[Attaching] = []
        self._options: CallOptions | None = None
        self._provider_clock = WaitClock(
            state.api, self._run_id, self._style, attended=approve == "ask" and not out.as_json
        )

    def run(
        self,
        question: str,
        model: str,
        files: Sequence[str] = (),
        options: CallOptions | None = None,
    ) -> int:
        """Listen first, then ask: so no word of the answer can be missed."""
        self._attachments = [
            attachments.attaching(attachments.send(self._state.api, self._session.session_id, each))
            for each in files
        ]
        self._options = options
        stopped = StopSignal()
        if self._live and sys.stderr.isatty():
            self._clock.start()
        try:
            with _listening(stopped) as interrupted:
                return self._watch(question, model, stopped, interrupted)
        finally:
            self._provider_clock.hide()
            self._clock.end()

    def _draw(self, text: str) -> None:
        sys.stderr.write(self._style(text, "dim"))
        sys.stderr.flush()

    def _watch(
        self, question: str, model: str, stopped: StopSignal, interrupted: Callable[[], bool]
    ) -> int:
        api, lost = self._state.api, False
        head = lookup.head(api, self._session)
        for message in lookup.watch(
            api, self._session.session_id, head, stopped, patience_s=_PATIENCE_S
        ):
            item = decode(message)
            if interrupted():
                raise KeyboardInterrupt
            if isinstance(item, LinkState):
                if item.state == "lost" and not lost:
                    self._note("the connection was lost, trying again")
                lost = item.state == "lost"
                if not lost:
                    self._connected(question, model)
            elif isinstance(item, ModelDelta) and item.progress is not None:
                self._waiting.heard(item)
            elif (
                isinstance(item, ModelDelta)
                and item.run_id == self._run_id
                and item.text
                and self._streams
                and not self._cut
            ):
                self._waiting.end()
                (self._reply.so_far if item.whole else self._reply.piece)(
                    item.run_id, item.turn, item.text
                )
            elif isinstance(item, RetryPlanned) and item.run_id == self._run_id:
                self._provider_clock.show(item.cause, item.next_try_ms)
            elif isinstance(item, Entry) and item.run_id == self._run_id:
                code = self._follow(item)
                if code is not None:
                    stopped.stop()
                    return code
            if not lost:
                self._answer_pending()
        raise AssertionError("a watch has no end of its own")

    def _connected(self, question: str, model: str) -> None:
        self._reply.connected()
        if self._submitted:
            return
        self._submitted = True
        self._reply.started(self._run_id)
        lookup.submit(
            self._state.api,
            self._session.session_id,
            question,
            model=model,
            # Policy may be stricter where nobody is there to ask.
            attended=self._approve == "ask",
            run_id=self._run_id,
            attachments=self._attachments,
            options=self._options,
        )

    def cancel(self) -> None:
        """Stop the run, also if the question is still on its way and overtaken by this. What it has
        said is printed by now.
        """
        self._end_line()
        deadline = time.monotonic() + _ON_ITS_WAY_S
        while self._submitted:
            try:
                self._state.api.cancel(self._run_id, reason="interrupted on the command line")
                return
            except NotFound:
                if time.monotonic() > deadline:
                    return  # It never arrived.
                time.sleep(_LOOK_S)

    def _follow(self, entry: Entry) -> int | None:
        """One entry of the run; its exit code when it was the last."""
        event = entries.read(entry)
        self._calls.follow(entry, event)
        if isinstance(event, RunWaiting):
            self._waiting.end()
            self._clock.clear()
            self._end_line()
            self._provider_clock.show(event.cause, event.next_try_ms)
            return None
        self._provider_clock.hide()
        match event:
            case RunStarted() | RunResumed():
                self._waiting.begin()
            case RoutePlanned(provider=provider, model=model):
                self._waiting.asked(f"{provider}/{model}")
            case ToolProposed(call_id=call_id, effect=effect):
                self._effects[call_id] = effect
            case ToolFinished():
                self._finished(event)
            case ModelReplied():
                self._waiting.end()
                self._replied(entry, event)
            case ModelFailed():
                self._failed(event)
            case ApprovalRequested():
                self._pending[event.approval_id] = event
            case ApprovalResolved():
                self._pending.pop(event.approval_id, None)
            case AgentAsked(request=request):
                self._pending[request.approval_id] = request
            case AgentAnswered(answer=answer):
                self._pending.pop(answer.approval_id, None)
            case RunCompleted():
                return self._end("done", event.text, "")
            case RunFailed():
                return self._end(
                    "failed", "", formatting.without_noise(event.message), event.reason
                )
            case RunCancelled():
                return self._end("cancelled", "", event.reason)
        return None

    def _finished(self, event: ToolFinished) -> None:
        effect = self._effects.get(event.call_id, "pure")
        if effect != "pure":
            self._denied += event.outcome == "denied"
            self._changed += event.outcome == "ok"
        self._undoable |= effect == "reversible" and event.outcome == "ok"
        for line in self._calls.lines(self._style, event):
            self._say(line)
        self._waiting.begin()

    def _replied(self, entry: Entry, event: ModelReplied) -> None:
        if self._streams:
            if self._cut:
                # A continuation may say again what was said: it is printed when that is known.
                whole = degenerate.join([self._cut, event.text])
                self._stream(whole.removeprefix(self._cut))
            else:
                whole = event.text
                self._reply.finished(entry.run_id, event.turn, whole)
            self._streamed = whole
            self._cut = whole if event.stop in degenerate.CUT_OFF and not event.calls else ""
            if not self._cut:
                self._end_line()
        elif event.calls and event.text:
            self._note(one_line(event.text, 200))

    def _failed(self, event: ModelFailed) -> None:
        """Each different failure once; the last one is said where the run ends."""
        self._reply.began_again()
        if not event.will_retry:
            return
        self._waiting.begin()
        said = f"{one_line(event.provider)}: {event.failure}: {formatting.failure(event.message)}"
        if said not in self._failures:
            self._failures.add(said)
            self._note(f"{said}; the next try is in {formatting.duration(event.wait_ms)}")

    def _answer_pending(self) -> None:
        for approval_id, request in list(self._pending.items()):
            del self._pending[approval_id]
            try:
                if self._approve == "ask":
                    self._end_line()
                    answer_at_terminal(self._state, self._session.session_id, request)
                else:
                    self._deny(request)
            except PalyraError as error:
                if error.code != "conflict":
                    raise
                self._note(error.message)

    def _deny(self, request: ApprovalRequested) -> None:
        what = one_line(request.preview.title, 200)
        self._note(f"denied, because there is no terminal to approve it on: {what}")
        decision: Decision = "skip" if request.about == "in_doubt" else "deny"
        reason = (
            ""
            if decision == "skip"
            else "it needs approval, and nobody can be asked; say what you would have done"
        )
        self._state.api.answer(request.approval_id, decision=decision, reason=reason)

    def _end(self, state: str, text: str, message: str, reason: str = "") -> int:
        refused = state == "done" and self._denied > 0 and not self._changed
        code = exit_codes.OK if state == "done" and not refused else exit_codes.FAILED
        if self._cut and text.startswith(self._cut):
            self._stream(text.removeprefix(self._cut))
            self._streamed = text
        self._end_line()
        if self._state.as_json:
            shown = {
                "state": state,
                "text": text,
                "session_id": self._session.session_id,
                "run_id": self._run_id,
            }
            shown |= {"message": message, "reason": reason} if state != "done" else {}
            self._state.out.json(shown | ({"denied": self._denied} if self._denied else {}))
        elif state != "done":
            self._say(self._style(f"error: {state}: {clean(message)}", "red"))
        elif not self._streams or text != self._streamed:
            self._print((self._prose.whole(text) if self._live else text) + "\n")
        self._advise(refused=refused)
        return code

    def _advise(self, *, refused: bool) -> None:
        if refused:
            session_id = self._session.session_id
            self._note(
                "nothing was changed, because every change was denied: approve it in `palyra chat"
                f" --session {session_id}`, or write a rule that allows it (see `palyra policy`)"
            )
        elif self._undoable:
            self._note("`palyra undo` undoes the newest change")

    def _stream(self, text: str) -> None:
        shown = self._prose.feed(text) if self._live else text
        if shown:
            self._print(shown)
            self._midway = not shown.endswith("\n")

    def _print(self, text: str) -> None:
        self._clock.clear()
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader left, as `head` does. The run goes on: it was asked to do something, not
            # only to say it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _end_line(self) -> None:
        """End the line that the reply is at."""
        rest = self._prose.end() if self._live else ""
        self._midway = not rest.endswith("\n") if rest else self._midway
        if rest or self._midway:
            self._print(rest + ("\n" if self._midway else ""))
        self._midway = False

    def _restarted(self, text: str) -> None:
        self._end_line()
        self._note(text)

    def _note(self, text: str) -> None:
        self._say(self._style(text, "dim"))

    def _say(self, text: str) -> None:
        if self._live:
            # Nothing may stand in the middle of a line of the answer. A pipe does not see this.
            self._end_line()
        self._clock.clear()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


@contextmanager
def _listening(stopped: StopSignal) -> Iterator[Callable[[], bool]]:
    """Listen for Ctrl-C; what is given says whether it came.

    The exception alone can get lost, in the middle of an import for one: then the connection that
    is cut makes us look.
    """
    came = False

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        stopped.cut()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGINT, before)
