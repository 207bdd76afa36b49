"""Budgets: what models may cost, what they cost, and what they will have cost."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.gateway import Gateway
    from palyra.agent.turn_cost import BudgetPort
    from palyra.features.budgets.forecasts import Forecasts
    from palyra.features.budgets.service import BudgetService, BudgetSettings
    from palyra.features.notices.service import Notices
    from palyra.models.routing import Models
    from palyra.store.database import Database
    from palyra.system.clock import Clock

    settings = w.settings.get(BudgetSettings)
    budgets = BudgetService(
        w.get(Database),
        w.get(Models).prices,
        w.get(Notices),
        w.get(Clock),
        most_output=settings.most_output,
        limits=settings.limits,
    )
    w.add(budgets, BudgetPort)
    w.add(Forecasts(w.get(Database), w.get(Clock)))

    async def reload(changed: Services) -> None:
        wanted = changed.get(BudgetSettings)
        budgets.configure(wanted.limits, wanted.most_output)

    w.with_loop(lambda: w.get(Gateway).on_commit.connect(budgets.on_commit))
    w.before_runs(budgets.start)
    w.on_reload(reload)
