"""`palyra sessions compact` and its relatives, and `/compact` in a chat: the daemon's answers, and
how they are told in words.
"""

from collections.abc import Iterator

from msgspec import Struct

from palyra.cli import client
from palyra.cli.safe_text import clean
from palyra.client.http import Api
from palyra.core.errors import NotFound
from palyra.core.events import SessionCompacted, SessionUncompacted


class ShownCompaction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    seq: int = 0
    time_ms: int = 0
    applied: bool = False
    stands: bool = False
    automatic: bool = False
    why: str = ""
    summary: str = ""
    from_seq: int = 0
    upto_seq: int = 0
    turns: int = 0
    records: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    written_by: str = ""
    fallback: str = ""


class _Compactions(Struct):
    compactions: list[ShownCompaction]


class ShownUncompacted(Struct, frozen=True):
    compactions: tuple[int, ...]


class ShownPins(Struct, frozen=True):
    pins: tuple[int, ...]


def compact(api: Api, session_id: str, *, preview: bool = False) -> ShownCompaction:
    return api.post(_path(session_id, "compaction"), ShownCompaction, {"preview": preview})


def of_session(api: Api, session_id: str) -> list[ShownCompaction]:
    return api.get(_path(session_id, "compactions"), _Compactions).compactions


def undo(api: Api, session_id: str, seq: int | None = None) -> ShownUncompacted:
    """Take back a compaction; the newest that stands, if none is named."""
    if seq is None:
        standing = [each.seq for each in of_session(api, session_id) if each.stands]
        if not standing:
            raise NotFound("no compaction stands in this session")
        seq = standing[-1]
    return api.post(_path(session_id, f"compactions/{seq}/undo"), ShownUncompacted)


def pin(api: Api, session_id: str, seq: int, *, removed: bool = False) -> ShownPins:
    return api.post(_path(session_id, "pins"), ShownPins, {"seq": seq, "removed": removed})


def _path(session_id: str, what: str) -> str:
    return f"/v1/sessions/{client.checked(session_id)}/{what}"


def notice(event: SessionCompacted | SessionUncompacted) -> str:
    """What whoever reads the conversation is told when it happens."""
    if isinstance(event, SessionUncompacted):
        return "the compaction was taken back: the model is shown the conversation in full again"
    by = (
        f"by {clean(event.provider)}/{clean(event.model)}"
        if event.written_by == "model"
        else "by rules"
    )
    return (
        f"{event.turns} older turns were condensed, {event.tokens_before} to {event.tokens_after}"
        f" tokens ({by}); nothing is lost: /uncompact takes it back"
    )


def told(made: ShownCompaction, *, summary: bool) -> Iterator[str]:
    if not made.turns:
        yield f"nothing was condensed: {clean(made.why)}"
        return
    done = f"entry {made.seq}: condensed" if made.applied else "would condense"
    yield (
        f"{done} {made.turns} turns up to entry {made.upto_seq}, {made.tokens_before} to"
        f" {made.tokens_after} tokens"
    )
    if made.fallback:
        yield f"written by rules, because {clean(made.fallback)}"
    if summary:
        yield ""
        yield from clean(made.summary).split("\n")
