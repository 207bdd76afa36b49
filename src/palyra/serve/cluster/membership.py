"""Membership of a node: a thread that tells the journal's server that the node is there, renews its
lease while it leads, and takes the lease of a leader that is gone.

Beside it a second thread watches the lease by this machine's own clock, because the first one may
be waiting for a server that does not answer.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

from palyra.core.errors import PalyraError, Unavailable
from palyra.core.signals import Signal
from palyra.store import nodes
from palyra.store.lease import Fenced, LeaderLease, now_s
from palyra.store.nodes import LeaseView, NodeIdentity, NodeStore

log = logging.getLogger("palyra.cluster")

# Parts of a lease: how often a leader renews it, and how often the others look.
_RENEWED = 5
_LOOKED = 12
_LOOK_S = 0.25


class Membership:
    """One node's. Signals are sent on the event loop."""

    def __init__(
        self,
        store: NodeStore,
        me: NodeIdentity,
        on_extended: Callable[[float], None],
        *,
        lease_ms: int,
    ) -> None:
        """`on_extended` is told until when this node may lead."""
        self.me = me
        self._on_extended = on_extended
        self._store = store
        self._lease_ms = lease_ms
        self.view: LeaseView | None = None
        self.problem = ""
        self.lease: LeaderLease | None = None
        # Where the other nodes reach this one; empty before it is open.
        self.address = ""
        self._candidate = False
        self._draining = self._joined = False
        self._proof = b""
        self._changed_s = now_s()
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()
        self._soon = threading.Event()
        self._threads: list[threading.Thread] = []
        self.seen, self.led = asyncio.Event(), asyncio.Event()
        # Told when another node leads, or the one that leads has another address.
        self.on_view = Signal[[]]("a node that leads")
        self.on_drain = Signal[[]]("a wish to drain this node")
        # Told on a thread, once, and before anything else is done.
        self.on_lost = Signal[[str]]("a lost lease")

    async def join(self, proof: bytes, *, patient: bool) -> None:
        """Be one of the nodes, or raise ConfigInvalid. `patient`: as soon as the journal's server
        answers.
        """
        self._proof = proof
        try:
            await asyncio.to_thread(self._store.join, self.me, proof)
            self._joined = True
        except Unavailable as error:
            if not patient:
                raise
            self.problem = error.message
        self._start("node-lease", self._beat_forever)

    def be_candidate(self) -> None:
        """Lead, as soon as nobody else does."""
        self._candidate = True
        self._soon.set()

    def open_to_nodes(self, address: str) -> None:
        """Tell the others where to reach this node, which leads and is ready."""
        self.address = address
        self._soon.set()

    def drains(self) -> None:
        self._draining = True
        self._soon.set()

    async def leave(self, *, gone: bool) -> None:
        """Stop: nothing is written any more. Another node may lead at once."""
        await asyncio.to_thread(self._leave, gone)

    def _leave(self, gone: bool) -> None:
        self._ended.set()
        self._soon.set()
        for each in self._threads:
            each.join()
        lease = self.lease
        if lease is not None:
            lease.end()
        try:
            if lease is not None:
                self._store.release(self.me, lease.epoch, gone=gone)
            else:
                self._store.leave(self.me)
        except PalyraError as error:
            log.warning("the node could not say that it leaves: %s", error.message)
        self._store.close()

    def _start(self, name: str, work: object) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _beat_forever(self) -> None:
        while not self._ended.is_set():
            part = _LOOKED if self.lease is None else _RENEWED
            pause_s = self._lease_ms / part / 1000
            try:
                self._beat()
            except Fenced:
                return
            except Exception as error:  # noqa: BLE001  the server is away: asked again
                if not self.problem:
                    log.warning("the nodes cannot be asked: %s", nodes.away(error))
                self.problem, pause_s = nodes.away(error), _LOOK_S
                self._tell(self.on_view)
            self._soon.wait(pause_s)
            self._soon.clear()

    def _beat(self) -> None:
        if not self._joined:
            self._store.join(self.me, self._proof)
            self._joined = True
        if self.lease is None:
            self._look()
        else:
            self._renew(self.lease)
        if self.problem:
            self.problem = ""
            self._tell(self.on_view)

    def _look(self) -> None:
        seen, self.view = self.view, self._store.look(self.me)
        view = self.view
        if seen is None or (seen.epoch, seen.expires_ms) != (view.epoch, view.expires_ms):
            self._changed_s = now_s()
        if seen is None:
            self._loop.call_soon_threadsafe(self.seen.set)
        if seen is None or seen[:3] != view[:3] or seen.shared != view.shared:
            self._tell(self.on_view)
        unchanged_s = now_s() - self._changed_s
        if self._candidate and nodes.may_lead(view, self.me, unchanged_s, self._lease_ms):
            self._take(view)

    def _take(self, view: LeaseView) -> None:
        sent_s = now_s()
        epoch = self._store.take(self.me, view, self._lease_ms)
        if epoch is None:
            return
        log.info("this node leads, epoch %d", epoch)
        self.lease = lease = LeaderLease(epoch, self.on_lost.send, self._on_extended)
        lease.extend(sent_s, self._lease_ms)
        self._start("node-guard", lambda: self._guard(lease))
        self._loop.call_soon_threadsafe(self.led.set)

    def _renew(self, lease: LeaderLease) -> None:
        sent_s = now_s()
        state = "draining" if self._draining else "leading"
        renewal = self._store.renew(self.me, lease.epoch, self.address, state, self._lease_ms)
        if renewal.granted_ms is None:
            lease.lose("another node leads: it has taken the lease of this one")
        else:
            lease.extend(sent_s, renewal.granted_ms)
        if renewal.wish == "drain" and not self._draining:
            self._tell(self.on_drain)

    def _guard(self, lease: LeaderLease) -> None:
        """Stop leading when the lease runs out by our own clock."""
        while not self._ended.wait(min(_LOOK_S, max(0.01, lease.left_s))):
            try:
                lease.check()
            except Fenced:
                return

    def _tell(self, signal: Signal[[]]) -> None:
        self._loop.call_soon_threadsafe(signal.send)
