"""One worker as the daemon sees it: its link, if there is one, what it offers, and the calls that
it holds.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from palyra.features.workers.protocol import (
    Assign,
    Down,
    Finished,
    Hello,
    Piece,
    RolledBack,
    TookBack,
)


class WorkerLink(Protocol):
    """A connection that carries messages, whatever it is made of."""

    @property
    def address(self) -> str: ...

    def post(self, message: Down) -> None:
        """Hand a small message over, without waiting. A peer that does not read is cut off."""
        ...

    async def send(self, message: Down) -> None:
        """The same for large ones: waits while the peer is slow."""
        ...

    def close(self) -> None: ...


class RemoteCall:
    """A call at a worker. `done` gets what came of it, or InDoubt."""

    def __init__(self, call_id: str, attempt: int, run_id: str, session_id: str, tool: str) -> None:
        self.call_id = call_id
        self.attempt = attempt
        self.run_id = run_id
        self.session_id = session_id
        self.tool = tool
        self.assign: Assign | None = None
        self.contents: dict[str, bytes] = {}
        self.progress: Callable[[str], None] = lambda text: None
        self.done: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
        # Whoever waits for it may have gone.
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())
        # The worker does not have it: it was never begun there.
        self.absent = False
        self.since_ms = 0


class Fetching:
    """A content on its way from a worker, of as many bytes as it said and no more."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.data = bytearray()
        self.done: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def add(self, piece: Piece) -> None:
        """Put a part where it belongs. What does not follow the part before is passed over: it is
        asked for again.
        """
        if self.done.done():
            return
        if piece.gone:
            self.done.set_result(None)
            return
        if piece.offset == 0:
            self.data.clear()
        if piece.offset != len(self.data):
            return
        if len(self.data) + len(piece.data) > self.size:
            self.data.clear()
            self.done.set_result(None)
            return
        self.data += piece.data
        if piece.last:
            self.done.set_result(bytes(self.data))


class Station:
    """`present` since it joined until its leases ran out or it said goodbye: a link that is cut for
    a moment changes nothing.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.link: WorkerLink | None = None
        # Whether it was greeted on that link: before that nothing else is said there.
        self.welcomed = False
        self.hello: Hello | None = None
        # Of the certificate that its link was opened with.
        self.fingerprint = ""
        self.present = False
        self.draining = False
        self.leaving = False
        self.heard_ms = 0
        # When it may connect as often as ever again.
        self.settled_at = 0
        self.held: dict[str, RemoteCall] = {}
        self.fetching: dict[str, Fetching] = {}
        self.rolling: dict[str, asyncio.Future[RolledBack]] = {}
        self.taking: dict[str, asyncio.Future[TookBack]] = {}
        self.changed = asyncio.Event()
        self.watch: asyncio.Task[None] | None = None
        self.sending: set[asyncio.Task[None]] = set()

    @property
    def there(self) -> bool:
        return self.link is not None and self.welcomed

    @property
    def free(self) -> bool:
        return self.there and self.hello is not None and len(self.held) < self.hello.slots

    def tell(self) -> None:
        """Wake whoever waits: something has changed."""
        self.changed.set()
        self.changed = asyncio.Event()

    def post(self, message: Down) -> None:
        if self.link is not None and self.welcomed:
            self.link.post(message)

    def assign(self, held: RemoteCall) -> None:
        """Send a call, if it is known what and to whom; else it is sent as soon as both are."""
        if (
            held.assign is not None
            and self.link is not None
            and self.welcomed
            and held.call_id in self.held
        ):
            held.absent = False
            self.link.post(held.assign)
