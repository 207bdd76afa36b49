"""Moments that are easily forgotten: a wait before a retry, a session being loaded, a closing
daemon, STOP, a long history.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.agent import runs, session_cache
from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from palyra.models.scripted import Script, ScriptedFailure, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import runs as run_rows
from palyra.store.database import Tx
from palyra.store.sqlite import SqliteConnection
from tests.crash.scenarios import call
from tests.faults import (
    WRITING,
    SlowLoading,
    asked,
    crowd_out,
    ends,
    eventually,
    held_writer,
    in_daemon,
    row,
)
from tests.inprocess import daemon, kinds, say, session, until
from tests.journals import run as run_loop

ONCE = [Turn(calls=(call("test.once", path="a.txt", line="x"),)), Turn(text=("ok",))]


def test_an_interrupt_ends_the_wait_before_another_try(tmp_path: Path) -> None:
    later = ScriptedFailure(failure="rate_limited", retry_after_ms=60_000, times=1)
    model = ScriptedModel(Script({"go": (Turn(text=("well",), fail=later), Turn(text=("so",)))}))

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "go")
        await until(d, where.session_id, "model.failed")
        await say(d, where, "never mind, do this", mode="interrupt")
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        assert "never mind, do this" in str(model.requests[-1].messages)

    in_daemon(tmp_path, model, scenario)


def test_a_read_that_fails_while_a_run_is_resumed_leaves_no_run_without_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RETRY_S", 0.02)
    real = session_cache._look_up
    failed: list[str] = []

    def fails_once(tx: Tx, session_id: str) -> Any:
        if not failed:
            failed.append(session_id)
            raise apsw.CantOpenError("unable to open database file")
        return real(tx, session_id)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        await crowd_out(d)
        monkeypatch.setattr(session_cache, "_look_up", fails_once)
        await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        assert failed == [where.session_id]

    in_daemon(tmp_path, WRITING, scenario)


def test_who_waits_for_a_session_to_be_loaded_gets_it_although_the_first_who_asked_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        await crowd_out(d)
        loading = SlowLoading(monkeypatch)
        looking = asyncio.ensure_future(d.gateway.label(where.session_id))
        await loading.begun()
        await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        looking.cancel()
        await asyncio.wait([looking])
        loading.release()
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"

    in_daemon(tmp_path, WRITING, scenario)


def test_a_cancel_while_the_session_is_loaded_never_reaches_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel([Turn(text=("a",), hold="h")], holds={"h": StreamPause()})

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await crowd_out(d)
        loading = SlowLoading(monkeypatch)
        run = await say(d, where, "hi")
        await loading.begun()
        with held_writer(d) as writer:
            cancelling = asyncio.ensure_future(d.gateway.cancel(OWNER, run.run_id))
            await writer.handed_over(1)
            loading.release()
            # Time enough for a run that goes on to ask its model.
            for _ in range(20):
                await row(d, run.run_id)
        assert (await cancelling).state == "cancelled"
        await eventually(lambda: d.runs.working == 0, "nobody works on the cancelled run")
        assert list(model.requests) == []

    in_daemon(tmp_path, model, scenario)


def test_nothing_begins_once_the_daemon_is_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, ONCE) as d:
            where = await session(d)
            run = await say(d, where, "hi")
            approval = await asked(d, where.session_id)
            await crowd_out(d)
            loading = SlowLoading(monkeypatch)
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
            await loading.begun()
            closing = asyncio.ensure_future(d.close())
            await asyncio.sleep(0)
            loading.release()
            await closing
        assert not (tmp_path / "work/a.txt").exists()
        async with daemon(tmp_path, ONCE) as d:
            assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        assert (tmp_path / "work/a.txt").read_text() == "x\n"

    run_loop(inside())


def test_stop_ends_full_mailboxes_in_a_few_steps_and_begins_nothing_from_them(
    tmp_path: Path,
) -> None:
    working, queued = 20, 8
    model = ScriptedModel(lambda request: Turn(text=("a",), hold="h"), holds={"h": StreamPause()})

    async def scenario(d: Daemon) -> None:
        places = [await session(d) for _ in range(working)]
        for where in places:
            await asyncio.gather(*(say(d, where, "hi") for _ in range(1 + queued)))
        await eventually(lambda: len(model.requests) == working, "every first run asks its model")
        before = d.db.commits
        stopped = await d.gateway.stop(OWNER)
        assert len(stopped.cancelled) == working * (1 + queued)
        assert d.db.commits - before < working * queued, "queued runs were ended one by one"
        begun = [(await kinds(d, where.session_id)).count("run.started") for where in places]
        assert begun == [1] * working

    in_daemon(tmp_path, model, scenario)


def _effort(tx: Tx, query: Callable[[Tx], object]) -> int:
    """How many instructions the database needs for a query: the same on every machine."""
    assert isinstance(tx.connection, SqliteConnection)
    instructions = 0

    def tick() -> bool:
        nonlocal instructions
        instructions += 1
        return False

    tx.connection.raw.set_progress_handler(tick, 1)
    try:
        query(tx)
    finally:
        tx.connection.raw.set_progress_handler(None)
    return instructions


def _elsewhere(tx: Tx, state: str, many: int) -> None:
    """So many runs in other sessions, each with its submission."""
    rows = [
        {
            "id": f"run {number}",
            "session": f"session {number}",
            "at": 10_000 + number,
            "state": state,
        }
        for number in range(many)
    ]
    tx.many(
        """INSERT INTO runs (run_id, session_id, principal, origin, state, reason, accepted_position, created_ms)
        VALUES (:id, :session, 'user:owner', 'interactive', :state, '', :at, 1)""",
        rows,
    )
    tx.many(
        """INSERT INTO submissions (submission_id, session_id, run_id, mode, digest, seq)
        VALUES (:id, :session, :id, 'followup', x'00', 1)""",
        rows,
    )


QUERIES: dict[str, Callable[[Tx, str], object]] = {
    "unfinished_of_session": run_rows.unfinished_of_session,
    "waiting_inputs": run_rows.waiting_inputs,
    "collecting": run_rows.collecting,
}


@pytest.mark.parametrize("state", ["waiting", "accepted", "done"])
@pytest.mark.parametrize("query", QUERIES)
def test_what_a_submission_costs_does_not_grow_with_the_runs_of_other_sessions(
    query: str, state: str, tmp_path: Path
) -> None:
    hold = StreamPause()
    model = ScriptedModel(lambda request: Turn(text=("a",), hold="h"), holds={"h": hold})

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await say(d, where, "first")
        await say(d, where, "queued")

        def effort(tx: Tx) -> int:
            return _effort(tx, lambda tx: QUERIES[query](tx, where.session_id))

        before = await d.db.read(effort)
        await d.db.write(lambda tx: _elsewhere(tx, state, 3_000))
        assert await d.db.read(effort) <= 2 * before

    in_daemon(tmp_path, model, scenario)
