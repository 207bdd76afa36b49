"""The nodes of a journal in PostgreSQL: who there is, which of them leads, and until when.

One row says who leads. It is taken by comparing and setting its epoch, never before the lease of
the last holder has run out by the server's clock; every commit of a leader locks that row and
compares the epoch. So a node that was paused or cut off can write nothing once another one leads.
"""

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from palyra.core.errors import ConfigInvalid, PalyraError
from palyra.store import postgres

# A node that was not heard for so long is no reason to hurry, and none to wait.
_SILENT_MS = 10_000
# A leader without any other node holds on for so long while its server is away.
LONE_MS = 60_000
_ABSTAINS_MS = 30_000
_FORGOTTEN_MS = 24 * 3_600_000
_STATEMENT_MS = 3_000
_WRITER_ENDS_MS = 3_000
_TAKEOVER = 0x7061_6C7A
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

_TABLES = (
    """CREATE TABLE IF NOT EXISTS cluster_lease (
        id BIGINT PRIMARY KEY CHECK (id = 1),
        epoch BIGINT NOT NULL UNIQUE,
        holder TEXT NOT NULL,
        place TEXT NOT NULL,
        expires_ms BIGINT NOT NULL,
        shared BOOLEAN NOT NULL,
        proof BYTEA NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS cluster_nodes (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        address TEXT NOT NULL,
        version TEXT NOT NULL,
        state TEXT NOT NULL,
        started_ms BIGINT NOT NULL,
        heartbeat_ms BIGINT NOT NULL,
        wish TEXT NOT NULL,
        abstains_until_ms BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS cluster_files (
        name TEXT PRIMARY KEY,
        digest BYTEA NOT NULL,
        mode BIGINT NOT NULL,
        body BYTEA NOT NULL)""",
)


class NodeIdentity(NamedTuple):
    """Name of a node, and the place of its home: of two processes of one place, one is dead."""

    node_id: str
    name: str
    version: str
    place: str
    schema: int


class LeaseView(NamedTuple):
    """What a node that stands by sees of the lease."""

    epoch: int
    holder: str
    address: str
    name: str
    expires_ms: int
    now_ms: int
    place: str
    shared: bool
    schema: int
    abstains: bool


class LeaseRenewal(NamedTuple):
    """What became of a leader's renewal. `granted_ms`: None if another node leads."""

    granted_ms: int | None
    wish: str


class SharedFile(NamedTuple):
    """A file of the leader's home, sealed with the key of the cluster."""

    name: str
    digest: bytes
    mode: int
    body: bytes


def place_of(home: Path) -> str:
    """Return what tells a home folder from every other one, until the machine starts anew."""
    found = home.resolve().stat()
    boot = "?"
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"{socket.gethostname()}|{boot}|{found.st_dev}|{found.st_ino}|{home.resolve()}"


def may_lead(view: LeaseView, me: NodeIdentity, unchanged_s: float, lease_ms: int) -> bool:
    """Say if a node that stands by may take the lease. `unchanged_s`: so long it has seen no
    renewal by its own clock, so that a jump of the server's alone is no reason.
    """
    if view.schema > me.schema or view.abstains:
        return False
    if not view.shared and view.epoch and view.place != me.place:
        return False  # The keys of the journal are in the home of the node that made it.
    if not view.holder or view.place == me.place:
        return True
    return view.now_ms > view.expires_ms and unchanged_s * 1000 >= lease_ms


class NodeStore:
    """Nodes and their lease, over a connection of its own. Used by one thread at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._raw: psycopg.Connection[Any] | None = None

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _ask(self, work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        """Do this on a connection, a new one if the last broke. Raise ours for the server's
        errors.
        """
        try:
            if self._raw is None or self._raw.closed:
                self._raw = postgres.connect(self._address, writes=True, silent_s=3)
                self._raw.execute(f"SET statement_timeout = {_STATEMENT_MS}")
            return work(self._raw)
        except psycopg.Error as error:
            self.close()
            raise postgres.translated(error, self._address) or error from error

    def join(self, me: NodeIdentity, proof: bytes) -> None:
        """Make the tables if there are none, and be one of the nodes. Raise ConfigInvalid for
        another secret than theirs.
        """

        def work(raw: psycopg.Connection[Any]) -> None:
            with raw.transaction():
                raw.execute("SELECT pg_advisory_xact_lock(%s)", [_TAKEOVER])
                if not raw.execute("SELECT to_regclass('cluster_files')").fetchall()[0][0]:
                    for statement in _TABLES:
                        raw.execute(statement)
                raw.execute(
                    "INSERT INTO cluster_lease VALUES (1, 0, '', '', 0, false, %s)"
                    " ON CONFLICT DO NOTHING",
                    [proof],
                )
                (known,) = raw.execute("SELECT proof FROM cluster_lease").fetchall()[0]
                if bytes(known) != proof:
                    raise ConfigInvalid(
                        "cluster.secret is not the secret of the nodes of this journal: give this"
                        " node theirs",
                        key="cluster.secret",
                    )
                raw.execute(
                    "DELETE FROM cluster_nodes WHERE heartbeat_ms < " + _NOW + " - %s",
                    [_FORGOTTEN_MS],
                )
                raw.execute(
                    "INSERT INTO cluster_nodes VALUES (%s, %s, '', %s, 'standing by', "
                    + f"{_NOW}, {_NOW}, '', 0) ON CONFLICT (id) DO UPDATE SET"
                    " name = excluded.name, address = '', version = excluded.version,"
                    " state = excluded.state, started_ms = excluded.started_ms,"
                    " heartbeat_ms = excluded.heartbeat_ms, wish = ''",
                    [me.node_id, me.name, me.version],
                )

        self._ask(work)

    def look(self, me: NodeIdentity) -> LeaseView:
        """Say that this node stands by, and return whose turn it is."""

        def work(raw: psycopg.Connection[Any]) -> LeaseView:
            rows = raw.execute(
                f"WITH t AS (SELECT {_NOW} AS now),"
                " me AS (UPDATE cluster_nodes SET heartbeat_ms = t.now, state = CASE WHEN"
                "  abstains_until_ms > t.now THEN 'draining' ELSE 'standing by' END, wish = ''"
                "  FROM t WHERE id = %(me)s RETURNING abstains_until_ms)"
                " SELECT l.epoch, l.holder, coalesce(n.address, ''), coalesce(n.name, ''),"
                " l.expires_ms, t.now, l.place, l.shared,"
                " coalesce((SELECT abstains_until_ms FROM me), 0) > t.now AND EXISTS ("
                "  SELECT 1 FROM cluster_nodes o WHERE o.id <> %(me)s"
                "   AND o.heartbeat_ms > t.now - %(silent)s AND o.state = 'standing by')"
                " FROM t, cluster_lease l LEFT JOIN cluster_nodes n ON n.id = l.holder",
                {"me": me.node_id, "silent": _SILENT_MS},
            ).fetchall()
            found = rows[0]
            return LeaseView._make((*found[:8], _schema(raw), bool(found[8])))

        view: LeaseView = self._ask(work)
        return view

    def take(self, me: NodeIdentity, seen: LeaseView, lease_ms: int) -> int | None:
        """Lead from now on, with the next epoch, unless somebody else was faster. The last
        leader's connection is ended first: what it has begun and not committed never will be.
        """

        def work(raw: psycopg.Connection[Any]) -> int | None:
            with raw.transaction():
                raw.execute("SELECT pg_advisory_xact_lock(%s)", [_TAKEOVER])
                row = raw.execute(
                    "SELECT epoch, expires_ms, holder FROM cluster_lease WHERE id = 1"
                ).fetchone()
                if row is None or tuple(row) != (seen.epoch, seen.expires_ms, seen.holder):
                    return None
                if seen.holder:
                    raw.execute(
                        "SELECT pg_terminate_backend(pid, %s) FROM pg_locks WHERE granted"
                        " AND locktype = 'advisory' AND pid <> pg_backend_pid() AND database ="
                        " (SELECT oid FROM pg_database WHERE datname = current_database())"
                        " AND (classid::bigint << 32 | objid::bigint) ="
                        " hashtextextended(current_schema(), %s)",
                        [_WRITER_ENDS_MS, postgres.WRITER],
                    )
                # Behind everybody who has compared the epoch and not committed yet; and nobody has
                # renewed it meanwhile.
                row = raw.execute(
                    "SELECT epoch, expires_ms, holder FROM cluster_lease WHERE id = 1 FOR UPDATE"
                ).fetchone()
                if row is None or tuple(row) != (seen.epoch, seen.expires_ms, seen.holder):
                    return None
                taken = raw.execute(
                    "UPDATE cluster_lease SET epoch = epoch + 1, holder = %s, place = %s,"
                    f" expires_ms = {_NOW} + %s WHERE epoch = %s RETURNING epoch",
                    [me.node_id, me.place, lease_ms, seen.epoch],
                ).fetchone()
                return int(taken[0]) if taken else None

        epoch: int | None = self._ask(work)
        return epoch

    def renew(
        self, me: NodeIdentity, epoch: int, address: str, state: str, lease_ms: int
    ) -> LeaseRenewal:
        """Say that this node still leads."""

        def work(raw: psycopg.Connection[Any]) -> LeaseRenewal:
            rows = raw.execute(
                f"WITH t AS (SELECT {_NOW} AS now),"
                " others AS (SELECT EXISTS (SELECT 1 FROM cluster_nodes, t WHERE id <> %(me)s"
                "  AND heartbeat_ms > t.now - %(silent)s) AS there),"
                " beat AS (UPDATE cluster_nodes SET heartbeat_ms = t.now, state = %(state)s,"
                "  address = %(address)s FROM t WHERE id = %(me)s RETURNING wish),"
                " kept AS (UPDATE cluster_lease SET expires_ms = t.now + CASE WHEN others.there"
                "  THEN %(lease)s ELSE %(lone)s END FROM t, others WHERE cluster_lease.id = 1"
                "  AND epoch = %(epoch)s RETURNING expires_ms - t.now AS ms)"
                " SELECT (SELECT ms FROM kept), coalesce((SELECT wish FROM beat), '')",
                {
                    "me": me.node_id,
                    "silent": _SILENT_MS,
                    "state": state,
                    "address": address,
                    "lease": lease_ms,
                    "lone": max(lease_ms, LONE_MS),
                    "epoch": epoch,
                },
            ).fetchall()
            granted, wish = rows[0]
            return LeaseRenewal(None if granted is None else int(granted), str(wish))

        renewal: LeaseRenewal = self._ask(work)
        return renewal

    def release(self, me: NodeIdentity, epoch: int, *, gone: bool) -> None:
        """Lead no more: another node may at once, and this one leaves it to the others for a
        while.
        """

        def work(raw: psycopg.Connection[Any]) -> None:
            with raw.transaction():
                raw.execute(
                    "UPDATE cluster_lease SET holder = '', expires_ms = 0 WHERE epoch = %s",
                    [epoch],
                )
                self._leave(raw, me, "gone" if gone else "draining")
                if not gone:
                    raw.execute(
                        f"UPDATE cluster_nodes SET abstains_until_ms = {_NOW} + %s WHERE id = %s",
                        [_ABSTAINS_MS, me.node_id],
                    )

        self._ask(work)

    def leave(self, me: NodeIdentity) -> None:
        """Be gone, after standing by."""
        self._ask(lambda raw: self._leave(raw, me, "gone"))

    def _leave(self, raw: psycopg.Connection[Any], me: NodeIdentity, state: str) -> None:
        raw.execute(
            "UPDATE cluster_nodes SET state = %s, address = '', wish = '' WHERE id = %s",
            [state, me.node_id],
        )

    def digests(self) -> dict[str, bytes]:
        """Return the digests of all files that the nodes share."""
        rows: list[tuple[str, bytes]] = self._ask(
            lambda raw: raw.execute("SELECT name, digest FROM cluster_files").fetchall()
        )
        return {name: bytes(digest) for name, digest in rows}

    def file(self, name: str) -> SharedFile | None:
        found = self._ask(
            lambda raw: raw.execute(
                "SELECT name, digest, mode, body FROM cluster_files WHERE name = %s", [name]
            ).fetchone()
        )
        return (
            SharedFile(found[0], bytes(found[1]), int(found[2]), bytes(found[3])) if found else None
        )

    def put_files(
        self, epoch: int, changed: Iterable[SharedFile], removed: Iterable[str], *, whole: bool
    ) -> bool:
        """Keep what has changed, if this epoch still is the one. `whole`: from here on another
        node has all that it needs.
        """

        def work(raw: psycopg.Connection[Any]) -> bool:
            with raw.transaction():
                raw.execute("SET LOCAL statement_timeout = 0")
                locked = "SELECT 1 FROM cluster_lease WHERE epoch = %s FOR NO KEY UPDATE"
                if not raw.execute(locked, [epoch]).fetchone():
                    return False
                for each in changed:
                    raw.execute(
                        "INSERT INTO cluster_files VALUES (%s, %s, %s, %s) ON CONFLICT (name) DO"
                        " UPDATE SET digest = excluded.digest, mode = excluded.mode,"
                        " body = excluded.body",
                        list(each),
                    )
                raw.execute("DELETE FROM cluster_files WHERE name = ANY(%s)", [list(removed)])
                if whole:
                    raw.execute("UPDATE cluster_lease SET shared = true WHERE NOT shared")
            return True

        kept: bool = self._ask(work)
        return kept


def _schema(raw: psycopg.Connection[Any]) -> int:
    """Return the schema of the journal, 0 if there is none yet."""
    there = raw.execute("SELECT to_regclass('migrations')").fetchall()[0][0]
    if not there:
        return 0
    return int(raw.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchall()[0][0])


def away(error: Exception) -> str:
    """Return what is wrong with the journal's server, for a person."""
    return error.message if isinstance(error, PalyraError) else f"{type(error).__name__}: {error}"
