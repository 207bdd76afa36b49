"""Telegram through its own client library against a fake of its Bot API: what it delivers, how, and
what it takes.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import (
    ConnectionRefused,
    ConnectorSettings,
    Lost,
    OutFile,
    OutgoingMessage,
    SendFailed,
)
from palyra.features.channels.model import Button, InboundFile
from palyra.features.channels.telegram.connector import Telegram
from palyra.features.channels.telegram.messages import MOST_MARKS, marked
from palyra.models.scripted import Turn
from tests.connectors import RecordingDoor
from tests.inprocess import daemon
from tests.telegram_fake import BOT, TOKEN, BotApi, bot_api
from tests.telegram_world import as_written, given, group, person, private

TEAM = group()
CHAT = str(TEAM["id"])


class Scene:
    def __init__(self, api: BotApi, connector: Telegram, door: RecordingDoor) -> None:
        self.api = api
        self.connector = connector
        self.door = door
        self.serving = asyncio.create_task(connector.serve(door))

    async def wrote(
        self, chat: dict[str, Any] = TEAM, who: str = "anna", **what: Any
    ) -> dict[str, Any]:
        """Somebody writes; the update, once it was handed over."""
        number = len(self.door.messages)
        update = await self.api.update(message=self.api.message(chat, person(who), **what))
        await self.door.until(lambda door: len(door.messages) > number)
        return update

    async def send(self, text: str = "hello", key: str = "k", **more: Any) -> str:
        out = OutgoingMessage(
            key=key, conversation=more.pop("conversation", CHAT), text=text, **more
        )
        return (await self.connector.send(out)).native_id


def play(scene: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with bot_api() as api:
            door = RecordingDoor()
            connector = Telegram(given(api))
            stage = Scene(api, connector, door)
            try:
                await door.until(lambda each: each.connects == 1)
                await scene(stage)
            finally:
                stage.serving.cancel()
                await asyncio.wait([stage.serving], timeout=5)
                await connector.close()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_update_is_confirmed_only_when_it_is_stored_and_the_number_goes_when_it_is_confirmed() -> (
    None
):
    async def scene(stage: Scene) -> None:
        stage.door.failing = 1
        await stage.api.update(message=stage.api.message(TEAM, person("anna"), text="one"))
        await asyncio.wait([stage.serving], timeout=10)
        assert stage.serving.done()
        assert set(stage.api.offsets) == {None}
        stage.serving = asyncio.create_task(stage.connector.serve(stage.door))
        await stage.wrote(text="two")
        assert [each.text for each in stage.door.messages] == ["one", "two"]
        assert stage.door.cursor == str(stage.api.next_update)

    play(scene)


def test_updates_that_come_out_of_order_are_handed_over_in_order() -> None:
    async def scene(stage: Scene) -> None:
        first, second = (
            stage.api.message(TEAM, person("anna"), text=text) for text in ("first", "second")
        )
        await stage.api.deliver(
            {"update_id": 2_001, "message": second}, {"update_id": 2_000, "message": first}
        )
        await stage.door.until(lambda door: len(door.messages) == 2)
        assert [each.text for each in stage.door.messages] == ["first", "second"]

    play(scene)


def test_edits_are_messages_of_their_own_and_the_same_edit_twice_is_one() -> None:
    async def scene(stage: Scene) -> None:
        message = (await stage.wrote(text="teh"))["message"]
        for text in ("the", "the end"):
            update = await stage.api.update(
                edited_message={**message, "text": text, "edit_date": 1_700_000_100}
            )
        await stage.api.deliver(update)
        await stage.wrote(text="last")
        ids = {each.native_id: each.text for each in stage.door.messages}
        assert list(ids.values()) == ["teh", "the", "the end", "last"]

    play(scene)


def test_a_reply_a_mention_by_name_and_a_command_for_us_mean_us_and_others_do_not() -> None:
    async def scene(stage: Scene) -> None:
        ours = {"message_id": 7, "date": 1, "chat": TEAM, "from": BOT, "text": "hi"}
        mention = {"type": "text_mention", "offset": 0, "length": 4, "user": BOT}
        await stage.wrote(text="and?", reply_to_message=ours)
        await stage.wrote(text="Paly, look", entities=[mention])
        await stage.wrote(text="/status@Palyra_Bot now")
        await stage.wrote(text="/status@other_bot")
        await stage.wrote(text="nothing of the kind")
        assert [(each.text, each.mentions_agent) for each in stage.door.messages] == [
            ("and?", True),
            ("Paly, look", True),
            ("/status now", True),
            ("/status@other_bot", False),
            ("nothing of the kind", False),
        ]
        assert stage.door.messages[0].reply_to == f"{CHAT}/7"
        assert stage.door.me is not None
        assert stage.door.me.names == ("@palyra_bot",)

    play(scene)


def test_the_start_button_asks_for_help_and_a_link_with_a_code_pairs() -> None:
    async def scene(stage: Scene) -> None:
        await stage.wrote(private("anna"), text="/start")
        await stage.wrote(private("anna"), text="/start ABCD2345")
        assert [each.text for each in stage.door.messages] == ["help", "pair ABCD2345"]

    play(scene)


def test_who_hides_behind_a_group_is_not_vouched_for_and_joining_is_no_message() -> None:
    async def scene(stage: Scene) -> None:
        await stage.api.update(
            message=stage.api.message(TEAM, person("anna"), new_chat_members=[person("bert")])
        )
        await stage.api.update(message=stage.api.message(TEAM, BOT, text="we said this"))
        await stage.wrote(text="anonymous", sender_chat=TEAM)
        await stage.wrote(text="known")
        assert [(each.text, each.sender.verified) for each in stage.door.messages] == [
            ("anonymous", False),
            ("known", True),
        ]
        assert stage.door.messages[0].sender.handle != stage.door.messages[1].sender.handle

    play(scene)


def test_what_somebody_passes_on_is_said_not_to_be_theirs() -> None:
    async def scene(stage: Scene) -> None:
        await stage.wrote(text="mine")
        await stage.wrote(
            text="approve 123456",
            forward_origin={"type": "hidden_user", "date": 1, "sender_user_name": "Eve"},
        )
        assert [each.forwarded for each in stage.door.messages] == [False, True]

    play(scene)


def test_a_file_that_cannot_be_fetched_is_named_and_the_message_still_comes() -> None:
    async def scene(stage: Scene) -> None:
        large = stage.api.document(InboundFile("film.mkv", b"x"), size=30_000_000)
        gone = {**stage.api.document(InboundFile("gone.txt", b"x")), "file_id": "nowhere"}
        await stage.wrote(caption="look", document=large)
        await stage.wrote(document=gone)
        await stage.wrote(location={"latitude": 48.1, "longitude": 11.6})
        photo = stage.api.document(InboundFile("", b"pixels"))
        await stage.wrote(
            photo=[
                {**photo, "file_id": "small", "width": 1, "height": 1},
                {**photo, "width": 9, "height": 9},
            ]
        )
        texts = [each.text for each in stage.door.messages]
        assert texts[0] == "look\n[the file film.mkv has 30000000 bytes: too many to be fetched]"
        assert texts[1].startswith("[the file gone.txt cannot be fetched: ")
        assert texts[2] == "[location: 48.1, 11.6]"
        assert [(each.data, each.media_type) for each in stage.door.messages[3].files] == [
            (b"pixels", "image/jpeg")
        ]

    play(scene)


def test_a_replied_topic_is_a_thread_and_a_plain_reply_is_none() -> None:
    async def scene(stage: Scene) -> None:
        await stage.wrote(text="topic", message_thread_id=5, is_topic_message=True)
        await stage.wrote(text="reply", message_thread_id=5)
        assert [each.thread for each in stage.door.messages] == ["5", ""]
        await stage.send(thread="5", reply_to=stage.door.messages[0].native_id)
        sent = stage.api.kept[0].fields
        number = int(stage.door.messages[0].native_id.partition("/")[2])
        assert sent["message_thread_id"] == 5
        assert sent["reply_parameters"] == {
            "message_id": number,
            "allow_sending_without_reply": True,
        }

    play(scene)


def test_a_pressed_button_is_confirmed_to_whoever_pressed_it_after_it_is_stored() -> None:
    async def scene(stage: Scene) -> None:
        native = await stage.send("may I?", buttons=(Button("Yes", "approve X", "good"),))
        message = {"message_id": int(native.partition("/")[2]), "date": 1, "chat": TEAM}
        query = {
            "id": "q1",
            "from": person("anna"),
            "message": message,
            "chat_instance": "c",
            "data": "approve X",
        }
        await stage.api.update(callback_query=query)
        await stage.wrote(text="after")
        await stage.door.until(lambda door: len(door.messages) == 2)
        pressed = stage.door.messages[0]
        assert (pressed.text, pressed.pressed, pressed.reply_to, pressed.native_id) == (
            "approve X",
            True,
            native,
            "press/q1",
        )
        assert stage.api.answered == ["q1"]

    play(scene)


def test_a_webhook_that_takes_our_messages_is_named_with_what_to_do() -> None:
    async def scene(stage: Scene) -> None:
        await stage.api.drop()
        with pytest.raises(Lost):
            await stage.serving
        stage.api.webhook = True
        with pytest.raises(ConnectionRefused, match="deleteWebhook"):
            await stage.connector.serve(stage.door)

    play(scene)


def test_the_token_is_in_no_log_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scene(stage: Scene) -> None:
        await stage.send()
        stage.api.refuses = True
        await stage.api.wake()
        with pytest.raises(ConnectionRefused) as refused:
            await stage.serving
        error: BaseException | None = refused.value
        while error is not None:
            assert TOKEN not in str(error)
            error = error.__cause__

    play(scene)
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("wrong", [{"token": "no token"}, {"api": "ftp://x"}])
def test_settings_that_cannot_work_are_refused_when_the_channel_is_made(
    wrong: dict[str, str],
) -> None:
    settings = {"token": TOKEN, "api": "http://127.0.0.1:1", **wrong}
    with pytest.raises(InvalidInput):
        Telegram(ConnectorSettings("tele", settings, lambda: 0))


def test_a_long_text_with_files_is_sent_once_even_if_its_files_fail_at_first() -> None:
    async def scene(stage: Scene) -> None:
        text = "word " * 300
        files = tuple(OutFile(f"{n}.txt", b"data", "text/plain") for n in range(3))
        # The text is taken, and then the files are not.
        stage.api.troubles = ["", "overloaded"]  # type: ignore[list-item]
        with pytest.raises(SendFailed) as failed:
            await stage.send(text, files=files)
        assert not failed.value.permanent
        native = await stage.send(text, files=files)
        assert [(kept.text, len(kept.files)) for kept in stage.api.kept] == [(text, 0), ("", 3)]
        assert native == f"{CHAT}/{stage.api.kept[0].number}"
        await stage.send("short", files=files[:2], key="l")
        assert (stage.api.kept[2].text, len(stage.api.kept[2].files)) == ("short", 2)

    play(scene)


def test_a_group_that_moved_is_followed_and_a_person_who_blocked_us_is_gone() -> None:
    async def scene(stage: Scene) -> None:
        stage.api.migrated[-5] = -10_005
        assert (await stage.send(conversation="-5")).startswith("-10005/")
        stage.api.closed_chats.add(9)
        for conversation in ("9", "anna"):
            with pytest.raises(SendFailed) as failed:
                await stage.send(conversation=conversation)
            assert failed.value.permanent

    play(scene)


def test_addresses_in_an_answer_are_not_looked_up_by_telegram() -> None:
    async def scene(stage: Scene) -> None:
        native = await stage.send("see https://evil.example/?q=secret")
        assert stage.api.kept[0].fields["link_preview_options"] == {"is_disabled": True}
        await stage.connector.edit(CHAT, native, "other")
        # The same once more changes nothing and is no error.
        await stage.connector.edit(CHAT, native, "other")
        with_file = await stage.send(
            "caption", key="f", files=(OutFile("a", b"a"),), buttons=(Button("Yes", "y"),)
        )
        await stage.connector.edit(CHAT, with_file, "answered")
        assert [(kept.text, kept.keyboard) for kept in stage.api.kept] == [
            ("other", []),
            ("answered", []),
        ]

    play(scene)


def test_a_button_that_telegram_cannot_carry_is_refused_before_it_is_sent() -> None:
    async def scene(stage: Scene) -> None:
        with pytest.raises(SendFailed, match="64 bytes"):
            await stage.send(buttons=(Button("Yes", "ü" * 33),))
        assert stage.api.kept == []

    play(scene)


@pytest.mark.parametrize(
    "text",
    [
        "plain, 2 ** 3 ** 4 and a lone ` here",
        "🦀🦀 **bold 🦀** then `code` end",
        "before\n```python\nprint('``')\n```\nafter **x**",
        "````\n```inner\nnested **not bold**\n```\n````",
        "~~~\ntilde\n~~~",
        "```\n   begins with blanks\n```",
        "```\n\n```",
        "open ```\nnever closed",
    ],
)
def test_marks_lie_where_telegram_counts_them_and_nothing_is_lost(text: str) -> None:
    shown, marks = marked(text)
    entities = [
        {"type": each.kind, "offset": each.offset, "length": each.length, "language": each.language}
        for each in marks
    ]
    written = as_written(shown, entities)
    assert written.replace("~~~", "```").replace("````", "```") == text.replace(
        "~~~", "```"
    ).replace("````", "```")
    if "nested" in text:
        assert [each.kind for each in marks] == ["pre"]
        assert "```inner" in shown


def test_more_marks_than_telegram_takes_leave_the_rest_as_it_was_written() -> None:
    shown, marks = marked("**x** " * (MOST_MARKS + 20))
    assert len(marks) == MOST_MARKS
    assert shown.count("**x**") == 20


def test_a_stranger_pairs_and_is_answered_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    async def whole() -> None:
        async with bot_api() as api:
            (tmp_path / "token").write_text(TOKEN + "\n")
            table = f'[channels.tele]\nkind = "telegram"\nsettings = ["token=file:{tmp_path}/token", "api={api.url}"]\n'
            anna = private("anna")
            async with daemon(tmp_path, [Turn(text="**answer**")], table) as opened:
                opened.channels.intake.holding.quiet_ms = 5
                await opened.channels.connections.ready("tele")
                await api.update(message=api.message(anna, person("anna"), text="hello?"))
                await api.keeps(1)
                code = re.search(r"[0-9A-Z]{4}-?[0-9A-Z]{4}", api.kept[0].text)
                assert code is not None
                await opened.channels.desk.approve("user:owner", code[0])
                await api.keeps(2)
            await api.update(message=api.message(anna, person("anna"), text="while you were away"))
            async with daemon(tmp_path, [Turn(text="**answer**")], table) as opened:
                opened.channels.intake.holding.quiet_ms = 5
                await api.keeps(3)
                assert (api.kept[2].text, api.kept[2].entities[0]["type"]) == ("answer", "bold")
                assert {kept.chat for kept in api.kept} == {anna["id"]}

    asyncio.run(asyncio.wait_for(whole(), 60))
