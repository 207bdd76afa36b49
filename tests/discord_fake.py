"""A Discord on loopback: its gateway with sessions that can be resumed, and as much of its HTTP API
as a bot uses.

It keeps what real Discord keeps: events of a session for a while, histories of channels, keys of
messages, who reacted. Tests write on it as people would, and tell it what to do to the bot.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import WSMsgType, web

from tests.discord_server import APP, BOT, CONTENT, GUILD, NAMES, Json, Server, Session, Wire, user

TOKEN = "bot-token-of-a-test"


class FakeDiscord(Server):
    async def gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        wire = Wire(socket, compress=request.query.get("compress") == "zlib-stream")
        await wire.send({"op": 10, "d": {"heartbeat_interval": 41_250}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            packet = json.loads(message.data)
            match packet["op"]:
                case 1:
                    await wire.send({"op": 11})
                case 2:
                    await self._identify(wire, packet["d"])
                case 6:
                    await self._resume(wire, packet["d"])
        return socket

    async def _identify(self, wire: Wire, told: Json) -> None:
        if told["token"] != TOKEN or self.refuses:
            await wire.socket.close(code=self.refuses or 4004)
            return
        if told["intents"] & CONTENT and not self.content_allowed:
            await wire.socket.close(code=4014)
            return
        self.identified += 1
        session = Session(f"session-{next(self.numbers)}", told["intents"], wire=wire)
        self.sessions[session.id] = session
        ready = {
            "v": 10,
            "user": user(BOT, "palyra", bot=True),
            "guilds": [{"id": str(GUILD), "unavailable": True}],
        }
        ready |= {
            "session_id": session.id,
            "resume_gateway_url": self.gateway_url,
            "application": {"id": str(APP), "flags": 0},
        }
        await self.dispatch(session, "READY", ready)
        await self.dispatch(session, "GUILD_CREATE", self._guild())
        if self.greeting is not None:
            await self.greeting()
        await self.news()

    async def _resume(self, wire: Wire, told: Json) -> None:
        session = self.sessions.get(told["session_id"])
        if self.refuses:
            await wire.socket.close(code=self.refuses)
            return
        if session is None or told["token"] != TOKEN or self.forgetful:
            await wire.send({"op": 9, "d": False})
            return
        self.resumed += 1
        for packet in session.events[told["seq"] :]:
            await wire.send(packet)
        session.wire = wire
        await self.dispatch(session, "RESUMED", {})
        await self.news()

    @property
    def gateway_url(self) -> str:
        return self.url.replace("http", "ws", 1) + "/gateway"

    def _guild(self) -> Json:
        found = [each for each in self.channels.values() if each.get("guild_id")]
        role = {
            "id": str(GUILD),
            "name": "@everyone",
            "permissions": "0",
            "position": 0,
            "color": 0,
            "hoist": False,
        }
        role |= {"managed": False, "mentionable": False, "flags": 0, "colors": {"primary_color": 0}}
        return {
            "id": str(GUILD),
            "name": "a server",
            "owner_id": str(NAMES["anna"]),
            "roles": [role],
            "emojis": [],
            "features": [],
            "members": [],
            "member_count": 3,
            "large": False,
            "channels": [each for each in found if each["type"] != 11],
            "threads": [each for each in found if each["type"] == 11],
            "voice_states": [],
            "presences": [],
            "stage_instances": [],
            "afk_timeout": 60,
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "mfa_level": 0,
            "nsfw_level": 0,
            "premium_tier": 0,
            "preferred_locale": "en-US",
            "system_channel_flags": 0,
            "premium_progress_bar_enabled": False,
        }

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.path.startswith("/api/") and (
            request.headers.get("Authorization") != f"Bot {TOKEN}" or self.refuses
        ):
            return _json({"message": "401: Unauthorized", "code": 0}, status=401)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def me(self, request: web.Request) -> web.Response:
        return _json(user(BOT, "palyra", bot=True))

    async def application(self, request: web.Request) -> web.Response:
        flags = 1 << 19 if self.content_allowed else 0
        told = {
            "id": str(APP),
            "name": "palyra",
            "description": "",
            "bot_public": True,
            "bot_require_code_grant": False,
        }
        return _json(
            {
                **told,
                "verify_key": "",
                "flags": flags,
                "owner": user(1, "owner"),
                "icon": None,
                "summary": "",
            }
        )

    async def where(self, request: web.Request) -> web.Response:
        limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
        return _json({"url": self.gateway_url, "shards": 1, "session_start_limit": limit})

    async def get_channel(self, request: web.Request) -> web.Response:
        found = self.channels.get(int(request.match_info["channel"]))
        return _json(found) if found else _unknown(10003)

    async def history(self, request: web.Request) -> web.Response:
        channel, after = request.match_info["channel"], int(request.query.get("after", 0))
        found = [
            each
            for each in self.messages.values()
            if each["channel_id"] == channel and int(each["id"]) > after
        ]
        found.sort(key=lambda each: int(each["id"]))
        # Newest first, as it is.
        return _json(found[: int(request.query.get("limit", 50))][::-1])

    async def post(self, request: web.Request) -> web.StreamResponse:
        channel_id = int(request.match_info["channel"])
        told, files = await self._body(request)
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "rate_limit":
            headers = {"Via": "1.1 google", "Retry-After": "45"}
            return _json(
                {"message": "limited", "retry_after": 45.0, "global": False},
                status=429,
                headers=headers,
            )
        if trouble == "short_limit":
            headers = {"Via": "1.1 google", "Retry-After": "0.01"}
            return _json(
                {"message": "limited", "retry_after": 0.01, "global": False},
                status=429,
                headers=headers,
            )
        if trouble == "overloaded":
            return _json({"message": "unavailable"}, status=503)
        if trouble == "gone" or channel_id not in self.channels:
            return _unknown(10003)
        if _utf16(told["content"]) > 2_000:
            return _json({"message": "Invalid Form Body", "code": 50035}, status=400)
        known = self.keys.get((channel_id, str(told.get("nonce"))))
        if known is not None and told.get("enforce_nonce"):
            return _json(self.messages[known])
        message = self.put(
            channel_id, user(BOT, "palyra", bot=True), told["content"], attachments=files
        )
        message |= {"components": told.get("components") or [], "asked": told}
        if told.get("message_reference"):
            message |= {"message_reference": told["message_reference"], "type": 19}
        self.keys[channel_id, str(told.get("nonce"))] = int(message["id"])
        await self.tell("MESSAGE_CREATE", self.event(message))
        if trouble == "answer_lost":
            assert request.transport is not None
            request.transport.close()
        return _json(message)

    async def _body(self, request: web.Request) -> tuple[Json, list[Json]]:
        if request.content_type != "multipart/form-data":
            return await request.json(), []
        form = await request.post()
        told = json.loads(str(form["payload_json"]))
        files: list[Json] = []
        for key, value in form.items():
            if isinstance(value, web.FileField):
                number = int(key.removeprefix("files[").removesuffix("]"))
                names = {each["id"]: each["filename"] for each in told["attachments"]}
                files.append(
                    {**self.attach(value.filename, value.file.read()), "given": names[number]}
                )
        return told, files

    async def patch(self, request: web.Request) -> web.Response:
        message = self.messages.get(int(request.match_info["message"]))
        if message is None:
            return _unknown(10008)
        told = await request.json()
        message |= {
            "content": told["content"],
            "components": told.get("components", message["components"]),
        }
        return _json(message)

    async def react(self, request: web.Request) -> web.Response:
        found = (int(request.match_info["message"]), request.match_info["emoji"])
        if request.method == "PUT":
            self.reactions.append(found)
        elif found in self.reactions:
            self.reactions.remove(found)
        return web.Response(status=204)

    async def types(self, request: web.Request) -> web.Response:
        self.typed += 1
        return web.Response(status=204)

    async def confirm(self, request: web.Request) -> web.Response:
        self.confirmed.append((await request.json())["type"])
        await self.news()
        return web.Response(status=204)

    async def file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[int(request.match_info["file"])][1])


def _json(told: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    # Without a charset, as Discord says it.
    body = json.dumps(told).encode()
    return web.Response(
        body=body, status=status, headers={**(headers or {}), "Content-Type": "application/json"}
    )


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _unknown(code: int) -> web.Response:
    return _json({"message": "Unknown", "code": code}, status=404)


@asynccontextmanager
async def discord() -> AsyncIterator[FakeDiscord]:
    found = FakeDiscord()
    app = web.Application(client_max_size=64 << 20, middlewares=[found.guard])
    channel = "/api/v10/channels/{channel}"
    message = channel + "/messages/{message}"
    app.add_routes(
        [
            web.get("/gateway/", found.gateway),
            web.get("/gateway", found.gateway),
            web.get("/files/{file}", found.file),
            web.get("/api/v10/users/@me", found.me),
            web.get("/api/v10/oauth2/applications/@me", found.application),
            web.get("/api/v10/gateway/bot", found.where),
            web.get(channel, found.get_channel),
            web.get(channel + "/messages", found.history),
            web.post(channel + "/messages", found.post),
            web.patch(message, found.patch),
            web.put(message + "/reactions/{emoji}/@me", found.react),
            web.delete(message + "/reactions/{emoji}/{user}", found.react),
            web.post(channel + "/typing", found.types),
            web.post("/api/v10/interactions/{id}/{token}/callback", found.confirm),
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
