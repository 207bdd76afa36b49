"""Decisions after a provider failed: wait, go on to the next one, or give up. Pure: time and chance
are passed in.
"""

from typing import Final

from msgspec import Struct

from palyra.core.messages import FailureClass, ModelFailure

TRIES_PER_PROVIDER: Final = 3
# A server may ask us to wait this long; beyond it another provider is the better answer.
LONGEST_WAIT_MS: Final = 60_000
_FIRST_WAIT_MS: Final = 500
_LONGEST_BACKOFF_MS: Final = 20_000
# How far behind a server's own Retry-After we spread out, so that waiting runs do not come back all
# at once.
_SPREAD_MS: Final = 250

_PASSING: Final[frozenset[FailureClass]] = frozenset(
    {"rate_limited", "overloaded", "network", "timeout", "cut"}
)
# Another one may have credit, a better key, or a larger window.
_OF_THIS_PROVIDER: Final[frozenset[FailureClass]] = frozenset(
    {
        "auth",
        "permission",
        "quota",
        "context_too_long",
        "model_not_found",
        "tools_unsupported",
        "not_a_model_server",
    }
)
# A person has to do something: put in a key, pay, choose another model.
NEEDS_PERSON: Final[frozenset[FailureClass]] = frozenset({"auth", "permission", "quota"})
# Failures that a run outlives: it waits until somebody answers.
OUTLIVED: Final[frozenset[FailureClass]] = _PASSING | NEEDS_PERSON
_FIRST_PROBE_MS: Final = 5_000
LONGEST_PROBE_MS: Final = 2 * 60_000
_PERSON_PROBE_MS: Final = 15 * 60_000
_COUNTED: Final[frozenset[FailureClass]] = frozenset({"overloaded", "network", "timeout"})


class RetryAfter(Struct, frozen=True):
    """Ask the same provider again after so long."""

    ms: int


class NextProvider(Struct, frozen=True):
    """Ask the next provider of the plan."""


class NoProviderLeft(Struct, frozen=True):
    """No provider of the plan can help: tell the caller."""


Decision = RetryAfter | NextProvider | NoProviderLeft


def after_failure(
    failure: ModelFailure,
    *,
    attempt: int,
    text_shown: bool,
    has_fallback: bool,
    rand: float,
    tries: int = TRIES_PER_PROVIDER,
) -> Decision:
    """`attempt` counts this provider's tries, the failed one included; `rand` is in [0, 1).

    `text_shown` changes nothing here: whoever showed text restarts the turn, and says so to its
    watchers. `tries`: a run that has waited already asks each provider once.
    """
    elsewhere: Decision = NextProvider() if has_fallback else NoProviderLeft()
    if failure.failure in _OF_THIS_PROVIDER:
        return elsewhere
    if failure.failure == "malformed":
        return RetryAfter(_backoff_ms(attempt, rand)) if attempt < 2 else elsewhere
    if failure.failure not in _PASSING:
        return NoProviderLeft()
    asked = failure.retry_after_ms
    if attempt >= tries or (asked is not None and asked > LONGEST_WAIT_MS):
        return elsewhere
    if asked is not None:
        return RetryAfter(asked + int(rand * _SPREAD_MS))
    return RetryAfter(_backoff_ms(attempt, rand))


def _backoff_ms(attempt: int, rand: float) -> int:
    """Exponential with full jitter."""
    return int(rand * min(_LONGEST_BACKOFF_MS, _FIRST_WAIT_MS * 2 ** min(attempt - 1, 16)))


def probe_after_ms(
    cause: FailureClass,
    *,
    attempt: int,
    rand: float,
    asked_ms: int | None = None,
    longest_ms: int = LONGEST_PROBE_MS,
) -> int:
    """Return how long a model rests after the `attempt`-th failure in a row before one run asks it
    again.

    Exponential, half of it by chance; never before the server's own Retry-After. Where a person has
    to act there is a slow probe, in case they did so elsewhere.
    """
    if cause in NEEDS_PERSON:
        longest = _PERSON_PROBE_MS
    else:
        longest = min(longest_ms, _FIRST_PROBE_MS * 2 ** min(attempt - 1, 16))
    backoff = longest // 2 + int(rand * (longest // 2))
    return backoff if asked_ms is None else max(backoff, asked_ms + int(rand * _SPREAD_MS))


class Breaker:
    """One per provider. Opens after failures in a row, lets one try through after the cool-down,
    and closes by itself.

    A try that is let through and never reports back (cancelled) is forgotten after another
    cool-down.
    """

    __slots__ = ("_cooldown_ms", "_failures", "_threshold", "_until_ms")

    def __init__(self, *, threshold: int = 5, cooldown_ms: int = 30_000) -> None:
        self._threshold = threshold
        self._cooldown_ms = cooldown_ms
        self._failures = 0
        self._until_ms = 0

    def allows(self, now_ms: int) -> bool:
        """Return whether to ask this provider now. Past the cool-down the first who asks becomes
        the probe.
        """
        if self._failures < self._threshold:
            return True
        if self._rests(now_ms):
            return False
        self._until_ms = now_ms + self._cooldown_ms
        return True

    def is_open(self, now_ms: int) -> bool:
        """Return whether it is open, for displays and routing, without becoming the probe."""
        return self._failures >= self._threshold and self._rests(now_ms)

    def _rests(self, now_ms: int) -> bool:
        """Return whether the cool-down lasts; a clock that is set back does not make it longer."""
        return self._until_ms - self._cooldown_ms <= now_ms < self._until_ms

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, failure: FailureClass, now_ms: int) -> None:
        """A refusal by class other than overload, network or timeout shows that the provider is
        alive.
        """
        if failure not in _COUNTED:
            self._failures = 0
            return
        self._failures += 1
        if self._failures >= self._threshold:
            self._until_ms = now_ms + self._cooldown_ms
