"""A clock that counts down while a run waits for its provider, and keys to do something about it.

Only where a person looks on: a pipe gets one line for each wait. Keys are read from the terminal
itself, because standard input may be a pipe.
"""

import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from palyra.cli.safe_text import clean
from palyra.client import Client
from palyra.core import wait_words
from palyra.core.errors import PalyraError
from palyra.core.messages import FailureClass

_SECOND_S = 1.0
_JOIN_S = 2.0
KEYS = "r: try now · m: switch model · Ctrl-C: cancel"
_CLEAR = "\r\x1b[K"


class WaitClock:
    """`attended`: a person is there who may press keys."""

    def __init__(
        self, api: Client, run_id: str, style: Callable[..., str], *, attended: bool
    ) -> None:
        self._api = api
        self._run_id = run_id
        self._style = style
        self._attended = attended and sys.stderr.isatty()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._said = ""
        self._until = ("", 0)

    def show(self, cause: FailureClass, next_try_ms: int) -> None:
        """Count down to the next try."""
        self._until = (wait_words.cause(cause), next_try_ms)
        if not self._attended:
            now_ms = int(time.time() * 1000)
            said = wait_words.sentence(cause, next_try_ms, now_ms)
            if wait_words.cause(cause) != self._said:
                self._said = wait_words.cause(cause)
                self._write(
                    self._style(
                        f"{said} `palyra runs retry {self._run_id}` tries now, --model switches",
                        "dim",
                    )
                    + "\n"
                )
        elif self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._count, daemon=True)
            self._thread.start()

    def hide(self) -> None:
        """The run works again, or has ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._over.set()
            thread.join(_JOIN_S)
            self._write(_CLEAR)

    def _count(self) -> None:
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return
        before = termios.tcgetattr(terminal)
        try:
            tty.setcbreak(terminal)
            while not self._over.is_set():
                self._write(_CLEAR + self._style(f"{self._line()} {KEYS}", "dim"))
                if select.select([terminal], [], [], _SECOND_S)[0]:
                    self._pressed(os.read(terminal, 16), terminal, before)
        finally:
            with suppress(termios.error):
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            os.close(terminal)

    def _line(self) -> str:
        cause, next_try_ms = self._until
        left_ms = next_try_ms - int(time.time() * 1000)
        when = f"next try in {wait_words.span(left_ms)}" if left_ms > 0 else "trying again"
        return f"{cause}; {when}."

    def _pressed(self, key: bytes, terminal: int, before: list[Any]) -> None:
        model = ""
        if key[:1] in (b"m", b"M"):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            try:
                model = self._asked_model(terminal)
            finally:
                if not self._over.is_set():
                    tty.setcbreak(terminal)
            if not model:
                return
        elif key[:1] not in (b"r", b"R"):
            return
        try:
            self._api.retry(self._run_id, model=model)
        except PalyraError as error:
            self._write(_CLEAR + self._style(clean(error.message), "yellow") + "\n")

    def _asked_model(self, terminal: int) -> str:
        names = ", ".join(clean(each.name) for each in self._api.list_models().models)
        self._write(f"{_CLEAR}{self._style(f'models: {names}', 'dim')}\nmodel: ")
        line = b""
        while not self._over.is_set() and not line.endswith(b"\n"):
            if select.select([terminal], [], [], _SECOND_S)[0]:
                line += os.read(terminal, 256)
        return line.decode("utf-8", "replace").strip()

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
