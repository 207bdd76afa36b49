"""The terminal of a chat: what was said stays, one line below it changes. Puts the terminal back as
it was, whatever happens.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from palyra.cli.output import Output
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.safe_text import cut

_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class Terminal:
    def __init__(self, out: Output) -> None:
        self.out = out
        self._input = sys.stdin.fileno()
        self._saved: list[Any] | None = None
        # Whether what was said ends in the middle of a line, and whether the changing line is on
        # the screen.
        self._open = False
        self._drawn = False
        self._speaking: Prose | None = None

    @contextmanager
    def raw(self) -> Iterator[None]:
        """Keys come one by one and unechoed; Ctrl-C is a key."""
        self._enter()
        try:
            yield
        finally:
            self.leave()

    def _enter(self) -> None:
        self._saved = termios.tcgetattr(self._input)
        tty.setraw(self._input, termios.TCSADRAIN)
        # Newlines in what we print still begin at the left.
        modes = termios.tcgetattr(self._input)
        modes[1] |= termios.OPOST
        termios.tcsetattr(self._input, termios.TCSADRAIN, modes)
        self._write(_PASTE_ON)

    def leave(self) -> None:
        if self._saved is not None:
            self.erase()
            self._write(_PASTE_OFF)
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._saved)
            self._saved = None

    @contextmanager
    def lent(self) -> Iterator[None]:
        """The terminal as it was before, for another program."""
        self.leave()
        try:
            yield
        finally:
            self._enter()

    def suspend(self) -> None:
        with self.lent():
            os.kill(os.getpid(), signal.SIGTSTP)

    def forget_typed(self) -> None:
        """Drop keys that were typed before a question was on the screen: they cannot be its
        answer.
        """
        termios.tcflush(self._input, termios.TCIFLUSH)

    def wait(self, wakes: list[int], timeout_s: float | None) -> tuple[bytes, bool]:
        """What was typed, and whether one of the other descriptors has something."""
        ready, _, _ = select.select([self._input, *wakes], [], [], timeout_s)
        typed = b""
        if self._input in ready:
            # Nothing to read on a ready terminal is a terminal that went away: the same as Ctrl-D.
            try:
                typed = os.read(self._input, 4096) or b"\x04"
            except OSError:
                typed = b"\x04"
        return typed, any(wake in ready for wake in wakes)

    def say(self, text: str) -> None:
        """Go on where the last words ended."""
        if text:
            self.erase()
            self._write(text)
            self._open = not text.endswith("\n")

    def line(self, text: str = "") -> None:
        """A line of its own."""
        self.end_line()
        self.say(text + "\n")

    def end_line(self) -> None:
        if self._open:
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

    def draw(self, text: str, column: int | None = None, *styles: str) -> None:
        """Show a line below what was said; `column` is where the cursor stands in it."""
        self.end_line()
        shown = self.out.style(cut(text, self.out.width - 1), *styles) if styles else text
        place = f"\r\x1b[{column}C" if column else "\r" if column == 0 else ""
        self._write(f"\r\x1b[K{shown}{place}")
        self._drawn = True

    def erase(self) -> None:
        if self._drawn:
            self._write("\r\x1b[K")
            self._drawn = False

    @property
    def midway(self) -> bool:
        """Whether words are being said right now, in the middle of a line."""
        return self._open

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
