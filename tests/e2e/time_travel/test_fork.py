"""Forking: a run taken up again from one of its entries, live, with another model or under other
policies.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.submit import Submitted
from palyra.cli import root
from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.ids import OWNER
from palyra.core.messages import AssistantMessage, ModelRequest, Text, ToolMessage, UserMessage
from palyra.features.time_travel.cli import fork
from palyra.features.time_travel.fork import Fork, Forked
from palyra.features.time_travel.replay.replay import replay
from palyra.models.scripted import ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from tests import replaying
from tests.daemon import start
from tests.inprocess import body, daemon, entries, finished, say, session, until
from tests.replaying import SETTINGS, call

NEVER = '@id("never")\nforbid (principal, action, resource == Tool::"test.pure");\n'


def speak(request: ModelRequest) -> Turn:
    """Three turns; what is said depends on who is asked."""
    said = sum(isinstance(message, AssistantMessage) for message in request.messages)
    if said < 2:
        return Turn(text=f"turn {said}", calls=(call("test.pure", text=f"{request.model} {said}"),))
    return Turn(text=f"answer of {request.model}")


async def recorded(d: Daemon) -> Submitted:
    run = await say(d, await session(d), "count to two")
    await finished(d, run)
    return run


async def seqs(d: Daemon, run: Submitted, kind: str) -> list[int]:
    return [
        entry.seq
        for entry in await entries(d, run.session_id)
        if entry.kind == kind and entry.run_id == run.run_id
    ]


async def ended(d: Daemon, forked: Forked) -> fork.Outcome:
    await until(d, forked.session_id, "run.completed", "run.failed", run_id=forked.run_id)
    return fork.of(await entries(d, forked.session_id), forked.run_id)


def inside_a_daemon(folder: Path, scenario: Any) -> None:
    model = ScriptedModel(speak)

    async def inside() -> None:
        async with daemon(folder, model, SETTINGS) as d:
            await scenario(d, model)

    asyncio.run(inside())


def test_a_fork_at_the_beginning_asks_another_model_the_same(tmp_path: Path) -> None:
    async def scenario(d: Daemon, model: ScriptedModel) -> None:
        run = await recorded(d)
        before = await entries(d, run.session_id)
        forked = await d.forking.fork(OWNER, run.run_id, Fork(model="scripted/two"))
        other = await ended(d, forked)
        assert (other.state, other.text, other.models) == (
            "done",
            "answer of two",
            ("scripted/two",),
        )
        assert [each.arguments for each in other.calls] == [{"text": "two 0"}, {"text": "two 1"}]
        assert model.requests[3].messages == (UserMessage((Text("count to two"),)),)
        # The original has one entry more: where it was continued.
        after = await entries(d, run.session_id)
        assert after[: len(before)] == before
        assert [entry.kind for entry in after[len(before) :]] == ["session.branched"]

    inside_a_daemon(tmp_path, scenario)


def test_a_fork_in_the_middle_keeps_the_turns_that_were_whole(tmp_path: Path) -> None:
    async def scenario(d: Daemon, model: ScriptedModel) -> None:
        run = await recorded(d)
        results, replies = await seqs(d, run, "tool.finished"), await seqs(d, run, "model.replied")
        for wanted in (results[0], results[0] + 1, replies[1], results[1] - 1):
            forked = await d.forking.fork(OWNER, run.run_id, Fork(at=wanted, model="scripted/two"))
            assert forked.at == results[0]
            other = await ended(d, forked)
            assert [each.arguments for each in other.calls] == [{"text": "two 1"}]
            first = next(each for each in model.requests if each.model == "two")
            assert [type(message) for message in first.messages] == [
                UserMessage,
                AssistantMessage,
                ToolMessage,
            ]
            model.requests.clear()

    inside_a_daemon(tmp_path, scenario)


def test_a_fork_under_other_policies_is_judged_by_them_alone(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "never.cedar").write_text(NEVER)

    async def scenario(d: Daemon, model: ScriptedModel) -> None:
        run = await recorded(d)
        forked = await d.forking.fork(OWNER, run.run_id, Fork(policy=str(folder)))
        mine = fork.of(await entries(d, run.session_id), run.run_id)
        other = await ended(d, forked)
        assert [(each.verdict, each.outcome) for each in mine.calls] == [("allow", "ok")] * 2
        assert [(each.verdict, each.outcome) for each in other.calls] == [("deny", "denied")] * 2
        accepted = next(
            entry for entry in await entries(d, forked.session_id) if entry.kind == "run.accepted"
        )
        assert body(accepted)["policy"] == str(folder)
        assert body(accepted)["forked_run_id"] == run.run_id
        # What comes next in the same session is under the usual policies again.
        again = await say(d, await d.sessions.get(OWNER, forked.session_id), "and now")
        await finished(d, again)
        usual = fork.of(await entries(d, forked.session_id), again.run_id)
        assert all(each.verdict != "deny" for each in usual.calls)
        # A fork is a run like any other: it can be replayed.
        assert (
            await asyncio.to_thread(
                replay, await replaying.recording(d, forked.session_id), d.catalogue
            )
        ).identical

    inside_a_daemon(tmp_path, scenario)


def test_a_fork_is_not_judged_by_policies_that_it_could_write_itself(tmp_path: Path) -> None:
    async def scenario(d: Daemon, model: ScriptedModel) -> None:
        run = await recorded(d)
        work = Path((await d.sessions.get(OWNER, run.session_id)).workspace)
        (work / "policies").mkdir()
        (tmp_path / "link").symlink_to(work / "policies")
        for inside in (work, work / "policies", tmp_path / "link"):
            with pytest.raises(InvalidInput, match="in the session's workspace"):
                await d.forking.fork(OWNER, run.run_id, Fork(policy=str(inside)))

    inside_a_daemon(tmp_path, scenario)


def test_policies_that_are_gone_after_a_restart_permit_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    stuck = StreamPause()

    def slow(request: ModelRequest) -> Turn:
        return Turn(text="well", hold="stuck") if request.model == "two" else speak(request)

    async def inside() -> None:
        async with daemon(tmp_path, ScriptedModel(slow, holds={"stuck": stuck}), SETTINGS) as d:
            run = await recorded(d)
            forked = await d.forking.fork(
                OWNER, run.run_id, Fork(model="scripted/two", policy=str(folder))
            )
            await asyncio.wait_for(stuck.reached.wait(), 20)
        folder.rmdir()
        async with daemon(tmp_path, ScriptedModel(speak), SETTINGS) as d:
            other = await ended(d, forked)
            assert [(each.verdict, each.outcome) for each in other.calls] == [
                ("deny", "denied")
            ] * 2

    asyncio.run(inside())


def test_what_cannot_be_forked_is_said(tmp_path: Path) -> None:
    async def scenario(d: Daemon, model: ScriptedModel) -> None:
        run = await recorded(d)
        for wrong in (
            Fork(at=1),
            Fork(at=999),
            Fork(model="nobody/x"),
            Fork(policy=str(tmp_path / "none")),
        ):
            with pytest.raises(InvalidInput):
                await d.forking.fork(OWNER, run.run_id, wrong)
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "x.cedar").write_text("permit (")
        with pytest.raises(PalyraError):
            await d.forking.fork(OWNER, run.run_id, Fork(policy=str(tmp_path / "bad")))
        with pytest.raises(Forbidden):
            await d.forking.fork("user:other", run.run_id, Fork())
        assert len(await d.sessions.listing(OWNER, archived=False, before="", limit=10)) == 1

    inside_a_daemon(tmp_path, scenario)


def test_replay_and_fork_over_http_and_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = {
        "*": [
            {"calls": [{"name": "fs.list", "arguments": {}}]},
            {"text": ["two"]},
            {"text": ["three"]},
        ]
    }
    with start(tmp_path, script=script, config=SETTINGS) as d:
        session_id, ran = d.run("look around")
        run_id = ran[0]["run_id"]
        assert d.request("GET", f"/v1/runs/{run_id}/replay").code == "not_found"
        assert d.post(f"/v1/runs/{run_id}/replay")["state"] == "running"
        found = d.get(f"/v1/runs/{run_id}/replay?wait_ms=20000")
        assert found["replayed"]["identical"], found
        home = str(d.home)
        assert root.run(["--home", home, "replay", run_id]) == 0
        capsys.readouterr()
        assert root.run(["--home", home, "--json", "fork", run_id]) == 0
        compared = json.loads(capsys.readouterr().out)
        assert compared["fork"]["forked_session_id"] == session_id
        assert compared["original"]["calls"] == compared["forked"]["calls"]
        assert compared["forked"]["text"] == "two"
        assert root.run(["--home", home, "fork", run_id, "--at", "1"]) != 0
        assert root.run(["--home", home, "fork", run_id]) == 0
        assert "answer" in capsys.readouterr().out
        token = d.post("/v1/tokens", {"name": "helper", "scope": "operator"})["token"]
        refused = d.request(
            "POST", f"/v1/runs/{run_id}/fork", {"policy": str(tmp_path)}, token=token
        )
        assert (refused.status, refused.code) == (403, "forbidden")
