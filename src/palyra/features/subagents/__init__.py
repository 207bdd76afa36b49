"""Subagents: calls that are done by a run of their own."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.runs import Runs
    from palyra.agent.session_cache import SessionCache
    from palyra.agent.settings import Settings
    from palyra.agent.tool_flow import Spawning
    from palyra.features.subagents import tools
    from palyra.features.subagents.service import Children
    from palyra.models.routing import Models
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.tools.catalogue import Catalogue

    catalogue = w.get(Catalogue)
    lives, settings = w.get(SessionCache), w.get(Settings)
    children = Children(w.get(Database), lives, catalogue, w.get(Models), w.get(Clock), settings)
    w.add(children, Spawning)
    catalogue.renew("agents", tools.tools())

    def with_loop() -> None:
        w.get(Runs).on_end.connect(children.ended)
        children.works_on = w.get(Runs).works_on

    w.with_loop(with_loop)
    w.before_runs(children.remember)
    w.after_runs(children.go_on)
    w.on_close(children.close)
