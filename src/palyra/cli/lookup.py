"""Finding what a command is about: sessions by folder, entries page by page, ids as a person types
them.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from palyra.client.calling import new_id
from palyra.core import ids
from palyra.core.errors import PalyraError

if TYPE_CHECKING:
    from palyra.client import Client
    from palyra.client.http import LinkState, ServerSentEvent, StopSignal
    from palyra.client.types.approvals import Approval
    from palyra.client.types.sessions import RunRow, Session, Submitted
    from palyra.core.events import Entry

PAGE = 200
# Labels the sessions that `palyra ask` makes.
ASKED = "ask"
TERMINAL = frozenset({"done", "failed", "cancelled"})
# The daemon reads what a message names before it takes the message.
_READING_S = 60.0
_MOST_PENDING = 100
_LAST_RUNS = 20


def checked(identifier: str) -> str:
    """Return an id as typed by a person: it goes into a path, so it must be one."""
    return ids.check(identifier.strip().upper(), "the id")


def sessions(api: "Client", *, archived: bool = False, limit: int = 50) -> "list[Session]":
    """Return sessions, last used first, at most `limit`."""
    found: list[Session] = []
    before = ""
    while len(found) < limit:
        page = api.list_sessions(
            archived=archived, before=before, limit=min(PAGE, limit - len(found))
        )
        found += page.sessions
        before = page.next or ""
        if not before:
            break
    return found[:limit]


def last_session(api: "Client", workspace: str) -> "Session | None":
    """Return the chat last used in a folder; what a script asked is another conversation."""
    return next((each for each in sessions_of(api, workspace) if each.label != ASKED), None)


def sessions_of(api: "Client", workspace: str) -> "list[Session]":
    """Return the sessions of a folder among those last used, last used first."""
    return [each for each in sessions(api, limit=PAGE) if each.workspace == workspace]


def entries(
    api: "Client", session_id: str, after: int = 0, limit: int | None = None
) -> "Iterator[Entry]":
    """Yield stored entries behind a cursor, oldest first."""
    while limit is None or limit > 0:
        page = api.list_entries(
            checked(session_id), after=after, limit=PAGE if limit is None else min(PAGE, limit)
        )
        yield from page.entries
        if page.next is None or not page.entries:
            return
        after = page.entries[-1].seq
        limit = None if limit is None else limit - len(page.entries)


def head(api: "Client", session: "Session") -> int:
    """Return how long a session's tape is. Where the session does not say, it is found in few
    requests, however long it is.
    """
    if session.head_seq:
        return session.head_seq

    def reaches(seq: int) -> bool:
        return any(True for _ in entries(api, session.session_id, seq - 1, limit=1))

    low, high = 0, 1
    while reaches(high):
        low, high = high, high * 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def submit(
    api: "Client", session_id: str, text: str, *, attachments: Sequence[Any] = (), **more: Any
) -> "Submitted":
    """Hand over an input. What it attaches or names is read first, which takes longer."""
    patient = api.within(_READING_S) if attachments or "@" in text else api
    return patient.submit(session_id, text=text, attachments=tuple(attachments), **more)


def unfinished(api: "Client", session_id: str) -> "list[RunRow]":
    """Return the runs of a session, among its last, that have not ended."""
    return [
        run for run in api.list_runs(session_id, limit=_LAST_RUNS).runs if run.state not in TERMINAL
    ]


def watch(
    api: "Client",
    session_id: str,
    after: int,
    stopped: "StopSignal",
    *,
    until: str = "",
    patience_s: float | None = None,
) -> "Iterator[ServerSentEvent | LinkState]":
    """Yield the events of a session behind a cursor, and say when the connection is lost and made
    again.
    """
    tail = f"?until={until}" if until else ""
    return api.http.watch(
        f"/v1/sessions/{session_id}/events{tail}", after, stopped, overlap=1, patience_s=patience_s
    )


def pending(api: "Client") -> "tuple[Approval, ...] | list[Approval]":
    """Return the approvals that wait for an answer."""
    return api.list_approvals(limit=_MOST_PENDING).approvals


def answered_ms(api: "Client", approval_id: str) -> int:
    """Return when an approval was answered; 0 if that cannot be known."""
    try:
        return api.get_approval(approval_id).resolved_ms
    except PalyraError:
        return 0


__all__ = [
    "ASKED",
    "PAGE",
    "TERMINAL",
    "answered_ms",
    "checked",
    "entries",
    "head",
    "last_session",
    "new_id",
    "pending",
    "sessions",
    "sessions_of",
    "submit",
    "unfinished",
    "watch",
]
