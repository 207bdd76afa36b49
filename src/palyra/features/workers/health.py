"""The watchdog's checks of remote workers: one that was there, did not say goodbye and does not
come back.

What it held is in doubt by itself when its lease is over. There is no remedy from here: its machine
is somebody else's to start.
"""

from collections.abc import Sequence

from palyra.features.health.watchdog import HealthFinding, LookTime, Watchdog
from palyra.features.workers.service import Workers


class WorkersWatched:
    def __init__(self, workers: Workers, watchdog: Watchdog) -> None:
        self._workers = workers
        self._watchdog = watchdog
        self._away_ms: dict[str, int] = {}

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        silent = [
            each
            for each in self._workers.presence.stations.values()
            if each.link is None and not each.leaving
        ]
        before, self._away_ms = self._away_ms, {}
        if not silent:
            return []
        wanted = {
            each.name for each in await self._workers.desk.listing() if each.state == "enrolled"
        }
        found = []
        for station in silent:
            name = station.name
            if name not in wanted:
                continue
            self._away_ms[name] = before[name] + moment.passed_ms if name in before else 0
            # Of one that was not here since the daemon began, nobody knows how it went.
            vanished = (
                station.hello is not None
                and self._away_ms[name] >= self._watchdog.settings.helper_ms
            )
            found.append(self._lost(name, certain=vanished))
        return found

    def _lost(self, name: str, *, certain: bool) -> HealthFinding:
        return HealthFinding(
            key=f"worker:{name}",
            domain="worker",
            summary=f"the worker {name} has vanished: calls for it fail until it is back",
            severity="error",
            fix=f"start `palyra worker run` on its machine, or `palyra workers revoke {name}`",
            certain=certain,
        )
