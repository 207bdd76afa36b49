"""One behaviour, every door: submit, watch, steer, approve, cancel, resume and errors are the same
whatever carries them.
"""

import asyncio
from typing import Any

import pytest

from tests.doors.conftest import Served
from tests.doors.doors import ENDS, Door, Refused
from tests.doors.world import NAMES, WORDS, World

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kinds(heard: list[Any]) -> list[str]:
    return [each.kind for each in heard if each.number]


ANSWERED = [
    "run.accepted",
    "input.received",
    "run.started",
    "route.planned",
    "input.assembled",
    "model.replied",
    "run.completed",
]


def test_an_input_is_answered_and_everything_is_heard_once_and_in_order(
    served: Served, name: str
) -> None:
    async def body(world: World, door: Door) -> None:
        session_id = await door.session()
        async with door.open(session_id) as talk:
            submitted = await talk.submit("talk")
            assert (submitted.outcome, submitted.state, submitted.seq) == (
                "started",
                "in_progress",
                1,
            )
            heard = await talk.until(*ENDS)
        entries = [each for each in heard if each.number]
        assert [each.number for each in entries] == list(range(1, 9))
        assert kinds(heard) == ["session.created", *ANSWERED]
        assert {each.run_id for each in entries[1:]} == {submitted.run_id}
        assert entries[-1].event["text"] == "".join(WORDS)
        deltas = [each for each in heard if each.kind == "model.delta"]
        assert "".join(each.event.get("text", "") for each in deltas) == "".join(WORDS)
        assert "".join(each.event.get("reasoning", "") for each in deltas) == "so that"
        assert await door.state(submitted.run_id) == "done"

    served.run(body, name)


def test_the_same_submission_again_is_the_same_run(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        run_id = world.daemon.clock.new_id()
        async with door.open(await door.session()) as talk:
            first = await talk.submit("talk", run_id=run_id)
            again = await talk.submit("talk", run_id=run_id)
            assert (first.run_id, first.outcome, again.run_id, again.outcome) == (
                run_id,
                "started",
                run_id,
                "repeated",
            )
            await talk.until(*ENDS)
            with pytest.raises(Refused) as refused:
                await talk.submit("something else", run_id=run_id)
            assert (refused.value.code, refused.value.retryable) == ("conflict", False)

    served.run(body, name)


def test_steering_joins_the_run_under_way(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        hold = world.holds[f"steer {name}"]
        async with door.open(await door.session()) as talk:
            run = await talk.submit(f"steer {name}")
            await asyncio.wait_for(hold.reached.wait(), 20)
            steered = await talk.submit("also this", mode="steer")
            assert (steered.outcome, steered.run_id) == ("joined", run.run_id)
            hold.released.set()
            heard = await talk.until(*ENDS)
        seen = kinds(heard)
        assert (seen.count("input.received"), seen.count("run.accepted"), seen[-1]) == (
            2,
            1,
            "run.completed",
        )
        result = next(each for each in heard if each.kind == "tool.finished")
        assert "9007199254740993" in result.event["text"]

    served.run(body, name)


def test_an_approval_is_asked_and_answered_and_only_once(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        async with door.open(await door.session()) as talk:
            run = await talk.submit(f"write {name}")
            asked = (await talk.until("approval.requested"))[-1].event
            assert await talk.answer(asked["approval_id"], "allow") == "allow"
            heard = await talk.until(*ENDS)
            with pytest.raises(Refused) as refused:
                await talk.answer(asked["approval_id"], "deny")
            assert refused.value.code == "conflict"
        assert [each.event["decision"] for each in heard if each.kind == "approval.resolved"] == [
            "allow"
        ]
        assert heard[-1].kind == "run.completed"
        assert await door.state(run.run_id) == "done"

    served.run(body, name)


def test_a_run_is_cancelled_where_it_stands(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        async with door.open(await door.session()) as talk:
            run = await talk.submit(f"cancel {name}")
            await asyncio.wait_for(world.holds[f"cancel {name}"].reached.wait(), 20)
            assert await talk.cancel(run.run_id) == "cancelled"
            heard = await talk.until(*ENDS)
            assert heard[-1].kind == "run.cancelled"
            # What has ended stays as it is.
            assert await talk.cancel(run.run_id) == "cancelled"

    served.run(body, name)


def test_who_comes_back_hears_what_is_behind_the_cursor_and_nothing_twice(
    served: Served, name: str
) -> None:
    async def body(world: World, door: Door) -> None:
        session_id = await door.session()
        async with door.open(session_id) as talk:
            await talk.submit("talk")
            first = [each.number for each in await talk.until("run.started") if each.number]
        async with door.open(session_id, first[-1]) as talk:
            rest = [each.number for each in await talk.until(*ENDS) if each.number]
        assert first + rest == list(range(1, 9))
        async with door.open(session_id, 8) as talk:
            await talk.submit("talk")
            assert next(each.number for each in await talk.until(*ENDS) if each.number) == 9

    served.run(body, name)


@pytest.mark.parametrize(
    ("what", "code", "detail"),
    [("nobody's session", "not_found", ""), ("a cursor behind the end", "invalid_input", "head")],
)
def test_a_session_that_cannot_be_watched_says_why(
    served: Served, name: str, what: str, code: str, detail: str
) -> None:
    async def body(world: World, door: Door) -> None:
        session_id, after = (NOBODY, 0) if code == "not_found" else (await door.session(), 99)
        with pytest.raises(Refused) as refused:
            async with door.open(session_id, after) as talk:
                await talk.hear()
        assert (refused.value.code, refused.value.retryable) == (code, False)
        assert refused.value.message
        assert not detail or refused.value.details[detail] == 1

    served.run(body, name)


def test_what_cannot_be_done_is_refused_and_the_stream_goes_on(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        async with door.open(await door.session()) as talk:
            with pytest.raises(Refused) as empty:
                await talk.submit("   ")
            with pytest.raises(Refused) as unknown:
                await talk.cancel(NOBODY)
            with pytest.raises(Refused) as nothing:
                await talk.answer(NOBODY, "allow")
            assert [each.value.code for each in (empty, unknown, nothing)] == [
                "invalid_input",
                "not_found",
                "not_found",
            ]
            await talk.submit("talk")
            assert (await talk.until(*ENDS))[-1].kind == "run.completed"

    served.run(body, name)


@pytest.mark.parametrize("name", [each for each in NAMES if each != "in-process"])
def test_a_token_that_may_only_look_can_only_look(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        session_id = await door.session()
        viewer = await world.door(name, "viewer")
        async with viewer.open(session_id) as talk:
            with pytest.raises(Refused) as refused:
                await talk.submit("talk")
            assert (refused.value.code, refused.value.details) == ("forbidden", {"scope": "viewer"})
            assert (await talk.until("session.created"))[-1].number == 1

    served.run(body, name)


@pytest.mark.parametrize("name", [each for each in NAMES if each != "in-process"])
def test_a_wrong_token_gets_nowhere(served: Served, name: str) -> None:
    async def body(world: World, door: Door) -> None:
        session_id = await door.session()
        stranger = await world.door(name, secret="plr_nobody")
        for attempt in (stranger.session(), stranger.state(NOBODY)):
            with pytest.raises(Refused) as refused:
                await attempt
            assert refused.value.code == "unauthenticated"
        with pytest.raises(Refused) as closed:
            async with stranger.open(session_id) as talk:
                await talk.hear()
        assert closed.value.code == "unauthenticated"

    served.run(body, name)
