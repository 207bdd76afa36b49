"""Threads for what would block the event loop. A hop there and back costs a fraction of what an
executor's does.

Few threads, because all of them share one interpreter lock with the event loop; more only while
those there are stuck. What several finish in the same moment reaches the event loop as one wake-up.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakMethod, ref

from palyra.core.errors import Unavailable
from palyra.system import cpu_affinity

T = TypeVar("T")

# A job that waits longer than this, although every thread is busy, gets a thread more.
_STUCK_S = 0.05


def carried(error: BaseException) -> BaseException:
    """Return an error that a future can carry: it refuses a StopIteration, and its waiter would
    never hear of it.
    """
    if isinstance(error, StopIteration):
        told = RuntimeError("something ran out that was thought to be there")
        told.__cause__ = error
        return told
    return error


class _Mail:
    """Results on their way back to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._told = False

    def put(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        self._done.append((future, result, error))
        if not self._told:
            self._told = True
            loop = self._loop()
            # A loop that is closed has nobody who waits.
            with suppress(RuntimeError):
                if loop is not None:
                    loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # First, so that whoever comes while this empties the queue tells again.
        self._told = False
        while self._done:
            future, result, error = self._done.popleft()
            if future.done():
                continue
            if error is not None:
                future.set_exception(carried(error))
            else:
                future.set_result(result)


class _Direct:
    """The way back to a thread that waits."""

    def put(self, future: "Future[Any]", result: Any, error: BaseException | None) -> None:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


_DIRECT = _Direct()
_Job = tuple[Callable[..., Any], tuple[Any, ...], Any, _Mail | _Direct]


class ThreadPool:
    """At least `least` threads once there is work, at most `most`. Those that roam have every
    processor: their work is long.
    """

    def __init__(self, name: str, *, least: int, most: int, roams: bool = False) -> None:
        self._name = name
        self._roams = roams
        self._least = least
        self._most = most
        self._mail: WeakKeyDictionary[asyncio.AbstractEventLoop, _Mail] = WeakKeyDictionary()
        self._fresh()
        # A child made by fork has none of these threads.
        fresh = WeakMethod(self._fresh)
        os.register_at_fork(after_in_child=lambda: (forget := fresh()) and forget())

    def _fresh(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        # Tells whether anything moves, no more: threads that count at the same moment may count
        # once.
        self._taken = 0
        # Which loop looks again in a moment. One that has ended does not, and keeps no other from
        # it.
        self._watching: ref[asyncio.AbstractEventLoop] | None = None
        self._growing = threading.Lock()
        self._closed = False

    def run(self, job: Callable[..., T], *arguments: Any) -> "asyncio.Future[T]":
        """Run it on a thread. Cancelling the future drops a job that has not begun, and one that
        has goes on unheard.
        """
        loop = asyncio.get_running_loop()
        mail = self._mail.get(loop)
        if mail is None:
            mail = self._mail[loop] = _Mail(loop)
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((job, arguments, future, mail))
        if len(self._threads) < self._least:
            self._more()
        elif (
            len(self._threads) < self._most
            and self._jobs.qsize()
            and (self._watching is None or self._watching() is not loop)
        ):
            self._watching = ref(loop)
            loop.call_later(_STUCK_S, self._look, loop, self._taken)
        return future

    def run_sync(self, job: Callable[..., T], *arguments: Any) -> T:
        """The same for a caller on another thread, who waits; never for one on the event loop."""
        future: Future[T] = Future()
        self._jobs.put((job, arguments, future, _DIRECT))
        if self._closed:
            self._turn_away()
        # There may be no event loop to look again later, so whoever has to wait brings a thread.
        elif len(self._threads) < self._least or self._jobs.qsize():
            self._more()
        return future.result()

    def _look(self, loop: asyncio.AbstractEventLoop, taken: int) -> None:
        """Add a thread if nothing was taken since while something waits: the others are stuck."""
        self._watching = None
        if not self._jobs.qsize() or len(self._threads) >= self._most:
            return
        if self._taken == taken:
            self._more()
        self._watching = ref(loop)
        loop.call_later(_STUCK_S, self._look, loop, self._taken)

    def _more(self) -> None:
        with self._growing:
            if len(self._threads) >= self._most:
                return
            thread = threading.Thread(
                target=self._work,
                args=(self._jobs,),
                name=f"{self._name}_{len(self._threads)}",
                daemon=True,
            )
            # In this order: whoever closes meanwhile can wait for all that are in the list.
            thread.start()
            self._threads.append(thread)

    def _work(self, jobs: "SimpleQueue[_Job | None]") -> None:
        if self._roams:
            cpu_affinity.roam()
        while (given := jobs.get()) is not None:
            self._taken += 1
            job, arguments, future, mail = given
            # Not kept while waiting for the next.
            del given
            if not future.cancelled():
                try:
                    mail.put(future, job(*arguments), None)
                except BaseException as error:  # noqa: BLE001  whatever it is, it belongs to whoever waits
                    mail.put(future, None, error)
            del job, arguments, future, mail
        # For the next: there may be more threads by now than when it was said.
        jobs.put(None)

    def close(self) -> None:
        """Finish what was given, then end the threads. Waits for them, so call it off the event
        loop.
        """
        self._closed = True
        self._jobs.put(None)
        self._turn_away()

    def _turn_away(self) -> None:
        """Once the threads have ended: whoever came behind the end would wait for ever."""
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        with suppress(Empty):
            while True:
                given = self._jobs.get_nowait()
                if given is not None:
                    _, _, future, mail = given
                    mail.put(future, None, Unavailable("it has ended: the daemon is shutting down"))
        # For a thread that is only just starting.
        self._jobs.put(None)


# For short blocking work of any kind: files, paths, previews.
everyday = ThreadPool("hand", least=1, most=32)
