"""What is remembered and belongs to what the user says, for the prompt of one run.

The rule: memory never holds a run up. If it cannot answer in a moment, the run goes on without it.
"""

import asyncio
import logging

from palyra.agent.active_run import ActiveRun
from palyra.agent.prompt.run_context import RecalledMemory
from palyra.core.errors import PalyraError
from palyra.features.memory.model import Item, Where
from palyra.features.memory.service import Memory

log = logging.getLogger("palyra.memory")

_PATIENCE_S = 0.5
# What is looked for: longer texts say no more about what they are about.
_LONGEST_QUESTION = 2_000


class Recalling:
    """`look` costs nothing for whoever has nothing remembered, which is nearly everybody at
    first.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        # Principals that had nothing remembered, with the memory's state of changes when that was
        # seen.
        self._empty: dict[str, int] = {}

    async def look(self, run: ActiveRun) -> tuple[RecalledMemory, ...]:
        principal, session = run.principal, run.live.session
        changes = self._memory.changes
        text = "\n".join(event.text for _, event in run.progress.inputs)[:_LONGEST_QUESTION]
        if self._empty.get(principal) == changes or not text.strip():
            return ()
        where = Where(
            principal=principal,
            channel=session.channel,
            session=session.session_id,
            workspace=session.workspace,
        )
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if not await self._memory.any_for(principal):
                    self._empty[principal] = changes
                    return ()
                found = await self._memory.recall(where, text)
                return tuple(for_prompt(each.item, each.score) for each in found)
        except TimeoutError:
            log.warning("memory took too long to answer; the run goes on without it")
        except PalyraError as error:
            log.warning("memory could not answer, the run goes on without it: %s", error.message)
        return ()


def for_prompt(item: Item, score: float) -> RecalledMemory:
    return RecalledMemory(item.memory_id, item.kind, item.text, item.label, score)
