"""Which entries brought in what a label names. Read only when a person is asked, so nobody pays for
it before.
"""

from palyra.core import events, labels
from palyra.core.events import Brought, InputReceived, ToolFinished, ToolProposed
from palyra.core.labels import Label
from palyra.store import sessions
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
