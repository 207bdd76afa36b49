"""Checkpoints off the event loop and under seal: taken before a reversible call, opened to settle
or undo it.
"""

import asyncio
from hashlib import sha256

from palyra.core.events import FileChange
from palyra.core.tools import Preview
from palyra.system.thread_pool import everyday
from palyra.tools.catalogue import Arguments
from palyra.tools.files import checkpoints
from palyra.tools.files import restore as files_restore
from palyra.tools.files.checkpoints import Reversible, Sealer
from palyra.tools.files.content import ContentChange
from palyra.tools.files.restore import Aim, Tracks


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

    async def take(
        self, tool: Reversible, arguments: Arguments, workspace: str, call_id: str
    ) -> bytes:
        """The sealed checkpoint of a call that is about to run. Raises a PalyraError if the call
        must not start.
        """
        return await asyncio.to_thread(
            lambda: self._seal.seal(checkpoints.prepare(tool, arguments, workspace), call_id)
        )

    async def of_change(self, change: ContentChange, workspace: str, effect_id: str) -> bytes:
        """The sealed checkpoint of a change that the daemon itself is about to make."""
        after = {
            change.place.absolute: (
                sha256(change.after).hexdigest() if change.after is not None else ""
            )
        }
        return await everyday.run(
            lambda: self._seal.seal(
                checkpoints.capture([change.place.absolute], workspace, after), effect_id
            )
        )

    async def restore(
        self, sealed: bytes, workspace: str, call_id: str, *, force: bool = False
    ) -> list[FileChange]:
        return await asyncio.to_thread(
            lambda: checkpoints.restore(self._seal.open(sealed, call_id), workspace, force=force)
        )

    async def follow(self, tracks: Tracks, sealed: bytes, call_id: str) -> tuple[str, ...]:
        """Add the next change to those that are to be taken back; the paths it touched."""
        return await everyday.run(
            lambda: tracks.add(self._seal.open(sealed, call_id)) if sealed else ()
        )

    async def aim(self, tracks: Tracks, workspace: str, *, force: bool = False) -> Aim:
        return await everyday.run(lambda: tracks.aim(workspace, force=force))

    async def preview(self, aim: Aim, workspace: str) -> Preview:
        return await everyday.run(files_restore.preview, aim.target, workspace)

    async def keep(self, aim: Aim, workspace: str, travel_id: str) -> bytes:
        """A sealed checkpoint of how things are before the aim is reached."""
        return await everyday.run(
            lambda: self._seal.seal(files_restore.reverse(aim.target, workspace), travel_id)
        )

    async def reach(self, aim: Aim, workspace: str) -> None:
        """Make the files what the aim says, unless one of them has changed since it was taken: then
        Conflict, and nothing.
        """
        await everyday.run(lambda: checkpoints.restore(aim.target, workspace))

    async def go_back(self, sealed: bytes, workspace: str, travel_id: str) -> None:
        """Undo a `reach`, however far it came. What somebody else has changed since stays as it
        is.
        """
        await everyday.run(
            lambda: checkpoints.restore(self._seal.open(sealed, travel_id), workspace, leave=True)
        )
