"""A recorded run with everything that its replay needs, from the journal or from a file of its own.

The rule: it is self-contained, and its hash chain is checked before it is believed.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.agent.approval_steps import grant_of
from palyra.core import chain, events
from palyra.core.errors import ChainBroken, InvalidInput, NotFound
from palyra.core.events import (
    AnyEvent,
    Entry,
    InputAssembled,
    InputReceived,
    SessionBranched,
    ToolDecided,
    ToolFinished,
)
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.verdicts import Grant
from palyra.features.memory.model import Item
from palyra.features.memory.rows import items
from palyra.store import approvals, runs, sessions, tape
from palyra.store import artifacts as store_artifacts
from palyra.store.database import Tx
from palyra.store.sessions import Session

FORMAT: Literal["palyra-recording-1"] = "palyra-recording-1"
_EVERYTHING = 1 << 53
_ENDS = frozenset({"run.completed", "run.failed", "run.cancelled"})


class Tape(Struct, frozen=True):
    """A tape from its first entry on."""

    tape: str
    entries: tuple[Entry, ...]


class RecordedArtifact(Struct, frozen=True):
    session_id: str
    artifact_id: str
    media_type: str
    body: bytes


class Recording(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`tapes`: those the session was branched from, oldest first, then its own. Entries `first` to
    `last` of it are replayed.
    """

    format: Literal["palyra-recording-1"] = FORMAT
    session_id: str
    # Empty: the whole session.
    run_id: str = ""
    first: int = 1
    last: int
    tapes: tuple[Tape, ...]
    artifacts: tuple[RecordedArtifact, ...] = ()
    # What was remembered and shown, as it is now: the tape has no text of memory, because a purge
    # must be one.
    remembered: tuple[Item, ...] = ()
    # Wider yeses of before that a decision was based on.
    grants: tuple[Grant, ...] = ()

    @property
    def own(self) -> tuple[Entry, ...]:
        return self.tapes[-1].entries


def read(tx: Tx, wanted: str, principal: str = "") -> Recording:
    """The recording of a run, or of a whole session. Without a principal whoever reads may read
    everything.
    """
    run = runs.find(tx, wanted)
    session = sessions.find(tx, session_id=run.session_id if run else wanted)
    if session is None:
        raise NotFound(f"there is no run or session {wanted[:64]}", wanted=wanted[:64])
    if principal:
        sessions.get(tx, session.session_id, principal)
    own = tuple(_entries(tx, session.session_id, _EVERYTHING))
    first, last = _range(own, run.run_id) if run else (1, len(own))
    tapes = (*_ancestors(tx, session), Tape(session.session_id, own[:last]))
    driven = [events.decode(bytes(entry.event)) for entry in own[first - 1 : last]]
    return Recording(
        session_id=session.session_id,
        run_id=run.run_id if run else "",
        first=first,
        last=last,
        tapes=tapes,
        artifacts=tuple(_artifacts(tx, session.session_id, tapes)),
        remembered=tuple(_remembered(tx, session.owner, driven)),
        grants=tuple(_grants(tx, driven)),
    )


def _entries(tx: Tx, tape_id: str, last: int) -> Iterator[Entry]:
    seq = 0
    while stored := tape.after(tx, tape_id, seq, 2_000):
        for each in stored:
            if each.seq > last:
                return
            yield msgspec.json.decode(each.wire, type=Entry)
        seq = stored[-1].seq


def _range(own: tuple[Entry, ...], run_id: str) -> tuple[int, int]:
    """Return where a run's replay begins, which is where nothing was at work, and where it ends."""
    first = next(entry.seq for entry in own if entry.run_id == run_id)
    last = next(
        (entry.seq for entry in own if entry.run_id == run_id and entry.kind in _ENDS), len(own)
    )
    return _whole(own, first), last


def _whole(own: tuple[Entry, ...], first: int) -> int:
    """The same or an earlier place at which no run is open."""
    while True:
        opened: dict[str, int] = {}
        for entry in own[: first - 1]:
            if entry.kind == "run.accepted":
                opened[entry.run_id] = entry.seq
            elif entry.kind in _ENDS:
                opened.pop(entry.run_id, None)
        if not opened:
            return first
        first = min(opened.values())


def _ancestors(tx: Tx, session: Session) -> list[Tape]:
    found: list[Tape] = []
    at = session
    while at.parent_id:
        found.append(Tape(at.parent_id, tuple(_entries(tx, at.parent_id, at.parent_seq))))
        parent = sessions.find(tx, session_id=at.parent_id)
        if parent is None:
            break
        at = parent
    return found[::-1]


def _artifacts(tx: Tx, session_id: str, tapes: Iterable[Tape]) -> Iterator[RecordedArtifact]:
    wanted: dict[tuple[str, str], None] = {}
    for part in tapes:
        for entry in part.entries:
            match events.decode(bytes(entry.event)):
                case ToolFinished() as event:
                    named = [event.artifact, *(each.artifact for each in event.images)]
                case InputReceived() as received:
                    named = [each.artifact for each in received.attachments]
                    named += [each.text_artifact for each in received.attachments]
                    named += [each.artifact for each in received.references]
                case InputAssembled() as assembled if assembled.surroundings:
                    wanted[SYSTEM_TAPE, assembled.surroundings] = None
                    continue
                case _:
                    continue
            wanted.update(((part.tape, each), None) for each in named if each)
    for owner, artifact_id in wanted:
        found = store_artifacts.artifact(tx, owner, artifact_id)
        if found is not None:
            yield RecordedArtifact(owner, artifact_id, found.media_type, found.body)


def _remembered(tx: Tx, owner: str, driven: Iterable[AnyEvent]) -> Iterator[Item]:
    wanted = dict.fromkeys(
        each
        for event in driven
        if isinstance(event, InputAssembled)
        for each in (*(memory_id for memory_id, _ in event.recalled), *event.kept_memory)
    )
    for memory_id in wanted:
        try:
            yield items.get(tx, owner, memory_id)
        except NotFound:
            continue  # Purged since: the replay will say that the prompt is another one.


def based_on(event: AnyEvent) -> str:
    """The approval whose wider yes decided a call, or nothing."""
    return (
        event.reason.rpartition(" ")[2]
        if isinstance(event, ToolDecided) and event.by == "grant"
        else ""
    )


def _grants(tx: Tx, driven: list[AnyEvent]) -> Iterator[Grant]:
    given_here = {
        event.approval_id for event in driven if isinstance(event, events.ApprovalResolved)
    }
    for approval_id in dict.fromkeys(filter(None, map(based_on, driven))):
        approval = approvals.find(tx, approval_id) if approval_id not in given_here else None
        grant = (
            grant_of(approval, approval.resolution) if approval and approval.resolution else None
        )
        if grant is not None:
            yield grant


def encode(recording: Recording) -> bytes:
    return msgspec.json.encode(recording)


def decode(body: bytes) -> Recording:
    """A recording from a file, its chain checked. Raises InvalidInput or ChainBroken."""
    try:
        recording = msgspec.json.decode(body, type=Recording)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"this is not a recording of a run: {error}") from None
    if not recording.tapes or not 1 <= recording.first <= recording.last == len(recording.own):
        raise InvalidInput(
            "this recording is not whole: its tape does not have the entries that are to be"
            " replayed"
        )
    for part in recording.tapes:
        _check_chain(part)
    return recording


def _check_chain(part: Tape) -> None:
    prev = chain.GENESIS
    for number, entry in enumerate(part.entries, 1):
        if not 1 <= entry.link <= chain.NEWEST:
            raise InvalidInput(f"a link of version {entry.link} is not known: upgrade palyra")
        prev = chain.link_of(
            entry.link,
            prev,
            tape=part.tape,
            seq=number,
            position=entry.position,
            time_ms=entry.time_ms,
            run_id=entry.run_id,
            principal=entry.principal,
            kind=entry.kind,
            body=bytes(entry.event),
        )
        if entry.seq != number or entry.tape != part.tape or entry.hash != prev.hex():
            raise ChainBroken(
                f"entry {number} of tape {part.tape} is not as it was written",
                tape=part.tape,
                seq=number,
            )


def parent_of(entries: Iterable[Entry], tape_id: str) -> SessionBranched | None:
    """Return where a tape comes from, if it is a branch."""
    for entry in entries:
        if entry.kind == "session.branched":
            event = events.decode(bytes(entry.event))
            assert isinstance(event, SessionBranched)
            if event.child == tape_id:
                return event
    return None


def title(recording: Recording) -> str:
    """Return what was asked, in a few words, for listings."""
    said = (events.decode(bytes(entry.event)) for entry in recording.own[recording.first - 1 :])
    text = next((event.text for event in said if isinstance(event, InputReceived)), "")
    return sessions.title_from(text)
