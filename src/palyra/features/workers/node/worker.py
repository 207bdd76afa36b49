"""The worker: connected as long as it can be, doing what it is given, keeping what came of it until
the daemon has it.

The rule: it works for a daemon only as long as the daemon can know. Nothing heard for most of a
lease: it stops what it does, so that nobody begins the same elsewhere while it still runs here.
"""

import asyncio
import logging
import platform
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, assert_never

import palyra
from palyra.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    PalyraError,
    Unauthenticated,
    Unavailable,
)
from palyra.features.workers.node import dial, renewal
from palyra.features.workers.node.dial import DaemonConnection
from palyra.features.workers.node.execute import Contents, Doing
from palyra.features.workers.node.home import Home
from palyra.features.workers.node.missing_files import MissingFiles
from palyra.features.workers.node.records import Records
from palyra.features.workers.protocol import (
    PROTOCOL,
    Acknowledged,
    Assign,
    Authority,
    Beat,
    CallRefused,
    CallSettled,
    CancelCall,
    Challenge,
    Down,
    Drain,
    Enrolled,
    Hello,
    Leaving,
    NeedContents,
    Piece,
    ProgressReport,
    Renewed,
    RollBack,
    RolledBack,
    TakeBack,
    TookBack,
    Want,
    Welcome,
)
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday

log = logging.getLogger("palyra.features.workers.node")

_BEATS_PER_LEASE = 6
# The part of a lease after which work stops that nobody answers for.
_STOP_AFTER = 0.8
# When it is ended: how long what runs may go on, and how long what came of it may take to be told.
_FINISH_S = 2.0
_LAST_WORDS_S = 2.0
# Things that the daemon asked for at once, beside calls.
_MOST_ASKED = 64
_FIRST_MS, _LONGEST_MS = 200, 5_000
_FINAL = {
    "unauthenticated": Unauthenticated,
    "conflict": Conflict,
    "forbidden": Forbidden,
    "invalid_input": Conflict,
}
Say = Callable[[str], None]


class Worker:
    def __init__(
        self,
        home: Home,
        offered: tuple[str, ...],
        *,
        slots: int,
        say: Say,
        quic: bool = False,
        rehearsal: bool = False,
    ) -> None:
        self._home = home
        self._quic = quic
        self._identity = home.identity()
        self._offered = offered
        self._slots = slots
        self._say = say
        self._clock = Clock()
        self._records = Records(home.state / "calls")
        self._contents = Contents(home.state / "contents")
        self._doing = Doing(home, self._records, self._contents, self._clock, rehearsal=rehearsal)
        self._line: DaemonConnection | None = None
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._attempts: dict[str, int] = {}
        self._missing = MissingFiles(
            self._contents,
            self._assigned,
            lambda assign, why: self._post(renewal.not_begun(assign, why)),
        )
        self._others: set[asyncio.Task[None]] = set()
        self._lease_ms = 30_000
        self._beats: dict[int, int] = {}
        self._answered_ms = self._clock.ticks_ms()
        self._alone: asyncio.Task[None] | None = None
        self._welcomed = False
        # The daemon may hold us for connected, and has not said so yet.
        self._greeting = False
        # Show the certificate from before a renewal: the daemon may not know the next one.
        self._older = False
        self._renewing: asyncio.Task[None] | None = None
        self._said = ""
        self._leaving = asyncio.Event()
        self._ended = False
        # One for each call that runs, also for one that is being stopped.
        self._places = asyncio.Semaphore(slots)
        self._changed = asyncio.Event()

    def leave(self) -> None:
        """Finish what runs, take nothing new, end. Told twice: end now."""
        if self._leaving.is_set():
            for task in self._calls.values():
                task.cancel("the worker was ended")
            self._greeting = False
        self._leaving.set()
        self._post(Leaving())
        self._changed.set()

    def end(self) -> None:
        """End within seconds: what runs is stopped, with everything it started, if it is not done
        by then. Told twice: now.
        """
        if self._leaving.is_set():
            self.leave()
            self._stop()
            return
        self.leave()
        asyncio.get_running_loop().call_later(_FINISH_S, self._stop)

    def _stop(self) -> None:
        for task in self._calls.values():
            task.cancel("the worker was ended")
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._give_up)

    def _give_up(self) -> None:
        """Give up waiting: what the daemon has not confirmed by now is told at the next start."""
        self._ended = True
        self._changed.set()

    async def run(self) -> None:
        """Run until told to leave, or turned away permanently, which is a PalyraError."""
        unknown = set(self._offered) - {spec.name for spec in self._doing.catalogue.specs()}
        if unknown:
            known = ", ".join(spec.name for spec in self._doing.catalogue.specs())
            raise Conflict(f"a worker cannot offer {', '.join(sorted(unknown))}: it has {known}")
        await everyday.run(self._home.tidy)
        await everyday.run(self._contents.tidy)
        link = asyncio.create_task(self._stay_connected())
        done = asyncio.create_task(self._left())
        self._spawn(self._missing.take_in())
        try:
            await asyncio.wait((link, done), return_when=asyncio.FIRST_COMPLETED)
            if link.done():
                link.result()
        finally:
            for task in (link, done, *self._others):
                task.cancel()
            if self._alone is not None:
                self._alone.cancel()
            for task in self._calls.values():
                task.cancel("the worker was ended")
            if self._calls:
                await asyncio.wait(self._calls.values(), timeout=5)

    async def _left(self) -> None:
        await self._leaving.wait()
        # What was done is told first; a daemon that is away gets it from the next start of this
        # worker. Who leaves in the middle of the greeting says goodbye when it is over: it would be
        # taken for lost.
        while not self._ended and (
            self._calls or self._greeting or (self._line is not None and self._records.kept())
        ):
            self._changed.clear()
            await self._changed.wait()
        if self._line is not None:
            self._line.close()

    async def _stay_connected(self) -> None:
        wait_ms = _FIRST_MS
        while True:
            self._welcomed = False
            try:
                await self._connection()
            except Unauthenticated as error:
                if self._older or not self._home.renewed.exists():
                    raise
                # A daemon that was restored from a backup may know the one before and not the next.
                self._older = True
                self._trouble(error.message)
            except (Unavailable, InvalidInput) as error:
                self._trouble(error.message)
            except OSError as error:
                self._trouble(f"the connection broke: {error}")
            wait_ms = _FIRST_MS if self._welcomed else min(wait_ms * 2, _LONGEST_MS)
            await self._clock.sleep(round(wait_ms * (0.5 + self._clock.chance() / 2)))

    async def _connection(self) -> None:
        """One connection from its beginning to its end."""
        line = await self._dial()
        beating: asyncio.Task[None] | None = None
        try:
            hello = await self._hello()
            self._greeting = True
            line.post(hello)
            async with asyncio.timeout(30):
                said = await line.receive()
            if isinstance(said, CallRefused):
                raise _FINAL.get(said.code, Unavailable)(said.message)
            if not isinstance(said, Welcome):
                return
            await everyday.run(partial(self._home.settle, older=self._older))
            self._older = False
            self._welcome(line, said)
            self._greeted()
            beating = asyncio.create_task(self._beat(line))
            while (said := await line.receive()) is not None:
                if isinstance(said, CallRefused):
                    raise _FINAL.get(said.code, Unavailable)(said.message)
                if isinstance(said, Piece):
                    await self._missing.put(said)
                else:
                    self._hear(line, said)
        except TimeoutError:
            self._trouble("the daemon did not answer the greeting")
        except ssl.SSLError as error:
            if "ALERT" not in (error.reason or ""):
                raise
            why = (error.reason or "").lower().replace("_", " ")
            raise Unauthenticated(
                f"the daemon does not take this worker's certificate ({why}): enrol it again"
            ) from None
        finally:
            self._greeted()
            if beating is not None:
                beating.cancel()
            if self._renewing is not None:
                self._renewing.cancel()
            if self._line is line:
                self._line = None
                self._missing.forget_all()
                self._changed.set()
                self._say("the link is down; trying again")
            line.close()

    def _greeted(self) -> None:
        self._greeting = False
        self._changed.set()

    def _trouble(self, message: str) -> None:
        """Report trouble once, however often it is tried again."""
        log.info("not connected: %s", message)
        if message != self._said:
            self._said = message
            self._say(f"not connected: {message}; trying again")

    async def _dial(self) -> DaemonConnection:
        host, port = self._identity.host, self._identity.port
        if not self._quic:
            return await dial.dial(host, port, dial.of(self._home, older=self._older))
        from palyra.features.workers.node import quic as node_quic

        return await node_quic.dial(self._home, host, port, older=self._older)

    async def _hello(self) -> Hello:
        return Hello(
            protocol=PROTOCOL,
            version=palyra.__version__,
            instance=self._identity.instance,
            platform=f"{platform.system()} {platform.machine()} {platform.node()}"[:200],
            tier=await self._doing.tier(),
            tools=self._offered,
            slots=self._slots,
            undoes=True,
            calls=self._records.kept(),
        )

    def _welcome(self, line: DaemonConnection, said: Welcome) -> None:
        self._line, self._lease_ms, self._welcomed = line, said.lease_ms, True
        self._answered_ms = self._clock.ticks_ms()
        if self._alone is not None:
            self._alone.cancel()
        # Anew: the daemon may have another lease by now.
        self._alone = asyncio.create_task(self._stop_when_alone())
        draining = "; it is being drained and gets nothing new" if said.draining else ""
        self._said = ""
        self._say(f"connected as {said.name}{draining}")
        if said.renew_in_ms is not None:
            self._renewing = asyncio.create_task(
                renewal.ask(line, self._home, self._clock, said.renew_in_ms)
            )
        for finished in self._records.results():
            line.post(finished)
        if self._leaving.is_set():
            line.post(Leaving())

    async def _beat(self, line: DaemonConnection) -> None:
        number = 0
        while True:
            number += 1
            self._beats[number] = self._clock.ticks_ms()
            self._beats.pop(number - 100, None)
            line.post(Beat(number=number))
            await self._clock.sleep(max(20, self._lease_ms // _BEATS_PER_LEASE))

    async def _stop_when_alone(self) -> None:
        while True:
            left = self._answered_ms + round(self._lease_ms * _STOP_AFTER) - self._clock.ticks_ms()
            if left > 0:
                await self._clock.sleep(left)
                continue
            for task in self._calls.values():
                task.cancel(
                    f"the daemon was not heard for {self._lease_ms * _STOP_AFTER / 1000:g} s"
                )
            await self._clock.sleep(max(50, self._lease_ms // _BEATS_PER_LEASE))

    def _post(self, message: Any) -> None:
        if self._line is not None:
            self._line.post(message)

    def _hear(self, line: DaemonConnection, said: Down) -> None:
        if isinstance(said, Want | RollBack | TakeBack) and len(self._others) > _MOST_ASKED:
            raise InvalidInput("the daemon asks for too much at once")
        match said:
            case Acknowledged(number=number):
                # From when it was sent: by that time at the latest the daemon has heard of us.
                self._answered_ms = max(self._answered_ms, self._beats.get(number, 0))
            case Assign():
                self._assigned(said)
            case (
                CancelCall(call_id=call_id, attempt=attempt)
                | CallSettled(call_id=call_id, attempt=attempt)
            ):
                self._over(call_id, attempt, settled=isinstance(said, CallSettled))
            case Want(digest=digest):
                self._spawn(self._send(line, digest))
            case RollBack():
                self._spawn(self._roll_back(said))
            case TakeBack():
                self._spawn(self._take_back(line, said))
            case Renewed():
                self._spawn(self._renewed(line, said))
            case Drain(on=on):
                self._say(
                    "being drained: what runs goes on, nothing new comes" if on else "used again"
                )
            case Welcome() | Authority() | Challenge() | Enrolled() | CallRefused() | Piece():
                pass
            case _:
                assert_never(said)

    def _assigned(self, assign: Assign) -> None:
        known = self._records.find(assign.call_id)
        if (
            max(self._attempts.get(assign.call_id, 0), known.attempt if known else 0)
            >= assign.attempt
        ):
            return  # It is said again; we have it.
        others = {
            call_id for call_id, task in self._calls.items() if not task.cancelling()
        } | self._missing.calls
        refused = renewal.why(assign, self._offered, self._slots, len(others - {assign.call_id}))
        if refused:
            log.warning("call %s of the daemon was refused: %s", assign.call_id, refused)
            self._missing.forget(assign.call_id)
            self._post(renewal.not_begun(assign, refused, "denied"))
            return
        missing = self._missing.of(assign)
        if missing:
            self._missing.wait_for(assign)
            self._post(
                NeedContents(call_id=assign.call_id, attempt=assign.attempt, digests=missing)
            )
            return
        self._missing.forget(assign.call_id)
        self._attempts[assign.call_id] = assign.attempt
        self._calls[assign.call_id] = task = asyncio.create_task(
            self._do(assign, self._calls.get(assign.call_id))
        )
        # A task that is cancelled before its first step never gets to say so itself.
        task.add_done_callback(lambda _: self._is_done(assign))

    async def _do(self, assign: Assign, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            # An older attempt, whose lease is over.
            before.cancel("its lease is over")
            await asyncio.wait([before])

        def progress(text: str) -> None:
            if self._line is not None and not self._line.crowded:
                self._line.post(
                    ProgressReport(call_id=assign.call_id, attempt=assign.attempt, text=text)
                )

        try:
            # Those that are being stopped still have their places.
            async with self._places:
                finished = await self._doing.do(assign, progress)
            self._post(finished)
        except Exception as error:
            log.exception("call %s could not be done", assign.call_id)
            if self._records.find(assign.call_id) is None:
                self._post(
                    renewal.not_begun(
                        assign, f"the worker could not write down that it begins: {error}"
                    )
                )

    def _is_done(self, assign: Assign) -> None:
        if self._attempts.get(assign.call_id) == assign.attempt:
            del self._calls[assign.call_id], self._attempts[assign.call_id]
        self._changed.set()

    def _over(self, call_id: str, attempt: int, *, settled: bool) -> None:
        self._missing.forget(call_id, attempt)
        record = self._records.find(call_id)
        running = self._calls.get(call_id)
        if running is not None and self._attempts[call_id] == attempt:
            running.cancel("it was cancelled")
        elif settled and record is not None and record.attempt == attempt:
            # What takes it back may still be asked for.
            self._records.forget(call_id, checkpoint=False)
            self._changed.set()

    async def _send(self, line: DaemonConnection, digest: str) -> None:
        for piece in await everyday.run(self._contents.told, digest):
            await line.send(piece)

    async def _roll_back(self, said: RollBack) -> None:
        running = self._calls.get(said.call_id)
        if running is not None:
            running.cancel("it was cancelled")
            await asyncio.wait([running])
        try:
            changes = await everyday.run(self._doing.roll_back, said.call_id, said.session_id)
        except PalyraError as error:
            self._post(RolledBack(call_id=said.call_id, conflict=error.message[:200]))
            return
        self._post(RolledBack(call_id=said.call_id, changes=changes))

    async def _take_back(self, line: DaemonConnection, said: TakeBack) -> None:
        try:
            took = await everyday.run(self._doing.take_back, said)
        except (PalyraError, OSError) as error:
            message = error.message if isinstance(error, PalyraError) else str(error)
            took = TookBack(ask_id=said.ask_id, failed=message[:200])
        line.post(took)

    async def _renewed(self, line: DaemonConnection, said: Renewed) -> None:
        if not await renewal.take(self._home, said):
            return
        if self._renewing is not None:
            self._renewing.cancel()
        # The daemon holds on to the old one until we come with the new one: when there is nothing
        # to disturb.
        while self._calls or self._records.kept():
            self._changed.clear()
            await self._changed.wait()
        if self._line is line:
            self._say("got a new certificate: connecting with it")
            line.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with suppress(ConnectionError):
                await work

        task = asyncio.create_task(quietly())
        self._others.add(task)
        task.add_done_callback(self._others.discard)
