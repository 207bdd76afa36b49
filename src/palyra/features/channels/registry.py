"""Which channels there are and what each lets in: the configuration, and what was changed over it
while the daemon runs.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput, NotFound
from palyra.features.channels.model import Rules
from palyra.features.channels.rows import messages
from palyra.features.channels.rows.messages import MessageChange
from palyra.store.database import Tx

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
