"""Holding messages for a moment, so that several of one sender become one input; then giving them
to the agent, fairly.

A channel works on so many conversations at once and the others wait their turn; a conversation that
is slow holds one place and nobody else up. What is held is rows: a crash costs the wait, not the
message.
"""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from palyra.core.errors import Unavailable
from palyra.features.channels import registry
from palyra.features.channels.model import LONGEST_WAIT_MS, QUIET_MS, due_ms
from palyra.features.channels.registry import Book, Who
from palyra.features.channels.rows import messages as messages_rows
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.run_bridge import Submitting
from palyra.store.database import Database
from palyra.system.clock import Clock

log = logging.getLogger("palyra.channels")

_RETRY_MS = 1_000
# One sender in one place.
Group = tuple[str, str, str, str]


@dataclass
class _Held:
    who: Who
    messages: list[StoredMessage] = field(default_factory=list)
    # By ticks: nobody waits for an hour because the clock was set back.
    first_ms: int = 0
    last_ms: int = 0
    timer: asyncio.Task[None] | None = None


class Holding:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        book: Book,
        submitting: Submitting,
        *,
        quiet_ms: int = QUIET_MS,
        longest_ms: int = LONGEST_WAIT_MS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._book = book
        self._submitting = submitting
        self.quiet_ms = quiet_ms
        self.longest_ms = longest_ms
        self._held: dict[Group, _Held] = {}
        # Conversations that wait for a place, by channel in the order of their turn, and what each
        # has to say.
        self._turns: dict[str, deque[str]] = {}
        self._waiting: dict[tuple[str, str], list[_Held]] = {}
        # Those that have a place.
        self._busy: dict[str, set[str]] = {}
        # The last that was given to each session: the next one waits for it.
        self._last: dict[str, asyncio.Task[None]] = {}
        self._going: set[asyncio.Task[None]] = set()
        submitting.freed = self._freed

    def hold(self, message: StoredMessage, who: Who) -> None:
        group = _group(message)
        held = self._held.get(group)
        now = self._clock.ticks_ms()
        if held is None or held.who.session_key != who.session_key:
            if held is not None:
                self._release(group)
            held = self._held[group] = _Held(who, first_ms=now)
        held.messages.append(message)
        held.last_ms = now
        if message.files or message.inbound.pressed:
            self._release(group)
        elif held.timer is None:
            held.timer = asyncio.create_task(self._wait(group, held))

    async def _wait(self, group: Group, held: _Held) -> None:
        """Sleep until there was quiet; who writes meanwhile makes it longer, up to a point."""
        while (
            left := due_ms(held.first_ms, held.last_ms, self.quiet_ms, self.longest_ms)
            - self._clock.ticks_ms()
        ) > 0:
            await self._clock.sleep(left)
        held.timer = None
        if self._held.get(group) is held:
            self._release(group)

    def _release(self, group: Group) -> None:
        held = self._held.pop(group)
        if held.timer is not None:
            held.timer.cancel()
        self._offer(group[0], held)

    def flush(self, message: StoredMessage) -> None:
        """A command of the same sender follows: what they said before goes first."""
        if _group(message) in self._held:
            self._release(_group(message))

    def _offer(self, connector: str, held: _Held) -> None:
        """A conversation that has a place already needs none more; another one waits its turn."""
        key = held.who.session_key
        if key in self._busy.setdefault(connector, set()):
            self._go(connector, held)
            return
        waiting = self._waiting.setdefault((connector, key), [])
        waiting.append(held)
        if len(waiting) == 1:
            self._turns.setdefault(connector, deque()).append(key)
        self._pump(connector)

    def _pump(self, connector: str) -> None:
        """Give places to those whose turn it is."""
        turns, busy = self._turns.get(connector), self._busy.setdefault(connector, set())
        most = self._book.rules(connector).concurrency
        while turns and len(busy) < most:
            key = turns.popleft()
            given = self._waiting.pop((connector, key), [])
            if given:
                busy.add(key)
            for held in given:
                self._go(connector, held)

    def _go(self, connector: str, held: _Held) -> None:
        key = held.who.session_key
        task = asyncio.create_task(self._give(connector, held, self._last.get(key)))
        self._last[key] = task
        self._going.add(task)

        def done(_: asyncio.Task[None]) -> None:
            self._going.discard(task)
            if self._last.get(key) is task:
                del self._last[key]

        task.add_done_callback(done)

    async def _give(self, connector: str, held: _Held, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        working = False
        while True:
            try:
                working = await self._submitting.submit(held.messages, held.who)
                break
            except Unavailable as error:
                log.warning("messages of channel %s wait: %s", connector, error.message)
                await self._clock.sleep(_RETRY_MS)
            except Exception:
                # The place must not be lost with the message.
                log.exception(
                    "messages of channel %s could be neither given to the agent nor told to have"
                    " failed",
                    connector,
                )
                break
        if not working and not self._submitting.is_working(held.who.session_key):
            self._freed(connector, held.who.session_key)

    def _freed(self, connector: str, key: str) -> None:
        """A conversation has nothing more to do, or waits for a person: its place is another's."""
        self._busy.get(connector, set()).discard(key)
        self._pump(connector)

    async def recover(self) -> None:
        """Recover held messages: those held when the daemon stopped have waited long enough."""
        for message in await self._db.read(partial(messages_rows.open_messages, state="held")):
            identify = partial(
                registry.identify,
                book=self._book,
                connector=message.connector,
                message=message.inbound,
            )
            self.hold(message, await self._db.read(identify))
        for group in list(self._held):
            self._release(group)

    async def close(self) -> None:
        tasks = [
            *self._going,
            *(held.timer for held in self._held.values() if held.timer is not None),
        ]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)


def _group(message: StoredMessage) -> Group:
    return message.connector, message.conversation, message.thread, message.sender
