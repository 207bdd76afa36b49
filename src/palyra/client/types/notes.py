"""Written by scripts/clients.py from the route table: what the verbs about notes give and take."""

from msgspec import Struct

from palyra.features.project_notes.model import Note

__all__ = ["Note", "NoteList"]


class NoteList(Struct, frozen=True, kw_only=True):
    notes: tuple[Note, ...]
