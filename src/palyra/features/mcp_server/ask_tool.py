"""Asking the agent over MCP: one call starts a run, tells how it goes, and gives its answer.

A run belongs to the daemon. Whoever stops waiting finds it again by its id; only who takes the
question back ends it.

What a tool of the MCP server is: its arguments as a type, the endpoint whose right it needs, and
what it gives.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from palyra.agent import client_tokens
from palyra.agent.gateway import Gateway
from palyra.agent.sessions import Resolve, Sessions
from palyra.agent.submit import Submission
from palyra.api.calls import ApiCall, Input, Nothing, Ulid, Upload
from palyra.api.limits import OpenStreams
from palyra.core import events, wait_words
from palyra.core.events import (
    AgentAsked,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Entry,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunStarted,
    RunWaiting,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.labels import CLEAN, Label
from palyra.core.run_state import TERMINAL
from palyra.features.mcp_server.jsonrpc import McpRequest
from palyra.store import approvals, runs
from palyra.store.database import Database
from palyra.system.clock import Clock

# As text and as data together; what is longer says how to ask for less.
MOST_RESULT = 128 << 10


class AwaitedCall(Struct):
    """A call that takes its time: the run that it waits for, and whether the client has taken it
    back.
    """

    run_id: str = ""
    withdrawn: bool = False


class ToolInvocation(Struct, frozen=True):
    """One call of a tool: who calls, with which token, and the message it came in."""

    call: ApiCall[Nothing, Upload]
    request: McpRequest
    running: AwaitedCall

    @property
    def leaving_cancels(self) -> bool:
        """Return whether the run ends when its client goes away. It does not when the daemon
        does.
        """
        return self.request.modern and not self.call.services.get(OpenStreams).closing

    @property
    def principal(self) -> str:
        return self.call.principal


class ServedProgress(Struct, frozen=True):
    """`seq`: the entry of the session's tape that it tells of; 0 on nobody's tape. It grows, as the
    protocol wants it to.
    """

    message: str
    seq: int


class McpToolResult(Struct, frozen=True, kw_only=True):
    """`text`: for a model; without it, the data as JSON. `label`: of what it was made from.
    `blocks`: content that is no text.
    """

    text: str = ""
    data: dict[str, Any] | None = None
    is_error: bool = False
    label: Label = CLEAN
    blocks: tuple[dict[str, Any], ...] = ()

    def wire(self) -> dict[str, Any]:
        text = self.text or (
            msgspec.json.encode(self.data).decode() if self.data is not None else ""
        )
        if len(text) > MOST_RESULT:
            return McpToolResult(
                text=(
                    f"the result has {len(text)} characters, more than {MOST_RESULT}: ask for fewer"
                ),
                is_error=True,
            ).wire()
        content: list[dict[str, Any]] = (
            [{"type": "text", "text": text}] if text or not self.blocks else []
        )
        value: dict[str, Any] = {"content": [*content, *self.blocks], "isError": self.is_error}
        if self.data is not None:
            value["structuredContent"] = self.data
        if self.label != CLEAN:
            value["_meta"] = {"palyra/label": msgspec.to_builtins(self.label)}
        return value


Gives = Callable[[ToolInvocation, Any], Awaitable[McpToolResult]]
Streams = Callable[[ToolInvocation, Any], AsyncGenerator[ServedProgress | McpToolResult, None]]


class ServedTool(Struct, frozen=True, kw_only=True):
    """`like`: the endpoint that does the same; whoever may not call that may not call this. Either
    `gives` or `streams` does it.
    """

    name: str
    title: str
    description: str
    takes: type[Struct]
    like: str
    gives: Gives | None = None
    streams: Streams | None = None
    read_only: bool = True
    schema: dict[str, Any] | None = None

    def shown(self) -> dict[str, Any]:
        """Return it as tools/list shows it."""
        hints = {"readOnlyHint": self.read_only, "openWorldHint": False}
        if not self.read_only:
            hints |= {"destructiveHint": self.name == "ask", "idempotentHint": False}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema if self.schema is not None else _schema(self.takes),
            "annotations": hints,
        }


def _schema(takes: type[Struct]) -> dict[str, Any]:
    """The type's JSON Schema, whole: no reference leads out of it."""
    (root,), parts = msgspec.json.schema_components([takes], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = dict(parts.pop(str(root["$ref"]).rpartition("/")[2]))
    schema.pop("title", None)
    schema.setdefault("properties", {})
    if parts:
        schema["$defs"] = parts
    return schema


_LONGEST_ANSWER = 96 << 10
_LONGEST_LINE = 500
_LONGEST_WAIT_S = 86_400
_WHERE_TO_ANSWER = "the owner answers it in the console, in a chat or with `palyra approvals`"
_entry = msgspec.json.Decoder(Entry)

Wait = Annotated[
    int,
    Meta(
        ge=0,
        le=_LONGEST_WAIT_S,
        description=(
            "seconds to wait for the answer at most; 0: until it is there. See the tool `run`."
        ),
    ),
]


class AskArguments(Input, frozen=True, kw_only=True):
    text: Annotated[
        str, Meta(min_length=1, description="what to ask or to have done, in plain words")
    ]
    session_id: Annotated[
        Ulid, Meta(description="continue this conversation; without it, start a new one")
    ] = ""
    session_key: Annotated[
        str,
        Meta(max_length=200, description="a name of your own for a conversation, found or made"),
    ] = ""
    workspace: Annotated[
        str, Meta(max_length=4096, description="the folder a new conversation works in")
    ] = ""
    model: Annotated[
        str, Meta(max_length=200, description="a model other than the daemon's choice")
    ] = ""
    wait_s: Wait = 0


class AwaitRunArguments(Input, frozen=True, kw_only=True):
    run_id: Ulid
    wait_s: Wait = 0


class CancelRunArguments(Input, frozen=True, kw_only=True):
    run_id: Ulid
    reason: Annotated[str, Meta(max_length=500)] = ""


class RunStatus(Struct, frozen=True, omit_defaults=True):
    """Status of a run. `pending`: the approvals that it waits for."""

    session_id: str
    run_id: str
    state: str
    answer: str = ""
    reason: str = ""
    pending: tuple[str, ...] = ()


async def ask(
    asked: ToolInvocation, wanted: AskArguments
) -> AsyncGenerator[ServedProgress | McpToolResult, None]:
    services, running = asked.call.services, asked.running
    session_id = wanted.session_id
    if not session_id:
        place = client_tokens.resolved(
            asked.call.token, Resolve(key=wanted.session_key, workspace=wanted.workspace)
        )
        session_id = (await services.get(Sessions).resolve(asked.principal, place)).session_id
    submission = Submission(text=wanted.text, model=wanted.model)
    submitted = await services.get(Gateway).submit(
        asked.principal, session_id, submission, origin="api"
    )
    running.run_id = submitted.run_id
    if running.withdrawn:
        await services.get(Gateway).cancel(asked.principal, submitted.run_id, "cancelled over MCP")
    words = (
        "taken"
        if submitted.outcome == "started"
        else "waits until the conversation's other runs are done"
    )
    yield ServedProgress(words, submitted.seq)
    async with aclosing(
        follow(asked, session_id, submitted.run_id, submitted.seq, wanted.wait_s)
    ) as steps:
        async for step in steps:
            yield step


async def run(
    asked: ToolInvocation, wanted: AwaitRunArguments
) -> AsyncGenerator[ServedProgress | McpToolResult, None]:
    """Return how a run stands; with time to wait, its answer. Whoever stops waiting here ends
    nothing.
    """
    services = asked.call.services
    row = await services.get(Gateway).run(asked.principal, wanted.run_id)
    if row.state in TERMINAL or not wanted.wait_s:
        yield await standing(asked, row.session_id, row.run_id)
        return
    told = await services.get(Database).read(lambda tx: runs.numbered(tx, row.run_id))
    steps = _followed(
        asked, row.session_id, row.run_id, told[0][0] - 1 if told else 0, wanted.wait_s
    )
    async with aclosing(steps) as following:
        async for step in following:
            yield step


async def cancel(asked: ToolInvocation, wanted: CancelRunArguments) -> McpToolResult:
    row = await asked.call.services.get(Gateway).cancel(
        asked.principal, wanted.run_id, wanted.reason or "cancelled over MCP"
    )
    return McpToolResult(data=msgspec.to_builtins(row))


async def follow(
    asked: ToolInvocation, session_id: str, run_id: str, after: int, wait_s: int = 0
) -> AsyncGenerator[ServedProgress | McpToolResult, None]:
    """Yield what happens in a run from an entry on, and its result. A client that leaves cancels
    the question, if that is the rule.
    """
    try:
        async with aclosing(_followed(asked, session_id, run_id, after, wait_s)) as steps:
            async for step in steps:
                yield step
    except (asyncio.CancelledError, GeneratorExit):
        if asked.leaving_cancels:
            await asked.call.services.get(Gateway).cancel(
                asked.principal, run_id, "cancelled over MCP"
            )
        raise


async def _followed(
    asked: ToolInvocation, session_id: str, run_id: str, after: int, wait_s: int
) -> AsyncGenerator[ServedProgress | McpToolResult, None]:
    watch = asked.call.services.get(Gateway).watch(asked.principal, session_id, after)
    batches = cast("AsyncGenerator[Sequence[tuple[int, bytes]], None]", watch)
    loop, mark = asyncio.get_running_loop(), run_id.encode()
    until = loop.time() + wait_s if wait_s else None
    names: dict[str, str] = {}
    async with aclosing(batches) as source:
        while True:
            try:
                batch = await asyncio.wait_for(
                    anext(source), until - loop.time() if until is not None else None
                )
            except TimeoutError:
                yield await standing(asked, session_id, run_id)
                return
            for seq, wire in batch:
                if not seq or mark not in wire:
                    continue
                entry = _entry.decode(wire)
                if entry.run_id != run_id:
                    continue
                event = events.decode(entry.event)
                if isinstance(event, RunCompleted | RunFailed | RunCancelled):
                    yield await _ended(asked, session_id, run_id, event)
                    return
                words = _words(event, names, entry.time_ms)
                if words:
                    yield ServedProgress(words[:_LONGEST_LINE], seq)


def _words(event: AnyEvent, names: dict[str, str], at_ms: int) -> str:
    """One line on what happened `at_ms`, if it is worth telling; `names` are the tools by call, as
    they become known.
    """
    match event:
        case RunStarted():
            return "working"
        case ToolProposed(call_id=call_id, tool=tool):
            names[call_id] = tool
            return ""
        case ToolStarted(call_id=call_id):
            return f"runs {names.get(call_id, 'a tool')}"
        case ToolFinished(call_id=call_id, outcome=outcome):
            return f"{names.get(call_id, 'a tool')}: {outcome}"
        case (
            ApprovalRequested(tool=tool, risk=risk, why=why)
            | AgentAsked(request=ApprovalRequested(tool=tool, risk=risk, why=why))
        ):
            return f"waits for an approval of {tool} (risk {risk}: {why}); {_WHERE_TO_ANSWER}"
        case ApprovalResolved(decision=decision):
            return f"the approval was answered: {decision}"
        case ModelReplied(text=text, calls=calls) if calls and text.strip():
            return text.strip()
        case RunWaiting(cause=cause, next_try_ms=next_try_ms):
            return f"{wait_words.sentence(cause, next_try_ms, at_ms)} The run waits."
        case ModelFailed(message=message, will_retry=True):
            return f"the model failed and is asked again: {message}"
        case _:
            return ""


async def _ended(
    asked: ToolInvocation,
    session_id: str,
    run_id: str,
    event: RunCompleted | RunFailed | RunCancelled,
) -> McpToolResult:
    label = await asked.call.services.get(Gateway).label(session_id)
    where = ({"type": "text", "text": f"session_id: {session_id}\nrun_id: {run_id}"},)
    match event:
        case RunCompleted(text=text):
            if len(text) > _LONGEST_ANSWER:
                text = (
                    f"{text[:_LONGEST_ANSWER]}\n[cut: the whole answer has {len(text)} characters;"
                    " see session_read]"
                )
            told = RunStatus(session_id, run_id, "done", text)
            return McpToolResult(
                text=text or "(no words)", data=msgspec.to_builtins(told), label=label, blocks=where
            )
        case RunFailed(reason=reason, message=message):
            told, words = (
                RunStatus(session_id, run_id, "failed", reason=reason),
                f"the run failed: {message}",
            )
        case RunCancelled(reason=reason):
            told, words = (
                RunStatus(session_id, run_id, "cancelled", reason=reason),
                f"the run was cancelled: {reason}",
            )
    return McpToolResult(
        text=words[:_LONGEST_ANSWER],
        data=msgspec.to_builtins(told),
        is_error=True,
        label=label,
        blocks=where,
    )


async def standing(asked: ToolInvocation, session_id: str, run_id: str) -> McpToolResult:
    """A run as it is now."""
    services = asked.call.services
    row = await services.get(Gateway).run(asked.principal, run_id)
    if row.state in TERMINAL:
        told = await services.get(Database).read(lambda tx: runs.events_of(tx, run_id))
        for event in reversed(told):
            if isinstance(event, RunCompleted | RunFailed | RunCancelled):
                return await _ended(asked, session_id, run_id, event)
    waiting = await services.get(Database).read(lambda tx: approvals.pending_of_run(tx, run_id))
    pending = tuple(each.approval_id for each in waiting)
    words = (
        f"the run is not done yet ({row.state}{f': {row.reason}' if row.reason else ''}); wait for"
        " it with the tool `run`"
    )
    if pending:
        words += f". It waits for an approval: {_WHERE_TO_ANSWER}"
    if row.wait is not None:
        now_ms = services.get(Clock).now_ms()
        words += f". {wait_words.sentence(row.wait.cause, row.wait.next_try_ms, now_ms)}"
    told_now = RunStatus(session_id, run_id, row.state, reason=row.reason, pending=pending)
    return McpToolResult(
        text=words,
        data=msgspec.to_builtins(told_now),
        label=await services.get(Gateway).label(session_id),
    )
