"""Channel checks of the watchdog and the doctor: those that should be connected and are not.

A connection that is lost for a moment comes back by itself; one that stays away is an incident, and
is made again.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from palyra.core.ids import SYSTEM
from palyra.features.channels.lazy import LateChannels
from palyra.features.health.doctor import DoctorCheck
from palyra.features.health.watchdog import HealthFinding, LookTime, Remedy, Watchdog


class ChannelsWatched:
    def __init__(self, channels: LateChannels, watchdog: Watchdog) -> None:
        self._channels = channels
        self._watchdog = watchdog
        self._away_ms: dict[str, int] = {}

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        before, self._away_ms = self._away_ms, {}
        wait_ms = self._watchdog.settings.helper_ms
        found = []
        for name, why in self._channels.away():
            away_ms = before[name] + moment.passed_ms if name in before else 0
            self._away_ms[name] = away_ms
            if away_ms >= wait_ms:
                found.append(self._finding(name, why, wait_ms))
        return found

    def _finding(self, name: str, why: str, wait_ms: int) -> HealthFinding:
        return HealthFinding(
            key=f"channel:{name}",
            domain="connector",
            summary=f"the channel {name} is not connected: {why}",
            fix=f"palyra channels test {name}",
            remedies=(
                Remedy(
                    "reconnect the channel", partial(self.restart, name, SYSTEM), wait_ms=wait_ms
                ),
            ),
        )

    async def restart(self, name: str, by: str) -> str:
        return (
            "it was reconnected, and is"
            f" {(await self._channels.now.reconnect(by, name)).connection.state}"
        )

    def checks(self) -> Iterator[DoctorCheck]:
        away = dict(self._channels.away())
        for name in self._channels.names:
            known, title = f"channel:{name}", f"channel {name}"
            if name in away:
                fix = f"palyra channels test {name}"
                yield DoctorCheck(
                    id=known, title=title, state="fail", detail=away[name], fix=fix, repairable=True
                )
            else:
                yield DoctorCheck(
                    id=known, title=title, state="ok", detail="connected, or switched off"
                )
