"""Checkpoints off the event loop and under seal: taken before a reversible call, opened to settle or undo it."""

import asyncio

from palyra.domain.events import FileChange
from palyra.tools import checkpoints
from palyra.tools.catalogue import Arguments
from palyra.tools.checkpoints import Reversible, Sealer


class Checkpoints:
    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sealer: Sealer | None = None

    @property
    def _seal(self) -> Sealer:
        # The cipher costs start-up time that a daemon which changes nothing does not need.
        if self._sealer is None:
            self._sealer = Sealer(self._key)
        return self._sealer

    async def take(self, tool: Reversible, arguments: Arguments, workspace: str, call_id: str) -> bytes:
        """The sealed checkpoint of a call that is about to run. Raises a PalyraError if the call must not start."""
        return await asyncio.to_thread(lambda: self._seal.seal(checkpoints.prepare(tool, arguments, workspace), call_id))

    async def restore(self, sealed: bytes, workspace: str, call_id: str, *, force: bool = False) -> list[FileChange]:
        return await asyncio.to_thread(lambda: checkpoints.restore(self._seal.open(sealed, call_id), workspace, force=force))

    async def plan(self, sealed: bytes, workspace: str, call_id: str) -> list[FileChange]:
        """What `restore` would change now."""
        return await asyncio.to_thread(lambda: checkpoints.plan(self._seal.open(sealed, call_id), workspace))
