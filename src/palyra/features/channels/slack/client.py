"""Slack's own library, made to do one thing: one Socket Mode connection whose envelopes come out in
their order.

The library would run every envelope as a task of its own and connect again by itself, without a
pause. Here they are handed on as they come, and that it wants to connect again is the end of this
connection: the supervisor's pauses grow.
"""

import asyncio
import json
import logging
from typing import Any

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from palyra.features.channels.slack import messages

# Its logs quote messages and addresses that let anybody in, and what is wrong is said by the
# channel's status.
logging.getLogger("slack_sdk").setLevel(logging.CRITICAL)

_TIMEOUT_S = 30


class SlackConnection(SocketModeClient):
    def __init__(self, app_token: str, web: AsyncWebClient) -> None:
        super().__init__(app_token, web_client=web)
        self.envelopes: asyncio.Queue[dict[str, Any] | Exception] = asyncio.Queue()

    async def open(self) -> None:
        with messages.connecting():
            answer = await self.web_client.apps_connections_open(app_token=self.app_token)
            self.wss_uri = answer["url"]
            async with asyncio.timeout(_TIMEOUT_S):
                # The library tries again and again, for as long as it is let.
                await self.connect()  # type: ignore[no-untyped-call]

    async def enqueue_message(self, message: str) -> None:
        """Called for every frame, in order."""
        told = json.loads(message) if message.startswith("{") else {}
        if told.get("type") == "disconnect":
            self.envelopes.put_nowait(messages.bid_farewell(str(told.get("reason") or "")))
        else:
            self.envelopes.put_nowait(told)

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Called when the connection is closed or gives no sign of life."""
        self.envelopes.put_nowait(messages.bid_farewell(""))

    async def confirm(self, envelope_id: str) -> None:
        with messages.connecting():
            await self.send_socket_mode_response(SocketModeResponse(envelope_id=envelope_id))


def web_client(token: str, api: str, session: Any) -> AsyncWebClient:
    # Without its own way to try again: it would send a message twice whose answer was lost.
    return AsyncWebClient(
        token, base_url=f"{api}/", timeout=_TIMEOUT_S, session=session, retry_handlers=[]
    )
