"""The terminal of a chat: output scrolls up, and the line being written stays below it.

prompt-toolkit reads the keys and draws the line. Output is written 20 times a second at most,
however fast it arrives, because the line is erased and drawn again each time. The terminal is
restored on every exit.
"""

import asyncio
import os
import re
import select
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from palyra.cli.chat.input_line import InputLine, InputListener
from palyra.cli.output import Output
from palyra.cli.render.markdown_stream import Prose

_WRITE_EVERY_S = 0.05
# Rows shown of an output line that has not ended yet. All of it is written once it ends.
_TAIL_ROWS = 5
_MOST_READS = 256
# Characters in one read that no person types: a paste on a terminal that does not mark pastes.
_PASTE = 32
# The menu in the terminal's own colours.
_STYLE = Style.from_dict(
    {
        "completion-menu": "bg:default noreverse",
        "completion-menu.completion": "bg:default fg:default",
        "completion-menu.completion.current": "bg:default fg:ansiblue bold noreverse",
        "completion-menu.meta.completion": "bg:default fg:ansibrightblack",
        "completion-menu.meta.completion.current": "bg:default fg:default",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:default",
    }
)
_SEQUENCE = re.compile(r"^[\d;]*m|\x1b\[[\d;]*m?")


class Terminal:
    def __init__(self, out: Output, line: InputLine) -> None:
        self.out = out
        self.input = line
        self._app: Application[None] | None = None
        # Output that is not written yet: whole lines, and one that goes on; and what is shown of
        # that one.
        self._said: list[str] = []
        self._tail = ""
        self._speaking: Prose | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._written_at = 0.0
        self._settling = False
        # Whether the last line that was said is empty.
        self._gap = False

    def run(self, listener: InputListener, begin: Callable[[], None]) -> None:
        """Read messages until `leave` is called. Call `begin` first, when keys are no longer
        echoed.
        """
        try:
            asyncio.run(self._run(listener, begin))
        except EOFError:
            # The terminal went away: the same as Ctrl-D.
            pass
        finally:
            self._app = None
            self.end_line()
            self._write()

    async def _run(self, listener: InputListener, begin: Callable[[], None]) -> None:
        app = self._app = self._application(listener)
        asyncio.get_running_loop().set_exception_handler(self._failed)
        app.key_processor.after_key_press += lambda _: self._settle_soon(listener)

        def start() -> None:
            begin()
            listener.settle()
            self._write()

        with app.input.raw_mode(), _erased(app):
            await app.run_async(pre_run=start, handle_sigint=False, set_exception_handler=False)

    def _application(self, listener: InputListener) -> Application[None]:
        tail = Window(
            FormattedTextControl(lambda: ANSI(self._tail)), wrap_lines=True, dont_extend_height=True
        )
        shown = ConditionalContainer(tail, Condition(lambda: bool(self._tail)))
        # Some terminals never answer a request for the cursor's position, and Palyra does not need
        # it.
        output = Vt100_Output(sys.stdout, self._size, os.environ.get("TERM"), enable_cpr=False)
        status = Window(
            FormattedTextControl(lambda: ANSI(listener.status_line())),
            height=1,
            always_hide_cursor=True,
        )
        below = ConditionalContainer(
            status, Condition(lambda: bool(listener.status_line()) and not self.input.menu_is_open)
        )
        return Application(
            Layout(
                HSplit(
                    [shown, *self.input.windows(listener, lambda: output.get_size().rows), below]
                )
            ),
            key_bindings=self.input.bindings(listener),
            style=_STYLE,
            erase_when_done=True,
            color_depth=None if self.out.color else ColorDepth.DEPTH_1_BIT,
            terminal_size_polling_interval=None,
            input=_Keyboard(sys.stdin),
            output=output,
        )

    @property
    def rows(self) -> int:
        return self._size().rows

    def _size(self) -> Size:
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return Size(rows=24, columns=80)
        # A terminal that does not say how large it is says 0.
        return Size(rows=size.lines or 24, columns=size.columns or 80)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "exception" in context:
            self.leave(context["exception"])
        else:
            loop.default_exception_handler(context)

    def leave(self, error: BaseException | None = None) -> None:
        if self._app is None or self._app.is_done or not self._app.is_running:
            return
        if error is None:
            self._app.exit()
        else:
            self._app.exit(exception=error)

    def _settle_soon(self, listener: InputListener) -> None:
        """Settle once for all keys of one read."""

        def settle() -> None:
            self._settling = False
            listener.settle()
            self._write()

        if not self._settling:
            self._settling = True
            asyncio.get_running_loop().call_soon(settle)

    def watch(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever the descriptor has something to read."""
        asyncio.get_running_loop().add_reader(descriptor, ready)

    def unwatch(self, descriptor: int) -> None:
        if self._app is not None:
            asyncio.get_running_loop().remove_reader(descriptor)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, call)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Give the terminal to another program, in the modes it had before the chat."""
        assert self._app is not None
        self._write()
        self._app.renderer.erase()
        try:
            with self._app.input.detach(), self._app.input.cooked_mode():
                yield
        finally:
            self._app.renderer.reset()
            self.redraw()

    def suspend(self) -> None:
        assert self._app is not None
        # Not the process group: a daemon that was started with this chat keeps working.
        self._app.suspend_to_background(suspend_group=False)

    def forget_typed(self) -> None:
        """Drop keys that were typed before a question was on the screen: they cannot be its
        answer.
        """
        self._write()
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def interrupted_within(self, seconds: float) -> bool:
        """Wait, and return whether the person pressed Ctrl-C or the terminal went away. Other keys
        are kept for the line.
        """
        assert self._app is not None
        self._write()
        self._app.renderer.render(self._app, self._app.layout)
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return False
        keys = self._app.input.read_keys()
        if self._app.input.closed or any(each.key == Keys.ControlC for each in keys):
            return True
        self._app.key_processor.feed_multiple(keys)
        return False

    def say(self, text: str) -> None:
        """Go on where the last words ended."""
        if not text:
            return
        self._gap = False
        self._said.append(text)
        self.redraw()

    def redraw(self) -> None:
        """Write the output and draw the line: now, or as soon as `_WRITE_EVERY_S` has passed."""
        if self._app is None or not self._app.is_running:
            self._write()
        elif self._timer is None:
            wait_s = max(0.0, self._written_at + _WRITE_EVERY_S - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._write)

    def line(self, text: str = "") -> None:
        """A line of its own."""
        self.end_line()
        self.say(text + "\n")

    def gap(self) -> None:
        """An empty line between turns, unless there is one."""
        self.end_line()
        if not self._gap:
            self.say("\n")
            self._gap = True

    def end_line(self) -> None:
        if self.midway:
            self.say("\n")
            if self._speaking is not None:
                self._speaking.broken()

    def speak(self, prose: Prose, text: str) -> None:
        """Go on with words that are wrapped as they come; another one's words, if they still go on,
        end first.
        """
        if self._speaking is not prose:
            self.finish()
            self.end_line()
            self._speaking = prose
        self.say(prose.feed(text))

    def finish(self) -> None:
        """Say what was held back of the words that were being said."""
        if self._speaking is not None:
            self.say(self._speaking.end())
            self._speaking = None

    @property
    def midway(self) -> bool:
        """Return whether words are being said right now, in the middle of a line."""
        return bool(self._said) and not self._said[-1].endswith("\n")

    def _write(self) -> None:
        """Write whole lines above the line being written, and show the start of the next one
        between them.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._written_at = time.monotonic()
        whole, newline, rest = "".join(self._said).rpartition("\n")
        if self._app is None or not self._app.is_running:
            sys.stdout.write(whole + newline)
            sys.stdout.flush()
        elif newline:
            self._app.renderer.erase()
            self._app.output.write_raw(whole + newline)
            self._app.output.flush()
        self._said = [rest] if rest else []
        most = _TAIL_ROWS * self.out.width
        self._tail = rest if len(rest) < most else "…" + _SEQUENCE.sub("", rest[1 - most :])
        if self._app is not None:
            self._app.invalidate()


@contextmanager
def _erased(app: Application[None]) -> Iterator[None]:
    """Erase the line and end its modes, also where a signal ended the first drawing: prompt-toolkit
    undoes only what comes after that.
    """
    try:
        yield
    finally:
        # A terminal that went away shows nothing any more.
        with suppress(OSError):
            app.output.disable_bracketed_paste()
            app.renderer.erase()


class _Keyboard(Vt100Input):
    """The keys of a terminal. Many characters in one read are taken as a paste: one by one they
    would take seconds.
    """

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self.stdin_reader = _Reader(self.fileno(), errors="replace")

    def read_keys(self) -> list[KeyPress]:
        keys: list[KeyPress] = []
        for typed, group in groupby(
            super().read_keys(), lambda each: not isinstance(each.key, Keys)
        ):
            run = list(group)
            pasted = typed and len(run) >= _PASTE
            keys += (
                [KeyPress(Keys.BracketedPaste, "".join(each.data for each in run))]
                if pasted
                else run
            )
        return keys


class _Reader(PosixStdinReader):
    """A reader of everything that is there: the parser searches all of a paste again each time some
    of it arrives.
    """

    def read(self, count: int = 4096) -> str:
        gone = select.poll()
        gone.register(self.stdin_fd, select.POLLIN)
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in gone.poll(0)):
            # A terminal that went away would be ready for ever.
            self.closed = True
        pieces: list[str] = []
        while len(pieces) < _MOST_READS and (piece := super().read(count)):
            pieces.append(piece)
        return "".join(pieces)
