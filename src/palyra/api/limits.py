"""Limits of one caller: requests per second, wrong tokens, open streams. Every limit is kept per
caller and bounded.

Connections that have not shown yet who they are: only so many from one place, and so many in all.

The rule: when there is no room, the one that has waited longest has to go, and the newest is let
in. Who means it is through in a moment; who only holds places is always among the oldest, and so
keeps nobody out.
"""

import asyncio
import ipaddress
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

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
    """Return the place of a caller, for counting: whoever has an IPv6 address has a whole network
    of them.
    """
    return _seat_6(address) if ":" in address else address


class ApiLimits(Struct, frozen=True, kw_only=True):
    """`header_s`, `body_s`: how long the parts of a request may take to arrive. `heartbeat_s`: the
    longest silence of a stream.

    `answer_s`: how long an answer that is no stream may take; programs that wait usually give up
    after ten minutes. `unavailable_s`: how long a program that does not say its own time-out is
    kept while no provider can answer.
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
    unavailable_s: float = 30.0


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
        """Return whether the daemon ends, so that streams end which nobody wanted to end."""
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


log = logging.getLogger("palyra.doors")

# Connections taken in one turn of the loop, and the pause when there are no file descriptors left.
_AT_ONCE = 64
_PAUSE_S = 1.0


class Waiting:
    """One that stands there. `drop` puts it out."""

    __slots__ = ("drop", "place")

    def __init__(self, place: str, drop: Callable[[], object]) -> None:
        self.place = place
        self.drop = drop


class Doorstep:
    def __init__(self, *, from_one_place: int, in_all: int) -> None:
        self._from_one_place = from_one_place
        self._in_all = in_all
        # Both in the order in which they came.
        self._waiting: dict[Waiting, None] = {}
        self._by_place: dict[str, dict[Waiting, None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, address: str, drop: Callable[[], object]) -> Waiting:
        came = Waiting(seat(address), drop)
        others = self._by_place.get(came.place, {})
        if len(others) >= self._from_one_place:
            self._put_out(next(iter(others)))
        elif len(self._waiting) >= self._in_all:
            self._put_out(next(iter(self._waiting)))
        self._waiting[came] = None
        self._by_place.setdefault(came.place, {})[came] = None
        return came

    def leave(self, waiting: Waiting) -> None:
        """Let a connection go: it is through, or gone. A second call changes nothing."""
        if waiting not in self._waiting:
            return
        del self._waiting[waiting]
        others = self._by_place[waiting.place]
        del others[waiting]
        if not others:
            del self._by_place[waiting.place]

    def _put_out(self, waiting: Waiting) -> None:
        self.leave(waiting)
        waiting.drop()


class TlsListener:
    """Listener that has connections shake hands on a doorstep; then they are their protocol's, as
    with the loop's own server.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        protocol: Callable[[], asyncio.Protocol],
        doorstep: Doorstep,
        *,
        handshake_s: float,
        shutdown_s: float,
    ) -> None:
        self._listener = listener
        self._context = context
        self._protocol = protocol
        self._doorstep = doorstep
        self._handshake_s = handshake_s
        self._shutdown_s = shutdown_s
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False

    def open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Take no more; who is through stays."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._pause is not None:
            self._pause.cancel()
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        """Nothing to wait for: `close` has closed."""

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("a connection could not be taken: %s", error)
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE_S, self.open)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._shake_hands(connection))
            self._tasks.add(task)
            waiting = self._doorstep.enter(str(address[0]), task.cancel)
            task.add_done_callback(lambda done, waiting=waiting: self._done(done, waiting))  # type: ignore[misc]

    def _done(self, task: "asyncio.Task[Any]", waiting: Waiting) -> None:
        self._tasks.discard(task)
        self._doorstep.leave(waiting)

    async def _shake_hands(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_s,
                ssl_shutdown_timeout=self._shutdown_s,
            )
        except (OSError, TimeoutError):
            # Whoever it was did not speak TLS, or not with us.
            connection.close()
        except BaseException:
            connection.close()
            raise
