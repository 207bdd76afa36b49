"""What the watchdog sees of the processes that work for the daemon: MCP servers and browsers."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from palyra.core import run_state
from palyra.core.ids import SYSTEM
from palyra.features.health.watchdog import HealthFinding, LookTime, Remedy, Watchdog
from palyra.features.mcp.service import Mcp
from palyra.store import runs
from palyra.store.database import Database, Tx

if TYPE_CHECKING:
    from palyra.tools.browser.pool import Browsers, InUse

# So many calls in a row without an answer in time are no accident.
MOST_LATE = 2


class ServersWatched:
    """MCP servers that are away for too long, or hang. One that is away for a moment comes back by
    itself.
    """

    def __init__(self, mcp: Mcp, watchdog: Watchdog) -> None:
        self._mcp = mcp
        self._watchdog = watchdog
        self._away_ms: dict[str, int] = {}

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        before, self._away_ms = self._away_ms, {}
        found = []
        for each in self._mcp.status():
            settings = self._watchdog.settings
            if each.state == "ready" and each.late >= MOST_LATE:
                found.append(
                    self._finding(
                        each.name,
                        f"has not answered the last {each.late} calls in time",
                        settings.helper_ms,
                    )
                )
            if each.state in ("ready", "disabled"):
                continue
            away_ms = before[each.name] + moment.passed_ms if each.name in before else 0
            self._away_ms[each.name] = away_ms
            # One whose connection has ended for good does not come back, however long one waits.
            certain = each.state in ("failed", "stopped") or away_ms >= settings.helper_ms
            what = f"is away: {each.detail or each.state}"
            found.append(self._finding(each.name, what, settings.helper_ms, certain=certain))
        return found

    def _finding(
        self, name: str, what: str, wait_ms: int, *, certain: bool = True
    ) -> HealthFinding:
        return HealthFinding(
            key=f"mcp:{name}",
            domain="worker",
            summary=f"the MCP server {name} {what}",
            fix=f"palyra mcp show {name}",
            remedies=(Remedy("restart the server", partial(self._restart, name), wait_ms=wait_ms),),
            certain=certain,
        )

    async def _restart(self, name: str) -> str:
        return f"it was started anew, and is {(await self._mcp.restart(SYSTEM, name)).state}"


class BrowsersWatched:
    """Browsers that died, and those whose run has ended."""

    def __init__(self, db: Database, browsers: "Browsers") -> None:
        self._db = db
        self._browsers = browsers

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        died, self._browsers.deaths = self._browsers.deaths, []
        found = [self._died(each) for each in died]
        used = self._browsers.in_use()
        if not used:
            return found
        over = await self._db.read(lambda tx: _over(tx, [each.run_id for each in used]))
        useless = [
            self._useless(each, leaked=each.run_id in over)
            for each in used
            if not each.running or each.run_id in over
        ]
        return [*found, *useless]

    def _died(self, used: "InUse") -> HealthFinding:
        """Report a browser that died in use. It was replaced in the same moment, so the incident is
        over when it is told.
        """
        return HealthFinding(
            key=f"browser:{used.session_id}:{used.pid}",
            domain="browser",
            summary=(
                f"the browser of session {used.session_id} has died, and another one took its place"
            ),
            fix="if it happens often: see the daemon's log, and the memory of the machine",
            remedies=(),
        )

    def _useless(self, used: "InUse", *, leaked: bool) -> HealthFinding:
        what = "is still open, though its run has ended" if leaked else "has died"

        async def close() -> str:
            await self._browsers.end(used.session_id)
            return "it was closed; the next page opens another"

        return HealthFinding(
            key=f"browser:{used.session_id}:{used.pid}",
            domain="browser",
            summary=f"the browser of session {used.session_id} {what}",
            fix="it is closed when the daemon stops",
            remedies=(Remedy("close the browser", close),),
        )


def _over(tx: Tx, run_ids: list[str]) -> set[str]:
    """Of these runs, those that have ended."""
    found = [(run_id, runs.find(tx, run_id)) for run_id in run_ids]
    return {run_id for run_id, run in found if run is None or run.state in run_state.TERMINAL}
