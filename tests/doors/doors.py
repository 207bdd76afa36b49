"""The ways into one daemon, each as a Door: the same words for a test, whatever carries them.

A door opens a Talk about one session, behind a cursor. What is said and what is heard goes over the
door's own transport alone.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from palyra.agent.approval_steps import Answer
from palyra.agent.sessions import Resolve
from palyra.agent.submit import Submission
from palyra.api.errors import problem_of
from palyra.api.watch import cursor_for
from palyra.core.errors import PalyraError
from palyra.core.ids import OWNER
from palyra.serve.wiring.daemon import Daemon

PATIENCE_S = 20.0
ENDS = ("run.completed", "run.failed", "run.cancelled")


@dataclass(frozen=True)
class Heard:
    """One entry, or, with the number 0, one live event."""

    number: int
    kind: str
    run_id: str
    event: dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What came of a submission."""

    run_id: str
    outcome: str
    state: str
    seq: int


class Refused(Exception):
    """An error in the one shape that all of them have."""

    def __init__(self, code: str, message: str, retryable: bool, details: dict[str, Any]) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.retryable, self.details = code, message, retryable, details


class Talk(ABC):
    """One open session."""

    @abstractmethod
    async def submit(self, text: str, mode: str = "followup", run_id: str = "") -> Said: ...

    @abstractmethod
    async def answer(self, approval_id: str, decision: str) -> str:
        """The decision that holds from now on."""

    @abstractmethod
    async def cancel(self, run_id: str) -> str:
        """The state that the run is in."""

    @abstractmethod
    async def hear(self) -> Heard:
        """The next thing that happened."""

    async def until(self, *kinds: str, run_id: str = "") -> list[Heard]:
        """Everything up to the first of these kinds."""
        heard: list[Heard] = []
        async with asyncio.timeout(PATIENCE_S):
            while True:
                heard.append(await self.hear())
                if heard[-1].kind in kinds and run_id in ("", heard[-1].run_id):
                    return heard


class Door(ABC):
    name: str

    @abstractmethod
    async def session(self) -> str: ...

    @abstractmethod
    def open(self, session_id: str, after: int = 0) -> Any:
        """An async context manager that gives a Talk."""

    @abstractmethod
    async def state(self, run_id: str) -> str: ...


def entry_of(data: dict[str, Any]) -> Heard:
    return Heard(data["seq"], data["kind"], data.get("run_id", ""), data["event"])


def live_of(data: dict[str, Any]) -> Heard:
    return Heard(0, data["kind"], data.get("run_id", ""), data)


@dataclass
class Inside(Door):
    """The core's own verbs: what every other door is measured by."""

    daemon: Daemon
    parts: Any
    name: str = "in-process"

    async def session(self) -> str:
        return (await self.daemon.sessions.resolve(OWNER, Resolve())).session_id

    async def state(self, run_id: str) -> str:
        with _translated():
            return (await self.daemon.gateway.run(OWNER, run_id)).state

    @asynccontextmanager
    async def open(self, session_id: str, after: int = 0) -> AsyncIterator[Talk]:
        with _translated():
            await cursor_for(self.parts, OWNER, session_id, after)
        async with aclosing(self.daemon.gateway.watch(OWNER, session_id, after)) as batches:  # type: ignore[type-var]
            yield _InsideTalk(self.daemon, session_id, batches)


class _translated:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, PalyraError):
            problem = problem_of(error)
            raise Refused(
                problem.code, problem.message, problem.retryable, problem.details
            ) from error


@dataclass
class _InsideTalk(Talk):
    daemon: Daemon
    session_id: str
    batches: Any
    waiting: list[Heard] = field(default_factory=list)

    async def submit(self, text: str, mode: str = "followup", run_id: str = "") -> Said:
        with _translated():
            submission = msgspec.convert({"text": text, "mode": mode, "run_id": run_id}, Submission)
            made = await self.daemon.gateway.submit(OWNER, self.session_id, submission)
        return Said(made.run_id, made.outcome, made.state, made.seq)

    async def answer(self, approval_id: str, decision: str) -> str:
        with _translated():
            answer = msgspec.convert({"decision": decision}, Answer)
            return str(
                (await self.daemon.answers.answer(OWNER, approval_id, answer, "test")).decision
            )

    async def cancel(self, run_id: str) -> str:
        with _translated():
            return (await self.daemon.gateway.cancel(OWNER, run_id)).state

    async def hear(self) -> Heard:
        while not self.waiting:
            for number, wire in await anext(self.batches):
                data = msgspec.json.decode(wire)
                self.waiting.append(entry_of(data) if number else live_of(data))
        return self.waiting.pop(0)


class Http(Door):
    """Requests, and server-sent events to watch."""

    name = "http+sse"

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        async with self._client.request(method, path, json=body) as response:
            return checked(response.status, await response.read())

    async def session(self) -> str:
        return str((await self.request("POST", "/v1/sessions", {}))["session_id"])

    async def state(self, run_id: str) -> str:
        return str((await self.request("GET", f"/v1/runs/{run_id}"))["state"])

    @asynccontextmanager
    async def open(self, session_id: str, after: int = 0) -> AsyncIterator[Talk]:
        async with self._client.get(
            f"/v1/sessions/{session_id}/events", params={"after": str(after)}
        ) as response:
            if response.status != 200:
                checked(response.status, await response.read())
            yield _HttpTalk(self, session_id, response.content)


def checked(status: int, raw: bytes) -> Any:
    data = json.loads(raw or b"null")
    if status >= 400:
        raise Refused(**data["error"])
    return data


class RequestTalk(Talk):
    """Verbs as requests of an HTTP door."""

    def __init__(self, door: Any, session_id: str) -> None:
        self._door = door
        self._session_id = session_id

    async def submit(self, text: str, mode: str = "followup", run_id: str = "") -> Said:
        body = {"text": text, "mode": mode, "run_id": run_id}
        return said_of(
            await self._door.request("POST", f"/v1/sessions/{self._session_id}/messages", body)
        )

    async def answer(self, approval_id: str, decision: str) -> str:
        return str(
            (
                await self._door.request(
                    "POST", f"/v1/approvals/{approval_id}/answer", {"decision": decision}
                )
            )["decision"]
        )

    async def cancel(self, run_id: str) -> str:
        return str((await self._door.request("POST", f"/v1/runs/{run_id}/cancel", {}))["state"])


def said_of(data: dict[str, Any]) -> Said:
    return Said(data["run_id"], data["outcome"], data["state"], data["seq"])


class SseTalk(RequestTalk):
    """Lines of an event stream come from `line`, without their ends."""

    async def line(self) -> str:
        raise NotImplementedError

    async def hear(self) -> Heard:
        fields: dict[str, str] = {}
        while True:
            text = await self.line()
            if text and not text.startswith(":"):
                name, _, value = text.partition(": ")
                fields[name] = value
            elif not text and "data" in fields:
                data = json.loads(fields["data"])
                return entry_of(data) if fields["event"] == "entry" else live_of(data)


class _HttpTalk(SseTalk):
    def __init__(self, door: Http, session_id: str, content: aiohttp.StreamReader) -> None:
        super().__init__(door, session_id)
        self._content = content

    async def line(self) -> str:
        raw = await self._content.readline()
        assert raw, "the stream ended"
        return raw.decode().rstrip("\n")


class WebSocket(Http):
    """Everything over one WebSocket."""

    name = "websocket"

    @asynccontextmanager
    async def open(self, session_id: str, after: int = 0) -> AsyncIterator[Talk]:
        path = f"/v1/sessions/{session_id}/ws"
        try:
            socket = await self._client.ws_connect(path, params={"after": str(after)})
        except aiohttp.WSServerHandshakeError:
            # A refused upgrade says why; this client shows it only to who asks again.
            headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                       "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}  # fmt: skip
            async with self._client.get(
                path, params={"after": str(after)}, headers=headers
            ) as response:
                checked(response.status, await response.read())
            raise
        async with socket:
            yield _WebSocketTalk(socket)


class Duplex(Talk):
    """Verbs and events over one stream: answers are told apart from what happens by their id."""

    def __init__(self) -> None:
        self._waiting: list[Heard] = []
        self._number = 0

    async def ask(self, kind: str, **more: Any) -> Any:
        self._number += 1
        number = str(self._number)
        await self.send(kind, id=number, **more)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                came = await self.receive()
                if isinstance(came, Heard):
                    self._waiting.append(came)
                elif isinstance(came, Refused):
                    raise came
                elif came is not None:
                    assert came[0] == number, f"an answer to {came[0]}, not to {number}"
                    return came[1]

    async def send(self, kind: str, **more: Any) -> None:
        raise NotImplementedError

    async def receive(self) -> Any:
        """A Heard, a Refused, or an answer as (id, result)."""
        raise NotImplementedError

    async def submit(self, text: str, mode: str = "followup", run_id: str = "") -> Said:
        return said_of(await self.ask("submit", text=text, mode=mode, run_id=run_id))

    async def answer(self, approval_id: str, decision: str) -> str:
        return str(
            (await self.ask("answer", approval_id=approval_id, decision=decision))["decision"]
        )

    async def cancel(self, run_id: str) -> str:
        return str((await self.ask("cancel", run_id=run_id))["state"])

    async def hear(self) -> Heard:
        while not self._waiting:
            came = await self.receive()
            assert isinstance(came, Heard), came
            self._waiting.append(came)
        return self._waiting.pop(0)


class _WebSocketTalk(Duplex):
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__()
        self._socket = socket

    async def send(self, kind: str, **more: Any) -> None:
        await self._socket.send_json({"type": kind, **more})

    async def receive(self) -> Any:
        frame = await self._socket.receive_json()
        match frame["type"]:
            case "entry":
                return entry_of(frame["entry"])
            case "live":
                return live_of(frame["event"])
            case "error":
                return Refused(**frame["error"])
        return frame["id"], frame["result"]
