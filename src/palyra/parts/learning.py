"""What is learned behind the runs: who reads, who applies, who feeds the queue."""

from palyra.config import Config
from palyra.domain.errors import ConfigInvalid, InvalidInput
from palyra.domain.learning import Threshold, Thresholds
from palyra.parts.ground import Ground
from palyra.policy.store import PolicyStore
from palyra.runtime.budgets import Budgets
from palyra.runtime.learning.applying import Permits, Procedures
from palyra.runtime.learning.feeding import Feeder
from palyra.runtime.learning.learning import Learning
from palyra.runtime.learning.reflecting import Reflecting
from palyra.runtime.learning.settings import KIND, LearningSettings
from palyra.runtime.memory import Memory
from palyra.runtime.notices import Notices
from palyra.runtime.routing import Models
from palyra.runtime.shelf import Shelf
from palyra.runtime.tasks import Tasks


def settings(given: Config) -> LearningSettings:
    wanted = given.learning
    return LearningSettings(
        enabled=wanted.enabled,
        thresholds=Thresholds(
            automatic=wanted.automatic,
            fact=Threshold(wanted.fact_review_bps, wanted.fact_auto_bps),
            preference=Threshold(wanted.preference_review_bps, wanted.preference_auto_bps),
            procedure=Threshold(wanted.procedure_review_bps),
            policy=Threshold(wanted.policy_review_bps),
        ),
        cooldown_ms=wanted.cooldown_minutes * 60_000,
        model=given.models.extraction,
    )


def learning(
    ground: Ground,
    memory: Memory,
    policy: PolicyStore,
    models: Models,
    budgets: Budgets,
    notices: Notices,
    shelf: Shelf,
    tasks: Tasks,
) -> tuple[Learning, Feeder]:
    db, clock, wanted = ground.db, ground.clock, settings(ground.config)
    try:
        reflecting = Reflecting(db, memory, policy, models, budgets, notices, ground.redactor, clock, wanted)
    except InvalidInput as error:
        raise ConfigInvalid(f"models.extraction: {error.message}") from error
    tasks.register(KIND, reflecting.work, limit=1, unhurried=True)
    procedures = Procedures(db, shelf, ground.home / "learned")
    assert policy.folder is not None
    verbs = Learning(db, memory, reflecting, procedures, Permits(db, policy, policy.folder), wanted)
    return verbs, Feeder(db, clock, wanted)
