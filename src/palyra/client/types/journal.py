"""Written by scripts/clients.py from the route table: types of the verbs about journal."""

from msgspec import Struct

from palyra.core.events import Entry

__all__ = [
    "Archived",
    "BackedUp",
    "BackupList",
    "Bad",
    "Cleaned",
    "CleanedUp",
    "Entry",
    "KeptBackup",
    "Maintained",
    "Old",
    "Segment",
    "SegmentList",
    "Verified",
]


class Bad(Struct, frozen=True, kw_only=True):
    """The first bad entry: where it stands, and a sentence on what is wrong with it."""

    tape: str
    seq: int
    position: int
    problem: str


class Verified(Struct, frozen=True, kw_only=True):
    """`bad` is the first bad entry; `pages` is what the database says of its file; `guards` are
    append-only rules that are gone.
    """

    ok: bool
    entries: int
    tapes: int
    bad: Bad | None
    pages: list[str]
    guards: list[str]


class BackedUp(Struct, frozen=True, kw_only=True):
    path: str
    entries: int


class KeptBackup(Struct, frozen=True, kw_only=True):
    name: str
    bytes: int
    made_ms: int


class BackupList(Struct, frozen=True, kw_only=True):
    folder: str
    backups: list[KeptBackup]


class Old(Struct, frozen=True, kw_only=True):
    """A session that nobody has used for a long time, nobody keeps, and nothing that is in use goes
    on from.
    """

    session_id: str
    owner: str
    title: str
    updated_ms: int
    entries: int


class Archived(Struct, frozen=True, kw_only=True):
    """What was put away, or would be. `bytes` is what it took in the database, `sealed_bytes` what
    the segments take.
    """

    dry_run: bool
    days: int
    sessions: list[Old]
    entries: int
    bytes: int
    segments: list[str]
    sealed_bytes: int = 0


class Cleaned(Struct, frozen=True, kw_only=True):
    dry_run: bool
    artifacts: int
    bytes: int


class Maintained(Struct, frozen=True, kw_only=True):
    """`log_bytes` is what is left of the write-ahead log; `released_bytes` went back to the file
    system.
    """

    log_bytes: int
    free_bytes: int
    released_bytes: int


class CleanedUp(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`file` is left out of a dry run: the database file is looked after, or it is not."""

    artifacts: Cleaned
    file: Maintained | None = None


class Segment(Struct, frozen=True, kw_only=True):
    """One file. `tapes` of those that were put into it are in it alone; the others were restored
    since.
    """

    segment_id: str
    bytes: int
    entries: int
    first_position: int
    last_position: int
    created_ms: int
    tapes: int = 0


class SegmentList(Struct, frozen=True, kw_only=True):
    segments: list[Segment]
