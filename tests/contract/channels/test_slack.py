"""Slack through its real library against the fake: what Socket Mode, its histories and its people
do to a connector.
"""

import asyncio
import logging
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.ids import OWNER
from palyra.features.channels.contract import (
    MOST_FILE_BYTES,
    ConnectionRefused,
    Lost,
    OutgoingMessage,
    TakenMessage,
)
from palyra.features.channels.model import Button, Inbound
from palyra.features.channels.slack import client as cursors
from palyra.features.channels.slack.client import SCOPES
from palyra.models.scripted import ScriptedCall, Turn
from tests.connectors import RecordingDoor
from tests.inprocess import daemon
from tests.slack_fake import APP_TOKEN, BOT, TEAM, TOKEN, FakeSlack, slack
from tests.slack_world import connector_to, heard, out, play, serving


def test_what_is_stored_is_confirmed_and_what_is_not_comes_again() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door) as (_, task):
            await fake.say(TEAM, "anna", "first")
            await fake.until(lambda: len(fake.confirmed) == 1)
            door.failing = 1
            await fake.say(TEAM, "anna", "the store is away")
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(task, 30)
            assert len(fake.envelopes) == 1
        async with serving(fake, door):
            assert await heard(door, 2) == ["first", "the store is away"]
            await fake.until(lambda: not fake.envelopes)

    play(scene)


def test_what_was_said_while_nobody_listened_is_read_from_all_histories() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        begin = await fake.say(TEAM, "anna", "long ago", tell=False)
        old = {"thread_ts": begin["ts"]}
        async with serving(fake, door):
            await fake.say(TEAM, "anna", "in an old thread", **old)
            await heard(door, 1)
        for number in range(120):
            await fake.say(TEAM, "bert", f"missed {number}", tell=False)
        fresh = await fake.say(TEAM, "bert", "a new thread", tell=False, reply_count=1)
        await fake.say(TEAM, "carl", "in the new thread", tell=False, thread_ts=fresh["ts"])
        await fake.say(TEAM, "anna", "again in the old thread", tell=False, **old)
        for name in ("U0ANNA", "U0BERT", "U0CARL"):
            fake.direct(name)
        await fake.say("D0U0CARL", "carl", "missed alone", tell=False)
        async with serving(fake, door):
            found = (await heard(door, 125))[1:]
            await fake.say(TEAM, "anna", "live again")
            assert (await heard(door, 126))[-1] == "live again"
        assert found[:120] == [f"missed {number}" for number in range(120)]
        assert found[120:] == [
            "a new thread",
            "in the new thread",
            "again in the old thread",
            "missed alone",
        ]
        last = {each.text: each for each in door.messages}
        assert last["again in the old thread"].thread == begin["ts"]
        assert (last["missed alone"].is_direct, last["missed 3"].is_direct) == (True, False)
        # Nothing of it is taken again.
        count = len(door.messages)
        async with serving(fake, door):
            await fake.say(TEAM, "anna", "end")
            await heard(door, 127)
        assert len(door.messages) == count + 1

    play(scene)


def test_a_crash_while_making_up_loses_nothing() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.say(TEAM, "anna", "before")
            await heard(door, 1)
        for number in range(5):
            await fake.say(TEAM, "anna", f"missed {number}", tell=False)

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
            assert await heard(door, 6) == ["before", *(f"missed {number}" for number in range(5))]

    play(scene)


def test_a_limit_on_reading_is_waited_for() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.say(TEAM, "anna", "before")
            await heard(door, 1)
        await fake.say(TEAM, "anna", "missed", tell=False)
        fake.retry_after = "0"
        fake.trouble("conversations.history", "rate_limit", "rate_limit")
        async with serving(fake, door):
            assert await heard(door, 2) == ["before", "missed"]

    play(scene)


@pytest.mark.parametrize(
    ("reason", "error"),
    [("refresh_requested", Lost), ("warning", Lost), ("link_disabled", ConnectionRefused)],
)
def test_slack_may_end_a_connection_and_the_library_makes_no_other(
    reason: str, error: type[Exception]
) -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door) as (_, task):
            await fake.ask_to_reconnect(reason)
            with pytest.raises(error):
                await asyncio.wait_for(task, 30)
        assert fake.connections == 1

    play(scene)


def test_a_limit_on_connecting_says_for_how_long() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        fake.retry_after = "7"
        fake.trouble("apps.connections.open", "rate_limit")
        with pytest.raises(Lost) as lost:
            await connector_to(fake).serve(door)
        assert lost.value.retry_after_ms == 7_000

    play(scene)


def test_what_comes_twice_late_or_as_a_mention_besides_keeps_its_id() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door):
            late = await fake.say(TEAM, "anna", "said first", tell=False)
            await fake.say(TEAM, "anna", f"<@{BOT}> said second")
            await fake.tell({**fake.messages[-1], "type": "app_mention"})
            await fake.tell(fake.event(late))
            await fake.again()
            await door.until(lambda seen: len(seen.messages) == 4)
            second, late_id = f"{TEAM}/{fake.messages[-1]['ts']}", f"{TEAM}/{late['ts']}"
            assert [each.native_id for each in door.messages] == [second, second, late_id, late_id]
            # The late one does not take the cursor back.
            assert cursors.read(door.cursor).last == fake.messages[-1]["ts"]

    play(scene)


def test_an_event_that_is_not_understood_is_left_out_and_stops_nothing() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.tell({"type": "message", "user": "U0ANNA", "text": "when and where?"})
            await fake.say(TEAM, "anna", "after it")
            assert await heard(door, 1) == ["after it"]
            await fake.until(lambda: not fake.envelopes)

    play(scene)


def test_an_edit_is_a_message_of_its_own_and_an_unfurled_link_is_none() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door):
            said = await fake.say(TEAM, "anna", "teh plan")
            await fake.changed({**said, "attachments": [{}]}, said)
            await fake.edit(said, "the plan")
            await fake.say(TEAM, "anna", "end")
            assert await heard(door, 3) == ["teh plan", "the plan", "end"]
            first, edited = door.messages[0].native_id, door.messages[1].native_id
            assert edited.startswith(f"{first}#")

    play(scene)


def test_who_is_meant_and_who_speaks_is_the_platforms_word() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door):
            await fake.say(
                TEAM, "anna", f"<@{BOT}> look at <https://x.example|this> &amp; &lt;that&gt;"
            )
            await fake.tell(
                {
                    "type": "message",
                    "subtype": "bot_message",
                    "bot_id": "B7",
                    "username": "anna",
                    "text": "trust me",
                }
                | {"ts": fake.stamp(), "channel": TEAM}
            )
            await fake.say(TEAM, "anna", "joined", subtype="channel_join")
            await fake.say(TEAM, "anna", "<!here> all")
            await heard(door, 3)
            first, bot, everybody = door.messages
            assert first.text == f"<@{BOT}> look at this (https://x.example) & <that>"
            assert (first.sender.handle, first.sender.display, first.mentions_agent) == (
                "U0ANNA",
                "Anna",
                True,
            )
            assert (bot.sender.handle, bot.sender.verified) == ("B7", False)
            assert (everybody.text, everybody.mentions_everyone) == ("@here all", True)
            assert door.me is not None
            assert f"<@{BOT}>" in door.me.names

    play(scene)


def test_a_button_is_confirmed_once_it_is_stored_and_says_where_it_was() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        direct = fake.direct("U0ANNA")
        async with serving(fake, door) as (connector, _):
            await connector.send(
                OutgoingMessage(
                    key="k",
                    conversation=direct,
                    text="?",
                    buttons=(Button("Yes", "approve X", "good"),),
                )
            )
            await fake.press(fake.posts()[-1], "approve X", "anna")
            await fake.until(lambda: not fake.envelopes)
            pressed = door.messages[-1]
            assert (pressed.text, pressed.pressed, pressed.is_direct) == ("approve X", True, True)
            assert (pressed.conversation, pressed.sender.handle) == (direct, "U0ANNA")

    play(scene)


def test_a_file_that_cannot_be_taken_is_named_and_our_token_goes_nowhere_else() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with slack() as foreign, serving(fake, door):
            shared = [
                fake.attach("big.iso", b"", size=MOST_FILE_BYTES + 1),
                {**fake.attach("gone.txt", b"x"), "url_private": f"{fake.url}/files/F0"},
                foreign.attach("elsewhere.doc", b"x"),
                {
                    **fake.attach("fake.txt", b"x"),
                    "url_private": "https://slack.com.evil.example/x",
                },
                fake.attach("a.txt", b"here"),
            ]
            await fake.say(TEAM, "anna", "see", subtype="file_share", files=shared)
            (text,) = await heard(door, 1)
            assert "big.iso was not taken: it is larger than 16 MiB" in text
            assert "gone.txt could not be fetched" in text
            assert "elsewhere.doc was not taken: it is not stored at Slack" in text
            assert "fake.txt was not taken: it is not stored at Slack" in text
            assert [(each.name, each.data) for each in door.messages[0].files] == [
                ("a.txt", b"here")
            ]

    play(scene)


def test_a_scope_that_is_missing_is_named() -> None:
    granted = ",".join(scope for scope in SCOPES if scope not in ("files:read", "im:history"))

    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        with pytest.raises(ConnectionRefused, match="im:history, files:read"):
            await connector_to(fake).test()

    play(scene, granted)
    play(lambda fake, door: _passes(fake), ",".join(SCOPES))


async def _passes(fake: FakeSlack) -> None:
    assert (await connector_to(fake).test()).place == "A Team"


def test_a_wrong_token_of_either_kind_is_refused_and_nothing_of_it_is_said_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        for other in ({"token": "xoxb-another"}, {"app_token": "xapp-another"}):
            with pytest.raises(ConnectionRefused, match="install it again") as refused:
                await connector_to(fake, **other).test()
            assert "another" not in str(refused.value)
        async with serving(fake, door) as (connector, _):
            await fake.say(TEAM, "anna", "a private word")
            await heard(door, 1)
            await connector.send(out("a private answer"))

    with caplog.at_level(logging.DEBUG):
        play(scene)
    logged = "\n".join(
        record.getMessage()
        for record in caplog.records
        if record.name.startswith(("slack", "palyra"))
    )
    assert not any(word in logged for word in (TOKEN, APP_TOKEN, "another", "private"))


@pytest.mark.parametrize(
    "wrong", [{"token": "xapp-x"}, {"app_token": "xoxb-x"}, {"api": "ftp://x"}]
)
def test_settings_that_cannot_work_are_refused_at_once(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        connector_to(FakeSlack(), **wrong)


ASKING = [
    Turn(calls=(ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": "x"}),)),
    Turn(text="It is written."),
]


def test_the_owner_is_asked_in_the_thread_with_buttons_and_their_press_lets_the_run_go_on(
    tmp_path: Path,
) -> None:
    async def scene(fake: FakeSlack, _: RecordingDoor) -> None:
        (tmp_path / "token").write_text(TOKEN)
        (tmp_path / "app").write_text(APP_TOKEN)
        table = f"""[channels.work]
kind = "slack"
settings = ["token=file:{tmp_path}/token", "app_token=file:{tmp_path}/app", "api={fake.url}/api"]
"""
        async with daemon(tmp_path, ASKING, table) as opened:
            opened.channels.intake.holding.quiet_ms = 5
            await opened.channels.connections.ready("work")
            await opened.channels.desk.link(OWNER, "work", "U0ANNA", OWNER)
            parent = await fake.say(TEAM, "bert", "a thread", tell=False)
            await fake.say(TEAM, "anna", f"<@{BOT}> write it", thread_ts=parent["ts"])
            await fake.until(lambda: any(len(post["blocks"]) == 2 for post in fake.posts()))
            asked = next(post for post in fake.posts() if len(post["blocks"]) == 2)
            yes, no = asked["blocks"][1]["elements"]
            assert (yes["text"]["text"], yes["style"], no["text"]["text"], no["style"]) == (
                "Approve",
                "primary",
                "Deny",
                "danger",
            )
            await fake.press(asked, yes["value"], "anna")
            await fake.until(lambda: any(post["text"] == "It is written." for post in fake.posts()))
            assert {post["thread_ts"] for post in fake.posts()} == {parent["ts"]}
            assert (tmp_path / "work" / "a.txt").read_text() == "x"

    play(scene)
