"""How much one caller may ask for: requests per second, wrong tokens, open streams. Every limit is
kept per caller and bounded.
"""

import asyncio
import ipaddress
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from msgspec import Struct

from palyra.core.errors import LimitExceeded

# Callers remembered at once; beyond that, those who have been quiet are forgotten.
_MOST_CALLERS = 4_096


@lru_cache(maxsize=1_024)
def _seat_6(address: str) -> str:
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return address if found.is_loopback else str(ipaddress.IPv6Network((found, 64), strict=False))


def seat(address: str) -> str:
    """Where a caller sits, for counting: whoever has an IPv6 address has a whole network of
    them.
    """
    return _seat_6(address) if ":" in address else address


class ApiLimits(Struct, frozen=True, kw_only=True):
    """`header_s`, `body_s`: how long the parts of a request may take to arrive. `heartbeat_s`: the
    longest silence of a stream.

    `answer_s`: how long an answer that is no stream may take; programs that wait usually give up
    after ten minutes.
    """

    body_bytes: int = 4 << 20
    headers: int = 100
    requests_per_second: int = 50
    streams: int = 64
    exchanges: int = 4_096
    header_s: float = 20.0
    body_s: float = 20.0
    heartbeat_s: float = 15.0
    answer_s: float = 540.0


class Rates:
    """Requests per second and caller, with twice as many at once after a pause."""

    def __init__(self, per_second: int) -> None:
        self._interval = 1.0 / per_second
        # When a caller's bucket would be full again. Whoever is not here has a full one.
        self._full_at: dict[str, float] = {}
        self._limit = per_second

    def take(self, caller: str) -> None:
        """Count one request, or LimitExceeded with the time to wait."""
        now = time.monotonic()
        full_at = max(self._full_at.get(caller, now), now)
        # Two seconds' worth of requests may be owed; sums of floats come out a little to either
        # side.
        wait = full_at - now + self._interval - 2.0
        if wait > 1e-6:
            raise LimitExceeded(
                f"too many requests: {self._limit} a second are allowed"
                " (limits.requests_per_second); wait and try again",
                retry_after_ms=int(wait * 1000) + 1,
            )
        self._full_at[caller] = full_at + self._interval
        if len(self._full_at) > _MOST_CALLERS:
            self._full_at = {key: at for key, at in self._full_at.items() if at > now}


class Failures:
    """Wrong tokens and login codes by address: after too many in a minute, the address is told to
    wait.

    Only wrong ones are ever refused here: somebody else's guessing must not lock out a caller who
    has a good token. The same wrong one again is not a guess: it is a program that has not noticed
    that its token was revoked, and should be told.
    """

    def __init__(self, most: int = 10, window_s: float = 60.0) -> None:
        self._most = most
        self._window_s = window_s
        self._by_address: dict[str, tuple[float, set[bytes]]] = {}

    def note(self, address: str, digest: bytes) -> None:
        """Count one wrong attempt, or LimitExceeded once there were too many different ones."""
        now = time.monotonic()
        since, tried = self._by_address.get(address, (now, set()))
        if now - since > self._window_s:
            since, tried = now, set()
        self._by_address[address] = (since, tried)
        if len(self._by_address) > _MOST_CALLERS:
            self._by_address = {
                key: value
                for key, value in self._by_address.items()
                if now - value[0] <= self._window_s
            }
            # All of them within the same minute: who came first has been counted for longest.
            while len(self._by_address) > _MOST_CALLERS:
                del self._by_address[next(iter(self._by_address))]
        if digest in tried:
            return
        if len(tried) >= self._most:
            wait_ms = int((since + self._window_s - now) * 1000) + 1
            raise LimitExceeded(
                f"too many attempts with wrong credentials: wait {wait_ms // 1000 + 1} s and use a"
                " valid token",
                retry_after_ms=wait_ms,
            )
        tried.add(digest)


class StreamEnd:
    """Set when a stream must end. A future, because a task that waits would cost every idle watcher
    more than that.
    """

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def is_set(self) -> bool:
        return self.future.done() and not self.future.cancelled()

    async def wait(self) -> None:
        await self.future


class OpenStreams:
    """Open streams by token, so that there are not too many, and so that a revoked token or a
    shutdown ends them at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_token: dict[str, set[StreamEnd]] = {}
        self._closing = False

    @contextmanager
    def open(self, token_id: str) -> Iterator[StreamEnd]:
        """Hold a place for a stream. What it gives is set when the stream must end."""
        ended = self.enter(token_id)
        try:
            yield ended
        finally:
            self.leave(token_id, ended)

    def enter(self, token_id: str) -> StreamEnd:
        ended = StreamEnd()
        held = self._by_token.setdefault(token_id, set())
        if len(held) >= self._most:
            raise LimitExceeded(
                f"this token has {self._most} streams open (limits.streams): close one first",
                limit=self._most,
            )
        if self._closing:
            ended.set()
        held.add(ended)
        return ended

    def leave(self, token_id: str, ended: StreamEnd) -> None:
        held = self._by_token[token_id]
        held.discard(ended)
        if not held:
            del self._by_token[token_id]

    @property
    def closing(self) -> bool:
        """Whether the daemon ends, so that streams end which nobody wanted to end."""
        return self._closing

    @property
    def count(self) -> int:
        return sum(map(len, self._by_token.values()))

    def end(self, token_id: str) -> None:
        for ended in self._by_token.get(token_id, ()):
            ended.set()

    def close(self) -> None:
        self._closing = True
        for token_id in self._by_token:
            self.end(token_id)
