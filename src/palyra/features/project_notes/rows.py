"""Notes for agents that an owner has accepted: one row for each content of a file in a workspace,
known by its digest.

The system tape says who accepted what and when; the row and its entry are one step.
"""

from msgspec import Struct

from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.store import rights, tape
from palyra.store.database import Tx
from palyra.store.rights import NOTES

# Of one file: enough for the branches that somebody switches between.
MOST = 16


class AcceptedNote(Struct, frozen=True):
    """`text` is the content without its secrets, for the next diff."""

    workspace: str
    file: str
    digest: str
    text: str
    accepted_by: str
    accepted_ms: int


def digests(tx: Tx, workspace: str) -> frozenset[tuple[str, str]]:
    """Return which contents are accepted in a workspace, as (file, digest)."""
    rows = tx.all(
        f"SELECT {NOTES.columns} FROM accepted_notes WHERE workspace = :workspace",
        workspace=workspace,
    )
    # The workspace comes first, then the file and its digest.
    return frozenset((row[1], row[2]) for row in rows if rights.holds(tx, NOTES, row))


def last(tx: Tx, workspace: str) -> dict[str, AcceptedNote]:
    """Return what was accepted last of each file."""
    rows = tx.all(
        """SELECT workspace, file, digest, text, accepted_by, accepted_ms FROM accepted_notes
        WHERE workspace = :workspace ORDER BY accepted_ms, position""",
        workspace=workspace,
    )
    return {row[1]: AcceptedNote(*row) for row in rows}


def workspaces(tx: Tx, owner: str, limit: int) -> list[str]:
    """Return the folders that have accepted notes, and those of an owner's last sessions."""
    accepted = tx.all(
        "SELECT DISTINCT workspace FROM accepted_notes ORDER BY workspace LIMIT :limit", limit=limit
    )
    used = tx.all(
        """SELECT workspace FROM sessions WHERE owner = :owner AND archived = 0 AND workspace <> ''
        ORDER BY updated_ms DESC LIMIT :limit""",
        owner=owner,
        limit=limit,
    )
    return list(dict.fromkeys(row[0] for row in (*used, *accepted)))[:limit]


def accept(tx: Tx, workspace: str, file: str, digest: str, text: str, by: str) -> None:
    """Accept one content. What is accepted already stays as it is."""
    if (file, digest) in digests(tx, workspace):
        return
    event = AdminChanged(
        what="notes",
        action="accepted",
        subject=file,
        details={"workspace": workspace, "sha256": digest},
    )
    (entry,) = tape.append(tx, SYSTEM_TAPE, by, [event])
    tx.run(
        """INSERT INTO accepted_notes (workspace, file, digest, text, accepted_by, accepted_ms,
        position)
        VALUES (:workspace, :file, :digest, :text, :by, :now, :position)
        ON CONFLICT (workspace, file, digest) DO UPDATE SET text = :text, accepted_by = :by,
            accepted_ms = :now, position = :position""",
        workspace=workspace,
        file=file,
        digest=digest,
        text=text,
        by=by,
        now=tx.now_ms,
        position=entry.position,
    )
    rights.seal(tx, NOTES, entry.position, workspace=workspace, file=file, digest=digest)
    tx.run(
        """DELETE FROM accepted_notes WHERE workspace = :workspace AND file = :file AND position NOT
        IN (SELECT position
        FROM accepted_notes WHERE workspace = :workspace AND file = :file ORDER BY position DESC
        LIMIT :most)""",
        workspace=workspace,
        file=file,
        most=MOST,
    )


def forget(tx: Tx, workspace: str, file: str, by: str) -> int:
    """Take back every acceptance of a file; return how many there were."""
    taken = sum(name == file for name, _ in digests(tx, workspace))
    if taken:
        event = AdminChanged(
            what="notes",
            action="rejected",
            subject=file,
            details={"workspace": workspace, "contents": taken},
        )
        tape.append(tx, SYSTEM_TAPE, by, [event])
        tx.run(
            "DELETE FROM accepted_notes WHERE workspace = :workspace AND file = :file",
            workspace=workspace,
            file=file,
        )
    return taken
