"""The contents of Matrix events that we send: text with its HTML, threads and replies, edits,
files, reactions.
"""

import json
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from palyra.features.channels.contract import Mark, OutFile, OutgoingMessage

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# An event may have 65,536 bytes with everything the server adds to it.
LARGEST_CONTENT = 60_000
MARKS: dict[Mark, str] = {"seen": "👀", "done": "✅", "refused": "🚫"}
Content = dict[str, Any]


_MARKS = ("*", "_", "[", "`", "|", "~", "<", "&", "\\", "#", "\n")
_MOST_MARKS = 2_000


def message(out: OutgoingMessage) -> Content:
    """A text. Who is pinged is said by the event, not by the text: nobody, or everybody where that
    is allowed.
    """
    content = {**_text(out.text), "m.mentions": {"room": True} if out.ping_everyone else {}}
    return _fitting({**content, **_relation(out.thread, out.reply_to)})


def replacement(native_id: str, text: str) -> Content:
    """Another text in place of one. Clients that know no edits show the one with the star."""
    new = {**_text(text), "m.mentions": {}}
    old = {"msgtype": "m.text", "body": f"* {text}", "m.mentions": {}}
    whole = {
        **old,
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": native_id},
    }
    if _size(whole) > LARGEST_CONTENT:
        del new["formatted_body"], new["format"]
    return whole


def file(each: OutFile, uri: str, out: OutgoingMessage) -> Content:
    kind = each.media_type.partition("/")[0]
    return {
        "msgtype": f"m.{kind}" if kind in ("image", "audio", "video") else "m.file",
        "body": each.name,
        "filename": each.name,
        "url": uri,
        "info": {"mimetype": each.media_type, "size": len(each.data)},
        "m.mentions": {},
        **_relation(out.thread, ""),
    }


def reaction(native_id: str, mark: Mark) -> Content:
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": native_id, "key": MARKS[mark]}}


def _text(text: str) -> Content:
    if sum(map(text.count, _MARKS)) > _MOST_MARKS:
        # Nobody writes so many marks, and to read them all would take long: they are shown as they
        # are.
        plain = escape(text).replace("\n", "<br>")
        return {
            "msgtype": "m.text",
            "body": text,
            "format": "org.matrix.custom.html",
            "formatted_body": plain,
        }
    return {
        "msgtype": "m.text",
        "body": text,
        "format": "org.matrix.custom.html",
        "formatted_body": _html(text),
    }


def _relation(thread: str, reply_to: str) -> Content:
    if thread:
        # Clients without threads show it as an answer to the message that the thread began with.
        answers = {"event_id": reply_to or thread}
        return {
            "m.relates_to": {
                "rel_type": "m.thread",
                "event_id": thread,
                "is_falling_back": not reply_to,
                "m.in_reply_to": answers,
            }
        }
    if reply_to:
        return {"m.relates_to": {"m.in_reply_to": {"event_id": reply_to}}}
    return {}


def _fitting(content: Content) -> Content:
    """The text alone, if it and its HTML are too much for one event."""
    if _size(content) <= LARGEST_CONTENT:
        return content
    return {key: value for key, value in content.items() if key not in ("format", "formatted_body")}


def _size(content: Content) -> int:
    return len(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _html(text: str) -> str:
    return str(_markdown().render(text))


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # HTML in a text is text: nothing of it reaches the reader as HTML. Pictures from elsewhere
    # would tell their server who reads.
    return (
        MarkdownIt("commonmark", {"html": False, "breaks": True})
        .enable(["table", "strikethrough"])
        .disable("image")
    )
