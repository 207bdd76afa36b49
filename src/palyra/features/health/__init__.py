"""Health: the watchdog, incidents, and the doctor."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.api.about import OpenIncidents
    from palyra.features.health.assembly import HealthParts
    from palyra.features.health.incidents import Incidents
    from palyra.features.health.metrics import IncidentMetrics
    from palyra.features.health.watchdog import Healing
    from palyra.features.notices.service import Notices
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor

    incidents = Incidents(w.get(Database), w.get(Notices), w.get(Redactor), w.get(Clock))
    w.add(incidents, OpenIncidents)
    w.metrics.append(IncidentMetrics())

    def with_loop() -> None:
        health = HealthParts(w)
        watchdog = w.add(health.watchdog)
        w.add(health.load)
        w.add(health.doctor())

        async def start() -> None:
            watchdog.start()

        async def close() -> None:
            watchdog.close()

        async def reload(changed: Services) -> None:
            watchdog.use(changed.get(Healing))

        w.after_runs(start)
        w.on_close(close)
        w.on_reload(reload)

    w.with_loop(with_loop)
