"""The wait for a model, as a person sees it: who is asked, for how long, how far it has read."""

import threading
import time
from collections.abc import Callable

from palyra.cli.safe_text import one_line
from palyra.core.events import ModelDelta

# Who waits for less is not told.
_SOON_S = 1.0


class WaitingClock:
    """A clock from the moment when a model is asked until it says something."""

    def __init__(self) -> None:
        self._since = 0.0
        self._model = ""
        self._read: int | None = None

    def __bool__(self) -> bool:
        return self._since > 0

    def begin(self) -> None:
        """A model is asked."""
        self._since, self._read = time.monotonic(), None

    def asked(self, model: str) -> None:
        """Note which model is asked, which may be told when it answers already."""
        self._model = model

    def heard(self, delta: ModelDelta) -> None:
        if delta.progress is not None:
            self._read = delta.progress
        elif delta.text or delta.reasoning or delta.call:
            self.end()

    def end(self) -> None:
        self._since, self._read = 0.0, None

    def words(self, model: str = "") -> str:
        """Say who is waited for; `model` is who answers usually."""
        parts = ["working" if self._read is None else f"reading the prompt: {self._read} %"]
        if name := self._model or model:
            parts.append(one_line(name))
        if self and (passed := time.monotonic() - self._since) >= _SOON_S:
            parts.append(f"{int(passed)} s")
        return " · ".join(parts)


class WaitingLine:
    """The clock on a line of its own that is drawn over until something is said."""

    def __init__(self, waiting: WaitingClock, draw: Callable[[str], None]) -> None:
        self._waiting = waiting
        self._draw = draw
        self._lock = threading.Lock()
        self._drawn = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_SOON_S):
            with self._lock:
                if self._waiting and not self._over.is_set():
                    self._draw(f"\r\x1b[2K… {self._waiting.words()}")
                    self._drawn = True

    def clear(self) -> None:
        """Take the line away, because something else is printed."""
        with self._lock:
            if self._drawn:
                self._draw("\r\x1b[2K")
                self._drawn = False

    def end(self) -> None:
        self._over.set()
        self.clear()
