"""One model that cannot answer now, and how the runs that wait for it are let through.

First one run asks, as a probe. If it gets an answer, the others follow in the order in which they
were accepted: two at once, then four, and so on. If it fails, all of them wait for the next probe.
Pure: time and chance are handed in.
"""

from dataclasses import dataclass, field

from palyra.core.events import RetryPlanned
from palyra.core.ids import RunId
from palyra.core.messages import FailureClass
from palyra.models.reliability import LONGEST_PROBE_MS, probe_after_ms
from palyra.store.run_waits import ProviderWait

MOST_AT_ONCE = 16
# A probe that has heard nothing for so long holds nobody up any more: the next run asks, too.
_LONGEST_PROBE_CALL_MS = 5 * 60_000


@dataclass
class ModelQueue:
    """`asking` are the runs that were let through and have heard nothing yet. `window` is how many
    may be: 0 while the model is down.
    """

    target: str
    cause: FailureClass
    message: str
    since_ms: int
    next_try_ms: int
    attempt: int = 0
    window: int = 0
    asking: set[str] = field(default_factory=set)
    # When somebody was let through last.
    asked_ms: int = 0
    # Runs whose wait is being recorded.
    coming: set[str] = field(default_factory=set)

    @property
    def down(self) -> bool:
        return self.window == 0

    @property
    def plan(self) -> ProviderWait:
        return ProviderWait(
            self.target, self.cause, self.message, self.since_ms, self.next_try_ms, self.attempt
        )

    def planned(self, run_id: str) -> RetryPlanned:
        """Return what the watchers of a run that waits here are told."""
        return RetryPlanned(
            run_id=RunId(run_id),
            cause=self.cause,
            message=self.message,
            next_try_ms=self.next_try_ms,
            attempt=self.attempt,
        )

    def failed(
        self,
        run_id: str,
        cause: FailureClass,
        message: str,
        *,
        now_ms: int,
        rand: float,
        asked_ms: int | None = None,
        longest_ms: int = LONGEST_PROBE_MS,
    ) -> None:
        """A run got no answer. Only a probe makes the rest longer: others may have asked before."""
        probe = run_id in self.asking or not self.attempt
        self.asking.discard(run_id)
        if not self.down:
            self.window, self.attempt, probe = 0, 0, True
        self.cause, self.message = cause, message
        self.attempt += probe
        rest_ms = probe_after_ms(
            cause, attempt=self.attempt, rand=rand, asked_ms=asked_ms, longest_ms=longest_ms
        )
        planned = now_ms + rest_ms
        self.next_try_ms = planned if probe else max(self.next_try_ms, now_ms + (asked_ms or 0))

    def answered(self, run_id: str) -> None:
        """A run that was let through has heard from the model: as many more may ask."""
        self.asking.discard(run_id)
        self.window = min(MOST_AT_ONCE, self.window + 1 if self.window else 2)

    def left(self, run_id: str) -> None:
        """A run that was let through ended, or waits for something else, before anybody heard of
        the model: the next one asks.
        """
        self.asking.discard(run_id)

    def free(self, now_ms: int) -> int:
        """Return how many runs may be let through now."""
        if not self.down:
            return max(0, self.window - len(self.asking))
        return 1 if now_ms >= self.next_try_ms and not self.undecided(now_ms) else 0

    def let_through(self, run_id: str, now_ms: int) -> None:
        self.asking.add(run_id)
        self.asked_ms = now_ms

    def undecided(self, now_ms: int) -> bool:
        """Return whether somebody asks whose answer is worth waiting for."""
        return bool(self.asking) and now_ms - self.asked_ms < _LONGEST_PROBE_CALL_MS
