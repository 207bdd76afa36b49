"""What the daemon says about channels, as far as the command line shows it."""

from typing import Any

from msgspec import Struct

from palyra.features.channels.rows.messages import MessageStep, StoredMessage
from palyra.features.channels.rows.outbox import Reply
from palyra.features.channels.rows.people import Pairing, Person


class Connection(Struct):
    state: str
    detail: str = ""
    account: str = ""
    place: str = ""
    connects: int = 0
    since_ms: int = 0


class Status(Struct):
    name: str
    kind: str
    enabled: bool
    paused: bool
    connection: Connection
    rules: dict[str, Any]
    changed: dict[str, Any]
    messages: dict[str, int]
    outbox: dict[str, int]


class Statuses(Struct):
    channels: list[Status]


class Check(Struct):
    reason: str
    passed: bool
    found: str = ""


class Decision(Struct):
    accepted: bool
    reason: str
    sentence: str
    checks: list[Check]


class Preview(Struct):
    decision: Decision
    principal: str
    acts_as: str
    standing: str
    session_key: str


class Trace(Struct):
    message: StoredMessage
    steps: list[MessageStep]
    replies: list[Reply]


class Messages(Struct):
    messages: list[StoredMessage]


class Replies(Struct):
    replies: list[Reply]


class Pairings(Struct):
    pairings: list[Pairing]


class Settled(Struct):
    person: Person | None = None
    pairing: Pairing | None = None


class People(Struct):
    people: list[Person]


class Invitation(Struct):
    pairing_id: str
    channel: str
    code: str
    expires_ms: int


class Me(Struct):
    account: str
    names: tuple[str, ...] = ()
    place: str = ""


class Tested(Struct):
    me: Me
    reply_id: str = ""
