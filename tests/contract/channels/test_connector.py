"""What every connector fulfils, asked of each of them against a fake of its platform. How to add
one: tests/connectors.py.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palyra.features.channels.contract import (
    ConnectionRefused,
    Lost,
    OutFile,
    OutgoingMessage,
    SendFailed,
)
from palyra.features.channels.message_splitter import split
from palyra.features.channels.model import Button, InboundFile
from tests.connectors import WORLDS, Quirk, RecordingDoor, World, world

Scene = Callable[["Stage"], Awaitable[None]]


class Stage:
    """A world, a connector that serves, and the door it hands things to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.door = RecordingDoor()
        self.serving: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        wanted = self.door.connects + 1
        self.serving = asyncio.create_task(self.world.connector.serve(self.door))
        await self.door.until(lambda door: door.connects >= wanted)

    async def ended(self, seconds: float = 30) -> BaseException | None:
        assert self.serving is not None
        await asyncio.wait([self.serving], timeout=seconds)
        assert self.serving.done(), "the connection was lost and serve did not end"
        return None if self.serving.cancelled() else self.serving.exception()

    async def hears(self, number: int) -> None:
        await self.door.until(lambda door: len(door.messages) >= number)

    async def conversation(self, *, direct: bool = False) -> str:
        """A conversation where somebody has written, under the name that the platform gives it."""
        heard = len(self.door.messages)
        await self.world.say("hello there", direct=direct)
        await self.hears(heard + 1)
        return self.door.messages[-1].conversation

    async def close(self) -> None:
        if self.serving is not None:
            self.serving.cancel()
            await asyncio.wait([self.serving], timeout=30)


@pytest.fixture(params=sorted(WORLDS))
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scene], None]:
    @asynccontextmanager
    async def staged() -> AsyncIterator[Stage]:
        async with world(request.param, tmp_path) as found:
            stage = Stage(found)
            await stage.connect()
            try:
                yield stage
            finally:
                await stage.close()

    def run(scene: Scene) -> None:
        async def whole() -> None:
            async with staged() as stage:
                await asyncio.wait_for(scene(stage), 60)

        asyncio.run(whole())

    return run


Play = Callable[[Scene], None]


def out(conversation: str, text: str, key: str = "01-0", **more: object) -> OutgoingMessage:
    return OutgoingMessage(key=key, conversation=conversation, text=text, **more)  # type: ignore[arg-type]


def test_it_says_who_it_is_when_it_is_connected(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        assert stage.door.me is not None
        assert stage.door.me.account
        assert (await stage.world.connector.test()).account == stage.door.me.account

    play(scene)


def test_what_people_write_is_handed_over_in_order_with_who_and_where(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        await stage.world.say("first 🦀", sender="anna")
        await stage.world.say("second", sender="bert")
        await stage.world.say("for you alone", sender="anna", direct=True)
        await stage.hears(3)
        first, second, third = stage.door.messages[:3]
        assert [each.text for each in (first, second, third)] == [
            "first 🦀",
            "second",
            "for you alone",
        ]
        assert first.sender.handle != second.sender.handle
        assert first.sender.handle == third.sender.handle
        assert first.conversation == second.conversation != third.conversation
        assert [each.is_direct for each in (first, second, third)] == [False, False, True]
        assert len({each.native_id for each in stage.door.messages}) == 3

    play(scene)


def test_a_message_that_is_delivered_twice_has_the_same_id(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        await stage.world.say("once")
        await stage.hears(1)
        await stage.world.deliver_again()
        await stage.world.say("afterwards")
        await stage.door.until(
            lambda door: any(each.text == "afterwards" for each in door.messages)
        )
        ids = {each.native_id for each in stage.door.messages if each.text == "once"}
        assert len(ids) == 1

    play(scene)


def test_what_was_not_stored_comes_again(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if "no_redelivery" in stage.world.quirks:
            return
        stage.door.failing = 1
        await stage.world.say("do not lose me")
        assert stage.serving is not None
        # Some lose their connection by it, others go on.
        heard = asyncio.create_task(stage.hears(1))
        await asyncio.wait([stage.serving, heard], return_when=asyncio.FIRST_COMPLETED)
        if stage.serving.done():
            await stage.connect()
        await heard
        assert stage.door.messages[0].text == "do not lose me"

    play(scene)


def test_what_comes_while_there_is_no_connection_comes_afterwards(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if "no_drop" in stage.world.quirks:
            return
        await stage.world.drop()
        error = await stage.ended()
        assert error is None or isinstance(error, Lost)
        await stage.world.say("while you were away")
        await stage.connect()
        await stage.hears(1)
        assert stage.door.messages[-1].text == "while you were away"

    play(scene)


def test_a_platform_that_refuses_us_is_not_asked_again_and_again(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if "no_refuse" in stage.world.quirks:
            return
        await stage.world.refuse()
        await stage.ended()
        with pytest.raises(ConnectionRefused):
            await asyncio.wait_for(stage.world.connector.serve(stage.door), 30)
        with pytest.raises(ConnectionRefused):
            await stage.world.connector.test()

    play(scene)


def test_a_message_arrives_as_it_was_sent(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        where = await stage.conversation()
        text = "Grüße 🦀 **bold** & <tags>\n\n```python\nprint('a|b') # `x`\n```\n| a | b |\n|---|---|\n| 1 | 2 |"
        sent = await stage.world.connector.send(out(where, text))
        posts = await stage.world.posts()
        assert [(post.text, post.native_id) for post in posts] == [(text, sent.native_id)]

    play(scene)


def test_an_answer_of_any_length_arrives_whole_within_the_limit(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        where = await stage.conversation()
        limit = stage.world.connector.limits.text
        rows = "".join(f"| {number} | 🦀 |\n" for number in range(limit.size // 20))
        text = "\n\n".join(
            [
                "Ein Satz mit Grüßen 🦀. " * (limit.size // 40),
                "```\n" + "line of code 🦀\n" * (limit.size // 24) + "```",
                "````markdown\n```python\n" + "print('🦀')\n" * (limit.size // 20) + "```\n````",
                "| a | b |\n|---|---|\n" + rows,
            ]
        )
        pieces = split(text, limit)
        assert len(pieces) >= 3
        can = stage.world.connector.abilities
        file = OutFile("all of it 🦀.txt", text.encode()[:100_000], "text/plain")
        for number, piece in enumerate(pieces):
            last = can.files and number == len(pieces) - 1
            await stage.world.connector.send(
                out(where, piece, key=f"k-{number}", files=(file,) if last else ())
            )
        posts = await stage.world.posts()
        # Where a text with a file may not be long, the file follows by itself.
        assert [_fenced(post.text) for post in posts if post.text] == [
            _fenced(piece) for piece in pieces
        ]
        files = [(each.name, each.data) for post in posts[-2:] for each in post.files]
        assert files == ([(file.name, file.data)] if can.files else [])

    play(scene)


def _fenced(text: str) -> str:
    """However long the fences are: Telegram keeps what is between them, and not how it was
    marked.
    """
    return re.sub(r"`{3,}", "```", text)


def test_the_same_key_is_the_same_message_where_the_platform_knows_keys(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        where = await stage.conversation()
        first = await stage.world.connector.send(out(where, "once", key="same-0"))
        if not stage.world.connector.abilities.idempotent:
            return
        second = await stage.world.connector.send(out(where, "once", key="same-0"))
        assert second.native_id == first.native_id
        assert len(await stage.world.posts()) == 1

    play(scene)


@pytest.mark.parametrize("kind", ["rate_limit", "gone", "overloaded", "answer_lost"])
def test_what_goes_wrong_with_a_message_is_said_as_what_it_is(play: Play, kind: str) -> None:
    async def scene(stage: Stage) -> None:
        quirk: Quirk = f"no_{kind}"  # type: ignore[assignment]
        if quirk in stage.world.quirks:
            return
        where = await stage.conversation()
        await stage.world.trouble(kind)  # type: ignore[arg-type]
        with pytest.raises(SendFailed) as failed:
            await stage.world.connector.send(out(where, "hello", key="t-0"))
        error = failed.value
        assert (error.retry_after_ms > 0) == (kind == "rate_limit")
        assert error.permanent == (kind == "gone")
        assert error.maybe_sent == (kind == "answer_lost")
        assert str(error)
        if kind != "gone":
            await stage.world.connector.send(out(where, "hello", key="t-0"))
            posts = await stage.world.posts()
            twice = kind == "answer_lost" and not stage.world.connector.abilities.idempotent
            assert [post.text for post in posts] == ["hello"] * (2 if twice else 1)

    play(scene)


def test_sending_without_a_connection_says_so(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        where = await stage.conversation()
        if "connectionless" in stage.world.quirks:
            return
        await stage.world.drop()
        await stage.ended()
        with pytest.raises(Lost):
            await stage.world.connector.send(out(where, "hello"))
        await stage.connect()
        await stage.world.connector.send(out(where, "hello"))

    play(scene)


def test_what_we_wrote_is_not_handed_to_us(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        where = await stage.conversation()
        await stage.world.connector.send(out(where, "I said this myself"))
        await stage.world.say("and I this")
        await stage.door.until(lambda door: door.messages[-1].text == "and I this")
        assert all(each.text != "I said this myself" for each in stage.door.messages)

    play(scene)


def test_a_thread_is_answered_in_the_thread(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if not stage.world.connector.abilities.threads:
            return
        await stage.world.say("in a thread", thread="t1")
        await stage.hears(1)
        heard = stage.door.messages[0]
        assert heard.thread
        await stage.world.connector.send(out(heard.conversation, "answer", thread=heard.thread))
        assert (await stage.world.posts())[-1].thread == heard.thread

    play(scene)


def test_a_message_to_everybody_is_marked_and_an_answer_pings_nobody(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        await stage.world.say("@everyone look", everyone=True)
        await stage.hears(1)
        assert stage.door.messages[0].mentions_everyone
        await stage.world.connector.send(
            out(stage.door.messages[0].conversation, "nobody is pinged by @everyone", key="e-0")
        )
        assert not (await stage.world.posts())[-1].pings_everyone

    play(scene)


def test_a_text_can_be_replaced_and_its_buttons_go(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if not stage.world.connector.abilities.edit:
            return
        where = await stage.conversation()
        sent = await stage.world.connector.send(
            out(where, "question", buttons=(Button("Yes", "approve X"),))
        )
        await stage.world.connector.edit(where, sent.native_id, "answered")
        post = (await stage.world.posts())[-1]
        assert (post.text, post.buttons) == ("answered", ())

    play(scene)


def test_a_button_that_is_pressed_is_a_message_with_its_value(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if not stage.world.connector.abilities.buttons:
            return
        where = await stage.conversation()
        value = "approve 01ARZ3NDEKTSV4RRFFQ69G5FAV"
        buttons = (
            Button("Approve", value, "good"),
            Button("Deny", "deny 01ARZ3NDEKTSV4RRFFQ69G5FAV", "bad"),
        )
        await stage.world.connector.send(out(where, "may I?", buttons=buttons))
        post = (await stage.world.posts())[-1]
        assert [button.value for button in post.buttons] == [button.value for button in buttons]
        await stage.world.press(post, value, sender="bert")
        await stage.door.until(lambda door: door.messages[-1].pressed)
        pressed = stage.door.messages[-1]
        assert (pressed.text, pressed.conversation) == (value, where)
        assert pressed.sender.handle != stage.door.messages[0].sender.handle

    play(scene)


def test_files_go_both_ways(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        if not stage.world.connector.abilities.files:
            return
        data = bytes(range(256)) * 40
        await stage.world.say(
            "look at this", files=(InboundFile("a ü.bin", data, "application/octet-stream"),)
        )
        await stage.hears(1)
        heard = stage.door.messages[0]
        assert [(each.name, each.data) for each in heard.files] == [("a ü.bin", data)]
        file = OutFile("b ü.txt", "Grüße 🦀".encode(), "text/plain")
        await stage.world.connector.send(out(heard.conversation, "here", files=(file,)))
        assert [(each.name, each.data) for each in (await stage.world.posts())[-1].files] == [
            (file.name, file.data)
        ]

    play(scene)


def test_typing_and_marks_are_shown_where_the_platform_has_them(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        where = await stage.conversation()
        abilities = stage.world.connector.abilities
        if abilities.typing:
            await stage.world.connector.typing(where)
            assert await stage.world.typed() >= 1
        if abilities.acknowledge:
            await stage.world.connector.acknowledge(where, stage.door.messages[0].native_id, "seen")
            assert ("hello there", "seen") in await stage.world.marks()

    play(scene)


def test_conversations_do_not_wait_for_each_other(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        one, other = await stage.conversation(), await stage.conversation(direct=True)
        keyed = [
            stage.world.connector.send(out(where, f"x{n}", key=f"x{n}{where}-0"))
            for n, where in enumerate((one, other))
        ]
        await asyncio.wait_for(asyncio.gather(*keyed), 20)
        assert {post.conversation for post in await stage.world.posts()} == {one, other}

    play(scene)


def test_closing_is_safe_to_do_twice(play: Play) -> None:
    async def scene(stage: Stage) -> None:
        await stage.close()
        await stage.world.connector.close()
        await stage.world.connector.close()

    play(scene)
