"""What a model is shown does not depend on how the conversation came into memory: by living through
it, reading or branching.
"""

import re
from pathlib import Path

from palyra.core.ids import OWNER
from palyra.core.messages import AssistantMessage, ModelRequest, Text, ToolMessage, UserMessage
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from palyra.store.sessions import Session
from tests.crash.scenarios import call
from tests.faults import in_daemon, permit_all, reached
from tests.inprocess import body, daemon, entries, finished, say, session
from tests.journals import run as run_loop

SMALL_WINDOW = 6_000
# So that the window slides.
NO_COMPACTION = "[compaction]\nautomatic = false\n"


def last_said(request: ModelRequest) -> str:
    message = request.messages[-1]
    part = message.parts[-1] if isinstance(message, UserMessage) else None
    return part.text if isinstance(part, Text) else ""


def seen(request: ModelRequest) -> list[str]:
    """What was said, in order, the beginnings only."""
    said: list[str] = []
    for message in request.messages:
        if isinstance(message, UserMessage):
            said += [part.text[:12] for part in message.parts if isinstance(part, Text)]
        elif isinstance(message, AssistantMessage):
            said.append(f"model: {message.text[:12]}")
    return said


def echo() -> ScriptedModel:
    return ScriptedModel(lambda request: Turn(text=(f"re {last_said(request)[:9]}",)))


async def branch(d: Daemon, of: Session) -> Session:
    return await d.sessions.branch(OWNER, of.session_id, None, "")


def test_a_branch_of_a_branch_sees_the_whole_lineage(tmp_path: Path) -> None:
    model = echo()

    async def scenario(d: Daemon) -> None:
        a = await session(d)
        await finished(d, await say(d, a, "in a"))
        b = await branch(d, a)
        await finished(d, await say(d, b, "in b"))
        await finished(d, await say(d, b, "in b again"))
        c = await branch(d, b)
        await finished(d, await say(d, c, "in c"))
        assert seen(model.requests[-1]) == [
            "in a",
            "model: re in a",
            "in b",
            "model: re in b",
            "in b again",
            "model: re in b agai",
            "in c",
        ]

    in_daemon(tmp_path, model, scenario)


def test_a_branch_of_a_session_whose_window_slid_sees_what_the_session_sees(tmp_path: Path) -> None:
    model = echo()

    async def scenario(d: Daemon) -> None:
        parent = await session(d)
        for number in range(6):
            await finished(d, await say(d, parent, f"m{number} " + "x" * 4_000))
        child = await branch(d, parent)
        await finished(d, await say(d, parent, "short"))
        to_parent = model.requests[-1].messages
        await finished(d, await say(d, child, "short"))
        assert model.requests[-1].messages == to_parent
        assert "m0 xxxxxxxxx" not in seen(model.requests[-1]), (
            "the window did not slide: this shows nothing"
        )

    in_daemon(tmp_path, model, scenario, window=SMALL_WINDOW, settings=NO_COMPACTION)


def test_a_branch_of_a_session_that_was_steered_has_its_turns_in_the_same_order(
    tmp_path: Path,
) -> None:
    hold = StreamPause()
    turns = (
        Turn(calls=(call("test.pure", text="1"),)),
        Turn(text=("two",), hold="h"),
        *(Turn(text=(n,)) for n in ("three", "four")),
    )
    model = ScriptedModel(Script({"go": turns}), holds={"h": hold})

    async def scenario(d: Daemon) -> None:
        parent = await session(d)
        run = await say(d, parent, "go")
        await reached(hold.reached)
        await say(d, parent, "steered", mode="steer")
        hold.released.set()
        await finished(d, run)
        child = await branch(d, parent)
        await finished(d, await say(d, parent, "more"))
        to_parent = model.requests[-1].messages
        await finished(d, await say(d, child, "more"))
        assert model.requests[-1].messages == to_parent
        assert seen(model.requests[-1]) == [
            "go",
            "model: ",
            "model: two",
            "steered",
            "model: three",
            "more",
        ]

    in_daemon(tmp_path, model, scenario)


def test_a_note_on_an_undone_call_is_the_same_after_a_restart_when_the_window_slid(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)

    def turn(request: ModelRequest) -> Turn:
        if last_said(request).startswith("write"):
            return Turn(calls=(call("fs.write", path="a.txt", content="x"),))
        return Turn(text=("ok",))

    model = ScriptedModel(turn)
    twin = tmp_path / "twin"

    async def inside() -> None:
        async with daemon(tmp_path, model, window=SMALL_WINDOW) as d:
            where = await session(d)
            await finished(d, await say(d, where, "write " + "x" * 9_000))
            await d.undoing.undo(OWNER, where.session_id, Undo())
            await finished(d, await say(d, where, "y" * 4_000))
            # The twin reads what this one has lived through.
            (twin / "home").mkdir(parents=True)
            sqlite_files.backup(d.journal_path, twin / "home/journal.db")
            await finished(d, await say(d, where, "now"))
            lived = model.requests[-1].messages
        async with daemon(twin, model, window=SMALL_WINDOW) as d:
            await finished(d, await say(d, where, "now"))
            assert model.requests[-1].messages == lived
            assert "undid your call" in str(lived), "the note is not there: this shows nothing"

    run_loop(inside())


def test_a_branch_can_read_the_artifacts_that_its_conversation_names(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/big.txt").write_text("line of text\n" * 2_000)

    def turn(request: ModelRequest) -> Turn:
        match last_said(request):
            case "read":
                return Turn(calls=(call("fs.read", path="big.txt"),))
            case "rest":
                shown = "".join(
                    message.text for message in request.messages if isinstance(message, ToolMessage)
                )
                return Turn(
                    calls=(call("artifact.read", id=re.findall(r"id ([0-9a-f]{64})", shown)[0]),)
                )
        return Turn(text=("ok",))

    async def scenario(d: Daemon) -> None:
        parent = await session(d)
        await finished(d, await say(d, parent, "read"))
        child = await branch(d, parent)
        await finished(d, await say(d, child, "rest"))
        (result,) = [
            body(entry)
            for entry in await entries(d, child.session_id)
            if entry.kind == "tool.finished"
        ]
        assert result["outcome"] == "ok", result["text"]

    in_daemon(tmp_path, ScriptedModel(turn), scenario)
