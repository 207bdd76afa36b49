"""What becomes of an editor's prompt, and what an editor is told of entries: nothing twice, and
diffs as they were shown.
"""

from typing import Any

import msgspec
import pytest
from acp import schema
from acp.helpers import (
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)

from palyra.client import Client
from palyra.client.types.sessions import Session, StoredFile
from palyra.core.errors import InvalidInput
from palyra.core.events import (
    Entry,
    Event,
    FileChange,
    InputReceived,
    ModelDelta,
    ModelReplied,
    ToolFinished,
    ToolProposed,
    encode,
)
from palyra.core.tools import Preview
from palyra.features.acp.agent import message
from palyra.features.acp.updates import Updates

SESSION = Session(
    session_id="01ARZ3NDEKTSV4RRFFQ69G5FAV",
    owner="user:owner",
    workspace="/home/me/project",
    created_ms=0,
    updated_ms=0,
)
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"


class Sent(Client):
    """A client whose daemon takes every file; remembers what was sent."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", "token")
        self.files: list[tuple[str, bytes]] = []

    def upload(
        self, method: str, path: str, given: Any, data: bytes, media: str, gives: Any
    ) -> StoredFile:
        self.files.append((given["name"], data))
        return StoredFile(
            artifact="a", name=given["name"], media_type=media, size=len(data), reads_as="text"
        )


def test_a_prompt_is_words_files_that_are_named_and_files_that_are_brought() -> None:
    sent = Sent()
    blocks = [
        text_block("compare"),
        resource_link_block("a.py", "file:///home/me/project/src/a%20b.py"),
        resource_link_block("passwd", "file:///etc/passwd"),
        resource_block(embedded_text_resource("file:///home/me/project/notes.md", "# notes")),
        image_block("aGk=", "image/png"),
    ]
    text, attached = message(sent, SESSION, blocks)
    assert text == 'compare @file:"src/a b.py" /etc/passwd notes.md'
    assert sent.files == [("notes.md", b"# notes"), ("image-5.png", b"hi")]
    assert [each.name for each in attached] == ["notes.md", "image-5.png"]
    with pytest.raises(InvalidInput):
        message(sent, SESSION, [image_block("not base64!", "image/png")])
    with pytest.raises(InvalidInput):
        message(
            sent, SESSION, [schema.AudioContentBlock(type="audio", data="", mime_type="audio/wav")]
        )


def entry(event: Event) -> Entry:
    raw = msgspec.Raw(encode(event))
    kind = str(event.__struct_config__.tag)
    return Entry(
        tape="s",
        seq=1,
        position=1,
        time_ms=0,
        run_id="r",
        principal="user:owner",
        kind=kind,
        hash="",
        event=raw,
    )


def texts(updates: Updates) -> list[tuple[str, str]]:
    return [(each.session_update, each.content.text) for each in updates.take()]


def test_words_that_were_streamed_are_not_told_again_and_those_that_were_missed_are() -> None:
    updates = Updates("/w")
    updates.reply.started("r")
    updates.live(ModelDelta(run_id="r", turn=1, text="so "))
    updates.live(ModelDelta(run_id="r", turn=1, reasoning="hm"))
    updates.live(ModelDelta(run_id="r", turn=1, text="so far", reasoning="hm, yes", whole=True))
    updates.entry(
        entry(
            ModelReplied(
                turn=1, provider="p", model="m", text="so far so good", reasoning="hm, yes"
            )
        )
    )
    assert texts(updates) == [
        ("agent_message_chunk", "so "),
        ("agent_thought_chunk", "hm"),
        ("agent_message_chunk", "far"),
        ("agent_thought_chunk", ", yes"),
        ("agent_message_chunk", " so good"),
    ]
    updates.entry(entry(InputReceived(submission_id="i", text="hi")))
    assert updates.take() == []
    updates.entry(entry(InputReceived(submission_id="i", text="hi")), replay=True)
    assert texts(updates) == [("user_message_chunk", "hi")]


def test_a_change_is_shown_as_a_diff_that_its_end_does_not_replace() -> None:
    updates = Updates("/w")
    updates.entry(entry(ToolProposed(call_id="c", tool="fs.patch", arguments={"diff": DIFF})))
    updates.entry(
        entry(
            ToolFinished(
                call_id="c",
                outcome="ok",
                text="done",
                changes=(FileChange("src/a.py", "modified"),),
            )
        )
    )
    begun, ended = updates.take()
    (diff,) = begun.content
    assert (begun.kind, diff.path, diff.old_text, diff.new_text) == (
        "edit",
        "/w/src/a.py",
        "one\ntwo\nthree",
        "one\nzwei\nthree",
    )
    assert (ended.status, ended.content) == ("completed", None)
    (told,) = updates.preview(Preview("command", "rm -r build"))
    assert told.content.text == "rm -r build"
    (kept,) = updates.preview(Preview("diff", "a change", "this is no diff"))
    assert kept.content.text == "a change\n\nthis is no diff"
