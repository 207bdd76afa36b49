"""What is configured about learning, and the name of its tasks."""

from msgspec import Struct

from palyra.features.learning import model as learning_model
from palyra.features.learning.model import Thresholds

KIND = "reflect"
FEED_MS = 30_000


class LearningSettings(Struct, frozen=True, kw_only=True):
    """`model` empty: rules find what is said. `enabled` false: nothing is read by itself, only on
    demand.
    """

    enabled: bool = True
    thresholds: Thresholds = Thresholds()
    cooldown_ms: int = learning_model.COOLDOWN_MS
    budget_tokens: int = learning_model.BUDGET_TOKENS
    most_candidates: int = learning_model.MOST_CANDIDATES
    model: str = ""
