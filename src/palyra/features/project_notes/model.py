"""A file with notes for agents, as a person reviews it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

NoteState = Literal["accepted", "changed", "new", "missing", "unusable"]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file as it is now. `text` and `diff` show secrets and invisible characters by a mark;
    lists leave both out.

    `new`: no content of it was ever accepted here. `changed`: another one was. `missing`: the file
    is gone. `unusable`: see `problem`. `diff` is against what was accepted last, which
    `accepted_sha256`, `accepted_by` and `accepted_ms` are about.
    """

    workspace: str
    file: str
    state: NoteState
    sha256: str = ""
    size: int = 0
    text: str = ""
    diff: str = ""
    problem: str = ""
    accepted_sha256: str = ""
    accepted_by: str = ""
    accepted_ms: int = 0

    @property
    def waits(self) -> bool:
        """Whether somebody should review it: it is there, and runs go without it."""
        return self.state in ("new", "changed")
