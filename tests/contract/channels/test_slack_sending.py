"""What we say in Slack arrives once, whole, in its marks and within its limits, whatever happens on
the way.
"""

import pytest

from palyra.features.channels.contract import OutFile, SendFailed
from palyra.features.channels.model import Button
from tests.connectors import RecordingDoor
from tests.slack_fake import TEAM, FakeSlack
from tests.slack_world import heard, out, play, serving


def test_a_killed_daemon_does_not_say_the_same_again() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        parent = await fake.say(TEAM, "anna", "a thread")
        for thread in ("", parent["ts"]):
            async with serving(fake, door) as (connector, _):
                fake.trouble("chat.postMessage", "answer_lost")
                with pytest.raises(SendFailed) as failed:
                    await connector.send(out("once", key=f"key-{thread}", thread=thread))
                assert failed.value.maybe_sent
            # Another process: nothing is known but what Slack knows.
            async with serving(fake, door) as (connector, _):
                again = await connector.send(out("once", key=f"key-{thread}", thread=thread))
                assert again.duplicate
                await connector.send(out("next", key=f"next-{thread}", thread=thread))
        assert [post["text"] for post in fake.posts()] == ["once", "next", "once", "next"]

    play(scene)


@pytest.mark.parametrize("trouble", ["files.getUploadURLExternal", "files.completeUploadExternal"])
def test_files_follow_their_text_once_also_after_a_crash_between_them(trouble: str) -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        file = OutFile("b ü.txt", "Grüße".encode(), "text/plain")
        async with serving(fake, door) as (connector, _):
            fake.trouble(trouble, "answer_lost")
            with pytest.raises(SendFailed):
                await connector.send(out("here", files=(file,)))
        async with serving(fake, door) as (connector, _):
            await connector.send(out("here", files=(file,)))
        shown = [
            (post["text"], [each["name"] for each in post.get("files") or []])
            for post in fake.posts()
        ]
        assert shown == [("here", []), ("", ["b ü.txt"])]

    play(scene)


def test_an_answer_carries_its_key_pings_nobody_and_fetches_nothing() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            await connector.send(out("**Hi** <!channel> @here & [x](https://x.example)"))
            await connector.send(out("@channel look", key="k-1", ping_everyone=True))
            quiet, loud = (post["asked"] for post in fake.posts())
            assert quiet["metadata"]["event_payload"] == {"key": "k-0"}
            assert (quiet["unfurl_links"], quiet["unfurl_media"]) == (False, False)
            assert quiet["text"] == "*Hi* &lt;!channel&gt; @here &amp; <https://x.example|x>"
            assert "<!channel>" not in quiet["blocks"][0]["text"]
            assert loud["text"] == loud["blocks"][0]["text"] == "<!channel> look"

    play(scene)


def test_where_slack_does_not_read_markdown_it_gets_its_own_marks_in_sections() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        fake.reads_markdown = False
        async with serving(fake, door) as (connector, _):
            text = "**Bold** & more\n\n```python\n" + "x = 1 < 2\n" * 400 + "```"
            sent = await connector.send(out(text, buttons=(Button("Yes", "approve X"),)))
            blocks = fake.posts()[-1]["blocks"]
            pieces = [block["text"]["text"] for block in blocks if block["type"] == "section"]
            assert len(pieces) >= 2
            assert all(len(piece) <= 3_000 and piece.count("```") % 2 == 0 for piece in pieces)
            assert sum(piece.count("x = 1 &lt; 2") for piece in pieces) == 400
            assert blocks[-1]["type"] == "actions"
            await connector.edit(TEAM, sent.native_id, "**done**")
            assert fake.posts()[-1]["blocks"] == [
                {"type": "section", "text": {"type": "mrkdwn", "text": "*done*"}}
            ]

    play(scene)


def test_blocks_that_are_too_long_together_become_plain_text() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            fake.trouble("chat.postMessage", "msg_blocks_too_long")
            await connector.send(out("| a |\n|---|\n| b |"))
            assert [(post["text"], post.get("blocks")) for post in fake.posts()] == [
                ("| a |\n|---|\n| b |", None)
            ]

    play(scene)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("not_in_channel", "/invite it"),
        ("missing_scope", "lacks the scope"),
        ("is_archived", "is_archived"),
    ],
)
def test_what_no_attempt_will_change_is_said_at_once(code: str, words: str) -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            fake.trouble("chat.postMessage", code)
            with pytest.raises(SendFailed, match=words) as failed:
                await connector.send(out("hello"))
            assert failed.value.permanent

    play(scene)


def test_a_message_that_is_done_is_no_longer_marked_as_seen() -> None:
    async def scene(fake: FakeSlack, door: RecordingDoor) -> None:
        async with serving(fake, door) as (connector, _):
            await fake.say(TEAM, "anna", "please")
            await heard(door, 1)
            native = door.messages[0].native_id
            for mark in ("seen", "seen", "done", "done"):
                await connector.acknowledge(TEAM, native, mark)
            assert fake.reactions == [("please", "white_check_mark")]

    play(scene)
