"""Recorded decisions: every call that was judged, as it was asked and as it was decided, read back
from the tapes.

Which entries brought in what a label names. Read only when a person is asked, so nobody pays for
it before.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core import events, labels
from palyra.core.errors import NotFound
from palyra.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Brought,
    InputReceived,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.ids import CallId
from palyra.core.labels import Label
from palyra.store import sessions, subagents
from palyra.store.database import Tx
from palyra.store.sessions import Session


def brought(tx: Tx, session: Session, label: Label) -> tuple[Brought, ...]:
    """Each source of the label with the first entry of the conversation that brought it in; the
    untrusted ones first.
    """
    first = _first_entries(tx, session)
    named = dict.fromkeys((*label.sources, *label.private_sources))
    return tuple(_brought(name, first, label, session.session_id) for name in named)


def _brought(name: str, first: dict[str, tuple[str, int, str]], label: Label, own: str) -> Brought:
    place = first.get(name) or next(
        (first[source] for source in first if labels.names(name, source)), ("", 0, "")
    )
    tape, seq, tool = place
    return Brought(
        source=name,
        seq=seq,
        tool=tool,
        tape="" if tape == own else tape,
        untrusted=name in label.sources,
        private=name in label.private_sources,
    )


def _first_entries(tx: Tx, session: Session) -> dict[str, tuple[str, int, str]]:
    """Source to (tape, seq, tool), oldest first. Sources that slid out of the window are not found
    any more.
    """
    first: dict[str, tuple[str, int, str]] = {}
    for part in sessions.lineage(tx, session):
        rows = tx.all(
            """SELECT seq, body FROM entries WHERE tape = :tape AND seq BETWEEN :first AND :last
                AND kind IN ('tool.proposed', 'tool.finished', 'input.received') ORDER BY seq""",
            tape=part.tape,
            first=part.first,
            last=part.last,
        )
        tools: dict[str, str] = {}
        for seq, body in rows:
            event = events.decode(body)
            match event:
                case ToolProposed():
                    tools[event.call_id] = event.tool
                case ToolFinished() | InputReceived():
                    tool = tools.get(event.call_id, "") if isinstance(event, ToolFinished) else ""
                    label = event.brings if isinstance(event, InputReceived) else event.label
                    for source in (*label.sources, *label.private_sources):
                        first.setdefault(source, (part.tape, seq, tool))
                case _:
                    pass
    return first


_KINDS = "('tool.proposed', 'tool.decided', 'approval.requested', 'approval.resolved')"
_PAGE = 2_000
Looked = tuple[int, int, str, str, str, bytes]
# How a thread reads the journal: `Database.read_from_thread`.
Read = Callable[[Callable[[Tx], list[Looked]]], list[Looked]]


class RecordedCall(Struct, frozen=True, kw_only=True):
    """One call. `principal` is whose run it was."""

    position: int
    time_ms: int
    session_id: str
    run_id: str
    principal: str
    proposed: ToolProposed
    decided: ToolDecided


class AnsweredCall(Struct, frozen=True, kw_only=True):
    """One call that a person was asked about, with the answer."""

    call: RecordedCall
    request: ApprovalRequested
    answer: ApprovalResolved


def page(tx: Tx, after: int, since_ms: int, limit: int = _PAGE) -> list[Looked]:
    """Entries about deciding behind a position, oldest first, still encoded."""
    return tx.all(
        f"""SELECT position, time_ms, tape, run_id, principal, body FROM entries
        WHERE kind IN {_KINDS} AND position > :after AND time_ms >= :since_ms ORDER BY position
        LIMIT :limit""",
        after=after,
        since_ms=since_ms,
        limit=limit,
    )


class DecisionReader:
    """Puts the entries of calls together again, page by page."""

    def __init__(self) -> None:
        self.position = 0
        self._open: dict[CallId, ToolProposed] = {}
        self._asked: dict[CallId, RecordedCall] = {}
        self._requests: dict[str, ApprovalRequested] = {}

    def take(self, rows: list[Looked]) -> Iterator[RecordedCall | AnsweredCall]:
        """The calls and the answers that these entries complete."""
        for position, time_ms, tape_id, run_id, principal, body in rows:
            self.position = position
            event = events.decode(body)
            match event:
                case ToolProposed():
                    self._open[event.call_id] = event
                case ToolDecided():
                    proposed = self._open.pop(event.call_id, None)
                    if proposed is None:
                        continue
                    found = RecordedCall(
                        position=position,
                        time_ms=time_ms,
                        session_id=tape_id,
                        run_id=run_id,
                        principal=principal,
                        proposed=proposed,
                        decided=event,
                    )
                    if event.verdict == "ask":
                        self._asked[event.call_id] = found
                    yield found
                case ApprovalRequested(about="tool"):
                    self._requests[event.approval_id] = event
                case ApprovalResolved():
                    call, request = (
                        self._asked.pop(event.call_id, None),
                        self._requests.pop(event.approval_id, None),
                    )
                    if call is not None and request is not None:
                        yield AnsweredCall(call=call, request=request, answer=event)
                case _:
                    pass


def pages(read: Read, since_ms: int) -> Iterator[list[RecordedCall | AnsweredCall]]:
    """All calls and answers since a time, oldest first, a page of the journal at a time."""
    reading = DecisionReader()
    while rows := read(lambda tx: page(tx, reading.position, since_ms)):
        yield list(reading.take(rows))


def find(tx: Tx, call_id: str) -> RecordedCall:
    """The recorded decision about one call."""
    rows: list[Looked] = tx.all(
        f"""SELECT position, time_ms, tape, run_id, principal, body FROM entries
        WHERE kind IN {_KINDS} AND instr(body, CAST(:call_id AS BLOB)) > 0 ORDER BY position""",
        call_id=call_id,
    )
    for found in DecisionReader().take(rows):
        if isinstance(found, RecordedCall) and found.proposed.call_id == call_id:
            return found
    raise NotFound(f"no call {call_id} was decided here", call_id=call_id)


class SessionCounts(Struct, frozen=True):
    """Counts of a session since its conversation began, with all its subagents: calls, commands,
    and the files it changed.
    """

    calls: int
    commands: int
    files: frozenset[str]


def counts(tx: Tx, session_id: str) -> SessionCounts:
    root = subagents.root(tx, session_id)
    below = [agent.session_id for agent in subagents.tree(tx, root)]
    rows = tx.all(
        """SELECT body FROM entries WHERE tape IN (SELECT value FROM json_each(:tapes))
            AND kind IN ('tool.proposed', 'tool.started', 'tool.finished')
            AND position > coalesce((SELECT max(position) FROM entries WHERE tape = :root AND kind =
            'session.reset'), 0)
        ORDER BY position""",
        tapes=msgspec.json.encode([root, *below]).decode(),
        root=root,
    )
    proposed: dict[CallId, ToolProposed] = {}
    files: dict[CallId, tuple[str, ...]] = {}
    started, commands = set[CallId](), set[CallId]()
    for (body,) in rows:
        event = events.decode(body)
        match event:
            case ToolProposed():
                proposed[event.call_id] = event
            case ToolStarted():
                started.add(event.call_id)
                call = proposed.get(event.call_id)
                if call is not None and needs(call, "process"):
                    commands.add(event.call_id)
                if call is not None and needs(call, "fs.write"):
                    files[event.call_id] = call.scope.paths
            case ToolFinished(call_id=call_id) if call_id in files:
                root = proposed[call_id].scope.workspace
                said = tuple(f"{root}/{change.path}" for change in event.changes)
                files[call_id] = said or (
                    files[call_id] if event.outcome in ("ok", "unknown", "timeout") else ()
                )
            case _:
                pass
    return SessionCounts(
        len(started), len(commands), frozenset(path for paths in files.values() for path in paths)
    )


def needs(call: ToolProposed, capability: Literal["process", "fs.write"]) -> bool:
    return call.asked is not None and capability in call.asked.capabilities
