"""Lookups of another agent over MCP, and the two things it can say: a memory for review, and an
answer to an approval.

The rule: every list is short and says how to get the rest; what came from outside keeps its label;
and what another program says is never the owner's own word. A memory needs review, and an answer
counts only where a policy says so.

Every tool of the MCP server, in one table.
"""

import asyncio
import re
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from palyra.agent.approval_steps import Answer as ApprovalAnswer
from palyra.agent.approvals import ApprovalService
from palyra.agent.sessions import Sessions
from palyra.api import journal
from palyra.api.calls import Count, Input, Ulid
from palyra.core import events, labels
from palyra.core.events import (
    Entry,
    InputReceived,
    ModelReplied,
    RunCancelled,
    RunFailed,
    ToolFinished,
)
from palyra.features.mcp_server import ask_tool
from palyra.features.mcp_server.ask_tool import McpToolResult, ServedTool, ToolInvocation
from palyra.features.memory.model import Kind, NewMemory
from palyra.features.memory.model import Text as MemoryText
from palyra.features.memory.recall import Transcripts
from palyra.features.memory.service import Memory, Origin
from palyra.store import approvals, sessions, tape
from palyra.store.approvals import Approval
from palyra.store.database import Database, Tx
from palyra.store.tape import StoredEntry
from palyra.store.upkeep import Upkeep

_LONGEST_SAID = 4_000
_SCANNED = 5_000
_PAGE = 500
_entry = msgspec.json.Decoder(Entry)
_UNNAMED = re.compile(r"[^A-Za-z0-9_.-]+")

Few = Annotated[int, Meta(ge=1, le=100, description="at most so many")]


class SessionsArguments(Input, frozen=True, kw_only=True):
    limit: Few = 20
    before: Annotated[Ulid, Meta(description="the last session_id of the page before")] = ""
    archived: bool = False


class SessionArguments(Input, frozen=True, kw_only=True):
    session_id: Ulid
    after: Annotated[Count, Meta(description="the `next` of the page before")] = 0
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class SearchSessionsArguments(Input, frozen=True, kw_only=True):
    text: Annotated[str, Meta(min_length=1, max_length=500, description="words, or what is meant")]
    limit: Few = 10


class ApprovalsArguments(Input, frozen=True, kw_only=True):
    pending: bool = True
    limit: Few = 20


class AnswerApprovalArguments(Input, frozen=True, kw_only=True):
    approval_id: Ulid
    decision: Literal["allow", "deny"]
    reason: Annotated[str, Meta(max_length=500)] = ""


class MemorySearchArguments(Input, frozen=True, kw_only=True):
    text: Annotated[str, Meta(min_length=1, max_length=2_000)]
    session_id: Annotated[
        Ulid, Meta(description="what the agent would see from there; without it, everything")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=50)] = 10


class Remember(Input, frozen=True, kw_only=True):
    text: MemoryText
    kind: Kind = "fact"


class JournalSearch(Input, frozen=True, kw_only=True):
    text: Annotated[
        str, Meta(max_length=200, description="letters that the entry holds; without it, any")
    ] = ""
    kind: Annotated[
        str, Meta(max_length=64, description="such as tool.started; without it, any")
    ] = ""
    run_id: Ulid = ""
    after: Annotated[Count, Meta(description="the `next` of the page before")] = 0
    limit: Few = 20


class Verify(Input, frozen=True, kw_only=True):
    """Arguments: none."""


class TranscriptLine(Struct, frozen=True, omit_defaults=True):
    seq: int
    time_ms: int
    speaker: str
    text: str
    run_id: str = ""
    label: labels.Label = labels.CLEAN


async def sessions_list(asked: ToolInvocation, wanted: SessionsArguments) -> McpToolResult:
    verbs = asked.call.services.get(Sessions)
    found = await verbs.listing(
        asked.principal,
        archived=wanted.archived,
        before=wanted.before,
        limit=wanted.limit,
        device=asked.call.token.device,
    )
    shown = [
        {
            "session_id": each.session_id,
            "title": each.title,
            "key": each.key or "",
            "updated_ms": each.updated_ms,
            "workspace": each.workspace,
            "active": each.active,
            "entries": each.head_seq,
        }
        for each in found
    ]
    return McpToolResult(
        data={
            "sessions": shown,
            "next": found[-1].session_id if len(found) == wanted.limit else None,
        }
    )


async def session_read(asked: ToolInvocation, wanted: SessionArguments) -> McpToolResult:
    """Return what was said and done, without what only the machinery needs."""

    def page(tx: Tx) -> list[StoredEntry]:
        sessions.get(tx, wanted.session_id, asked.principal)
        return tape.after(tx, wanted.session_id, wanted.after, wanted.limit)

    stored = await asked.call.services.get(Database).read(page)
    lines = [line for each in stored for line in _lines(_entry.decode(each.wire))]
    following = stored[-1].seq if len(stored) == wanted.limit else None
    label = labels.join(line.label for line in lines)
    return McpToolResult(data={"lines": msgspec.to_builtins(lines), "next": following}, label=label)


def _lines(entry: Entry) -> list[TranscriptLine]:
    match events.decode(entry.event):
        case InputReceived(text=text) as event:
            said = [(entry.principal, text, event.brings)]
        case ModelReplied(text=text, calls=calls):
            said = [("agent", text, labels.CLEAN)] if text else []
            said += [
                (
                    "agent",
                    f"calls {each.tool} {msgspec.json.encode(each.arguments).decode()}",
                    labels.CLEAN,
                )
                for each in calls
            ]
        case ToolFinished(outcome=outcome, text=text, label=label):
            said = [("tool", f"{outcome}: {text}", label)]
        case RunFailed(message=text) | RunCancelled(reason=text):
            said = [("daemon", text, labels.CLEAN)]
        case _:
            said = []
    return [
        TranscriptLine(entry.seq, entry.time_ms, speaker, _cut(text), entry.run_id, label)
        for speaker, text, label in said
    ]


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= _LONGEST_SAID
        else f"{text[:_LONGEST_SAID]}… [cut: {len(text)} characters]"
    )


async def sessions_search(asked: ToolInvocation, wanted: SearchSessionsArguments) -> McpToolResult:
    page = await asked.call.services.get(Transcripts).search(
        asked.principal, wanted.text, wanted.limit
    )
    return McpToolResult(
        data=msgspec.to_builtins(page), label=labels.join(each.label for each in page.found)
    )


async def approvals_list(asked: ToolInvocation, wanted: ApprovalsArguments) -> McpToolResult:
    def page(tx: Tx) -> list[Approval]:
        return approvals.listing(
            tx, asked.principal, pending=wanted.pending, before=1 << 62, limit=wanted.limit
        )

    found = await asked.call.services.get(Database).read(page)
    shown: list[dict[str, Any]] = []
    for each in found:
        request = each.request
        preview = _cut(f"{request.preview.title}\n{request.preview.body}".strip())
        shown.append(
            {
                "approval_id": each.approval_id,
                "session_id": each.session_id,
                "run_id": each.run_id,
                "tool": request.tool,
                "about": request.about,
                "preview": preview,
                "risk": request.risk,
                "why": request.why,
                "expires_ms": each.expires_ms,
                "decision": each.decision,
                "answered_by": each.resolved_by,
            }
        )
    return McpToolResult(
        data={"approvals": shown}, label=labels.join(each.request.label for each in found)
    )


def answering_as(token_name: str) -> str:
    """Return who answers, for policy: the program that holds the token, not the person whose token
    it is.
    """
    return f"{approvals.CHANNEL}mcp:{_UNNAMED.sub('-', token_name).strip('-') or 'unnamed'}"


async def approval_answer(asked: ToolInvocation, wanted: AnswerApprovalArguments) -> McpToolResult:
    answer = ApprovalAnswer(decision=wanted.decision, reason=wanted.reason)
    token = asked.call.token
    settled = await asked.call.services.get(ApprovalService).answer(
        asked.principal,
        wanted.approval_id,
        answer,
        f"mcp:{token.name}",
        through=answering_as(token.name),
    )
    return McpToolResult(data={"approval_id": settled.approval_id, "decision": settled.decision})


async def memory_search(asked: ToolInvocation, wanted: MemorySearchArguments) -> McpToolResult:
    memory = asked.call.services.get(Memory)
    where = await memory.where(asked.principal, wanted.session_id)
    found = await memory.search(where, wanted.text, wanted.limit, everywhere=not wanted.session_id)
    shown = [
        {
            "memory_id": each.item.memory_id,
            "text": each.item.text,
            "kind": each.item.kind,
            "score": each.score,
            "label": msgspec.to_builtins(each.item.label),
        }
        for each in found.found
    ]
    data = {"found": shown, "threshold": found.threshold, "words_only": found.words_only}
    return McpToolResult(
        data=data,
        label=labels.join([labels.private("memory"), *(each.item.label for each in found.found)]),
    )


async def memory_remember(asked: ToolInvocation, wanted: Remember) -> McpToolResult:
    memory = asked.call.services.get(Memory)
    where = await memory.where(asked.principal)
    origin = Origin(written="tool", label=labels.untrusted(f"mcp:{asked.call.token.name}"))
    item = await memory.add(where, NewMemory(text=wanted.text, kind=wanted.kind), origin)
    words = "it waits for the owner's look" if item.state == "review" else f"it is {item.state}"
    return McpToolResult(
        text=f"remembered as {item.memory_id}; {words}",
        data={"memory_id": item.memory_id, "state": item.state},
    )


async def journal_search(asked: ToolInvocation, wanted: JournalSearch) -> McpToolResult:
    """Look through the caller's own entries in their order; a part of them at a time."""
    text, kind, run = (
        each.encode()
        for each in (wanted.text, f'"kind":"{wanted.kind}"' if wanted.kind else "", wanted.run_id)
    )
    found: list[Entry] = []
    cursor, scanned, more = wanted.after, 0, True
    while more and scanned < _SCANNED and len(found) < wanted.limit:
        page = partial(tape.after_position, position=cursor, owner=asked.principal, limit=_PAGE)
        stored, upto = await asked.call.services.get(Database).read(page)
        for each in stored:
            cursor, scanned = each.position, scanned + 1
            if text in each.wire and kind in each.wire and run in each.wire:
                found.append(_entry.decode(each.wire))
                if len(found) == wanted.limit:
                    break
        else:
            cursor, more = upto, len(stored) == _PAGE
        await asyncio.sleep(0)
    shown = [
        {
            "position": each.position,
            "session_id": each.tape,
            "seq": each.seq,
            "time_ms": each.time_ms,
            "run_id": each.run_id,
            "kind": each.kind,
            "event": _cut(bytes(each.event).decode()),
        }
        for each in found
    ]
    return McpToolResult(
        data={"entries": shown, "scanned": scanned, "next": cursor if more else None}
    )


async def journal_verify(asked: ToolInvocation, wanted: Verify) -> McpToolResult:
    report = await asyncio.to_thread(
        journal.verified, asked.call.services.get(Upkeep), lambda count: None
    )
    return McpToolResult(data=msgspec.to_builtins(report))


_SESSION = "/v1/sessions/{session_id}"

TOOLS = (
    ServedTool(
        name="ask",
        title="Ask the agent",
        takes=ask_tool.AskArguments,
        streams=ask_tool.ask,
        read_only=False,
        like=f"POST {_SESSION}/messages",
        description=(
            "Give the agent a task or a question and get its answer. It works with its own tools"
            " under its owner's policies, and may wait until a person approves something; progress"
            " says so. To go on, name the answer's session_id."
        ),
    ),
    ServedTool(
        name="run",
        title="How a run stands",
        takes=ask_tool.AwaitRunArguments,
        streams=ask_tool.run,
        like="GET /v1/runs/{run_id}",
        description=(
            "The state of a run, and its answer once it is done. With wait_s, waits for it."
        ),
    ),
    ServedTool(
        name="run_cancel",
        title="Cancel a run",
        takes=ask_tool.CancelRunArguments,
        gives=ask_tool.cancel,
        read_only=False,
        like="POST /v1/runs/{run_id}/cancel",
        description="End a run, in whatever state it is.",
    ),
    ServedTool(
        name="sessions_list",
        title="List conversations",
        takes=SessionsArguments,
        gives=sessions_list,
        like="GET /v1/sessions",
        description="The conversations with the agent, last used first.",
    ),
    ServedTool(
        name="session_read",
        title="Read a conversation",
        takes=SessionArguments,
        gives=session_read,
        like=f"GET {_SESSION}/entries",
        description=(
            "What was said and done in a conversation, in order, a page at a time. What "
            "comes from outside the daemon has a label that says so."
        ),
    ),
    ServedTool(
        name="sessions_search",
        title="Search conversations",
        takes=SearchSessionsArguments,
        gives=sessions_search,
        like="GET /v1/sessions/search",
        description="What was said in earlier conversations, by words and by meaning.",
    ),
    ServedTool(
        name="approvals_list",
        title="List approvals",
        takes=ApprovalsArguments,
        gives=approvals_list,
        like="GET /v1/approvals",
        description="Calls that need approval, or answered ones.",
    ),
    ServedTool(
        name="approval_answer",
        title="Answer an approval",
        takes=AnswerApprovalArguments,
        gives=approval_answer,
        read_only=False,
        like="POST /v1/approvals/{approval_id}/answer",
        description=(
            "Answer an approval, once. It counts only "
            "where one of the owner's policies lets this program answer; ask the person otherwise."
        ),
    ),
    ServedTool(
        name="memory_search",
        title="Search memory",
        takes=MemorySearchArguments,
        gives=memory_search,
        like="GET /v1/memory/search",
        description="What the agent remembers, by words and by meaning, best first.",
    ),
    ServedTool(
        name="memory_remember",
        title="Remember something",
        takes=Remember,
        gives=memory_remember,
        read_only=False,
        like="POST /v1/memory",
        description="Suggest something to remember. It is used once the owner has looked at it.",
    ),
    ServedTool(
        name="journal_search",
        title="Search the journal",
        takes=JournalSearch,
        gives=journal_search,
        like="GET /v1/events",
        description="Entries of the append-only history of your own conversations, in order.",
    ),
    ServedTool(
        name="journal_verify",
        title="Verify the journal",
        takes=Verify,
        gives=journal_verify,
        like="GET /v1/journal/verify",
        description="Check the whole history's hash chain; names the first entry that is wrong.",
    ),
)
