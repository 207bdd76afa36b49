"""Matrix events as values: whatever somebody writes into one is read without harm, and what we
write fits and is safe.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.features.channels.contract import OutFile, OutgoingMessage
from palyra.features.channels.matrix import contents
from palyra.features.channels.matrix.connector import Matrix

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_FIELDS = (
    "msgtype",
    "body",
    "filename",
    "url",
    "info",
    "m.mentions",
    "m.relates_to",
    "m.new_content",
)
_CONTENT = st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=8)


@given(content=_CONTENT | _JSON, moment=_JSON, sender=_JSON)
def test_an_event_of_any_shape_is_read_or_is_no_message(
    content: Any, moment: Any, sender: Any
) -> None:
    event = {
        "type": "m.room.message",
        "event_id": "$1",
        "content": content,
        "origin_server_ts": moment,
        "sender": sender,
    }
    found = contents.told(event)
    assert found is None or (
        isinstance(found.text, str) and isinstance(found.sender, str) and found.sent_ms >= 0
    )
    contents.since_invited(
        [
            event,
            {"type": "m.room.member", "state_key": "@me:x", "content": content, "unsigned": moment},
        ],
        "@me:x",
    )


@settings(deadline=None, max_examples=12)
@given(
    text=st.text(
        alphabet=st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\n"\\&<>|`*_# '),
        max_size=3_000,
    )
)
def test_a_text_within_the_limit_makes_an_event_that_servers_take(text: str) -> None:
    whole = text * (Matrix.limits.text.size // max(1, Matrix.limits.text.of(text)))
    for content in (
        contents.message(
            OutgoingMessage(key="k", conversation="!r", text=whole, thread="$t", reply_to="$m")
        ),
        contents.replacement("$1", whole),
    ):
        assert len(json.dumps(content, ensure_ascii=False).encode()) < 65_000


def test_nothing_in_a_text_becomes_html_that_a_client_would_run() -> None:
    text = "<script>x</script> [a](javascript:alert(1)) ![i](https://track.example/p.png) `<b>` & **bold**"
    shown = contents.message(OutgoingMessage(key="k", conversation="!r", text=text))
    html = shown["formatted_body"]
    assert "<script" not in html
    assert 'javascript:alert(1)"' not in html
    assert "<strong>bold</strong>" in html
    assert "<img" not in html, "a picture from elsewhere tells its server who reads"
    assert shown["body"] == text


def test_a_file_and_a_thread_are_said_as_clients_expect_them() -> None:
    out = OutgoingMessage(key="k", conversation="!r", text="", thread="$root")
    content = contents.file(OutFile("a.png", b"1234", "image/png"), "mxc://x/y", out)
    assert (content["msgtype"], content["info"]) == (
        "m.image",
        {"mimetype": "image/png", "size": 4},
    )
    assert content["m.relates_to"]["event_id"] == "$root"


def test_only_addresses_of_files_are_downloaded() -> None:
    assert (
        contents.media_path("mxc://matrix.example:8448/AbC-1_2")
        == "/_matrix/client/v1/media/download/matrix.example:8448/AbC-1_2"
    )
    for wrong in (
        "",
        "mxc://",
        "mxc://a",
        "mxc://a/",
        "mxc:///b",
        "https://a/b",
        "mxc://a/../../x",
        "mxc://a/b?c",
        "mxc://a/b/c",
        "mxc://../b",
    ):
        assert contents.media_path(wrong) == "", wrong
