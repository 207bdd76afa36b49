"""Views of channels for whoever looks after them. Light: a daemon without channels has these shapes
and nothing else.
"""

from typing import Any, Literal

from msgspec import Struct

from palyra.features.channels.model import Decision, Rules
from palyra.features.channels.rows.messages import MessageStep, StoredMessage
from palyra.features.channels.rows.outbox import Reply

ConnectionState = Literal["connecting", "connected", "lost", "failed", "off"]


class ChatPlace(Struct, frozen=True):
    """A place where something is said."""

    connector: str
    conversation: str
    thread: str = ""


class ConnectionStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`heard_ms`: the last sign of life. `detail` says what is wrong and what to do."""

    state: ConnectionState
    detail: str = ""
    account: str = ""
    place: str = ""
    connects: int = 0
    since_ms: int = 0
    heard_ms: int = 0


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


class RoutingPreview(Struct, frozen=True, kw_only=True):
    """Preview of a message's routing, and as whom and where its sender would be heard."""

    decision: Decision
    principal: str
    acts_as: str
    standing: str
    session_key: str


class Trace(Struct, frozen=True, kw_only=True):
    message: StoredMessage
    steps: list[MessageStep]
    replies: list[Reply]


class Invitation(Struct, frozen=True):
    """The code is shown once; nobody can read it again."""

    pairing_id: str
    channel: str
    code: str
    expires_ms: int
