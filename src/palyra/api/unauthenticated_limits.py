"""Connections that have not shown yet who they are: only so many from one place, and so many in
all.

The rule: when there is no room, the one that has waited longest has to go, and the newest is let
in. Who means it is through in a moment; who only holds places is always among the oldest, and so
keeps nobody out.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any

from palyra.api.limits import seat

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
        """It is through, or gone. Said again, it changes nothing."""
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
    """Takes connections and has them shake hands on a doorstep; then they are their protocol's, as
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
        if self._pause is not None:
            self._pause.cancel()
        for task in self._tasks:
            task.cancel()

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
