"""What holds for every tool behind the Tool port: the file tools and the rehearsal tools."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from palyra.core.tools import ToolResult
from tests.escapes.world import patience
from tests.tools_at_work import ARTIFACTS, call, catalogue, context, parsed, tree

CALLS: dict[str, dict[str, Any]] = {
    "fs.read": {"path": "a.txt"},
    "fs.list": {},
    "fs.search": {"pattern": "x"},
    "fs.write": {"path": "a.txt", "content": "new\n"},
    "fs.patch": {"edits": [{"path": "a.txt", "search": "x", "replace": "y"}]},
    "artifact.read": {"id": "A1"},
    "test.pure": {"text": "hi"},
    "test.sleep": {"ms": 1},
    "test.idempotent": {"folder": "keys", "text": "t"},
    "test.once": {"path": "log", "line": "l"},
    "test.reversible": {"path": "log", "line": "l"},
}
HOLDING = ["test.pure", "test.idempotent", "test.once", "test.reversible"]


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("x\n")
    ARTIFACTS["session", "A1"] = b"stored"
    return tmp_path


def test_there_is_a_call_for_every_tool() -> None:
    assert set(CALLS) == {spec.name for spec in catalogue().specs()}


@pytest.mark.parametrize("name", CALLS)
def test_a_good_call_succeeds(ws: Path, name: str) -> None:
    assert call(ws, name, **CALLS[name]).outcome == "ok"


@pytest.mark.parametrize("name", CALLS)
def test_looking_at_a_call_changes_nothing(ws: Path, name: str) -> None:
    before = tree(ws)
    tool, typed = parsed(name, CALLS[name])
    scope = tool.scope(typed, str(ws))
    preview = tool.preview(typed, str(ws))
    assert tree(ws) == before
    assert preview.title
    assert all(path.startswith(str(ws)) for path in scope.paths)
    subjects = tool.subjects(scope)
    assert all(subject.covers(name, scope) for subject in subjects)
    assert [subject.kind for subject in subjects][-1] == "tool"


@pytest.mark.parametrize("name", CALLS)
def test_a_declaration_says_what_the_tool_may_do(name: str) -> None:
    spec = catalogue().get(name).spec
    assert spec.description
    assert (spec.effect == "pure") == ("fs.write" not in spec.capabilities)


@pytest.mark.parametrize("name", CALLS)
def test_pure_tools_leave_no_trace(ws: Path, name: str) -> None:
    before = tree(ws)
    call(ws, name, **CALLS[name])
    assert (tree(ws) == before) == (catalogue().get(name).spec.effect == "pure")


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("fs.")])
def test_a_workspace_that_is_gone_is_a_result_not_a_crash(tmp_path: Path, name: str) -> None:
    result = call(tmp_path / "gone", name, **CALLS[name])
    assert result.outcome == "error"


def test_an_idempotent_call_that_runs_twice_leaves_one_file_per_key(ws: Path) -> None:
    tool, typed = parsed("test.idempotent", CALLS["test.idempotent"])
    for call_id in ("one", "one", "two"):
        asyncio.run(tool.execute(typed, context(ws, call_id)))
    assert len(list((ws / "keys").iterdir())) == 2


@pytest.mark.parametrize("name", ["test.once", "test.reversible"])
def test_an_effect_that_runs_twice_shows_twice(ws: Path, name: str) -> None:
    for _ in range(2):
        call(ws, name, **CALLS[name])
    assert (ws / "log").read_text() == "l\nl\n"


@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("name", HOLDING)
def test_a_tool_holds_at_a_fifo_until_it_is_released(ws: Path, name: str, at: str) -> None:
    fifo = ws / "gate"
    os.mkfifo(fifo)
    untouched = tree(ws)
    tool, typed = parsed(name, {**CALLS[name], "hold": "gate", "hold_at": at})

    async def main() -> ToolResult:
        work = asyncio.ensure_future(tool.execute(typed, context(ws)))
        # Opening for writing succeeds exactly when the tool has arrived at the gate.
        gate = await asyncio.wait_for(asyncio.to_thread(os.open, fifo, os.O_WRONLY), 10)
        assert not work.done()
        acted = tool.spec.effect != "pure" and at == "after"
        assert (tree(ws) != untouched) == acted
        os.write(gate, b"go")
        os.close(gate)
        return await asyncio.wait_for(work, 10)

    assert asyncio.run(main()).outcome == "ok"


def test_a_gate_that_is_not_there_does_not_hold(ws: Path) -> None:
    assert call(ws, "test.once", path="log", line="l", hold="no-gate").outcome == "ok"


@pytest.mark.parametrize("name", [*HOLDING, "test.sleep"])
def test_a_tool_that_waits_can_be_cancelled_at_once(ws: Path, name: str) -> None:
    os.mkfifo(ws / "gate")
    arguments = (
        {"ms": 60_000}
        if name == "test.sleep"
        else {**CALLS[name], "hold": "gate", "hold_at": "before"}
    )
    untouched = tree(ws)
    tool, typed = parsed(name, arguments)

    async def main() -> float:
        work = asyncio.ensure_future(tool.execute(typed, context(ws)))
        await asyncio.wait([work], timeout=0.05)
        began = time.monotonic()
        work.cancel()
        await asyncio.wait([work], timeout=10)
        assert work.cancelled()
        return time.monotonic() - began

    assert asyncio.run(main()) < 0.25 * patience()
    assert tree(ws) == untouched
