"""Telling watchers what happened. Entries arrive here only after they are durable; live events only
ever pass through.

Whoever shows something that no tape of theirs tells of is told that it is not what it was, and
nothing more: they ask for the rest.

A slow watcher may lose live events: it is then told anew what the turn under way has said so far,
and so is whoever begins to watch in the middle of one. It never loses entries: when its buffer runs
over it is marked as lagging and reads on from the store.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable

from palyra.core.events import Topic
from palyra.core.signals import Signal
from palyra.store.database import Appended
from palyra.system.clock import Clock

MOST_ENTRIES = 1_024
MOST_LIVE = 2_048
# Changes are told at once; those that come within this time of that are told together.
PAUSE_MS = 250

Item = Appended | bytes
# A live event with everything that was said, or nothing.
SoFar = Callable[[], bytes]


class Subscription:
    """One watcher's buffer. Entries are `Appended`, live events are their wire bytes."""

    __slots__ = (
        "_changed",
        "_entries",
        "_items",
        "_live",
        "_missed",
        "_so_far",
        "_topics",
        "_waiter",
        "lagging",
    )

    def __init__(self, so_far: SoFar, topics: Collection[Topic] = ()) -> None:
        self._so_far = so_far
        self._topics = frozenset(topics)
        self._changed: set[Topic] = set()
        self._missed = True
        self._items: list[Item] = []
        self._entries = 0
        self._live = 0
        self._waiter: asyncio.Future[None] | None = None
        self.lagging = False

    def push_entry(self, entry: Appended) -> None:
        if self._entries >= MOST_ENTRIES:
            self.lagging = True
        else:
            self._items.append(entry)
            self._entries += 1
        self._wake()

    def push_live(self, wire: bytes) -> None:
        if self._live < MOST_LIVE:
            self._items.append(wire)
            self._live += 1
        else:
            self._missed = True
        self._wake()

    def push_changed(self, topics: Collection[Topic]) -> None:
        if wanted := self._topics.intersection(topics):
            self._changed |= wanted
            self._wake()

    def changed(self) -> tuple[Topic, ...]:
        """Return what has changed since the last call."""
        changed, self._changed = self._changed, set()
        return tuple(sorted(changed))

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def take(self) -> list[Item]:
        """Everything that has come since the last call; waits for something to come, or to
        change.
        """
        if self._missed:
            # If nothing was said so far, nothing of it was missed.
            self._missed = False
            if so_far := self._so_far():
                return [*(item for item in self._taken() if not isinstance(item, bytes)), so_far]
        while not self._items and not self.lagging and not self._changed:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._taken()

    def _taken(self) -> list[Item]:
        items, self._items = self._items, []
        self._entries = self._live = 0
        return items

    def drop(self) -> None:
        self._taken()
        self._missed = True


class Broadcast:
    """All watchers, by tape."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._stale: set[Topic] = set()
        self._telling: asyncio.Task[None] | None = None
        self._by_tape: dict[str, set[Subscription]] = {}
        self._everything: set[Subscription] = set()
        # Somebody begins to watch: a page or a chat was opened.
        self.on_watch = Signal[[]]("a watcher")
        # By tape: the run that speaks, and what it has said.
        self._speaking: dict[str, tuple[str, SoFar]] = {}

    @property
    def watchers(self) -> int:
        return sum(map(len, self._by_tape.values())) + len(self._everything)

    def subscribe(self, tape: str | None, topics: Collection[Topic] = ()) -> Subscription:
        """Watch one tape, or, without live events, all of them; then also whether something of
        these topics changes.
        """
        subscription = Subscription(lambda: self._said(tape), topics)
        if tape is None:
            self._everything.add(subscription)
        else:
            self._by_tape.setdefault(tape, set()).add(subscription)
        self.on_watch.send()
        return subscription

    def unsubscribe(self, tape: str | None, subscription: Subscription) -> None:
        if tape is None:
            self._everything.discard(subscription)
            return
        watchers = self._by_tape.get(tape)
        if watchers is not None:
            watchers.discard(subscription)
            if not watchers:
                del self._by_tape[tape]

    def publish(self, appended: Iterable[Appended]) -> None:
        for entry in appended:
            for subscription in self._by_tape.get(entry.tape, ()):
                subscription.push_entry(entry)
            for subscription in self._everything:
                subscription.push_entry(entry)

    def changed(self, topics: Iterable[Topic]) -> None:
        """Tell watchers that something of these is not what it was."""
        if not self._everything:
            return
        self._stale.update(topics)
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            while self._stale:
                stale, self._stale = self._stale, set()
                for subscription in self._everything:
                    subscription.push_changed(stale)
                await self._clock.sleep(PAUSE_MS)
        finally:
            self._telling = None

    def watched(self, tape: str) -> bool:
        return tape in self._by_tape

    def publish_live(self, tape: str, wire: bytes) -> None:
        for subscription in self._by_tape.get(tape, ()):
            subscription.push_live(wire)

    def stream_opened(self, tape: str, run_id: str, so_far: SoFar) -> None:
        """A turn begins: `so_far` gives what it has said whenever somebody wants to know."""
        self._speaking[tape] = run_id, so_far

    def stream_closed(self, tape: str, run_id: str) -> None:
        """A run's turn is over. If it was long in ending, another run speaks by now."""
        if tape in self._speaking and self._speaking[tape][0] == run_id:
            del self._speaking[tape]

    def _said(self, tape: str | None) -> bytes:
        speaking = self._speaking.get(tape) if tape else None
        return speaking[1]() if speaking else b""
