"""Learning: what finished runs taught, reviewed before it is believed."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.runs import Runs
    from palyra.core.errors import ConfigInvalid, InvalidInput
    from palyra.features.budgets.service import BudgetService
    from palyra.features.learning.apply import Permits, Procedures
    from palyra.features.learning.model import KIND, LearningSettings
    from palyra.features.learning.reflection import Feeder, Reflecting
    from palyra.features.learning.service import Learning
    from palyra.features.memory.service import Memory
    from palyra.features.notices.service import Notices
    from palyra.features.skills.registry import SkillRegistry
    from palyra.features.tasks.worker import Tasks
    from palyra.models.routing import Models
    from palyra.policy.store import PolicyStore
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor

    db, clock, memory, policy = w.get(Database), w.get(Clock), w.get(Memory), w.get(PolicyStore)
    wanted = w.settings.get(LearningSettings)
    try:
        reflecting = Reflecting(
            db,
            memory,
            policy,
            w.get(Models),
            w.get(BudgetService),
            w.get(Notices),
            w.get(Redactor),
            clock,
            wanted,
        )
    except InvalidInput as error:
        raise ConfigInvalid(f"models.extraction: {error.message}") from error
    w.get(Tasks).register(KIND, reflecting.work, limit=1, unhurried=True)
    procedures = Procedures(db, w.get(SkillRegistry), w.home / "learned")
    assert policy.folder is not None
    permits = Permits(db, policy, policy.folder)
    learning = w.add(Learning(db, memory, reflecting, procedures, permits, wanted))
    feeder = w.add(Feeder(db, clock, wanted))

    async def feed() -> None:
        w.get(Runs).on_end.connect(feeder.ended)
        feeder.ended()

    async def reload(changed: Services) -> None:
        learning.use(changed.get(LearningSettings))
        feeder.use(changed.get(LearningSettings))

    w.before_runs(learning.recover)
    w.before_runs(feed)
    w.on_reload(reload)
    w.on_close(feeder.close)
