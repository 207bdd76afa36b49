"""The door to the store: one writer thread with group commit, a few readers.

A caller hands over a *step*, a plain function over a transaction. The writer takes every step that
waits, runs each so that it can be taken back alone, commits once, then resolves them all and tells
`on_commit` what was appended. No caller ever holds a transaction, so cancelling one cannot wedge
the store, and nothing is told to anyone before it is durable.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from palyra.core.errors import Unavailable
from palyra.core.events import AnyEvent, Topic
from palyra.core.signals import Signal
from palyra.store import write_buffer
from palyra.store.active_time import ActiveTime
from palyra.store.dialect import Connection, Dialect, Row
from palyra.store.row_seals import RowSeals
from palyra.store.write_buffer import (
    LONGEST_READ_S,
    NOTHING,
    STALLED_S,
    Standing,
    WriteBuffer,
)
from palyra.system.thread_pool import ThreadPool, carried

log = logging.getLogger("palyra.journal")
T = TypeVar("T")
MOST_STEPS_PER_COMMIT = 512


@dataclass(slots=True)
class Appended:
    """One entry of a step, as the hub and the live conversation want it: decoded event and wire
    bytes, both made once.
    """

    tape: str
    seq: int
    position: int
    time_ms: int
    run_id: str
    kind: str
    event: AnyEvent
    wire: bytes
    principal: str = ""


class Tx:
    """View of the store for a step or a query. `held` is a step's: what its commit has appended and
    not yet written.
    """

    __slots__ = (
        "_alone",
        "_mark",
        "_saved",
        "appended",
        "connection",
        "held",
        "now_ms",
        "pace",
        "seals",
        "signals",
        "touched",
    )

    def __init__(
        self,
        connection: Connection,
        now_ms: int,
        held: WriteBuffer | None = None,
        pace: ActiveTime | None = None,
        seals: RowSeals | None = None,
        *,
        alone: bool = True,
    ) -> None:
        self.pace = pace
        self.seals = seals
        self.connection = connection
        self.now_ms = now_ms
        self.appended: list[Appended] = []
        # Kinds of tasks that this step has work for, and what is not what it was when this is
        # durable.
        self.signals: tuple[str, ...] = ()
        self.touched: tuple[Topic, ...] = ()
        self.held = held
        self._mark = held.mark if held is not None else NOTHING
        # A step with nobody beside it needs no savepoint: if it fails, there is nothing else to
        # keep.
        self._saved = self._alone = alone

    def signal(self, kind: str) -> None:
        """Have the workers told, when this is durable, that there are tasks of a kind."""
        if kind not in self.signals:
            self.signals = (*self.signals, kind)

    def all(self, sql: str, **params: Any) -> list[Row]:
        if self.held is None:
            return self.connection.all(sql, params)
        changes = not sql.startswith("SELECT")
        self._settle(self.held, changes=changes)
        topic = write_buffer.of(sql) if changes else None
        if topic is None or topic in self.touched:
            return self.connection.all(sql, params)
        before = self.connection.changes()
        rows = self.connection.all(sql, params)
        if self.connection.changes() != before:
            self.touched = (*self.touched, topic)
        return rows

    def one(self, sql: str, **params: Any) -> Row | None:
        rows = self.all(sql, **params)
        return rows[0] if rows else None

    def run(self, sql: str, **params: Any) -> None:
        self.all(sql, **params)

    def many(self, sql: str, rows: Sequence[dict[str, Any]]) -> None:
        if self.held is not None:
            self._settle(self.held, changes=True)
        self.connection.many(sql, rows)

    def _settle(self, held: WriteBuffer, *, changes: bool) -> None:
        """Before a statement of the step's own: the store has what was held, and what the step
        changes can be taken back.
        """
        if self._mark != NOTHING:
            held.flush(self._mark)
            self._mark = NOTHING
        own = bool(held)
        if (changes or own) and not self._saved:
            self.connection.savepoint()
            self._saved = True
        if own:
            held.flush()

    def take_back(self) -> None:
        """The step failed: nothing of it stays."""
        if self.held is not None:
            self.held.drop(self._mark)
        if self.pace is not None:
            self.pace.drop()
        if not self._alone:
            self.connection.undo_step()


@dataclass(slots=True)
class _Job:
    step: Callable[[Tx], Any]
    future: asyncio.Future[Any]
    handed_over: float = field(default_factory=time.monotonic)
    result: Any = None
    error: BaseException | None = None
    appended: list[Appended] = field(default_factory=list)
    signals: tuple[str, ...] = ()
    touched: tuple[Topic, ...] = ()


class Database:
    """The journal's database, for one process and one event loop."""

    def __init__(
        self,
        dialect: Dialect,
        clock: Callable[[], int],
        *,
        readers: int = 3,
        pace: ActiveTime | None = None,
    ) -> None:
        self._dialect = dialect
        # None: the clock is taken at its word.
        self._pace = pace
        self._clock = clock
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: threading.Thread | None = None
        self._connection: Connection | None = None
        self._held: WriteBuffer
        self._readers = ThreadPool("journal-read", least=1, most=readers, roams=True)
        self._local = threading.local()
        self._reader_connections: list[Connection] = []
        self._closed = False
        # How many transactions were committed, and how many steps were in them; written by the
        # writer thread only.
        self.commits = 0
        self.steps = 0
        # None: a database in which nobody has rights to protect, that of a replay.
        self.seals: RowSeals | None = None
        self.standing = Standing(dialect.silence)
        self._proving: asyncio.Future[None] | None = None
        self.on_commit = Signal[[list[Appended]]]("a commit")
        self.on_signal = Signal[[tuple[str, ...]]]("work to do")
        self.on_touched = Signal[[tuple[Topic, ...]]]("changed rows")

    def open(self) -> None:
        """Open the writing connection now, so that a damaged or foreign file is an error at start
        and not at first use.
        """
        self._loop = asyncio.get_running_loop()
        self._connection = self._open_writer()
        self._writer = threading.Thread(
            target=self._write_forever, name="journal-write", daemon=True
        )
        self._writer.start()

    @property
    def closed(self) -> bool:
        return self._closed

    def check_lease(self) -> None:
        """Raise Fenced if this daemon may not begin an effect any more: another node leads, or
        may.
        """
        if self._dialect.lease is not None:
            self._dialect.lease.check()

    @property
    def is_shared(self) -> bool:
        """Return whether other nodes have this journal too, and take over what is in it alone."""
        return self._dialect.lease is not None

    @property
    def trouble(self) -> BaseException | None:
        """Error of the last write, if it failed."""
        return self.standing.trouble

    async def close(self) -> None:
        """Finish what was handed over, then close."""
        if self._closed:
            return
        self._closed = True
        self._dialect.stop_waiting()
        self.standing.close()
        self._jobs.put(None)
        writer = self._writer
        if writer is not None:
            await asyncio.get_running_loop().run_in_executor(None, writer.join)
        await asyncio.get_running_loop().run_in_executor(None, self._readers.close)
        for connection in self._reader_connections:
            connection.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def now_ms(self) -> int:
        """Return the timestamp of an entry made now."""
        return self._clock()

    def write(self, step: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Run a step and make it durable. Steps commit in the order of these calls; awaiting is
        only a barrier.
        """
        assert self._loop is not None, "the database is not open"
        future: asyncio.Future[T] = self._loop.create_future()
        # A caller that does not wait for its step must not cause a warning about an unread
        # exception.
        future.add_done_callback(_mark_read)
        if self._closed:
            future.set_exception(Unavailable("the journal is closed: the daemon is shutting down"))
            return future
        self._jobs.put(_Job(step, future))
        self.standing.handed_over(self._loop)
        return future

    async def write_soon(self, step: Callable[[Tx], T]) -> T:
        """The same, but raise Unavailable if a silent disk keeps it waiting. It stays handed over,
        and may yet become durable.
        """
        handed = self.write(step)
        if not (await asyncio.wait([handed], timeout=STALLED_S))[0]:
            raise Unavailable(self.standing.problem or self.standing.silent(STALLED_S))
        return handed.result()

    async def problem(self) -> str:
        """Return why nothing can be written, or nothing. If nothing was written lately, something
        is, to find out.
        """
        if self._closed:
            return "the journal is closed: the daemon is shutting down"
        if not self.standing.known:
            if self._proving is None or self._proving.done():
                self._proving = self.write(_prove)
            if not (await asyncio.wait([self._proving], timeout=STALLED_S))[0]:
                return self.standing.problem or self.standing.silent(STALLED_S)
        return self.standing.problem

    async def read(self, query: Callable[[Tx], T]) -> T:
        """Run a query on a read-only connection. While the disk does not answer, nobody waits for
        it for long.
        """
        if self._closed:
            raise Unavailable("the journal is closed: the daemon is shutting down")
        if not self.standing.is_silent:
            return await self._readers.run(self._read, query)
        try:
            async with asyncio.timeout(LONGEST_READ_S):
                return await self._readers.run(self._read, query)
        except TimeoutError:
            problem = self.standing.problem or self.standing.silent(LONGEST_READ_S)
            raise Unavailable(problem) from None

    def read_from_thread(self, query: Callable[[Tx], T]) -> T:
        """The same for a caller on a thread of its own, never for one on the event loop."""
        if self._closed:
            raise Unavailable("the journal is closed: the daemon is shutting down")
        found: T = self._readers.run_sync(self._read, query)
        return found

    def _read(self, query: Callable[[Tx], T]) -> T:
        try:
            connection = self._reader()
            # One transaction, so that a query of several statements sees one moment.
            connection.begin_read()
            try:
                return query(Tx(connection, self._clock(), seals=self.seals))
            finally:
                connection.end_read()
        except Exception as error:
            raise self._ours(error) from error

    def _reader(self) -> Connection:
        """Return this thread's connection, a new one if the last was lost."""
        connection = cast("Connection | None", getattr(self._local, "connection", None))
        if connection is not None and connection.lost:
            # Forgotten first: a new one may not be had for a while.
            self._local.connection = None
            self._reader_connections.remove(connection)
            connection.close()
            connection = None
        if connection is None:
            connection = self._local.connection = self._dialect.open_reader()
            self._reader_connections.append(connection)
        return connection

    def _write_forever(self) -> None:
        stop = False
        while not stop:
            batch, stop = self._gather()
            if batch:
                self.standing.began(batch[0].handed_over)
                self._commit(batch)
                assert self._loop is not None
                try:
                    self._loop.call_soon_threadsafe(self._settle, batch)
                except RuntimeError:
                    # The loop is gone: nobody is left to be told, and what was committed is on disk.  # noqa: E501
                    return

    def _gather(self) -> tuple[list[_Job], bool]:
        """Return the jobs of the next commit, and whether they are the last. Waits for a first
        step, and takes what is there by then.

        A sync costs the same for one step as for fifty. Nobody waits for more: on one processor
        with the event loop, this thread has its turn when the loop has handed over all that it
        could.
        """
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) >= MOST_STEPS_PER_COMMIT:
                return batch, False
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Job]) -> None:
        try:
            connection = self._connection
            if connection is not None and connection.lost:
                connection.close()
                connection = self._connection = None
            if connection is None:
                connection = self._connection = self._open_writer()
            held = self._held
            if connection.begin():
                held.forget()
            if len(batch) == 1:
                self._run_alone(connection, held, batch[0])
            else:
                for job in batch:
                    self._run_step(connection, held, job)
                held.flush()
                connection.commit()
            if self._pace is not None:
                self._pace.commit()
            self.commits += 1
            self.steps += len(batch)
            self.standing.succeeded(proven=any(job.appended or job.step is _prove for job in batch))
        except BaseException as error:  # noqa: BLE001  every failure of the store must reach every caller of the batch
            self._fail(batch, error)

    def _run_alone(self, connection: Connection, held: WriteBuffer, job: _Job) -> None:
        tx = Tx(connection, self._clock(), held, self._pace, self.seals)
        try:
            job.result = job.step(tx)
        # a library's panic is no Exception: it too is its step's, and not the writer's end
        except BaseException as error:
            if self._dialect.translate(error) is not None:
                raise
            tx.take_back()
            connection.rollback()
            job.error = error
        else:
            held.flush()
            if self._pace is not None:
                self._pace.keep()
            connection.commit()
            job.appended, job.signals, job.touched = tx.appended, tx.signals, tx.touched

    def _run_step(self, connection: Connection, held: WriteBuffer, job: _Job) -> None:
        tx = Tx(connection, self._clock(), held, self._pace, self.seals, alone=False)
        connection.begin_step()
        try:
            job.result = job.step(tx)
        except BaseException as error:  # as above
            if self._dialect.translate(error) is not None:
                raise
            tx.take_back()
            job.error = error
        else:
            if self._pace is not None:
                self._pace.keep()
            job.appended, job.signals, job.touched = tx.appended, tx.signals, tx.touched
        connection.end_step()

    def _fail(self, batch: list[_Job], error: BaseException) -> None:
        """Nothing of this batch is acknowledged. The connection is dropped: after an I/O error its
        state is not trusted.
        """
        connection, self._connection = self._connection, None
        if self._pace is not None:
            self._pace.undo()
        self.standing.failed(self._ours(error))
        if connection is not None:
            for give_up in (connection.rollback, connection.close):
                try:
                    give_up()
                except Exception as second:  # noqa: BLE001  a broken disk may fail these too; the first error is the one to tell
                    error.add_note(f"and then: {second}")
        for job in batch:
            job.result = None
            job.appended, job.signals, job.touched = [], (), ()
            job.error = self._ours(error)

    def _open_writer(self) -> Connection:
        try:
            connection = self._dialect.open_writer()
            self._held = WriteBuffer(connection)
            return connection
        except Exception as error:
            raise self._ours(error) from error

    def _ours(self, error: BaseException) -> BaseException:
        return self._dialect.translate(error) or error

    def _settle(self, batch: list[_Job]) -> None:
        if self.standing.trouble is not None:
            self.standing.tell()
        if appended := [entry for job in batch for entry in job.appended]:
            self.on_commit.send(appended)
        for job in batch:
            if job.signals:
                self.on_signal.send(job.signals)
            if job.touched:
                self.on_touched.send(job.touched)
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(carried(job.error))
            else:
                job.future.set_result(job.result)


def _prove(tx: Tx) -> None:
    tx.connection.prove(tx.now_ms)


def _mark_read(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
