"""Discord through its real library against the fake: what the gateway, its limits and its threads
do to a connector.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.ids import OWNER
from palyra.features.channels.contract import (
    MOST_FILE_BYTES,
    ConnectionRefused,
    Connector,
    ConnectorSettings,
    Lost,
    OutgoingMessage,
    SendFailed,
    TakenMessage,
)
from palyra.features.channels.discord import client as cursors
from palyra.features.channels.discord.client import DiscordCursor
from palyra.features.channels.discord.settings import KIND
from palyra.features.channels.model import Button, Inbound
from palyra.models.scripted import ScriptedCall, Turn
from tests.connectors import RecordingDoor
from tests.discord_fake import TOKEN, FakeDiscord, discord
from tests.discord_world import GENERAL, connector_to
from tests.inprocess import daemon

Scene = Callable[[FakeDiscord, RecordingDoor], Awaitable[None]]


def play(scene: Scene) -> None:
    async def whole() -> None:
        async with discord() as fake:
            await scene(fake, RecordingDoor())

    asyncio.run(asyncio.wait_for(whole(), 60))


@asynccontextmanager
async def serving(
    fake: FakeDiscord, door: RecordingDoor
) -> AsyncIterator[tuple[Connector, "asyncio.Task[None]"]]:
    """A connector of its own, as a daemon that has just started has one; what it knows is what the
    door remembers.
    """
    connector = connector_to(fake)
    wanted = door.connects + 1
    task = asyncio.create_task(connector.serve(door))
    try:
        await door.until(lambda seen: seen.connects >= wanted)
        yield connector, task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=30)


async def resumable(door: RecordingDoor) -> None:
    """Until the session is stored: that is a little after the connection stands, when all servers
    were heard of.
    """
    await door.until(lambda seen: bool(cursors.read(seen.cursor).session))


def texts(door: RecordingDoor) -> list[str]:
    return [each.text for each in door.messages]


async def heard(door: RecordingDoor, number: int) -> list[str]:
    await door.until(lambda seen: len(seen.messages) >= number)
    return texts(door)


def test_after_a_restart_the_session_is_resumed_where_the_store_stands() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.say(GENERAL, "anna", "one")
            await heard(door, 1)
        for text in ("two", "three"):
            await fake.say(GENERAL, "bert", text)
        async with serving(fake, door):
            await fake.say(GENERAL, "anna", "four")
            assert await heard(door, 4) == ["one", "two", "three", "four"]
        assert (fake.identified, fake.resumed) == (1, 1)

    play(scene)


def test_a_session_that_is_gone_is_made_up_for_from_the_histories_of_all_conversations() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        direct, thread = fake.direct(1_002), 700_200
        fake.channel(thread, "a thread", kind=11, parent=GENERAL)
        async with serving(fake, door):
            await resumable(door)
            await fake.say(direct, "bert", "we have spoken before")
            await heard(door, 1)
        fake.forget_sessions()
        for number in range(120):
            await fake.say(GENERAL, "anna", f"missed {number}")
        await fake.say(direct, "bert", "missed alone")
        await fake.say(thread, "carl", "missed in the thread")
        # The session that there was is refused; the supervisor comes back after its pause.
        with pytest.raises(Lost):
            await asyncio.wait_for(connector_to(fake).serve(door), 30)
        async with serving(fake, door):
            await heard(door, 123)
            await fake.say(GENERAL, "anna", "live again")
            await heard(door, 124)
        found = texts(door)[1:]
        assert [text for text in found if text.startswith("missed ") and text[7:].isdecimal()] == [
            f"missed {number}" for number in range(120)
        ]
        assert found[0] == "missed alone"
        assert found[-1] == "live again"
        lost = next(each for each in door.messages if each.text == "missed in the thread")
        assert (lost.conversation, lost.thread) == (str(GENERAL), str(thread))
        # Nobody makes up for the same again: the next time the new session goes on.
        async with serving(fake, door):
            assert fake.resumed == 1
        assert len(door.messages) == 124

    play(scene)


def test_a_crash_while_making_up_loses_nothing() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.say(GENERAL, "anna", "before")
            await heard(door, 1)
        fake.forget_sessions()
        door.cursor = cursors.written(cursors.read(door.cursor).without_session())
        for number in range(5):
            await fake.say(GENERAL, "anna", f"missed {number}")

        class Dying(RecordingDoor):
            async def take(self, message: Inbound, *, cursor: str | None = None) -> TakenMessage:
                if len(self.messages) == 2:
                    raise ConnectionError("killed")
                return await super().take(message, cursor=cursor)

        dying = Dying()
        dying.cursor = door.cursor
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(connector_to(fake).serve(dying), 30)
        door.cursor = dying.cursor
        async with serving(fake, door):
            await heard(door, 6)
        assert texts(door) == ["before", *(f"missed {number}" for number in range(5))]

    play(scene)


def test_before_the_first_connection_nothing_was_missed() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        await fake.say(GENERAL, "anna", "said to others, long ago")
        async with serving(fake, door):
            await fake.say(GENERAL, "anna", "now")
            assert await heard(door, 1) == ["now"]

    play(scene)


def test_the_gateway_may_ask_to_come_back_and_the_session_goes_on() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door) as (_, task):
            await resumable(door)
            await fake.ask_to_reconnect()
            with pytest.raises(Lost):
                await asyncio.wait_for(task, 30)
        async with serving(fake, door):
            assert (fake.identified, fake.resumed) == (1, 1)

    play(scene)


def test_what_comes_twice_or_late_keeps_its_id() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            late = await fake.say(GENERAL, "anna", "said first", tell=False)
            await fake.say(GENERAL, "anna", "said second")
            await fake.tell("MESSAGE_CREATE", {**late, "guild_id": "800000"})
            await fake.again()
            await heard(door, 3)
            ids = [each.native_id for each in door.messages]
            assert ids[1] == ids[2] == f"{GENERAL}/{late['id']}"
            assert door.messages[1].sent_ms <= door.messages[0].sent_ms

    play(scene)


def test_what_was_missed_comes_before_what_is_said_at_the_moment_of_connecting() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.say(GENERAL, "anna", "before")
            await heard(door, 1)
        fake.forget_sessions()
        door.cursor = cursors.written(cursors.read(door.cursor).without_session())
        await fake.say(GENERAL, "anna", "missed")
        # It comes in the same breath as the list of channels.
        fake.greeting = lambda: fake.say(GENERAL, "anna", "live")
        async with serving(fake, door):
            await heard(door, 3)
        assert list(dict.fromkeys(texts(door))) == ["before", "missed", "live"]

    play(scene)


def test_an_event_that_the_library_does_not_understand_is_left_out_and_stops_nothing() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.tell("MESSAGE_CREATE", {"id": "1", "channel_id": str(GENERAL)})
            await fake.say(GENERAL, "anna", "after it")
            assert await heard(door, 1) == ["after it"]

    play(scene)


def test_an_edit_is_a_message_of_its_own_and_an_embed_is_none() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            said = await fake.say(GENERAL, "anna", "teh plan")
            await fake.tell(
                "MESSAGE_UPDATE", {**said, "guild_id": "800000", "embeds": [{"type": "link"}]}
            )
            await fake.edit(said, "the plan")
            await fake.say(GENERAL, "anna", "end")
            assert await heard(door, 3) == ["teh plan", "the plan", "end"]
            first, edited = door.messages[0].native_id, door.messages[1].native_id
            assert edited.startswith(f"{first}#")

    play(scene)


def test_a_thread_is_recognised_also_by_a_connection_that_never_saw_it() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        fake.channel(700_300, "old thread", kind=11, parent=GENERAL)
        async with serving(fake, door):
            await fake.say(GENERAL, "anna", "begin")
            await heard(door, 1)
        # Resumed, nobody tells it again what channels there are.
        async with serving(fake, door) as (connector, _):
            await fake.say(700_300, "anna", "in the thread")
            await heard(door, 2)
            found = door.messages[1]
            assert (found.conversation, found.thread, found.is_direct) == (
                str(GENERAL),
                "700300",
                False,
            )
            await connector.send(
                OutgoingMessage(
                    key="k", conversation=found.conversation, thread=found.thread, text="there"
                )
            )
            assert fake.posts()[-1]["channel_id"] == "700300"

    play(scene)


def test_who_is_meant_and_who_speaks_is_the_platforms_word() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            bot = {"id": "900000", "username": "palyra", "discriminator": "0", "avatar": None}
            await fake.say(GENERAL, "anna", "<@900000> look", mentions=[bot])
            await fake.say(GENERAL, "anna", "as a webhook", webhook_id="55")
            await fake.say(GENERAL, "anna", "joined", type=7)
            await fake.say(GENERAL, "anna", "end")
            assert await heard(door, 3) == ["<@900000> look", "as a webhook", "end"]
            assert [each.mentions_agent for each in door.messages] == [True, False, False]
            assert [each.sender.verified for each in door.messages] == [True, False, True]
            assert door.me is not None
            assert "<@900000>" in door.me.names

    play(scene)


def test_an_answer_pings_nobody_fetches_nothing_and_replies_to_its_question() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            said = await fake.say(GENERAL, "anna", "question")
            await heard(door, 1)
            key, question = "01ARZ3NDEKTSV4RRFFQ69G5FAV-0", door.messages[0].native_id
            text = "<@1001> <@&5> @everyone https://x.example"
            await connector.send(
                OutgoingMessage(key=key, text=text, conversation=str(GENERAL), reply_to=question)
            )
            await connector.send(
                OutgoingMessage(
                    key="2", text="@everyone", conversation=str(GENERAL), ping_everyone=True
                )
            )
            quiet, loud = (post["asked"] for post in fake.posts())
            assert (quiet["allowed_mentions"]["parse"], loud["allowed_mentions"]["parse"]) == (
                [],
                ["everyone"],
            )
            assert not quiet["allowed_mentions"].get("replied_user")
            assert quiet["flags"] == 4
            assert quiet["message_reference"]["message_id"] == int(said["id"])
            assert len(quiet["nonce"]) <= 25
            assert quiet["enforce_nonce"] is True

    play(scene)


def test_a_short_rate_limit_is_waited_for_and_the_message_is_sent_once() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            fake.troubles += ["short_limit", "short_limit"]
            await connector.send(
                OutgoingMessage(key="k", conversation=str(GENERAL), text="patience")
            )
            assert [post["content"] for post in fake.posts()] == ["patience"]
            assert fake.troubles == []

    play(scene)


def test_a_long_rate_limit_says_for_how_long() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            fake.troubles.append("rate_limit")
            with pytest.raises(SendFailed) as failed:
                await connector.send(
                    OutgoingMessage(key="k", conversation=str(GENERAL), text="patience")
                )
            assert failed.value.retry_after_ms == 45_000

    play(scene)


def test_a_button_is_confirmed_once_it_is_stored() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        direct = fake.direct(1_001)
        async with serving(fake, door) as (connector, _):
            await connector.send(
                OutgoingMessage(
                    key="k",
                    conversation=str(direct),
                    text="?",
                    buttons=(Button("Yes", "approve X"),),
                )
            )
            await fake.press(fake.posts()[-1], "approve X", "anna")
            await fake.until(lambda: fake.confirmed == [6])
            pressed = door.messages[-1]
            assert (pressed.text, pressed.pressed, pressed.is_direct, pressed.conversation) == (
                "approve X",
                True,
                True,
                str(direct),
            )
            assert pressed.sender.handle == "1001"

    play(scene)


def test_a_file_that_cannot_be_taken_is_named_and_its_message_is_not_lost() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door):
            big = fake.attach("big.iso", b"", size=MOST_FILE_BYTES + 1)
            gone = {**fake.attach("gone.txt", b"x"), "url": f"{fake.url}/files/1"}
            await fake.say(
                GENERAL, "anna", "see", attachments=[big, gone, fake.attach("a.txt", b"here")]
            )
            (text,) = await heard(door, 1)
            assert "big.iso was not taken: it is larger than 16 MiB" in text
            assert "gone.txt could not be fetched" in text
            assert [(each.name, each.data) for each in door.messages[0].files] == [
                ("a.txt", b"here")
            ]

    play(scene)


def test_a_message_that_is_done_is_no_longer_marked_as_seen() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            said = await fake.say(GENERAL, "anna", "please")
            await heard(door, 1)
            await connector.acknowledge(str(GENERAL), door.messages[0].native_id, "seen")
            await connector.acknowledge(str(GENERAL), door.messages[0].native_id, "done")
            assert fake.reactions == [(int(said["id"]), "✅")]

    play(scene)


def test_a_bot_that_may_not_read_messages_is_told_which_switch_to_turn() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        fake.content_allowed = False
        with pytest.raises(ConnectionRefused, match="Message Content Intent"):
            await connector_to(fake).test()
        with pytest.raises(ConnectionRefused, match="Message Content Intent"):
            await asyncio.wait_for(connector_to(fake).serve(door), 30)

    play(scene)


def test_the_switch_may_also_be_turned_off_while_connected() -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        async with serving(fake, door) as (_, task):
            await fake.drop(4014)
            with pytest.raises(ConnectionRefused, match="Message Content Intent"):
                await asyncio.wait_for(task, 30)

    play(scene)


def test_a_wrong_token_is_refused_with_what_to_do_and_nothing_of_it_is_said_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(fake: FakeDiscord, door: RecordingDoor) -> None:
        with pytest.raises(ConnectionRefused, match="Reset Token") as refused:
            await connector_to(fake, "another-token").test()
        assert "another-token" not in str(refused.value)
        async with serving(fake, door) as (connector, _):
            await fake.say(GENERAL, "anna", "a private word")
            await heard(door, 1)
            await connector.send(
                OutgoingMessage(key="k", conversation=str(GENERAL), text="a private answer")
            )

    with caplog.at_level(logging.DEBUG):
        play(scene)
    logged = "\n".join(
        record.getMessage()
        for record in caplog.records
        if record.name.startswith(("discord", "palyra"))
    )
    assert not any(word in logged for word in (TOKEN, "another-token", "private"))


def test_settings_that_cannot_work_are_refused_at_once() -> None:
    for settings in ({"token": " "}, {"token": "x", "api": "ftp://x"}):
        with pytest.raises(InvalidInput):
            KIND.make(ConnectorSettings("disc", settings, lambda: 0))


def test_a_cursor_survives_being_written_and_a_broken_one_is_a_beginning() -> None:
    cursor = DiscordCursor("s", 5, "ws://x", 99, (1, 2)).with_direct(1)
    assert cursors.read(cursors.written(cursor)) == cursor
    assert cursor.direct == (2, 1)
    assert cursors.read("{broken") == cursors.read(json.dumps({"last": "x"})) == DiscordCursor()
    many = cursor
    for number in range(500):
        many = many.with_direct(number)
    assert len(many.direct) == 200
    assert many.direct[-1] == 499


ASKING = [
    Turn(calls=(ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": "x"}),)),
    Turn(text="It is written."),
]


def test_the_owner_is_asked_with_buttons_and_their_press_lets_the_run_go_on(tmp_path: Path) -> None:
    async def scene(fake: FakeDiscord, _: RecordingDoor) -> None:
        (tmp_path / "token").write_text(TOKEN)
        table = f"""[channels.disc]
kind = "discord"
settings = ["token=file:{tmp_path}/token", "api={fake.url}/api/v10"]
"""
        async with daemon(tmp_path, ASKING, table) as opened:
            opened.channels.intake.holding.quiet_ms = 5
            await opened.channels.connections.ready("disc")
            await opened.channels.desk.link(OWNER, "disc", "1001", OWNER)
            direct = fake.direct(1_001)
            await fake.say(direct, "anna", "write it")
            await fake.until(lambda: any(post["components"] for post in fake.posts()))
            asked = next(post for post in fake.posts() if post["components"])
            labels = [
                button["label"] for row in asked["components"] for button in row["components"]
            ]
            assert labels == ["Approve", "For this session", "For 1 hour", "Deny"]
            value = asked["components"][0]["components"][0]["custom_id"]
            await fake.press(asked, value, "anna")
            await fake.until(
                lambda: any(post["content"] == "It is written." for post in fake.posts())
            )
            assert (tmp_path / "work" / "a.txt").read_text() == "x"

    play(scene)
