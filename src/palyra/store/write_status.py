"""Whether the journal can be written now: how the last write went, and how long the oldest one has
been waiting.

A disk fails in two ways. It refuses, and says so; or it does not answer, and then only the time
that passes tells of it.
"""

import asyncio
import time
from collections.abc import Callable

from palyra.core.errors import PalyraError

# A write that has waited for so long waits for a disk that does not answer.
STALLED_S = 3.0
# So long somebody waits who only wants to read then.
LONGEST_READ_S = 1.0
# What was written so recently needs no proof that it could be.
_RECENT_S = 5.0
# A disk that refused a moment ago is not asked again for every question.
_ASK_AGAIN_S = 1.0


class Standing:
    """Written by the writer's thread, read on the event loop; each value on its own is enough for
    an answer.
    """

    def __init__(self) -> None:
        # Why something could not be written; None once something was. Committing nothing proves
        # nothing.
        self.trouble: BaseException | None = None
        # Told once when the disk begins to refuse or to be silent.
        self.on_trouble: Callable[[], None] = lambda: None
        self._since = 0.0
        self._written = 0.0
        self._failed = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._told = False

    def began(self, handed_over: float) -> None:
        """The writer begins with steps, the oldest of which was handed over then."""
        self._since = handed_over

    def succeeded(self, *, proven: bool) -> None:
        """The steps are committed. `proven`: something of theirs went to the disk."""
        self._since = 0.0
        if proven:
            self._written = time.monotonic()
            self.trouble = None

    def failed(self, error: BaseException) -> None:
        self._since = 0.0
        self._failed = time.monotonic()
        self.trouble = error

    def handed_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """A step waits from now on: look after a while whether it still does."""
        if self._alarm is None:
            self._alarm = loop.call_later(STALLED_S, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = None
        self.tell()
        if self._since:
            # The oldest may have been handed over after this was set.
            left = STALLED_S - self.waited_s
            self._alarm = loop.call_later(left if left > 0 else STALLED_S, self._look, loop)

    def tell(self) -> None:
        """Tell of a disk that has begun to refuse or to be silent, once until it is well again."""
        wrong = bool(self.problem)
        if wrong and not self._told:
            self._told = True
            self.on_trouble()
        self._told = wrong

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    @property
    def waited_s(self) -> float:
        """How long the oldest step that is not durable has waited."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    @property
    def problem(self) -> str:
        """Why nothing can be written now, or nothing."""
        trouble = self.trouble
        if trouble is not None:
            return (
                trouble.message
                if isinstance(trouble, PalyraError)
                else f"{type(trouble).__name__}: {trouble}"
            )
        return silent(self.waited_s) if self.waited_s >= STALLED_S else ""

    @property
    def is_silent(self) -> bool:
        """Whether the disk does not answer: then reading may wait for it as well."""
        return self.waited_s >= STALLED_S

    @property
    def known(self) -> bool:
        """Whether how it stands is known well enough, without writing something to find out."""
        now = time.monotonic()
        if self.trouble is not None:
            return now - self._failed < _ASK_AGAIN_S
        return self.waited_s >= STALLED_S or now - self._written < _RECENT_S


def silent(seconds: float) -> str:
    return (
        f"the disk has not answered for {seconds:.0f} s: what is to be written waits for it (check"
        " it with dmesg and df)"
    )
