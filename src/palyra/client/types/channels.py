"""Written by scripts/clients.py from the route table: types of the verbs about channels."""

from typing import Any, Literal

from msgspec import Struct

from palyra.client.types.approvals import Approval

__all__ = [
    "Approval",
    "Body",
    "Button",
    "ChannelList",
    "ChannelStatus",
    "ChannelsCheck",
    "ChannelsKindList",
    "ConnectionStatus",
    "DeadLetters",
    "Decision",
    "Inbound",
    "InboundFile",
    "Invitation",
    "KindInfo",
    "Me",
    "Message",
    "MessagePage",
    "Pairing",
    "PairingList",
    "People",
    "Person",
    "Reply",
    "Rules",
    "Sender",
    "SentFile",
    "Setting",
    "Settled",
    "ShapesPreview",
    "Step",
    "Tested",
    "Trace",
]


class ConnectionStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`heard_ms`: the last sign of life. `detail` says what is wrong and what to do."""

    state: Literal["connected", "connecting", "failed", "lost", "off"]
    detail: str = ""
    account: str = ""
    place: str = ""
    connects: int = 0
    since_ms: int = 0
    heard_ms: int = 0


class Rules(Struct, frozen=True, kw_only=True):
    """Admission rules of one channel. Senders are named by their handle."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    direct: Literal["allow", "deny", "pairing"] = "pairing"
    groups: Literal["allow", "paired"] = "paired"
    mention: bool = True
    names: tuple[str, ...] = ("@palyra",)
    broadcast: Literal["allow", "deny", "mention_only"] = "mention_only"
    isolate_session_by_sender: bool = True
    per_minute: int = 30
    waiting: int = 8
    concurrency: int = 8


class ChannelStatus(Struct, frozen=True, kw_only=True):
    """`messages` and `outbox` count what there is in each state; what was sent is not counted."""

    name: str
    kind: str
    enabled: bool
    paused: bool
    connection: ConnectionStatus
    rules: Rules
    changed: dict[str, Any]
    messages: dict[str, int] = {}
    outbox: dict[str, int] = {}


class ChannelList(Struct, frozen=True, kw_only=True):
    channels: list[ChannelStatus]


class Setting(Struct, frozen=True, kw_only=True):
    """One thing that a kind needs to know. A secret is given by reference (vault:, env:, file:),
    never by value.
    """

    name: str
    words: str
    secret: bool = False
    required: bool = True
    default: str = ""
    server: bool = False


class KindInfo(Struct, frozen=True, kw_only=True):
    """Requirements of a kind of channel: its settings, the permissions on its platform, and how to
    set it up.
    """

    name: str
    title: str
    settings: tuple[Setting, ...]
    permissions: tuple[str, ...]
    steps: tuple[str, ...]
    docs: str


class ChannelsKindList(Struct, frozen=True, kw_only=True):
    kinds: list[KindInfo]


class Sender(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`handle` is the platform's own, stable name for the account. `verified`: the platform vouches
    that it is theirs.
    """

    handle: str
    display: str = ""
    verified: bool = True


class InboundFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    data: bytes
    media_type: str = ""


class Inbound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message as a connector hands it over. `native_id` is unique within the connector: by it a
    duplicate is recognised.
    """

    native_id: str
    conversation: str
    sender: Sender
    text: str = ""
    thread: str = ""
    files: tuple[InboundFile, ...] = ()
    is_direct: bool = False
    mentions_agent: bool = False
    mentions_everyone: bool = False
    reply_to: str = ""
    pressed: bool = False
    sent_ms: int = 0
    forwarded: bool = False
    title: str = ""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`inbound` is what came, without its files; `files` says how many there are."""

    number: int
    message_id: str
    connector: str
    conversation: str
    thread: str = ""
    sender: str
    state: Literal["answered", "failed", "held", "queued", "received", "refused"]
    reason: str = ""
    principal: str = ""
    session_id: str = ""
    run_id: str = ""
    files: int = 0
    received_ms: int
    ended_ms: int = 0
    inbound: Inbound


class MessagePage(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; 0: this was the last."""

    messages: list[Message]
    next: int = 0


class Step(Struct, frozen=True, kw_only=True):
    """One thing that happened to a message."""

    time_ms: int
    step: str
    detail: str = ""


class Button(Struct, frozen=True, kw_only=True):
    """`value` comes back as the text of a message when it is pressed."""

    label: str
    value: str
    style: Literal["bad", "good", "plain"] = "plain"


class SentFile(Struct, frozen=True, kw_only=True):
    """A file of a session that goes with a message."""

    session_id: str
    artifact: str
    name: str
    media_type: str = "application/octet-stream"


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`edits` is the reply whose text this one replaces."""

    text: str
    reply_to: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[SentFile, ...] = ()
    ping_everyone: bool = False
    edits: str = ""


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message to a chat. `message_id`: what it answers, if it does."""

    number: int
    reply_id: str
    part: int
    parts: int
    message_id: str = ""
    connector: str
    conversation: str
    thread: str = ""
    kind: Literal["answer", "approval", "command", "edit", "failure", "message", "pairing", "told"]
    state: Literal["dead", "dropped", "sending", "sent", "waiting"]
    attempts: int = 0
    ready_ms: int = 0
    error: str = ""
    native_id: str = ""
    doubtful: bool = False
    created_ms: int
    ended_ms: int = 0
    body: Body


class Trace(Struct, frozen=True, kw_only=True):
    message: Message
    steps: list[Step]
    replies: list[Reply]


class DeadLetters(Struct, frozen=True, kw_only=True):
    replies: list[Reply]


class Pairing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A code that waits, or what became of it. A `request` is a stranger's; an `invitation` is
    given to somebody by the owner.
    """

    pairing_id: str
    connector: str
    kind: Literal["invitation", "request"]
    sender: str = ""
    display: str = ""
    conversation: str = ""
    thread: str = ""
    state: Literal["approved", "denied", "expired", "pending", "replaced"]
    grant_ms: int = 0
    created_ms: int
    expires_ms: int
    settled_ms: int = 0
    settled_by: str = ""


class PairingList(Struct, frozen=True, kw_only=True):
    pairings: list[Pairing]


class Person(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sender. `principal` is the person of the daemon whose identity it is, if it was linked."""

    connector: str
    sender: str
    display: str = ""
    principal: str = ""
    paired_ms: int = 0
    paired_until_ms: int = 0
    revoked_ms: int = 0
    granted_by: str = ""
    conversation: str = ""
    seen_ms: int = 0


class Settled(Struct, frozen=True, kw_only=True):
    person: Person | None = None
    pairing: Pairing | None = None


class Invitation(Struct, frozen=True, kw_only=True):
    """The code is shown once; nobody can read it again."""

    pairing_id: str
    channel: str
    code: str
    expires_ms: int


class People(Struct, frozen=True, kw_only=True):
    people: list[Person]


class ChannelsCheck(Struct, frozen=True, kw_only=True):
    """One step of a decision: which, whether it was passed, and what it found."""

    reason: Literal[
        "accepted",
        "broadcast_denied",
        "channel_off",
        "direct_denied",
        "empty",
        "no_mention",
        "not_allow_listed",
        "over_limit",
        "oversized",
        "pairing_required",
        "router_off",
        "sender_denied",
    ]
    passed: bool
    found: str = ""


class Decision(Struct, frozen=True, kw_only=True):
    accepted: bool
    reason: Literal[
        "accepted",
        "broadcast_denied",
        "channel_off",
        "direct_denied",
        "empty",
        "no_mention",
        "not_allow_listed",
        "over_limit",
        "oversized",
        "pairing_required",
        "router_off",
        "sender_denied",
    ]
    sentence: str
    checks: tuple[ChannelsCheck, ...] = ()


class ShapesPreview(Struct, frozen=True, kw_only=True):
    """Preview of a message's routing, and as whom and where its sender would be heard."""

    decision: Decision
    principal: str
    acts_as: str
    standing: str
    session_key: str


class Me(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent's identity on the platform. `names` are what people write to mention it, as
    `@palyra`.
    """

    account: str
    names: tuple[str, ...] = ()
    place: str = ""


class Tested(Struct, frozen=True, kw_only=True):
    me: Me
    reply_id: str = ""
