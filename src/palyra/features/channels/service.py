"""The channels of this daemon as one part: which there are, what they do, and the verbs of whoever
answers for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError, Unavailable
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.signals import Signal
from palyra.features.channels import registry
from palyra.features.channels.approval_prompts import ApprovalPrompts
from palyra.features.channels.connections import Connections
from palyra.features.channels.contract import (
    ConnectionRefused,
    Connector,
    ConnectorSettings,
    HookAnswer,
    Hooked,
    Lost,
    Me,
)
from palyra.features.channels.intake import Intake
from palyra.features.channels.model import Inbound, Rules
from palyra.features.channels.notice_forwarding import Telling
from palyra.features.channels.outbox import Outbox, Posting
from palyra.features.channels.pairing import PairingDesk
from palyra.features.channels.registry import ROUTER, Book, ConfiguredChannel, with_changes
from palyra.features.channels.rows import messages as messages_rows
from palyra.features.channels.rows import outbox as outbox_rows
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.rows.outbox import Reply, SentFile
from palyra.features.channels.run_bridge import Submitting
from palyra.features.channels.views import (
    ChannelStatus,
    ChatPlace,
    ConnectionStatus,
    RoutingPreview,
    Trace,
)
from palyra.store import rights, tape
from palyra.store.database import Appended, Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

_TEST_S = 20.0
LookUp = Callable[[str, str, Sequence[str]], Awaitable[str]]


class Channels:
    """`look_up` gives the value behind a setting that refers to a secret: its channel, the
    reference, and the servers it goes to.

    `offer` is told on which channels the agent can send messages from now on.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        redactor: Redactor,
        book: Book,
        posting: Posting,
        desk: PairingDesk,
        submitting: Submitting,
        asking: ApprovalPrompts,
        intake: Intake,
        connections: Connections,
        outbox: Outbox,
        telling: Telling,
        look_up: LookUp,
        committed: Signal[[list[Appended]]],
        offer: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor
        self._book = book
        self._posting = posting
        self.desk = desk
        self._submitting = submitting
        self.asking = asking
        self.intake = intake
        self.connections = connections
        self.outbox = outbox
        self._telling = telling
        self._look_up = look_up
        self._committed = committed
        self._offer = offer
        self._changing = asyncio.Lock()
        self._opened: dict[str, ConfiguredChannel] = {}
        self._failed: dict[str, str] = {}
        self._started = False

    @property
    def names(self) -> tuple[str, ...]:
        return self._book.names

    async def apply(
        self,
        configured: Mapping[str, ConfiguredChannel],
        *,
        router_on: bool = True,
        notices_to: str = "",
        approvals_to: str = "",
    ) -> None:
        """Use exactly these channels from now on. Those that are as before stay connected; nobody
        waits for one to connect.

        `notices_to`: the `channel/conversation` that gets what the owner is told. `approvals_to`:
        the one that gets what the owner's runs ask that nobody in a chat began.
        """
        async with self._changing:
            if configured and not self._started:
                self._book.read(await self._db.read(messages_rows.changed))
            self._book.configure(configured, router_on=router_on)
            self._offer(tuple(name for name, channel in configured.items() if channel.enabled))
            for name, before in list(self._opened.items()):
                after = configured.get(name)
                if after is None or not after.enabled or _way(after) != _way(before):
                    del self._opened[name]
                    await self.connections.shut(name)
            self._failed = {}
            for name, channel in configured.items():
                if channel.enabled and name not in self._opened:
                    await self._open(channel)
            if configured and not self._started:
                # Before anything new comes in: what came before it goes first.
                self._started = True
                await self._start()
            await self._telling.use(notices_to if configured else "")
            await self.asking.use(approvals_to if configured else "")
            self.connections.begin()
            self.connections.changed()
            self.outbox.look()

    async def _open(self, channel: ConfiguredChannel) -> None:
        try:
            connector = await self._made(channel)
        except PalyraError as error:
            self._failed[channel.name] = error.message
            return
        self._opened[channel.name] = channel
        self.connections.add(connector)

    async def _made(self, channel: ConfiguredChannel) -> Connector:
        kind = registry.find(channel.kind)
        known = {setting.name: setting for setting in kind.settings}
        unknown = sorted(set(channel.settings) - set(known))
        missing = sorted(
            name for name, each in known.items() if each.required and not channel.settings.get(name)
        )
        if unknown or missing:
            wrong = (
                f"it has no setting {', '.join(unknown)}"
                if unknown
                else f"it needs {', '.join(missing)}"
            )
            raise InvalidInput(
                f"channel {channel.name} of kind {kind.name}: {wrong}", channel=channel.name
            )
        values = {name: channel.settings.get(name, each.default) for name, each in known.items()}
        # A secret that is for certain hosts must be for every server that this channel sends it to.
        servers = tuple(
            _host(values[name]) for name, each in known.items() if each.server and values[name]
        )
        for name in channel.settings:
            if known[name].secret:
                values[name] = await self._look_up(channel.name, values[name], servers)
        return kind.make(ConnectorSettings(channel.name, values, self._clock.now_ms, readable))

    async def _start(self) -> None:
        """Go on with what was unfinished: answers first, then what was not given to the agent
        yet.
        """
        self.outbox.start()
        self._committed.connect(self._submitting.heard)
        await self._submitting.recover()
        await self.asking.recover(self._submitting.pending)
        await self.intake.recover()

    async def close(self) -> None:
        if not self._started:
            return
        await self._telling.close()
        await self.connections.close()
        await self.intake.close()
        await self.asking.close()
        await self._submitting.close()
        await self.outbox.close()

    async def listing(self) -> list[ChannelStatus]:
        return [await self.status(name) for name in self._book.names]

    async def status(self, name: str) -> ChannelStatus:
        channel = self._book.get(name)
        messages, outbox = await self._db.read(
            lambda tx: (messages_rows.by_state(tx, name), outbox_rows.by_state(tx, name))
        )
        connection = self.connections.status(name)
        if name in self._failed:
            connection = ConnectionStatus(state="failed", detail=self._failed[name])
        return ChannelStatus(
            name=name,
            kind=channel.kind,
            enabled=channel.enabled,
            paused=self._book.is_paused(name),
            connection=connection,
            rules=self._book.rules(name),
            changed=self._book.overrides(name),
            messages=messages,
            outbox=outbox,
        )

    def away(self) -> list[tuple[str, str]]:
        """Channels that should be connected and are not, and why."""
        found = []
        for name in self._book.names:
            now = self.connections.status(name)
            if name in self._failed:
                found.append((name, self._failed[name]))
            elif self._book.get(name).enabled and now.state != "connected":
                found.append((name, now.detail or now.state))
        return found

    async def preview(self, name: str, message: Inbound) -> RoutingPreview:
        """Return what would become of a message if it came now. Nothing is done."""
        self._book.get(name)
        called = self.connections.called(name)
        look = partial(
            registry.look, book=self._book, connector=name, called=called, message=message
        )
        routed = await self._db.read(look)
        who = routed.who
        return RoutingPreview(
            decision=routed.decision,
            principal=who.principal,
            acts_as=who.acts_as,
            standing=who.standing,
            session_key=who.session_key,
        )

    async def trace(self, message_id: str) -> Trace:
        """Return what happened to a message, step by step; by its id, or by `channel:native id`."""

        def query(tx: Tx) -> Trace:
            channel, colon, native = message_id.partition(":")
            message = messages_rows.by_native_id(tx, channel, native) if colon else None
            message = message or messages_rows.get(tx, message_id)
            first = messages_rows.of_run(tx, message.run_id)[:1]
            about = message.message_id
            replies = outbox_rows.of_message(tx, about) or [
                each for other in first for each in outbox_rows.of_message(tx, other.message_id)
            ]
            return Trace(message=message, steps=messages_rows.steps(tx, about), replies=replies)

        return await self._db.read(query)

    async def messages(
        self, *, channel: str = "", state: str = "", before: int = 0, limit: int = 100
    ) -> list[StoredMessage]:
        look = partial(
            messages_rows.listing,
            connector=channel,
            state=state,
            before=before or 1 << 62,
            limit=limit,
        )
        return await self._db.read(look)

    async def dead(self, channel: str = "", limit: int = 100) -> list[Reply]:
        return await self._db.read(partial(outbox_rows.dead, connector=channel, limit=limit))

    async def pause(self, by: str, name: str, *, paused: bool) -> ChannelStatus | None:
        """Take nothing in and send nothing out on a channel, or go on; an empty name is all of
        them.
        """
        if name != ROUTER:
            self._book.get(name)

        def step(tx: Tx) -> dict[str, messages_rows.MessageChange]:
            action = "paused" if paused else "resumed"
            told = _record(tx, by, action, name or rights.ALL_CHANNELS)
            messages_rows.pause(tx, name, paused=paused, entry=told)
            return messages_rows.changed(tx)

        self._book.read(await self._db.write(step))
        self.connections.changed()
        return await self.status(name) if name != ROUTER else None

    async def change_rules(self, by: str, name: str, changes: Mapping[str, Any]) -> ChannelStatus:
        """Change some rules, from now on and over what the file says. A rule that is null is as in
        the file again.
        """
        channel = self._book.get(name)

        def step(tx: Tx) -> dict[str, messages_rows.MessageChange]:
            # In the step: somebody else may be changing another rule.
            before = messages_rows.changed(tx).get(name, messages_rows.MessageChange())
            over = {
                key: value
                for key, value in {**before.rules, **changes}.items()
                if value is not None
            }
            rules = with_changes(channel.rules, over)
            if not 1 <= rules.concurrency <= 1_000 or rules.per_minute < 1 or rules.waiting < 1:
                raise InvalidInput("concurrency, per_minute and waiting are numbers from 1 up")
            told = _record(tx, by, "rules changed", name, changes=dict(changes))
            messages_rows.set_rules(tx, name, over, told)
            return messages_rows.changed(tx)

        self._book.read(await self._db.write(step))
        return await self.status(name)

    async def replay(self, by: str, reply_id: str) -> list[Reply]:
        """Send a dead letter again."""

        def step(tx: Tx) -> list[Reply]:
            replies = outbox_rows.replay(tx, reply_id)
            _record(tx, by, "dead letter sent again", reply_id)
            return replies

        replies = await self._db.write(step)
        self.outbox.again(replies)
        return replies

    async def drop(self, by: str, reply_id: str) -> list[Reply]:
        """Give a dead letter up for good."""

        def step(tx: Tx) -> list[Reply]:
            replies = outbox_rows.drop(tx, reply_id)
            _record(tx, by, "dead letter dropped", reply_id)
            return replies

        return await self._db.write(step)

    async def reconnect(self, by: str, name: str) -> ChannelStatus:
        channel = self._book.get(name)
        if not channel.enabled:
            raise Conflict(
                f"the channel {name} is not enabled: palyra config set channels.{name}.enabled true"
            )
        await self._db.write(partial(_record, by=by, action="reconnected", subject=name))
        async with self._changing:
            self._opened.pop(name, None)
            self._failed.pop(name, None)
            await self.connections.shut(name)
            await self._open(channel)
            self.connections.begin()
        return await self.status(name)

    async def test(self, name: str) -> Me:
        """Ask the platform who we are."""
        connector = self.connections.connector(name)
        if connector is None:
            connector = await self._made(self._book.get(name))
        try:
            async with asyncio.timeout(_TEST_S):
                return await connector.test()
        except (ConnectionRefused, Lost) as error:
            raise Unavailable(
                f"the channel {name} cannot be used: {self._redactor.redact_head(str(error), 500)}"
            ) from error
        except TimeoutError:
            raise Unavailable(f"the channel {name} did not answer within {_TEST_S:g} s") from None

    async def say(
        self,
        by: str,
        place: ChatPlace,
        text: str,
        *,
        files: tuple[SentFile, ...] = (),
        reply_id: str = "",
    ) -> str:
        """Put a message of the daemon's own accord into the outbox; gives the id under which it is
        sent.
        """
        self._book.get(place.connector)
        post = partial(
            self._posting.post,
            place=place,
            text=text,
            kind="message",
            files=files,
            reply_id=reply_id,
        )
        return await self._db.write(lambda tx: post(tx))

    async def hook(self, name: str, headers: Mapping[str, str], body: bytes) -> HookAnswer:
        """A platform calls over HTTP; its connector knows whether to believe it."""
        connector: object = self.connections.connector(name)
        if not isinstance(connector, Hooked):
            raise NotFound("there is no such channel that is called over HTTP")
        return await connector.hook(headers, body)


def _way(channel: ConfiguredChannel) -> ConfiguredChannel:
    """Return what a connection depends on: rules can change under it."""
    return msgspec.structs.replace(channel, rules=Rules(), approvals_to="", workspace="")


def _host(server: str) -> str:
    """Return the host of a setting that names a server: an address, host:port or a host."""
    return urlsplit(server if "://" in server else f"//{server}").hostname or server


def readable(page: str) -> str:
    """HTML that somebody sent, read as a page of the web is: what is hidden in it is left out."""
    from palyra.tools.net import urls
    from palyra.tools.web.page_text import prose

    return prose(page, urls.parse("https://mail.invalid/"))[1]


def _record(tx: Tx, by: str, action: str, subject: str, **details: Any) -> int:
    """Append what was done, and return the position of that."""
    (entry,) = tape.append(
        tx,
        SYSTEM_TAPE,
        by,
        [AdminChanged(what="channel", action=action, subject=subject, details=details)],
    )
    return entry.position
