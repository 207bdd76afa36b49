"""A node of a journal that several daemons share: it stands by and passes on what people ask, until
it is its turn to lead. It leads once in the life of its process, and begins anew afterwards.
"""

import asyncio
import logging
import os
import signal
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import palyra
from palyra.api import listen_sockets
from palyra.api.exposure import Exposure
from palyra.api.guard import HostCheck
from palyra.api.http_server import HttpServer, ServedApp
from palyra.api.limits import ApiLimits
from palyra.core import ids
from palyra.core.errors import ConfigInvalid, Unavailable
from palyra.serve import restart
from palyra.serve.cluster.keys import ClusterKeys, read_secret
from palyra.serve.cluster.membership import Membership
from palyra.serve.cluster.passing import LinkedApp, PassingApp
from palyra.serve.cluster.shared_home import SharedHome
from palyra.serve.config import Loaded
from palyra.store.database import Appended, Database
from palyra.store.lease import LeaderLease
from palyra.store.nodes import NodeIdentity, NodeStore, place_of
from palyra.store.sqlite_schema import MIGRATIONS
from palyra.system.private_files import write_private

log = logging.getLogger("palyra.cluster")

_NODE_ID = "node.id"
_FIRST_S = 3.0
_PULL_S = 10.0
_PUSH_S = 1.0
_ENDING_S = 5.0
_RETRY_MS = 1_000


class ClusterNode:
    """One node. `ends` is told why it must end at once, on any thread; it does not come back."""

    def __init__(
        self,
        loaded: Loaded,
        address: str,
        keys: ClusterKeys,
        policies: Path,
        ends: Callable[[str], None],
    ) -> None:
        given = loaded.config.cluster
        self._given = given
        self._keys = keys
        self._files_store = NodeStore(address)
        self._shared = SharedHome(loaded.home, policies, self._files_store, keys)
        node_id = _node_id(loaded.home)
        me = NodeIdentity(
            node_id,
            given.name or f"{socket.gethostname()}-{node_id[-4:].lower()}",
            palyra.__version__,
            place_of(loaded.home),
            MIGRATIONS[-1].number,
        )
        self.member = Membership(
            NodeStore(address), me, restart.tell_lease, lease_ms=given.lease_ms
        )
        self.member.on_lost.connect(ends)
        self._tasks: list[asyncio.Task[None]] = []
        self._link: HttpServer | None = None
        self._push_soon = asyncio.Event()
        self.drained = False

    @property
    def name(self) -> str:
        return self.member.me.name

    @property
    def lease(self) -> LeaderLease:
        assert self.member.lease is not None, "the node does not lead"
        return self.member.lease

    async def join(self) -> None:
        await self.member.join(self._keys.proof, patient=restart.began_anew())
        self.member.be_candidate()
        # The first of all leads at once, and nobody sees it stand by.
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_S):
                await self.member.seen.wait()
                if self._may_lead_now():
                    await self.member.led.wait()

    def _may_lead_now(self) -> bool:
        view = self.member.view
        return view is not None and (not view.holder or view.place == self.member.me.place)

    @property
    def leads(self) -> bool:
        return self.member.led.is_set()

    def leader(self) -> str:
        """Return the address of the node that leads, or raise Unavailable."""
        view = self.member.view
        if self.member.problem:
            raise Unavailable(self.member.problem, retry_after_ms=_RETRY_MS)
        if view is None or not view.holder or not view.address or view.now_ms > view.expires_ms:
            raise Unavailable(
                "no node leads at this moment: another one takes over within seconds",
                retry_after_ms=_RETRY_MS,
            )
        return view.address

    async def stand_by(
        self,
        listener: socket.socket,
        exposed: Exposure,
        limits: ApiLimits,
        tls: ssl.SSLContext | None,
        ready: Callable[[], None],
    ) -> bool:
        """Pass on what people ask until this node leads. False: it was told to end."""
        port = listener.getsockname()[1]
        app = PassingApp(HostCheck(exposed, (port,)), self.leader, self._keys, palyra.__version__)
        server = HttpServer(app, limits)
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        seen: list[str] = []

        def viewed() -> None:
            """Who is asked is cut off when another node leads."""
            view = self.member.view
            now = f"{view.epoch} {view.holder}" if view and not self.member.problem else ""
            if seen and now and seen[-1] != now:
                app.cut()
            if now:
                seen[:] = [now]

        leave = self.member.on_view.connect(viewed)
        pulling = asyncio.create_task(self._keep_pulling())
        # Whoever connects between this server and the leader's waits in the listener.
        serving = asyncio.create_task(server.run_on(listener.dup(), ready, tls))
        waiting = [asyncio.create_task(each.wait()) for each in (self.member.led, ended)]
        try:
            await asyncio.wait([*waiting, serving], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
        finally:
            leave()
            for each in (*waiting, pulling):
                each.cancel()
            app.cut()
            server.stop()
            server.stop()
            await asyncio.wait([serving, pulling], timeout=_ENDING_S)
            await app.end()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        return self.leads and not ended.is_set()

    async def _keep_pulling(self) -> None:
        while True:
            try:
                await self.pull()
            except Exception as error:  # noqa: BLE001  tried again
                log.warning("the files of the nodes could not be had: %s", error)
            await asyncio.sleep(_PULL_S)

    async def pull(self) -> None:
        """Have the files that the nodes share."""
        view = self.member.view
        if view is not None and view.shared:
            await asyncio.to_thread(self._shared.pull)

    async def lead(self, app: ServedApp, limits: ApiLimits, db: Database) -> None:
        """Open the link for the other nodes, and keep for them what changes in this home."""
        lease = self.lease
        if not await asyncio.to_thread(partial(self._shared.push, lease.epoch, first=True)):
            lease.lose("another node leads: it has taken the lease of this one")
        host, _, port = self._given.listen.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ConfigInvalid(
                f"cluster.listen is {self._given.listen!r}: it is an address and a port",
                key="cluster.listen",
            )
        bound = listen_sockets.bind(
            host.removeprefix("[").removesuffix("]"),
            int(port),
            tls=True,
            setting="cluster.listen",
        )
        self._link = server = HttpServer(LinkedApp(app), limits)
        opened = asyncio.Event()
        self._tasks.append(
            asyncio.create_task(server.run_on(bound, opened.set, self._keys.listening()))
        )
        await opened.wait()
        address = self._given.address or _called(host, bound.getsockname()[1])
        self.member.open_to_nodes(address)
        self._tasks.append(asyncio.create_task(self._keep_pushing(lease)))
        db.on_commit.connect(self._changed)

    def _changed(self, appended: Sequence[Appended]) -> None:
        """Look at once when somebody has changed settings, policies, skills or keys."""
        if any(entry.kind == "admin.changed" for entry in appended):
            self._push_soon.set()

    async def _keep_pushing(self, lease: LeaderLease) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PUSH_S):
                    await self._push_soon.wait()
            self._push_soon.clear()
            await self._push(lease)

    async def _push(self, lease: LeaderLease) -> None:
        try:
            await asyncio.to_thread(self._shared.push, lease.epoch)
        except Exception as error:  # noqa: BLE001  tried again
            log.warning("changed files could not be kept for the other nodes: %s", error)

    def drain(self, stop: Callable[[], None]) -> None:
        """Hand over: end as when the daemon is stopped, and stand by afterwards."""
        log.info("this node hands over")
        self.drained = True
        self.member.drains()
        stop()

    async def close_link(self) -> None:
        """Take nothing more from the other nodes: they answer that nobody leads at this moment."""
        self.member.open_to_nodes("")
        for each in self._tasks[1:]:
            each.cancel()
        if self._link is not None:
            self._link.stop()
            self._link.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """End as a node; if it led, another one may at once."""
        if self.member.lease is not None:
            await self._push(self.member.lease)
        await self.member.leave(gone=not self.drained)
        self._files_store.close()


def node_of(
    loaded: Loaded,
    env: Mapping[str, str],
    policies: Path,
    address: str,
    ends: Callable[[str], None],
) -> ClusterNode:
    """Return this daemon as a node, or raise ConfigInvalid."""
    keys = ClusterKeys(read_secret(loaded.config.cluster.secret, env))
    return ClusterNode(loaded, address, keys, policies, ends)


def _node_id(home: Path) -> str:
    path = home / _NODE_ID
    if not path.exists():
        import time

        write_private(path, ids.make(int(time.time() * 1000), os.urandom(10)).encode())
    return ids.check(path.read_text("ascii").strip(), str(path))


def _called(host: str, port: int) -> str:
    """Return how other nodes reach a listener."""
    name = socket.getfqdn() if host in ("0.0.0.0", "::", "[::]") else host
    return f"[{name}]:{port}" if ":" in name and not name.startswith("[") else f"{name}:{port}"
