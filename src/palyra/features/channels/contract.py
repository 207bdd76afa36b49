"""The contract of every connector: what it must do, and what it may rely on. The suite in
tests/contract/channels/test_connector.py checks each one.

How to write a connector
------------------------
1. A folder `channels/<kind>/` with a class that has the members of `Connector`. It speaks the platform's protocol and nothing
   else: it routes nothing, stores nothing, knows no session, no policy and no model. It imports `palyra.features.channels` and
   `palyra.core` only.
2. Say in `features/channels/registry.py` what it is called and what it needs: one `Kind` with its settings, the permissions that it needs
   on the platform, in the words of the platform's own pages, and where to click. `palyra channels add` asks for exactly those
   settings. Heavy libraries are imported inside `make` or `serve`: a kind that nobody configured costs nothing.
3. `serve(door)` is one connection: connect, `await door.connected(...)`, hand over what comes, and return or raise `Lost`
   when the connection is gone. The supervisor calls it again, with backoff and jitter. A library that reconnects by itself
   may stay inside. `Refused` means that trying again will not help (a revoked token): the channel is then shown as failed,
   with that text.
4. Coming in: `await door.take(message, cursor=...)`. When it returns, the message is on disk; only then confirm it to the
   platform (ack, offset, read flag). Hand over everything, in order, also what you believe to be a duplicate: `native_id`
   decides, so make it unique within the connector (`conversation/message` where the platform counts per conversation). What
   the agent itself wrote is not handed over. An edited message is a new one with an id of its own (`id#edit2`). A pressed
   button is an `Inbound` with `pressed=True` and the button's `value` as text. Files are read before `take`, up to
   `MOST_FILE_BYTES` each. Do not let taking hold up the answers to what is being sent: take in a task of its own, in order.
   `cursor` is what you need to go on after a restart (an offset, a sync token); it is stored in the same step as the message,
   and `await door.recall()` gives it back.
5. Going out: `send` gets text that fits `limits.text` already, with fences closed, and `@everyone` made harmless unless
   `ping_everyone` is set; also tell the platform so where it has a way (allowed_mentions). It returns when the platform has
   taken the message, with its id. `out.key` is the same for every attempt: pass it on where the platform knows such keys
   (nonce, client_msg_id, transaction id, Message-ID) and say so in `abilities.idempotent`; a message that may have been sent
   twice is then none. Raise `SendFailed` for everything that goes wrong and say what you know: `retry_after_ms` (a rate
   limit: this is no failed attempt), `permanent` (the conversation is gone), `maybe_sent` (the answer was lost on the way).
   Raise `Lost` if there is no connection. Calls of one conversation never overlap; those of different conversations do.
6. What the platform cannot do is False in `abilities`; the core then never asks for it (`edit`, `typing`, `acknowledge`),
   writes `approve ID` in place of buttons, and names files in place of sending them.
7. Add the connector with a fake of its platform to WORLDS in tests/connectors.py. The suite must pass unchanged.
"""  # noqa: E501

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct

from palyra.features.channels.message_splitter import LengthLimit
from palyra.features.channels.model import Button, Inbound

if TYPE_CHECKING:
    from palyra.features.channels.registry import ConfiguredChannel


@dataclass(frozen=True)
class ChannelSettings:
    """`notices_to` and `approvals_to` name where notices and approvals of other doors go."""

    channels: "Mapping[str, ConfiguredChannel]"
    router_on: bool = True
    notices_to: str = ""
    approvals_to: str = ""


MOST_FILE_BYTES = 16 << 20

Mark = Literal["seen", "done", "refused"]


class Abilities(Struct, frozen=True, kw_only=True):
    """Features of the platform beyond sending a text."""

    threads: bool = False
    edit: bool = False
    typing: bool = False
    acknowledge: bool = False
    buttons: bool = False
    files: bool = False
    # Sending with the same key again does nothing.
    idempotent: bool = False


class ConnectorLimits(Struct, frozen=True, kw_only=True):
    """Limits of one message, and of the rate of sending: `per_second` over all conversations,
    `apart_ms` in one of them.
    """

    text: LengthLimit = LengthLimit(4_000)
    files: int = 4
    file_bytes: int = 8 << 20
    per_second: float = 20.0
    apart_ms: int = 0


class OutFile(Struct, frozen=True):
    name: str
    data: bytes
    media_type: str = "application/octet-stream"


class OutgoingMessage(Struct, frozen=True, kw_only=True):
    """One message to be sent. `reply_to` is the native id of the message that it answers, if there
    is one.
    """

    key: str
    conversation: str
    text: str
    thread: str = ""
    reply_to: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[OutFile, ...] = ()
    ping_everyone: bool = False


class SentReceipt(Struct, frozen=True):
    """`duplicate`: the platform says that it had a message with this key already."""

    native_id: str = ""
    duplicate: bool = False


class Me(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent's identity on the platform. `names` are what people write to mention it, as
    `@palyra`.
    """

    account: str
    names: tuple[str, ...] = ()
    place: str = ""


class TakenMessage(Struct, frozen=True):
    message_id: str
    duplicate: bool = False


# However long a platform asks us to wait: a slip of theirs must not keep a channel silent for days.
LONGEST_RETRY_MS = 3_600_000


class Lost(Exception):
    """The connection is gone, or there is none. The supervisor connects again, not before
    `retry_after_ms`, or an hour.
    """

    def __init__(self, why: str, *, retry_after_ms: int = 0) -> None:
        super().__init__(why)
        self.retry_after_ms = min(retry_after_ms, LONGEST_RETRY_MS)


class ConnectionRefused(Exception):
    """The platform does not let us in, and trying again will not change that. The text says what to
    do.
    """


class SendFailed(Exception):
    """A message was not sent, as far as is known."""

    def __init__(
        self,
        why: str,
        *,
        retry_after_ms: int = 0,
        permanent: bool = False,
        maybe_sent: bool = False,
    ) -> None:
        super().__init__(why)
        self.retry_after_ms = min(retry_after_ms, LONGEST_RETRY_MS)
        self.permanent = permanent
        self.maybe_sent = maybe_sent


class Inbox(Protocol):
    """The interface given to a connector: the only way in."""

    async def connected(self, me: Me) -> None:
        """Say that the connection stands. What waits to be sent goes out from now on."""
        ...

    async def take(self, message: Inbound, *, cursor: str | None = None) -> TakenMessage:
        """Hand over one message. It is durable when this returns, and a duplicate changes
        nothing.
        """
        ...

    async def remember(self, cursor: str) -> None:
        """Store a cursor without a message."""
        ...

    async def recall(self) -> str:
        """The cursor that was stored last; empty if there is none."""
        ...

    def alive(self) -> None:
        """The connection gave a sign of life; call it on heartbeats and whatever else arrives."""
        ...


class Connector(Protocol):
    """One configured channel."""

    @property
    def name(self) -> str: ...

    @property
    def abilities(self) -> Abilities: ...

    @property
    def limits(self) -> ConnectorLimits: ...

    async def serve(self, door: Inbox) -> None:
        """One connection, until it ends. Cancelling ends it."""
        ...

    async def send(self, out: OutgoingMessage) -> SentReceipt: ...

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        """Put another text, without buttons, in place of a message that was sent."""
        ...

    async def typing(self, conversation: str, *, thread: str = "") -> None: ...

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        """Show on a message of somebody's that it was seen, is done, or was not taken."""
        ...

    async def test(self) -> Me:
        """Ask the platform who we are, without a connection. Raises Refused or Lost with what to
        do.
        """
        ...

    async def close(self) -> None: ...


class HookAnswer(Struct, frozen=True):
    status: int
    body: bytes = b""
    media_type: str = "application/json"


@runtime_checkable
class Hooked(Protocol):
    """A connector that is called over HTTP: POST /v1/channels/{channel}/hook. It checks who calls;
    nobody else has.
    """

    async def hook(self, headers: Mapping[str, str], body: bytes) -> HookAnswer: ...


class Setting(Struct, frozen=True, kw_only=True):
    """One thing that a kind needs to know. A secret is given by reference (vault:, env:, file:),
    never by value.
    """

    name: str
    words: str
    secret: bool = False
    required: bool = True
    default: str = ""
    # It names the server that the secrets are sent to, as a host, host:port or address.
    server: bool = False


@dataclass(frozen=True)
class ConnectorSettings:
    """Settings from which a connector is made: its name, and its settings with every reference
    resolved.
    """

    name: str
    settings: Mapping[str, str]
    # A wall clock in milliseconds, for signatures and the like.
    now_ms: Callable[[], int]
    # A page of HTML as text, without what its reader would not see.
    readable: Callable[[str], str] = str


@dataclass(frozen=True, kw_only=True)
class ConnectorKind:
    """`make` is called when a channel of this kind is configured, and imports what it needs then.

    `permissions` are what the account must be allowed on the platform; `steps` is how to set it up,
    one step a line.
    """

    name: str
    title: str
    make: Callable[[ConnectorSettings], Connector]
    settings: tuple[Setting, ...] = ()
    permissions: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    docs: str = ""
    # Not shown to people who add a channel.
    hidden: bool = field(default=False)
