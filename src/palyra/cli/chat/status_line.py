"""The status line of a chat: who answers, under which policy and where, and what has been used."""

import os
import time

from palyra.cli import formatting
from palyra.cli.safe_text import clean, cut, width_of
from palyra.core.events import InputAssembled, ModelReplied

_THOUSAND = 1_000
_MILLION = 1_000_000


class SessionMeter:
    """Counts what a session uses, from what it had used when it was opened."""

    def __init__(
        self, *, preset: str = "", workspace: str = "", tokens: int = 0, cost_microusd: int = 0
    ) -> None:
        self._preset = preset
        self._workspace = workspace
        self._tokens = tokens
        self._cost = cost_microusd
        self._context = 0
        # When the run that works began or was resumed, and how long it worked before.
        self._since = 0.0
        self._before_s = 0.0

    def began(self) -> None:
        self._since, self._before_s = time.monotonic(), 0.0

    def resumed(self) -> None:
        self._since = self._since or time.monotonic()

    def paused(self) -> None:
        """Stop the clock: the run has ended, or waits for a person."""
        self._before_s = self._seconds()
        self._since = 0.0

    def _seconds(self) -> float:
        return self._before_s + (time.monotonic() - self._since if self._since else 0.0)

    @property
    def counting(self) -> bool:
        return self._since > 0

    def assembled(self, event: InputAssembled) -> None:
        if event.budget:
            self._context = round(event.tokens / event.budget * 100)

    def replied(self, event: ModelReplied) -> None:
        self._tokens += event.usage.input_tokens + event.usage.output_tokens
        self._cost += event.cost_microusd

    def words(self, model: str, width: int) -> str:
        """Return the line; on a narrow terminal, its most useful parts."""
        seconds = int(self._seconds())
        parts = [
            clean(model),
            clean(self._preset),
            _folder(self._workspace),
            f"{seconds} s" if self._since or seconds else "",
            f"{short_count(self._tokens)} tokens" if self._tokens else "",
            formatting.money(self._cost) if self._cost else "",
            f"{self._context} % context" if self._context else "",
        ]
        shown = [part for part in parts if part]
        while len(shown) > 1 and width_of(" · ".join(shown)) > width:
            # The folder and the preset change least.
            shown.pop(2 if len(shown) > 4 else 1)
        return cut(" · ".join(shown), width)


def short_count(number: int) -> str:
    """Return a count as people read it: 820, 16.3 k, 1.2 M."""
    if number < _THOUSAND:
        return str(number)
    if number < _MILLION:
        return f"{number / _THOUSAND:.1f} k"
    return f"{number / _MILLION:.1f} M"


def _folder(path: str) -> str:
    """Return a folder as its owner names it."""
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + "/"):
        return "~" + clean(path[len(home) :])
    return clean(path)
