"""Everyday requests in windows from too small to large, through a whole daemon."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from palyra.core.messages import ModelRequest, ToolMessage
from palyra.models import token_count
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.store import prompt_breakdown
from tests.inprocess import TERMINAL, body, daemon, entries, say, session, until

CALLS: dict[str, ScriptedCall] = {
    "what is in this folder?": ScriptedCall(name="fs.list", arguments={"path": "."}),
    "read notes.txt": ScriptedCall(name="fs.read", arguments={"path": "notes.txt"}),
    "change red to blue in colour.txt": ScriptedCall(
        name="fs.patch",
        arguments={"edits": [{"path": "colour.txt", "search": "red", "replace": "blue"}]},
    ),
    "run the tests": ScriptedCall(name="shell.run", arguments={"command": "echo ran > ran.txt"}),
}


def _model() -> ScriptedModel:
    def answer(request: ModelRequest) -> Turn:
        if isinstance(request.messages[-1], ToolMessage):
            return Turn(text="done")
        said = msgspec.json.encode(request.messages[-1]).decode()
        return Turn(calls=(next(call for text, call in CALLS.items() if text in said),))

    return ScriptedModel(answer)


async def _ended(d: Any, where: Any, text: str) -> str:
    """How a run ends in which everything is approved."""
    run = await say(d, where, text)
    after = 0
    while True:
        entry = await until(
            d, run.session_id, "approval.requested", *TERMINAL, run_id=run.run_id, after=after
        )
        if entry.kind in TERMINAL:
            return entry.kind
        after = entry.seq
        asked = body(entry)["approval_id"]
        await d.answers.answer(OWNER, asked, Answer(decision="allow"), "test")


@pytest.mark.parametrize("window", [4_096, 8_192, 128_000])
def test_the_everyday_requests_work_in_every_window(tmp_path: Path, window: int) -> None:
    model = _model()

    async def scenario() -> list[dict[str, Any]]:
        async with daemon(tmp_path, model, window=window) as d:
            work = tmp_path / "work"
            (work / "notes.txt").write_text("a long line of notes\n" * 2_000)
            (work / "colour.txt").write_text("red\n")
            where = await session(d)
            for text in (*CALLS, *CALLS):
                if text.startswith("change"):
                    (work / "colour.txt").write_text("red\n")
                assert await _ended(d, where, text) == "run.completed"
            assert (work / "colour.txt").read_text() == "blue\n"
            assert (work / "ran.txt").read_text() == "ran\n"
            told = await entries(d, where.session_id)
            return [body(entry) for entry in told if entry.kind == "input.assembled"]

    assembled = asyncio.run(scenario())
    assert len(assembled) == 4 * len(CALLS)
    assert all(event["tokens"] <= event["budget"] for event in assembled)
    assert all(event.get("fitted", False) == (window < 20_000) for event in assembled)
    for request in model.requests:
        sent = (
            request.instructions + msgspec.json.encode((request.tools, request.messages)).decode()
        )
        assert token_count.count(sent) <= window * 0.75
    sets = {tuple(tool.name for tool in request.tools) for request in model.requests}
    assert len(sets) <= len(CALLS), "the tools that are offered flip"


def test_a_window_that_is_too_small_fails_with_the_one_that_is_needed(tmp_path: Path) -> None:
    async def scenario() -> dict[str, Any]:
        async with daemon(tmp_path, _model(), window=2_048) as d:
            where = await session(d)
            run = await say(d, where, "read notes.txt")
            ended = await until(d, run.session_id, *TERMINAL, run_id=run.run_id)
            return body(ended)

    ended = asyncio.run(scenario())
    assert ended["reason"] == "model_context_too_long"
    assert "needs one of 3,072" in ended["message"]
    assert "providers.scripted.context_tokens" in ended["message"]


def test_a_larger_fallback_is_asked_where_the_first_window_is_too_small(tmp_path: Path) -> None:
    settings = """
[routing.both]
use = ["scripted/one", "demo/two"]
[providers.demo]
kind = "scripted"
models = ["two"]
script = "none"
context_tokens = 8192
"""

    async def scenario() -> str:
        async with daemon(tmp_path, _model(), settings, window=2_048) as d:
            (tmp_path / "work" / "notes.txt").write_text("a note")
            return await _ended(d, await session(d), "read notes.txt")

    assert asyncio.run(scenario()) == "run.completed"


def test_the_bill_says_what_was_left_out(tmp_path: Path) -> None:
    async def scenario() -> dict[str, str]:
        async with daemon(tmp_path, _model(), window=4_096) as d:
            (tmp_path / "work" / "notes.txt").write_text("a long line of notes\n" * 2_000)
            run = await say(d, await session(d), "read notes.txt")
            await until(d, run.session_id, *TERMINAL, run_id=run.run_id)
            turns = await d.db.read(lambda tx: prompt_breakdown.of_run(tx, run.run_id))
            return {part.source: part.note for part in turns[-1].parts}

    notes = asyncio.run(scenario())
    assert notes["instructions"] == "fitted to a window of 4,096 tokens"
    assert notes["tools"].startswith("short schemas")
    assert notes["conversation"] == "1 results cut to fit the window"
