"""Telegram's Bot API on loopback, as its pages describe it: updates that wait until they are
confirmed, long polling, topics, reactions, buttons, files, and its refusals. What the real one
would not take, this one does not take either.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from palyra.features.channels.contract import OutFile
from palyra.features.channels.model import InboundFile
from palyra.features.channels.telegram.messages import units
from tests.connectors import Trouble

TOKEN = "4711:a-token-that-nobody-may-see"
BOT: dict[str, Any] = {"id": 4711, "is_bot": True, "first_name": "Palyra", "username": "palyra_bot"}


@dataclass
class Kept:
    """A message of the bot's, as people see it."""

    chat: int
    number: int
    text: str
    entities: list[dict[str, Any]]
    topic: int | None
    keyboard: list[list[dict[str, Any]]]
    files: list[OutFile]
    fields: dict[str, Any] = field(default_factory=dict)


class BotApi:
    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.kept: list[Kept] = []
        self.reactions: list[tuple[int, int, str]] = []
        self.actions: list[tuple[int, str]] = []
        self.answered: list[str] = []
        self.files: dict[str, bytes] = {}
        self.troubles: list[Trouble] = []
        self.migrated: dict[int, int] = {}
        self.offsets: list[int | None] = []
        self.refuses = False
        self.webhook = False
        self.closed_chats: set[int] = set()
        self.next_update = 1_000
        self.next_message = 1
        self.url = ""
        self._polls: list[web.Request] = []
        self._news = asyncio.Condition()

    async def update(self, **what: Any) -> dict[str, Any]:
        self.next_update += 1
        update = {"update_id": self.next_update - 1, **what}
        await self.deliver(update)
        return update

    async def deliver(self, *updates: dict[str, Any]) -> None:
        async with self._news:
            self.updates += updates
            self._news.notify_all()

    def message(self, chat: dict[str, Any], sender: dict[str, Any], **what: Any) -> dict[str, Any]:
        self.next_message += 1
        return {
            "message_id": self.next_message - 1,
            "date": 1_700_000_000,
            "chat": chat,
            "from": sender,
            **what,
        }

    def document(self, file: InboundFile, size: int | None = None) -> dict[str, Any]:
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = file.data
        told = {
            "file_id": file_id,
            "file_unique_id": file_id,
            "file_name": file.name,
            "mime_type": file.media_type,
        }
        return {**told, "file_size": len(file.data) if size is None else size}

    async def drop(self) -> None:
        """Cut the connection that waits for news, as soon as there is one."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: self._polls), 30)
        self.cut()

    def cut(self) -> None:
        for request in self._polls:
            if request.transport is not None:
                request.transport.abort()

    async def keeps(self, number: int, seconds: float = 20) -> None:
        """Wait until so many messages of the bot's are there."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: len(self.kept) >= number), seconds)

    async def wake(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def call(self, request: web.Request) -> web.StreamResponse:
        if self.refuses or request.match_info["token"] != TOKEN:
            return _error(401, "Unauthorized")
        fields, files = await _fields(request)
        method = request.match_info["method"]
        handler = getattr(self, f"do_{method}", None)
        if handler is None:
            return _error(404, "Not Found: method not found")
        try:
            return web.json_response({"ok": True, "result": await handler(request, fields, files)})
        except _Refusal as refusal:
            return refusal.response

    async def download(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] != TOKEN:
            return web.Response(status=404)
        return web.Response(body=self.files[request.match_info["path"]])

    async def do_getMe(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        return BOT

    async def do_getUpdates(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        if self.webhook:
            raise _Refusal(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first",
            )
        offset = fields.get("offset")
        self.offsets.append(offset)
        if offset is not None:
            self.updates = [each for each in self.updates if each["update_id"] >= offset]
        limit = fields.get("limit", 100)
        waits = min(fields.get("timeout", 0), 60)
        try:
            async with self._news:
                if waits:
                    self._polls.append(request)
                    self._news.notify_all()
                    await asyncio.wait_for(
                        self._news.wait_for(lambda: self.updates or self.refuses), waits
                    )
        except TimeoutError:
            return []
        finally:
            self._polls = [each for each in self._polls if each is not request]
        if self.refuses:
            raise _Refusal(401, "Unauthorized")
        return self.updates[:limit]

    async def do_sendMessage(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        text = fields["text"]
        if not text.strip():
            raise _Refusal(400, "Bad Request: message text is empty")
        if units(text) > 4_096:
            raise _Refusal(400, "Bad Request: message is too long")
        return await self._keep(request, fields, text, fields.get("entities", []), [])

    async def do_sendDocument(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        caption = _caption(fields)
        sent = [_found(fields["document"], files)]
        return await self._keep(request, fields, caption, fields.get("caption_entities", []), sent)

    async def do_sendMediaGroup(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        media = fields["media"]
        if not 2 <= len(media) <= 10:
            raise _Refusal(400, "Bad Request: wrong number of media")
        sent = [_found(each["media"], files) for each in media]
        entities = media[-1].get("caption_entities", [])
        kept = await self._keep(request, fields, _caption(media[-1]), entities, sent)
        return [kept] * len(media)

    async def _keep(
        self,
        request: web.Request,
        fields: dict[str, Any],
        text: str,
        entities: list[dict[str, Any]],
        files: list[OutFile],
    ) -> Any:
        chat = int(fields["chat_id"])
        if chat in self.migrated:
            moved = {"migrate_to_chat_id": self.migrated[chat]}
            raise _Refusal(
                400, "Bad Request: group chat was upgraded to a supergroup chat", parameters=moved
            )
        if chat in self.closed_chats:
            raise _Refusal(403, "Forbidden: bot was blocked by the user")
        for entity in entities:
            if (
                entity["offset"] < 0
                or entity["length"] <= 0
                or entity["offset"] + entity["length"] > units(text)
            ):
                raise _Refusal(400, "Bad Request: entity is out of the text")
        keyboard = fields.get("reply_markup", {}).get("inline_keyboard", [])
        if any(len(button["callback_data"].encode()) > 64 for row in keyboard for button in row):
            raise _Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        trouble = self.troubles.pop(0) if self.troubles else ""
        match trouble:
            case "rate_limit":
                raise _Refusal(
                    429, "Too Many Requests: retry after 3", parameters={"retry_after": 3}
                )
            case "gone":
                raise _Refusal(400, "Bad Request: chat not found")
            case "overloaded":
                raise _Refusal(502, "Bad Gateway")
        number, self.next_message = self.next_message, self.next_message + 1
        topic = fields.get("message_thread_id")
        async with self._news:
            self.kept.append(Kept(chat, number, text, entities, topic, keyboard, files, fields))
            self._news.notify_all()
        if trouble == "answer_lost":
            assert request.transport is not None
            request.transport.abort()
        return {
            "message_id": number,
            "date": 1_700_000_000,
            "chat": {"id": chat, "type": "supergroup", "title": "t"},
            "text": text,
        }

    async def do_editMessageText(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        kept = self._find(fields)
        if kept.files:
            raise _Refusal(400, "Bad Request: there is no text in the message to edit")
        return self._edited(kept, fields, fields["text"], fields.get("entities", []))

    async def do_editMessageCaption(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        return self._edited(
            self._find(fields), fields, _caption(fields), fields.get("caption_entities", [])
        )

    def _find(self, fields: dict[str, Any]) -> Kept:
        for kept in self.kept:
            if (kept.chat, kept.number) == (int(fields["chat_id"]), int(fields["message_id"])):
                return kept
        raise _Refusal(400, "Bad Request: message to edit not found")

    def _edited(
        self, kept: Kept, fields: dict[str, Any], text: str, entities: list[dict[str, Any]]
    ) -> Any:
        keyboard = fields.get("reply_markup", {}).get("inline_keyboard", [])
        if (kept.text, kept.keyboard) == (text, keyboard):
            raise _Refusal(400, "Bad Request: message is not modified")
        kept.text, kept.entities, kept.keyboard = text, entities, keyboard
        return True

    async def do_sendChatAction(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        self.actions.append((int(fields["chat_id"]), fields["action"]))
        return True

    async def do_setMessageReaction(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        self.reactions.append(
            (int(fields["chat_id"]), int(fields["message_id"]), fields["reaction"][0]["emoji"])
        )
        return True

    async def do_answerCallbackQuery(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        self.answered.append(fields["callback_query_id"])
        return True

    async def do_getFile(
        self, request: web.Request, fields: dict[str, Any], files: dict[str, OutFile]
    ) -> Any:
        file_id = fields["file_id"]
        if file_id not in self.files:
            raise _Refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        return {"file_id": file_id, "file_unique_id": file_id, "file_path": file_id}


class _Refusal(Exception):
    def __init__(self, status: int, description: str, **more: Any) -> None:
        super().__init__(description)
        self.response = _error(status, description, **more)


def _error(status: int, description: str, **more: Any) -> web.Response:
    return web.json_response(
        {"ok": False, "error_code": status, "description": description, **more}, status=status
    )


def _caption(fields: dict[str, Any]) -> str:
    caption: str = fields.get("caption", "")
    if units(caption) > 1_024:
        raise _Refusal(400, "Bad Request: message caption is too long")
    return caption


def _found(reference: str, files: dict[str, OutFile]) -> OutFile:
    return files[reference.removeprefix("attach://")]


async def _fields(request: web.Request) -> tuple[dict[str, Any], dict[str, OutFile]]:
    """What was posted: parameters, those that are no plain text as JSON, and files."""
    fields: dict[str, Any] = {}
    files: dict[str, OutFile] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files[name] = OutFile(value.filename, value.file.read(), value.content_type)
            fields.setdefault(name, f"attach://{name}")
        else:
            assert isinstance(value, str)
            fields[name] = (
                value
                if name in ("text", "caption", "file_id", "callback_query_id", "action")
                else _json(value)
            )
    return fields, files


def _json(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    api = BotApi()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/bot{token}/{method}", api.call)
    app.router.add_get("/file/bot{token}/{path}", api.download)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        api.cut()
        await runner.cleanup()
