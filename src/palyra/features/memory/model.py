"""Model of memory: an item, whom it belongs to, where it may be seen, and how well it answers a
question.

The rule: an item is seen by its owner only, and there only where its scope says.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from palyra.core.labels import CLEAN, Label

Kind = Literal["fact", "preference", "procedure", "decision", "constraint"]
ScopeKind = Literal["principal", "channel", "session", "workspace"]
State = Literal["active", "review", "superseded", "forgotten", "rejected"]
Written = Literal["user", "tool", "learned", "import"]

LONGEST_TEXT = 4_000
# By words alone a question found something if the best item reaches this by itself, without its
# neighbours. With meanings, `relevance` decides.
WORDS_THRESHOLD = 0.24
MOST_INJECTED = 5
MOST_PINNED_INJECTED = 3
INJECTED_TOKENS = 800
# Preferences that were learned go with every prompt, within so much besides.
MOST_PREFERENCES = 8
PREFERENCE_TOKENS = 240

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]
Bps = Annotated[int, Meta(ge=0, le=10_000)]
Milliseconds = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Name = Annotated[str, Meta(max_length=256)]


class Where(Struct, frozen=True, kw_only=True):
    """Place from where somebody looks: what is remembered for exactly this channel, session and
    workspace is seen, besides what is remembered for the principal as such. Empty: none.
    """

    principal: str
    channel: str = ""
    session: str = ""
    workspace: str = ""

    def value(self, scope: ScopeKind) -> str:
        """Return what a scope means here; the same for everything of one principal."""
        match scope:
            case "principal":
                return ""
            case "channel":
                return self.channel
            case "session":
                return self.session
            case "workspace":
                return self.workspace


class NewMemory(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """New item to remember. `source` and `place` say where it was said: items next to each other
    there help to find each other.

    `ttl_ms` is how long to keep it, 0: always. `valid_from_ms` is when it was said or began to
    hold.
    """

    text: Text
    kind: Kind = "fact"
    scope: ScopeKind = "principal"
    source: Name = ""
    place: Milliseconds = 0
    confidence_bps: Bps = 10_000
    valid_from_ms: Milliseconds = 0
    valid_until_ms: Milliseconds = 0
    ttl_ms: Milliseconds = 0
    pinned: bool = False


class Item(Struct, frozen=True, kw_only=True):
    """One thing that is remembered. The same on disk, on the wire and on the screen.

    `scope_value` is the channel, session or workspace it is for. `provenance` are positions in the
    journal: why we believe it. `why` says what a person should look at when the state is `review`.
    `embedded` is false while it is found by its words only.
    """

    memory_id: str
    owner: str
    text: Text
    kind: Kind = "fact"
    scope: ScopeKind = "principal"
    scope_value: str = ""
    label: Label = CLEAN
    provenance: tuple[Milliseconds, ...] = ()
    source: Name = ""
    place: Milliseconds = 0
    confidence_bps: Bps = 10_000
    valid_from_ms: Milliseconds = 0
    valid_until_ms: Milliseconds = 0
    expires_ms: Milliseconds = 0
    pinned: bool = False
    state: State = "active"
    why: str = ""
    origin: Written = "user"
    supersedes: str = ""
    superseded_by: str = ""
    created_ms: Milliseconds = 0
    updated_ms: Milliseconds = 0
    embedded: bool = False


class ScoreParts(Struct, frozen=True):
    """Parts of a score, each in 0 to 1: how much of the question's words it has, how near its
    meaning is, what these two come to, the best of its neighbours, how recent it is, how sure we
    are.
    """

    words: float
    meaning: float
    own: float
    neighbour: float
    recency: float
    confidence: float


class Found(Struct, frozen=True):
    """An item with its score. Scores are absolute: 0.4 means the same in every search."""

    item: Item
    score: float
    parts: ScoreParts


class Recalled(Struct, frozen=True):
    """An item for the prompt; `score` is how likely it is what is asked for. `unsure`: it is told
    with a word of doubt. Pinned ones are there whatever the question.
    """

    item: Item
    score: float
    parts: ScoreParts | None
    tokens: int
    unsure: bool = False


class Said(Struct, frozen=True):
    """Passage of a session that was found. `seq` is its entry on the session's tape; `label` is
    what it was made from.
    """

    session_id: str
    title: str
    seq: int
    time_ms: int
    speaker: str
    snippet: str
    score: float
    parts: ScoreParts
    label: Label
    run_id: str
