"""Written by scripts/clients.py from the route table: types of the verbs about journal."""

from typing import Literal

from msgspec import Struct

from palyra.core.events import Entry

__all__ = [
    "AnchorReport",
    "Archived",
    "BackedUp",
    "BackupList",
    "Bad",
    "BundledEntry",
    "Cause",
    "CheckpointState",
    "Cleaned",
    "CleanedUp",
    "ConsistencyProof",
    "Disclosure",
    "Entry",
    "InclusionProof",
    "KeptBackup",
    "Maintained",
    "Old",
    "PolicyText",
    "PolicyTexts",
    "ProofBundle",
    "RotatedKey",
    "Segment",
    "SegmentList",
    "StoredCheckpoint",
    "Verified",
    "Vouched",
    "Voucher",
    "WhyAnswer",
    "WrongRow",
]


class Bad(Struct, frozen=True, kw_only=True):
    """The first bad entry: where it stands, and a sentence on what is wrong with it."""

    tape: str
    seq: int
    position: int
    problem: str


class Voucher(Struct, frozen=True, kw_only=True):
    """Voucher for a number of entries: 0 if for none. `time_ms` is 0 if the checkpoint is not
    stored here.
    """

    name: str
    size: int = 0
    time_ms: int = 0


class Vouched(Struct, frozen=True, kw_only=True):
    """Proof of the journal: how far, and by whom. `newer` entries are held by the chain alone.
    `vouchers` are the own key, each witness and each anchor that can be read.
    """

    size: int
    time_ms: int
    by: tuple[str, ...]
    newer: int
    origin: str = ""
    checkpoints: int = 0
    vouchers: tuple[Voucher, ...] = ()


class WrongRow(Struct, frozen=True, kw_only=True):
    """A row that the tape does not imply: its table, its key, and what is wrong with it."""

    table: str
    row: str
    problem: str


class Verified(Struct, frozen=True, kw_only=True):
    """`bad` is the first bad entry; `pages` is what the database says of its file; `guards` are
    append-only rules that are gone; `vouched` says how far signed checkpoints prove the entries;
    `rows` are those that the entries do not imply, if that was asked for.
    """

    ok: bool
    entries: int
    tapes: int
    bad: Bad | None
    pages: list[str]
    guards: list[str]
    vouched: Vouched | None = None
    rows: list[WrongRow] = []


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


class StoredCheckpoint(Struct, frozen=True, kw_only=True):
    """A signed note about the first `size` entries, with the cosignatures that it has by now."""

    size: int
    time_ms: int
    note: str


class AnchorReport(Struct, frozen=True, kw_only=True):
    """`size` entries have arrived there since the daemon started; `problem` says why not more."""

    name: str
    size: int
    problem: str = ""


class CheckpointState(Struct, frozen=True, kw_only=True):
    """`keys` are all public keys, the newest first. `problem` says why none can be made now."""

    origin: str
    keys: list[str]
    newest: StoredCheckpoint | None = None
    problem: str = ""
    anchors: list[AnchorReport] = []


class InclusionProof(Struct, frozen=True, kw_only=True):
    """Proof that an entry stands at its position among the first `size`. `checkpoint` is signed for
    that size, or empty if none was.
    """

    position: int
    size: int
    link: int
    hash: str
    proof: tuple[str, ...]
    root: str
    checkpoint: str = ""


class ConsistencyProof(Struct, frozen=True, kw_only=True):
    """Proof that the first `old` of `size` entries are the same as when there were `old`."""

    old: int
    size: int
    proof: tuple[str, ...]
    old_root: str
    root: str


class Disclosure(Struct, frozen=True, kw_only=True):
    """Scope of a bundle: a session, a run, or positions from `first` to `last`. `without` are
    positions whose bodies are left out, `bodies` leaves out all if it is false.
    """

    session_id: str = ""
    run_id: str = ""
    first: int = 0
    last: int = 0
    bodies: bool = True
    without: tuple[int, ...] = ()


class BundledEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry. `prev` is the hash before it on its tape; `proof` is its path to the root of the
    checkpoint. `body` or `body_sha256` is there, never both.
    """

    position: int
    tape: str
    seq: int
    time_ms: int
    run_id: str = ""
    principal: str
    kind: str
    link: int
    hash: str
    prev: str
    proof: tuple[str, ...]
    body: str | None = None
    body_sha256: str = ""


class PolicyText(Struct, frozen=True, kw_only=True):
    name: str
    text: str


class PolicyTexts(Struct, frozen=True, kw_only=True):
    """The files of a set, in the order in which its version covers them."""

    version: str
    files: tuple[PolicyText, ...]


class ProofBundle(Struct, frozen=True, kw_only=True):
    """`tool.decided` entries name the version of the policies that decided, which is a digest of
    their texts; `policies` are these, and those of `policy_version`, which are in force when the
    bundle is made.
    """

    format: Literal["palyra-proof-1"] = "palyra-proof-1"
    about: Disclosure
    made_ms: int
    checkpoint: str
    checkpoint_ms: int
    keys: tuple[str, ...]
    rotations: tuple[str, ...]
    entries: tuple[BundledEntry, ...]
    policy_version: str = ""
    policies: tuple[PolicyTexts, ...] = ()
    redaction: str = "Secrets were replaced by placeholders before an entry was written, so the bodies are as the journal and the model had them. An entry with body_sha256 in place of body was disclosed without its content."


class RotatedKey(Struct, frozen=True, kw_only=True):
    key: str


class Cause(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of the way back. `tape` and `seq` are its entry, where it has one; `by` is who made
    it.
    """

    role: Literal[
        "answer",
        "approval",
        "attempt",
        "call",
        "cost",
        "decision",
        "effect",
        "entry",
        "fork",
        "grant",
        "input",
        "memory",
        "message",
        "model",
        "notice",
        "prompt",
        "reply",
        "request",
        "result",
        "route",
        "run",
        "schedule",
        "subagent",
        "undo",
    ]
    text: str
    by: str = ""
    names: tuple[str, ...] = ()
    kind: str = ""
    tape: str = ""
    seq: int = 0
    position: int = 0
    time_ms: int = 0
    run_id: str = ""
    cost_microusd: int = 0
    policy_version: str = ""
    causes: tuple["Cause", ...] = ()


class WhyAnswer(Struct, frozen=True, kw_only=True):
    """`about` is what was asked for, whole. `found` has a tree for each effect, newest first;
    `more`: there are older ones.
    """

    about: str
    found: tuple[Cause, ...]
    more: bool = False


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
    """Result of sealing, or its preview. `bytes` is what it took in the database, `sealed_bytes`
    what the segments take.
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
