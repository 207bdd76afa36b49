"""What is configured about learning, and the name of its tasks."""

from msgspec import Struct

from palyra.domain import learning
from palyra.domain.learning import Thresholds

KIND = "reflect"
FEED_MS = 30_000


class LearningSettings(Struct, frozen=True, kw_only=True):
    """`model` empty: rules find what is said. `enabled` false: nothing is read by itself, only on demand."""

    enabled: bool = True
    thresholds: Thresholds = Thresholds()
    cooldown_ms: int = learning.COOLDOWN_MS
    budget_tokens: int = learning.BUDGET_TOKENS
    most_candidates: int = learning.MOST_CANDIDATES
    model: str = ""
