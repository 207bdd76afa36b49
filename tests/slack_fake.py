"""A Slack workspace on loopback: Socket Mode with envelopes that must be confirmed, and as much of
the Web API as a bot uses.

It keeps what real Slack keeps: histories and threads, metadata, files, reactions; and sends again
what was not confirmed.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from aiohttp import WSMsgType, web

TOKEN, APP_TOKEN = "xoxb-token-of-a-test", "xapp-token-of-a-test"
BOT, BOT_ID = "U0BOT", "B0BOT"
TEAM, NAMES = "C0TEAM", {"anna": "U0ANNA", "bert": "U0BERT", "carl": "U0CARL"}
Json = dict[str, Any]


class SlackError(Exception):
    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.more = more


class FakeSlack:
    def __init__(self, scopes: str = "") -> None:
        self.url = ""
        self.scopes = scopes
        self.channels: dict[str, Json] = {TEAM: {"id": TEAM, "name": "team", "is_im": False}}
        self.messages: list[Json] = []
        self.files: dict[str, Json] = {}
        self.reactions: list[tuple[str, str]] = []
        self.envelopes: dict[str, Json] = {}
        self.confirmed: list[str] = []
        self.calls: list[tuple[str, Json]] = []
        self.connections = 0
        # What happens to the next call of a method.
        self.troubles: dict[str, list[str]] = {}
        self.refuses = ""
        self.reads_markdown = True
        self.retry_after = "1"
        self.wires: list[web.WebSocketResponse] = []
        self._numbers = count(1)
        self._last_us = 0
        self._changed = asyncio.Condition()

    def stamp(self) -> str:
        # The time to the microsecond, and never the same twice.
        self._last_us = max(self._last_us + 1, time.time_ns() // 1_000)
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06}"

    def direct(self, user: str) -> str:
        channel = f"D0{user}"
        self.channels.setdefault(channel, {"id": channel, "is_im": True, "user": user})
        return channel

    async def say(
        self, channel: str, author: str, text: str, *, tell: bool = True, **more: Any
    ) -> Json:
        message = {
            "type": "message",
            "user": NAMES[author],
            "text": text,
            "ts": self.stamp(),
            "channel": channel,
            **more,
        }
        self.messages.append(message)
        if tell:
            await self.tell(self.event(message))
        return message

    def event(self, message: Json) -> Json:
        return {
            **message,
            "channel_type": "im" if self.channels[message["channel"]].get("is_im") else "channel",
        }

    async def edit(self, message: Json, text: str) -> None:
        before = dict(message)
        message |= {"text": text, "edited": {"user": message["user"], "ts": self.stamp()}}
        await self.changed(message, before)

    async def changed(self, message: Json, before: Json) -> None:
        outer = {
            "type": "message",
            "subtype": "message_changed",
            "channel": message["channel"],
            "ts": self.stamp(),
        }
        await self.tell({**outer, "message": message, "previous_message": before})

    async def press(self, message: Json, value: str, author: str) -> None:
        pressed = {
            "type": "button",
            "value": value,
            "action_id": "palyra-0",
            "action_ts": self.stamp(),
        }
        payload = {
            "type": "block_actions",
            "user": {"id": NAMES[author], "name": author},
            "actions": [pressed],
        }
        await self.deliver(
            "interactive", {**payload, "channel": {"id": message["channel"]}, "message": message}
        )

    def attach(self, name: str, data: bytes, **more: Any) -> Json:
        file_id = f"F{next(self._numbers)}"
        url = f"{self.url}/files/{file_id}"
        known = {
            "id": file_id,
            "name": name,
            "size": len(data),
            "mimetype": "application/octet-stream",
            "url_private": url,
            **more,
        }
        self.files[file_id] = {"data": data, **known}
        return known

    async def tell(self, event: Json) -> None:
        await self.deliver(
            "events_api",
            {"type": "event_callback", "event": event, "event_id": f"Ev{next(self._numbers)}"},
        )

    async def deliver(self, kind: str, payload: Json) -> None:
        envelope: Json = {
            "envelope_id": f"e{next(self._numbers)}",
            "type": kind,
            "payload": payload,
            "accepts_response_payload": False,
        }
        self.envelopes[envelope["envelope_id"]] = envelope
        await self._send(envelope)

    async def again(self) -> None:
        last = self.last
        await self.deliver(last["type"], last["payload"])

    async def _send(self, envelope: Json) -> None:
        self.last = envelope
        for wire in self.wires[-1:]:
            # Who has just left gets it the next time: it was not confirmed.
            with suppress(ConnectionResetError):
                await wire.send_str(json.dumps(envelope))

    async def drop(self) -> None:
        wires, self.wires = self.wires, []
        for wire in wires:
            await wire.close()

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        for wire in self.wires:
            await wire.send_str(json.dumps({"type": "disconnect", "reason": reason}))

    def trouble(self, method: str, *kinds: str) -> None:
        self.troubles.setdefault(method, []).extend(kinds)

    def posts(self) -> list[Json]:
        return [each for each in self.messages if each.get("user") == BOT]

    async def until(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(holds), seconds)

    async def _news(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        await socket.send_str(json.dumps({"type": "hello", "num_connections": 1}))
        self.wires.append(socket)
        for envelope in list(self.envelopes.values()):
            await socket.send_str(json.dumps({**envelope, "retry_attempt": 1}))
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                found = json.loads(message.data)["envelope_id"]
                self.envelopes.pop(found, None)
                self.confirmed.append(found)
                await self._news()
        if socket in self.wires:
            self.wires.remove(socket)
        return socket

    async def call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        asked = await asked_of(request)
        self.calls.append((method, asked))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        wanted = APP_TOKEN if method == "apps.connections.open" else TOKEN
        trouble = self.troubles.get(method, [])
        kind = trouble.pop(0) if trouble else ""
        if kind == "rate_limit":
            return web.json_response(
                {"ok": False, "error": "ratelimited"},
                status=429,
                headers={"Retry-After": self.retry_after},
            )
        if kind == "overloaded":
            return web.json_response({"ok": False, "error": "service_unavailable"}, status=503)
        if self.refuses or token != wanted:
            return web.json_response({"ok": False, "error": self.refuses or "invalid_auth"})
        try:
            if kind and kind != "answer_lost":
                raise SlackError(kind)
            answer = await getattr(self, "do_" + method.replace(".", "_"))(asked)
        except SlackError as error:
            return web.json_response({"ok": False, "error": error.code, **error.more})
        if kind == "answer_lost":
            assert request.transport is not None
            request.transport.close()
        await self._news()
        return web.json_response({"ok": True, **answer}, headers={"X-OAuth-Scopes": self.scopes})

    async def do_auth_test(self, asked: Json) -> Json:
        return {
            "user_id": BOT,
            "user": "palyra",
            "bot_id": BOT_ID,
            "team": "A Team",
            "url": "https://x.slack.com/",
        }

    async def do_apps_connections_open(self, asked: Json) -> Json:
        return {"url": self.url.replace("http", "ws", 1) + "/link"}

    async def do_users_info(self, asked: Json) -> Json:
        name = {user: name for name, user in NAMES.items()}[asked["user"]]
        return {"user": {"id": asked["user"], "profile": {"display_name": name.capitalize()}}}

    async def do_users_conversations(self, asked: Json) -> Json:
        found = list(self.channels.values())
        at = int(asked.get("cursor") or 0)
        # Two at a time, so that there are pages.
        more = str(at + 2) if at + 2 < len(found) else ""
        return {"channels": found[at : at + 2], "response_metadata": {"next_cursor": more}}

    async def do_conversations_history(self, asked: Json) -> Json:
        found = [
            each
            for each in self._of(asked)
            if not each.get("thread_ts") or each["thread_ts"] == each["ts"]
        ]
        return _page(found[::-1], asked)

    async def do_conversations_replies(self, asked: Json) -> Json:
        return _page(
            [
                each
                for each in self._of(asked)
                if asked["ts"] in (each["ts"], each.get("thread_ts"))
            ],
            asked,
        )

    def _of(self, asked: Json) -> list[Json]:
        if asked["channel"] not in self.channels:
            raise SlackError("channel_not_found")
        oldest = float(asked.get("oldest") or 0)
        found = [
            each
            for each in self.messages
            if each["channel"] == asked["channel"] and float(each["ts"]) > oldest
        ]
        if str(asked.get("include_all_metadata")) in ("1", "True", "true"):
            return found
        return [
            {name: value for name, value in each.items() if name != "metadata"} for each in found
        ]

    async def do_chat_postMessage(self, asked: Json) -> Json:
        self._check(asked)
        kept: Json = {
            name: asked[name]
            for name in ("channel", "text", "blocks", "metadata", "thread_ts")
            if name in asked
        }
        message = {
            "type": "message",
            "user": BOT,
            "bot_id": BOT_ID,
            "ts": self.stamp(),
            **kept,
            "asked": asked,
        }
        self.messages.append(message)
        await self.tell(self.event(message))
        return {"ts": message["ts"], "channel": message["channel"], "message": message}

    async def do_chat_update(self, asked: Json) -> Json:
        self._check(asked)
        message = self._one(asked["channel"], asked["ts"])
        message |= {"text": asked["text"], "blocks": asked.get("blocks") or []}
        return {"ts": asked["ts"]}

    def _check(self, asked: Json) -> None:
        if asked["channel"] not in self.channels:
            raise SlackError("channel_not_found")
        if len(asked["text"]) > 40_000:
            raise SlackError("msg_too_long")
        for block in asked.get("blocks") or []:
            if block["type"] == "markdown" and (
                not self.reads_markdown or len(block["text"]) > 12_000
            ):
                raise SlackError("invalid_blocks")
            if block["type"] == "section" and len(block["text"]["text"]) > 3_000:
                raise SlackError("invalid_blocks")

    def _one(self, channel: str, stamp: str) -> Json:
        for message in self.messages:
            if (message["channel"], message["ts"]) == (channel, stamp):
                return message
        raise SlackError("message_not_found")

    async def do_reactions_add(self, asked: Json) -> Json:
        found = (self._one(asked["channel"], asked["timestamp"])["text"], asked["name"])
        if found in self.reactions:
            raise SlackError("already_reacted")
        self.reactions.append(found)
        return {}

    async def do_reactions_remove(self, asked: Json) -> Json:
        found = (self._one(asked["channel"], asked["timestamp"])["text"], asked["name"])
        if found not in self.reactions:
            raise SlackError("no_reaction")
        self.reactions.remove(found)
        return {}

    async def do_files_getUploadURLExternal(self, asked: Json) -> Json:
        known = self.attach(asked["filename"], b"", size=int(asked["length"]))
        return {"upload_url": f"{self.url}/upload/{known['id']}", "file_id": known["id"]}

    async def do_files_completeUploadExternal(self, asked: Json) -> Json:
        wanted = json.loads(asked["files"]) if isinstance(asked["files"], str) else asked["files"]
        files = [
            {name: self.files[each["id"]][name] for name in ("id", "name", "size")}
            for each in wanted
        ]
        message = {
            "type": "message",
            "user": BOT,
            "bot_id": BOT_ID,
            "ts": self.stamp(),
            "channel": asked["channel_id"],
        }
        message |= {"text": "", "files": files, "subtype": "file_share"}
        if asked.get("thread_ts"):
            message["thread_ts"] = asked["thread_ts"]
        self.messages.append(message)
        await self.tell(self.event(message))
        return {"files": files}

    async def upload(self, request: web.Request) -> web.Response:
        self.files[request.match_info["file"]]["data"] = await request.read()
        return web.Response(text="OK")

    async def file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=302, headers={"Location": "/login"})
        found = self.files.get(request.match_info["file"])
        return web.Response(body=found["data"]) if found else web.Response(status=404)


def _page(found: list[Json], asked: Json) -> Json:
    at, size = int(asked.get("cursor") or 0), min(int(asked.get("limit") or 100), 50)
    more = str(at + size) if at + size < len(found) else ""
    return {"messages": found[at : at + size], "response_metadata": {"next_cursor": more}}


async def asked_of(request: web.Request) -> Json:
    if request.content_type == "application/json":
        found: Json = await request.json()
        return found
    return {
        **request.query,
        **{name: value for name, value in (await request.post()).items() if isinstance(value, str)},
    }


@asynccontextmanager
async def slack(scopes: str = "") -> AsyncIterator[FakeSlack]:
    async with open_at(FakeSlack(scopes)) as found:
        yield found


@asynccontextmanager
async def open_at(found: FakeSlack) -> AsyncIterator[FakeSlack]:
    """Open the doors of a workspace, somewhere on loopback."""
    app = web.Application(client_max_size=64 << 20)
    app.add_routes(
        [
            web.post("/api/{method}", found.call),
            web.get("/api/{method}", found.call),
            web.get("/link", found.link),
            web.post("/upload/{file}", found.upload),
            web.get("/files/{file}", found.file),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}"
    try:
        yield found
    finally:
        await runner.cleanup()
