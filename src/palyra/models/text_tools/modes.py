"""Modes of giving tools to each model: as the settings say, or as its server turned out to want."""

import logging
from typing import Final, Literal

from palyra.core.errors import Unavailable
from palyra.store import tool_modes
from palyra.store.database import Database
from palyra.store.tool_modes import FoundMode
from palyra.system.clock import Clock

log = logging.getLogger("palyra.models")

ToolMode = Literal["auto", "native", "text", "none"]
_LONGEST_WHY: Final = 240


class FoundModes:
    """Modes found out about models, in the journal's database; in memory while there is none."""

    def __init__(self, db: Database | None = None, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock
        self._found: dict[tuple[str, str], FoundMode] = {}

    async def load(self) -> None:
        if self._db is not None:
            for each in await self._db.read(tool_modes.known):
                self._found[each.provider, each.model] = each

    def wants_text(self, provider: str, model: str, settings: str) -> bool:
        """Return whether a model was found to take no tools, under the settings that it has now."""
        found = self._found.get((provider, model))
        return found is not None and found.settings == settings

    async def learn(self, provider: str, model: str, settings: str, why: str) -> None:
        """Remember that a model takes no tools. If the store refuses, it is known until the end of
        the process.
        """
        now_ms = self._clock.now_ms() if self._clock is not None else 0
        found = FoundMode(provider, model, settings, why[:_LONGEST_WHY], now_ms)
        self._found[provider, model] = found
        log.info("%s/%s takes no tools: they are written into the prompt", provider, model)
        if self._db is not None:
            try:
                await self._db.write(lambda tx: tool_modes.remember(tx, found))
            except Unavailable as error:
                log.warning("not remembered for the next start: %s", error.message)
