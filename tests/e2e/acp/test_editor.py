"""The agent in an editor: `palyra acp`, driven by the reference client of the protocol."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema
from acp._transport import memory_transport_pair
from acp.agent.connection import AgentSideConnection

from palyra.cli import lookup
from palyra.client import Client, discovery
from palyra.client.http import Api
from palyra.features.acp.agent import EditorAgent
from palyra.features.acp.updates import Editor as Way
from tests import daemon
from tests.daemon import DaemonProcess

Answering = Callable[["Editor", str, Any, list[Any]], Any]


class Editor:
    """A client that remembers what it was told, and answers questions as the test says."""

    def __init__(self, answer: Answering | None = None) -> None:
        self.updates: list[Any] = []
        self.asked: list[tuple[Any, list[Any]]] = []
        self.changed = asyncio.Event()
        self._answer = answer

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> Any:
        self.asked.append((tool_call, options))
        self.changed.set()
        assert self._answer is not None, "nobody expected a question"
        chosen = self._answer(self, session_id, tool_call, options)
        if chosen is None:
            await asyncio.Event().wait()
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen)
        )

    def said(self, kind: str) -> str:
        return "".join(each.content.text for each in self.updates if each.session_update == kind)

    def calls(self) -> list[tuple[str, str | None]]:
        return [
            (each.session_update, each.status)
            for each in self.updates
            if each.session_update.startswith("tool_call")
        ]

    async def until(self, what: Callable[[], Any]) -> None:
        while not what():
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def editing(served: DaemonProcess, editor: Editor) -> AsyncIterator[Any]:
    """The agent as the editor sees it, in this process: starting one costs more than what it
    does.
    """
    ours, theirs = memory_transport_pair()
    agent: Any = EditorAgent(
        Way(lambda: Client.over(Api(lambda: discovery.discover(served.home, {}))))
    )
    async with (
        asyncio.timeout(60),
        AgentSideConnection(agent, ours),
        acp.connect_to_agent(editor, theirs) as connected,
    ):
        met = await connected.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert met.agent_capabilities.load_session
        yield connected


@asynccontextmanager
async def spawned(served: DaemonProcess, editor: Editor) -> AsyncIterator[Any]:
    command = (sys.executable, "-m", "palyra.cli.main", "acp", "--home", str(served.home))
    async with (
        asyncio.timeout(60),
        acp.spawn_agent_process(editor, *command, env=dict(os.environ)) as (agent, _),
    ):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield agent


def test_a_prompt_streams_and_is_loaded_again(served: DaemonProcess) -> None:
    async def scenario() -> None:
        first, second = Editor(), Editor()
        workspace = str(served.workspace)
        async with editing(served, first) as agent:
            session_id = (await agent.new_session(cwd=workspace, mcp_servers=[])).session_id
            done = await agent.prompt(session_id=session_id, prompt=[acp.text_block("hi")])
            assert done.stop_reason == "end_turn"
            assert first.said("agent_message_chunk") == "hello there"
            assert first.said("agent_thought_chunk") == "as asked"
            assert (
                len(
                    [each for each in first.updates if each.session_update == "agent_message_chunk"]
                )
                == 2
            )
            listed = await agent.list_sessions(cwd=workspace)
            assert session_id in [each.session_id for each in listed.sessions]
        async with editing(served, second) as agent:
            await agent.load_session(cwd=workspace, session_id=session_id, mcp_servers=[])
            assert second.said("user_message_chunk") == "hi"
            assert second.said("agent_message_chunk") == "hello there"
            more = await agent.prompt(session_id=session_id, prompt=[acp.text_block("many words")])
            assert more.stop_reason == "end_turn"
            assert second.said("agent_message_chunk").startswith("hello thereword0 word1")
            with pytest.raises(acp.RequestError, match="no such key"):
                await agent.prompt(session_id=session_id, prompt=[acp.text_block("fail")])

    asyncio.run(scenario())


def test_a_run_that_waits_for_its_model_says_so(tmp_path: Path) -> None:
    away = {"failure": "overloaded", "retry_after_ms": 65_000}

    async def scenario(served: DaemonProcess) -> None:
        editor = Editor()
        async with editing(served, editor) as agent:
            made = await agent.new_session(cwd=str(served.workspace), mcp_servers=[])
            asking = asyncio.create_task(
                agent.prompt(session_id=made.session_id, prompt=[acp.text_block("hi")])
            )
            await editor.until(lambda: "The run waits." in editor.said("agent_thought_chunk"))
            assert "Model overloaded; next try in" in editor.said("agent_thought_chunk")
            await agent.cancel(session_id=made.session_id)
            assert (await asking).stop_reason == "cancelled"
            assert editor.said("agent_message_chunk") == ""

    with daemon.start(tmp_path, script={"*": [{"fail": away}]}) as served:
        asyncio.run(scenario(served))


def test_a_question_of_the_agent_is_asked_in_the_editor(served: DaemonProcess) -> None:
    async def scenario() -> None:
        editor = Editor(lambda *asked: "allow")
        (served.workspace / "note.txt").unlink(missing_ok=True)
        async with editing(served, editor) as agent:
            session_id = (
                await agent.new_session(cwd=str(served.workspace), mcp_servers=[])
            ).session_id
            done = await agent.prompt(session_id=session_id, prompt=[acp.text_block("write")])
        assert done.stop_reason == "end_turn"
        assert (served.workspace / "note.txt").read_text() == "first\n"
        ((shown, options),) = editor.asked
        assert [option.kind for option in options] == [
            "allow_once",
            "allow_always",
            "allow_always",
            "reject_once",
        ]
        (diff,) = shown.content
        assert (diff.type, diff.path, diff.new_text) == (
            "diff",
            str(served.workspace / "note.txt"),
            "first",
        )
        assert editor.calls() == [
            ("tool_call", "pending"),
            ("tool_call_update", "pending"),
            ("tool_call_update", "in_progress"),
            ("tool_call_update", "completed"),
        ]

    asyncio.run(scenario())


def test_the_first_answer_counts_also_when_it_is_given_elsewhere(served: DaemonProcess) -> None:
    async def scenario() -> None:
        editor = Editor(lambda *asked: None)
        async with editing(served, editor) as agent:
            session_id = (
                await agent.new_session(cwd=str(served.workspace), mcp_servers=[])
            ).session_id
            prompting = asyncio.create_task(
                agent.prompt(session_id=session_id, prompt=[acp.text_block("write again")])
            )
            await editor.until(lambda: editor.asked)
            waiting = await asyncio.to_thread(served.get, "/v1/approvals")
            (mine,) = (each for each in waiting["approvals"] if each["session_id"] == session_id)
            answer = {"decision": "deny", "reason": "not now"}
            await asyncio.to_thread(
                served.post, f"/v1/approvals/{mine['approval_id']}/answer", answer
            )
            assert (await prompting).stop_reason == "end_turn"
        assert editor.calls()[-1] == ("tool_call_update", "failed")

    asyncio.run(scenario())


def test_cancelling_and_what_an_editor_gets_wrong(served: DaemonProcess) -> None:
    async def scenario() -> None:
        editor = Editor()
        async with editing(served, editor) as agent:
            new = agent.new_session
            session_id = (await new(cwd=str(served.workspace), mcp_servers=[])).session_id
            prompting = asyncio.create_task(
                agent.prompt(session_id=session_id, prompt=[acp.text_block("hold")])
            )
            await editor.until(lambda: editor.said("agent_message_chunk"))
            with pytest.raises(acp.RequestError, match="still being worked on"):
                await agent.prompt(session_id=session_id, prompt=[acp.text_block("hi")])
            await agent.cancel(session_id=session_id)
            assert (await prompting).stop_reason == "cancelled"
            for folder, why in (
                ("/", "too wide"),
                (str(served.home), "daemon's own folder"),
                ("here", "absolute"),
            ):
                with pytest.raises(acp.RequestError, match=why):
                    await new(cwd=folder, mcp_servers=[])
            with pytest.raises(acp.RequestError, match="begin one, or load it"):
                await agent.prompt(session_id="no such", prompt=[acp.text_block("hi")])
            with pytest.raises(acp.RequestError, match="ULID"):
                await agent.load_session(
                    cwd=str(served.workspace), session_id="no such", mcp_servers=[]
                )
            with pytest.raises(acp.RequestError, match="open that folder"):
                await agent.load_session(
                    cwd=str(served.workspace.parent), session_id=session_id, mcp_servers=[]
                )

    asyncio.run(scenario())


def test_what_ends_while_its_session_is_loaded_is_told(
    served: DaemonProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = served.post("/v1/sessions", {"workspace": str(served.workspace)})["session_id"]
    run_id = served.post(f"/v1/sessions/{session_id}/messages", {"text": "hold"})["run_id"]
    hold, listed = served.home.parent / "hold", lookup.unfinished

    def after_its_end(api: Client, session_id: str) -> Any:
        hold.touch()
        list(served.events(f"/v1/sessions/{session_id}/events?until={run_id}"))
        hold.unlink()
        return listed(api, session_id)

    async def scenario() -> None:
        editor = Editor()
        async with editing(served, editor) as agent:
            await agent.load_session(
                cwd=str(served.workspace), session_id=session_id, mcp_servers=[]
            )
            assert (editor.said("user_message_chunk"), editor.said("agent_message_chunk")) == (
                "hold",
                "so far",
            )

    monkeypatch.setattr(lookup, "unfinished", after_its_end)
    asyncio.run(scenario())


def test_lines_that_are_no_messages_are_answered(served: DaemonProcess) -> None:
    async def scenario() -> list[Any]:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "palyra.cli.main", "acp", "--home", str(served.home),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=1 << 20,
        )  # fmt: skip
        sent = [
            b"{", b"[]", b"7", b'"x"', b"[" * 100_000, b'{"jsonrpc": "2.0", "id": 1, "method": 5}', b" " * ((32 << 20) + 9),
            b'{"jsonrpc": "2.0", "id": 2, "method": "no/such"}',
            b'{"jsonrpc": "2.0", "id": 3, "method": "session/new", "params": 5}',
            b'{"jsonrpc": "2.0", "id": 4, "method": "initialize", "params": {"protocolVersion": 1}}',
            b'{"jsonrpc": "2.0", "id": 5, "method": "session/list", "params": {}}',
        ]  # fmt: skip
        async with asyncio.timeout(40):
            output, _ = await program.communicate(b"\n".join(sent) + b"\n")
        assert program.returncode == 0
        return [json.loads(line) for line in output.splitlines()]

    answers = asyncio.run(scenario())
    assert [each["error"]["code"] for each in answers if each["id"] is None] == [
        -32700,
        -32600,
        -32600,
        -32600,
        -32700,
        -32600,
        -32700,
    ]
    by_id = {each["id"]: each for each in answers if each["id"] is not None}
    assert (by_id[2]["error"]["code"], by_id[3]["error"]["code"]) == (-32601, -32602)
    assert by_id[4]["result"]["protocolVersion"] == 1
    assert "sessions" in by_id[5]["result"]


def test_a_daemon_that_dies_is_a_clear_error_and_its_session_is_loaded_afterwards(
    tmp_path: Path,
) -> None:
    hold = tmp_path / "hold"
    script = {"*": [{"text": ["so ", "far"], "hold": str(hold), "hold_after": 1}]}
    with daemon.start(tmp_path, script=script) as served:

        async def scenario() -> None:
            editor = Editor()
            async with spawned(served, editor) as agent:
                workspace = str(served.workspace)
                session_id = (await agent.new_session(cwd=workspace, mcp_servers=[])).session_id
                prompting = asyncio.create_task(
                    agent.prompt(session_id=session_id, prompt=[acp.text_block("go")])
                )
                await editor.until(lambda: editor.said("agent_message_chunk"))
                await asyncio.to_thread(served.kill)
                with pytest.raises(acp.RequestError, match="load the session"):
                    await prompting
                with pytest.raises(acp.RequestError, match="palyra up"):
                    await agent.new_session(cwd=workspace, mcp_servers=[])
                await asyncio.to_thread(served.restart)
                editor.updates.clear()
                await agent.load_session(cwd=workspace, session_id=session_id, mcp_servers=[])
                assert editor.said("user_message_chunk") == "go"
                await asyncio.to_thread(hold.touch)
                await editor.until(lambda: editor.said("agent_message_chunk") == "so far")

        asyncio.run(scenario())
