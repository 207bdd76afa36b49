"""The agent in an editor: the Agent Client Protocol over the daemon's own API.

The rule: the daemon decides. A run goes on whatever becomes of the editor, and a session that is
loaded is told from its tape.

What an editor's prompt is made of: words, files that it only names, and files that it brings.

The rule: what is only named, the daemon reads itself, under its policies; what is brought is
attached like a file in a chat.

Messages over standard input and output, one a line: bounded, and whatever is no message is
answered and forgotten.

The library's own reader takes lines without end and stops at a line that is no object.
"""

import asyncio
import base64
import contextlib
import json
import os
import sys
import threading
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from acp import schema
from acp.exceptions import RequestError

import palyra
from palyra.cli import lookup
from palyra.client import Client
from palyra.client.types.sessions import Attaching, Session
from palyra.core import json_rpc
from palyra.core.errors import InvalidInput
from palyra.core.events import Entry, RunCancelled, RunCompleted, RunFailed
from palyra.core.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from palyra.features.acp.run_updates import Following
from palyra.features.acp.updates import NOT_FOUND, Editor, End, Updates

MOST_BYTES = 32 << 20
_MOST_WAITING = 64
_LAST_ANSWERS_S = 20.0


class StdioTransport:
    """A transport of the library: `receive` gives the next message, None at the end.

    The library forgets what it works on at the end, so the end is told when what was asked before
    it is answered. Only a prompt is not waited for: its run goes on whatever becomes of the editor,
    and may last.
    """

    def __init__(self, lines: IO[bytes], out: IO[bytes]) -> None:
        self._lines = lines
        self._out = out
        self._writing = threading.Lock()
        self._received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_MOST_WAITING)
        self._loop = asyncio.get_running_loop()
        # The editor's own numbers, which may be anything.
        self._unanswered: list[Any] = []
        self._answered = asyncio.Event()
        threading.Thread(target=self._read, daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        message = await self._received.get()
        if message is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_answered(), _LAST_ANSWERS_S)
        elif "method" in message and "id" in message and message["method"] != "session/prompt":
            self._unanswered.append(message["id"])
        return message

    async def send(self, message: dict[str, Any]) -> None:
        try:
            # An editor that does not read must not stop us from hearing that it cancels.
            await asyncio.to_thread(self._write, message)
        finally:
            if "method" not in message and message["id"] in self._unanswered:
                self._unanswered.remove(message["id"])
                self._answered.set()

    async def _all_answered(self) -> None:
        while self._unanswered:
            self._answered.clear()
            await self._answered.wait()

    async def close(self) -> None:
        return

    def _read(self) -> None:
        for line in json_rpc.lines(self._lines, MOST_BYTES):
            if line is None:
                self._refuse(PARSE_ERROR, f"a message may have {MOST_BYTES} bytes")
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self._refuse(PARSE_ERROR, "this line is not JSON")
                continue
            if isinstance(message, dict) and isinstance(message.get("method", ""), str):
                self._put(message)
            else:
                self._refuse(
                    INVALID_REQUEST, "one message a line: an object with a method, or an answer"
                )
        self._put(None)

    def _put(self, message: dict[str, Any] | None) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._received.put(message), self._loop).result()
        except RuntimeError:
            return  # The loop has ended, and nobody is there to hear.

    def _refuse(self, code: int, message: str) -> None:
        self._write(json_rpc.failure(None, code, message))

    def _write(self, message: dict[str, Any]) -> None:
        with self._writing:
            self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._out.flush()


_UPLOAD_S = 60.0


def message(api: Client, session: Session, blocks: list[Any]) -> tuple[str, list[Attaching]]:
    """A prompt as text and attached files."""
    words: list[str] = []
    files: list[Attaching] = []

    def attach(name: str, data: bytes) -> None:
        stored = api.within(_UPLOAD_S).store_file(session.session_id, data, name=name[:200])
        files.append(Attaching(artifact=stored.artifact, name=stored.name))

    for number, block in enumerate(blocks, 1):
        match block:
            case schema.TextContentBlock(text=text):
                words.append(text)
            case schema.ResourceContentBlock(uri=uri):
                words.append(_named(uri, session.workspace))
            case schema.EmbeddedResourceContentBlock(
                resource=schema.TextResourceContents(uri=uri, text=text)
            ):
                words.append(_shown(uri, session.workspace))
                attach(os.path.basename(urlsplit(uri).path) or f"text-{number}.txt", text.encode())
            case schema.EmbeddedResourceContentBlock(
                resource=schema.BlobResourceContents(uri=uri, blob=blob)
            ):
                words.append(_shown(uri, session.workspace))
                attach(os.path.basename(urlsplit(uri).path) or f"file-{number}", _decoded(blob))
            case schema.ImageContentBlock(data=data, mime_type=media):
                attach(f"image-{number}.{media.rpartition('/')[2]}", _decoded(data))
            case _:
                raise InvalidInput(f"a prompt cannot have {getattr(block, 'type', 'this')} here")
    return " ".join(each for each in words if each).strip() or "(see what is attached)", files


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise InvalidInput("what is attached is not Base64") from error


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else ""


def _named(uri: str, workspace: str) -> str:
    path = _path(uri)
    if path.startswith(workspace + "/") and '"' not in path:
        return f'@file:"{path[len(workspace) + 1 :]}"'
    return path or uri


def _shown(uri: str, workspace: str) -> str:
    path = _path(uri)
    return path[len(workspace) + 1 :] if path.startswith(workspace + "/") else path or uri


_MOST_LISTED = 100


class EditorAgent:
    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._sessions: dict[str, Session] = {}
        self._following: dict[str, Following] = {}
        # What was under way when its session was loaded.
        self._left_over: dict[str, Following] = {}

    def on_connect(self, conn: Any) -> None:
        self._editor.connection = conn

    async def initialize(self, protocol_version: int, **more: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=1,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
                mcp_capabilities=schema.McpCapabilities(http=False, sse=False),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities()
                ),
            ),
            agent_info=schema.Implementation(
                name="palyra", title="Palyra", version=palyra.__version__
            ),
            auth_methods=[],
        )

    async def new_session(
        self, cwd: str, mcp_servers: Any = None, **more: Any
    ) -> schema.NewSessionResponse:
        self._remark(mcp_servers)
        if not os.path.isabs(cwd):
            raise RequestError(INVALID_PARAMS, f"cwd is an absolute path, not {cwd[:200]!r}")
        session = await self._editor.call(lambda api: api.resolve_session(workspace=cwd))
        self._sessions[session.session_id] = session
        return schema.NewSessionResponse(session_id=session.session_id)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Any = None, **more: Any
    ) -> schema.LoadSessionResponse:
        """Tell the conversation again from its tape, and go on with what is still under way in
        it.
        """
        self._remark(mcp_servers)
        session = await self._editor.call(lambda api: api.get_session(lookup.checked(session_id)))
        if session.workspace != _real(cwd):
            raise RequestError(
                INVALID_PARAMS,
                f"this session works in {session.workspace or 'no folder'}: open that folder",
            )
        self._sessions[session.session_id] = session
        updates = Updates(session.workspace)
        after = await self._replay(session, updates, 0)
        unfinished = await self._editor.call(lambda api: lookup.unfinished(api, session.session_id))
        if not unfinished:
            # What ended between the two looks.
            await self._replay(session, updates, after)
        elif session.session_id not in self._left_over:
            # The oldest one works; the others wait for it.
            following = Following(self._editor, session, unfinished[-1].run_id)
            self._left_over[session.session_id] = following
            self._editor.start(self._go_on(session.session_id, following, after))
        return schema.LoadSessionResponse()

    async def _go_on(self, session_id: str, following: Following, after: int) -> None:
        try:
            await following.to_the_end(after, asked_before=True)
        except RequestError as error:
            await self._editor.note(session_id, str(error))
        finally:
            del self._left_over[session_id]

    async def _replay(self, session: Session, updates: Updates, after: int) -> int:
        def page(api: Client) -> list[Entry]:
            return list(lookup.entries(api, session.session_id, after, lookup.PAGE))

        while found := await self._editor.call(page):
            for entry in found:
                updates.entry(entry, replay=True)
            after = found[-1].seq
            await self._editor.send(session.session_id, updates)
        return after

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **more: Any
    ) -> schema.ListSessionsResponse:
        found = await self._editor.call(lambda api: lookup.sessions(api, limit=_MOST_LISTED))
        wanted = _real(cwd) if cwd else ""
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=each.session_id,
                    cwd=each.workspace,
                    title=each.title or None,
                    updated_at=datetime.fromtimestamp(each.updated_ms / 1000, UTC).isoformat(),
                )
                for each in found
                if each.workspace and wanted in ("", each.workspace)
            ]
        )

    async def prompt(
        self, session_id: str, prompt: list[Any], **more: Any
    ) -> schema.PromptResponse:
        session = self._known(session_id)
        if session_id in self._following:
            raise RequestError(
                INTERNAL_ERROR, "this session is still being worked on: wait, or cancel first"
            )
        following = Following(self._editor, session, lookup.new_id())
        self._following[session_id] = following
        try:
            text, attachments = await self._editor.call(lambda api: message(api, session, prompt))
            after = await self._editor.call(
                lambda api: lookup.head(api, api.get_session(session_id))
            )

            def submit(api: Client) -> None:
                lookup.submit(
                    api, session_id, text, run_id=following.run_id, attachments=attachments
                )

            end = await following.to_the_end(after, submit)
        finally:
            if self._following.get(session_id) is following:
                del self._following[session_id]
        reason = _stop(end)
        if isinstance(end, RunFailed):
            await self._editor.note(session_id, end.message)
        return schema.PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **more: Any) -> None:
        for following in (self._following.get(session_id), self._left_over.get(session_id)):
            if following is not None:
                await following.cancel()

    def _known(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            raise RequestError(
                NOT_FOUND,
                f"there is no session {session_id[:64]!r} here: begin one, or load it first",
            )
        return self._sessions[session_id]

    def _remark(self, mcp_servers: Any) -> None:
        if mcp_servers:
            names = ", ".join(str(getattr(each, "name", "?")) for each in mcp_servers)
            sys.stderr.write(
                f"palyra: MCP servers of the editor are not used ({names}): add them with `palyra"
                " mcp add`\n"
            )


def _stop(end: End) -> schema.StopReason:
    match end:
        case RunCompleted():
            return "end_turn"
        case RunCancelled():
            return "cancelled"
        case RunFailed(reason="turn_budget" | "call_budget" | "time_budget"):
            return "max_turn_requests"
        case RunFailed(message=message, reason=reason):
            raise RequestError(INTERNAL_ERROR, message, {"reason": reason})


def _real(folder: str) -> str:
    return os.path.realpath(folder)
