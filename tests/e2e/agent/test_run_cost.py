"""Statements and commits of a run that looks around and answers: what it pays is counted, not
timed.
"""

import asyncio
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.agent import model_stream, turn_decision
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Appended
from tests.inprocess import body, daemon, entries, finished, kinds, say, session, until

LOOKS = [
    Turn(calls=(ScriptedCall(name="fs.list", arguments={"path": ".", "limit": most}),))
    for most in (10, 20, 30)
]
WORK = (*LOOKS, Turn(text=("there is nothing here",)))


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine so fast that no timer comes before a result."""
    monkeypatch.setattr(turn_decision, "_WITH_RESULT_S", 60.0)
    monkeypatch.setattr(model_stream, "_TOLD_AFTER_S", 60.0)
    monkeypatch.setattr(model_stream, "_TOLD_LATER_S", 60.0)


@contextmanager
def statements() -> Iterator[list[tuple[str, str]]]:
    """Every statement of connections that are opened meanwhile, with its thread."""
    seen: list[tuple[str, str]] = []

    def traced(event: Any) -> None:
        if event["code"] == apsw.SQLITE_TRACE_STMT and not event.get("trigger"):
            seen.append((threading.current_thread().name, " ".join(event["sql"].split())))

    def opened(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, traced)

    apsw.connection_hooks.append(opened)
    try:
        yield seen
    finally:
        apsw.connection_hooks.remove(opened)


def commits_of(d: Daemon) -> list[list[str]]:
    """The kinds of a run's entries in every commit from now on."""
    made: list[list[str]] = []

    def note(appended: Sequence[Appended]) -> None:
        if kinds := [entry.kind for entry in appended if entry.run_id]:
            made.append(kinds)

    d.db.on_commit.connect(note)  # type: ignore[attr-defined]
    return made


@pytest.mark.usefixtures("unhurried")
def test_a_run_pays_one_commit_for_a_question_and_one_for_a_look(tmp_path: Path) -> None:
    async def inside() -> None:
        with statements() as seen:
            async with daemon(tmp_path, WORK * 2) as d:
                where = await session(d)
                await finished(d, await say(d, where, "look three times"))
                made = commits_of(d)
                seen.clear()
                await finished(d, await say(d, where, "and again"))
                written = [sql for thread, sql in seen if thread == "journal-write"]
        assert made == [
            ["run.accepted", "input.received", "run.started"],
            ["route.planned", "input.assembled", "model.replied"],
            ["tool.proposed", "tool.decided", "tool.started", "tool.finished"],
            ["input.assembled", "model.replied"],
            ["tool.proposed", "tool.decided", "tool.started", "tool.finished"],
            ["input.assembled", "model.replied"],
            ["tool.proposed", "tool.decided", "tool.started", "tool.finished"],
            ["input.assembled", "model.replied", "run.completed"],
        ]
        # Entries, the head of their tape and a bill are one statement each, whatever their number;
        # where the journal ends is known. A checkpoint of the tree may come between.
        assert len(written) <= 60
        assert sum(sql.startswith("INSERT INTO entries") for sql in written) <= len(made) + 3
        assert not any("max(position)" in sql for sql in written)

    asyncio.run(inside())


def test_nothing_remembered_is_looked_for_once(tmp_path: Path) -> None:
    async def inside() -> None:
        with statements() as seen:
            async with daemon(tmp_path, WORK * 3) as d:
                where = await session(d)
                await finished(d, await say(d, where, "one"))
                await finished(d, await say(d, where, "two"))
                seen.clear()
                await finished(d, await say(d, where, "three"))
                asked = [sql for _, sql in seen if re.search("FROM memory_partitions", sql)]
        assert asked == []

    asyncio.run(inside())


def test_a_look_that_takes_longer_is_recorded_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work/fifo")
    held = Turn(calls=(ScriptedCall(name="test.pure", arguments={"text": "a", "hold": "fifo"}),))

    async def inside() -> None:
        async with daemon(tmp_path, [held, Turn(text=("ok",))]) as d:
            where = await session(d)
            run = await say(d, where, "look")
            await until(d, where.session_id, "tool.started", run_id=run.run_id)
            assert "tool.finished" not in await kinds(d, where.session_id)
            (tmp_path / "work/fifo").write_bytes(b"x")
            assert (await finished(d, run)).kind == "run.completed"
            assert (await kinds(d, where.session_id)).count("tool.decided") == 1

    asyncio.run(inside())


@pytest.mark.usefixtures("unhurried")
def test_a_cancelled_look_leaves_no_decision_behind_the_end(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work/fifo")
    held = Turn(calls=(ScriptedCall(name="test.pure", arguments={"text": "a", "hold": "fifo"}),))

    async def inside() -> None:
        async with daemon(tmp_path, [held]) as d:
            where = await session(d)
            run = await say(d, where, "look")
            with await asyncio.to_thread(open, tmp_path / "work/fifo", "wb"):
                # It runs, and nothing of it is on the tape.
                assert "tool.started" not in await kinds(d, where.session_id)
                await d.gateway.cancel("user:owner", run.run_id)
            await d.db.write(lambda tx: None)  # type: ignore[attr-defined]
            assert (await kinds(d, where.session_id))[-1] == "run.cancelled"
            assert "tool.decided" not in await kinds(d, where.session_id)

    asyncio.run(inside())


@pytest.mark.usefixtures("unhurried")
def test_an_interrupted_look_has_its_decision_and_its_result(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work/fifo")
    held = Turn(calls=(ScriptedCall(name="test.pure", arguments={"text": "a", "hold": "fifo"}),))

    async def inside() -> None:
        async with daemon(tmp_path, [held, Turn(text=("ok",))]) as d:
            where = await session(d)
            run = await say(d, where, "look")
            with await asyncio.to_thread(open, tmp_path / "work/fifo", "wb"):
                await say(d, where, "rather this", mode="interrupt")
                assert (await finished(d, run)).kind == "run.completed"
            told = await entries(d, where.session_id)
            of_call = [entry for entry in told if entry.kind.startswith("tool.")]
            assert [entry.kind for entry in of_call] == [
                "tool.proposed",
                "tool.decided",
                "tool.started",
                "tool.finished",
            ]
            assert body(of_call[-1])["outcome"] == "interrupted"

    asyncio.run(inside())


def test_what_joins_during_the_last_reply_is_answered_too(tmp_path: Path) -> None:
    last = Turn(text=("one", "two"), hold="last", hold_after=1)

    async def inside() -> None:
        pause = StreamPause()
        model = ScriptedModel(Script.of([last, Turn(text=("and this",))]), holds={"last": pause})
        async with daemon(tmp_path, model) as d:
            where = await session(d)
            run = await say(d, where, "go")
            await pause.reached.wait()
            joined = await say(d, where, "also this", mode="steer")
            assert joined.run_id == run.run_id
            pause.released.set()
            ended = await finished(d, run)
            assert body(ended)["text"] == "and this"
            assert (await kinds(d, where.session_id)).count("model.replied") == 2

    asyncio.run(inside())
