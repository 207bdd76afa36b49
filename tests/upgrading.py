"""Homes that older versions have left, and how a home looks."""

import hashlib
import os
from pathlib import Path

import apsw

from palyra.core import chain, events
from palyra.core.events import AdminChanged
from palyra.store import migrations
from palyra.store.sqlite import SqliteConnection
from palyra.store.sqlite_schema import MIGRATIONS
from tests.journals import new_id, note

TAPE = new_id()


def older_home(home: Path, schema: int) -> Path:
    """A home with the journal of an older version: three entries, and a token."""
    home.mkdir(parents=True)
    raw = apsw.Connection(str(home / "journal.db"))
    migrations.apply(SqliteConnection(raw), MIGRATIONS[:schema])
    prev = chain.GENESIS
    minted = AdminChanged(
        what="token", action="created", subject="t", details={"name": "old", "scope": "owner"}
    )
    for number, event in enumerate((note("entry 1"), note("entry 2"), minted), 1):
        body = events.encode(event)
        named = {"tape": TAPE, "seq": number, "position": number, "time_ms": 5, "run_id": ""}
        link = 1 if schema < 27 else 2
        kind = events.kind_of(event)
        prev = chain.link_of(link, prev, **named, principal="user:owner", kind=kind, body=body)
        more = {**named, "principal": "user:owner", "kind": kind, "body": body, "hash": prev}
        if link == 2:
            more["link"] = 2
        raw.execute(
            f"INSERT INTO entries ({', '.join(more)}) VALUES ({', '.join('?' * len(more))})",
            tuple(more.values()),
        )
    raw.execute("INSERT INTO tapes VALUES (?, 3, ?)", (TAPE, prev))
    raw.execute(
        "INSERT INTO tokens (token_id, digest, name, principal, scope, created_ms)"
        " VALUES ('t', x'01', 'old', 'user:owner', 'owner', 1)"
    )
    raw.close()
    (home / "keys").mkdir()
    (home / "keys" / "seal.key").write_bytes(bytes(32))
    return home / "journal.db"


def digests(folder: Path) -> dict[str, str]:
    """Every file below a folder by its content, but for what a reader of SQLite leaves."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for at, _, names in os.walk(folder)
        for path in (Path(at) / name for name in names)
        if not path.name.endswith(("-shm", "-wal"))
    }


def schema_of(journal: Path) -> int:
    raw = apsw.Connection(str(journal), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(raw.execute("SELECT max(number) FROM migrations").get)
    finally:
        raw.close()
