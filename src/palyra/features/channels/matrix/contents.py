"""The contents of Matrix events that we send: text with its HTML, threads and replies, edits,
files, reactions.

What an event of a Matrix room says, as plain values. It was written by anybody: nothing in it is
believed to have a shape.
"""

import json
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from palyra.features.channels.contract import Mark, OutFile, OutgoingMessage

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

Event = dict[str, Any]
_FILES = frozenset({"m.file", "m.image", "m.audio", "m.video"})
# What programs say to people, and what clients say to each other: nobody answers these.
_NOT_FOR_US = frozenset({"m.notice", "m.server_notice", "m.key.verification.request"})


class RoomMessage(Struct, frozen=True, kw_only=True):
    """`file` is the mxc address of the one that came with it, if one did."""

    native_id: str
    sender: str
    text: str
    thread: str = ""
    reply_to: str = ""
    mentions: tuple[str, ...] = ()
    everyone: bool = False
    file: str = ""
    file_name: str = ""
    media_type: str = ""
    sent_ms: int = 0


def told(event: Event) -> RoomMessage | None:
    """Return what somebody says with an event; None if it is no message."""
    content = _dict(event.get("content"))
    if event.get("type") != "m.room.message" or _str(content.get("msgtype")) in {"", *_NOT_FOR_US}:
        return None
    relation = _dict(content.get("m.relates_to"))
    if relation.get("rel_type") == "m.replace":
        # An edit is a message of its own, with the text that is meant now.
        content = _dict(content.get("m.new_content")) or content
    mentions = _dict(content.get("m.mentions"))
    people = mentions.get("user_ids")
    uri, name, text = _parts(content)
    reply_to = _str(_dict(relation.get("m.in_reply_to")).get("event_id"))
    if reply_to and not uri:
        text = _without_quote(text)
    threaded = relation.get("rel_type") == "m.thread"
    moment = event.get("origin_server_ts")
    return RoomMessage(
        native_id=_str(event.get("event_id")),
        sender=_str(event.get("sender")),
        text=text,
        thread=_str(relation.get("event_id")) if threaded else "",
        reply_to="" if threaded and relation.get("is_falling_back") is True else reply_to,
        mentions=(
            tuple(each for each in people if isinstance(each, str))
            if isinstance(people, list)
            else ()
        ),
        everyone=mentions.get("room") is True or (not mentions and _calls_room(text)),
        file=uri,
        file_name=name,
        media_type=_str(_dict(content.get("info")).get("mimetype")),
        sent_ms=moment if isinstance(moment, int) and moment >= 0 else 0,
    )


def since_invited(events: list[Event], me: str) -> tuple[list[Event], bool]:
    """The events from the moment on that we were asked in, if that lies among them; and whether it
    does.
    """
    start, invited, found = 0, False, False
    for number, event in enumerate(events):
        if event.get("type") != "m.room.member" or event.get("state_key") != me:
            continue
        membership = _dict(event.get("content")).get("membership")
        before = _dict(_dict(event.get("unsigned")).get("prev_content")).get("membership")
        if membership == "invite":
            start, invited, found = number + 1, True, True
        elif membership == "join" and before != "join" and not invited:
            # Let in without an invitation that we can see.
            start = number + 1
        elif membership in ("leave", "ban"):
            invited = False
    return events[start:], found


def is_encrypted(event: Event) -> bool:
    return event.get("type") == "m.room.encrypted"


def media_path(uri: str) -> str:
    """Return where the file of an mxc address is downloaded; empty if it is no such address."""
    server, _, media = uri.removeprefix("mxc://").partition("/")
    plain = all(char.isascii() and (char.isalnum() or char in ".-_:[]") for char in server + media)
    # One segment each: `..` and further slashes would lead elsewhere.
    if (
        not uri.startswith("mxc://")
        or not server
        or not media
        or not plain
        or ".." in (server, media)
    ):
        return ""
    return f"/_matrix/client/v1/media/download/{server}/{media}"


def _parts(content: Event) -> tuple[str, str, str]:
    """The address of a file, its name, and the text."""
    body = _str(content.get("body"))
    if content.get("msgtype") not in _FILES:
        return "", "", body
    name = _str(content.get("filename"))
    # With a name of its own, the body is what was written beside the file.
    caption = body if name and name != body else ""
    return _str(content.get("url")), (name or body or "file")[:255], caption


def _without_quote(text: str) -> str:
    """The answer without the lines of what it answers, which older clients put before it."""
    if not text.startswith("> "):
        return text
    lines = text.split("\n")
    while lines and lines[0].startswith(">"):
        del lines[0]
    return "\n".join(lines[1:] if lines and not lines[0].strip() else lines)


def _calls_room(text: str) -> bool:
    return "@room" in text.split()


def _dict(value: object) -> Event:
    return value if isinstance(value, dict) else {}


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


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
    """Return another text for a message. Clients that know no edits show the one with the star."""
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
