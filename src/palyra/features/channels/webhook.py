"""A channel for programs of your own: they post signed JSON to us, and we post signed JSON to them.

Both directions carry a time stamp and an HMAC over it and the body, so that nobody else can speak
and nobody can repeat what was said. The same message id again is the same message; the same key
again is the same answer.
"""

import asyncio
import base64
import binascii
import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.input_checks import check_json
from palyra.features.channels.contract import (
    MOST_FILE_BYTES,
    Abilities,
    ConnectionRefused,
    ConnectorKind,
    ConnectorLimits,
    ConnectorSettings,
    HookAnswer,
    Inbox,
    Lost,
    Mark,
    Me,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
    Setting,
)
from palyra.features.channels.message_splitter import LengthLimit
from palyra.features.channels.model import Inbound, InboundFile, Sender
from palyra.system.thread_pool import everyday

if TYPE_CHECKING:
    import aiohttp

TIMESTAMP, SIGNATURE, KEY = "x-palyra-timestamp", "x-palyra-signature", "idempotency-key"
# How far the clocks of both sides may be apart.
TOLERANCE_S = 300
# So long a message waits for its channel while the daemon starts.
_OPENS_S = 10
_TIMEOUT_S = 20.0
_MOST_ANSWER = 64 << 10
_MOST_FILES = 8
# Statuses that no later attempt will change.
_HOPELESS = frozenset({400, 404, 405, 410, 413, 415, 422})


class _Who(Struct, frozen=True):
    id: str
    name: str = ""


class _File(Struct, frozen=True):
    """`data` is base64."""

    name: str
    data: str
    media_type: str = "application/octet-stream"


class WebhookMessage(Struct, frozen=True, kw_only=True):
    """Body of a program's post to us."""

    id: str
    conversation: str
    sender: _Who
    text: str = ""
    thread: str = ""
    direct: bool = False
    mentions_agent: bool = False
    mentions_everyone: bool = False
    pressed: bool = False
    files: tuple[_File, ...] = ()


_decoder = msgspec.json.Decoder(WebhookMessage)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    return (
        "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, sha256).hexdigest()
    )


class Webhook:
    abilities = Abilities(threads=True, edit=True, buttons=True, files=True, idempotent=True)
    limits = ConnectorLimits(text=LengthLimit(16_000), files=_MOST_FILES, per_second=50.0)

    def __init__(self, given: ConnectorSettings) -> None:
        self.name = given.name
        self._url = given.settings["url"]
        self._secret = given.settings["secret"]
        self._now_ms = given.now_ms
        self._door: Inbox | None = None
        self._opened = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"channel {given.name}: url must be an http or https address")
        if len(self._secret) < 16:
            raise InvalidInput(f"channel {given.name}: the secret must have 16 characters or more")

    async def serve(self, door: Inbox) -> None:
        me = await self.test()
        self._door = door
        self._opened.set()
        try:
            await door.connected(me)
            await asyncio.Event().wait()
        finally:
            self._door = None
            self._opened.clear()

    async def _when_open(self) -> Inbox | None:
        """The inbox, once this channel is up: a daemon that has just started takes what comes while
        its channels connect.
        """
        try:
            async with asyncio.timeout(_OPENS_S):
                await self._opened.wait()
        except TimeoutError:
            return None
        return self._door

    async def hook(self, headers: Mapping[str, str], body: bytes) -> HookAnswer:
        stamp, given = headers.get(TIMESTAMP, ""), headers.get(SIGNATURE, "")
        if (
            not stamp.isascii()
            or not stamp.isdecimal()
            or abs(int(stamp[:12]) - self._now_ms() // 1000) > TOLERANCE_S
        ):
            return _refused(401, "the time stamp is missing, or more than five minutes off")
        if not hmac.compare_digest(
            signature(self._secret, stamp, body).encode(), given.encode("utf-8", "replace")
        ):
            return _refused(
                401,
                "the signature is not right: sha256= and the HMAC-SHA256 of the time stamp, a dot"
                " and the body",
            )
        door = await self._when_open()
        if door is None:
            return _refused(503, "the channel is not ready: try again")
        try:
            await everyday.run(check_json, body)
            message = _inbound(_decoder.decode(body))
        except (msgspec.DecodeError, InvalidInput, binascii.Error) as error:
            return _refused(400, f"the message is not understood: {error}")
        taken = await door.take(message)
        answer = {"message_id": taken.message_id, "duplicate": taken.duplicate}
        return HookAnswer(202, msgspec.json.encode(answer))

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        words: dict[str, Any] = {
            "type": "message",
            "key": out.key,
            "conversation": out.conversation,
            "thread": out.thread,
            "text": out.text,
            "reply_to": out.reply_to,
            "buttons": msgspec.to_builtins(out.buttons),
            "files": [
                {
                    "name": each.name,
                    "media_type": each.media_type,
                    "data": base64.b64encode(each.data).decode(),
                }
                for each in out.files
            ],
            "ping_everyone": out.ping_everyone,
        }
        told = await self._post(words, out.key)
        native = told.get("id", out.key)
        return SentReceipt(str(native), duplicate=bool(told.get("duplicate")))

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        words = {
            "type": "edit",
            "id": native_id,
            "conversation": conversation,
            "thread": thread,
            "text": text,
        }
        await self._post(words, f"edit-{native_id}-{sha256(text.encode()).hexdigest()[:16]}")

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        """Do nothing: a webhook shows no typing."""

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        """Do nothing: the answer to its post says that it was taken."""

    async def test(self) -> Me:
        try:
            await self._post({"type": "ping"}, f"ping-{self._now_ms()}")
        except SendFailed as error:
            if error.permanent:
                raise ConnectionRefused(
                    f"{self._place} does not take our posts ({error}): check url and secret"
                ) from error
            raise Lost(str(error), retry_after_ms=error.retry_after_ms) from error
        return Me(account=self.name, names=("@palyra",), place=self._place)

    @property
    def _place(self) -> str:
        return urlsplit(self._url).netloc.rpartition("@")[2]

    async def _post(self, words: dict[str, Any], key: str) -> dict[str, Any]:
        import aiohttp

        body, stamp = msgspec.json.encode(words), str(self._now_ms() // 1000)
        headers = {
            "content-type": "application/json",
            TIMESTAMP: stamp,
            SIGNATURE: signature(self._secret, stamp, body),
            KEY: key,
        }
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S))
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                data = await answer.content.read(_MOST_ANSWER)
                status, pause = answer.status, answer.headers.get("retry-after", "")
        except aiohttp.ClientConnectorError as error:
            raise SendFailed(f"{self._place} cannot be reached: {error}") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SendFailed(
                f"{self._place} did not answer: {type(error).__name__}", maybe_sent=True
            ) from error
        if not 200 <= status < 300:
            raise _failure(self._place, status, pause)
        return _told(data)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _failure(place: str, status: int, pause: str) -> SendFailed:
    if status == 429 or (status == 503 and pause):
        seconds = float(pause) if pause.replace(".", "", 1).isdecimal() else 1.0
        return SendFailed(
            f"{place} asks to wait ({status})", retry_after_ms=max(1, int(seconds * 1_000))
        )
    hopeless = status in _HOPELESS or status in (401, 403) or 300 <= status < 400
    return SendFailed(f"{place} answered {status}", permanent=hopeless)


def _told(data: bytes) -> dict[str, Any]:
    """Return what the other side said about our post, if it said anything."""
    try:
        found = msgspec.json.decode(data) if data else {}
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _inbound(posted: WebhookMessage) -> Inbound:
    if not posted.id or not posted.conversation or not posted.sender.id:
        raise InvalidInput("id, conversation and sender.id must not be empty")
    if len(posted.files) > _MOST_FILES:
        raise InvalidInput(f"a message may have {_MOST_FILES} files")
    files = tuple(
        InboundFile(each.name, base64.b64decode(each.data, validate=True), each.media_type)
        for each in posted.files
    )
    if any(len(file.data) > MOST_FILE_BYTES for file in files):
        raise InvalidInput(f"a file may have {MOST_FILE_BYTES} bytes")
    return Inbound(
        native_id=posted.id,
        conversation=posted.conversation,
        sender=Sender(posted.sender.id, posted.sender.name),
        text=posted.text,
        thread=posted.thread,
        files=files,
        is_direct=posted.direct,
        mentions_agent=posted.mentions_agent,
        mentions_everyone=posted.mentions_everyone,
        pressed=posted.pressed,
    )


def _refused(status: int, why: str) -> HookAnswer:
    code = {400: "invalid_input", 401: "unauthenticated", 503: "unavailable"}[status]
    error = {"code": code, "message": why, "retryable": status == 503, "details": {}}
    return HookAnswer(status, msgspec.json.encode({"error": error}))


KIND = ConnectorKind(
    name="webhook",
    title="Signed webhook (a program of your own)",
    make=Webhook,
    settings=(
        Setting(name="url", words="where we post answers to"),
        Setting(name="secret", words="shared by both sides, 16 characters or more", secret=True),
    ),
    permissions=("your program can post to the daemon's HTTP address",),
    steps=(
        "Make a secret and store it: palyra vault set webhook-secret",
        (
            "Let your program post messages to /v1/channels/NAME/hook and take answers at a url of"
            " its own"
        ),
        (
            "Add the channel: palyra channels add webhook NAME --set url=https://… --set"
            " secret=vault:webhook-secret"
        ),
    ),
    docs="reference/channel-webhook.md",
)
