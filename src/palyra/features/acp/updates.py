"""A session's entries as an editor wants them: messages, thoughts, tool calls with their diffs.
Pure: entries in, updates out.

The two ways that the agent of an editor has: to the daemon, call by call, and to the editor.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from acp import schema
from acp.exceptions import RequestError
from acp.helpers import (
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
    update_user_message_text,
)

from palyra.cli.render.reply import ReplyText
from palyra.client import Client
from palyra.core import events, wait_words
from palyra.core.errors import Forbidden, InvalidInput, NotFound, PalyraError, Unauthenticated
from palyra.core.events import (
    AgentAsked,
    ApprovalRequested,
    Entry,
    InputReceived,
    ModelDelta,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunWaiting,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.json_rpc import INTERNAL_ERROR, INVALID_PARAMS
from palyra.core.tools import Preview
from palyra.tools.files import diffs

_KINDS: dict[str, schema.ToolKind] = {
    "fs.read": "read",
    "fs.list": "read",
    "fs.search": "search",
    "fs.write": "edit",
    "fs.patch": "edit",
    "shell.run": "execute",
    "http.fetch": "fetch",
    "memory.search": "search",
    "session.search": "search",
}
# The argument that says most about a call.
_TELLING = ("path", "command", "url", "query", "pattern", "text", "task")
_LONGEST_TITLE = 120
_LONGEST_TEXT = 8_000
_MOST_DIFFS = 64
Content = (
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
)
End = RunCompleted | RunFailed | RunCancelled


class Updates:
    """Updates that an editor gets about one session; `take` returns and drops them."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._ready: list[Any] = []
        self._thought: dict[tuple[str, int], str] = {}
        self.reply = ReplyText(self._say, self._note)

    def take(self) -> list[Any]:
        ready, self._ready = self._ready, []
        return ready

    def _say(self, text: str) -> None:
        if text:
            self._ready.append(update_agent_message_text(text))

    def _note(self, text: str) -> None:
        self._ready.append(update_agent_message_text(f"\n\n*{text}*\n\n"))

    def _think(self, turn: tuple[str, int], text: str, *, whole: bool) -> None:
        """Thoughts that were not shown yet; those that were, are not said again."""
        shown = self._thought.get(turn, "")
        fresh = text if not whole else text[len(shown) :] if text.startswith(shown) else ""
        if fresh:
            self._thought[turn] = shown + fresh
            self._ready.append(update_agent_thought_text(fresh))

    def live(self, delta: ModelDelta) -> None:
        if delta.text:
            (self.reply.so_far if delta.whole else self.reply.piece)(
                delta.run_id, delta.turn, delta.text
            )
        if delta.reasoning:
            self._think((delta.run_id, delta.turn), delta.reasoning, whole=delta.whole)

    def entry(self, entry: Entry, *, replay: bool = False) -> None:
        """Add the updates of a stored entry. A `replay` includes what people said; otherwise the
        editor has it.
        """
        match events.decode(entry.event):
            case InputReceived(text=text) if replay:
                self._ready.append(update_user_message_text(text))
            case ModelReplied(turn=turn, text=text, reasoning=reasoning):
                if reasoning:
                    self._think((entry.run_id, turn), reasoning, whole=True)
                    self._thought.pop((entry.run_id, turn), None)
                self.reply.finished(entry.run_id, turn, text)
            case ModelFailed(will_retry=True):
                self.reply.began_again()
            case ToolProposed() as proposed:
                self._ready.append(self._proposed(proposed))
            case ToolStarted(call_id=call_id):
                self._ready.append(update_tool_call(call_id, status="in_progress"))
            case ApprovalRequested(call_id=call_id, preview=preview, about="tool"):
                self._ready.append(
                    update_tool_call(call_id, status="pending", content=self.preview(preview))
                )
            case ToolFinished() as finished:
                self._ready.append(self._finished(finished))
            case RunWaiting(cause=cause, next_try_ms=next_try_ms) if not replay:
                # Not as a message: it is no part of the answer.
                said = wait_words.sentence(cause, next_try_ms, entry.time_ms)
                self._ready.append(update_agent_thought_text(f"\n\n{said} The run waits.\n\n"))
            case RunFailed(message=message) if replay:
                self._note(message)
            case _:
                pass

    def _proposed(self, proposed: ToolProposed) -> Any:
        arguments = proposed.arguments
        return start_tool_call(
            proposed.call_id,
            _title(proposed.tool, arguments),
            kind=_KINDS.get(
                proposed.tool, "fetch" if proposed.tool.startswith("browser.") else "other"
            ),
            status="pending",
            content=self._changes(proposed),
            locations=[
                schema.ToolCallLocation(path=path) for path in proposed.scope.paths[:_MOST_DIFFS]
            ],
            raw_input=arguments,
        )

    def _finished(self, finished: ToolFinished) -> Any:
        status: schema.ToolCallStatus = "completed" if finished.outcome == "ok" else "failed"
        text = finished.text if finished.outcome == "ok" else f"{finished.outcome}: {finished.text}"
        # A change is shown by its diff, which stays; what else it says would take its place.
        content = (
            None
            if finished.changes and finished.outcome == "ok"
            else [tool_content(text_block(_cut(text)))]
        )
        return update_tool_call(finished.call_id, status=status, content=content)

    def _changes(self, proposed: ToolProposed) -> list[Content] | None:
        arguments = proposed.arguments
        match proposed.tool:
            case "fs.write":
                path, content = arguments.get("path"), arguments.get("content")
                if isinstance(path, str) and isinstance(content, str) and len(content) <= 1 << 20:
                    return [tool_diff_content(self._path(path), content)]
            case "fs.patch" if isinstance(arguments.get("diff"), str) and arguments["diff"]:
                return self._diff(arguments["diff"])
            case "fs.patch":
                edits = [each for each in arguments.get("edits", ()) if isinstance(each, dict)][
                    :_MOST_DIFFS
                ]
                return [
                    tool_diff_content(
                        self._path(str(each["path"])), str(each["replace"]), str(each["search"])
                    )
                    for each in edits
                    if {"path", "search", "replace"} <= each.keys()
                ]
        return None

    def shows_all(self, preview: Preview) -> bool:
        """Return whether `preview` leaves nothing out."""
        if preview.length:
            return False
        try:
            files = diffs.parse(preview.body) if preview.kind == "diff" else []
        except PalyraError:
            files = []
        return (
            len(files) <= _MOST_DIFFS
            if files
            else len(preview.title) + len(preview.body) + 2 <= _LONGEST_TEXT
        )

    def preview(self, preview: Preview) -> list[Content]:
        """Return what a person is shown before they approve."""
        found = self._diff(preview.body) if preview.kind == "diff" else None
        return found or [
            tool_content(
                text_block(
                    _cut("\n\n".join(part for part in (preview.title, preview.body) if part))
                )
            )
        ]

    def _diff(self, text: str) -> list[Content] | None:
        """A unified diff, file by file: the lines of its places before and after."""
        try:
            files = diffs.parse(text)
        except PalyraError:
            return None
        shown: list[Content] = []
        for file in files[:_MOST_DIFFS]:
            before = "\n".join("\n".join(hunk.old) for hunk in file.hunks)
            after = "\n".join("\n".join(hunk.new) for hunk in file.hunks)
            shown.append(
                tool_diff_content(self._path(file.path), after, None if file.created else before)
            )
        return shown or None

    def _path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._workspace, path))


def asked_of(entry: Entry) -> ApprovalRequested | None:
    """Return the approval that an entry asks for, in the run itself or in a subagent's run."""
    match events.decode(entry.event):
        case ApprovalRequested() as request:
            return request
        case AgentAsked(request=request):
            return request
        case _:
            return None


def _title(tool: str, arguments: dict[str, Any]) -> str:
    telling = next((str(arguments[name]) for name in _TELLING if arguments.get(name)), "")
    line = " ".join(telling.split())
    return f"{tool}: {line[:_LONGEST_TITLE]}" if line else tool


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= _LONGEST_TEXT
        else f"{text[:_LONGEST_TEXT]}\n[cut: {len(text)} characters]"
    )


T = TypeVar("T")
# The protocol's own codes, for who is not let in and what is not there.
NO_AUTH, NOT_FOUND = -32000, -32002


class Editor:
    """`api` makes a way to the daemon: one for each call, because they may be many at once."""

    def __init__(self, api: Callable[[], Client]) -> None:
        self.api = api
        # The library's connection, once there is one.
        self.connection: Any = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def call(self, do: Callable[[Client], T]) -> T:
        """One call of the daemon on a thread; what it refuses is an error that says why."""
        try:
            return await asyncio.to_thread(lambda: do(self.api()))
        except PalyraError as error:
            raise refusal(error) from error

    async def send(self, session_id: str, updates: Updates) -> None:
        for update in updates.take():
            await self.connection.session_update(session_id=session_id, update=update)

    async def note(self, session_id: str, words: str) -> None:
        await self.connection.session_update(
            session_id=session_id, update=update_agent_message_text(f"\n\n*{words}*\n\n")
        )

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def refusal(error: PalyraError) -> RequestError:
    code = INTERNAL_ERROR
    match error:
        case InvalidInput() | Forbidden():
            code = INVALID_PARAMS
        case NotFound():
            code = NOT_FOUND
        case Unauthenticated():
            code = NO_AUTH
    return RequestError(code, error.message, {"code": error.code})
