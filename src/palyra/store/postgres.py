"""PostgreSQL as the journal's database: connections, statements as it takes them, commits whose
outcome got lost, and what its errors mean to a person.

The rule: a commit whose answer never came is neither done nor undone until the server says which.
Steps wait for that; nothing is written twice because a connection broke.
"""

import logging
import re
import select
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import adapt, errors, pq
from psycopg.types.numeric import Int8, Int8BinaryDumper, NumericBinaryLoader

from palyra.core.errors import ConfigInvalid, InvalidInput, PalyraError, Unavailable, full
from palyra.store import postgres_schema
from palyra.store.dialect import Connection, Row
from palyra.store.lease import Fenced, LeaderLease
from palyra.store.write_buffer import AppendTarget, StoreSilence

log = logging.getLogger("palyra.journal")

SCHEMES = ("postgres://", "postgresql://")
# Who writes a journal holds this lock of the server as long as it is connected.
WRITER = 0x70616C79
_CONNECT_S = 10
_SILENT_S = 15
# Waiting for a server that went away in the middle of a commit.
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_PREPARE_AFTER = 2
_LOCK_S = 10.0
_LOCK_PAUSE_S = 0.1
_KEPT = "nothing acknowledged was lost"
_NAMED = re.compile(r"""'[^']*'|"[^"]*"|::|:([a-z_][a-z0-9_]*)|%""")
# What PostgreSQL has no word for, or another one.
_WORDS = (
    (re.compile(r"\bAS INTEGER\)"), "AS BIGINT)"),
    (re.compile(r"\bAS BLOB\)"), "AS BYTEA)"),
    (re.compile(r"\bx'([0-9a-f]*)'"), r"'\\x\1'::bytea"),
    (re.compile(r"\bIN \(\)"), "IN (NULL)"),
)


def is_address(text: str) -> bool:
    return text.startswith(SCHEMES)


def shown(address: str) -> str:
    """Return an address without the password in it."""
    parts = urlsplit(address)
    where = parts.hostname or "the local server"
    port = f":{parts.port}" if parts.port else ""
    return f"PostgreSQL at {where}{port}, database {parts.path.lstrip('/') or 'of its own name'}"


@lru_cache(maxsize=4096)
def _statement(sql: str) -> tuple[bytes, bool]:
    """Return a statement with the server's parameters, and whether it only reads."""

    def put(found: re.Match[str]) -> str:
        text = found[0]
        if found[1]:
            return f"%({found[1]})s"
        return text.replace("%", "%%")

    for pattern, other in _WORDS:
        sql = pattern.sub(other, sql)
    return _NAMED.sub(put, sql).encode(), sql.lstrip()[:6].upper() == "SELECT"


class _FlagDumper(adapt.Dumper):
    """A flag is a number in some places and a condition in others: the server sees which."""

    oid = 0

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"


class _NumericLoader(NumericBinaryLoader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Any) -> Any:
        number = super().load(data)
        whole = int(number)
        return whole if whole == number else float(number)


def _teach(connection: psycopg.Connection[Any]) -> None:
    adapters = connection.adapters
    adapters.register_dumper(bool, _FlagDumper)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_loader("numeric", _NumericLoader)


class PostgresConnection:
    """A connection of the PostgreSQL dialect. Nothing is sent before the first statement: a commit
    that only appends is one statement.
    """

    def __init__(self, raw: psycopg.Connection[Any], dialect: "Postgres") -> None:
        self._dialect = dialect
        self._changes = 0
        self._position = -1
        self._first_position = self._saved_position = 0
        self._saved = False
        # Of the transaction at work: whether the server knows of it, and by which number.
        self._writing = False
        self._begun = False
        self._xid = ""
        self._use(raw)

    def _use(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self._cursor = raw.cursor(binary=True)
        # Results of several statements come as text only.
        self._control = raw.cursor()

    def _tell(self, statement: bytes) -> None:
        """Send a statement that has no parameters and is not worth preparing."""
        self._control.execute(statement, prepare=False)

    @property
    def lost(self) -> bool:
        if self.raw.closed:
            return True
        # What a server says while nothing was asked is that it ends.
        poller = select.poll()
        poller.register(self.raw.fileno(), select.POLLIN)
        if not poller.poll(0):
            return False
        try:
            self._tell(b"SELECT 1")
        except psycopg.OperationalError:
            return True
        return False

    def all(self, sql: str, params: dict[str, Any] | None = None) -> list[Row]:
        self._begin()
        said, reads = _statement(sql)
        cursor = self._cursor
        try:
            cursor.execute(said, params or {})
        except psycopg.DataError as error:
            raise InvalidInput(f"the journal cannot hold this: {_first_line(error)}") from error
        if not reads:
            self._changes += max(0, cursor.rowcount)
        return cursor.fetchall() if cursor.description is not None else []

    def changes(self) -> int:
        return self._changes

    def has_table(self, name: str) -> bool:
        return bool(self.all("SELECT 1 WHERE to_regclass(:name) IS NOT NULL", {"name": name}))

    def has_column(self, table: str, name: str) -> bool:
        return bool(
            self.all(
                "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(:table)"
                " AND attname = :name AND NOT attisdropped",
                {"table": table, "name": name},
            )
        )

    def many(self, sql: str, rows: Sequence[dict[str, Any]]) -> None:
        self._begin()
        said, _ = _statement(sql)
        for row in rows:
            self._cursor.execute(said, row)
            self._changes += max(0, self._cursor.rowcount)

    def insert(self, into: AppendTarget, rows: Sequence[tuple[Any, ...]]) -> None:
        self._begin()
        columns = [[_listed(value) for value in column] for column in zip(*rows, strict=True)]
        self._cursor.execute(self._dialect.insert_into(self.raw, into), columns)
        self._changes += len(rows)

    def next_positions(self, count: int) -> int:
        first = self._position + 1
        self._position += count
        return first

    def begin_read(self) -> None:
        self._tell(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def end_read(self) -> None:
        self._tell(b"ROLLBACK")

    def begin(self) -> bool:
        """Begin to write. Nobody else does while this connection lives, so only a fresh one has to
        look.
        """
        fresh = self._position < 0
        if fresh:
            found = self.all("SELECT coalesce(max(position), 0) FROM entries")
            self._position = int(found[0][0])
        self._writing, self._begun, self._xid = True, False, ""
        self._first_position = self._position
        return fresh

    def _begin(self) -> None:
        """Begin the transaction with its first statement."""
        if not self._writing or self._begun:
            return
        lease = self._dialect.lease
        self._tell(b"BEGIN; SELECT pg_current_xact_id()::text" + _if_it_leads(lease))
        self._begun = True
        self._control.nextset()
        row = self._control.fetchone()
        if row is None and lease is not None:
            lease.lose("another node leads: it has taken the lease of this one")
        self._xid = str(row[0]) if row else ""

    def commit(self) -> None:
        begun, self._writing = self._begun, False
        if not begun:
            return
        try:
            self._tell(b"COMMIT")
        except psycopg.Error as error:
            if not self.raw.broken:
                raise
            self._find_out(error)
        self._begun = False

    def _find_out(self, error: psycopg.Error) -> None:
        """Ask the server, once it answers again, whether it committed. Raise if it did not."""
        log.warning("the connection broke in the middle of a commit: asking what became of it")
        self._use(self._dialect.connect_again())
        found = self.all("SELECT pg_xact_status(:xid::text::xid8)", {"xid": self._xid})
        status = found[0][0]
        log.warning("that commit was %s", status or "forgotten by the server")
        if status != "committed":
            raise error

    def rollback(self) -> None:
        if self._writing:
            self._position = self._first_position
        self._writing = self._begun = False
        if self.raw.info.transaction_status != pq.TransactionStatus.IDLE:
            self._tell(b"ROLLBACK")

    def prove(self, number: int) -> None:
        self.all("UPDATE write_proof SET number = :number WHERE id = 1", {"number": number})

    def begin_step(self) -> None:
        self._saved_position = self._position
        self._saved = False

    def savepoint(self) -> None:
        self._begin()
        self._tell(b"SAVEPOINT step")
        self._saved = True

    def end_step(self) -> None:
        if self._saved:
            self._tell(b"RELEASE SAVEPOINT step")

    def undo_step(self) -> None:
        if self._saved:
            self._tell(b"ROLLBACK TO SAVEPOINT step")
        self._position = self._saved_position

    def close(self) -> None:
        self.raw.close()


def _if_it_leads(lease: LeaderLease | None) -> bytes:
    """Return what makes the first statement of a transaction find nothing once another node leads.
    Renewing the lease does not wait for the lock, taking it does.
    """
    if lease is None:
        return b""
    return b" FROM cluster_lease WHERE epoch = %d FOR KEY SHARE" % lease.epoch


def _listed(value: Any) -> Any:
    """Return a value as it stands in a list, where the size of a number must be said."""
    return Int8(value) if isinstance(value, int) else value


def connect(address: str, *, writes: bool, silent_s: int = _SILENT_S) -> psycopg.Connection[Any]:
    """Return a connection to a journal's database. One that is silent for so long is lost."""
    raw = psycopg.connect(
        address,
        autocommit=True,
        connect_timeout=_CONNECT_S,
        # A server whose machine is gone says nothing: the kernel finds that out.
        keepalives_idle=silent_s,
        keepalives_interval=max(1, silent_s // 3),
        keepalives_count=3,
        tcp_user_timeout=2_000 * silent_s,
        prepare_threshold=_PREPARE_AFTER,
        application_name="palyra",
    )
    try:
        _teach(raw)
        # Only what the server has written to its disk is told to anybody.
        raw.execute(
            "SET synchronous_commit = on" if writes else "SET default_transaction_read_only = on"
        )
        raw.execute("SET client_min_messages = warning")
        if writes:
            raw.execute("SET idle_in_transaction_session_timeout = 0")
    except BaseException:
        raw.close()
        raise
    return raw


class Postgres:
    """The dialect: a journal in a database of a PostgreSQL server."""

    silence = StoreSilence("the PostgreSQL server", "check the server, and the network to it")

    def __init__(
        self, address: str, *, receives: bool = False, lease: LeaderLease | None = None
    ) -> None:
        """`receives`: a journal is being copied into it. `lease`: of the node that leads; None: of
        a daemon that is the only one.
        """
        self.address = address
        self.lease = lease
        self._receives = receives
        self._ready = False
        self._closing = threading.Event()
        self._inserts: dict[str, bytes] = {}

    def open_writer(self) -> Connection:
        raw = self._connect(writes=True)
        try:
            self._take_lock(raw)
            connection = PostgresConnection(raw, self)
            if self.lease is None:
                _refuse_beside_nodes(connection, self.address)
            if not self._ready:
                postgres_schema.bring_up_to_date(connection)
                self._mark(connection)
                self._ready = True
        except BaseException:
            raw.close()
            raise
        return connection

    def _mark(self, connection: Connection) -> None:
        if self._receives:
            connection.all(f"CREATE TABLE IF NOT EXISTS {postgres_schema.UNFINISHED} (x BIGINT)")
        elif connection.has_table(postgres_schema.UNFINISHED):
            raise ConfigInvalid(
                f"the journal in {shown(self.address)} is the beginning of a copy: end it with the"
                " same `palyra migrate` command, or empty the database"
            )

    def open_reader(self) -> Connection:
        return PostgresConnection(self._connect(writes=False), self)

    def open_writer_beside(self) -> Connection:
        """Return a connection for what may be done beside the daemon that writes."""
        return PostgresConnection(self._connect(writes=True), self)

    def stop_waiting(self) -> None:
        """The daemon ends: who waits for the server to come back gives up."""
        self._closing.set()

    def connect_again(self) -> psycopg.Connection[Any]:
        """Return a connection that writes, as soon as there can be one again."""
        pause_s = _FIRST_PAUSE_S
        while True:
            if self.lease is not None:
                self.lease.check()
            try:
                raw = self._connect(writes=True)
                self._take_lock(raw)
            except (psycopg.Error, Unavailable) as error:
                if self._closing.wait(pause_s):
                    raise
                log.debug("the server does not take connections yet: %s", error)
                pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
            else:
                return raw

    def insert_into(self, raw: psycopg.Connection[Any], into: AppendTarget) -> bytes:
        """Return the statement that puts many rows into a table, a list for each column."""
        if into.table not in self._inserts:
            found = raw.execute(
                "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attnum > 0"
                " AND attrelid = %s::regclass",
                [into.table],
            )
            types: dict[str, str] = dict(found.fetchall())
            lists = ", ".join(f"%s::{types[name]}[]" for name in into.columns)
            self._inserts[into.table] = (
                f"INSERT INTO {into.table} ({', '.join(map(_quoted, into.columns))})"
                f" SELECT * FROM unnest({lists}) {into.conflict}"
            ).encode()
        return self._inserts[into.table]

    def _connect(self, *, writes: bool) -> psycopg.Connection[Any]:
        return connect(self.address, writes=writes)

    def _take_lock(self, raw: psycopg.Connection[Any]) -> None:
        """Be the one that writes. A daemon that was killed holds the lock for another moment."""
        until = time.monotonic() + _LOCK_S
        while True:
            row = raw.execute(
                "SELECT pg_try_advisory_lock(hashtextextended(current_schema(), %s))", [WRITER]
            ).fetchone()
            if row and row[0]:
                return
            if time.monotonic() > until or self._closing.wait(_LOCK_PAUSE_S):
                raise Unavailable(
                    f"another daemon uses the journal in {shown(self.address)}: stop it, name"
                    " another database, or give both the same cluster.secret",
                    path=shown(self.address),
                )

    def translate(self, error: BaseException) -> PalyraError | None:
        return translated(error, self.address)


def translated(error: BaseException, address: str) -> PalyraError | None:
    """Return our error for one of the server's, None for one that is not the store's."""
    if isinstance(error, Fenced):
        return error
    if not isinstance(error, psycopg.Error) or isinstance(
        error, psycopg.IntegrityError | psycopg.ProgrammingError | psycopg.DataError
    ):
        return None
    where = shown(address)
    what = _first_line(error)
    match error:
        case errors.DiskFull():
            return Unavailable(full(where), path=where)
        case errors.ReadOnlySqlTransaction():
            return Unavailable(
                f"{where} takes no writes (it is read-only, as a standby is): {_KEPT};"
                " name the primary, or wait until it is one again",
                path=where,
            )
        case errors.TooManyConnections():
            return Unavailable(
                f"{where} has no free connection ({what}): raise max_connections, or end other"
                " clients",
                path=where,
            )
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return Unavailable(
                f"{where} refuses the user or the password: check the address of the store",
                path=where,
            )
        case errors.QueryCanceled():
            return Unavailable(f"{where} took too long ({what}): {_KEPT}", path=where)
        case _:
            return Unavailable(
                f"{where} does not answer ({what}): {_KEPT}; is the server running?",
                path=where,
            )


def _refuse_beside_nodes(connection: Connection, address: str) -> None:
    """Raise Unavailable while a node leads: its epoch is not compared here. Nobody who stands by
    takes this daemon for the last leader.
    """
    if not connection.has_table("cluster_lease"):
        return
    led = connection.all(
        "SELECT 1 FROM cluster_lease WHERE holder <> ''"
        " AND expires_ms > extract(epoch FROM clock_timestamp()) * 1000"
    )
    if led:
        raise Unavailable(
            f"several nodes use the journal in {shown(address)}: give this daemon their"
            " cluster.secret, or stop them first",
            path=shown(address),
        )
    connection.all("UPDATE cluster_lease SET epoch = epoch + 1, holder = '', expires_ms = 0")


def _quoted(name: str) -> str:
    return f'"{name}"'


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
