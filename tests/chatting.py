"""A daemon with one chat channel inside the test's own process, and people who write there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from palyra.core.ids import OWNER
from palyra.features.channels import loopback
from palyra.features.channels.loopback import LoopbackMessage, Platform
from palyra.features.channels.model import Inbound, Sender
from palyra.features.channels.rows import messages, people
from palyra.features.channels.rows.messages import StoredMessage
from palyra.serve.wiring.daemon import Daemon
from palyra.store import runs
from tests.inprocess import daemon

_numbers = count(1)


class Chat:
    """One channel called `chat`. What people say is written with `direct` and `group`."""

    def __init__(self, opened: Daemon, platform: Platform, name: str) -> None:
        self.daemon = opened
        self.platform = platform
        self.name = name

    def direct(self, who: str, text: str, **more: Any) -> str:
        return self.say(text, who, conversation=f"dm-{who}", is_direct=True, **more)

    def group(self, who: str, text: str, **more: Any) -> str:
        return self.say(text, who, conversation=more.pop("conversation", "team"), **more)

    def say(
        self,
        text: str,
        who: str,
        *,
        conversation: str,
        native_id: str = "",
        verified: bool = True,
        **more: Any,
    ) -> str:
        native_id = native_id or f"in-{next(_numbers)}"
        sender = Sender(who, who.capitalize(), verified)
        self.platform.say(
            Inbound(
                native_id=native_id, conversation=conversation, sender=sender, text=text, **more
            )
        )
        return native_id

    async def pair(self, *senders: str) -> None:
        for sender in senders:
            await self.daemon.db.write(
                partial(people.grant, connector=self.name, sender=sender, until_ms=0, by=OWNER)
            )

    async def link(self, sender: str, principal: str = OWNER) -> None:
        await self.daemon.channels.desk.link(OWNER, self.name, sender, principal)

    def posted(self, conversation: str = "") -> list[LoopbackMessage]:
        return [
            each for each in self.platform.posted if conversation in ("", each.out.conversation)
        ]

    def texts(self, conversation: str = "") -> list[str]:
        return [each.text for each in self.posted(conversation)]

    async def until(self, enough: Callable[["Chat"], bool], seconds: float = 20) -> None:
        await self.platform.until(lambda _: enough(self), seconds)

    async def answers(self, conversation: str, number: int = 1, seconds: float = 20) -> list[str]:
        """The texts of a conversation, once there are so many."""
        await self.until(lambda chat: len(chat.posted(conversation)) >= number, seconds)
        return self.texts(conversation)

    async def when(self, holds: Callable[[], bool | Awaitable[bool]], seconds: float = 20) -> None:
        """Wait until it holds; looked at whenever the store has done something."""
        async with asyncio.timeout(seconds):
            while True:
                found = holds()
                if found is True or (not isinstance(found, bool) and await found):
                    return
                await self.daemon.db.write(lambda tx: None)

    async def is_(self, native_id: str, *states: str, seconds: float = 20) -> StoredMessage:
        """A message once it is in one of these states."""
        seen: list[StoredMessage] = []

        async def there() -> bool:
            found = await self.daemon.db.read(
                lambda tx: messages.by_native_id(tx, self.name, native_id)
            )
            if found is not None and found.state in states:
                seen.append(found)
            return bool(seen)

        await self.when(there, seconds)
        return seen[0]

    async def seen(self, native_id: str) -> None:
        """Wait until a message is held for more of the same sender: then it is marked, and its wait
        has begun.
        """
        await self.when(
            lambda: (
                native_id in [marked for _, marked, mark in self.platform.marks if mark == "seen"]
            )
        )

    async def ends(self, run_id: str, state: str, seconds: float = 20) -> None:
        async def there() -> bool:
            row = await self.daemon.db.read(lambda tx: runs.find(tx, run_id))
            return row is not None and row.state == state

        await self.when(there, seconds)

    async def message(self, native_id: str) -> StoredMessage:
        found = await self.daemon.db.read(
            lambda tx: messages.by_native_id(tx, self.name, native_id)
        )
        assert found is not None
        return found


@asynccontextmanager
async def chat(
    folder: Path,
    model: Any,
    settings: str = "",
    *,
    fresh: bool = True,
    more: str = "",
    name: str = "chat",
    quiet_ms: int = 20,
) -> AsyncIterator[Chat]:
    """A daemon with the channel; `settings` are lines of its table. Opened again it resumes, on its
    platform unless `fresh`.
    """
    world = f"{folder}/{name}"
    if fresh:
        loopback.forget(world)
    table = (
        f'[channels.{name}]\nkind = "loopback"\nsettings = ["platform={world}"]\n{settings}\n{more}'
    )
    async with daemon(folder, model, table) as opened:
        # Nobody waits for quiet but who tests it.
        opened.channels.intake.holding.quiet_ms = quiet_ms
        yield Chat(opened, loopback.platform(world), name)
