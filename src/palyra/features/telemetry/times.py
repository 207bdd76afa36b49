"""How long things take, as histograms in the exposition: the first word of a model, a whole reply,
a tool, a run, the queue, and the wait for a person.

They are counted when somebody asks, from the entries that are new since the last time.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from palyra.api.metrics import family, labels_of
from palyra.features.telemetry import rows
from palyra.store import tape
from palyra.store.database import Tx

_SHORT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LONG = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0)
# So many entries are read at once; whoever asks seldom gets the rest with the next answers.
_MOST_AT_ONCE = 20_000

_WHAT = {
    "palyra_model_first_token_seconds": ("time to a model's first word", _SHORT),
    "palyra_model_reply_seconds": ("time to a model's whole reply", _SHORT),
    "palyra_tool_seconds": ("time that a tool ran", _SHORT),
    "palyra_queue_wait_seconds": ("time that a run waited for the one before it", _LONG),
    "palyra_approval_wait_seconds": ("time that a call waited for a person", _LONG),
    "palyra_run_seconds": ("time from a message to the end of its run", _LONG),
}


class _Took(Struct):
    """The part of a reply or a result that tells how long it took."""

    duration_ms: int = 0
    first_delta_ms: int = 0


_read = msgspec.json.Decoder(_Took).decode


class _Histogram:
    __slots__ = ("bounds", "counts", "sum_s")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum_s += seconds

    def lines(self, name: str, labels: dict[str, str]) -> Iterator[str]:
        seen = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            seen += count
            yield f"{name}_bucket{labels_of(**labels, le=bound)} {seen}"
        about = labels_of(**labels) if labels else ""
        yield f"{name}_sum{about} {self.sum_s:.3f}"
        yield f"{name}_count{about} {seen}"


class TimesTaken:
    """Histograms since the daemon started."""

    def __init__(self) -> None:
        self._position = -1
        self._found: dict[str, dict[str, _Histogram]] = {name: {} for name in _WHAT}

    def begin(self, position: int) -> None:
        """Count what comes behind this position."""
        self._position = position

    def lines(self, tx: Tx) -> Iterable[str]:
        last = tape.last_position(tx)
        if self._position < 0:
            self._position = last
        last = min(last, self._position + _MOST_AT_ONCE)
        if last > self._position:
            self._count(tx, self._position, last)
            self._position = last
        for name, (about, bounds) in _WHAT.items():
            yield from family(name, "histogram", about)
            by_state = self._found[name] or {"": _Histogram(bounds)}
            for state, histogram in sorted(by_state.items()):
                yield from histogram.lines(name, {"state": state} if state else {})

    def _count(self, tx: Tx, after: int, last: int) -> None:
        for kind, body in rows.replies_and_results(tx, after, last):
            took = _read(body)
            if kind == "tool.finished":
                self._add("palyra_tool_seconds", took.duration_ms / 1000)
                continue
            if took.first_delta_ms:
                self._add("palyra_model_first_token_seconds", took.first_delta_ms / 1000)
            self._add("palyra_model_reply_seconds", took.duration_ms / 1000)
        found = rows.durations(tx, after, last)
        for seconds in found.queued:
            self._add("palyra_queue_wait_seconds", seconds)
        for seconds in found.approvals:
            self._add("palyra_approval_wait_seconds", seconds)
        for state, seconds in found.runs:
            self._add("palyra_run_seconds", seconds, state)

    def _add(self, name: str, seconds: float, state: str = "") -> None:
        by_state = self._found[name]
        if state not in by_state:
            by_state[state] = _Histogram(_WHAT[name][1])
        by_state[state].add(seconds)
