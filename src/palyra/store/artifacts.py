"""Artifacts of tools in the store: large results, and sealed checkpoints for undoing an effect."""

from hashlib import sha256

from msgspec import Struct

from palyra.core import events
from palyra.core.errors import NotFound
from palyra.core.events import InputReceived, ToolFinished
from palyra.core.ids import ArtifactId
from palyra.core.labels import CLEAN, Label, merge
from palyra.store import sessions
from palyra.store.database import Tx


def keep_artifact(tx: Tx, session_id: str, body: bytes, media_type: str) -> ArtifactId:
    """Store a body by its content; the same body twice is one row."""
    artifact_id = ArtifactId(sha256(body).hexdigest())
    tx.run(
        """INSERT INTO artifacts (session_id, artifact_id, media_type, body, created_ms)
        VALUES (:session_id, :artifact_id, :media_type, :body, :now) ON CONFLICT DO NOTHING""",
        session_id=session_id,
        artifact_id=artifact_id,
        media_type=media_type,
        body=body,
        now=tx.now_ms,
    )
    return artifact_id


def touch_artifact(tx: Tx, session_id: str, artifact_id: str) -> None:
    """An artifact is as old as the last time that somebody sent it."""
    tx.run(
        "UPDATE artifacts SET created_ms = :now WHERE session_id = :session AND artifact_id = :id"
        " AND created_ms < :now",
        now=tx.now_ms,
        session=session_id,
        id=artifact_id,
    )


class Artifact(Struct, frozen=True):
    artifact_id: str
    media_type: str
    body: bytes


def artifact(tx: Tx, session_id: str, artifact_id: str) -> Artifact | None:
    """An artifact of the session, or of one it was branched from: its conversation names those
    too.
    """
    for owner in sessions.ancestors(tx, session_id):
        row = tx.one(
            "SELECT artifact_id, media_type, body FROM artifacts WHERE session_id = :session_id AND"
            " artifact_id = :artifact_id",
            session_id=owner,
            artifact_id=artifact_id,
        )
        if row:
            return Artifact(*row)
    return None


def artifact_label(tx: Tx, session_id: str, artifact_id: str) -> Label:
    """Return where an artifact came from: the label of the results and inputs that brought it,
    whatever was reset since.
    """
    found = CLEAN
    for owner in sessions.ancestors(tx, session_id):
        rows = tx.all(
            """SELECT body FROM entries WHERE tape = :tape AND kind IN ('tool.finished',
            'input.received')
                AND instr(body, CAST(:artifact_id AS BLOB)) > 0""",
            tape=owner,
            artifact_id=artifact_id,
        )
        for (body,) in rows:
            event = events.decode(body)
            match event:
                case ToolFinished() if artifact_id in (
                    event.artifact,
                    *(image.artifact for image in event.images),
                ):
                    found = merge(found, event.label)
                case InputReceived():
                    # It is named in it: what was said as well as what was attached counts, rather
                    # more than too little.
                    found = merge(found, event.brings)
                case _:
                    pass
    return found


class EffectRow(Struct, frozen=True):
    call_id: str
    session_id: str
    run_id: str
    tool: str
    position: int
    undone_ms: int


def keep_effect(
    tx: Tx,
    *,
    call_id: str,
    session_id: str,
    run_id: str,
    tool: str,
    position: int,
    checkpoint: bytes,
) -> None:
    """Remember how to take back a call that is about to start. A second attempt replaces the first
    one's checkpoint.
    """
    tx.run(
        """INSERT INTO effects (call_id, session_id, run_id, tool, position, checkpoint)
        VALUES (:call_id, :session_id, :run_id, :tool, :position, :checkpoint)
        ON CONFLICT (call_id) DO UPDATE SET position = :position, checkpoint = :checkpoint,
        undone_ms = 0""",
        call_id=call_id,
        session_id=session_id,
        run_id=run_id,
        tool=tool,
        position=position,
        checkpoint=checkpoint,
    )


def checkpoint(tx: Tx, call_id: str) -> bytes:
    row = tx.one("SELECT checkpoint FROM effects WHERE call_id = :call_id", call_id=call_id)
    if row is None:
        raise NotFound(f"call {call_id} left nothing to undo", call_id=call_id)
    return bytes(row[0])


def effects_of_session(tx: Tx, session_id: str) -> list[EffectRow]:
    """Return what can be undone, newest first."""
    return _effects(tx, "session_id = :id", session_id)


def effects_of_run(tx: Tx, session_id: str, run_id: str) -> list[EffectRow]:
    return [
        effect for effect in _effects(tx, "run_id = :id", run_id) if effect.session_id == session_id
    ]


def effect_of_call(tx: Tx, session_id: str, call_id: str) -> list[EffectRow]:
    return [
        effect
        for effect in _effects(tx, "call_id = :id", call_id)
        if effect.session_id == session_id
    ]


def _effects(tx: Tx, which: str, wanted: str) -> list[EffectRow]:
    rows = tx.all(
        f"""SELECT call_id, session_id, run_id, tool, position, undone_ms FROM effects
        WHERE {which} AND tool NOT IN ('@undo', '@rewind') ORDER BY position DESC LIMIT 1000""",
        id=wanted,
    )
    return [EffectRow(*row) for row in rows]


def elsewhere(effect: EffectRow) -> str:
    """The worker that a call changed files of; empty for those here."""
    source, slash, _ = effect.tool.partition("/")
    return source.removeprefix("worker:") if slash and source.startswith("worker:") else ""


def mark_undone(tx: Tx, call_id: str) -> None:
    tx.run(
        "UPDATE effects SET undone_ms = :now WHERE call_id = :call_id",
        now=tx.now_ms,
        call_id=call_id,
    )


def put_recorded(tx: Tx, session_id: str, artifact_id: str, media_type: str, body: bytes) -> None:
    """Store an artifact as a recording has it."""
    tx.run(
        """INSERT INTO artifacts (session_id, artifact_id, media_type, body, created_ms)
        VALUES (:session_id, :artifact_id, :media_type, :body, 0) ON CONFLICT DO NOTHING""",
        session_id=session_id,
        artifact_id=artifact_id,
        media_type=media_type,
        body=body,
    )
