"""Files that were written after untrusted content was read: which, with which label, by whom.

The rule: a label stays on its path, whatever becomes of the file, and goes along with its bytes to
other paths. Only a person takes it away, or a run that writes the whole file anew and has read
nothing of the kind; then it stays on the bytes, and comes back to the path with them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import labels
from palyra.core.errors import NotFound
from palyra.core.events import FileDigest, FilesLabelled
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.labels import CLEAN, Label
from palyra.store import tape
from palyra.store.database import Tx

_MOST_JOINED = 500
_COLUMNS = "path, digest, label, session_id, run_id, labelled_ms"
# In front of the path of a file that was written anew: no path begins like this.
WAS = "was:"


class LabelledFile(Struct, frozen=True, kw_only=True):
    """A file, or a folder with everything in it. `digest`: the SHA-256 of what was written, where
    it is known.
    """

    path: str
    digest: str
    label: Label
    session_id: str
    run_id: str
    labelled_ms: int


def _file(row: tuple[Any, ...]) -> LabelledFile:
    return LabelledFile(
        path=row[0].removeprefix(WAS),
        digest=row[1],
        label=msgspec.json.decode(row[2], type=Label),
        session_id=row[3],
        run_id=row[4],
        labelled_ms=row[5],
    )


def put(
    tx: Tx,
    principal: str,
    files: Sequence[FileDigest],
    label: Label,
    *,
    session_id: str = "",
    run_id: str = "",
    anew: bool = False,
) -> None:
    """Label files, or take their labels away with a clean one. It is on the system's tape. `anew`:
    something else stands in them now; what stood there can come back.
    """
    if not files:
        return
    event = FilesLabelled(files=tuple(files), label=label, session_id=session_id, run_id=run_id)
    tape.append(tx, SYSTEM_TAPE, principal, [event])
    for each in files:
        if label == CLEAN:
            tx.run("DELETE FROM file_labels WHERE path = :was", was=WAS + each.path)
            step = "UPDATE file_labels SET path = :was" if anew else "DELETE FROM file_labels"
            tx.run(f"{step} WHERE path = :path", path=each.path, was=WAS + each.path)
            continue
        known = tx.one("SELECT label FROM file_labels WHERE path = :path", path=each.path)
        before = msgspec.json.decode(known[0], type=Label) if known else CLEAN
        tx.run(
            f"""INSERT INTO file_labels ({_COLUMNS})
            VALUES (:path, :digest, :label, :session_id, :run_id, :now)
            ON CONFLICT (path) DO UPDATE SET digest = excluded.digest, label = excluded.label,
                session_id = excluded.session_id, run_id = excluded.run_id,
                labelled_ms = excluded.labelled_ms""",
            path=each.path,
            digest=each.digest,
            label=msgspec.json.encode(labels.merge(before, label)),
            session_id=session_id,
            run_id=run_id,
            now=tx.now_ms,
        )


def put_back(tx: Tx, principal: str, paths: Iterable[str], *, session_id: str) -> None:
    """Label files anew that were put back to how they were earlier, which may be how they were when
    they had a label.
    """
    for path in paths if anything(tx) else ():
        row = tx.one(f"SELECT {_COLUMNS} FROM file_labels WHERE path = :was", was=WAS + path)
        if row is not None:
            was = _file(row)
            put(
                tx,
                principal,
                [FileDigest(path, was.digest)],
                was.label,
                session_id=session_id,
                run_id=was.run_id,
            )


def anything(tx: Tx) -> bool:
    """Return whether any file has a label."""
    return tx.one("SELECT 1 FROM file_labels LIMIT 1") is not None


def touched(tx: Tx, paths: Iterable[str], digests: Iterable[str] = ()) -> list[LabelledFile]:
    """Return what is labelled among these paths, below or above them; and what has these bytes."""
    found: dict[str, LabelledFile] = {}
    if not anything(tx):
        return []  # Nearly always.
    for path in paths:
        below = path.rstrip("/") + "/"
        rows = tx.all(
            f"""SELECT {_COLUMNS} FROM file_labels
            WHERE path IN (SELECT value FROM json_each(:whole))
                OR (path >= :below AND path < :end) LIMIT :most""",
            whole=msgspec.json.encode(_above(path)).decode(),
            below=below,
            end=below[:-1] + "0",
            most=_MOST_JOINED,
        )
        found.update((str(row[0]), _file(row)) for row in rows)
    for digest in filter(None, digests):
        rows = tx.all(
            f"SELECT {_COLUMNS} FROM file_labels WHERE digest = :digest LIMIT 8", digest=digest
        )
        found.update((str(row[0]), _file(row)) for row in rows)
    return list(found.values())


def _above(path: str) -> list[str]:
    """The path and every folder that it lies in."""
    found = [path]
    while "/" in path.rstrip("/"):
        path = path.rstrip("/").rpartition("/")[0] or "/"
        found.append(path)
        if path == "/":
            break
    return found


def listing(tx: Tx, *, after: str = "", limit: int = 100) -> list[LabelledFile]:
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM file_labels WHERE path > :after AND substr(path, 1, 4) <> :was
        ORDER BY path LIMIT :limit""",
        after=after,
        limit=limit,
        was=WAS,
    )
    return [_file(row) for row in rows]


def clear(tx: Tx, principal: str, path: str) -> list[LabelledFile]:
    """Take away the label of a file, or of everything in a folder, because a person says so."""
    found = [
        each
        for each in touched(tx, [path])
        if each.path == path or each.path.startswith(path.rstrip("/") + "/")
    ]
    if not found:
        raise NotFound(f"no file that is or lies below {path} has a label", path=path)
    put(tx, principal, [FileDigest(each.path, each.digest) for each in found], CLEAN)
    return found
