"""Watching: whoever leaves and comes back, over SSE or WebSocket, sees every entry exactly once and
in order.
"""

import asyncio
import json
import random
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.daemon import DaemonProcess
from tests.e2e.conftest import WORDS

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
RUNS = 40
PATIENCE = aiohttp.ClientTimeout(total=60)


@asynccontextmanager
async def client(served: DaemonProcess) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {served.token}"}
    async with aiohttp.ClientSession(
        base_url=served.url, headers=headers, timeout=PATIENCE
    ) as session:
        yield session


async def sse(
    http: aiohttp.ClientSession, path: str, **headers: str
) -> AsyncIterator[tuple[str, str, Any]]:
    """Events as (id, event, data). Leaving the loop drops the connection."""
    async with http.get(path, headers=headers) as response:
        assert response.status == 200, await response.text()
        fields: dict[str, str] = {}
        async for line in response.content:
            text = line.decode().rstrip("\n")
            if text and not text.startswith(":"):
                name, _, value = text.partition(": ")
                fields[name] = value
            elif not text and "data" in fields:
                yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
                fields = {}


# The last entry of a scenario is of a kind that no run makes, so that every client knows it when it
# comes.
LAST = "session.changed"


async def some_sse(
    http: aiohttp.ClientSession, session_id: str, after: int, most: int
) -> tuple[list[int], bool]:
    """Entries behind a cursor until this client has had enough, and whether the last one was among
    them.
    """
    seen: list[int] = []
    ended = False
    stream = sse(http, f"/v1/sessions/{session_id}/events?after={after}")
    async for number, event, data in stream:
        if event == "entry":
            assert int(number) == data["seq"]
            seen.append(data["seq"])
            ended = data["kind"] == LAST
            if len(seen) >= most or ended:
                break
    await stream.aclose()  # type: ignore[attr-defined]
    return seen, ended


async def some_ws(
    http: aiohttp.ClientSession, session_id: str, after: int, most: int
) -> tuple[list[int], bool]:
    seen: list[int] = []
    ended = False
    async with http.ws_connect(f"/v1/sessions/{session_id}/ws?after={after}") as socket:
        async for message in socket:
            frame = json.loads(message.data)
            if frame["type"] == "entry":
                seen.append(frame["entry"]["seq"])
                ended = frame["entry"]["kind"] == LAST
                if len(seen) >= most or ended:
                    break
        if most % 2:
            # Half of them leave without saying goodbye.
            assert socket._response.connection is not None
            socket._response.connection.close()
    return seen, ended


async def restless(http: aiohttp.ClientSession, session_id: str, seed: int) -> list[int]:
    """A client that keeps leaving and coming back with its cursor, by either way, until it has seen
    the last entry.
    """
    dice = random.Random(seed)
    seen: list[int] = []
    ended = False
    while not ended:
        watch = dice.choice((some_sse, some_ws))
        more, ended = await watch(
            http, session_id, seen[-1] if seen else 0, dice.choice((1, 2, 3, 5, 8, 40))
        )
        seen += more
    return seen


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clients_that_come_and_go_see_every_entry_once_and_in_order(
    served: DaemonProcess, session_id: str, seed: int
) -> None:
    async def scenario() -> tuple[list[list[int]], int]:
        async with client(served) as http:
            watching = [
                asyncio.create_task(restless(http, session_id, seed * 100 + number))
                for number in range(6)
            ]
            for _ in range(RUNS):
                async with http.post(
                    f"/v1/sessions/{session_id}/messages", json={"text": "many words"}
                ) as response:
                    submitted = await response.json()
                    assert response.status == 202, submitted
                async for _ in sse(
                    http,
                    f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}",
                ):
                    pass
            async with http.patch(
                f"/v1/sessions/{session_id}", json={"title": "the end"}
            ) as response:
                assert response.status == 200
            async with http.get(f"/v1/sessions/{session_id}/entries?limit=1000") as response:
                entries = (await response.json())["entries"]
            return await asyncio.gather(*watching), entries[-1]["seq"]

    seen, end = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert end > RUNS * 5
    for each in seen:
        assert each == list(range(1, end + 1))


def test_deltas_arrive_before_the_reply_and_add_up_to_it(
    served: DaemonProcess, session_id: str
) -> None:
    async def scenario() -> list[tuple[str, Any]]:
        async with client(served) as http:
            stream = sse(http, f"/v1/sessions/{session_id}/events")
            got = [await anext(stream)]
            async with http.post(
                f"/v1/sessions/{session_id}/messages", json={"text": "many words"}
            ) as response:
                assert response.status == 202
            async for event in stream:
                got.append(event)
                if event[1] == "entry" and event[2]["kind"] == "run.completed":
                    break
            await stream.aclose()  # type: ignore[attr-defined]
            return [(event, data) for _, event, data in got]

    got = asyncio.run(asyncio.wait_for(scenario(), 30))
    replied = next(
        at
        for at, (event, data) in enumerate(got)
        if event == "entry" and data["kind"] == "model.replied"
    )
    deltas = [data.get("text", "") for event, data in got[:replied] if event == "live"]
    assert "".join(deltas) == "".join(WORDS) == got[replied][1]["event"]["text"]


def test_last_event_id_wins_over_after(served: DaemonProcess) -> None:
    session_id, entries = served.run("hi")
    path = f"/v1/sessions/{session_id}/events?after=1&until={entries[0]['run_id']}"
    seen = [
        int(number)
        for number, event, _ in served.events(path, headers={"Last-Event-ID": "4"})
        if event == "entry"
    ]
    assert seen == list(range(5, entries[-1]["seq"] + 1))
    refused = served.request("GET", path, headers={"Last-Event-ID": "x"})
    assert (refused.status, refused.code) == (400, "invalid_input")


def test_until_ends_the_stream_with_the_run_also_when_it_is_long_over(
    served: DaemonProcess,
) -> None:
    session_id, first = served.run("one")
    _, second = served.run("two", session_id)
    until = f"until={first[0]['run_id']}"
    end = first[-1]["seq"]
    assert [
        int(number) for number, *_ in served.events(f"/v1/sessions/{session_id}/events?{until}")
    ][-1] == end
    # Behind its end there is nothing to wait for: what is stored is given, and the stream ends.
    behind = [
        int(number)
        for number, *_ in served.events(f"/v1/sessions/{session_id}/events?{until}&after={end}")
    ]
    assert behind == list(range(end + 1, second[-1]["seq"] + 1))
    assert (
        list(served.events(f"/v1/sessions/{session_id}/events?{until}&after={second[-1]['seq']}"))
        == []
    )


def test_until_never_ends_the_stream_before_the_run(served: DaemonProcess) -> None:
    """The run ends at any moment of the watcher's arrival: the helper submits, then watches
    `until`.
    """
    for _ in range(150):
        _, entries = served.run("hi")
        assert entries[-1]["kind"] == "run.completed"


def test_until_a_run_of_another_session_is_not_found(
    served: DaemonProcess, session_id: str
) -> None:
    _, entries = served.run("hi")
    for run_id in (entries[0]["run_id"], NOBODY):
        assert (
            served.request("GET", f"/v1/sessions/{session_id}/events?until={run_id}").status == 404
        )


def test_a_cursor_behind_the_end_is_refused(served: DaemonProcess, session_id: str) -> None:
    for path in (f"/v1/sessions/{session_id}/events?after=99", "/v1/events?after=99999999"):
        response = served.request("GET", path)
        assert (response.status, response.code) == (400, "invalid_input")


def test_all_sessions_are_watched_by_position(served: DaemonProcess) -> None:
    async def scenario() -> list[tuple[str, str]]:
        async with client(served) as http:
            async with http.get("/v1/status") as response:
                after = (await response.json())["entries"]
            stream = sse(http, f"/v1/events?after={after}")
            sessions = []
            for _ in range(2):
                async with http.post("/v1/sessions", json={}) as response:
                    sessions.append((await response.json())["session_id"])
            got: list[Any] = []
            while len(got) < 2:
                # That something else has changed is told as well.
                got += [heard for heard in [await anext(stream)] if heard[1] == "entry"]
            await stream.aclose()  # type: ignore[attr-defined]
            assert [data["tape"] for _, _, data in got] == sessions
            assert [int(number) for number, *_ in got] == [data["position"] for _, _, data in got]
            return [(event, data["kind"]) for _, event, data in got]

    assert asyncio.run(asyncio.wait_for(scenario(), 30)) == [("entry", "session.created")] * 2


def test_a_client_that_does_not_read_for_a_while_misses_no_entry(
    served: DaemonProcess, session_id: str
) -> None:
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.settimeout(20)
        slow.connect(("127.0.0.1", served.port))
        head = f"GET /v1/sessions/{session_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        slow.sendall(f"{head}Authorization: Bearer {served.token}\r\n\r\n".encode())
        slow.recv(512)
        for _ in range(60):
            served.run("many words\n" + "x" * 60_000, session_id)
        end = served.get(f"/v1/sessions/{session_id}/entries?after=300")["entries"][-1]["seq"]
        received = b""
        while b'"seq":%d,' % end not in received[-200_000:]:
            piece = slow.recv(1 << 20)
            assert piece, "the stream ended"
            received += piece
    seen = [int(number) for number in re.findall(rb"^id: (\d+)$", received, re.MULTILINE)]
    assert seen == list(range(seen[0], end + 1))
    assert seen[0] <= 2


class Socket:
    """A WebSocket whose replies are told apart from what it watches."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse") -> None:
        self.socket = socket
        self.seen: list[dict[str, Any]] = []

    async def ask(self, **message: Any) -> dict[str, Any]:
        await self.socket.send_json(message)
        return await self.until(lambda frame: frame["type"] in ("ack", "error", "pong"))

    async def until(self, wanted: Any) -> dict[str, Any]:
        while True:
            frame: dict[str, Any] = await self.socket.receive_json(timeout=20)
            if wanted(frame):
                return frame
            self.seen.append(frame)

    async def entry(self, kind: str) -> dict[str, Any]:
        for frame in self.seen:
            if frame["type"] == "entry" and frame["entry"]["kind"] == kind:
                return dict(frame["entry"])
        frame = await self.until(
            lambda frame: frame["type"] == "entry" and frame["entry"]["kind"] == kind
        )
        return dict(frame["entry"])


def test_a_websocket_submits_answers_cancels_and_pings(
    served: DaemonProcess, session_id: str
) -> None:
    async def scenario() -> None:
        async with client(served) as http, http.ws_connect(f"/v1/sessions/{session_id}/ws") as raw:
            socket = Socket(raw)
            assert await socket.ask(type="ping", id="1") == {"type": "pong", "id": "1"}
            submitted = await socket.ask(type="submit", id="2", text="write")
            assert (submitted["type"], submitted["id"], submitted["result"]["outcome"]) == (
                "ack",
                "2",
                "started",
            )
            request = (await socket.entry("approval.requested"))["event"]
            answered = await socket.ask(
                type="answer",
                id="3",
                approval_id=request["approval_id"],
                decision="deny",
                reason="no",
            )
            assert (answered["type"], answered["result"]["decision"]) == ("ack", "deny")
            await socket.entry("run.completed")
            again = await socket.ask(
                type="answer", id="4", approval_id=request["approval_id"], decision="allow"
            )
            assert (again["type"], again["id"], again["error"]["code"]) == (
                "error",
                "4",
                "conflict",
            )
            socket.seen.clear()
            other = await socket.ask(type="submit", id="5", text="write again")
            await socket.entry("approval.requested")
            cancelled = await socket.ask(type="cancel", id="6", run_id=other["result"]["run_id"])
            assert (cancelled["type"], cancelled["result"]["state"]) == ("ack", "cancelled")

    asyncio.run(asyncio.wait_for(scenario(), 40))


def test_words_that_come_at_once_are_few_messages_on_a_websocket(
    served: DaemonProcess, session_id: str
) -> None:
    async def scenario() -> None:
        async with client(served) as http, http.ws_connect(f"/v1/sessions/{session_id}/ws") as raw:
            socket = Socket(raw)
            await socket.ask(type="submit", text="many words")
            await socket.entry("run.completed")
            pieces = [frame["event"]["text"] for frame in socket.seen if frame["type"] == "live"]
            assert "".join(pieces) == "".join(WORDS)
            assert len(pieces) < len(WORDS)

    asyncio.run(asyncio.wait_for(scenario(), 40))


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        '{"type":"shout"}',
        '{"type":"submit"}',
        '{"type":"ping","more":1}',
        "[]",
        "1" * 9_000,
        "[" * 5_000,
        '{"type":"submit","text":""}',
    ],
)
def test_a_bad_message_is_answered_and_the_socket_goes_on(
    served: DaemonProcess, session_id: str, message: str
) -> None:
    async def scenario() -> None:
        async with client(served) as http, http.ws_connect(f"/v1/sessions/{session_id}/ws") as raw:
            socket = Socket(raw)
            await raw.send_str(message)
            refused = await socket.until(lambda frame: frame["type"] == "error")
            assert refused["error"]["code"] == "invalid_input"
            await raw.send_bytes(b"\xff\x00")
            assert (await socket.until(lambda frame: frame["type"] == "error"))["error"][
                "code"
            ] == "invalid_input"
            assert (await socket.ask(type="ping"))["type"] == "pong"

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_viewer_watches_a_websocket_but_does_not_act(
    served: DaemonProcess, session_id: str
) -> None:
    token = served.post("/v1/tokens", {"name": "looker", "scope": "viewer"})["token"]

    async def scenario() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            client(served) as http,
            http.ws_connect(f"/v1/sessions/{session_id}/ws", headers=headers) as raw,
        ):
            socket = Socket(raw)
            await socket.entry("session.created")
            refused = await socket.ask(type="submit", text="hi")
            assert refused["error"]["code"] == "forbidden"
            assert (await socket.ask(type="ping"))["type"] == "pong"

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_revoking_a_token_closes_its_websockets(served: DaemonProcess, session_id: str) -> None:
    made = served.post("/v1/tokens", {"name": "short", "scope": "viewer"})

    async def scenario() -> int | None:
        headers = {"Authorization": f"Bearer {made['token']}"}
        async with (
            client(served) as http,
            http.ws_connect(f"/v1/sessions/{session_id}/ws", headers=headers) as raw,
        ):
            await Socket(raw).entry("session.created")
            async with http.delete(f"/v1/tokens/{made['info']['token_id']}") as response:
                assert response.status == 200
            message = await raw.receive(timeout=10)
            assert message.type is aiohttp.WSMsgType.CLOSE
            return raw.close_code

    assert asyncio.run(asyncio.wait_for(scenario(), 30)) == 1001


def test_watchers_who_leave_leave_nothing_behind(served: DaemonProcess, session_id: str) -> None:
    async def scenario() -> None:
        async with client(served) as http:
            for _ in range(20):
                await some_sse(http, session_id, 0, 1)
                await some_ws(http, session_id, 0, 1)
            # How long the daemon takes to see that somebody has left is the machine's affair.
            while True:
                async with http.get("/v1/status") as response:
                    if (await response.json())["watchers"] == 0:
                        return

    asyncio.run(asyncio.wait_for(scenario(), 60))
    # None of all those who left, in this file, was an error. Memory says of a busy machine that it
    # was slow.
    log = [
        json.loads(line) for line in (served.home / "logs" / "daemon.log").read_text().splitlines()
    ]
    assert [
        each
        for each in log
        if each["level"] in ("error", "warning") and each["logger"] != "palyra.memory"
    ] == []
