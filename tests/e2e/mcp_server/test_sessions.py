"""What the MCP server lets whom do: scopes, approvals on the way, taking back, broken streams, and
everything malformed.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from palyra.agent.approval_steps import Answer
from palyra.core import json_rpc
from palyra.core.ids import OWNER
from palyra.features.mcp_server import jsonrpc
from palyra.models.scripted import (
    Script,
    ScriptedCall,
    ScriptedFailure,
    ScriptedModel,
    StreamPause,
    Turn,
)
from palyra.store import run_waits
from tests import inprocess
from tests.mcp_client_world import World, world

BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
META = {jsonrpc.VERSION_KEY: jsonrpc.MODERN, jsonrpc.CAPABILITIES_KEY: {}}
WRITES = [
    Turn(
        text="I write it.",
        calls=(
            ScriptedCall(name="fs.write", arguments={"path": "note.txt", "content": "first\n"}),
        ),
    ),
    Turn(text="written"),
]


class Peer:
    """A client that says exactly what it is told to say."""

    def __init__(self, here: World, http: aiohttp.ClientSession, token: str) -> None:
        self.url, self.http, self.auth, self.session = (
            here.url,
            http,
            {"Authorization": f"Bearer {token}"},
            {},
        )
        self.numbers = 0

    @asynccontextmanager
    async def post(self, message: Any, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        async with self.http.post(
            self.url, data=data, headers={**BOTH, **self.auth, **self.session, **headers}
        ) as answer:
            yield answer

    async def said(self, message: Any, **headers: str) -> tuple[int, Any]:
        async with self.post(message, **headers) as answer:
            raw = await answer.read()
            return answer.status, json.loads(raw) if raw else None

    async def greet(self) -> None:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "peer", "version": "1"},
        }
        async with self.post(self.request("initialize", hello)) as answer:
            assert answer.status == 200
            self.session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        self.numbers += 1
        return {"jsonrpc": "2.0", "id": self.numbers, "method": method, "params": params or {}}

    def calling(self, tool: str, progress: bool = True, **arguments: Any) -> dict[str, Any]:
        meta = {"_meta": {"progressToken": "p"}} if progress else {}
        return self.request("tools/call", {"name": tool, "arguments": arguments, **meta})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool, however it comes."""
        async with self.post(self.calling(tool, **arguments)) as answer:
            if answer.content_type == "application/json":
                return dict((await answer.json())["result"])
            return dict([event async for event in events(answer)][-1]["result"])


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The messages of a stream; `_id` is where it was."""
    name = ""
    async for line in answer.content:
        if line.startswith(b"id: "):
            name = line[4:].decode().strip()
        elif line.startswith(b"data: "):
            yield {**json.loads(line[6:]), "_id": name}


@asynccontextmanager
async def peer(folder: Path, model: Any, scope: str = "owner") -> AsyncIterator[tuple[World, Peer]]:
    async with asyncio.timeout(40), world(folder, model) as here, aiohttp.ClientSession() as http:
        made = Peer(here, http, here.token if scope == "owner" else await here.mint("robot", scope))
        await made.greet()
        yield here, made


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def test_a_token_does_over_mcp_what_it_may_do_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with peer(tmp_path, [Turn(text="hi")], "viewer") as (here, viewer):
            _, listed = await viewer.said(viewer.request("tools/list"))
            names = {tool["name"] for tool in listed["result"]["tools"]}
            assert names == {
                "run", "sessions_list", "session_read", "sessions_search", "approvals_list", "memory_search", "journal_search",
                "journal_verify",
            }  # fmt: skip
            refused = await viewer.call("ask", text="hi")
            assert refused["isError"]
            assert refused["structuredContent"]["code"] == "forbidden"
            assert await inprocess_sessions(here) == 0
            worker = Peer(here, viewer.http, await here.mint("attic", "worker"))
            assert (
                await worker.said(worker.request("initialize", {"protocolVersion": "2025-11-25"}))
            )[0] == 403
            # A session is its token's: nobody else can use its number.
            viewer.auth = {"Authorization": f"Bearer {here.token}"}
            assert (await viewer.said(viewer.request("ping")))[0] == 404

    asyncio.run(scenario())


async def inprocess_sessions(here: World) -> int:
    return len(await here.daemon.sessions.listing(OWNER, archived=False, before="", limit=10))


def test_a_question_waits_through_an_approval_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with peer(tmp_path, WRITES, "operator") as (here, robot):
            told: list[str] = []
            async with robot.post(
                robot.calling("ask", text="write", session_key="notes")
            ) as answer:
                async for event in events(answer):
                    if "result" in event:
                        assert text(event["result"]) == "written"
                        break
                    told.append(event["params"]["message"])
                    if not told[-1].startswith("waits for an approval of fs.write"):
                        continue
                    (waiting,) = (await robot.call("approvals_list"))["structuredContent"][
                        "approvals"
                    ]
                    assert "note.txt" in waiting["preview"]
                    # Another program's yes counts nowhere until a policy says so, also not with the
                    # owner's own token.
                    allow = {"approval_id": waiting["approval_id"], "decision": "allow"}
                    refused = await robot.call("approval_answer", **allow)
                    assert refused["structuredContent"]["code"] == "forbidden"
                    permit = 'permit (principal == ChannelSender::"mcp:robot", action == Action::"approve", resource);'
                    (here.daemon.policy_folder / "robots.cedar").write_text(permit)
                    here.daemon.policy.reload()
                    assert (await robot.call("approval_answer", **allow))["structuredContent"][
                        "decision"
                    ] == "allow"
            assert told[:2] == ["taken", "working"]
            assert told[-2:] == ["runs fs.write", "fs.write: ok"]
            (settled,) = (await robot.call("approvals_list", pending=False))["structuredContent"][
                "approvals"
            ]
            assert settled["decision"] == "allow"
            found = await robot.call("journal_search", kind="approval.resolved")
            assert '"surface":"mcp:robot"' in found["structuredContent"]["entries"][0]["event"]

    asyncio.run(scenario())


def test_taking_a_question_back_ends_its_run_and_leaving_does_so_only_without_a_session(
    tmp_path: Path,
) -> None:
    hold = StreamPause()
    model = ScriptedModel(
        Script.of([Turn(text=("so ", "far"), hold="here", hold_after=1)]), holds={"here": hold}
    )

    async def state(here: World, run_id: str) -> str:
        return (await here.daemon.gateway.run(OWNER, run_id)).state

    async def begun(robot: Peer, stream: AsyncIterator[dict[str, Any]]) -> tuple[str, str]:
        """The run that a stream waits for, and where the stream is."""
        async for event in stream:
            if event["params"]["message"] == "working":
                # The last that began, not the session last used: the runs before it may still have
                # something to say.
                found = await robot.call("journal_search", kind="run.started", limit=100)
                return found["structuredContent"]["entries"][-1]["run_id"], event["_id"]
        raise AssertionError("it ended before it began")

    async def scenario() -> None:
        async with peer(tmp_path, model) as (here, robot):
            # Taken back: the run ends, and no answer comes.
            message = robot.calling("ask", text="one")
            async with robot.post(message) as answer:
                stream = events(answer)
                taken_back, _ = await begun(robot, stream)
                notice = {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": message["id"]},
                }
                assert (await robot.said(notice))[0] == 202
                assert all("result" not in event for event in [event async for event in stream])
            assert await state(here, taken_back) == "cancelled"

            # A stream that breaks in a session ends nothing, and is taken up where it was.
            async with robot.post(robot.calling("ask", text="two")) as answer:
                left, cursor = await begun(robot, events(answer))
            assert await state(here, left) == "in_progress"

            # Who stands for himself says by leaving that it is not wanted any more.
            modern = robot.calling("ask", text="three")
            modern["params"]["_meta"] |= META
            headers = {
                "MCP-Protocol-Version": jsonrpc.MODERN,
                "Mcp-Method": "tools/call",
                "Mcp-Name": "ask",
            }
            async with robot.post(modern, **headers) as answer:
                gone, _ = await begun(robot, events(answer))
            session_id = (await here.daemon.gateway.run(OWNER, gone)).session_id
            await inprocess.until(here.daemon, session_id, "run.cancelled", run_id=gone)

            hold.released.set()
            resumed = {
                **robot.auth,
                **robot.session,
                "Accept": "text/event-stream",
                "Last-Event-ID": cursor,
            }
            async with robot.http.get(robot.url, headers=resumed) as answer:
                last = [event async for event in events(answer)][-1]
            assert text(last["result"]) == "so far"

    asyncio.run(scenario())


def test_a_run_is_found_again_by_its_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with peer(tmp_path, WRITES) as (here, robot):
            waiting = await robot.call("ask", text="write", wait_s=1)
            run_id = waiting["structuredContent"]["run_id"]
            while waiting["structuredContent"]["state"] == "in_progress":
                # On a busy machine it has not got that far within a second.
                waiting = await robot.call("run", run_id=run_id, wait_s=1)
            assert (waiting["structuredContent"]["state"], waiting["isError"]) == ("waiting", False)
            (approval,) = waiting["structuredContent"]["pending"]
            await here.daemon.answers.answer(OWNER, approval, Answer(decision="allow"), "test")
            done = await robot.call("run", run_id=run_id, wait_s=20)
            assert text(done) == "written"
            assert (await robot.call("run", run_id=run_id))["structuredContent"] == done[
                "structuredContent"
            ]
            assert text(await robot.call("run", run_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")).startswith(
                "error (not_found)"
            )

    asyncio.run(scenario())


def test_a_question_that_waits_for_its_model_says_so(tmp_path: Path) -> None:
    away = ScriptedFailure(failure="overloaded", times=1, retry_after_ms=65_000)

    async def scenario() -> None:
        async with peer(tmp_path, [Turn(text="back", fail=away)]) as (here, robot):
            said = "Model overloaded; next try in"
            async with robot.post(robot.calling("ask", text="hi", session_key="k")) as answer:
                async for event in events(answer):
                    if "result" in event:
                        assert text(event["result"]) == "back"
                        break
                    if event["params"]["message"].startswith(said):
                        (run,) = await here.daemon.db.read(run_waits.everybody)
                        stands = await robot.call("run", run_id=run[0].run_id)
                        assert said in text(stands)
                        await here.daemon.gateway.retry(OWNER, run[0].run_id)

    asyncio.run(scenario())


def test_what_another_program_remembers_waits_for_a_look(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with peer(tmp_path, [Turn(text="hi")], "operator") as (here, robot):
            kept = (await robot.call("memory_remember", text="the gate code is in the blue book"))[
                "structuredContent"
            ]
            assert kept["state"] == "review"
            assert (await robot.call("memory_search", text="gate code"))["structuredContent"][
                "found"
            ] == []
            await here.daemon.memory.review(OWNER, kept["memory_id"], "accept")
            (found,) = (await robot.call("memory_search", text="gate code"))["structuredContent"][
                "found"
            ]
            assert (found["memory_id"], found["label"]["sources"]) == (
                kept["memory_id"],
                ["mcp:robot"],
            )
            verified = Peer(here, robot.http, here.token)
            await verified.greet()
            assert (await verified.call("journal_verify"))["structuredContent"]["ok"] is True

    asyncio.run(scenario())


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)
_methods = st.sampled_from(
    [
        "initialize",
        "tools/list",
        "tools/call",
        "ping",
        "server/discover",
        "notifications/cancelled",
        "",
        "x" * 200,
    ]
)
_messages = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "1.0", 2])},
    optional={"id": _json, "method": _methods | _json, "params": _json | st.dictionaries(st.sampled_from(
        ["name", "arguments", "_meta", "cursor", "requestId", "protocolVersion"]), _json, max_size=4)},
)  # fmt: skip
_bodies = (
    st.binary(max_size=64)
    | _json.map(json.dumps).map(str.encode)
    | _messages.map(json.dumps).map(str.encode)
)


def test_nothing_malformed_does_harm(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with peer(tmp_path, [Turn(text="hi")]) as (here, robot):
            loop = asyncio.get_running_loop()

            async def one(body: bytes, session: bool) -> None:
                other = Peer(here, robot.http, here.token)
                other.session = robot.session if session else {}
                status, answer = await other.said(body)
                assert status in (200, 202, 400, 404), answer
                assert (answer is None) == (status == 202)

            @settings(
                max_examples=60, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @given(body=_bodies, session=st.booleans())
            def ask(body: bytes, session: bool) -> None:
                asyncio.run_coroutine_threadsafe(one(body, session), loop).result(20)

            await asyncio.to_thread(ask)
            assert await inprocess_sessions(here) == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, json_rpc.PARSE_ERROR),
        (b"\xff\xfe", {}, 400, json_rpc.PARSE_ERROR),
        (b"[" * 5_000, {}, 400, json_rpc.PARSE_ERROR),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', {}, 400, json_rpc.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', {}, 400, json_rpc.INVALID_REQUEST),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}',
            {},
            400,
            json_rpc.INVALID_PARAMS,
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
            {"Mcp-Session-Id": "no such"},
            404,
            "not_found",
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
            {"Mcp-Session-Id": ""},
            400,
            "invalid_input",
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
            {"MCP-Protocol-Version": "1999"},
            400,
            json_rpc.INVALID_REQUEST,
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
            {"Accept": "text/html"},
            406,
            "invalid_input",
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
            {"Content-Type": "text/plain"},
            415,
            "invalid_input",
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}',
            {},
            200,
            json_rpc.METHOD_NOT_FOUND,
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "no"}}',
            {},
            200,
            json_rpc.INVALID_PARAMS,
        ),
        (b" " * ((1 << 20) + 1), {}, 413, "limit_exceeded"),
    ],
)
def test_what_is_wrong_is_said(
    shared: "Shared", body: bytes, headers: dict[str, str], status: int, code: Any
) -> None:
    assert shared.said(body, headers) == (status, code)


class Shared:
    """One daemon for all of them."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.open = peer(folder, [Turn(text="hi")])
        self.robot = self.runner.run(self._begin())

    async def _begin(self) -> Peer:
        self.opened = asyncio.create_task(self._hold())
        self.ready, self.done = asyncio.get_running_loop().create_future(), asyncio.Event()
        return await self.ready  # type: ignore[no-any-return]

    async def _hold(self) -> None:
        async with self.open as (_, robot):
            self.ready.set_result(robot)
            await self.done.wait()

    def said(self, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        status, answer = self.runner.run(self.robot.said(body, **headers))
        return status, answer["error"]["code"]

    def close(self) -> None:
        async def end() -> None:
            self.done.set()
            await self.opened

        self.runner.run(end())
        self.runner.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Shared(tmp_path_factory.mktemp("shared"))
    yield made
    made.close()
