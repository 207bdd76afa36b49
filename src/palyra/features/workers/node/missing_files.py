"""Calls that cannot begin yet: their files are still on the way from the daemon."""

import asyncio
import logging
from collections.abc import Callable, KeysView

from palyra.features.workers.node.execute import Contents
from palyra.features.workers.protocol import Assign, Piece
from palyra.system.thread_pool import everyday

log = logging.getLogger("palyra.features.workers.node")

# Pieces of files that wait to be written.
_MOST_PIECES = 64


class MissingFiles:
    """Receiver of files, which hands each call over when it has all of its own."""

    def __init__(
        self,
        contents: Contents,
        begin: Callable[[Assign], None],
        give_up: Callable[[Assign, str], None],
    ) -> None:
        self._contents = contents
        self._begin = begin
        self._give_up = give_up
        self._pieces: asyncio.Queue[Piece] = asyncio.Queue(_MOST_PIECES)
        self._calls: dict[str, Assign] = {}

    @property
    def calls(self) -> KeysView[str]:
        return self._calls.keys()

    def of(self, assign: Assign) -> tuple[str, ...]:
        """Return the digests of the files that are not here."""
        return tuple(
            dict.fromkeys(
                each.sha256 for each in assign.files if not self._contents.has(each.sha256)
            )
        )

    def wait_for(self, assign: Assign) -> None:
        self._calls[assign.call_id] = assign

    def forget(self, call_id: str, attempt: int | None = None) -> None:
        """Wait no more for a call, or for one attempt of it."""
        waiting = self._calls.get(call_id)
        if waiting is not None and attempt in (None, waiting.attempt):
            del self._calls[call_id]

    def forget_all(self) -> None:
        self._calls.clear()

    async def put(self, piece: Piece) -> None:
        await self._pieces.put(piece)

    async def take_in(self) -> None:
        """Write pieces as they come, in their order, for ever."""
        while True:
            piece = await self._pieces.get()
            wanted = [
                each.size
                for assign in self._calls.values()
                for each in assign.files
                if each.sha256 == piece.digest
            ]
            if not wanted:
                continue  # Nobody asked for it.
            try:
                whole = await everyday.run(self._contents.receive, piece, max(wanted))
            except OSError as error:
                self._not_kept(piece.digest, error)
                continue
            if whole:
                for assign in list(self._calls.values()):
                    if not self.of(assign):
                        self._begin(assign)

    def _not_kept(self, digest: str, error: OSError) -> None:
        """Give up calls whose files have no room: they were not begun, and that is all there is to
        tell of them.
        """
        log.error("a content could not be kept: %s", error)
        for assign in list(self._calls.values()):
            if any(each.sha256 == digest for each in assign.files):
                del self._calls[assign.call_id]
                self._give_up(
                    assign,
                    f"the worker could not keep the files of this call: {error.strerror or error}",
                )
