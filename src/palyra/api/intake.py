"""One intake budget for every door: how much a connection may bring, in bytes, frames, queued
requests and work.

A door parses what came slice by slice and pays for it from the connection's own meter before
anything is done with it. A connection that has spent its meter is not read until it has earned
more, so that the sender waits and nobody else does.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from palyra.api.limits import ApiLimits
from palyra.core.errors import Unavailable


class Budget(Struct, frozen=True, kw_only=True):
    """Limits of what one connection may bring. Work is counted in units of about ten microseconds
    of the event loop.

    `per_second`, `burst`: units a connection earns, and has at first. `per_turn`: units in one turn
    of the event loop; then others have theirs. `slice_bytes`: bytes that a parser gets at once
    while anything may follow, so at most 57 pipelined requests wait. `share`: for doors whose work
    is measured by the clock (QUIC), the part of the event loop's time that one connection may take.
    """

    per_second: int = 5_000
    burst: int = 20_000
    per_turn: int = 256
    slice_bytes: int = 1_024
    share: float = 0.5

    # Units. A piece of a body costs next to nothing, but a megabyte of one-byte pieces is a million
    # of them.
    request: float = 15.0
    message: float = 10.0
    frame: float = 2.0
    piece: float = 0.3
    per_kilobyte: float = 0.05

    header_bytes: int = 64 << 10
    # Headers and bodies, of all connections together, whose senders have shown no token.
    strangers_bytes: int = 16 << 20
    # Connections that have not sent a request yet, from one place and in all.
    silent_from_one_place: int = 2_048
    silent: int = 4_096
    # Frames that a WebSocket's message may be cut into.
    fragments: int = 1_024
    # Larger ones are no QUIC packets of anybody who means it: paths carry 1,500 bytes.
    datagram_bytes: int = 2_048
    # gRPC: calls under way on one connection, those that come with one read, those that are being
    # cleared away, bytes that wait to be parsed, calls that wait to be taken up, metadata, and
    # pings nobody asked for.
    calls: int = 256
    calls_at_once: int = 2
    calls_ending: int = 64
    receive_bytes: int = 128 << 10
    calls_waiting: int = 256
    metadata_bytes: int = 16 << 10
    pings: int = 2


BUDGET = Budget()


def budget_for(limits: ApiLimits) -> Budget:
    """The budget where an owner lets callers ask more often: four times of what is allowed, so that
    nobody waits who may ask.
    """
    wanted = int(4 * BUDGET.request * limits.requests_per_second)
    if wanted <= BUDGET.per_second:
        return BUDGET
    return Budget(per_second=wanted, burst=4 * wanted)


class Meter:
    """Work that one connection has spent. Small: there is one for each."""

    __slots__ = ("_budget", "_full_at")

    def __init__(self, budget: Budget = BUDGET) -> None:
        self._budget = budget
        # When it would have earned everything back.
        self._full_at = 0.0

    def spend(self, units: float) -> float:
        """Count it, and return how many seconds the connection has to wait before it may bring
        more; 0.0 for not at all.
        """
        now = time.monotonic()
        per_second = self._budget.per_second
        self._full_at = max(self._full_at, now) + units / per_second
        return max(0.0, self._full_at - now - self._budget.burst / per_second)


class Share:
    """The same by the clock, where units cannot be counted: the part of the event loop's time that
    somebody takes.
    """

    __slots__ = ("_budget", "_full_at")

    def __init__(self, budget: Budget = BUDGET) -> None:
        self._budget = budget
        self._full_at = 0.0

    @property
    def spent(self) -> bool:
        """Return whether a second's share is used up."""
        return self._full_at - time.monotonic() > 1.0

    @contextmanager
    def taking(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            now = time.monotonic()
            self._full_at = max(self._full_at, begun) + (now - begun) / self._budget.share


class Pool:
    """Bytes that are held for senders nobody knows, all of them together."""

    def __init__(self, most: int = BUDGET.strangers_bytes) -> None:
        self._most = most
        self.held = 0

    def take(self, size: int) -> None:
        """Count them, or raise Unavailable."""
        if self.held + size > self._most:
            raise Unavailable(
                f"requests without a token hold {self._most >> 20} MB already: try again in a"
                " moment, or send a token first",
                limit=self._most,
            )
        self.held += size

    def give_back(self, size: int) -> None:
        self.held -= size


class Feed:
    """Link between a connection and its parser: hands over what came in slices, while the door
    wants more and the meter lasts.

    What the parser has not seen yet stays here and the connection is not read meanwhile, so it is
    one read of the socket at most.
    """

    __slots__ = (
        "_at",
        "_budget",
        "_data",
        "_later",
        "_loop",
        "_meter",
        "_parse",
        "_paused",
        "_reads",
        "_transport",
        "_wants",
        "slice",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        parse: Callable[[memoryview], float],
        wants: Callable[[], bool],
        budget: Budget,
        reads: Callable[[], bool] | None = None,
    ) -> None:
        """`parse` takes a slice and returns its cost. `wants`: the door takes more of what is here;
        `reads`: more may come then.
        """
        self._transport = transport
        self._parse = parse
        self._wants = wants
        self._reads = reads or wants
        self._budget = budget
        self._meter = Meter(budget)
        self._loop = asyncio.get_running_loop()
        self._data = memoryview(b"")
        self._at = 0
        self._later: asyncio.Handle | None = None
        self._paused = False
        self.slice = budget.slice_bytes

    @property
    def paused(self) -> bool:
        """Return whether the connection is not read now."""
        return self._paused

    def take(self, data: bytes) -> None:
        left = self._data[self._at :]
        # A transport may still deliver what it had read when it was told to stop.
        self._data = memoryview(data) if not left else memoryview(bytes(left) + data)
        self._at = 0
        if self._later is None:
            self.run()

    def wake(self) -> None:
        """The door wants more, or may want more: go on in the next turn, unless it has to wait
        longer anyway.
        """
        if self._later is None and (self._paused or self._at < len(self._data)):
            self._later = self._loop.call_soon(self.run)

    def stop(self) -> None:
        """Nothing more is parsed here; the connection is somebody else's, or over."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        self._data, self._at = memoryview(b""), 0
        self._wants = self._reads = _always
        self._settle()

    def run(self) -> None:
        self._later = None
        spent = 0.0
        while self._at < len(self._data) and self._wants():
            if self._transport.is_closing():
                self._data, self._at = memoryview(b""), 0
                return
            piece = self._data[self._at : self._at + self.slice]
            self._at += len(piece)
            cost = self._parse(piece) + len(piece) / 1024 * self._budget.per_kilobyte
            spent += cost
            if wait := self._meter.spend(cost):
                self._later = self._loop.call_later(wait, self.run)
                break
            if spent > self._budget.per_turn:
                self._later = self._loop.call_soon(self.run)
                break
        if self._at >= len(self._data):
            self._data, self._at = memoryview(b""), 0
        self._settle()

    def _settle(self) -> None:
        """Read the connection only while nothing of it waits here."""
        wanted = self._later is None and not self._data and self._reads()
        if wanted is not self._paused or self._transport.is_closing():
            return
        self._paused = not wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def _always() -> bool:
    return True
