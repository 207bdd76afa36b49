"""Keeping each configured channel connected: one task for each, which connects again with growing
pauses when a connection is lost.

Nothing here knows what is said. What comes in goes through the door to the inbox; who wants to send
waits until a channel stands.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from palyra.core.errors import Unavailable
from palyra.core.signals import Signal
from palyra.features.channels.contract import ConnectionRefused, Connector, Lost, Me, TakenMessage
from palyra.features.channels.model import Inbound
from palyra.features.channels.registry import Book
from palyra.features.channels.rows import messages
from palyra.features.channels.views import ConnectionState, ConnectionStatus
from palyra.features.notices.service import Notices
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.channels")

FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 60_000
# How often somebody who looks is told of signs of life.
_SIGN_MS = 60_000
# A connection that stood for so long was a good one: the next pause is short again.
_GOOD_MS = 60_000


@dataclass
class _Line:
    connector: Connector
    task: asyncio.Task[None] | None = None
    stands: asyncio.Event = field(default_factory=asyncio.Event)
    state: ConnectionState = "connecting"
    detail: str = ""
    me: Me = Me(account="")  # noqa: RUF009 - frozen
    connects: int = 0
    since_ms: int = 0
    heard_ms: int = 0
    shown_ms: int = 0


class Connections:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        redactor: Redactor,
        book: Book,
        notices: Notices,
        take: Callable[[str, Inbound, str | None], Awaitable[TakenMessage]],
    ) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor
        self._book = book
        self._notices = notices
        self._take = take
        self._lines: dict[str, _Line] = {}
        # Set and replaced whenever something changes, for whoever waits to send.
        self._changed = asyncio.Event()
        # Told when a connection is not as it was.
        self.on_change = Signal[[]]("changed connections")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def add(self, connector: Connector) -> None:
        """Know a channel: what is to be said there can be put into its words."""
        self._lines[connector.name] = _Line(connector, since_ms=self._clock.now_ms())

    def begin(self) -> None:
        """Connect those that are not connected yet."""
        for line in self._lines.values():
            if line.task is None:
                line.task = asyncio.create_task(self._keep(line))

    async def shut(self, name: str) -> None:
        line = self._lines.pop(name, None)
        if line is None:
            return
        if line.task is not None:
            line.task.cancel()
            await asyncio.wait([line.task], timeout=2.0)
        await line.connector.close()
        self.on_change.send()

    async def close(self) -> None:
        await asyncio.gather(*(self.shut(name) for name in list(self._lines)))

    def connector(self, name: str) -> Connector | None:
        line = self._lines.get(name)
        return line.connector if line is not None else None

    def called(self, name: str) -> tuple[str, ...]:
        """Return the names of the agent there."""
        line = self._lines.get(name)
        return line.me.names if line is not None else ()

    def status(self, name: str) -> ConnectionStatus:
        line = self._lines.get(name)
        if line is None:
            return ConnectionStatus(state="off")
        return ConnectionStatus(
            state=line.state,
            detail=line.detail,
            account=line.me.account,
            place=line.me.place,
            connects=line.connects,
            since_ms=line.since_ms,
            heard_ms=line.heard_ms,
        )

    def changed(self) -> None:
        """Announce a change of something that sending depends on."""
        before, self._changed = self._changed, asyncio.Event()
        before.set()
        self.on_change.send()

    async def ready(self, name: str) -> Connector:
        """Wait until a channel stands and is not paused."""
        while True:
            line = self._lines.get(name)
            if line is not None and line.state == "connected" and not self._book.is_paused(name):
                return line.connector
            await self._changed.wait()

    async def _keep(self, line: _Line) -> None:
        failures = 0
        while True:
            began = self._clock.now_ms()
            asked_ms = 0
            try:
                self._is(line, "connecting", line.detail)
                await line.connector.serve(_Door(self, line))
                detail = "the platform closed the connection"
            except Lost as error:
                detail, asked_ms = str(error), error.retry_after_ms
            except ConnectionRefused as error:
                self._is(line, "failed", self._redactor.redact_head(str(error), 300))
                log.error("channel %s is refused: %s", line.connector.name, line.detail)
                await self._tell_of(line)
                return
            except (
                Exception
            ) as error:  # a library's surprise is a lost connection, and is said to be one
                log.warning("channel %s broke: %s", line.connector.name, error, exc_info=error)
                detail = f"{type(error).__name__}: {error}"
            failures = (
                1
                if line.stands.is_set() and self._clock.now_ms() - began > _GOOD_MS
                else failures + 1
            )
            line.stands.clear()
            self._is(line, "lost", self._redactor.redact_head(detail, 300))
            pause = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(failures - 1, 10))
            await self._clock.sleep(max(asked_ms, int(pause * (0.5 + self._clock.chance() / 2))))

    async def _tell_of(self, line: _Line) -> None:
        """The owner hears once a day of a channel that does not work and will not by itself."""
        name, day = line.connector.name, self._clock.now_ms() // 86_400_000
        text = f"The channel {name} does not work: {line.detail}. Then: palyra channels test {name}"
        try:
            await self._notices.tell("channel", f"failed:{name}:{day}", text, "#/channels")
        except Unavailable as error:
            log.warning("nobody could be told of channel %s: %s", name, error.message)

    def _is(self, line: _Line, state: ConnectionState, detail: str = "") -> None:
        if line.state != state:
            line.since_ms = self._clock.now_ms()
        line.state, line.detail = state, detail
        self.changed()

    def _stands(self, line: _Line, me: Me) -> None:
        line.me = me
        line.connects += 1
        line.heard_ms = self._clock.now_ms()
        line.stands.set()
        self._is(line, "connected")

    def _alive(self, line: _Line) -> None:
        line.heard_ms = self._clock.now_ms()
        if line.heard_ms - line.shown_ms >= _SIGN_MS:
            line.shown_ms = line.heard_ms
            self.on_change.send()

    async def _taken(self, line: _Line, message: Inbound, cursor: str | None) -> TakenMessage:
        self._alive(line)
        return await self._take(line.connector.name, message, cursor)


class _Door:
    """The door that a connector is given: see the contract."""

    def __init__(self, connections: Connections, line: _Line) -> None:
        self._connections = connections
        self._line = line

    async def connected(self, me: Me) -> None:
        self._connections._stands(self._line, me)

    async def take(self, message: Inbound, *, cursor: str | None = None) -> TakenMessage:
        return await self._connections._taken(self._line, message, cursor)

    async def remember(self, cursor: str) -> None:
        await self._connections._db.write(
            partial(messages.remember, connector=self._line.connector.name, cursor=cursor)
        )

    async def recall(self) -> str:
        return await self._connections._db.read(
            partial(messages.recall, connector=self._line.connector.name)
        )

    def alive(self) -> None:
        self._connections._alive(self._line)
