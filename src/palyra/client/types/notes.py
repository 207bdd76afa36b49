"""Written by scripts/clients.py from the route table: types of the verbs about notes."""

from typing import Literal

from msgspec import Struct

__all__ = ["Note", "NoteList"]


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file as it is now. `text` and `diff` show secrets and invisible characters by a mark;
    lists leave both out.
    """

    workspace: str
    file: str
    state: Literal["accepted", "changed", "missing", "new", "unusable"]
    applies: str = ""
    sha256: str = ""
    size: int = 0
    text: str = ""
    diff: str = ""
    problem: str = ""
    accepted_sha256: str = ""
    accepted_by: str = ""
    accepted_ms: int = 0


class NoteList(Struct, frozen=True, kw_only=True):
    notes: tuple[Note, ...]
