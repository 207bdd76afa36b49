"""Tools that the program which asks does itself: its run waits for it, over any restart, and goes
on with what it brings.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.client_tools import LONGEST_MS
from palyra.agent.submit import InputOrigin, Submission, Submitted
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.events import ClientTool, Earlier, Given
from palyra.core.ids import OWNER
from palyra.features.openai_api import client_tools
from palyra.features.openai_api.client_tools import ToolResultsPosition
from palyra.features.openai_api.history import HistoryTurn
from palyra.features.openai_api.names import CallName
from palyra.features.openai_api.sessions import CallerRequest
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.replay import replay
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import runs
from palyra.store.sessions import Session
from tests import inprocess
from tests.faults import eventually
from tests.inprocess import body, entries, finished, kinds, session, until

WEATHER = ClientTool(
    "get_weather",
    "the weather of a city",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)
SETTINGS = "[memory]\nembeddings = false\n"


class World:
    """A daemon that several tests share, on a loop of its own."""

    def __init__(self, runner: asyncio.Runner, daemon: Daemon, said: ScriptedModel) -> None:
        self.runner, self.daemon, self.said = runner, daemon, said


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    own = ScriptedCall(name="test.pure", arguments={"text": "mine"})
    theirs = ScriptedCall(name="get_weather", arguments={"city": "Brno"})
    scripts = {
        "instead": (asking("Brno"), Turn(text="Then not.")),
        "absent": (asking("Brno"),),
        "both": (Turn(calls=(theirs, own)), Turn(text="done")),
        "first": (Turn(text="one"),),
        "second": (Turn(text="two"),),
    }
    said = ScriptedModel(Script(scripts))
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        folder = tmp_path_factory.mktemp("client-tools")
        daemon = runner.run(stack.enter_async_context(inprocess.daemon(folder, said, SETTINGS)))
        yield World(runner, daemon, said)
        runner.run(stack.aclose())


def model(*turns: Turn) -> ScriptedModel:
    return ScriptedModel(Script.of(turns))


def asking(*cities: str) -> Turn:
    return Turn(
        text="I look.",
        calls=tuple(ScriptedCall(name="get_weather", arguments={"city": each}) for each in cities),
    )


async def ask(daemon: Daemon, where: Session, text: str = "how is it?", **more: Any) -> Submitted:
    said = InputOrigin(offered=(WEATHER,), **more)
    return await daemon.gateway.submit(
        OWNER, where.session_id, Submission(text=text), origin="api", said=said
    )


async def handed_over(daemon: Daemon, run: Submitted, after: int = 0) -> list[str]:
    return list(
        body(
            await until(daemon, run.session_id, "tool.handed_over", run_id=run.run_id, after=after)
        )["calls"]
    )


async def bring(daemon: Daemon, run: Submitted, results: dict[str, str]) -> ToolResultsPosition:
    return await daemon.db.write(
        partial(client_tools.bring, principal=OWNER, run_id=run.run_id, results=results)
    )


def test_a_run_waits_for_its_caller_over_a_restart_and_can_be_replayed(tmp_path: Path) -> None:
    async def scene() -> None:
        said = model(asking("Brno", "Wien"), Turn(text="Sunny in both."))
        async with inprocess.daemon(tmp_path, said, SETTINGS) as daemon:
            where = await session(daemon)
            run = await ask(daemon, where)
            calls = await handed_over(daemon, run)
            row = await daemon.gateway.run(OWNER, run.run_id)
            assert (row.state, row.reason) == ("waiting", "client")
            await eventually(lambda: daemon.runs.working == 0, "nobody works on it while it waits")
        async with inprocess.daemon(tmp_path, said, SETTINGS) as daemon:
            results = dict(zip(calls, ("sun", "also sun"), strict=True))
            with pytest.raises(InvalidInput):
                await bring(daemon, run, {calls[0]: "sun"})
            taken = await bring(daemon, run, results)
            assert body(await finished(daemon, run))["text"] == "Sunny in both."
            assert (await bring(daemon, run, results)).seq == taken.seq
            with pytest.raises(Conflict):
                await bring(daemon, run, {**results, calls[0]: "rain"})
            with pytest.raises(NotFound):
                await bring(daemon, run, {run.run_id: "never asked for"})
            assert (await kinds(daemon, where.session_id))[-7:] == [
                "tool.handed_over", "tool.finished", "tool.finished",
                "run.resumed", "input.assembled", "model.replied", "run.completed",
            ]  # fmt: skip
            recorded = await daemon.db.read(lambda tx: recordings.read(tx, run.run_id, OWNER))
            catalogue = daemon.catalogue
        outcome = await asyncio.to_thread(replay, recorded, catalogue)
        assert outcome.difference is None

    asyncio.run(scene())


def test_what_the_program_says_instead_of_results_joins_the_run(world: World) -> None:
    async def scene(daemon: Daemon) -> None:
        where = await session(daemon)
        run = await ask(daemon, where, "instead")
        await handed_over(daemon, run)
        row = await daemon.db.read(lambda tx: client_tools.waiting(tx, where.session_id))
        assert row is not None
        said = InputOrigin(also=lambda tx, submitted: client_tools.leave(tx, row))
        joined = await daemon.gateway.submit(
            OWNER, where.session_id, Submission(text="never mind", mode="steer"), said=said
        )
        assert (joined.outcome, joined.run_id) == ("joined", run.run_id)
        assert body(await finished(daemon, run))["text"] == "Then not."
        results = [
            body(each)
            for each in await entries(daemon, where.session_id)
            if each.kind == "tool.finished"
        ]
        assert [each["outcome"] for each in results] == ["skipped"]

    world.runner.run(scene(world.daemon))


def test_nobody_is_waited_for_for_ever(world: World) -> None:
    async def scene(daemon: Daemon) -> None:
        run = await ask(daemon, await session(daemon), "absent")
        await handed_over(daemon, run)
        await daemon.db.write(
            lambda tx: tx.run(
                "UPDATE tasks SET ready_ms = ready_ms - :ms WHERE kind = 'client.absent'",
                ms=LONGEST_MS,
            )
        )
        daemon.tasks.look(["client.absent"])
        assert body(await finished(daemon, run))["reason"] == "client_absent"

    world.runner.run(scene(world.daemon))


def test_own_tools_come_first_and_a_cancelled_run_takes_no_results(world: World) -> None:
    async def scene(daemon: Daemon) -> None:
        where = await session(daemon)
        run = await ask(daemon, where, "both")
        (call,) = await handed_over(daemon, run)
        seen = await kinds(daemon, where.session_id)
        assert seen.index("tool.finished") < seen.index("tool.handed_over")
        await daemon.gateway.cancel(OWNER, run.run_id)
        with pytest.raises(Conflict):
            await bring(daemon, run, {call: "late"})
        assert (
            await daemon.db.read(lambda tx: runs.get(tx, run.run_id, OWNER))
        ).state == "cancelled"

    world.runner.run(scene(world.daemon))


def test_what_a_program_gives_is_shown_once_as_what_it_is(world: World) -> None:
    async def scene(daemon: Daemon) -> None:
        earlier = (Earlier("user", "my name is Jo"), Earlier("assistant", "hello Jo"))
        where = await session(daemon)
        await finished(
            daemon,
            await ask(
                daemon,
                where,
                "first",
                given=Given(instructions="Speak like a pirate.", earlier=earlier),
            ),
        )
        await finished(
            daemon,
            await ask(daemon, where, "second", given=Given(instructions="Speak like a pirate.")),
        )
        label = await daemon.gateway.label(where.session_id)
        assert (label.integrity, label.sources) == ("untrusted", ("client",))

    world.runner.run(scene(world.daemon))
    last = world.said.requests[-1]
    text = str(last.messages)
    assert text.count("Speak like a pirate.") == 1
    assert "assistant: hello Jo" in text
    assert "get_weather" in {tool.name for tool in last.tools}


def test_no_secret_of_a_program_reaches_the_model_or_the_tape(world: World) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    async def scene(daemon: Daemon) -> None:
        asked = CallerRequest(
            text="instead",
            instructions=f"use {secret}",
            earlier=(HistoryTurn("user", f"it is {secret}"),),
            offered=(ClientTool("get_weather", f"with {secret}", {"description": secret}),),
        )
        begun = await daemon.callers.begin(OWNER, asked)
        handed = await until(daemon, begun.session_id, "tool.handed_over")
        results = {
            CallName(begun.run_id, call_id): f"found {secret}" for call_id in body(handed)["calls"]
        }
        await daemon.callers.begin(OWNER, CallerRequest(results=results))
        await until(daemon, begun.session_id, *inprocess.TERMINAL)
        tape = await entries(daemon, begun.session_id)
        assert not any(secret.encode() in bytes(each.event) for each in tape)
        assert sum(b"[redacted:" in bytes(each.event) for each in tape) >= 3

    world.runner.run(scene(world.daemon))
    assert secret not in str(world.said.requests[-1])
