"""The daemon's verbs as typed functions over HTTP. The one module of the command line that knows
paths.

Types of the journal are the daemon's own. The three answers of the runtime are named again here,
because importing it would cost every command more time than it needs; a test holds them to the
originals.
"""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct

from palyra.client.http import Api, LinkState, ServerSentEvent, StopSignal
from palyra.core import ids
from palyra.core.errors import PalyraError
from palyra.core.events import Entry, FileChange, InputMode
from palyra.core.tools import Preview, Subject
from palyra.core.verdicts import Grant
from palyra.features.memory.model import Said
from palyra.store.approvals import Approval
from palyra.store.runs import RunRow
from palyra.store.sessions import Session
from palyra.store.subagents import Agent

T = TypeVar("T")
PAGE = 200
# Labels the sessions that `palyra ask` makes.
ASKED = "ask"
TERMINAL = frozenset({"done", "failed", "cancelled"})
# What a message names is read before it is taken.
_READING_S = 60.0
_PATIENCE_S = 30.0


class Submitted(Struct, frozen=True):
    run_id: str
    session_id: str
    submission_id: str
    state: str
    outcome: Literal["started", "queued", "joined", "repeated"]
    seq: int


class NotUndone(Struct, frozen=True):
    call_id: str
    tool: str
    why: str


class Undone(Struct, frozen=True):
    calls: tuple[str, ...]
    changes: tuple[FileChange, ...]
    dry_run: bool = False
    diff: str = ""
    conflicts: tuple[str, ...] = ()
    left: tuple[NotUndone, ...] = ()


class Cancelled(Struct, frozen=True):
    cancelled: tuple[str, ...]
    recorded: bool = True


class Model(Struct, frozen=True):
    name: str
    provider: str = ""
    model: str = ""
    context_tokens: int = 0
    default: bool = False
    healthy: bool | str = True


class _Sessions(Struct):
    sessions: list[Session]
    next: str | None = None


class SaidPage(Struct):
    found: list[Said]
    words_only: str = ""
    not_searched: int = 0


class _Entries(Struct):
    entries: list[Entry]
    next: int | None = None


class _Approvals(Struct):
    approvals: list[Approval]


class _Grants(Struct):
    grants: list[Grant]


class _Agents(Struct):
    agents: list[Agent]


class _Runs(Struct):
    runs: list[RunRow]


class _Models(Struct):
    models: list[Model]


def new_id() -> str:
    return ids.make(int(time.time() * 1000), os.urandom(10))


def resolve(api: Api, **wanted: Any) -> Session:
    """Find or make a session; see the API's Resolve for what can be wanted."""
    return api.post("/v1/sessions", Session, {key: value for key, value in wanted.items() if value})


def session(api: Api, session_id: str) -> Session:
    return api.get(f"/v1/sessions/{checked(session_id)}", Session)


def agents(api: Api, session_id: str) -> list[Agent]:
    """Those that work or worked for a session, each behind the one it works for."""
    return api.get(f"/v1/sessions/{checked(session_id)}/agents", _Agents).agents


def sessions(api: Api, *, archived: bool = False, limit: int = 50) -> list[Session]:
    """Last used first, at most `limit`."""
    found: list[Session] = []
    before: str | None = None
    while len(found) < limit:
        page = api.get(
            "/v1/sessions",
            _Sessions,
            archived=archived,
            before=before,
            limit=min(PAGE, limit - len(found)),
        )
        found += page.sessions
        before = page.next
        if not before:
            break
    return found[:limit]


def last_session(api: Api, workspace: str) -> Session | None:
    """The chat last used in a folder; what a script asked is another conversation."""
    return next((each for each in sessions_of(api, workspace) if each.label != ASKED), None)


def sessions_of(api: Api, workspace: str) -> list[Session]:
    """Sessions of a folder among those last used, last used first."""
    return [each for each in sessions(api, limit=PAGE) if each.workspace == workspace]


def search(api: Api, words: str, limit: int, *, semantic: bool) -> SaidPage:
    return api.get("/v1/sessions/search", SaidPage, q=words, limit=limit, semantic=semantic)


def change(
    api: Api,
    session_id: str,
    *,
    title: str | None = None,
    archived: bool | None = None,
    kept: bool | None = None,
) -> Session:
    given = (("title", title), ("archived", archived), ("kept", kept))
    body = {key: value for key, value in given if value is not None}
    return api.patch(f"/v1/sessions/{checked(session_id)}", Session, body)


def reset(api: Api, session_id: str) -> Session:
    return api.post(f"/v1/sessions/{checked(session_id)}/reset", Session)


def branch(api: Api, session_id: str, at: int | None, title: str = "") -> Session:
    body = {key: value for key, value in (("at", at), ("title", title)) if value not in (None, "")}
    return api.post(f"/v1/sessions/{checked(session_id)}/branch", Session, body)


def entries(api: Api, session_id: str, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
    """Stored entries behind a cursor, oldest first."""
    while limit is None or limit > 0:
        size = PAGE if limit is None else min(PAGE, limit)
        page = api.get(
            f"/v1/sessions/{checked(session_id)}/entries", _Entries, after=after, limit=size
        )
        yield from page.entries
        if page.next is None or not page.entries:
            return
        after = page.entries[-1].seq
        limit = None if limit is None else limit - len(page.entries)


def head(api: Api, session_: Session) -> int:
    """How long a session's tape is. Where the session does not say, it is found in few requests,
    however long it is.
    """
    if session_.head_seq:
        return session_.head_seq

    def reaches(seq: int) -> bool:
        return any(True for _ in entries(api, session_.session_id, seq - 1, limit=1))

    low, high = 0, 1
    while reaches(high):
        low, high = high, high * 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def undo(
    api: Api,
    session_id: str,
    *,
    call_id: str = "",
    run_id: str = "",
    dry_run: bool = False,
    force: bool = False,
) -> Undone:
    wanted = {"call_id": call_id, "run_id": run_id, "dry_run": dry_run, "force": force}
    return api.post(
        f"/v1/sessions/{checked(session_id)}/undo",
        Undone,
        {key: value for key, value in wanted.items() if value},
    )


def submit(
    api: Api,
    session_id: str,
    text: str,
    *,
    mode: InputMode = "followup",
    model: str = "",
    run_id: str = "",
    attended: bool = True,
    attachments: Sequence[dict[str, str]] = (),
) -> Submitted:
    """Hand over an input. The id is ours, so that saying it again after a broken connection is the
    same submission.
    """
    wanted: dict[str, Any] = {
        "text": text,
        "run_id": run_id or new_id(),
        "mode": mode,
        "model": model,
    }
    wanted["attachments"] = list(attachments)
    body = {key: value for key, value in wanted.items() if value} | (
        {} if attended else {"attended": False}
    )
    patience = _READING_S if attachments or "@" in text else _PATIENCE_S
    return api.post(f"/v1/sessions/{session_id}/messages", Submitted, body, timeout_s=patience)


def run(api: Api, run_id: str) -> RunRow:
    return api.get(f"/v1/runs/{checked(run_id)}", RunRow)


def runs(api: Api, session_id: str, limit: int = 20) -> list[RunRow]:
    return api.get(f"/v1/sessions/{checked(session_id)}/runs", _Runs, limit=limit).runs


def cancel(api: Api, run_id: str, reason: str = "") -> RunRow:
    return api.post(f"/v1/runs/{run_id}/cancel", RunRow, {"reason": reason} if reason else {})


def fork(api: Api, run_id: str, gives: type[T], **wanted: int | str) -> T:
    """Take a run up again. The one command that needs this brings the type of the answer."""
    return api.post(
        f"/v1/runs/{checked(run_id)}/fork",
        gives,
        {key: value for key, value in wanted.items() if value},
    )


def stop(api: Api) -> Cancelled:
    return api.post("/v1/stop", Cancelled)


def watch(
    api: Api,
    session_id: str,
    after: int,
    stopped: StopSignal,
    *,
    until: str = "",
    patience_s: float | None = None,
) -> Iterator[ServerSentEvent | LinkState]:
    tail = f"?until={until}" if until else ""
    return api.watch(
        f"/v1/sessions/{session_id}/events{tail}", after, stopped, overlap=1, patience_s=patience_s
    )


def approvals(
    api: Api, *, pending: Literal["true", "false", "any"] = "true", limit: int = 100
) -> list[Approval]:
    return api.get("/v1/approvals", _Approvals, pending=pending, limit=limit).approvals


def approval(api: Api, approval_id: str) -> Approval:
    return api.get(f"/v1/approvals/{checked(approval_id)}", Approval)


def answered_ms(api: Api, approval_id: str) -> int:
    """When an approval was answered; 0 if that cannot be known."""
    try:
        return approval(api, approval_id).resolved_ms
    except PalyraError:
        return 0


def answer(
    api: Api,
    approval_id: str,
    decision: str,
    *,
    scope: str = "once",
    subject: Subject | None = None,
    for_ms: int = 0,
    arguments: dict[str, Any] | None = None,
    reason: str = "",
    seen: str = "",
) -> Approval:
    body: dict[str, Any] = {
        "decision": decision,
        "scope": scope,
        "for_ms": for_ms,
        "reason": reason,
        "seen": seen,
    }
    body = {key: value for key, value in body.items() if value}
    if subject is not None:
        body["subject"] = subject
    if arguments is not None:
        body["arguments"] = arguments
    return api.post(f"/v1/approvals/{checked(approval_id)}/answer", Approval, body)


class ApprovalPreview(Struct, frozen=True, kw_only=True):
    preview: Preview
    verdict: str
    why: str = ""


def approval_preview(
    api: Api, approval_id: str, arguments: dict[str, Any] | None = None
) -> ApprovalPreview:
    """Return all of what a pending call would do, with its own arguments or edited ones."""
    body = {"arguments": arguments} if arguments is not None else {}
    return api.post(f"/v1/approvals/{checked(approval_id)}/preview", ApprovalPreview, body)


def grants(api: Api) -> list[Grant]:
    return api.get("/v1/grants", _Grants).grants


def revoke(api: Api, approval_id: str) -> None:
    api.delete(f"/v1/grants/{checked(approval_id)}")


def models(api: Api) -> list[Model]:
    return api.get("/v1/models", _Models).models


def checked(identifier: str) -> str:
    """An id as typed by a person: it goes into a path, so it must be one."""
    return ids.check(identifier.strip().upper(), "the id")


class _Position(Struct):
    entries: int


def last_position(api: Api) -> int:
    """How long the journal is: positions are its count."""
    return api.get("/v1/status", _Position).entries
