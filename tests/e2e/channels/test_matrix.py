"""Matrix against a real Synapse: a whole daemon in its rooms, while the server is killed, slows us
down and loses answers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from palyra.core.errors import NotFound
from palyra.features.channels.contract import Lost, OutgoingMessage, SendFailed
from palyra.features.channels.matrix.connector import CANNOT_READ, Matrix
from palyra.features.channels.views import ChatPlace, Trace
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from tests.connectors import RecordingDoor
from tests.inprocess import daemon
from tests.matrix_world import MatrixWorld, matrix_world
from tests.synapse import Account, Event, follow, register, until


def play(scene: Callable[[MatrixWorld], Awaitable[None]], **settings: str) -> None:
    async def whole() -> None:
        async with matrix_world(**settings) as world:
            await asyncio.wait_for(scene(world), 90)

    asyncio.run(whole())


def play_whole(
    folder: Path, scene: Callable[[Daemon, MatrixWorld], Awaitable[None]], **settings: str
) -> None:
    """The same with a daemon that answers whatever anybody says."""

    async def act(world: MatrixWorld) -> None:
        (folder / "token").write_text(world.bot.token)
        table = f"""[channels.rooms]
kind = "matrix"
direct = "allow"
groups = "allow"
mention = false
settings = ["homeserver={world.proxy.url}", "token=file:{folder}/token"]
"""
        async with daemon(folder, [Turn(text="the answer")] * 100, table) as opened:
            opened.channels.intake.holding.quiet_ms = 5
            await opened.channels.connections.ready("rooms")
            await scene(opened, world)

    play(act, **settings)


def answers(events: list[Event], bot: Account) -> list[Event]:
    mine = [
        each
        for each in events
        if each["sender"] == bot.user_id and each["type"] == "m.room.message"
    ]
    return [
        each
        for each in mine
        if each["content"].get("msgtype") == "m.text" and "m.new_content" not in each["content"]
    ]


async def answered(opened: Daemon, who: Account, sent: list[str]) -> list[Trace]:
    """What became of messages, once the daemon knows that they were answered: that is after whoever
    asked can see it.
    """

    async def look() -> list[Trace] | None:
        try:
            traces = [await opened.channels.trace(f"rooms:{each}") for each in sent]
        except NotFound:
            return None  # Not all of them have come in.
        return traces if all(each.message.state == "answered" for each in traces) else None

    return await follow(who, look)


async def serving(connector: Matrix, door: RecordingDoor) -> "asyncio.Task[None]":
    wanted = door.connects + 1
    task = asyncio.create_task(connector.serve(door))
    await door.until(lambda each: each.connects >= wanted, 20)
    return task


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task], timeout=10)


def test_whoever_invites_the_agent_and_writes_at_once_is_answered(tmp_path: Path) -> None:
    async def scene(opened: Daemon, world: MatrixWorld) -> None:
        anna = world.people["anna"]
        room = await anna.room(world.bot.user_id, direct=True)
        asked = await anna.send(room, {"msgtype": "m.text", "body": "are you there?"})
        events = await until(anna, room, lambda found: bool(answers(found, world.bot)))
        assert [each["content"]["body"] for each in answers(events, world.bot)] == ["the answer"]
        assert "<p>the answer</p>" in answers(events, world.bot)[0]["content"]["formatted_body"]
        (trace,) = await answered(opened, anna, [asked])
        assert trace.message.inbound.is_direct

    play_whole(tmp_path, scene)


def test_a_thread_is_a_conversation_of_its_own_and_is_answered_there(tmp_path: Path) -> None:
    async def scene(opened: Daemon, world: MatrixWorld) -> None:
        anna, team = world.people["anna"], world.rooms["team"]
        root = await anna.send(team, {"msgtype": "m.notice", "body": "a subject"})
        relation = {
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": root},
        }
        asked = await anna.send(
            team, {"msgtype": "m.text", "body": "in here?", "m.relates_to": relation}
        )
        events = await until(anna, team, lambda found: bool(answers(found, world.bot)))
        given = answers(events, world.bot)[0]["content"]["m.relates_to"]
        assert (given["rel_type"], given["event_id"]) == ("m.thread", root)
        assert (await opened.channels.trace(f"rooms:{asked}")).message.inbound.thread == root

    play_whole(tmp_path, scene)


def test_every_message_is_answered_once_though_the_server_is_killed_and_loses_answers(
    tmp_path: Path,
) -> None:
    async def scene(opened: Daemon, world: MatrixWorld) -> None:
        anna, home = world.people["anna"], world.proxy.home
        room = await world.alone_with("anna")
        # Two lost answers for each of the first three sends: the library asks once more by itself.
        world.proxy.troubles += ["answer_lost"] * 6
        sent = [
            await anna.send(room, {"msgtype": "m.text", "body": f"!{number}"})
            for number in range(3)
        ]
        await until(anna, room, lambda found: bool(answers(found, world.bot)))
        home.kill()
        await asyncio.to_thread(home.start)
        sent += [
            await anna.send(room, {"msgtype": "m.text", "body": f"!{number}"})
            for number in range(3, 6)
        ]
        await answered(opened, anna, sent)
        await asyncio.wait_for(opened.channels.outbox.idle.wait(), 30)
        traces = [await opened.channels.trace(f"rooms:{each}") for each in sent]
        replies = {reply.reply_id: reply for trace in traces for reply in trace.replies}
        assert {reply.state for reply in replies.values()} == {"sent"}
        assert not any(reply.doubtful for reply in replies.values())
        events = await anna.events(room)
        written = sorted(each["event_id"] for each in answers(events, world.bot))
        assert written == sorted(each.native_id for each in replies.values())

    play_whole(tmp_path, scene)


def test_a_server_that_says_wait_is_waited_for_and_nothing_is_dropped(tmp_path: Path) -> None:
    async def scene(opened: Daemon, world: MatrixWorld) -> None:
        anna = world.people["anna"]
        admin = await register(world.proxy.home, world.proxy.client, "admin", admin=True)
        room = await world.alone_with("anna")
        path = f"/_synapse/admin/v1/users/{quote(world.bot.user_id)}/override_ratelimit"
        await admin.ask("POST", path, {"messages_per_second": 3, "burst_count": 2})
        for number in range(4):
            await opened.channels.say("user:owner", ChatPlace("rooms", room), f"notice {number}")
        events = await until(anna, room, lambda found: len(answers(found, world.bot)) >= 4)
        assert [each["content"]["body"] for each in answers(events, world.bot)] == [
            f"notice {number}" for number in range(4)
        ]
        await asyncio.wait_for(opened.channels.outbox.idle.wait(), 20)
        assert await opened.channels.dead() == []

    play_whole(tmp_path, scene)


def test_synapse_itself_says_how_long_to_wait() -> None:
    async def scene(world: MatrixWorld) -> None:
        admin = await register(world.proxy.home, world.proxy.client, "admin", admin=True)
        path = f"/_synapse/admin/v1/users/{quote(world.bot.user_id)}/override_ratelimit"
        await admin.ask("POST", path, {"messages_per_second": 1, "burst_count": 1})
        task = await serving(world.connector, RecordingDoor())
        outs = [
            OutgoingMessage(key=f"k{number}", conversation=world.rooms["team"], text="x")
            for number in range(9)
        ]
        with pytest.raises(SendFailed) as failed:
            await asyncio.gather(*map(world.connector.send, outs))
        assert 0 < failed.value.retry_after_ms <= 60_000
        assert not failed.value.permanent
        await ended(task)

    play(scene)


def test_more_than_one_answer_holds_is_fetched_in_order_after_we_were_away() -> None:
    async def scene(world: MatrixWorld) -> None:
        bert, team = world.people["bert"], world.rooms["team"]
        door = RecordingDoor()
        task = await serving(world.connector, door)
        await world.say("before")
        await door.until(lambda each: len(each.messages) == 1)
        await ended(task)
        for number in range(105):
            await bert.send(team, {"msgtype": "m.text", "body": str(number)})
        task = await serving(world.connector, door)
        await door.until(lambda each: each.messages[-1].text == "104", 30)
        assert [each.text for each in door.messages] == ["before", *map(str, range(105))]
        await ended(task)

    play(scene)


def test_what_was_said_before_the_channel_was_there_is_not_answered() -> None:
    async def scene(world: MatrixWorld) -> None:
        await world.say("long ago")
        door = RecordingDoor()
        task = await serving(world.connector, door)
        anna = world.people["anna"]
        room = await anna.room()
        await anna.send(room, {"msgtype": "m.text", "body": "we speak of the agent"})
        await anna.invite(room, world.bot)
        await anna.send(room, {"msgtype": "m.text", "body": "hello agent"})
        await door.until(lambda each: bool(each.messages))
        await world.say("now")
        await door.until(lambda each: each.messages[-1].text == "now")
        assert [each.text for each in door.messages] == ["hello agent", "now"]
        await ended(task)

    play(scene)


def test_a_server_that_was_set_up_anew_does_not_stop_us() -> None:
    async def scene(world: MatrixWorld) -> None:
        door = RecordingDoor()
        door.cursor = "nonsense"
        task = await serving(world.connector, door)
        await world.say("hello")
        await door.until(lambda each: each.messages[-1:] != [])
        assert door.messages[-1].text == "hello"
        await ended(task)

    play(scene)


def test_an_edit_is_a_message_with_the_new_text_and_programs_are_not_answered() -> None:
    async def scene(world: MatrixWorld) -> None:
        anna, team = world.people["anna"], world.rooms["team"]
        door = RecordingDoor()
        task = await serving(world.connector, door)
        first = await anna.send(team, {"msgtype": "m.text", "body": "helo"})
        new = {"msgtype": "m.text", "body": "hello"}
        relation = {"rel_type": "m.replace", "event_id": first}
        await anna.send(
            team,
            {
                "msgtype": "m.text",
                "body": "* hello",
                "m.new_content": new,
                "m.relates_to": relation,
            },
        )
        await anna.send(team, {"msgtype": "m.notice", "body": "I am a program"})
        mention = {"user_ids": [world.bot.user_id]}
        answer = {"m.in_reply_to": {"event_id": first}}
        body = "> <@anna> helo\n\nPalyra: what of it?"
        await anna.send(
            team, {"msgtype": "m.text", "body": body, "m.mentions": mention, "m.relates_to": answer}
        )
        await door.until(lambda each: len(each.messages) >= 3)
        assert [each.text for each in door.messages] == ["helo", "hello", "Palyra: what of it?"]
        assert len({each.native_id for each in door.messages}) == 3
        assert (door.messages[2].mentions_agent, door.messages[2].reply_to) == (True, first)
        assert not door.messages[0].is_direct
        await ended(task)

    play(scene)


def test_who_invites_us_into_an_encrypted_room_is_told_so_and_we_leave() -> None:
    async def scene(world: MatrixWorld) -> None:
        anna = world.people["anna"]
        task = await serving(world.connector, RecordingDoor())
        room = await anna.room(world.bot.user_id, direct=True, encrypted=True)

        def left(events: list[Event]) -> bool:
            return any(
                each.get("state_key") == world.bot.user_id
                and each["content"]["membership"] == "leave"
                for each in events
            )

        events = await until(anna, room, left)
        said = [
            each["content"]["body"]
            for each in events
            if each["sender"] == world.bot.user_id and "body" in each["content"]
        ]
        assert said == [CANNOT_READ]
        await ended(task)

    play(scene)


def test_in_a_room_that_becomes_encrypted_nothing_is_written_in_the_open() -> None:
    async def scene(world: MatrixWorld) -> None:
        anna = world.people["anna"]
        room = await world.alone_with("anna")
        door = RecordingDoor()
        task = await serving(world.connector, door)
        algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
        await anna.ask(
            "PUT", f"/_matrix/client/v3/rooms/{quote(room)}/state/m.room.encryption", algorithm
        )
        for _ in range(2):
            await anna.send(
                room, {**algorithm, "ciphertext": "AAAA", "session_id": "x"}, "m.room.encrypted"
            )
        await world.say("elsewhere")
        await door.until(lambda each: bool(each.messages))
        with pytest.raises(SendFailed) as failed:
            await world.connector.send(OutgoingMessage(key="k", conversation=room, text="a secret"))
        assert failed.value.permanent
        bodies = [
            each["content"].get("body")
            for each in await anna.events(room)
            if each["sender"] == world.bot.user_id
        ]
        assert [each for each in bodies if each] == [CANNOT_READ]
        await ended(task)

    play(scene)


def test_what_a_server_never_gives_does_not_hold_up_what_comes_after_it() -> None:
    async def scene(world: MatrixWorld) -> None:
        anna, team = world.people["anna"], world.rooms["team"]
        quiet = await anna.room(world.bot.user_id, encrypted=True)
        await world.bot.join(quiet)
        levels = {"events_default": 50}
        await anna.ask(
            "PUT", f"/_matrix/client/v3/rooms/{quote(quiet)}/state/m.room.power_levels", levels
        )
        door = RecordingDoor()
        task = await serving(world.connector, door)
        cipher = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AAAA", "session_id": "x"}
        await anna.send(quiet, cipher, "m.room.encrypted")
        world.proxy.broken_files = 9
        uri = await anna.upload("a.txt", b"text", "text/plain")
        await anna.send(team, {"msgtype": "m.file", "body": "a.txt", "url": uri})
        await world.say("afterwards")
        for _ in range(2):
            await asyncio.wait([task], timeout=20)
            with pytest.raises(Lost):
                await task
            assert door.messages == [], "it is tried again before it is given up"
            task = await serving(world.connector, door)
        await door.until(lambda each: len(each.messages) >= 2)
        assert [each.text for each in door.messages[:2]] == [
            "(The file a.txt could not be read, or is larger than 16 MiB.)",
            "afterwards",
        ]
        await ended(task)

    play(scene)


def test_invitations_are_left_alone_where_nobody_may_invite() -> None:
    async def scene(world: MatrixWorld) -> None:
        anna = world.people["anna"]
        door = RecordingDoor()
        task = await serving(world.connector, door)
        room = await anna.room(world.bot.user_id, direct=True)
        await anna.send(room, {"msgtype": "m.text", "body": "come"})
        await world.say("here")
        await door.until(lambda each: bool(each.messages))
        assert [each.text for each in door.messages] == ["here"]
        assert world.bot.user_id not in await anna.members(room)
        await ended(task)

    play(scene, invites="nobody")
