"""A platform inside this process: a hub of conversations that keeps what was said, and a connector
to it.

It is for the contract suite, for tests and for trying channels out. It does everything that a
platform can do to a connector: it drops connections, sends twice, refuses, limits, and loses the
answer to a message that it took.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from palyra.features.channels.contract import (
    Abilities,
    ConnectionRefused,
    ConnectorKind,
    ConnectorLimits,
    ConnectorSettings,
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
from palyra.features.channels.model import Inbound

ACCOUNT = "palyra"
ROOMY = ConnectorLimits(text=LengthLimit(2_000), per_second=10_000.0)
EVERYTHING = Abilities(
    threads=True,
    edit=True,
    typing=True,
    acknowledge=True,
    buttons=True,
    files=True,
    idempotent=True,
)


@dataclass
class LoopbackMessage:
    """A message of ours, as the platform shows it."""

    native_id: str
    out: OutgoingMessage
    text: str
    edits: int = 0


@dataclass
class Platform:
    """One such platform. Tests take hold of it by its name with `platform()`."""

    abilities: Abilities = EVERYTHING
    limits: ConnectorLimits = ROOMY
    posted: list[LoopbackMessage] = field(default_factory=list)
    marks: list[tuple[str, str, Mark]] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    # What has come and was not taken yet; it survives the connection, as it does on a real
    # platform.
    waiting: list[Inbound] = field(default_factory=list)
    refuses: str = ""
    # Asked before each message is taken: raises what is to go wrong with it.
    trouble: Callable[[OutgoingMessage], None] = lambda out: None
    # Takes the message and loses the answer, for so many messages.
    lose_answers: int = 0
    connections: int = 0
    keys: dict[str, str] = field(default_factory=dict)
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _dropped: asyncio.Event = field(default_factory=asyncio.Event)
    _said: asyncio.Condition = field(default_factory=asyncio.Condition)

    def say(self, *messages: Inbound) -> None:
        self.waiting += messages
        self._came.set()

    def drop(self) -> None:
        """Lose the connection that stands."""
        self._dropped.set()

    async def until(self, enough: Callable[["Platform"], bool], seconds: float = 20) -> None:
        """Wait until something of ours has arrived such that it is enough."""
        async with self._said:
            await asyncio.wait_for(self._said.wait_for(lambda: enough(self)), seconds)

    async def took(self) -> None:
        async with self._said:
            self._said.notify_all()


_PLATFORMS: dict[str, Platform] = {}


def platform(name: str) -> Platform:
    """The platform of this name in this process."""
    return _PLATFORMS.setdefault(name, Platform())


def forget(name: str) -> None:
    _PLATFORMS.pop(name, None)


class Loopback:
    def __init__(self, name: str, world: Platform) -> None:
        self._name = name
        self._world = world
        self._up = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def abilities(self) -> Abilities:
        return self._world.abilities

    @property
    def limits(self) -> ConnectorLimits:
        return self._world.limits

    async def serve(self, door: Inbox) -> None:
        world = self._world
        if world.refuses:
            raise ConnectionRefused(world.refuses)
        world.connections += 1
        world._dropped.clear()
        self._up = True
        try:
            await door.connected(Me(account=ACCOUNT, names=(f"@{ACCOUNT}",), place="this process"))
            while not world._dropped.is_set():
                while world.waiting and not world._dropped.is_set():
                    message = world.waiting[0]
                    await door.take(message, cursor=message.native_id)
                    # Taken away only now: until then the platform would deliver it again.
                    if world.waiting and world.waiting[0] is message:
                        del world.waiting[0]
                    await world.took()
                world._came.clear()
                if not world.waiting:
                    await self._news()
            raise Lost("the connection was dropped")
        finally:
            self._up = False

    async def _news(self) -> None:
        waits = [
            asyncio.ensure_future(event.wait())
            for event in (self._world._came, self._world._dropped)
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        world = self._world
        if not self._up:
            raise Lost("not connected")
        if world.limits.text.of(out.text) > world.limits.text.size:
            raise SendFailed("the text is too long for this platform", permanent=True)
        known = world.keys.get(out.key) if world.abilities.idempotent else None
        if known is not None:
            return SentReceipt(known, duplicate=True)
        world.trouble(out)
        native_id = f"out-{len(world.posted) + 1}"
        world.posted.append(LoopbackMessage(native_id, out, out.text))
        world.keys[out.key] = native_id
        await world.took()
        if world.lose_answers > 0:
            world.lose_answers -= 1
            raise SendFailed("the answer was lost on the way", maybe_sent=True)
        return SentReceipt(native_id)

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        for posted in self._world.posted:
            if posted.native_id == native_id and posted.out.conversation == conversation:
                posted.text = text
                posted.edits += 1
                await self._world.took()
                return
        raise SendFailed(f"there is no message {native_id}", permanent=True)

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        self._world.typed.append(conversation)

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        self._world.marks.append((conversation, native_id, mark))

    async def test(self) -> Me:
        if self._world.refuses:
            raise ConnectionRefused(self._world.refuses)
        return Me(account=ACCOUNT, names=(f"@{ACCOUNT}",), place="this process")

    async def close(self) -> None:
        self._up = False


def _make(given: ConnectorSettings) -> Loopback:
    settings: Mapping[str, str] = given.settings
    return Loopback(given.name, platform(settings.get("platform") or given.name))


KIND = ConnectorKind(
    name="loopback",
    title="Loopback (inside the daemon, for tests)",
    make=_make,
    settings=(
        Setting(name="platform", words="name of the platform inside this process", required=False),
    ),
    steps=("Nothing to set up: messages go round inside the daemon.",),
    hidden=True,
)
