"""Telegram's updates as messages: who wrote where, to whom, and with which files.

Ids count per chat there, so a message's name has its chat in it. An edited message is a message of
its own.

Markdown as Telegram shows it: a text without the signs, and marks that say which stretch of it
is code or bold.

The text is sent with the marks beside it, never as markup: nothing in an answer can break out of
its place, and what is not understood stays as it was written.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from msgspec import Struct
from telegram import CallbackQuery, Message, MessageEntity, Update, User

from palyra.features.channels.contract import MOST_FILE_BYTES
from palyra.features.channels.model import Inbound, Sender, calls_everyone

# Telegram ignores marks beyond this many; what they would stand for keeps its signs then.
MOST_MARKS = 100
_FENCED = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^`\s]*)[^`\n]*\n(?P<code>.*?)\n(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_INLINE = re.compile(
    r"(?<!`)`(?P<code>[^`\n]+)`(?!`)|(?<!\*)\*\*(?P<bold>[^\s*](?:[^*\n]*[^\s*])?)\*\*(?!\*)"
)


class TextMark(Struct, frozen=True):
    """Position of the mark in UTF-16 units, as Telegram counts."""

    kind: Literal["pre", "code", "bold"]
    offset: int
    length: int
    language: str = ""


def units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def marked(text: str) -> tuple[str, list[TextMark]]:
    """The text as it is shown, and its marks in order."""
    writer = _Writer()
    at = 0
    for found in _FENCED.finditer(text):
        writer.prose(text[at : found.start()])
        # Telegram cuts blanks off both ends of a message, also those of code.
        edge = (not writer.size and found["code"][:1].isspace()) or (
            found.end() == len(text) and found["code"][-1:].isspace()
        )
        if (
            not found["code"].strip()
            or edge
            or not writer.put("pre", found["code"], found["language"])
        ):
            writer.write(found[0])
        at = found.end()
    writer.prose(text[at:])
    return "".join(writer.parts), writer.marks


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.marks: list[TextMark] = []
        self.size = 0

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.size += units(text)

    def put(self, kind: Literal["pre", "code", "bold"], text: str, language: str = "") -> bool:
        if len(self.marks) >= MOST_MARKS or not text.strip():
            return False
        self.marks.append(TextMark(kind, self.size, units(text), language))
        self.write(text)
        return True

    def prose(self, text: str) -> None:
        at = 0
        for found in _INLINE.finditer(text):
            self.write(text[at : found.start()])
            kind: Literal["code", "bold"] = "code" if found["code"] is not None else "bold"
            if not self.put(kind, found[kind]):
                self.write(found[0])
            at = found.end()
        self.write(text[at:])


# What we ask to be told of.
WANTED = ("message", "edited_message", "callback_query")
# Bots can fetch no larger files from Telegram's own server.
MOST_FETCHED = min(MOST_FILE_BYTES, 20_000_000)
_COMMAND = re.compile(r"/(\w+)@(\w+)\b[ \t]*")
_START = re.compile(r"/start(?:\s+(\S+))?\s*")


@dataclass(frozen=True)
class TelegramFile:
    """A file of a message that is still at Telegram."""

    file_id: str
    name: str
    media_type: str
    size: int


def native_id(chat_id: int, message_id: int) -> str:
    return f"{chat_id}/{message_id}"


def message_number(native: str) -> int:
    """The message within its chat that a name stands for, also the name of an edit."""
    return int(native.partition("/")[2].partition("#")[0])


def of(update: Update, me: User) -> tuple[Inbound, tuple[TelegramFile, ...]] | None:
    """The message in an update; nothing if it is none, as when somebody joins a group."""
    if update.callback_query is not None:
        pressed = _pressed(update.callback_query)
        return (pressed, ()) if pressed is not None else None
    message = update.message or update.edited_message
    if message is None:
        return None
    sender = _sender(message)
    if sender is None or (message.from_user is not None and message.from_user.id == me.id):
        return None
    attachments = _attachments(message)
    text, addressed = _text(message, me)
    if not text and not attachments:
        return None
    native = native_id(message.chat.id, message.message_id)
    edited = message.edit_date
    return (
        Inbound(
            # Two edits can be of the same second; the update's number is the same whenever it is
            # delivered.
            native_id=f"{native}#edit{update.update_id}" if edited is not None else native,
            conversation=str(message.chat.id),
            sender=sender,
            text=text,
            thread=_thread(message),
            is_direct=message.chat.type == "private",
            mentions_agent=addressed or _means_us(message, me),
            mentions_everyone=calls_everyone(text),
            reply_to=(
                native_id(message.chat.id, message.reply_to_message.message_id)
                if message.reply_to_message
                else ""
            ),
            sent_ms=_ms(edited or message.date),
            forwarded=message.forward_origin is not None,
        ),
        attachments,
    )


def _pressed(query: CallbackQuery) -> Inbound | None:
    if query.message is None or not query.data:
        return None
    message = query.message if isinstance(query.message, Message) else None
    return Inbound(
        native_id=f"press/{query.id}",
        conversation=str(query.message.chat.id),
        sender=Sender(str(query.from_user.id), query.from_user.full_name),
        text=query.data,
        thread=_thread(message) if message is not None else "",
        is_direct=query.message.chat.type == "private",
        reply_to=native_id(query.message.chat.id, query.message.message_id),
        pressed=True,
    )


def _sender(message: Message) -> Sender | None:
    # An admin who stays anonymous, or a linked channel: Telegram does not say which person it is.
    if message.sender_chat is not None:
        return Sender(
            f"chat{message.sender_chat.id}",
            message.sender_chat.effective_name or "",
            verified=False,
        )
    if message.from_user is None:
        return None
    return Sender(str(message.from_user.id), message.from_user.full_name)


def _thread(message: Message) -> str:
    # Replies have such a number too; only a topic of a forum is a conversation of its own.
    return (
        str(message.message_thread_id)
        if message.is_topic_message and message.message_thread_id
        else ""
    )


def _means_us(message: Message, me: User) -> bool:
    replied = message.reply_to_message
    if replied is not None and replied.from_user is not None and replied.from_user.id == me.id:
        return True
    entities = (*message.entities, *message.caption_entities)
    return any(
        each.type == MessageEntity.TEXT_MENTION and each.user is not None and each.user.id == me.id
        for each in entities
    )


def _text(message: Message, me: User) -> tuple[str, bool]:
    """Return what was written, in our words, and whether it is a command that names us."""
    text = message.text or message.caption or _described(message)
    command = _COMMAND.match(text)
    addressed = (
        command is not None
        and me.username is not None
        and command[2].casefold() == me.username.casefold()
    )
    if command is not None and addressed:
        text = f"/{command[1]} {text[command.end() :]}".rstrip()
    start = _START.fullmatch(text)
    if start is not None:
        # What the button below a new chat sends; with a word if one came by a link
        # (t.me/BOT?start=CODE).
        text = f"pair {start[1]}" if start[1] else "help"
    return text, addressed


def _described(message: Message) -> str:
    """Describe in words what is neither text nor a file."""
    if message.location is not None:
        return f"[location: {message.location.latitude}, {message.location.longitude}]"
    if message.contact is not None:
        name = " ".join(filter(None, (message.contact.first_name, message.contact.last_name)))
        return f"[contact: {name}, {message.contact.phone_number}]"
    if message.poll is not None:
        options = "; ".join(option.text for option in message.poll.options)
        return f"[poll: {message.poll.question} ({options})]"
    return ""


def _attachments(message: Message) -> tuple[TelegramFile, ...]:
    number = message.message_id
    if message.photo:
        best = message.photo[-1]
        return (
            TelegramFile(best.file_id, f"photo-{number}.jpg", "image/jpeg", best.file_size or 0),
        )
    named = message.document or message.audio or message.video or message.animation
    if named is not None:
        kind = named.mime_type or "application/octet-stream"
        return (
            TelegramFile(
                named.file_id, named.file_name or f"file-{number}", kind, named.file_size or 0
            ),
        )
    if message.voice is not None:
        return (
            TelegramFile(
                message.voice.file_id,
                f"voice-{number}.ogg",
                "audio/ogg",
                message.voice.file_size or 0,
            ),
        )
    if message.video_note is not None:
        return (
            TelegramFile(
                message.video_note.file_id,
                f"video-{number}.mp4",
                "video/mp4",
                message.video_note.file_size or 0,
            ),
        )
    if message.sticker is not None:
        ending = (
            "webm" if message.sticker.is_video else "tgs" if message.sticker.is_animated else "webp"
        )
        return (
            TelegramFile(
                message.sticker.file_id,
                f"sticker-{number}.{ending}",
                f"image/{ending}",
                message.sticker.file_size or 0,
            ),
        )
    return ()


def _ms(when: datetime) -> int:
    return int(when.timestamp() * 1_000)
