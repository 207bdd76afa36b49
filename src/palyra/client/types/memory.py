"""Written by scripts/clients.py from the route table: types of the verbs about memory."""

from typing import Literal

from msgspec import Struct

from palyra.client.types.sessions import ScoreParts
from palyra.core.labels import Label

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


class Item(Struct, frozen=True, kw_only=True):
    """One thing that is remembered. The same on disk, on the wire and on the screen."""

    memory_id: str
    owner: str
    text: str
    kind: Literal["constraint", "decision", "fact", "preference", "procedure"] = "fact"
    scope: Literal["channel", "principal", "session", "workspace"] = "principal"
    scope_value: str = ""
    label: Label = Label()
    provenance: tuple[int, ...] = ()
    source: str = ""
    place: int = 0
    confidence_bps: int = 10000
    valid_from_ms: int = 0
    valid_until_ms: int = 0
    expires_ms: int = 0
    pinned: bool = False
    state: Literal["active", "forgotten", "rejected", "review", "superseded"] = "active"
    why: str = ""
    origin: Literal["import", "learned", "tool", "user"] = "user"
    supersedes: str = ""
    superseded_by: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    embedded: bool = False


class ItemPage(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; empty: this was the last."""

    items: list[Item]
    next: str = ""


class Found(Struct, frozen=True, kw_only=True):
    """An item with its score. Scores are absolute: 0.4 means the same in every search."""

    item: Item
    score: float
    parts: ScoreParts


class Searched(Struct, frozen=True, kw_only=True):
    """Results, best first. `relevance`: how likely each is what was asked for; what is below the
    threshold is not told to the agent.
    """

    found: list[Found]
    threshold: float
    words_only: str = ""
    relevance: list[float] = []


class MemoryStatus(Struct, frozen=True, kw_only=True):
    """Status of memory: how many items are in each state, and how meanings are searched."""

    counts: dict[Literal["active", "forgotten", "rejected", "review", "superseded"], int]
    not_embedded: int
    words_only: str


class Imported(Struct, frozen=True, kw_only=True):
    """Counts of an import: taken items; of those, how many said what was known or need review."""

    taken: int
    merged: int
    review: int


class NewMemory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """New item to remember. `source` and `place` say where it was said: items next to each other
    there help to find each other.
    """

    text: str
    kind: Literal["constraint", "decision", "fact", "preference", "procedure"] = "fact"
    scope: Literal["channel", "principal", "session", "workspace"] = "principal"
    source: str = ""
    place: int = 0
    confidence_bps: int = 10000
    valid_from_ms: int = 0
    valid_until_ms: int = 0
    ttl_ms: int = 0
    pinned: bool = False


class Purged(Struct, frozen=True, kw_only=True):
    removed: int
