"""Written by scripts/clients.py from the route table: what the verbs about memory give and take."""

from typing import Literal

from msgspec import Struct

from palyra.features.memory.model import Found, Item, NewMemory

__all__ = [
    "Found",
    "Imported",
    "Item",
    "ItemPage",
    "MemoryStatus",
    "NewMemory",
    "Purged",
    "Searched",
]


class ItemPage(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; empty: this was the last."""

    items: list[Item]
    next: str = ""


class Searched(Struct, frozen=True, kw_only=True):
    """Results, best first. If no item's own part reaches the threshold, nothing of them is told to
    the agent.
    """

    found: list[Found]
    threshold: float
    words_only: str = ""


class MemoryStatus(Struct, frozen=True, kw_only=True):
    """How many items there are in each state, and how meanings are searched."""

    counts: dict[Literal["active", "forgotten", "rejected", "review", "superseded"], int]
    not_embedded: int
    words_only: str


class Imported(Struct, frozen=True, kw_only=True):
    """How many were taken; how many of those said what was known, and how many wait for a look."""

    taken: int
    merged: int
    review: int


class Purged(Struct, frozen=True, kw_only=True):
    removed: int
