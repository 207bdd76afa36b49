"""Written by scripts/clients.py from the route table: types of the verbs about vault."""

from typing import Literal

from msgspec import Struct

__all__ = ["KeyRotated", "Secret", "VaultState"]


class Secret(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Secret as a listing shows it. `size` is a class, not a length: short below 16 characters,
    medium below 64, long.
    """

    scope: str
    name: str
    size: Literal["long", "medium", "short"]
    hosts: tuple[str, ...]
    tools: tuple[str, ...]
    created_ms: int
    updated_ms: int
    used_ms: int = 0
    readable: bool = True


class VaultState(Struct, frozen=True, kw_only=True):
    """`why` says why it is locked and what to do."""

    state: Literal["empty", "locked", "open"]
    why: str
    secrets: list[Secret]


class KeyRotated(Struct, frozen=True, kw_only=True):
    """Number of secrets that were sealed again."""

    secrets: int
