"""What is learned behind the runs: who reads, who applies, who feeds the queue."""

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.features.budgets.service import BudgetService
from palyra.features.learning.apply import Permits, Procedures
from palyra.features.learning.enqueue import Feeder
from palyra.features.learning.model import Threshold, Thresholds
from palyra.features.learning.reflection import Reflecting
from palyra.features.learning.service import Learning
from palyra.features.learning.settings import KIND, LearningSettings
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.features.skills.registry import SkillRegistry
from palyra.features.tasks.worker import Tasks
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.serve.config import Config
from palyra.serve.wiring.foundation import Foundation


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
    ground: Foundation,
    memory: Memory,
    policy: PolicyStore,
    models: Models,
    budgets: BudgetService,
    notices: Notices,
    shelf: SkillRegistry,
    tasks: Tasks,
) -> tuple[Learning, Feeder]:
    db, clock, wanted = ground.db, ground.clock, settings(ground.config)
    try:
        reflecting = Reflecting(
            db, memory, policy, models, budgets, notices, ground.redactor, clock, wanted
        )
    except InvalidInput as error:
        raise ConfigInvalid(f"models.extraction: {error.message}") from error
    tasks.register(KIND, reflecting.work, limit=1, unhurried=True)
    procedures = Procedures(db, shelf, ground.home / "learned")
    assert policy.folder is not None
    verbs = Learning(db, memory, reflecting, procedures, Permits(db, policy, policy.folder), wanted)
    return verbs, Feeder(db, clock, wanted)
