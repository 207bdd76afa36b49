"""The daemon's MCP server over standard input and output: every line goes to `/mcp`, and every
answer comes back as a line.

The rule: nothing is decided here. A daemon that restarts is found again, the session made anew, and
a broken answer taken up where it was; what cannot be had is an answer that says why.
"""

import http.client
import threading
import time
from typing import IO, Any

import msgspec

from palyra.client.http import Api, StopSignal, events_of
from palyra.core import json_rpc
from palyra.core.errors import PalyraError, Unavailable
from palyra.core.json_rpc import INVALID_REQUEST, PARSE_ERROR, SERVER_ERROR
from palyra.features.mcp.http_link import header_value

_PATH = "/mcp"
_ACCEPT = "application/json, text/event-stream"
_SESSION = "Mcp-Session-Id"
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_MOST_BYTES = 1 << 20
_MOST_AT_ONCE = 32
# For so long a daemon that is away is waited for, from when it was last heard.
_PATIENCE_S = 30.0
_WAIT_S = 0.2
_LAST_ANSWERS_S = 20.0
_BROKEN = (OSError, http.client.HTTPException)


class _Gone(Exception):
    """The daemon does not know the session: it was restarted."""


class Bridge:
    def __init__(self, api: Api, out: IO[bytes]) -> None:
        self._api = api
        self._out = out
        self._writing, self._greeting = threading.Lock(), threading.Lock()
        self._session = ""
        self._version = ""
        self._hello = b""
        # What can be taken back, by the client's own numbers.
        self._running: dict[Any, StopSignal] = {}
        self._working: list[threading.Thread] = []

    def run(self, lines: IO[bytes]) -> None:
        for line in json_rpc.lines(lines, _MOST_BYTES):
            if line is None:
                self._fail(None, PARSE_ERROR, f"a message may have {_MOST_BYTES} bytes")
            else:
                self._take(line)
        self._answer_the_last()

    def _answer_the_last(self) -> None:
        """Wait briefly for answers to what was asked before the end: a client that pipes its
        questions in has closed the pipe by now.
        """
        until = time.monotonic() + _LAST_ANSWERS_S
        for each in self._working:
            each.join(max(0.0, until - time.monotonic()))

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "this line is not JSON")
            return
        if not isinstance(message, dict):
            self._fail(None, INVALID_REQUEST, "one message a line: an object")
            return
        params = message.get("params")
        message["params"] = params = params if isinstance(params, dict) else {}
        if message.get("method") == "initialize":
            self._hello = line
            self._do(line, message)
        elif message.get("method") == "notifications/cancelled" and self._withdrawn(
            params.get("requestId")
        ):
            return
        elif len(self._running) >= _MOST_AT_ONCE:
            self._fail(
                message.get("id"),
                SERVER_ERROR,
                f"{_MOST_AT_ONCE} requests are being worked on: wait for one",
            )
        elif "id" not in message or message.get("method") in (
            "ping",
            "tools/list",
            "server/discover",
        ):
            # In their order, and soon done.
            self._do(line, message)
        else:
            self._working = [each for each in self._working if each.is_alive()]
            self._working.append(
                threading.Thread(target=self._do, args=(line, message), daemon=True)
            )
            self._working[-1].start()

    def _withdrawn(self, request_id: Any) -> bool:
        """Take a request back that stands for itself: to end its stream is to say so."""
        try:
            running = self._running.get(request_id)
        except TypeError:
            return False
        if running is None or self._session:
            return False
        running.stop()
        return True

    def _do(self, line: bytes, message: dict[str, Any]) -> None:
        name, stopped = message.get("id"), StopSignal()
        key = name if isinstance(name, str | int) else None
        if key is not None:
            self._running[key] = stopped
        try:
            self._exchanged(line, message, stopped)
        except PalyraError as error:
            if not stopped.is_set():
                self._fail(name, SERVER_ERROR, error.message)
        finally:
            self._running.pop(key, None)

    def _exchanged(self, line: bytes, message: dict[str, Any], stopped: StopSignal) -> None:
        cursor, until, forgotten = "", 0.0, ""
        while not stopped.is_set():
            try:
                if forgotten:
                    self._greet_again(forgotten)
                session, forgotten = self._session, ""
                cursor, done = self._once(line, message, cursor, stopped)
                if done:
                    return
                if not cursor:
                    raise Unavailable(
                        "the daemon went away before it had answered: look whether it was done, or"
                        " ask again"
                    )
                until = time.monotonic() + _PATIENCE_S
            except _Gone:
                forgotten = session
            except Unavailable:
                # Sent before and not answered: only what the daemon can take up again is asked for
                # again.
                if not cursor or time.monotonic() > until:
                    raise
                stopped.wait(_WAIT_S)

    def _once(
        self, line: bytes, message: dict[str, Any], cursor: str, stopped: StopSignal
    ) -> tuple[str, bool]:
        """Send a message, or ask for the rest of its answer; where the answer broke off, and
        whether it did not.
        """
        data, headers = (None, self._headers({})) if cursor else (line, self._headers(message))
        opened = self._api.open(
            _PATH,
            accept=_ACCEPT,
            last_id=cursor,
            on_socket=stopped.holds,
            data=data,
            headers=headers,
            checked=False,
        )
        with opened as response:
            if response.status in (202, 204):
                return "", True
            if (
                response.status == 200
                and response.headers.get_content_type() == "text/event-stream"
            ):
                return self._events(response, cursor)
            body = _whole(response)
            if (
                response.status == 404
                and self._session
                and message.get("method") != "initialize"
                and b'"jsonrpc"' not in body
            ):
                raise _Gone
            if message.get("method") == "initialize" and response.status == 200:
                self._session = response.headers.get(_SESSION, "")
                greeting = msgspec.json.decode(body).get("result", {})
                self._version = str(greeting.get("protocolVersion", ""))
            self._answer(message, response.status, body)
            return "", True

    def _events(self, response: Any, cursor: str) -> tuple[str, bool]:
        try:
            for event in events_of(response):
                cursor = event.id or cursor
                if event.data:
                    self._write(event.data)
                if b'"method"' not in event.data[:200] and event.data:
                    return cursor, True
        except _BROKEN:
            pass  # It broke off: what is missing is asked for again.
        return cursor, False

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        params = message.get("params", {})
        meta = params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version, str):
            method = str(message.get("method", ""))
            headers = {
                "MCP-Protocol-Version": header_value(version),
                "Mcp-Method": header_value(method),
            }
            name = params.get(_NAMED.get(method, ""))
            return headers | ({"Mcp-Name": header_value(name)} if isinstance(name, str) else {})
        if message.get("method") == "initialize" or not self._session:
            return {}
        return {_SESSION: self._session} | (
            {"MCP-Protocol-Version": self._version} if self._version else {}
        )

    def _greet_again(self, session: str) -> None:
        """Begin a session like the one that the daemon has forgotten."""
        with self._greeting:
            if self._session != session:
                return
            with self._api.open(_PATH, accept=_ACCEPT, data=self._hello) as response:
                _whole(response)
                self._session = response.headers.get(_SESSION, "")

    def _answer(self, message: dict[str, Any], status: int, body: bytes) -> None:
        if status < 300 or b'"jsonrpc"' in body[:200]:
            self._write(body)
            return
        if "id" not in message:
            return
        try:
            problem = msgspec.json.decode(body)["error"]
            self._fail(message["id"], SERVER_ERROR, str(problem["message"]), problem)
        except (ValueError, KeyError, TypeError):
            self._fail(
                message["id"],
                SERVER_ERROR,
                f"the daemon answered {status}; is there a palyra at this address?",
            )

    def _fail(self, name: Any, code: int, message: str, data: Any = None) -> None:
        self._write(
            msgspec.json.encode(
                json_rpc.failure(name if isinstance(name, str | int) else None, code, message, data)
            )
        )

    def _write(self, line: bytes) -> None:
        with self._writing:
            self._out.write(line + b"\n")
            self._out.flush()


def _whole(response: Any) -> bytes:
    try:
        return bytes(response.read())
    except _BROKEN as error:
        raise Unavailable("the daemon went away in the middle of its answer: ask again") from error
