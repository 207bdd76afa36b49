"""Channels and what each lets in: the configuration, and what was changed over it while the daemon
runs.

Kinds of connectors. Each is one line here; what it needs is imported when somebody configures it.

Facts that a routing decision depends on, read in one moment of the store. Routing and preview read
them with the same function.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput, NotFound
from palyra.features.channels.contract import ConnectorKind
from palyra.features.channels.model import (
    Decision,
    Inbound,
    RoutingInput,
    Rules,
    Standing,
    decide,
    group_principal,
    is_heard,
    is_shared,
    principal_of,
    session_key,
)
from palyra.features.channels.rows import messages, people
from palyra.features.channels.rows.messages import MessageChange
from palyra.store.database import Tx

# Where each kind's `Kind` lies. Add yours.
_KINDS = {
    "discord": "palyra.features.channels.discord.settings:KIND",
    "email": "palyra.features.channels.email.settings:KIND",
    "loopback": "palyra.features.channels.loopback:KIND",
    "matrix": "palyra.features.channels.matrix.settings:KIND",
    "slack": "palyra.features.channels.slack.settings:KIND",
    "telegram": "palyra.features.channels.telegram.settings:KIND",
    "webhook": "palyra.features.channels.webhook:KIND",
}


def names() -> tuple[str, ...]:
    return tuple(_KINDS)


def find(name: str) -> ConnectorKind:
    place = _KINDS.get(name)
    if place is None:
        raise InvalidInput(
            f"there is no kind of channel {name[:32]!r}: there are {', '.join(sorted(_KINDS))}",
            kinds=sorted(_KINDS),
        )
    module, _, attribute = place.partition(":")
    kind: ConnectorKind = getattr(import_module(module), attribute)
    return kind


def everything() -> list[ConnectorKind]:
    """All kinds that a person may add."""
    return [kind for kind in map(find, _KINDS) if not kind.hidden]


ROUTER = ""


class ConfiguredChannel(Struct, frozen=True, kw_only=True):
    """One table `[channels.NAME]`. `settings` are the connector's own, secrets as references.

    `workspace`: the folder that people who are no users of the daemon work in; empty: none.
    `approvals_to`: where approvals of this channel are asked, as `channel/conversation`; empty:
    where the run was asked for, or the owner where they are.
    """

    name: str
    kind: str
    enabled: bool = True
    settings: dict[str, str] = {}
    rules: Rules = Rules()
    workspace: str = ""
    approvals_to: str = ""


class Book:
    def __init__(self) -> None:
        self._configured: dict[str, ConfiguredChannel] = {}
        self._changed: dict[str, MessageChange] = {}
        self._router_on = True

    def configure(self, configured: Mapping[str, ConfiguredChannel], *, router_on: bool) -> None:
        self._configured = dict(configured)
        self._router_on = router_on

    def read(self, changed: Mapping[str, MessageChange]) -> None:
        self._changed = dict(changed)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._configured)

    @property
    def router_on(self) -> bool:
        return self._router_on and not self._changed.get(ROUTER, MessageChange()).paused

    def get(self, name: str) -> ConfiguredChannel:
        found = self._configured.get(name)
        if found is None:
            known = (
                f"there are {', '.join(self._configured)}"
                if self._configured
                else "`palyra channels add` makes one"
            )
            raise NotFound(f"there is no channel {name[:64]!r}: {known}", channel=name[:64])
        return found

    def find(self, name: str) -> ConfiguredChannel | None:
        return self._configured.get(name)

    def is_on(self, name: str) -> bool:
        found = self._configured.get(name)
        return found is not None and found.enabled and not self.is_paused(name)

    def is_paused(self, name: str) -> bool:
        return self._changed.get(name, MessageChange()).paused

    def rules(self, name: str) -> Rules:
        """The rules in force: those of the file, with what was changed since."""
        found = self._configured.get(name)
        base = found.rules if found is not None else Rules()
        over = self._changed.get(name, MessageChange()).rules
        return with_changes(base, over) if over else base

    def overrides(self, name: str) -> dict[str, Any]:
        return dict(self._changed.get(name, MessageChange()).rules)


def with_changes(rules: Rules, changes: Mapping[str, Any]) -> Rules:
    """Rules with some of them changed; InvalidInput if they would be none."""
    try:
        return msgspec.convert({**msgspec.to_builtins(rules), **changes}, Rules)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"these are no rules for a channel: {error}") from error


class SessionChoice(Struct, frozen=True, omit_defaults=True):
    """`generation` counts how often the conversation was begun anew with `new`."""

    model: str = ""
    generation: int = 0


def chosen(tx: Tx, session_key: str) -> SessionChoice:
    stored = messages.rules_at(tx, _at(session_key))
    return msgspec.json.decode(stored, type=SessionChoice) if stored else SessionChoice()


def choose(tx: Tx, session_key: str, choice: SessionChoice) -> None:
    messages.set_rules(tx, _at(session_key), msgspec.to_builtins(choice))


def _at(session_key: str) -> str:
    # A channel's name has no colon.
    return f"at:{session_key}"


class Who(Struct, frozen=True, kw_only=True):
    """A sender, as far as we believe them: `principal` is theirs, `acts_as` is whose session and
    tools they use here.
    """

    principal: str
    acts_as: str
    standing: Standing
    session_key: str
    shared: bool

    @property
    def is_user(self) -> bool:
        """Return whether they act as a user of the daemon."""
        return self.acts_as.startswith("user:")


class Routed(Struct, frozen=True, kw_only=True):
    decision: Decision
    who: Who
    # Whether they would be heard if there were less of it.
    heard: bool = True


def look(
    tx: Tx, book: Book, connector: str, called: tuple[str, ...], message: Inbound, besides: str = ""
) -> Routed:
    """Decide about a message as things are now. `besides` is the message itself, if it is stored
    already.
    """
    rules = book.rules(connector)
    who = identify(tx, book, connector, message)
    recent, under_way = messages.counts(tx, connector, message.sender.handle, besides)
    facts = RoutingInput(
        router_on=book.router_on,
        channel_on=book.is_on(connector),
        standing=who.standing,
        recent=recent,
        under_way=under_way,
        called=called,
    )
    return Routed(
        decision=decide(message, rules, facts), who=who, heard=is_heard(message, rules, facts)
    )


def identify(tx: Tx, book: Book, connector: str, message: Inbound) -> Who:
    sender = message.sender
    person = people.find(tx, connector, sender.handle)
    own = str(principal_of(connector, sender.handle))
    # A name that anybody can write, as that of a mail, makes nobody the owner.
    standing: Standing = (
        person.standing(tx.now_ms) if person is not None and sender.verified else "stranger"
    )
    principal = person.principal if person is not None and standing == "person" else own
    shared = is_shared(message, book.rules(connector))
    acts_as = str(group_principal(connector, message.conversation)) if shared else principal
    key = session_key(connector, message.conversation, message.thread, principal, shared=shared)
    return Who(
        principal=principal, acts_as=acts_as, standing=standing, session_key=key, shared=shared
    )
