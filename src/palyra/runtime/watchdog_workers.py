"""What the watchdog sees of remote workers: one that was there, did not say goodbye and does not come back.

What it held is in doubt by itself when its lease is over. There is no remedy from here: its machine is somebody else's to start.
"""

from collections.abc import Sequence

from palyra.runtime.watchdog import Finding, Moment, Watchdog
from palyra.runtime.workers.workers import Workers


class WorkersWatched:
    def __init__(self, workers: Workers, watchdog: Watchdog) -> None:
        self._workers = workers
        self._watchdog = watchdog
        self._away_ms: dict[str, int] = {}

    async def look(self, moment: Moment) -> Sequence[Finding]:
        stations = self._workers.presence.stations
        silent = {each.name for each in stations.values() if each.hello is not None and each.link is None and not each.leaving}
        before, self._away_ms = self._away_ms, {}
        if not silent:
            return []
        wanted = {each.name for each in await self._workers.desk.listing() if each.state == "enrolled"}
        for name in sorted(silent & wanted):
            self._away_ms[name] = before[name] + moment.passed_ms if name in before else 0
        least_ms = self._watchdog.settings.helper_ms
        return [self._lost(name) for name, away_ms in self._away_ms.items() if away_ms >= least_ms]

    def _lost(self, name: str) -> Finding:
        return Finding(
            key=f"worker:{name}",
            domain="worker",
            summary=f"the worker {name} has vanished: calls for it fail until it is back",
            severity="error",
            fix=f"start `palyra worker run` on its machine, or `palyra workers revoke {name}`",
        )
