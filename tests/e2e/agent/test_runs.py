"""Runs from the inside: submit, mailbox modes, cancel in every state, STOP, budgets, approvals,
undo.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.agent.approval_steps import Answer
from palyra.agent.submit import Submission
from palyra.core.errors import (
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidInput,
    LimitExceeded,
    NotFound,
    PalyraError,
)
from palyra.core.ids import OWNER
from palyra.core.tools import Subject
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import (
    Script,
    ScriptedCall,
    ScriptedFailure,
    ScriptedModel,
    StreamPause,
    Turn,
)
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, runs
from tests import stores
from tests.inprocess import (
    IMPATIENT,
    TERMINAL,
    body,
    daemon,
    entries,
    finished,
    kinds,
    say,
    session,
    until,
)
from tests.journals import new_id
from tests.journals import run as run_loop

HELLO = [Turn(text=("hel", "lo"))]


def call(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def writing(path: str = "a.txt", content: str = "new\n") -> list[Turn]:
    return [Turn(calls=(call("fs.write", path=path, content=content),)), Turn(text=("written",))]


def with_daemon(
    tmp_path: Path,
    model: Any,
    scenario: Callable[[Daemon], Awaitable[None]],
    settings: str = "",
    seconds: float = 60,
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, model, settings) as opened:
            await scenario(opened)
        report = stores.upkeep(tmp_path / "home/journal.db").inspect()
        assert report.ok, report.bad

    run_loop(inside(), seconds)


def test_a_message_becomes_a_run_that_answers(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        assert body(await finished(d, run)) == {"kind": "run.completed", "text": "hello"}
        assert await kinds(d, where.session_id) == [
            "session.created",
            "run.accepted",
            "input.received",
            "run.started",
            "route.planned",
            "input.assembled",
            "model.replied",
            "run.completed",
        ]

    with_daemon(tmp_path, HELLO, scenario)


def test_submitting_twice_with_the_same_id_is_one_run(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        rid = new_id()
        first, second = await asyncio.gather(
            say(d, where, "hi", run_id=rid), say(d, where, "hi", run_id=rid)
        )
        assert {first.outcome, second.outcome} == {"started", "repeated"}
        assert first.run_id == second.run_id == rid
        with pytest.raises(Conflict):
            await say(d, where, "something else", run_id=rid)
        await finished(d, first)
        assert (await kinds(d, where.session_id)).count("run.accepted") == 1

    with_daemon(tmp_path, HELLO, scenario)


@pytest.mark.parametrize(
    ("submission", "error"),
    [
        ({"text": "  "}, InvalidInput),
        ({"text": "x" * 300_000}, InvalidInput),
        ({"text": "hi", "run_id": "nonsense"}, InvalidInput),
        ({"text": "hi", "model": "no-such-model"}, InvalidInput),
    ],
)
def test_a_bad_submission_is_refused_and_leaves_nothing(
    tmp_path: Path, submission: dict[str, Any], error: type[PalyraError]
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        with pytest.raises(error):
            await d.gateway.submit(OWNER, where.session_id, Submission(**submission))
        assert await kinds(d, where.session_id) == ["session.created"]

    with_daemon(tmp_path, HELLO, scenario)


def test_a_session_of_someone_else_cannot_be_used(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        with pytest.raises(Forbidden):
            await d.gateway.submit("user:eve", where.session_id, Submission(text="hi"))
        assert await d.sessions.listing("user:eve", archived=False, before="", limit=10) == []

    with_daemon(tmp_path, HELLO, scenario)


def holding(*more: Turn) -> list[Turn]:
    """A first turn that stands still in a pure tool until its FIFO is written to."""
    return [
        Turn(text=("one",), calls=(call("test.pure", text="x", hold="gate", hold_at="before"),)),
        *more,
    ]


async def at_gate(d: Daemon, path: Path, session_id: str) -> Callable[[], None]:
    """Wait until the tool stands at the gate; returns what opens it."""
    await until(d, session_id, "tool.started")
    handle = await asyncio.to_thread(open, path, "wb", 0)

    def release() -> None:
        handle.write(b"x")
        handle.close()

    return release


def gate(tmp_path: Path) -> Path:
    import os

    (tmp_path / "work").mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "work/gate")
    return tmp_path / "work/gate"


def test_a_followup_waits_for_its_turn(tmp_path: Path) -> None:
    path = gate(tmp_path)
    script = {"first": holding(Turn(text=("first done",))), "second": [Turn(text=("second done",))]}

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        one = await say(d, where, "first")
        release = await at_gate(d, path, where.session_id)
        two = await say(d, where, "second")
        assert (two.outcome, two.state) == ("queued", "accepted")
        release()
        await finished(d, two)
        order = [
            (e.kind, e.run_id) for e in await entries(d, where.session_id) if e.kind in TERMINAL
        ]
        assert order == [("run.completed", one.run_id), ("run.completed", two.run_id)]

    with_daemon(tmp_path, script, scenario)


def test_several_collected_inputs_become_one_followup(tmp_path: Path) -> None:
    path = gate(tmp_path)
    script = {"first": holding(Turn(text=("ok",))), "part one": [Turn(text=("got both",))]}

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await say(d, where, "first")
        release = await at_gate(d, path, where.session_id)
        a = await say(d, where, "part one", mode="collect")
        b = await say(d, where, "part two", mode="collect")
        assert (a.outcome, b.outcome) == ("queued", "joined")
        assert a.run_id == b.run_id
        release()
        await finished(d, a)
        texts = [
            body(e)["text"]
            for e in await entries(d, where.session_id)
            if e.kind == "input.received" and e.run_id == a.run_id
        ]
        assert texts == ["part one", "part two"]

    with_daemon(tmp_path, script, scenario)


def test_steering_joins_at_the_next_turn(tmp_path: Path) -> None:
    path = gate(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "first")
        release = await at_gate(d, path, where.session_id)
        steer = await say(d, where, "also this", mode="steer")
        assert (steer.outcome, steer.run_id) == ("joined", run.run_id)
        release()
        await finished(d, run)
        seen = [e.kind for e in await entries(d, where.session_id)]
        assert seen.index("tool.finished") < len(seen) - 1 - seen[::-1].index("input.assembled")
        assert seen.count("run.accepted") == 1
        model = d.models.provider(d.models.targets[0])
        last = model.requests[-1].messages  # type: ignore[attr-defined]
        assert [type(message).__name__ for message in last] == [
            "UserMessage",
            "AssistantMessage",
            "ToolMessage",
            "UserMessage",
        ]

    with_daemon(tmp_path, {"first": holding(Turn(text=("ok",)))}, scenario)


def test_an_interrupt_ends_a_pure_tool_and_steers(tmp_path: Path) -> None:
    gate(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "first")
        await until(d, where.session_id, "tool.started")
        await say(d, where, "stop that", mode="interrupt")
        await finished(d, run)
        result = next(e for e in await entries(d, where.session_id) if e.kind == "tool.finished")
        assert body(result)["outcome"] == "interrupted"

    with_daemon(tmp_path, {"first": holding(Turn(text=("ok",)))}, scenario)


def test_an_interrupt_ends_a_model_call_and_keeps_what_was_said(tmp_path: Path) -> None:
    hold = StreamPause()
    script = Script(
        {"first": (Turn(text=("so ", "far"), hold="here", hold_after=2), Turn(text=("instead",)))}
    )

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "first")
        await asyncio.wait_for(hold.reached.wait(), 20)
        await say(d, where, "no", mode="interrupt")
        assert body(await finished(d, run))["text"] == "instead"
        cut = next(e for e in await entries(d, where.session_id) if e.kind == "model.replied")
        assert (body(cut)["text"], body(cut)["stop"]) == ("so far", "interrupted")

    with_daemon(tmp_path, ScriptedModel(script, holds={"here": hold}), scenario)


def test_a_full_mailbox_tells_the_sender(tmp_path: Path) -> None:
    gate(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await say(d, where, "first")
        await until(d, where.session_id, "tool.started")
        for n in range(8):
            await say(d, where, f"more {n}")
        with pytest.raises(LimitExceeded):
            await say(d, where, "one too many")
        stopped = await d.gateway.stop(OWNER)
        assert len(stopped.cancelled) == 9

    with_daemon(tmp_path, {"first": holding(Turn(text=("ok",)))}, scenario)


def test_a_run_that_waits_in_the_mailbox_can_be_cancelled(tmp_path: Path) -> None:
    path = gate(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        one = await say(d, where, "first")
        release = await at_gate(d, path, where.session_id)
        two = await say(d, where, "second")
        assert (await d.gateway.cancel(OWNER, two.run_id)).state == "cancelled"
        release()
        assert (await finished(d, one)).kind == "run.completed"
        assert (await kinds(d, where.session_id)).count("run.started") == 1

    with_daemon(tmp_path, {"first": holding(Turn(text=("ok",)))}, scenario)


def test_a_run_that_waits_for_approval_can_be_cancelled_and_the_approval_is_withdrawn(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        asked = await until(d, where.session_id, "approval.requested")
        assert (await d.gateway.cancel(OWNER, run.run_id)).state == "cancelled"
        with pytest.raises(Conflict):
            await d.answers.answer(
                OWNER, body(asked)["approval_id"], Answer(decision="allow"), "test"
            )
        assert not (tmp_path / "work/a.txt").exists()

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_cancelling_twice_or_after_the_end_changes_nothing(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        await finished(d, run)
        assert (await d.gateway.cancel(OWNER, run.run_id)).state == "done"
        with pytest.raises(NotFound):
            await d.gateway.cancel(OWNER, new_id())

    with_daemon(tmp_path, HELLO, scenario)


def test_stop_ends_everything_of_a_principal_and_the_next_run_works(tmp_path: Path) -> None:
    gate(tmp_path)
    script = {"first": holding(), "write": writing(), "after": [Turn(text=("works",))]}

    async def scenario(d: Daemon) -> None:
        one, two = await session(d), await session(d)
        await say(d, one, "first")
        await say(d, one, "after")
        await say(d, two, "write")
        await until(d, one.session_id, "tool.started")
        await until(d, two.session_id, "approval.requested")
        stopped = await d.gateway.stop(OWNER)
        assert len(stopped.cancelled) == 3
        assert await d.db.read(runs.unfinished) == []
        later = await say(d, one, "after")
        assert body(await finished(d, later))["text"] == "works"

    with_daemon(tmp_path, script, scenario)


def test_a_run_that_uses_up_its_turns_fails_by_name(tmp_path: Path) -> None:
    turns = [Turn(calls=(call("test.pure", text=str(n)),)) for n in range(5)]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        end = await finished(d, await say(d, where, "go"))
        assert body(end)["reason"] == "turn_budget"
        assert "3 model turns" in body(end)["message"]

    with_daemon(tmp_path, turns, scenario, "[budgets]\nturns = 3\n")


def test_a_run_that_makes_too_many_calls_fails_by_name(tmp_path: Path) -> None:
    turns = [Turn(calls=tuple(call("test.pure", text=str(n)) for n in range(5)))]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        assert body(await finished(d, await say(d, where, "go")))["reason"] == "call_budget"

    with_daemon(tmp_path, turns, scenario, "[budgets]\ncalls = 4\n")


def test_a_passing_failure_is_retried_and_recorded(tmp_path: Path) -> None:
    turns = [
        Turn(text=("ok",), fail=ScriptedFailure(failure="overloaded", times=1, retry_after_ms=1))
    ]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        end = await finished(d, await say(d, where, "go"))
        assert end.kind == "run.completed"
        failed = next(
            body(e) for e in await entries(d, where.session_id) if e.kind == "model.failed"
        )
        assert (failed["failure"], failed["will_retry"]) == ("overloaded", True)

    with_daemon(tmp_path, turns, scenario)


def test_a_lasting_failure_ends_the_run_and_says_what_to_do(tmp_path: Path) -> None:
    turns = [Turn(text=("never",), fail=ScriptedFailure(failure="auth"))]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        end = await finished(d, await say(d, where, "go"))
        assert body(end)["reason"] == "model_auth"
        assert "palyra doctor" in body(end)["message"]

    with_daemon(tmp_path, turns, scenario, IMPATIENT)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("no.such_tool", {}, "no tool"),
        ("fs.read", {"pth": "a"}, "path"),
        ("fs.read", "{broken", "JSON"),
        ("fs.read", {"path": "../../etc/passwd"}, "outside"),
        ("fs.read", {"path": ".env"}, ".env"),
    ],
)
def test_a_bad_call_is_a_result_the_model_can_act_on(
    tmp_path: Path, name: str, arguments: Any, words: str
) -> None:
    turns = [Turn(calls=(ScriptedCall(name=name, arguments=arguments),)), Turn(text=("sorry",))]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        end = await finished(d, await say(d, where, "go"))
        assert body(end)["text"] == "sorry"
        seen = await entries(d, where.session_id)
        assert [e.kind for e in seen if e.kind.startswith("tool.")] == [
            "tool.proposed",
            "tool.decided",
            "tool.finished",
        ]
        result = next(body(e) for e in seen if e.kind == "tool.finished")
        assert result["outcome"] in ("error", "denied")
        assert words in result["text"]

    with_daemon(tmp_path, turns, scenario)


def test_a_large_result_becomes_an_artifact_that_can_be_paged(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/big.txt").write_text("".join(f"line {n}\n" for n in range(5000)))

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "go"))
        result = next(
            body(e) for e in await entries(d, where.session_id) if e.kind == "tool.finished"
        )
        assert len(result["text"]) < 8192
        assert result["artifact"] in result["text"]

    with_daemon(
        tmp_path, [Turn(calls=(call("fs.read", path="big.txt"),)), Turn(text=("ok",))], scenario
    )


async def asked(d: Daemon, session_id: str, after: int = 0) -> dict[str, Any]:
    entry = await until(d, session_id, "approval.requested", after=after)
    return {**body(entry), "seq": entry.seq}


def test_an_approved_write_happens_and_shows_its_diff_before(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        request = await asked(d, where.session_id)
        assert "+new" in request["preview"]["body"]
        assert not (tmp_path / "work/a.txt").exists()
        await d.answers.answer(OWNER, request["approval_id"], Answer(decision="allow"), "test")
        await finished(d, run)
        assert (tmp_path / "work/a.txt").read_text() == "new\n"

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_a_denial_reaches_the_model_with_its_reason(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        request = await asked(d, where.session_id)
        await d.answers.answer(
            OWNER, request["approval_id"], Answer(decision="deny", reason="not today"), "test"
        )
        await finished(d, run)
        assert not (tmp_path / "work/a.txt").exists()
        model = d.models.provider(d.models.targets[0])
        assert "not today" in model.requests[-1].messages[-1].text  # type: ignore[attr-defined]

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_the_first_answer_wins_and_the_others_are_told(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        request = await asked(d, where.session_id)
        answers = [Answer(decision="deny"), Answer(decision="allow"), Answer(decision="deny")]
        results = await asyncio.gather(
            *(
                d.answers.answer(OWNER, request["approval_id"], answer, "test")
                for answer in answers
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(result, Conflict) for result in results) == 2
        await finished(d, run)
        assert (await kinds(d, where.session_id)).count("approval.resolved") == 1

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_edited_arguments_are_used_and_judged(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        request = await asked(d, where.session_id)
        outside = Answer(decision="allow", arguments={"path": "/etc/x", "content": "y"})
        with pytest.raises(Forbidden):
            await d.answers.answer(OWNER, request["approval_id"], outside, "test")
        edited = Answer(decision="allow", arguments={"path": "b.txt", "content": "edited"})
        await d.answers.answer(OWNER, request["approval_id"], edited, "test")
        await finished(d, run)
        assert (tmp_path / "work/b.txt").read_text() == "edited"
        assert not (tmp_path / "work/a.txt").exists()

    with_daemon(tmp_path, {"write": writing()}, scenario)


@pytest.mark.parametrize("scope", ["session", "timed", "always"])
def test_a_wider_yes_covers_its_subject_and_no_more(tmp_path: Path, scope: str) -> None:
    script = {
        "one": writing("sub/a.txt"),
        "two": writing("sub/b.txt"),
        "three": writing("other.txt"),
    }

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await say(d, where, "one")
        request = await asked(d, where.session_id)
        folder = next(each for each in request["subjects"] if each["value"].endswith("/sub"))
        answer = Answer(
            decision="allow",
            scope=scope,
            subject=msgspec.convert(folder, Subject),
            for_ms=60_000 if scope == "timed" else 0,  # type: ignore[arg-type]
        )
        await d.answers.answer(OWNER, request["approval_id"], answer, "test")
        two = await say(d, where, "two")
        assert (
            await until(d, where.session_id, "approval.requested", *TERMINAL, run_id=two.run_id)
        ).kind == "run.completed"
        three = await say(d, where, "three")
        assert (
            await until(d, where.session_id, "approval.requested", *TERMINAL, run_id=three.run_id)
        ).kind == "approval.requested"
        elsewhere = await session(d)
        # A write that changes nothing does not ask.
        (tmp_path / "work/sub/b.txt").unlink()
        fresh = await say(d, elsewhere, "two")
        kind = (
            await until(
                d, elsewhere.session_id, "approval.requested", *TERMINAL, run_id=fresh.run_id
            )
        ).kind
        assert kind == ("approval.requested" if scope == "session" else "run.completed")
        await d.gateway.stop(OWNER)

    with_daemon(tmp_path, script, scenario)


def test_a_reset_drops_the_sessions_grants(tmp_path: Path) -> None:
    script = {"one": writing("a.txt", "1"), "two": writing("a.txt", "2")}

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "one")
        request = await asked(d, where.session_id)
        await d.answers.answer(
            OWNER, request["approval_id"], Answer(decision="allow", scope="session"), "test"
        )
        await finished(d, run)
        await d.sessions.reset(OWNER, where.session_id)
        again = await say(d, where, "two")
        assert (
            await until(d, where.session_id, "approval.requested", *TERMINAL, run_id=again.run_id)
        ).kind == "approval.requested"
        model = d.models.provider(d.models.targets[0])
        assert len(model.requests[-1].messages) == 1  # type: ignore[attr-defined]
        await d.gateway.stop(OWNER)

    with_daemon(tmp_path, script, scenario)


def test_an_approval_that_nobody_answers_times_out_as_a_denial(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        await finished(d, run)
        resolved = next(
            body(e) for e in await entries(d, where.session_id) if e.kind == "approval.resolved"
        )
        assert resolved["decision"] == "expired"
        assert not (tmp_path / "work/a.txt").exists()

    with_daemon(
        tmp_path, {"write": writing()}, scenario, "[approvals.timeout_ms]\ninteractive = 1000\n"
    )


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "happened"},
        {"decision": "deny", "scope": "session"},
        {"decision": "allow", "scope": "timed"},
        {
            "decision": "allow",
            "scope": "session",
            "subject": Subject("fs.write", "path_prefix", "/"),
        },
        {"decision": "deny", "arguments": {}},
        {"decision": "allow", "arguments": {"nonsense": 1}},
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_decides_nothing(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await say(d, where, "write")
        request = await asked(d, where.session_id)
        with pytest.raises(InvalidInput):
            await d.answers.answer(OWNER, request["approval_id"], Answer(**answer), "test")
        pending = await d.db.read(lambda tx: approvals.listing(tx, OWNER, pending=True))
        assert len(pending) == 1
        await d.gateway.stop(OWNER)

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_calls_that_need_approval_and_calls_that_do_not_are_decided_together(
    tmp_path: Path,
) -> None:
    turns = [
        Turn(
            calls=(
                call("fs.list", path="."),
                call("fs.write", path="a.txt", content="1"),
                call("fs.write", path="b.txt", content="2"),
            )
        ),
        Turn(text=("ok",)),
    ]

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "go")
        first = await asked(d, where.session_id)
        second = await asked(d, where.session_id, after=first["seq"])
        await d.answers.answer(OWNER, second["approval_id"], Answer(decision="deny"), "test")
        row = await d.gateway.run(OWNER, run.run_id)
        assert (row.state, row.reason) == ("waiting", "approval")
        await d.answers.answer(OWNER, first["approval_id"], Answer(decision="allow"), "test")
        await finished(d, run)
        assert [(tmp_path / "work" / name).exists() for name in ("a.txt", "b.txt")] == [True, False]

    with_daemon(tmp_path, turns, scenario)


async def approve_all(d: Daemon, session_id: str, run_id: str) -> None:
    after = 0
    while True:
        entry = await until(
            d, session_id, "approval.requested", *TERMINAL, run_id=run_id, after=after
        )
        if entry.kind in TERMINAL:
            return
        after = entry.seq
        await d.answers.answer(OWNER, body(entry)["approval_id"], Answer(decision="allow"), "test")


def test_an_effect_can_be_undone_with_a_look_before(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_bytes(b"old\x00bytes")

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        await approve_all(d, where.session_id, run.run_id)
        look = await d.undoing.undo(OWNER, where.session_id, Undo(dry_run=True))
        assert (tmp_path / "work/a.txt").read_bytes() == b"new\n"
        done = await d.undoing.undo(OWNER, where.session_id, Undo())
        assert done.changes == look.changes
        assert (tmp_path / "work/a.txt").read_bytes() == b"old\x00bytes"
        assert (await kinds(d, where.session_id))[-1] == "tool.undone"
        with pytest.raises(Conflict):
            await d.undoing.undo(OWNER, where.session_id, Undo())

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_undo_does_not_overwrite_what_someone_changed_since(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "write")
        await approve_all(d, where.session_id, run.run_id)
        (tmp_path / "work/a.txt").write_text("mine")
        with pytest.raises(Conflict):
            await d.undoing.undo(OWNER, where.session_id, Undo(run_id=run.run_id))
        assert (tmp_path / "work/a.txt").read_text() == "mine"
        await d.undoing.undo(OWNER, where.session_id, Undo(run_id=run.run_id, force=True))
        assert not (tmp_path / "work/a.txt").exists()

    with_daemon(tmp_path, {"write": writing()}, scenario)


def test_a_session_without_effects_has_nothing_to_undo(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        with pytest.raises(NotFound):
            await d.undoing.undo(OWNER, where.session_id, Undo())

    with_daemon(tmp_path, HELLO, scenario)


def test_the_first_terminal_event_wins(tmp_path: Path) -> None:
    from palyra.core.events import RunCancelled
    from palyra.store import tape

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        await finished(d, run)
        with pytest.raises(IllegalTransition):
            await d.db.write(
                lambda tx: tape.append(tx, where.session_id, OWNER, [RunCancelled()], run.run_id)
            )

    with_daemon(tmp_path, HELLO, scenario)
