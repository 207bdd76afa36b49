"""Signed checkpoints over the journal: made while something happens, and where much is at stake.

The tree is built behind the commits, from what is durable. So a checkpoint never tells of an entry
that a crash takes back, and no append waits for one.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from palyra.core import signed_notes
from palyra.core.errors import ChainBroken, Conflict, NotFound, PalyraError
from palyra.core.events import AdminChanged, JournalCheckpointed
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.core.merkle import TileKey
from palyra.core.signals import Signal
from palyra.core.signed_notes import LogCheckpoint
from palyra.features.proof import bundle as proof_bundle
from palyra.features.proof.bundle import Disclosure, ProofBundle
from palyra.store import segments, tape, tree
from palyra.store.database import Appended, Database, Tx
from palyra.store.log_keys import LogKeys
from palyra.store.policy_sets import PolicyTexts
from palyra.store.tree import StoredCheckpoint
from palyra.system.thread_pool import everyday

log = logging.getLogger("palyra.proof")
_KIND = "journal.checkpointed"
_RETRY_S = 30.0
_LAST_S = 5.0


class ProofSettings(Struct, frozen=True):
    """`origin` names the log, empty for one that is made up. A checkpoint is made after so many
    entries, or so many seconds after the first of fewer. `witness_for` are the public keys of the
    journals that this daemon cosigns.
    """

    origin: str = ""
    entries: int = 5_000
    seconds: float = 300.0
    anchors: tuple[str, ...] = ()
    keyring: bool | None = None
    witness_for: tuple[str, ...] = ()


class _Grown(Struct, frozen=True):
    """The tree by now. `untold` are checkpoints that were signed and are not stored: the schema
    was older then, or somebody was killed.
    """

    size: int
    root: bytes
    tiles: dict[TileKey, bytes]
    untold: tuple[tuple[LogCheckpoint, str], ...] = ()


class InclusionProof(Struct, frozen=True, kw_only=True):
    """Proof that an entry stands at its position among the first `size`. `checkpoint` is signed for
    that size, or empty if none was.
    """

    position: int
    size: int
    link: int
    hash: str
    proof: tuple[str, ...]
    root: str
    checkpoint: str = ""


class ConsistencyProof(Struct, frozen=True, kw_only=True):
    """Proof that the first `old` of `size` entries are the same as when there were `old`."""

    old: int
    size: int
    proof: tuple[str, ...]
    old_root: str
    root: str


class JournalProof:
    """Maker of one journal's checkpoints, and of proofs from its tree."""

    def __init__(
        self,
        db: Database,
        journal: Path,
        keys: LogKeys,
        settings: ProofSettings,
        policies: Callable[[], PolicyTexts | None] = lambda: None,
    ) -> None:
        self._db = db
        self._segments = segments.folder_of(journal)
        self.keys = keys
        self._policies = policies
        self._settings = settings
        self._one_at_a_time = asyncio.Lock()
        # Entries that no checkpoint covers, those about checkpoints not counted.
        self._pending = 0
        self._some, self._many = asyncio.Event(), asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        # Why the last checkpoint was not made, empty if it was.
        self.problem = ""
        self.on_checkpoint = Signal[[]]("a checkpoint")
        # True once the journal was found to be another one than was signed for.
        self.forged = False

    async def start(self) -> None:
        self._db.on_commit.connect(self._count)
        newest, last = await self._db.read(
            lambda tx: (tree.newest_checkpoint(tx), tape.last_position(tx))
        )
        # Behind a checkpoint stands the entry that tells of it.
        self._waiting(last - newest.size - 1 if newest else last)
        self._work = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Sign for everything that was appended, last."""
        self._db.on_commit.disconnect(self._count)
        # A disk that does not answer holds nobody up: the next start signs for it.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await self._end_work()
                if self._pending:
                    await self.try_checkpoint()

    async def _end_work(self) -> None:
        """Let a checkpoint that is under way be made: its step is written even if nobody waits for
        it, and the last one would sign for the same entries again.
        """
        if self._work is None:
            return
        try:
            async with self._one_at_a_time:
                self._work.cancel()
        finally:
            self._work.cancel()
            await asyncio.wait([self._work])

    def _count(self, appended: list[Appended]) -> None:
        self._waiting(sum(1 for each in appended if each.kind != _KIND))

    def _waiting(self, more: int) -> None:
        self._pending += max(0, more)
        if self._pending:
            self._some.set()
        if self._pending >= self._settings.entries:
            self._many.set()

    async def _follow(self) -> None:
        while True:
            await self._some.wait()
            try:
                async with asyncio.timeout(self._settings.seconds):
                    await self._many.wait()
            except TimeoutError:
                pass
            if not await self.try_checkpoint():
                await asyncio.sleep(_RETRY_S)

    async def try_checkpoint(self) -> bool:
        """Sign for everything that is durable by now; say if that was possible."""
        try:
            await self.checkpoint()
        except (PalyraError, OSError) as error:
            self.problem = error.message if isinstance(error, PalyraError) else str(error)
            self.forged = isinstance(error, ChainBroken)
            log.error("no checkpoint could be made: %s", self.problem)
            return False
        return True

    async def checkpoint(self) -> StoredCheckpoint:
        """Sign for everything that is durable by now, or return the checkpoint that does."""
        async with self._one_at_a_time:
            pending, self._pending = self._pending, 0
            self._some.clear()
            self._many.clear()
            try:
                made = await self._checkpoint()
            except BaseException:
                self._waiting(pending)
                raise
            self.problem, self.forged = "", False
            return made

    async def _checkpoint(self) -> StoredCheckpoint:
        grown, newest = await self._db.read(self._grown)
        if grown.untold:
            # Before the tree is signed for: what tells of it is part of that.
            await self._db.write(partial(_tell, grown.untold))
            grown, newest = await self._db.read(self._grown)
        if newest is not None and await self._db.read(partial(_only_tells, newest.size)):
            return newest
        signer = await everyday.run(lambda: self.keys.signer)
        signed = LogCheckpoint(signer.name, grown.size, grown.root)
        # Outside the database first: what was handed out is never more than what is kept there.
        note = await everyday.run(self.keys.sign, signed)

        def put(tx: Tx) -> StoredCheckpoint:
            tree.put_tiles(tx, grown.tiles)
            _tell(((signed, note),), tx)
            return StoredCheckpoint(grown.size, tx.now_ms, note)

        made = await self._db.write(put)
        self.on_checkpoint.send()
        return made

    def _grown(self, tx: Tx) -> tuple[_Grown, StoredCheckpoint | None]:
        """The tree over all entries. Raise ChainBroken if it is not the one that was signed for:
        no second history is ever signed.
        """
        grown, tiles = tree.grow(tx, self._segments)
        untold: tuple[tuple[LogCheckpoint, str], ...] = ()
        if mark := self.keys.mark:
            largest = LogCheckpoint.parse(signed_notes.parse(mark).text)
            if largest.size > grown.size or grown.root(largest.size) != largest.root:
                raise ChainBroken(
                    f"the journal is not the one whose {largest.size} entries were signed for: it"
                    " was rolled back or rewritten; `palyra journal verify` says where"
                )
            if 0 < largest.size < grown.size and not tree.is_stored(tx, largest.size):
                untold = ((largest, mark),)
        return _Grown(grown.size, grown.root(), tiles, untold), tree.newest_checkpoint(tx)

    async def rotate(self, by: str) -> str:
        """Replace the signing key by a new one that the old one signs for. Returns its public
        form.
        """
        async with self._one_at_a_time:
            new = await everyday.run(self.keys.rotate)
        public = new.verifier.encode()
        event = AdminChanged(
            what="journal", action="rotated the signing key", details={"key": public}
        )
        await self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))
        return public

    async def newest(self) -> StoredCheckpoint | None:
        return await self._db.read(tree.newest_checkpoint)

    async def cosigned(self, size: int, line: str) -> None:
        """Add a cosignature to a checkpoint."""

        def add(tx: Tx) -> None:
            found = tree.first_checkpoint_over(tx, size)
            if found is not None and found.size == size and line not in found.note:
                tree.put_checkpoint(tx, size, found.note + line)

        await self._db.write(add)

    async def continues(self, old: int, size: int) -> list[bytes]:
        """Return the hashes that prove that a tree continues a smaller one."""
        return await self._db.read(lambda tx: tree.stored(tx).consistency(old, size))

    async def inclusion(self, position: int, size: int = 0) -> InclusionProof:
        """Prove an entry in the tree of `size` entries, by default the one of the first checkpoint
        that covers it. Raise NotFound if there is no such tree yet.
        """
        return await self._db.read(lambda tx: inclusion(tx, position, size))

    async def bundle(self, wanted: Disclosure) -> ProofBundle:
        """Make a bundle for somebody without the product, under a checkpoint that covers it."""
        newest, last = await self._db.read(
            lambda tx: (tree.newest_checkpoint(tx), wanted.last or tape.last_position(tx))
        )
        if newest is None or newest.size < last:
            await self.checkpoint()
        in_force = self._policies()
        return await self._db.read(lambda tx: proof_bundle.make(tx, self.keys, wanted, in_force))

    async def consistency(self, old: int, size: int = 0) -> ConsistencyProof:
        return await self._db.read(lambda tx: consistency(tx, old, size))


def _only_tells(size: int, tx: Tx) -> bool:
    """Say if nothing was appended behind a checkpoint but what tells of it, and of one before."""
    last = tape.last_position(tx)
    return last - size <= 2 and set(tape.kinds_between(tx, size, last)) <= {_KIND}


def inclusion(tx: Tx, position: int, size: int = 0) -> InclusionProof:
    covering = tree.first_checkpoint_over(tx, size or position)
    if not size:
        size = covering.size if covering else 0
    grown = tree.stored(tx)
    if not 0 < position <= size <= grown.size:
        raise NotFound(
            f"no checkpoint covers position {position} of {grown.size} yet: make one with"
            " `palyra journal checkpoint`",
            position=position,
        )
    entry = tape.entry_at(tx, position)
    if tree.leaf(entry.link, bytes.fromhex(entry.hash)) != grown.leaf(position - 1):
        raise ChainBroken(
            f"the entry at {position} is not the one that the tree holds", position=position
        )
    return InclusionProof(
        position=position,
        size=size,
        link=entry.link,
        hash=entry.hash,
        proof=tuple(each.hex() for each in grown.inclusion(position - 1, size)),
        root=grown.root(size).hex(),
        checkpoint=covering.note if covering and covering.size == size else "",
    )


def consistency(tx: Tx, old: int, size: int = 0) -> ConsistencyProof:
    grown = tree.stored(tx)
    newest = tree.newest_checkpoint(tx)
    size = size or (newest.size if newest else 0)
    if not 0 < old <= size <= grown.size:
        raise Conflict(
            f"the newest checkpoint covers {grown.size} entries: choose two sizes up to that"
        )
    return ConsistencyProof(
        old=old,
        size=size,
        proof=tuple(each.hex() for each in grown.consistency(old, size)),
        old_root=grown.root(old).hex(),
        root=grown.root(size).hex(),
    )


def _tell(made: tuple[tuple[LogCheckpoint, str], ...], tx: Tx) -> None:
    """Store checkpoints, and say on the system tape that they were made."""
    for said, note in made:
        tree.put_checkpoint(tx, said.size, note)
        event = JournalCheckpointed(size=said.size, root=said.root.hex(), note=note)
        tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])
