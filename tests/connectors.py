"""Platforms for the contract suite of connectors: each is a fake of the real one that a test can
write on, look at and disturb.

To add yours: a class with the members of `World`, and a line in WORLDS. What its platform cannot do
is said by the connector's own abilities and by `quirks`; the suite then asks for nothing of the
kind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol

from palyra.features.channels import loopback
from palyra.features.channels.contract import Connector, Mark, Me, OutFile, SendFailed, TakenMessage
from palyra.features.channels.loopback import Loopback, Platform
from palyra.features.channels.model import Button, Inbound, InboundFile, Sender

Trouble = Literal["rate_limit", "gone", "overloaded", "answer_lost"]
# no_echo: the platform does not send us what we wrote. connectionless: sending needs no connection
# that stands. no_drop: there is no connection to lose. no_redelivery: what was not confirmed does
# not come again by itself. The others: it cannot be made to fail like that.
Quirk = Literal[
    "no_echo",
    "connectionless",
    "no_drop",
    "no_redelivery",
    "no_answer_lost",
    "no_gone",
    "no_rate_limit",
    "no_overloaded",
    "no_refuse",
]


@dataclass
class Post:
    """A message of ours, as people see it."""

    native_id: str
    conversation: str
    text: str
    thread: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[OutFile, ...] = ()
    pings_everyone: bool = False


class World(Protocol):
    """One platform with one connector to it."""

    @property
    def connector(self) -> Connector: ...

    @property
    def quirks(self) -> frozenset[Quirk]: ...

    async def say(
        self,
        text: str,
        *,
        sender: str = "anna",
        conversation: str = "team",
        direct: bool = False,
        thread: str = "",
        files: tuple[InboundFile, ...] = (),
        everyone: bool = False,
    ) -> None:
        """Somebody writes; with `direct` to us alone. With `everyone` the platform marks it as a
        message to everybody.
        """
        ...

    async def deliver_again(self) -> None:
        """The platform delivers the last message once more, as platforms do."""
        ...

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        """Somebody presses the button of a message of ours that has this value."""
        ...

    async def posts(self) -> list[Post]:
        """What we have written, oldest first."""
        ...

    async def marks(self) -> list[tuple[str, Mark]]:
        """What was shown on messages of others: the text of the message, and the mark."""
        ...

    async def typed(self) -> int:
        """How often it was shown that we type."""
        ...

    async def trouble(self, kind: Trouble) -> None:
        """The next message of ours meets this."""
        ...

    async def drop(self) -> None:
        """The connection is lost."""
        ...

    async def refuse(self) -> None:
        """From now on the platform does not let us in."""
        ...

    def address(self, conversation: str) -> str:
        """The conversation's name as the platform has it; for one where somebody wrote before."""
        ...


class RecordingDoor:
    """The door of a test: it keeps what was handed over, and can be told to fail like a store that
    is away.
    """

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.me: Me | None = None
        self.cursor = ""
        self.failing = 0
        self.connects = 0
        self._news = asyncio.Condition()

    async def connected(self, me: Me) -> None:
        async with self._news:
            self.me = me
            self.connects += 1
            self._news.notify_all()

    async def take(self, message: Inbound, *, cursor: str | None = None) -> TakenMessage:
        if self.failing:
            self.failing -= 1
            raise ConnectionError("the store is away")
        async with self._news:
            known = [each.native_id for each in self.messages]
            self.messages.append(message)
            self.cursor = cursor if cursor is not None else self.cursor
            self._news.notify_all()
        return TakenMessage(f"m{len(self.messages)}", message.native_id in known)

    async def remember(self, cursor: str) -> None:
        async with self._news:
            self.cursor = cursor
            self._news.notify_all()

    async def recall(self) -> str:
        return self.cursor

    def alive(self) -> None:
        pass

    async def until(self, enough: Callable[["RecordingDoor"], bool], seconds: float = 30) -> None:
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: enough(self)), seconds)


@dataclass
class LoopbackWorld:
    connector: Loopback
    platform: Platform
    quirks: frozenset[Quirk] = frozenset({"no_echo"})
    said: list[Inbound] = field(default_factory=list)

    async def say(
        self,
        text: str,
        *,
        sender: str = "anna",
        conversation: str = "team",
        direct: bool = False,
        thread: str = "",
        files: tuple[InboundFile, ...] = (),
        everyone: bool = False,
    ) -> None:
        message = Inbound(
            native_id=f"n{len(self.said)}",
            conversation=f"dm-{sender}" if direct else conversation,
            sender=Sender(sender, sender.capitalize()),
            text=text,
            thread=thread,
            files=files,
            is_direct=direct,
            mentions_everyone=everyone,
        )
        self.said.append(message)
        self.platform.say(message)

    async def deliver_again(self) -> None:
        self.platform.say(self.said[-1])

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        assert value in [button.value for button in post.buttons]
        pressed = Inbound(
            native_id=f"p{len(self.said)}",
            conversation=post.conversation,
            sender=Sender(sender, sender.capitalize()),
            text=value,
            thread=post.thread,
            pressed=True,
        )
        self.said.append(pressed)
        self.platform.say(pressed)

    async def posts(self) -> list[Post]:
        return [
            Post(
                each.native_id,
                each.out.conversation,
                each.text,
                each.out.thread,
                each.out.buttons if not each.edits else (),
                each.out.files,
                each.out.ping_everyone,
            )
            for each in self.platform.posted
        ]

    async def marks(self) -> list[tuple[str, Mark]]:
        texts = {each.native_id: each.text for each in self.said}
        return [(texts[native_id], mark) for _, native_id, mark in self.platform.marks]

    async def typed(self) -> int:
        return len(self.platform.typed)

    async def trouble(self, kind: Trouble) -> None:
        if kind == "answer_lost":
            self.platform.lose_answers = 1
            return
        errors = {
            "rate_limit": SendFailed("slow down", retry_after_ms=40),
            "gone": SendFailed("this conversation is gone", permanent=True),
            "overloaded": SendFailed("try again later"),
        }

        def once(_: object) -> None:
            self.platform.trouble = lambda out: None
            raise errors[kind]

        self.platform.trouble = once

    async def drop(self) -> None:
        self.platform.drop()

    async def refuse(self) -> None:
        self.platform.refuses = "the token was revoked: make another"
        self.platform.drop()

    def address(self, conversation: str) -> str:
        return conversation


@asynccontextmanager
async def loopback_world(folder: Path) -> AsyncIterator[World]:
    name = f"{folder}/contract"
    platform = loopback.platform(name)
    connector = Loopback("loop", platform)
    yield LoopbackWorld(connector, platform)
    await connector.close()
    loopback.forget(name)


# Where each world's factory lies; it is imported when its connector is tried.
WORLDS: dict[str, str] = {
    "discord": "tests.discord_world:world",
    "email": "tests.email_world:mailing",
    "loopback": "tests.connectors:loopback_world",
    "matrix": "tests.matrix_world:matrix",
    "telegram": "tests.telegram_world:telegram",
    "slack": "tests.slack_world:world",
    "webhook": "tests.webhook_world:webhook",
}


def world(name: str, folder: Path) -> AbstractAsyncContextManager[World]:
    module, _, attribute = WORLDS[name].partition(":")
    made: AbstractAsyncContextManager[World] = getattr(import_module(module), attribute)(folder)
    return made
