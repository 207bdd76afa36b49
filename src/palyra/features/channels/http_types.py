"""Bodies, queries and answers of the channels' routes."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from palyra.api.calls import (
    Count,
    Input,
    Limit,
)
from palyra.features.channels.contract import Me, Setting
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.rows.outbox import Reply
from palyra.features.channels.rows.people import Pairing, Person
from palyra.features.channels.views import (
    ChannelStatus,
)

_Name = Annotated[str, Meta(max_length=256)]
_LONGEST_GRANT_MS = 10 * 366 * 86_400_000


class ChannelList(Struct, frozen=True):
    channels: list[ChannelStatus]


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


class ConnectorKindList(Struct, frozen=True):
    kinds: list[KindInfo]


class MessagesQuery(Input, frozen=True, kw_only=True):
    channel: _Name = ""
    state: Literal["", "received", "held", "queued", "answered", "refused", "failed"] = ""
    before: Count = 0
    limit: Limit = 100


class MessagePage(Struct, frozen=True):
    """`next` is the `before` of the page behind this one; 0: this was the last."""

    messages: list[StoredMessage]
    next: int = 0


class Of(Input, frozen=True, kw_only=True):
    of: Annotated[str, Meta(min_length=1, max_length=512)]


class OfChannel(Input, frozen=True, kw_only=True):
    channel: _Name = ""


class DeadLetters(Struct, frozen=True):
    replies: list[Reply]


class PairingList(Struct, frozen=True):
    pairings: list[Pairing]


class SettlePairing(Input, frozen=True, kw_only=True):
    """`which` is a code, or a pairing's id. `for_ms`: for how long; 0: without end."""

    which: Annotated[str, Meta(max_length=64)]
    verb: Literal["approve", "deny"]
    for_ms: Annotated[int, Meta(ge=0, le=_LONGEST_GRANT_MS)] = 0


class Invite(Input, frozen=True, kw_only=True):
    channel: _Name
    for_ms: Annotated[int, Meta(ge=0, le=_LONGEST_GRANT_MS)] = 0


class Settled(Struct, frozen=True, kw_only=True):
    person: Person | None = None
    pairing: Pairing | None = None


class People(Struct, frozen=True):
    people: list[Person]


class ChangePerson(Input, frozen=True, kw_only=True):
    """`link` says whose identity a sender is: `principal` is a user; empty takes that back."""

    channel: _Name
    sender: Annotated[str, Meta(min_length=1, max_length=512)]
    verb: Literal["revoke", "link"]
    principal: _Name = ""


class RouteApproval(Input, frozen=True, kw_only=True):
    """Recipient of an approval: a person, who may then answer, or a conversation."""

    principal: _Name = ""
    channel: _Name = ""
    conversation: Annotated[str, Meta(max_length=512)] = ""


class Pause(Input, frozen=True, kw_only=True):
    paused: bool


class ChangeChannel(Input, frozen=True, kw_only=True):
    verb: Literal["pause", "resume", "reconnect"]


class ChangeRules(Input, frozen=True, kw_only=True):
    """Rules by name; null: as in the configuration file again."""

    changes: dict[str, Any]


class PreviewMessage(Input, frozen=True, kw_only=True):
    sender: Annotated[str, Meta(min_length=1, max_length=512)]
    text: Annotated[str, Meta(max_length=1 << 18)] = ""
    conversation: Annotated[str, Meta(max_length=512)] = "preview"
    thread: Annotated[str, Meta(max_length=512)] = ""
    direct: bool = False
    everyone: bool = False
    files: Annotated[int, Meta(ge=0, le=8)] = 0
    verified: bool = True


class TestChannel(Input, frozen=True, kw_only=True):
    """Test of a channel. With a conversation, a message is sent there too."""

    conversation: Annotated[str, Meta(max_length=512)] = ""
    text: Annotated[str, Meta(max_length=4_000)] = "This is a test message."


class Tested(Struct, frozen=True):
    me: Me
    reply_id: str = ""
