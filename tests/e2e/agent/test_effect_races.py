"""Effects and approvals in odd moments: nothing happens twice, nothing is lost, and what was asked
is what was answered.
"""

import asyncio
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.agent import approvals as agent_approvals
from palyra.agent import durable_write
from palyra.agent.approval_steps import Answer
from palyra.agent.submit import Submitted
from palyra.core.errors import Conflict, Forbidden
from palyra.core.events import Budgets
from palyra.core.ids import OWNER
from palyra.core.messages import ModelRequest, Text, ToolMessage, UserMessage
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals
from tests.crash.scenarios import call
from tests.faults import (
    WRITING,
    FullDisk,
    HeldWriter,
    asked,
    at_commit,
    ends,
    eventually,
    held_writer,
    hold_writer_at,
    in_daemon,
    on_full_disk,
    pending,
    permit_all,
    reached,
)
from tests.inprocess import TERMINAL, body, daemon, entries, finished, kinds, say, session, until
from tests.journals import run as run_loop

ONCE = [Turn(calls=(call("test.once", path="once.txt", line="effect"),)), Turn(text=("ok",))]


def last_said(request: ModelRequest) -> str:
    texts = [
        part.text
        for m in request.messages
        if isinstance(m, UserMessage)
        for part in m.parts
        if isinstance(part, Text)
    ]
    return texts[-1]


def test_a_disk_that_was_full_for_a_moment_does_not_make_the_model_work_twice(
    tmp_path: Path,
) -> None:
    """The store fails while the first request is out, and is back before the reply."""
    permit_all(tmp_path)
    hold = StreamPause()
    requests: list[ModelRequest] = []

    def turn(request: ModelRequest) -> Turn:
        requests.append(request)
        if isinstance(request.messages[-1], ToolMessage):
            return Turn(text=("done",))
        return Turn(calls=ONCE[0].calls, hold="h")

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where = await session(d)
        at_commit(d, "run.started", disk.fill)
        run = await say(d, where, "append one line")
        await reached(hold.reached)
        await eventually(lambda: disk.failed, "the disk refused")
        disk.full = False
        hold.released.set()
        await ends(d, where.session_id, run.run_id)
        assert (tmp_path / "work/once.txt").read_text() == "effect\n"
        assert (await kinds(d, where.session_id)).count("input.assembled") == 2
        assert len(requests) == 2

    on_full_disk(tmp_path, ScriptedModel(turn, holds={"h": hold}), scenario)


def test_while_the_disk_is_full_nobody_is_asked_twice_and_nothing_is_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once behind a reply of a later turn, once behind what a tool did: both are held until there
    is room, and go on from there.
    """
    monkeypatch.setattr(durable_write, "RETRY_S", 0.02)
    permit_all(tmp_path)
    requests: list[ModelRequest] = []
    holds = {"reply": StreamPause()}

    def turn(request: ModelRequest) -> Turn:
        requests.append(request)
        return (*ONCE[:1], Turn(text=("done",), hold="reply"))[len(requests) - 1]

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where = await session(d)
        # On disk is that it begins; what it did finds no room.
        at_commit(d, "tool.started", disk.fill)
        run = await say(d, where, "append one line")
        await eventually(lambda: disk.failed >= 3, "the result was refused again and again")
        assert (tmp_path / "work/once.txt").read_text() == "effect\n"
        disk.full = False
        await reached(holds["reply"].reached)
        disk.failed, disk.full = 0, True
        holds["reply"].released.set()
        await eventually(lambda: disk.failed >= 3, "the reply was refused again and again")
        disk.full = False
        await ends(d, where.session_id, run.run_id)
        assert (tmp_path / "work/once.txt").read_text() == "effect\n"
        assert len(requests) == 2
        found = await kinds(d, where.session_id)
        assert (
            found.count("tool.finished"),
            found.count("model.replied"),
            found.count("approval.requested"),
        ) == (1, 2, 0)

    on_full_disk(tmp_path, ScriptedModel(turn, holds=holds), scenario)


def test_a_steer_that_arrives_with_the_last_reply_is_answered(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        sent: list[asyncio.Future[Submitted]] = []
        at_commit(
            d,
            "model.replied",
            lambda: sent.append(asyncio.ensure_future(say(d, where, "also this", mode="steer"))),
        )
        await finished(d, await say(d, where, "this"))
        await ends(d, where.session_id, (await sent[0]).run_id)
        replies = [
            body(entry)["text"]
            for entry in await entries(d, where.session_id)
            if entry.kind == "model.replied"
        ]
        assert replies == ["to this", "to also this"]

    in_daemon(
        tmp_path, ScriptedModel(lambda request: Turn(text=(f"to {last_said(request)}",))), scenario
    )


def test_a_shutdown_before_an_effect_begins_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def inside() -> None:
        async with daemon(tmp_path, ONCE) as d:
            where = await session(d)
            writer = hold_writer_at(d, "tool.decided")
            await say(d, where, "hi")
            await reached(writer.held)
            await writer.handed_over(1)
            closing = asyncio.ensure_future(d.close())
            await asyncio.sleep(0)
            writer.release()
            await closing
        async with daemon(tmp_path, ONCE) as d:
            assert (
                await until(d, where.session_id, "approval.requested", *TERMINAL)
            ).kind == "run.completed"
        assert (tmp_path / "work/once.txt").read_text() == "effect\n"

    run_loop(inside())


def test_a_shutdown_during_one_effect_begins_no_other(tmp_path: Path) -> None:
    permit_all(tmp_path)
    (once,) = ONCE[0].calls
    both = [Turn(calls=(once, once)), Turn(text=("ok",))]

    async def inside() -> None:
        async with daemon(tmp_path, both) as d:
            closing: list[asyncio.Task[None]] = []
            at_commit(d, "tool.started", lambda: closing.append(asyncio.create_task(d.close())))
            where = await session(d)
            await say(d, where, "hi")
            await eventually(lambda: closing, "an effect begins")
            await closing[0]
        assert (tmp_path / "work/once.txt").read_text() == "effect\n"
        async with daemon(tmp_path, both) as d:
            assert (
                await until(d, where.session_id, "approval.requested", *TERMINAL)
            ).kind == "run.completed"
        assert (tmp_path / "work/once.txt").read_text() == "effect\neffect\n"

    run_loop(inside())


def test_a_pure_call_that_is_interrupted_as_it_finishes_has_one_result(tmp_path: Path) -> None:
    calls = (call("test.pure", text="result"), call("test.sleep", ms=60_000))

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        writer = hold_writer_at(d, "tool.started")
        run = await say(d, where, "go")
        await reached(writer.held)
        await writer.handed_over(1)
        d.runs.interrupt(run.run_id)
        await asyncio.sleep(0)
        writer.release()
        await ends(d, where.session_id, run.run_id)
        results = [
            body(entry)
            for entry in await entries(d, where.session_id)
            if entry.kind == "tool.finished"
        ]
        assert [(result["outcome"], result["text"][:11]) for result in results] == [
            ("ok", "result"),
            ("interrupted", "interrupted"),
        ]

    in_daemon(tmp_path, [Turn(calls=calls), Turn(text=("ok",))], scenario)


def test_undo_takes_back_the_newest_change_and_not_a_call_that_changed_nothing(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work/fifo")
    held = call("test.reversible", path="b.txt", line="y", hold="fifo", hold_at="before")
    model = ScriptedModel(
        Script({"one": tuple(WRITING), "two": (Turn(calls=(held,)), Turn(text=("ok",)))})
    )

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "one"))
        run = await say(d, where, "two")
        with_tool = await _met(tmp_path / "work/fifo")
        try:
            await d.gateway.cancel(OWNER, run.run_id)
        finally:
            os.close(with_tool)
        assert not (tmp_path / "work/b.txt").exists()
        undone = await d.undoing.undo(OWNER, where.session_id, Undo())
        assert [(change.path, change.change) for change in undone.changes] == [("a.txt", "deleted")]
        assert not (tmp_path / "work/a.txt").exists()

    in_daemon(tmp_path, model, scenario)


async def _met(fifo: Path) -> int:
    """The writing end of a FIFO at which somebody waits; closing it lets them go on."""
    found: list[int] = []

    def somebody_waits() -> bool:
        try:
            found.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    await eventually(somebody_waits, "the tool waits at its FIFO")
    return found[0]


async def _asking(d: Daemon) -> tuple[Submitted, HeldWriter]:
    """A run whose call is judged, and whose request for approval lies before the writer."""
    where = await session(d)
    writer = hold_writer_at(d, "model.replied")
    run = await say(d, where, "hi")
    await reached(writer.held)
    await writer.handed_over(1)
    return run, writer


async def _nothing_is_asked(d: Daemon) -> None:
    assert await pending(d) == []
    assert not await d.db.read(approvals.next_expiry), "the alarm would ring for ever"


def test_a_cancel_while_the_request_is_being_written_withdraws_the_request(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        run, writer = await _asking(d)
        cancelling = asyncio.ensure_future(d.gateway.cancel(OWNER, run.run_id))
        await writer.handed_over(2)
        writer.release()
        assert (await cancelling).state == "cancelled"
        await _nothing_is_asked(d)

    in_daemon(tmp_path, WRITING, scenario)


def test_a_time_budget_that_ends_while_the_request_is_being_written_withdraws_it(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        # Longer than a busy machine takes until the request lies before the writer; shorter than
        # until a run says that it lives, which would lie there too.
        d.settings.budgets = Budgets(active_ms=3_000)
        run, writer = await _asking(d)
        await writer.handed_over(2)
        writer.release()
        assert body(await ends(d, run.session_id, run.run_id))["reason"] == "time_budget"
        await _nothing_is_asked(d)

    in_daemon(tmp_path, WRITING, scenario)


def test_a_full_disk_while_an_approval_times_out_is_tried_again_later_and_not_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than this takes on any machine.
    monkeypatch.setattr(agent_approvals, "_RETRY_MS", 600_000)

    def tries() -> int:
        return sum("could not be timed out" in message for message in caplog.messages)

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where = await session(d)
        at_commit(d, "approval.requested", disk.fill)
        await say(d, where, "hi")
        await eventually(tries, "the approval timed out on a full disk")
        for _ in range(200):
            await pending(d)
        assert tries() == 1, "it is tried again as fast as the machine can"

    on_full_disk(tmp_path, WRITING, scenario, "[approvals.timeout_ms]\ninteractive = 1000\n")


def test_an_always_that_lost_to_a_deny_writes_no_policy(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)

        def answering(answer: Answer) -> "asyncio.Future[Any]":
            return asyncio.ensure_future(
                d.answers.answer(OWNER, approval.approval_id, answer, "test")
            )

        with held_writer(d) as writer:
            deny = answering(Answer(decision="deny"))
            await writer.handed_over(1)
            always = answering(Answer(decision="allow", scope="always"))
            await writer.handed_over(2)
        assert (await deny).decision == "deny"
        with pytest.raises(Conflict):
            await always
        await ends(d, where.session_id, run.run_id)
        assert list(d.policy_folder.iterdir()) == []

    in_daemon(tmp_path, WRITING, scenario)


def test_a_wider_yes_to_edited_arguments_does_not_cover_what_was_edited_away(
    tmp_path: Path,
) -> None:
    writes = [Turn(calls=(call("fs.write", path="prod.cfg", content=content),)) for content in "ab"]
    model = [writes[0], Turn(text=("ok",)), writes[1], Turn(text=("ok",))]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        first = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        edited = Answer(
            decision="allow", scope="session", arguments={"path": "dev.cfg", "content": "a"}
        )
        await d.answers.answer(OWNER, approval.approval_id, edited, "test")
        await finished(d, first)
        (grant,) = await d.db.read(lambda tx: approvals.grants_of(tx, OWNER))
        assert grant.subject.value.endswith("/dev.cfg")
        again = await say(d, where, "again")
        met = await until(d, where.session_id, "approval.requested", *TERMINAL, run_id=again.run_id)
        assert met.kind == "approval.requested"
        assert not (tmp_path / "work/prod.cfg").exists()

    in_daemon(tmp_path, model, scenario)


def test_what_is_attested_and_shown_to_the_model_are_the_arguments_that_ran(tmp_path: Path) -> None:
    model = ScriptedModel(WRITING)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        edited = {"path": "b.txt", "content": "y"}
        await d.answers.answer(
            OWNER, approval.approval_id, Answer(decision="allow", arguments=edited), "test"
        )
        await finished(d, run)
        told = {entry.kind: body(entry) for entry in await entries(d, where.session_id)}
        ran = told["approval.resolved"]["arguments"]
        assert ran["path"] == "b.txt"
        assert (
            told["tool.finished"]["attestation"]["input_sha256"]
            == sha256(msgspec.json.encode(ran)).hexdigest()
        )
        assert "b.txt" in str(model.requests[-1].messages), (
            "the model is not told that other arguments ran"
        )

    in_daemon(tmp_path, model, scenario)


def test_a_yes_is_judged_by_the_policy_in_force_when_it_is_given(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        (d.policy_folder / "no.cedar").write_text(
            '@id("no")\nforbid (principal, action, resource == Tool::"fs.write");\n'
        )
        assert not d.policy.reload().problems
        with pytest.raises(Forbidden):
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        assert [each.approval_id for each in await pending(d)] == [approval.approval_id]
        await d.answers.answer(OWNER, approval.approval_id, Answer(decision="deny"), "test")
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        assert not (tmp_path / "work/a.txt").exists()

    in_daemon(tmp_path, WRITING, scenario)
