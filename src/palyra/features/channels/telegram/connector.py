"""Telegram through its Bot API: news by long polling, answers with buttons, files, reactions and
forum topics.

An update is confirmed to Telegram only when it is on disk: the number that confirms it is stored in
the same step. Telegram takes no keys for messages, so one whose answer was lost may arrive twice,
and is said to.

Errors of Telegram and of its library, as what they mean to us. None of their texts is passed on
that could hold the token.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec
from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaDocument,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
    Update,
    User,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import (
    Abilities,
    ConnectionRefused,
    ConnectorLimits,
    ConnectorSettings,
    Inbox,
    Lost,
    Mark,
    Me,
    OutFile,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
)
from palyra.features.channels.message_splitter import LengthLimit
from palyra.features.channels.model import Button, InboundFile
from palyra.features.channels.telegram import messages as telegram_messages
from palyra.features.channels.telegram.messages import (
    TelegramFile,
    marked,
    message_number,
    native_id,
    units,
)

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_OTHER_READER_MS = 30_000


def pause_ms(error: RetryAfter) -> int:
    seconds = error.retry_after
    return max(1, int(1_000 * (seconds if isinstance(seconds, int) else seconds.total_seconds())))


def connecting(error: TelegramError) -> Lost | ConnectionRefused:
    """Return the error for what went wrong while we ask who we are, or for news."""
    if isinstance(error, InvalidToken):
        return ConnectionRefused(
            "Telegram does not know this token: get one from @BotFather (/token) and store it in"
            " the vault"
        )
    if isinstance(error, Forbidden):
        return ConnectionRefused(
            "Telegram refuses this bot: look at @BotFather whether it still exists"
        )
    if isinstance(error, Conflict):
        if "webhook" in error.message.casefold():
            return ConnectionRefused(
                "another program gets this bot's messages by a webhook: use a bot of its own for"
                " Palyra, or call deleteWebhook"
            )
        return Lost(
            "another program asks for this bot's messages: stop it, or use a bot of its own",
            retry_after_ms=_OTHER_READER_MS,
        )
    if isinstance(error, RetryAfter):
        return Lost("Telegram asks to wait", retry_after_ms=pause_ms(error))
    return Lost(f"Telegram cannot be reached: {reason(error)}")


def sending(error: TelegramError) -> SendFailed | Lost:
    if isinstance(error, RetryAfter):
        return SendFailed("Telegram asks to wait", retry_after_ms=pause_ms(error))
    if isinstance(error, InvalidToken):
        return Lost("Telegram does not know this token any more")
    if isinstance(error, BadRequest | Forbidden):
        return SendFailed(f"Telegram refuses the message: {error.message}", permanent=True)
    cause = error.__cause__
    unknown = (
        isinstance(error, NetworkError)
        and isinstance(cause, httpx.HTTPError)
        and not isinstance(cause, _NOT_SENT)
    )
    return SendFailed(f"Telegram did not take the message: {reason(error)}", maybe_sent=unknown)


def reason(error: TelegramError) -> str:
    return (
        type(error.__cause__).__name__
        if isinstance(error.__cause__, httpx.HTTPError)
        else error.message[:200]
    )


T = TypeVar("T")

POLL_S = 50
_REACTIONS: dict[Mark, str] = {"seen": "👀", "done": "👌", "refused": "🤷"}
_MOST_CAPTION = 1_024
_MOST_BUTTON_BYTES = 64
# Messages whose text was sent and whose files were not yet.
_MOST_HALVES = 256
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class Telegram:
    abilities = Abilities(
        threads=True, edit=True, typing=True, acknowledge=True, buttons=True, files=True
    )
    # A message a second in one chat, 30 a second in all; beyond that Telegram tells us to wait, and
    # we do.
    limits = ConnectorLimits(
        text=LengthLimit(4_096, "utf16"),
        files=10,
        file_bytes=20 << 20,
        per_second=25.0,
        apart_ms=1_000,
    )

    def __init__(self, given: ConnectorSettings) -> None:
        self.name = given.name
        self._token = given.settings["token"].strip()
        self._api = given.settings["api"].rstrip("/")
        self._bot: Bot | None = None
        self._requests: tuple[HTTPXRequest, ...] = ()
        self._up = False
        self._halves: OrderedDict[str, int] = OrderedDict()
        where = urlsplit(self._api)
        if where.scheme not in ("http", "https") or not where.hostname:
            raise InvalidInput(f"channel {given.name}: api must be an http or https address")
        if ":" not in self._token:
            raise InvalidInput(
                f"channel {given.name}: the token must look like 123456:letters; get it from"
                " @BotFather"
            )
        # Its lines at level INFO hold the address of each request, and that holds the token.
        for logger in ("httpx", "httpcore", "telegram"):
            logging.getLogger(logger).setLevel(logging.WARNING)

    def _client(self) -> Bot:
        if self._bot is None:
            calls, polls = self._requests = tuple(
                HTTPXRequest(
                    connection_pool_size=size,
                    read_timeout=20,
                    write_timeout=20,
                    httpx_kwargs={"trust_env": False},
                )
                for size in (16, 1)
            )
            self._bot = Bot(
                self._token,
                base_url=f"{self._api}/bot",
                base_file_url=f"{self._api}/file/bot",
                request=calls,
                get_updates_request=polls,
            )
        return self._bot

    async def serve(self, door: Inbox) -> None:
        user = await self._asked(self._client().get_me())
        try:
            # Telegram keeps what was not confirmed; the number only confirms what came before it.
            offset = int(await door.recall() or 0)
            await self._poll(offset, seconds=0, limit=1)
            self._up = True
            await door.connected(_me(user))
            while True:
                updates = await self._poll(offset, seconds=POLL_S)
                door.alive()
                if not updates and offset:
                    # It is confirmed now. After a week without news Telegram begins with another
                    # number: this one must go.
                    await door.remember("")
                    offset = 0
                for update in sorted(updates, key=lambda each: each.update_id):
                    offset = update.update_id + 1
                    await self._take(door, update, user, offset)
        finally:
            self._up = False

    async def _poll(self, offset: int, *, seconds: int, limit: int = 100) -> tuple[Update, ...]:
        wanted = list(telegram_messages.WANTED)
        return await self._asked(
            self._client().get_updates(
                offset=offset or None, limit=limit, timeout=seconds, allowed_updates=wanted
            )
        )

    async def _take(self, door: Inbox, update: Update, me: User, offset: int) -> None:
        found = telegram_messages.of(update, me)
        if found is None:
            await door.remember(str(offset))
            return
        message, attachments = found
        files = [await self._fetched(each) for each in attachments]
        notes = [each for each in files if isinstance(each, str)]
        message = msgspec.structs.replace(
            message,
            text="\n".join(filter(None, (message.text, *notes))),
            files=tuple(each for each in files if isinstance(each, InboundFile)),
        )
        await door.take(message, cursor=str(offset))
        if update.callback_query is not None:
            # Without it the button shows for a while that something is under way; it is no loss.
            await _in_vain(update.callback_query.answer())

    async def _fetched(self, attachment: TelegramFile) -> InboundFile | str:
        """The file, or in its place a line that says why it is not there."""
        name = attachment.name
        if attachment.size > telegram_messages.MOST_FETCHED:
            return f"[the file {name} has {attachment.size} bytes: too many to be fetched]"
        try:
            file = await self._client().get_file(attachment.file_id)
            return InboundFile(
                name, bytes(await file.download_as_bytearray()), attachment.media_type
            )
        except BadRequest as error:
            return f"[the file {name} cannot be fetched: {error.message}]"
        except TelegramError as error:
            raise connecting(error) from error

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except TelegramError as error:
            # Not chained where the library writes the token into its text.
            raise connecting(error) from (error if isinstance(error, NetworkError) else None)

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        if not self._up:
            raise Lost("Telegram is not connected")
        try:
            return await self._sent(out, _chat(out.conversation))
        except ChatMigrated as moved:
            # A group that became a supergroup has another number; its old one names the new one.
            try:
                return await self._sent(out, moved.new_chat_id)
            except TelegramError as error:
                raise sending(error) from error
        except TelegramError as error:
            raise sending(error) from error

    async def _sent(self, out: OutgoingMessage, chat: int) -> SentReceipt:
        if not out.files:
            return SentReceipt(native_id(chat, (await self._text(out, chat)).message_id))
        shown, _ = marked(out.text)
        if units(shown) <= _MOST_CAPTION and not (out.buttons and len(out.files) > 1):
            return SentReceipt(native_id(chat, await self._documents(out, chat)))
        number = self._halves.get(out.key)
        if number is None:
            number = (await self._text(out, chat)).message_id
            self._halves[out.key] = number
            if len(self._halves) > _MOST_HALVES:
                self._halves.popitem(last=False)
        alone = msgspec.structs.replace(out, text="", buttons=(), reply_to=native_id(chat, number))
        await self._documents(alone, chat)
        del self._halves[out.key]
        return SentReceipt(native_id(chat, number))

    async def _text(self, out: OutgoingMessage, chat: int) -> Message:
        text, entities = _entities(out.text)
        return await self._client().send_message(
            chat,
            text,
            entities=entities,
            message_thread_id=_topic(out.thread),
            reply_parameters=_reply(out),
            reply_markup=_keyboard(out.buttons),
            # A preview is fetched by Telegram: an answer could tell a stranger's server something
            # by its addresses.
            link_preview_options=_NO_PREVIEW,
        )

    async def _documents(self, out: OutgoingMessage, chat: int) -> int:
        text, entities = _entities(out.text)
        if len(out.files) == 1:
            message = await self._client().send_document(
                chat,
                _file(out.files[0]),
                caption=text or None,
                caption_entities=entities,
                message_thread_id=_topic(out.thread),
                reply_parameters=_reply(out),
                reply_markup=_keyboard(out.buttons),
                disable_content_type_detection=True,
            )
            return message.message_id
        # The words stand under the last file, where they are read after them.
        *first, last = out.files
        media = [
            InputMediaDocument(_file(each, attach=True), disable_content_type_detection=True)
            for each in first
        ]
        media.append(
            InputMediaDocument(
                _file(last, attach=True),
                caption=text or None,
                caption_entities=entities,
                disable_content_type_detection=True,
            )
        )
        messages = await self._client().send_media_group(
            chat, media, message_thread_id=_topic(out.thread), reply_parameters=_reply(out)
        )
        return messages[-1].message_id

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        if not self._up:
            raise Lost("Telegram is not connected")
        chat, number = _chat(native_id.partition("/")[0] or conversation), message_number(native_id)
        shown, entities = _entities(text)
        bot = self._client()
        try:
            try:
                await bot.edit_message_text(
                    shown, chat, number, entities=entities, link_preview_options=_NO_PREVIEW
                )
            except BadRequest as error:
                if "no text in the message" not in error.message.casefold():
                    raise
                await bot.edit_message_caption(
                    chat, number, caption=shown[:_MOST_CAPTION], caption_entities=entities
                )
        except BadRequest as error:
            if "not modified" not in error.message.casefold():
                raise sending(error) from error
        except TelegramError as error:
            raise sending(error) from error

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        await _in_vain(
            self._client().send_chat_action(
                _chat(conversation), "typing", message_thread_id=_topic(thread)
            )
        )

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        # A group may allow no reactions: then there is none.
        reacted = self._client().set_message_reaction(
            _chat(conversation), message_number(native_id), _REACTIONS[mark]
        )
        await _in_vain(reacted)

    async def test(self) -> Me:
        return _me(await self._asked(self._client().get_me()))

    async def close(self) -> None:
        self._up = False
        requests, self._requests, self._bot = self._requests, (), None
        for request in requests:
            await request.shutdown()


def _me(user: User) -> Me:
    return Me(account=f"@{user.username}", names=(f"@{user.username}",), place="Telegram")


def _chat(conversation: str) -> int:
    try:
        return int(conversation)
    except ValueError:
        raise SendFailed(
            f"{conversation[:40]!r} is no chat: Telegram names chats by numbers", permanent=True
        ) from None


def _topic(thread: str) -> int | None:
    return int(thread) if thread.isdecimal() else None


def _reply(out: OutgoingMessage) -> ReplyParameters | None:
    if "/" not in out.reply_to or out.reply_to.startswith("press/"):
        return None
    return ReplyParameters(message_number(out.reply_to), allow_sending_without_reply=True)


def _keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    if not buttons:
        return None
    if any(len(each.value.encode()) > _MOST_BUTTON_BYTES for each in buttons):
        raise SendFailed(
            f"the value of a button may have {_MOST_BUTTON_BYTES} bytes on Telegram", permanent=True
        )
    styles = {"good": "✅ ", "bad": "❌ ", "plain": ""}
    return InlineKeyboardMarkup.from_row(
        [
            InlineKeyboardButton(f"{styles[each.style]}{each.label}", callback_data=each.value)
            for each in buttons
        ]
    )


def _entities(text: str) -> tuple[str, list[MessageEntity]]:
    shown, marks = marked(text)
    return shown, [
        MessageEntity(each.kind, each.offset, each.length, language=each.language or None)
        for each in marks
    ]


def _file(file: OutFile, *, attach: bool = False) -> InputFile:
    made = InputFile(file.data, filename=file.name, attach=attach)
    made.mimetype = file.media_type
    return made


async def _in_vain(attempt: Awaitable[object]) -> None:
    """Do what is only a courtesy: nobody waits for it, and nothing depends on it."""
    try:
        await attempt
    except TelegramError as error:
        logging.getLogger("palyra.channels").debug(
            "Telegram did not take a courtesy: %s", type(error).__name__
        )
