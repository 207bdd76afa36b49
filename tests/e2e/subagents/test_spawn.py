"""Subagents: a call that is done by a run of its own, with no more than its parent has, and whose
result comes back once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from palyra.features.subagents import service as delivering
from palyra.models.demo import DemoModel
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import runs, subagents
from palyra.store.subagents import Agent
from tests.crash.scenarios import call
from tests.faults import (
    HeldWriter,
    at_commit,
    eventually,
    in_daemon,
    pending,
    permit_all,
    reached,
    row,
)
from tests.inprocess import body, daemon, entries, finished, kinds, say, session, until
from tests.journals import run as run_loop

ONCE = call("test.once", path="once.txt", line="no")


def spawn(task: str, **more: Any) -> Any:
    return call("agent.spawn", task=task, **more)


async def tree(d: Daemon, session_id: str) -> list[Agent]:
    return await d.db.read(lambda tx: subagents.tree(tx, session_id))


async def results(d: Daemon, session_id: str) -> list[dict[str, Any]]:
    return [body(entry) for entry in await entries(d, session_id) if entry.kind == "tool.finished"]


def test_a_subagents_answer_is_the_calls_result_with_its_place_on_the_tape(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "begin")
        assert body(await finished(d, run))["text"] == "read"
        assert [
            kind
            for kind in await kinds(d, where.session_id)
            if kind.split(".")[0] in ("run", "agent", "tool")
        ] == [
            "run.accepted",
            "run.started",
            "tool.proposed",
            "tool.decided",
            "tool.started",
            "agent.spawned",
            "tool.finished",
            "run.resumed",
            "run.completed",
        ]
        (result,) = await results(d, where.session_id)
        (agent,) = await tree(d, where.session_id)
        assert (result["outcome"], result["text"]) == ("ok", "the answer is 4")
        assert result["agent"]["run_id"] == agent.run_id == result["call_id"]
        last = (await entries(d, agent.session_id))[-1]
        assert (result["agent"]["session_id"], result["agent"]["seq"]) == (last.tape, last.seq)
        assert (result["agent"]["turns"], result["agent"]["calls"]) == (2, 1)
        assert result["agent"]["input_tokens"] > 0
        assert (agent.state, agent.depth, agent.task) == ("done", 1, "count")
        assert (await row(d, agent.run_id)).origin == "child"
        # It is shown with whom it works for, not among the conversations.
        listed = await d.sessions.listing(OWNER, archived=False, before="", limit=10)
        assert [each.session_id for each in listed] == [where.session_id]

    script = {
        "begin": [Turn(calls=(spawn("count"),)), Turn(text=("read",))],
        "count": [Turn(calls=(call("test.pure", text="x"),)), Turn(text=("the answer is 4",))],
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario)


def test_a_defect_in_delivering_a_result_does_not_leave_the_parent_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivering, "_RETRY_S", 0.01)

    async def scenario(d: Daemon) -> None:
        defect = "CREATE TRIGGER defect BEFORE UPDATE ON children BEGIN SELECT RAISE(ABORT, 'a defect'); END"
        await d.db.write(lambda tx: tx.run(defect))
        run = await say(d, await session(d), "begin")
        await eventually(lambda: "could not be delivered" in caplog.text, "the defect was met")
        await d.db.write(lambda tx: tx.run("DROP TRIGGER defect"))
        assert body(await finished(d, run))["text"] == "read"

    script = {
        "begin": [Turn(calls=(spawn("count"),)), Turn(text=("read",))],
        "count": [Turn(text=("4",))],
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario)


def test_a_subagent_that_is_just_being_stored_is_not_taken_for_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "_RETRY_S", 0.01)
    works = StreamPause()

    async def scenario(d: Daemon) -> None:
        writer = HeldWriter(d)
        at_commit(d, "tool.decided", writer.hold)
        run = await say(d, await session(d), "begin")
        # The step that starts it waits for the writer, as it may when a start looks at what the
        # last process left.
        await eventually(lambda: d.children._awaited, "a subagent is awaited")
        await d.children.go_on()
        await eventually(
            lambda: not d.children._tasks or not d.children._awaited, "what was left is looked at"
        )
        writer.release()
        await reached(works.reached)
        await eventually(lambda: not d.children._tasks, "nothing is left to deliver")
        works.released.set()
        assert body(await finished(d, run))["text"] == "read"

    script = {
        "begin": (Turn(calls=(spawn("count"),)), Turn(text=("read",))),
        "count": (Turn(text=("4",), hold="h"),),
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, ScriptedModel(Script(script), holds={"h": works}), scenario)


def test_a_class_of_work_in_the_place_of_a_model_is_served_by_who_serves_that_class(
    tmp_path: Path,
) -> None:
    """By a rule, or by the model that the settings name for it; and what is neither a model nor a
    class is refused.
    """

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "begin", model="scripted/one"))
        planned = {}
        for agent in await tree(d, where.session_id):
            route = next(
                body(entry)
                for entry in await entries(d, agent.session_id)
                if entry.kind == "route.planned"
            )
            planned[agent.task] = (route["model"], route["task"], route["reasons"][0])
        assert planned == {
            "sum": ("short", "summary", "models.summary names it"),
            "find": ("fine", "extraction", "the rule finding chooses it for task class extraction"),
            "own": ("one", "background", "asked for by the caller"),
        }
        (odd,) = [
            result for result in await results(d, where.session_id) if result["outcome"] != "ok"
        ]
        assert (odd["outcome"], odd["text"].split(":")[0]) == (
            "error",
            "there is no model 'nonsense'",
        )

    wanted = (
        spawn("sum", model="summary"),
        spawn("find", model="extraction"),
        spawn("own"),
        spawn("odd", model="nonsense"),
    )
    answer = [Turn(text=("ok",))]
    script: dict[str, Sequence[Turn]] = {
        "begin": [Turn(calls=wanted), Turn(text=("done",))],
        "sum": answer,
        "find": answer,
        "own": answer,
    }
    rule = "[routing.finding]\ntasks = ['extraction']\nuse = ['scripted/fine']\n"

    async def inside() -> None:
        async with daemon(tmp_path, script, rule, summary="scripted/short") as d:
            await scenario(d)

    run_loop(inside())


def test_the_demo_model_shows_a_subagent_at_work(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        (Path(tmp_path) / "work/a.txt").write_text("one\ntwo\n")
        where = await session(d)
        answer = body(
            await finished(d, await say(d, where, "ask a helper to count the lines of a.txt"))
        )["text"]
        assert answer.startswith(
            "A helper worked on `count the lines of a.txt` in a session of its own"
        )
        assert "**2 lines**" in answer
        (agent,) = await tree(d, where.session_id)
        assert (agent.state, agent.task) == ("done", "count the lines of a.txt")

    in_daemon(tmp_path, DemoModel(delay_ms=0), scenario)


def test_four_work_together_and_the_others_wait_for_a_place_while_results_keep_the_models_order(
    tmp_path: Path,
) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "begin")
        await until(d, where.session_id, "agent.spawned")
        await eventually(lambda: d.runs.working == 4, "four work and their parent does not")
        assert len(await tree(d, where.session_id)) == 4
        assert (await row(d, run.run_id)).reason == "child"
        hold.released.set()
        assert body(await finished(d, run))["text"] == "all"
        said = [
            entry for entry in await entries(d, where.session_id) if entry.kind == "model.replied"
        ]
        order = [each["id"] for each in body(said[0])["calls"]]
        agents = {each.call_id: each for each in await tree(d, where.session_id)}
        assert [agents[each].task for each in order] == [f"part {number}" for number in range(6)]
        assert {each["call_id"]: each["text"] for each in await results(d, where.session_id)} == {
            call_id: f"did {number}" for number, call_id in enumerate(order)
        }

    script: dict[str, tuple[Turn, ...]] = {
        "begin": (
            Turn(calls=tuple(spawn(f"part {number}") for number in range(6))),
            Turn(text=("all",)),
        )
    }
    for number in range(6):
        script[f"part {number}"] = (Turn(text=(f"did {number}",), hold="h"),)
    permit_all(tmp_path)
    in_daemon(tmp_path, ScriptedModel(Script(script), holds={"h": hold}), scenario)


def test_effects_and_subagents_of_one_turn_keep_their_order(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "begin"))
        assert (tmp_path / "work/once.txt").read_text().splitlines() == [
            "before",
            "first",
            "between",
            "second",
        ]

    def line(text: str) -> Any:
        return call("test.once", path="once.txt", line=text)

    script = {
        "begin": [
            Turn(calls=(line("before"), spawn("first"), line("between"), spawn("second"))),
            Turn(text=("ok",)),
        ],
        "first": [Turn(calls=(line("first"),)), Turn(text=("1",))],
        "second": [Turn(calls=(line("second"),)), Turn(text=("2",))],
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario)


def test_a_subagent_is_offered_and_allowed_the_tools_it_was_given_and_its_own_no_more(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(
        Script(
            {
                "begin": (
                    Turn(calls=(spawn("work", tools=["test.pure", "agent.spawn"]),)),
                    Turn(text=("ok",)),
                ),
                "work": (
                    Turn(calls=(ONCE, spawn("deeper", tools=["test.once"]), spawn("same"))),
                    Turn(text=("ok",)),
                ),
                "same": (Turn(calls=(ONCE,)), Turn(text=("ok",))),
            }
        )
    )

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "begin"))
        work, same = await tree(d, where.session_id)
        assert [(each.task, each.depth) for each in (work, same)] == [("work", 1), ("same", 2)]
        refused, too_wide, _ = await results(d, work.session_id)
        assert refused["outcome"] == "denied"
        assert "was not given test.once" in refused["text"]
        assert (too_wide["outcome"], "was not given test.once" in too_wide["text"]) == (
            "error",
            True,
        )
        assert (await results(d, same.session_id))[0]["outcome"] == "denied"
        assert not (tmp_path / "work/once.txt").exists()
        offered = {
            tuple(tool.name for tool in request.tools)
            for request in model.requests
            if len(request.tools) < 5
        }
        assert offered == {("test.pure", "agent.spawn")}

    permit_all(tmp_path)
    in_daemon(tmp_path, model, scenario)


def test_a_subagent_three_deep_has_none_of_its_own(tmp_path: Path) -> None:
    deeper = {
        str(n): (Turn(calls=(spawn(str(n + 1)),)), Turn(text=(f"said {n}",))) for n in range(4)
    }
    model = ScriptedModel(Script({**deeper, "4": (Turn(text=("no",)),)}))

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "0"))
        agents = await tree(d, where.session_id)
        assert [(each.task, each.depth) for each in agents] == [("1", 1), ("2", 2), ("3", 3)]
        (refused,) = await results(d, agents[-1].session_id)
        assert refused["outcome"] == "denied"
        assert "no subagents of its own" in refused["text"]
        offers = [
            any(tool.name == "agent.spawn" for tool in request.tools) for request in model.requests
        ]
        assert offers.count(False) == 2
        # What those below have used counts all the way up.
        (told,) = await results(d, where.session_id)
        assert (told["agent"]["turns"], told["agent"]["calls"]) == (6, 3)

    permit_all(tmp_path)
    in_daemon(tmp_path, model, scenario)


def test_a_subagents_budget_is_a_part_of_what_its_parent_has_left(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "begin")
        ended = await finished(d, run)
        spawned = [
            body(entry)
            for entry in await entries(d, where.session_id)
            if entry.kind == "agent.spawned"
        ]
        # Ten turns: one is used, one is kept for the parent, the rest is shared. Twenty calls: two
        # were these.
        assert [each["budgets"] for each in spawned] == [
            {"turns": 4, "calls": 9, "active_ms": spawned[0]["budgets"]["active_ms"]},
            {"turns": 1, "calls": 9, "active_ms": 60_000},
        ]
        assert 14 * 60_000 < spawned[0]["budgets"]["active_ms"] <= 15 * 60_000
        told = {
            each["agent"]["state"]: each["text"]
            for each in await results(d, where.session_id)
            if "agent" in each
        }
        assert told["done"] == "done"
        assert "turn_budget" in told["failed"]
        # What they used is used: two turns and one.
        assert (ended.kind, body(ended)["reason"]) == ("run.failed", "turn_budget")
        own = [
            entry for entry in await entries(d, where.session_id) if entry.kind == "model.replied"
        ]
        assert len(own) == 10 - 3

    script = {
        "begin": [
            Turn(calls=(spawn("long"), spawn("short", turns=1, minutes=1))),
            *(Turn(calls=(call("test.pure", text=f"x{n}"),)) for n in range(10)),
        ],
        "long": [Turn(calls=(call("test.pure", text="x"),)), Turn(text=("done",))],
        "short": [Turn(calls=(call("test.pure", text="x"),)), Turn(text=("never said",))],
    }
    permit_all(tmp_path)
    in_daemon(
        tmp_path, script, scenario, "[budgets]\nturns = 10\ncalls = 20\nactive_minutes = 30\n"
    )


def test_without_budget_left_a_call_is_told_so_and_nothing_starts(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "begin"))
        (told,) = await results(d, where.session_id)
        assert told["outcome"] == "error"
        assert "not enough left" in told["text"]
        assert await tree(d, where.session_id) == []

    script = {"begin": [Turn(calls=(spawn("work"),)), Turn(text=("ok",))]}
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario, "[budgets]\nturns = 2\n")


def test_what_a_parent_has_read_labels_its_subagents_and_what_they_read_labels_their_answer(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        (tmp_path / "work/mine.txt").write_text("mine\n")
        (tmp_path / "work/other.txt").write_text("other\n")
        where = await session(d)
        await finished(d, await say(d, where, "begin"))
        (agent,) = await tree(d, where.session_id)
        accepted = body((await entries(d, agent.session_id))[1])
        assert accepted["commission"]["label"]["private_sources"] == ["file:mine.txt"]
        assert (await d.gateway.label(agent.session_id)).private_sources == (
            "file:mine.txt",
            "file:other.txt",
        )
        told = (await results(d, where.session_id))[-1]
        assert told["label"]["private_sources"] == ["file:mine.txt", "file:other.txt"]
        assert (await d.gateway.label(where.session_id)).confidentiality == "private"

    script = {
        "begin": [
            Turn(calls=(call("fs.read", path="mine.txt"),)),
            Turn(calls=(spawn("look"),)),
            Turn(text=("ok",)),
        ],
        "look": [Turn(calls=(call("fs.read", path="other.txt"),)), Turn(text=("seen",))],
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario)


ASKING = {
    "begin": [Turn(calls=(spawn("write it"),)), Turn(text=("ok",))],
    "write it": [Turn(calls=(spawn("really write it"),)), Turn(text=("passed on",))],
    "really write it": [
        Turn(calls=(call("fs.write", path="a.txt", content="x"),)),
        Turn(text=("written",)),
    ],
}


def test_a_subagent_asks_the_same_person_and_every_session_above_shows_it(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "begin")
        shown = body(await until(d, where.session_id, "agent.asked"))
        # Everybody waits: nobody has a task.
        await eventually(lambda: d.runs.working == 0, "all wait without a task")
        (approval,) = await pending(d)
        middle, low = await tree(d, where.session_id)
        assert (approval.owner, approval.origin, approval.session_id) == (
            OWNER,
            "child",
            low.session_id,
        )
        assert approval.request.asker is not None
        assert (approval.request.asker.task, approval.request.asker.depth) == ("really write it", 2)
        assert approval.request.asker.root == where.session_id
        assert (shown["session_id"], shown["request"]["approval_id"]) == (
            low.session_id,
            approval.approval_id,
        )
        assert "agent.asked" in await kinds(d, middle.session_id)
        await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        assert body(await finished(d, run))["text"] == "ok"
        assert (tmp_path / "work/a.txt").read_text() == "x"
        for each in (where.session_id, middle.session_id):
            (answered,) = [
                body(entry) for entry in await entries(d, each) if entry.kind == "agent.answered"
            ]
            assert answered["answer"]["decision"] == "allow"

    in_daemon(tmp_path, ASKING, scenario)


def test_an_answer_after_a_restart_brings_the_whole_tree_to_its_end(tmp_path: Path) -> None:
    async def ask(d: Daemon) -> None:
        where = await session(d, key="k")
        await say(d, where, "begin")
        await until(d, where.session_id, "agent.asked")

    async def answer(d: Daemon) -> None:
        where = await session(d, key="k")
        (approval,) = await pending(d)
        assert d.runs.working == 0
        await d.answers.answer(
            OWNER, approval.approval_id, Answer(decision="deny", reason="no"), "test"
        )
        assert body(await until(d, where.session_id, "run.completed"))["text"] == "ok"
        assert [each.state for each in await tree(d, where.session_id)] == ["done", "done"]

    in_daemon(tmp_path, ASKING, ask)
    in_daemon(tmp_path, ASKING, answer)


@pytest.mark.parametrize("how", ["cancel", "stop", "cancel the one in the middle"])
def test_ending_a_run_ends_all_that_work_for_it(how: str, tmp_path: Path) -> None:
    hold = StreamPause()

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "begin")
        await reached(hold.reached)
        middle, *_ = await tree(d, where.session_id)
        await until(d, where.session_id, "agent.asked")
        match how:
            case "cancel":
                await d.gateway.cancel(OWNER, run.run_id)
            case "stop":
                await d.gateway.stop(OWNER)
            case _:
                await d.gateway.cancel(OWNER, middle.run_id, "enough")
                assert body(await finished(d, run))["text"] == "went on"
        states = {each.task: each.state for each in await tree(d, where.session_id)}
        assert states == {"middle": "cancelled", "low": "cancelled", "asks": "cancelled"}
        assert (await row(d, run.run_id)).state == ("done" if "middle" in how else "cancelled")
        assert await pending(d) == []
        await eventually(lambda: d.runs.working == 0, "nobody works any more")
        assert await d.db.read(runs.unfinished) == []
        if "middle" in how:
            (told,) = await results(d, where.session_id)
            assert (told["outcome"], told["text"]) == (
                "cancelled",
                "the subagent was cancelled: enough",
            )

    script = {
        "begin": (Turn(calls=(spawn("middle"),)), Turn(text=("went on",))),
        "middle": (Turn(calls=(spawn("low"), spawn("asks"))), Turn(text=("no",))),
        "low": (Turn(text=("slow",), hold="h"),),
        "asks": (Turn(calls=(call("fs.write", path="a.txt", content="x"),)), Turn(text=("no",))),
    }
    in_daemon(tmp_path, ScriptedModel(Script(script), holds={"h": hold}), scenario)


def test_the_parents_rules_hold_for_its_subagents(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await d.rules.add(OWNER, where.session_id, "never use fs.write")
        await finished(d, await say(d, where, "begin"))
        low = (await tree(d, where.session_id))[-1]
        (refused,) = await results(d, low.session_id)
        assert refused["outcome"] == "denied"
        assert not (tmp_path / "work/a.txt").exists()

    permit_all(tmp_path)
    in_daemon(tmp_path, ASKING, scenario)


def test_a_rule_that_counts_counts_what_subagents_do(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await d.rules.add(OWNER, where.session_id, "max 3 calls")
        await finished(d, await say(d, where, "begin"))
        first, second = await tree(d, where.session_id)
        # The two that started them count as well.
        outcomes = [
            each["outcome"] for one in (first, second) for each in await results(d, one.session_id)
        ]
        assert sorted(outcomes) == ["denied", "ok"]

    script = {
        "begin": [Turn(calls=(spawn("a"),)), Turn(calls=(spawn("b"),)), Turn(text=("ok",))],
        "a": [Turn(calls=(call("test.pure", text="x"),)), Turn(text=("1",))],
        "b": [Turn(calls=(call("test.pure", text="x"),)), Turn(text=("2",))],
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario)


def test_a_long_answer_becomes_an_artifact_of_the_parents_session(tmp_path: Path) -> None:
    long = "".join(f"line {number} of many\n" for number in range(2_000))

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "begin"))
        (told,) = await results(d, where.session_id)
        assert told["size"] == len(long)
        assert told["artifact"] in told["text"]
        assert len(told["text"]) < 8_192

    script = {
        "begin": [Turn(calls=(spawn("write"),)), Turn(text=("ok",))],
        "write": [Turn(text=(long,))],
    }
    permit_all(tmp_path)
    in_daemon(tmp_path, script, scenario)


def test_a_run_with_subagents_and_the_subagents_own_replay_identically(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "begin")
        await until(d, where.session_id, "agent.asked")
        (approval,) = await pending(d)
        await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        await finished(d, run)
        for run_id in (run.run_id, *(each.run_id for each in await tree(d, where.session_id))):
            await d.replays.start(OWNER, run_id)
            replay = await d.replays.get(OWNER, run_id, wait_ms=20_000)
            assert replay.replayed is not None
            assert replay.replayed.identical, replay.replayed.difference

    in_daemon(tmp_path, ASKING, scenario, "[memory]\nembeddings = false\n")
