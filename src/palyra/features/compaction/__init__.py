"""Compaction: condenses what a model is shown of a long session."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.checkpoints import Checkpoints
    from palyra.agent.ports import Compactor
    from palyra.agent.session_cache import SessionCache
    from palyra.core.errors import ConfigInvalid, InvalidInput
    from palyra.features.budgets.service import BudgetService
    from palyra.features.compaction.model_summary import Summariser
    from palyra.features.compaction.notes_file import Notes
    from palyra.features.compaction.service import Compacting, CompactionSettings
    from palyra.models.routing import Models
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor

    settings, db, models = w.settings.get(CompactionSettings), w.get(Database), w.get(Models)
    try:
        summariser = Summariser(
            models, settings.model, w.get(BudgetService), w.get(Redactor), w.get(Clock)
        )
    except InvalidInput as error:
        raise ConfigInvalid(f"models.summary: {error.message}") from error
    notes = Notes(db, w.get(Checkpoints), w.guard, w.get(Clock)) if settings.notes else None
    compacting = Compacting(
        db,
        w.get(SessionCache),
        models,
        summariser,
        share=settings.share,
        keep=notes.keep if notes else None,
    )
    w.add(compacting, Compactor)

    async def reload(changed: Services) -> None:
        summariser.use(changed.get(CompactionSettings).model)

    w.on_reload(reload)
