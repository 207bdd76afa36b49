"""Presence of workers, and for how long: links come and go, leases run out.

A link that is cut for a moment changes nothing. A worker of which nothing was heard for a lease's
time is lost: the calls that it held are in doubt from then on, and that is on the tape before
anybody acts on it.

Record of who was turned away at the workers' door. Anybody can knock: what is said again and again
is counted, not repeated.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from palyra.core.errors import Conflict, LimitExceeded, PalyraError, Unavailable
from palyra.core.events import LeftBecause, RefusedWorker, WorkerJoined, WorkerLeft, WorkerRefused
from palyra.core.ids import SYSTEM, SYSTEM_TAPE, CallId
from palyra.core.ports import InDoubt
from palyra.core.signals import Signal
from palyra.features.workers import rows as workers_rows
from palyra.features.workers.connection import RemoteCall, Station, WorkerLink
from palyra.features.workers.protocol import (
    PROTOCOL,
    CallSettled,
    CancelCall,
    Drain,
    HeldCall,
    Hello,
    Want,
    Welcome,
)
from palyra.features.workers.rows import WorkerRow
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

_QUIET_MS = 60_000
_MOST_KNOWN = 1_000


class _Told(Struct):
    until_ms: int
    unsaid: int = 0


class WorkerRefusalLog:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._told: dict[tuple[str, str, str], _Told] = {}
        self.total = 0

    def note(
        self,
        why: RefusedWorker,
        *,
        worker: str = "",
        address: str = "",
        call_id: str = "",
        detail: str = "",
    ) -> None:
        """Put it on the system tape, unless the same was said within the last minute."""
        self.total += 1
        now = self._clock.elapsed_ms()
        # Who only knocks is told apart by address; a worker is known by its name, wherever it comes
        # from.
        about = (why, worker or address, call_id)
        known = self._told.get(about)
        if known is not None and known.until_ms > now:
            known.unsaid += 1
            return
        if len(self._told) >= _MOST_KNOWN:
            self._told = {key: told for key, told in self._told.items() if told.until_ms > now}
        if len(self._told) >= _MOST_KNOWN:
            return  # A flood from a thousand addresses in a minute: its beginning is on the tape.
        self._told[about] = _Told(now + _QUIET_MS)
        event = WorkerRefused(
            why=why,
            worker=worker,
            address=address,
            call_id=CallId(call_id) if call_id else None,
            detail=detail[:500],
            times=1 + (known.unsaid if known else 0),
        )
        self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, [event]))


log = logging.getLogger("palyra.workers")

# A worker may connect so often at once, and then once in this time.
_JOINS_AT_ONCE = 20
_JOIN_EVERY_MS = 3_000


class Presence:
    def __init__(
        self, db: Database, clock: Clock, refusals: WorkerRefusalLog, *, lease_ms: int
    ) -> None:
        self._db = db
        self._clock = clock
        self._refusals = refusals
        self.lease_ms = lease_ms
        self.stations: dict[str, Station] = {}
        # Told of a worker whose tools may be others now.
        self.on_offer = Signal[[WorkerRow]]("a worker's offer")
        # When a worker should ask for its next certificate.
        self.renew_in_ms: Callable[[WorkerRow], int | None] = lambda row: None
        # Told when a link is gone: the rows of workers do not know of links.
        self.on_change = Signal[[]]("changed workers")
        self.halting = False
        self.lost = 0

    async def start(self) -> None:
        """Remember who there is and what they hold. Who held something before gets a whole lease to
        come back with it.
        """
        rows, leases = await self._db.read(
            lambda tx: (workers_rows.listing(tx), workers_rows.held(tx))
        )
        if leases:
            await self._db.write(workers_rows.let_go)
            leases = await self._db.read(workers_rows.held)
        for row in rows:
            if row.state != "revoked":
                self.station(row.name).draining = row.state == "draining"
                self.on_offer.send(row)
        for lease in leases:
            station = self.station(lease.worker)
            held = RemoteCall(
                lease.call_id, lease.attempt, lease.run_id, lease.session_id, lease.tool
            )
            held.since_ms = lease.since_ms
            station.held[lease.call_id] = held
            self.watch(station)

    def halt(self) -> None:
        """The daemon ends. What workers do goes on without it; the next start takes it up where it
        then is.
        """
        self.halting = True
        for station in self.stations.values():
            for held in station.held.values():
                if not held.done.done():
                    held.done.set_exception(InDoubt())
            station.tell()

    def close(self) -> None:
        self.halt()
        for station in self.stations.values():
            for task in (station.watch, *station.sending):
                if task is not None:
                    task.cancel()
            if station.link is not None:
                station.link.close()

    def station(self, name: str) -> Station:
        found = self.stations.get(name)
        if found is None:
            found = self.stations[name] = Station(name)
        return found

    async def join(self, row: WorkerRow, link: WorkerLink, hello: Hello) -> Station:
        """A worker is there. Raises a PalyraError, which it is told, if it cannot be used."""
        station = self.station(row.name)
        self._check(station, link, hello)
        self._check_flapping(station)
        old, station.link, station.welcomed = station.link, link, False
        if old is not None:
            old.close()
        try:
            return await self._greet(station, row, link, hello)
        except BaseException:
            # Whoever was not greeted is not there.
            self.leave(station, link)
            raise

    async def _greet(
        self, station: Station, row: WorkerRow, link: WorkerLink, hello: Hello
    ) -> Station:
        if row.instance and row.instance != hello.instance:
            # Another folder, or a new one: it knows nothing of what the first was given.
            await self.lose(station, list(station.held.values()), "replaced")
        was_away = not station.present
        station.present, station.leaving = True, False
        station.hello, station.heard_ms = hello, self._clock.ticks_ms()
        station.fingerprint = row.fingerprint
        offer = workers_rows.Offer(
            instance=hello.instance,
            version=hello.version,
            platform=hello.platform,
            tier=hello.tier,
            tools=hello.tools,
            slots=hello.slots,
        )
        joined = WorkerJoined(
            worker=row.name,
            version=hello.version,
            platform=hello.platform,
            tier=hello.tier,
            tools=hello.tools,
        )

        def step(tx: Tx) -> WorkerRow:
            workers_rows.seen(tx, row.name, offer)
            if was_away:
                tape.append(tx, SYSTEM_TAPE, f"worker:{row.name}", [joined])
            return workers_rows.get(tx, row.name)

        try:
            now = await self._db.write(step)
        except PalyraError:
            station.present = station.present and not was_away
            raise
        if station.link is not link:
            raise Unavailable("another connection of this worker came meanwhile")
        renew_in_ms = self.renew_in_ms(row)
        link.post(
            Welcome(
                name=row.name,
                lease_ms=self.lease_ms,
                draining=station.draining,
                renew_in_ms=renew_in_ms,
            )
        )
        station.welcomed = True
        self.on_offer.send(now)
        await self._compare(station, hello.calls)
        self.watch(station)
        station.tell()
        return station

    def _check(self, station: Station, link: WorkerLink, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            detail = f"it speaks {hello.protocol}, we speak {PROTOCOL}"
            self._refusals.note("version", worker=station.name, address=link.address, detail=detail)
            raise Conflict(
                f"the worker speaks version {hello.protocol} of the link (palyra {hello.version}),"
                f" the daemon version {PROTOCOL}: install the same palyra on both"
            )
        other = station.hello is not None and station.hello.instance != hello.instance
        if (
            other
            and station.link is not None
            and self._clock.ticks_ms() - station.heard_ms < self.lease_ms
        ):
            self._refusals.note("double", worker=station.name, address=link.address)
            raise Conflict(
                f"{station.name} is connected already, from another folder or machine: stop that"
                " one, or enrol this one by a name of its own"
            )

    def _check_flapping(self, station: Station) -> None:
        """Make a flapping worker wait: each coming and going is on the tape and in the table of
        workers.
        """
        now = self._clock.ticks_ms()
        settled_at = max(station.settled_at, now) + _JOIN_EVERY_MS
        wait_ms = settled_at - now - _JOINS_AT_ONCE * _JOIN_EVERY_MS
        if wait_ms > 0:
            raise LimitExceeded(
                f"{station.name} connects too often: it may come back in {wait_ms / 1000:.0f} s",
                retry_after_ms=wait_ms,
            )
        station.settled_at = settled_at

    async def _compare(self, station: Station, kept: Sequence[HeldCall]) -> None:
        """Compare what the worker has with what it was given."""
        has = {(each.call_id, each.attempt): each.state for each in kept}
        lost = []
        for held in list(station.held.values()):
            match has.pop((held.call_id, held.attempt), None):
                case "lost":
                    lost.append(held)
                case None:
                    held.absent = True
                    station.assign(held)
                case _:
                    held.absent = False
        for digest in station.fetching:
            station.post(Want(digest=digest))
        if lost:
            await self.lose(station, lost, "lost")
        for (call_id, attempt), state in has.items():
            if state == "running":
                # Nobody waits for it any more. What comes of that is answered when it is told.
                station.post(CancelCall(call_id=call_id, attempt=attempt))
            elif state == "lost":
                station.post(CallSettled(call_id=call_id, attempt=attempt))
        if lost:
            for held in lost:
                station.post(CallSettled(call_id=held.call_id, attempt=held.attempt))

    def leave(self, station: Station, link: WorkerLink) -> None:
        """A link is gone. Its worker has until the end of its lease to come back."""
        if station.link is not link:
            return
        station.link = None
        self.on_change.send()
        _answers_nothing(station)
        if station.leaving and not station.held and station.present and not self.halting:
            station.present = False
            left = WorkerLeft(worker=station.name, why="closed")
            self._db.write(
                lambda tx: tape.append(tx, SYSTEM_TAPE, f"worker:{station.name}", [left])
            )

    async def drop(self, name: str) -> None:
        """A worker is no longer one of ours."""
        station = self.station(name)
        if station.link is not None:
            station.link.close()
            station.link = None
            _answers_nothing(station)
        station.draining = False
        await self.lose(station, list(station.held.values()), "revoked")

    def drain(self, name: str, *, on: bool) -> None:
        station = self.station(name)
        station.draining = on
        station.post(Drain(on=on))
        station.tell()

    def watch(self, station: Station) -> None:
        """See to it that somebody notices when nothing is heard of it any more."""
        if station.watch is None or station.watch.done():
            station.heard_ms = max(station.heard_ms, self._clock.ticks_ms())
            station.watch = asyncio.create_task(self._expire(station))

    async def _expire(self, station: Station) -> None:
        while (left := station.heard_ms + self.lease_ms - self._clock.ticks_ms()) > 0:
            await self._clock.sleep(left)
        station.watch = None
        if station.link is not None:
            station.link.close()
            station.link = None
            self.on_change.send()
            _answers_nothing(station)
        await self.lose(station, list(station.held.values()), "lost")

    async def lose(self, station: Station, calls: Sequence[RemoteCall], why: LeftBecause) -> None:
        """Put these calls in doubt from now on: what the worker still says of them comes too
        late.
        """
        for held in calls:
            station.held.pop(held.call_id, None)
        was_there = station.present
        if station.link is None:
            station.present = False
        if not calls and (station.present or not was_there):
            return
        self.lost += len(calls)
        left = WorkerLeft(
            worker=station.name, why=why, calls=tuple(CallId(held.call_id) for held in calls)
        )

        def step(tx: Tx) -> None:
            for held in calls:
                workers_rows.end_lease(tx, held.call_id, held.attempt, "lost")
            tape.append(tx, SYSTEM_TAPE, f"worker:{station.name}", [left])

        try:
            await self._db.write(step)
        except PalyraError as error:
            # Whoever waits is told all the same: a call is settled by what its own tape says.
            log.error("that %s was lost could not be recorded: %s", station.name, error.message)
        except Exception:
            log.exception("that %s was lost could not be recorded", station.name)
        for held in calls:
            if not held.done.done():
                held.done.set_exception(InDoubt())
        station.tell()


def _answers_nothing(station: Station) -> None:
    """Fail everything that waits for an answer on its link, which is gone."""
    waited: list[asyncio.Future[Any]] = [*station.rolling.values(), *station.taking.values()]
    for answer in waited:
        if not answer.done():
            answer.set_exception(Unavailable(f"the worker {station.name} is away"))
