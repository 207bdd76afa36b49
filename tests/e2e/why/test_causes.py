"""From every effect on a tape back to its causes: what began it, the model call, the decision and,
where somebody was asked, the approver.
"""

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from palyra.core.events import Entry
from palyra.core.ids import OWNER
from palyra.core.tools import Subject
from palyra.features.memory.model import NewMemory
from palyra.features.time_travel.fork import Fork
from palyra.features.time_travel.rewind import Rewind
from palyra.features.time_travel.undo import Undo
from palyra.features.why.model import Cause, WhyAnswer, walk
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from tests import replaying
from tests.chatting import chat
from tests.clocks import HeldClock
from tests.crash.scenarios import call
from tests.e2e.retention.test_segments import put_away
from tests.faults import asked, ends, in_daemon, permit_all
from tests.inprocess import body, daemon, entries, finished, say, session
from tests.journals import run as run_loop
from tests.replaying import HOLDS, SCRIPTS, SETTINGS, STORIES, furnish, model_for, talk_at_random
from tests.scheduling import add, firings, moment, pass_time, timed
from tests.watching_over import JumpingClock

BEGINNINGS = {"input", "schedule", "message"}
SEEDS = tuple(range(12))
WRITE = [Turn(calls=(call("fs.write", path="a.txt", content="x"),)), Turn(text=("done",))]


async def why(d: Daemon, about: str, **more: Any) -> WhyAnswer:
    return await d.why.why(OWNER, about, **more)


async def tree_of(d: Daemon, entry: Entry) -> Cause:
    (found,) = (await why(d, f"{entry.tape}:{entry.seq}")).found
    return found


def roles(tree: Cause) -> set[str]:
    return {each.role for each in walk(tree)}


def one(tree: Cause, role: str) -> Cause:
    return next(each for each in walk(tree) if each.role == role)


async def last_of(d: Daemon, session_id: str, kind: str) -> Entry:
    return [each for each in await entries(d, session_id) if each.kind == kind][-1]


def effects_in(tape: Iterable[Entry]) -> list[tuple[Entry, list[Entry]]]:
    """Every entry that says an effect began, ended or was taken back, with all entries of its call,
    read off the tape by hand.
    """
    tape = list(tape)
    started = {body(each)["call_id"] for each in tape if each.kind == "tool.started"}
    of_call = {
        call_id: [each for each in tape if body(each).get("call_id") == call_id]
        for call_id in started
    }
    return [
        (each, of_call[body(each)["call_id"]])
        for each in tape
        if each.kind in ("tool.started", "tool.finished", "tool.undone")
        and body(each)["call_id"] in started
    ]


def check(tree: Cause, entry: Entry, of_call: list[Entry]) -> None:
    """What the answer must have, by what the tape says of the call."""
    there = roles(tree)
    where = f"{entry.tape}:{entry.seq} {entry.kind}"
    assert (tree.tape, tree.seq, tree.kind) == (entry.tape, entry.seq, entry.kind), where
    assert there & BEGINNINGS, where
    assert {"model", "prompt", "call", "decision"} <= there, where
    decided = next(each for each in of_call if each.kind == "tool.decided")
    named = next(each for each in walk(tree) if each.seq == decided.seq and each.role == "decision")
    assert named.names == tuple(body(decided).get("policies", ())), where
    if body(decided).get("by") == "grant":
        assert any(each.role == "grant" and each.by for each in walk(tree)), where
    for answered in (each for each in of_call if each.kind == "approval.resolved"):
        if answered.seq < entry.seq:
            given = [each for each in walk(tree) if each.seq == answered.seq]
            assert [each.by for each in given if each.role == "approval"] == [answered.principal]
    for undone in (each for each in of_call if each.kind == "tool.undone"):
        if entry.kind == "tool.finished" or undone.seq == entry.seq:
            assert any(each.role == "undo" and each.seq == undone.seq for each in walk(tree)), where


async def check_all(d: Daemon) -> int:
    """Check every effect on every tape; how many there were."""
    sessions = await d.db.read(lambda tx: tx.all("SELECT session_id FROM sessions"))
    count = 0
    for (session_id,) in sessions:
        for entry, of_call in effects_in(await entries(d, session_id)):
            check(await tree_of(d, entry), entry, of_call)
            count += 1
    return count


def test_every_effect_of_random_conversations_leads_back_to_its_beginning(tmp_path: Path) -> None:
    furnish(tmp_path / "work")

    async def inside() -> None:
        scripts = replaying.scripts_at_random(SEEDS)
        async with daemon(tmp_path, model_for(scripts, {}), SETTINGS) as d:
            made = [await asyncio.wait_for(talk_at_random(d, seed), 60) for seed in SEEDS]
            assert await check_all(d) > 50
            # Whatever stands on a tape has an answer, and what a run did leads to its beginning.
            for session_id in made:
                for entry in await entries(d, session_id):
                    tree = await tree_of(d, entry)
                    assert not entry.run_id or roles(tree) & {*BEGINNINGS, "run"}, entry.kind

    run_loop(inside(), 300)


def test_every_effect_of_one_conversation_of_each_kind_leads_back(tmp_path: Path) -> None:
    furnish(tmp_path / "work")

    async def inside() -> None:
        holds = {name: StreamPause() for name in HOLDS}
        async with daemon(tmp_path, model_for(SCRIPTS, holds), SETTINGS, clock=JumpingClock()) as d:
            for story in STORIES:
                if story.__name__ == "images":
                    continue  # It needs a tool of another test, and changes nothing.
                for hold in holds.values():
                    hold.reached.clear()
                    hold.released.clear()
                await asyncio.wait_for(story(d, holds), 60)
            assert await check_all(d) > 10

    run_loop(inside(), 300)


def test_an_approved_call_names_its_approver_and_an_edit_says_so(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "go")
        request = await asked(d, where.session_id)
        edited = Answer(decision="allow", arguments={"path": "b.txt", "content": "y"})
        await d.answers.answer(OWNER, request.approval_id, edited, "console")
        await finished(d, run)
        tree = await tree_of(d, await last_of(d, where.session_id, "tool.finished"))
        assert (tree.role, tree.names) == ("effect", ("b.txt",))
        approval = one(tree, "approval")
        assert (approval.by, approval.names) == (OWNER, (request.approval_id,))
        assert approval.text == "allowed once, with edited arguments, console"
        assert one(tree, "input").text == "go"
        assert one(tree, "model").names == ("scripted/one",)
        # The same by the id of the call, of the approval and by the file.
        by_call = await why(d, one(tree, "call").names[0])
        assert by_call.found == (tree,)
        answered = (await why(d, request.approval_id)).found[0]
        assert (answered.role, answered.by) == ("approval", OWNER)
        assert {"request", "call", "model", "input"} <= roles(answered)
        by_file = await why(d, str((tmp_path / "work/b.txt").resolve()))
        assert by_file.found == (tree,)

    in_daemon(tmp_path, WRITE, scenario)


def test_a_grant_leads_to_the_answer_that_gave_it(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        first = await say(d, where, "go")
        request = await asked(d, where.session_id)
        await d.answers.answer(
            OWNER, request.approval_id, Answer(decision="allow", scope="session"), "cli"
        )
        await finished(d, first)
        # A write that changes nothing needs no grant.
        (tmp_path / "work/a.txt").unlink()
        await finished(d, await say(d, where, "go"))
        tree = await tree_of(d, await last_of(d, where.session_id, "tool.finished"))
        decision, grant = one(tree, "decision"), one(tree, "grant")
        assert decision.text.startswith("allow by grant")
        assert (grant.by, grant.names) == (OWNER, (request.approval_id,))
        assert "approval" not in roles(tree)

    again = [Turn(calls=(call("fs.write", path="a.txt", content="again"),)), Turn(text=("done",))]
    in_daemon(tmp_path, {"go": [*WRITE, *again]}, scenario)


def test_what_a_subagent_did_leads_to_the_person_who_began(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "begin"))
        parent = await tree_of(d, await last_of(d, where.session_id, "tool.finished"))
        assert one(parent, "input").text == "begin"
        call_id = one(parent, "call").names[0]
        sessions = await d.db.read(
            lambda tx: tx.all("SELECT session_id FROM runs WHERE origin = 'child'")
        )
        ((child,),) = sessions
        tree = await tree_of(d, await last_of(d, child, "tool.finished"))
        assert tree.names == ("a.txt",)
        subagent = one(tree, "subagent")
        assert subagent.tape == where.session_id
        assert [each.text for each in walk(tree) if each.role == "input"] == ["write it", "begin"]
        # The run of a subagent has the id of the call that it works for.
        assert {each.role for each in (await why(d, call_id)).found} == {"effect", "cost"}

    permit_all(tmp_path)
    script = {
        "begin": [Turn(calls=(call("agent.spawn", task="write it"),)), Turn(text=("read",))],
        "write it": WRITE,
    }
    in_daemon(tmp_path, script, scenario)


def test_what_a_schedule_did_leads_to_its_firing_and_who_made_it(tmp_path: Path) -> None:
    async def inside() -> None:
        clock = HeldClock(moment("2026-11-16T08:30"))
        async with timed(
            tmp_path, clock, ScriptedModel(Script({"look around": tuple(WRITE)}))
        ) as d:
            scope = Subject("fs.write", "path_prefix", str((tmp_path / "work").resolve()))
            made = await add(d, "daily at 9", scopes=(scope,), ask="deny")
            await pass_time(d, clock, 3_600_000)
            (firing,) = await firings(d, made.schedule.schedule_id)
            tree = await tree_of(d, await last_of(d, firing.session_id, "tool.finished"))
            assert tree.names == ("a.txt",)
            schedule, grant = one(tree, "schedule"), one(tree, "grant")
            assert (schedule.names, schedule.by) == ((made.schedule.schedule_id,), OWNER)
            assert (schedule.time_ms, schedule.kind) == (firing.due_ms, "admin.changed")
            assert (grant.text, grant.by) == ("approved beforehand with the schedule", OWNER)

    run_loop(inside(), 300)


def test_a_reply_in_a_chat_leads_to_the_message_that_it_answers(tmp_path: Path) -> None:
    async def inside() -> None:
        async with chat(tmp_path, {"hello": [Turn(text=("hi there",))]}) as told:
            d = told.daemon
            await told.link("ann")
            native = told.direct("ann", "hello")
            message = await told.is_(native, "answered")
            found = (await why(d, message.message_id, everything=True)).found
            assert [each.role for each in found] == ["reply", "cost"]
            reply = found[0]
            assert (reply.kind, reply.text) == ("reply.sent", "answer to dm-ann on chat: sent")
            assert [each.text for each in walk(reply) if each.role == "answer"] == [
                "answered: hi there"
            ]
            received = one(reply, "message")
            assert (received.names, received.text) == (
                (message.message_id,),
                "ann on chat: hello",
            )
            assert {"model", "prompt", "input"} <= roles(reply)
            # The entry on the daemon's tape says the same.
            by_entry = (await why(d, f"{reply.tape}:{reply.seq}", everything=True)).found[0]
            assert roles(by_entry) >= {"answer", "model", "input", "message"}
            with pytest.raises(Forbidden):
                await why(d, f"{reply.tape}:{reply.seq}")

    run_loop(inside(), 300)


def test_a_message_that_the_agent_sent_leads_to_its_call(tmp_path: Path) -> None:
    async def inside() -> None:
        send = Turn(calls=(call("message.send", to="owner", text="tea is ready"),))
        async with chat(tmp_path, {"go": [send, Turn(text=("sent",))]}) as told:
            d = told.daemon
            await told.link("ann")
            await told.is_(told.direct("ann", "stop"), "answered")
            where = await session(d)
            run = await say(d, where, "go")
            request = await asked(d, where.session_id)
            await d.answers.answer(OWNER, request.approval_id, Answer(decision="allow"), "cli")
            await finished(d, run)
            done = await last_of(d, where.session_id, "tool.finished")
            assert body(done)["outcome"] == "ok", body(done)
            await told.until(lambda each: "tea is ready" in each.texts())
            (reply,) = (await why(d, body(done)["data"]["id"])).found
            assert (reply.role, reply.causes[0].role) == ("reply", "effect")
            assert one(reply, "approval").by == OWNER
            assert one(reply, "effect").text.startswith("message.send owner")

    run_loop(inside(), 300)


def test_an_undo_and_a_rewind_stand_under_what_they_took_back(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "go"))
        effect = await last_of(d, where.session_id, "tool.finished")
        await d.undoing.undo(OWNER, where.session_id, Undo())
        undone = one(await tree_of(d, effect), "undo")
        assert (undone.kind, undone.by, undone.names) == ("tool.undone", OWNER, ("a.txt",))
        taken_back = await tree_of(d, await last_of(d, where.session_id, "tool.undone"))
        assert (taken_back.role, taken_back.causes[0].role) == ("undo", "effect")
        assert "undo" not in roles(taken_back.causes[0])
        await finished(d, await say(d, where, "go"))
        second = await last_of(d, where.session_id, "tool.finished")
        await d.rewinding.rewind(OWNER, where.session_id, Rewind(to=1))
        assert one(await tree_of(d, second), "undo").kind == "session.restored"
        # By the file: all changes, newest first.
        path = str((tmp_path / "work/a.txt").resolve())
        newest = await why(d, path)
        assert ([each.role for each in newest.found], newest.more) == (["undo"], True)
        every = await why(d, path, limit=10)
        assert [each.kind for each in every.found] == [
            "session.restored",
            "tool.finished",
            "tool.undone",
            "tool.finished",
        ]
        assert not every.more

    permit_all(tmp_path)
    in_daemon(tmp_path, {"go": [*WRITE, *WRITE]}, scenario)


def test_a_cost_is_the_sum_of_its_model_calls_each_with_its_prompt(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "go")
        await finished(d, run)
        (cost,) = (await why(d, run.run_id)).found
        assert (cost.role, cost.text) == ("cost", "2 model calls")
        models = [each for each in cost.causes if each.role == "model"]
        assert len(models) == 2
        assert all({"prompt", "route"} <= roles(each) for each in models)
        assert cost.cost_microusd == sum(each.cost_microusd for each in models)
        assert [each.text for each in cost.causes if each.role == "input"] == ["go"]
        # A line of the usage is an entry's position.
        (model,) = (await why(d, str(models[1].position))).found
        assert (model.role, model.seq) == ("model", models[1].seq)
        # What the model had read when it answered.
        assert [each.text for each in walk(model) if each.role == "result"] == ["fs.write a.txt"]

    permit_all(tmp_path)
    in_daemon(tmp_path, WRITE, scenario)


def test_a_fork_leads_to_the_run_it_took_up(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "go")
        await finished(d, run)
        proposed = [each.seq for each in await entries(d, where.session_id)][3]
        forked = await d.forking.fork(OWNER, run.run_id, Fork(at=proposed))
        await ends(d, forked.session_id, forked.run_id)
        tree = await tree_of(d, await last_of(d, forked.session_id, "model.replied"))
        assert one(tree, "fork").names == (run.run_id,)
        assert one(tree, "input").text == "go"

    permit_all(tmp_path)
    in_daemon(tmp_path, {"go": [*WRITE, *WRITE]}, scenario)


def test_memory_in_a_prompt_is_named(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        new = NewMemory(text="The tea is always green", pinned=True)
        await d.memory.add(await d.memory.where(OWNER, where.session_id), new)
        run = await say(d, where, "what tea do I drink?")
        await finished(d, run)
        tree = await tree_of(d, await last_of(d, where.session_id, "run.completed"))
        memory = one(tree, "memory")
        assert memory.text == "The tea is always green"
        assert len(memory.names) == 1

    in_daemon(tmp_path, [Turn(text=("green",))], scenario)


def test_what_a_tool_remembered_leads_to_its_call_and_what_taught_it_is_named(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "remember my tea"))
        written = await last_of(d, where.session_id, "memory.written")
        tree = await tree_of(d, written)
        assert {"call", "decision", "model", "input"} <= roles(tree)
        assert one(tree, "call").text.startswith("memory.write")
        memory_id = body(written)["memory_id"]
        await d.db.write(
            lambda tx: tx.run(
                "UPDATE memory_items SET provenance = :positions, pinned = 1 WHERE memory_id = :id",
                positions=f"[{written.position}]",
                id=memory_id,
            )
        )
        await finished(d, await say(d, where, "which tea?"))
        later = await tree_of(d, await last_of(d, where.session_id, "run.completed"))
        memory = next(each for each in walk(later) if memory_id in each.names)
        assert [each.position for each in memory.causes] == [written.position]

    permit_all(tmp_path)
    remember = Turn(calls=(call("memory.write", text="Green tea only"),))
    script = {
        "remember my tea": [remember, Turn(text=("noted",))],
        "which tea?": [Turn(text=("green",))],
    }
    in_daemon(tmp_path, script, scenario)


def test_a_grant_whose_session_was_put_away_is_still_named(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        first = await session(d)
        run = await say(d, first, "go")
        request = await asked(d, first.session_id)
        timed_yes = Answer(decision="allow", scope="timed", for_ms=3_600_000)
        await d.answers.answer(OWNER, request.approval_id, timed_yes, "cli")
        await finished(d, run)
        second = await session(d)
        # A write that changes nothing needs no grant.
        (tmp_path / "work/a.txt").unlink()
        await finished(d, await say(d, second, "go"))
        done = await last_of(d, second.session_id, "tool.finished")
        assert one(await tree_of(d, done), "grant").by == OWNER
        assert len((await put_away(d, first)).sessions) == 1
        grant = one(await tree_of(d, done), "grant")
        assert (grant.names, grant.text) == (
            (request.approval_id,),
            "approved in a session that was sealed",
        )
        with pytest.raises(Conflict):
            await why(d, request.approval_id)

    in_daemon(tmp_path, {"go": [*WRITE, *WRITE]}, scenario)


def test_what_is_not_there_or_somebody_elses_is_refused(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "go")
        await finished(d, run)
        for about in (
            f"{where.session_id}:99999",
            "01JD0000000000000000000009:1",
            "01JD0000000000000000000009",
            "99999999",
            "/nowhere/at/all.txt",
        ):
            with pytest.raises(NotFound):
                await why(d, about)
        for about in ("", "what?", f"{where.session_id}:0", f"{where.session_id}:x", "../a.txt"):
            with pytest.raises(InvalidInput):
                await why(d, about)
        for about in (f"{where.session_id}:3", run.run_id):
            with pytest.raises(Forbidden):
                await d.why.why("user:other", about)
        rng = random.Random(3)
        for _ in range(200):
            about = "".join(
                rng.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ:/. \0é", k=rng.randrange(40))
            )
            with pytest.raises((NotFound, InvalidInput, Forbidden)):
                await d.why.why("user:other", about)

    in_daemon(tmp_path, [Turn(text=("hello",))], scenario)
