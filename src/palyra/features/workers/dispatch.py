"""Giving calls to workers and taking what comes of them.

The rule: no effect is lost and none is doubled. A call is leased before it is sent, and a worker
writes down that it begins before it does. So what a worker does not have was never begun and may be
sent again; what it has is waited for; and what it lost while it ran, or brings after its lease, is
in doubt.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from palyra.core.errors import Conflict, Forbidden, InvalidInput, Unavailable
from palyra.core.events import FileChange, ToolFinished
from palyra.core.ports import CallContext, InDoubt
from palyra.features.workers import rows
from palyra.features.workers.connection import Fetching, RemoteCall, Station
from palyra.features.workers.file_transfer import digest
from palyra.features.workers.presence import Presence
from palyra.features.workers.protocol import (
    Assign,
    CallSettled,
    CancelCall,
    Finished,
    RollBack,
    RolledBack,
    Shipped,
    TakeBack,
    TookBack,
    Want,
)
from palyra.features.workers.rows import Lease
from palyra.features.workers.tools import Errand
from palyra.store.database import Appended, Database, Tx
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday
from palyra.tools.sandbox.command import STRENGTH

# How long a call waits for a worker that is not there.
_WAIT_S = 10.0
_ROLL_BACK_S = 60.0
# What a call may take beyond the time that was shown: to say what came of it, to pack what it made,
# to send a file.
_GRACE_MS = 5_000
_PACK_MS = 10_000
_SENT_MS = 10_000
# The slowest line that files are waited for.
_BYTES_PER_MS = 256


class Dispatcher:
    def __init__(
        self, db: Database, clock: Clock, presence: Presence, *, wait_s: float = _WAIT_S
    ) -> None:
        self._db = db
        self._clock = clock
        self._presence = presence
        self._wait_s = wait_s

    async def perform(
        self, worker: str, errand: Errand, context: CallContext, *, resume: bool
    ) -> Finished:
        station = self._presence.station(worker)
        held = station.held.get(context.call_id)
        if held is None:
            before = await self._db.read(lambda tx: rows.find_lease(tx, context.call_id))
            if before is not None and (
                before.state == "held" or (resume and before.attempt >= context.attempt)
            ):
                raise InDoubt
            await self._ready(station, errand)
            held = await self._claim(station, errand, context)
        elif held.done.done() and held.done.exception() is not None:
            raise InDoubt
        held.progress = context.progress
        if held.assign is None:
            _prepare(held, errand)
        if held.absent:
            station.assign(held)
        try:
            await self._in_time(station, held, held.done, _limit_ms(errand))
            return held.done.result()
        except asyncio.CancelledError:
            if not self._presence.halting:
                self._give_up(station, held)
            raise

    async def _ready(self, station: Station, errand: Errand) -> None:
        """Wait until the worker is there and has a free place; a clear error if it cannot do this
        at all.
        """
        while True:
            await self._connected(station)
            if station.draining or station.leaving or self._presence.halting:
                raise Unavailable(
                    f"the worker {station.name} takes nothing new: it is being drained, or ends"
                )
            if station.free:
                break
            await station.changed.wait()
        hello = station.hello
        assert hello is not None
        if errand.tool not in hello.tools:
            raise Unavailable(f"the worker {station.name} does not offer {errand.tool} any more")
        if STRENGTH.index(hello.tier) < STRENGTH.index(errand.tier):
            raise Forbidden(
                f"{errand.tool} needs sandbox tier {errand.tier}, and the worker {station.name}"
                f" gives tier {hello.tier}"
            )

    async def _connected(self, station: Station) -> None:
        if station.there:
            return
        try:
            async with asyncio.timeout(self._wait_s):
                while not station.there:
                    await station.changed.wait()
        except TimeoutError:
            raise Unavailable(
                f"the worker {station.name} is not connected: start `palyra worker run` there, or"
                " use another tool"
            ) from None

    async def _claim(self, station: Station, errand: Errand, context: CallContext) -> RemoteCall:
        held = RemoteCall(
            context.call_id, context.attempt, context.run_id, context.session_id, errand.tool
        )
        held.since_ms = self._clock.now_ms()
        lease = Lease(
            held.call_id,
            station.name,
            held.attempt,
            held.session_id,
            held.run_id,
            held.tool,
            "held",
            held.since_ms,
            0,
        )
        # In its place before it is durable, so that two do not take the last free one.
        station.held[held.call_id] = held
        try:
            claimed = await self._db.write(lambda tx: rows.claim(tx, lease))
        except BaseException:
            station.held.pop(held.call_id, None)
            # Perhaps it was written. It was not sent, and ends with whoever waited for it.
            self._db.write(lambda tx: rows.end_lease(tx, held.call_id, held.attempt, "cancelled"))
            raise
        if not claimed:
            station.held.pop(held.call_id, None)
            raise Conflict(f"the call {held.call_id} is held already")
        _prepare(held, errand)
        held.absent = True
        return held

    def _give_up(self, station: Station, held: RemoteCall) -> None:
        """Give up a call: the worker is told to stop, at once or when it is back."""
        if station.held.pop(held.call_id, None) is None:
            return
        station.post(CancelCall(call_id=held.call_id, attempt=held.attempt))
        self._db.write(lambda tx: rows.end_lease(tx, held.call_id, held.attempt, "cancelled"))
        station.tell()

    def settled(self, tx: Tx, call_id: str) -> None:
        """End a call's lease, in the step that puts its result on the tape."""
        found = rows.find_lease(tx, call_id)
        if found is not None:
            rows.end_lease(tx, call_id, found.attempt, "done")

    def on_commit(self, appended: Sequence[Appended]) -> None:
        """A result is durable: the worker may forget it, or stop what nobody waits for."""
        if not self._presence.stations:
            return
        for entry in appended:
            if entry.kind == "tool.finished" and isinstance(entry.event, ToolFinished):
                for station in self._presence.stations.values():
                    held = station.held.get(entry.event.call_id)
                    if held is not None:
                        self._forget(station, held)

    def _forget(self, station: Station, held: RemoteCall) -> None:
        if not held.done.done():
            # Its run was ended by somebody, and not by what came of the call.
            self._give_up(station, held)
            return
        station.held.pop(held.call_id, None)
        station.post(CallSettled(call_id=held.call_id, attempt=held.attempt))
        station.tell()

    async def fetch(
        self, worker: str, context: CallContext, files: tuple[Shipped, ...]
    ) -> dict[str, bytes]:
        """Contents that a worker has made, checked against the digests it named."""
        station = self._presence.station(worker)
        found: dict[str, bytes] = {}
        for each in files:
            if each.sha256 in found:
                continue
            fetching = station.fetching.setdefault(each.sha256, Fetching(each.size))
            station.post(Want(digest=each.sha256))
            try:
                content = await self._arrived(station, context.call_id, fetching)
            finally:
                station.fetching.pop(each.sha256, None)
            if (
                content is None
                or len(content) != each.size
                or await everyday.run(digest, content) != each.sha256
            ):
                raise InvalidInput(
                    f"the worker {worker} named {each.path[:200]!r} and did not send it whole;"
                    " nothing was written"
                )
            found[each.sha256] = content
        return found

    async def _arrived(self, station: Station, call_id: str, fetching: Fetching) -> bytes | None:
        held = station.held.get(call_id)
        if held is None:
            raise InDoubt  # The lease ran out on the way.
        await self._in_time(station, held, fetching.done, _SENT_MS + _on_the_way_ms(fetching.size))
        return fetching.done.result()

    async def _in_time(
        self, station: Station, held: RemoteCall, awaited: "asyncio.Future[Any]", limit_ms: int
    ) -> None:
        """Wait for something that a worker owes us for a call. Raises InDoubt if the call was lost,
        or if it took too long.

        The daemon keeps the time by itself: a worker that does not is treated as one whose lease is
        over. A link that is cut for a moment is forgiven, for a lease's time in all.
        """
        begun = self._clock.ticks_ms()
        due, forgiven = begun + limit_ms, begun + limit_ms + self._presence.lease_ms
        while not awaited.done():
            holds = held.call_id in station.held
            # What a call itself is lost by is said in its own future, once that is on the tape.
            if awaited is not held.done and (not holds or self._presence.halting):
                raise InDoubt
            now = self._clock.ticks_ms()
            if now >= due:
                if holds and (station.there or now >= forgiven):
                    await self._overdue(station, held)
                    raise InDoubt
                due = now + _GRACE_MS
            changed = asyncio.ensure_future(station.changed.wait())
            passed = asyncio.ensure_future(self._clock.sleep(max(1, due - now)))
            try:
                await asyncio.wait((awaited, changed, passed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                passed.cancel()

    async def _overdue(self, station: Station, held: RemoteCall) -> None:
        station.post(CancelCall(call_id=held.call_id, attempt=held.attempt))
        await self._presence.lose(station, [held], "lost")

    async def roll_back(self, worker: str, context: CallContext) -> tuple[FileChange, ...]:
        """Have a worker put back what a call changed there. Raises a PalyraError if that is not
        certain.
        """
        station = self._presence.station(worker)
        await self._connected(station)
        rolling: asyncio.Future[RolledBack] = asyncio.get_running_loop().create_future()
        station.rolling[context.call_id] = rolling
        station.post(RollBack(call_id=context.call_id, session_id=context.session_id))
        try:
            async with asyncio.timeout(_ROLL_BACK_S):
                said = await rolling
        except TimeoutError:
            raise Unavailable(
                f"the worker {worker} did not say that it has put back what it changed"
            ) from None
        finally:
            station.rolling.pop(context.call_id, None)
        if said.conflict:
            raise Conflict(said.conflict)
        return said.changes

    async def take_back(
        self, worker: str, session_id: str, calls: tuple[str, ...], *, look: bool, force: bool
    ) -> TookBack:
        """Have a worker put back what calls changed there that are over. Raises a PalyraError if it
        cannot be asked.
        """
        station = self._presence.station(worker)
        if not station.there or station.hello is None:
            raise Unavailable(f"the worker {worker} is not connected")
        if not station.hello.undoes:
            raise Unavailable(
                f"the worker {worker} keeps nothing to undo with: install the same palyra there"
            )
        ask_id = self._clock.new_id()
        taking: asyncio.Future[TookBack] = asyncio.get_running_loop().create_future()
        station.taking[ask_id] = taking
        station.post(
            TakeBack(ask_id=ask_id, session_id=session_id, calls=calls, look=look, force=force)
        )
        try:
            async with asyncio.timeout(_ROLL_BACK_S):
                return await taking
        except TimeoutError:
            raise Unavailable(
                f"the worker {worker} did not say whether it has put back what it changed: try"
                " again"
            ) from None
        finally:
            station.taking.pop(ask_id, None)


def _on_the_way_ms(size: int) -> int:
    return size // _BYTES_PER_MS


def _limit_ms(errand: Errand) -> int:
    """Return how long a call is waited for: the time it was given, and its files' way there."""
    files = sum(len(parcel.content) for parcel in errand.parcels)
    return errand.time_ms + _GRACE_MS + (_PACK_MS if errand.results else 0) + _on_the_way_ms(files)


def _prepare(held: RemoteCall, errand: Errand) -> None:
    held.assign = Assign(
        call_id=held.call_id,
        attempt=held.attempt,
        session_id=held.session_id,
        tool=errand.tool,
        arguments=errand.arguments,
        time_ms=errand.time_ms,
        files=tuple(parcel.about for parcel in errand.parcels),
        results=errand.results,
    )
    held.contents = {parcel.about.sha256: parcel.content for parcel in errand.parcels}
