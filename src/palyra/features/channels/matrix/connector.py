"""The Matrix connector: one account on a homeserver, in the rooms it was invited to.

The place in the server's stream is stored with the last message of each answer: what was not stored
comes again, and what a gap left out is fetched. Every send carries a transaction id made from its
key, so that nothing is written twice. Encrypted rooms are not joined: whoever invites us there is
told in a sentence.
"""

import asyncio
import heapq
import io
import logging
from hashlib import sha256
from typing import Any

import nio

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import (
    MOST_FILE_BYTES,
    Abilities,
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
from palyra.features.channels.matrix import contents
from palyra.features.channels.matrix.contents import Event, RoomMessage
from palyra.features.channels.matrix.homeserver import (
    POLL_MS,
    ask,
    client,
    deliver,
    is_unknown_place,
)
from palyra.features.channels.message_splitter import LengthLimit
from palyra.features.channels.model import Inbound, InboundFile, Sender

log = logging.getLogger("palyra.features.channels.matrix")

CANNOT_READ = (
    "I cannot read encrypted rooms. Please make a room without encryption "
    "(it can only be chosen when the room is made) and invite me there."
)
INVITES = ("anyone", "local", "nobody")
_KINDS = ["m.room.message", "m.room.encrypted", "m.room.encryption", "m.room.member"]
_TIMELINE = {"limit": 100, "types": _KINDS}
_ONLY = {"types": _KINDS}
_NOTHING: dict[str, Any] = {"types": []}
_FILTER = {
    "presence": _NOTHING,
    "account_data": _NOTHING,
    "room": {
        "timeline": _TIMELINE,
        "state": {"lazy_load_members": True},
        "ephemeral": _NOTHING,
        "account_data": _NOTHING,
    },
}
_TYPING_MS = 15_000
_LONGEST_SYNC_S = 300.0
# A file that a server does not give so often is not waited for any longer: what comes after it
# waits behind it.
_MOST_TRIES = 3
_LONGEST_FILE_S = 120.0


class Matrix:
    abilities = Abilities(
        threads=True, edit=True, typing=True, acknowledge=True, files=True, idempotent=True
    )
    # The whole event may have 64 KiB, and holds the text up to four times: plain and as HTML, and
    # both again in an edit.
    limits = ConnectorLimits(
        text=LengthLimit(12_000, "bytes"), files=10, file_bytes=16 << 20, per_second=5.0
    )

    def __init__(self, given: ConnectorSettings) -> None:
        self.name = given.name
        self._settings = given.settings
        self._invites = given.settings.get("invites") or INVITES[0]
        if self._invites not in INVITES:
            raise InvalidInput(f"channel {given.name}: invites is one of {', '.join(INVITES)}")
        self._api = self._made()
        self._me = ""
        self._up = False
        # Rooms where it was said that we cannot read them.
        self._told: set[str] = set()
        self._tries: dict[str, int] = {}

    def _made(self) -> nio.AsyncClient:
        return client(self.name, self._settings["homeserver"], self._settings["token"])

    async def serve(self, door: Inbox) -> None:
        me = await self.test()
        self._me = self._api.user_id = me.account
        since = await door.recall()
        answer = await self._begin(door, since)
        self._up = True
        try:
            await door.connected(me)
            await self._hand_over(door, answer, since)
            while True:
                since = answer.next_batch
                answer = await ask(
                    self._api.sync(timeout=POLL_MS, sync_filter=_FILTER, since=since)
                )
                door.alive()
                await self._hand_over(door, answer, since)
        finally:
            self._up = False

    async def _begin(self, door: Inbox, since: str) -> Any:
        """The first answer of a connection: what came since we were here, with who is in which
        room.
        """
        if since:
            try:
                return await self._whole(since)
            except Lost as error:
                if not is_unknown_place(error):
                    raise
                log.warning(
                    "channel %s: the homeserver does not know where we stopped; we begin with what"
                    " comes now",
                    self.name,
                )
        answer = await self._whole(None)
        # What was said before the channel was there is not for us.
        for room in answer.rooms.join.values():
            room.timeline.events, room.timeline.limited = [], False
        await door.remember(answer.next_batch)
        return answer

    async def _whole(self, since: str | None) -> Any:
        call = self._api.sync(timeout=0, sync_filter=_FILTER, since=since, full_state=True)
        return await ask(asyncio.wait_for(call, _LONGEST_SYNC_S))

    async def _hand_over(self, door: Inbox, answer: Any, since: str) -> None:
        for room_id, invitation in answer.rooms.invite.items():
            await self._invited(room_id, [each.source for each in invitation.invite_state])
        rooms = [
            await self._heard(room_id, room.timeline, since)
            for room_id, room in answer.rooms.join.items()
        ]
        # Each room in its own order; between rooms the earlier one first.
        messages = list(heapq.merge(*rooms, key=lambda found: found[1].sent_ms))
        for number, (room_id, told) in enumerate(messages, 1):
            inbound = await self._inbound(room_id, told)
            await door.take(inbound, cursor=answer.next_batch if number == len(messages) else None)

    async def _heard(
        self, room_id: str, timeline: Any, since: str
    ) -> list[tuple[str, RoomMessage]]:
        """Return what others have said in one room, oldest first."""
        events = [each.source for each in timeline.events]
        wanted, invited = contents.since_invited(events, self._me)
        if timeline.limited and not invited:
            wanted, _ = contents.since_invited(
                await self._between(room_id, timeline.prev_batch, since) + events, self._me
            )
        found = []
        for event in wanted:
            if event.get("sender") == self._me:
                continue
            if contents.is_encrypted(event):
                await self._decline(room_id)
            elif (told := contents.told(event)) is not None:
                found.append((room_id, told))
        return found

    async def _between(self, room_id: str, start: str | None, end: str) -> list[Event]:
        """Return the events that the answer omitted because they were too many: back to our cursor,
        or to our invitation.
        """
        found: list[Event] = []
        while start:
            try:
                page = await deliver(
                    self._api.room_messages(
                        room_id, start, end or None, limit=500, message_filter={"types": _KINDS}
                    )
                )
            except SendFailed as error:
                _give_up_or_raise(error)
                log.warning(
                    "channel %s: what was said before in a room is not shown to us: %s",
                    self.name,
                    error,
                )
                break
            found = [each.source for each in reversed(page.chunk)] + found
            start = (
                page.end if page.chunk and not contents.since_invited(found, self._me)[1] else None
            )
        return found

    async def _inbound(self, room_id: str, told: RoomMessage) -> Inbound:
        room = self._api.rooms[room_id]
        text = told.text
        files: tuple[InboundFile, ...] = ()
        if told.file:
            data = await self._fetched(told.file)
            if data is None:
                why = f"could not be read, or is larger than {MOST_FILE_BYTES >> 20} MiB"
                text = f"{text}\n(The file {told.file_name} {why}.)".lstrip()
            else:
                files = (InboundFile(told.file_name, data, told.media_type),)
        return Inbound(
            native_id=told.native_id,
            conversation=room_id,
            sender=Sender(told.sender, room.user_name(told.sender) or ""),
            text=text,
            thread=told.thread,
            files=files,
            is_direct=room.member_count <= 2,
            mentions_agent=self._me in told.mentions,
            mentions_everyone=told.everyone,
            reply_to=told.reply_to,
            sent_ms=told.sent_ms,
        )

    async def _fetched(self, uri: str) -> bytes | None:
        """A file, if there is one and it is not too large; Lost if it may come later."""
        path = contents.media_path(uri)
        if not path:
            return None
        tries = self._tries[uri] = self._tries.get(uri, 0) + 1
        try:
            data: bytes | None = await ask(self._read(path))
        except Lost:
            if tries < _MOST_TRIES:
                raise
            data = None
        del self._tries[uri]
        return data

    async def _read(self, path: str) -> bytes | None:
        headers = {"Authorization": f"Bearer {self._api.access_token}"}
        async with await self._api.send(
            "GET", path, headers=headers, timeout=_LONGEST_FILE_S
        ) as response:
            if response.status == 429 or response.status >= 500:
                raise Lost(
                    f"the homeserver does not give a file: {response.status}", retry_after_ms=1_000
                )
            if response.status != 200:
                return None
            found = bytearray()
            async for piece in response.content.iter_chunked(1 << 16):
                found += piece
                if len(found) > MOST_FILE_BYTES:
                    return None
            return bytes(found)

    async def _invited(self, room_id: str, state: list[Event]) -> None:
        by = next(
            (each.get("sender", "") for each in state if each.get("state_key") == self._me), ""
        )
        local = by.partition(":")[2] == self._me.partition(":")[2]
        if self._invites == "nobody" or (self._invites == "local" and not local):
            log.info(
                "channel %s: an invitation was not followed (invites = %s)",
                self.name,
                self._invites,
            )
            return
        try:
            await deliver(self._api.join(room_id))
            if await self._is_encrypted(room_id):
                await self._decline(room_id)
                await deliver(self._api.room_leave(room_id))
        except SendFailed as error:
            _give_up_or_raise(error)
            log.warning("channel %s: an invitation could not be followed: %s", self.name, error)

    async def _is_encrypted(self, room_id: str) -> bool:
        try:
            await deliver(self._api.room_get_state_event(room_id, "m.room.encryption"))
        except SendFailed as error:
            if not error.permanent:
                raise
            return False  # There is no such state.
        return True

    async def _decline(self, room_id: str) -> None:
        if room_id in self._told:
            return
        content = {"msgtype": "m.notice", "body": CANNOT_READ, "m.mentions": {}}
        try:
            await self._put(
                room_id, "m.room.message", content, _transaction(f"cannot read {room_id}")
            )
        except SendFailed as error:
            _give_up_or_raise(error)
            log.warning("channel %s: an encrypted room could not be told so: %s", self.name, error)
        self._told.add(room_id)

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        room = self._ready(out.conversation)
        if room is not None and room.encrypted:
            raise SendFailed(
                "the room is encrypted: nothing is written there in the open", permanent=True
            )
        native_id = ""
        if out.text:
            native_id = await self._put(
                out.conversation, "m.room.message", contents.message(out), _transaction(out.key)
            )
        for number, each in enumerate(out.files):
            content = contents.file(each, await self._uploaded(each), out)
            sent = await self._put(
                out.conversation,
                "m.room.message",
                content,
                _transaction(f"{out.key} file {number}"),
            )
            native_id = native_id or sent
        return SentReceipt(native_id)

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        self._ready(conversation)
        await self._put(conversation, "m.room.message", contents.replacement(native_id, text), None)

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        self._ready(conversation)
        await deliver(self._api.room_typing(conversation, True, _TYPING_MS))

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        self._ready(conversation)
        transaction = _transaction(f"{mark} {native_id}")
        await self._put(conversation, "m.reaction", contents.reaction(native_id, mark), transaction)

    async def _put(
        self, room_id: str, kind: str, content: dict[str, Any], transaction: str | None
    ) -> str:
        sent = await deliver(self._api.room_send(room_id, kind, content, tx_id=transaction))
        return str(sent.event_id)

    async def _uploaded(self, each: OutFile) -> str:
        data = io.BytesIO(each.data)
        upload = self._api.upload(
            data, content_type=each.media_type, filename=each.name, filesize=len(each.data)
        )
        return str((await deliver(_first(upload))).content_uri)

    def _ready(self, room_id: str) -> Any:
        if not self._up:
            raise Lost("not connected")
        return self._api.rooms.get(room_id)

    async def test(self) -> Me:
        me = await ask(self._api.whoami())
        try:
            display = (await ask(self._api.get_displayname(me.user_id))).displayname or ""
        except Lost:
            display = ""  # A server without profiles; the account's own name is enough.
        place = self._settings["homeserver"].partition("//")[2].rstrip("/")
        return Me(account=me.user_id, names=tuple(filter(None, (me.user_id, display))), place=place)

    async def close(self) -> None:
        self._up = False
        await self._api.close()


async def _first(pair: Any) -> Any:
    """An upload answers with a pair, whose other half is about encryption."""
    return (await pair)[0]


def _give_up_or_raise(error: SendFailed) -> None:
    """Raise Lost unless the error is permanent: what no retry changes must not block what follows;
    everything else is retried from the cursor.
    """
    if not error.permanent:
        raise Lost(str(error), retry_after_ms=error.retry_after_ms) from error


def _transaction(key: str) -> str:
    """The same for the same key, in characters that every server takes."""
    return f"palyra-{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
