"""Records that a worker must not lose when it is killed: that it began a call, what undoes it, what
came of it.

The rule: a call is written down before it begins, and its result before it is told. A call that was
written down and has no result when the worker starts again was lost on the way; one that was not
written down was never begun. What undoes a call outlives it for a while.
"""

import time
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.events import FileChange
from palyra.features.workers.node import home
from palyra.features.workers.protocol import CallState, Finished, HeldCall


class CallRecord(Struct, frozen=True, kw_only=True):
    call_id: str
    attempt: int
    session_id: str
    tool: str
    state: CallState


# What takes calls back that are over: so many, of so many bytes, for so long.
_MOST_KEPT = 2_000
_MOST_KEPT_BYTES = 256 << 20
_KEPT_S = 30 * 86_400


class Records:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, CallRecord] = {}
        # The oldest first, with the size of each.
        self._kept: dict[str, int] = {}
        self._load()
        self._load_kept()

    def _load_kept(self) -> None:
        found = sorted((path.stat().st_mtime, path) for path in self._folder.glob("*.checkpoint"))
        old = time.time() - _KEPT_S
        for at, path in found:
            self._kept[path.stem] = path.stat().st_size
            if at < old and path.stem not in self._known:
                self._drop(path.stem)
        self._make_room()

    def _load(self) -> None:
        for path in self._folder.glob("*.json"):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=CallRecord)
            except msgspec.DecodeError:
                continue
            if record.state == "running":
                record = msgspec.structs.replace(record, state="lost")
                home.write(path, msgspec.json.encode(record))
            self._known[record.call_id] = record

    def find(self, call_id: str) -> CallRecord | None:
        return self._known.get(call_id)

    def kept(self) -> tuple[HeldCall, ...]:
        return tuple(
            HeldCall(each.call_id, each.attempt, each.state) for each in self._known.values()
        )

    def begin(self, record: CallRecord, checkpoint: bytes) -> None:
        """Record that it begins. Blocks until that is on disk."""
        if checkpoint:
            # An attempt that was taken back is another one's now.
            self._path(record.call_id, "undone").unlink(missing_ok=True)
            home.write(self._path(record.call_id, "checkpoint"), checkpoint)
            self._kept[record.call_id] = len(checkpoint)
        home.write(self._path(record.call_id, "json"), msgspec.json.encode(record))
        self._known[record.call_id] = record

    def finish(self, finished: Finished) -> None:
        """Record its result. Blocks until that is on disk."""
        record = msgspec.structs.replace(self._known[finished.call_id], state="finished")
        home.write(self._path(finished.call_id, "result"), msgspec.msgpack.encode(finished))
        home.write(self._path(finished.call_id, "json"), msgspec.json.encode(record))
        self._known[finished.call_id] = record

    def results(self) -> list[Finished]:
        """Return every result that the daemon has not said is settled."""
        found = []
        for record in self._known.values():
            if record.state == "finished":
                found.append(
                    msgspec.msgpack.decode(
                        self._path(record.call_id, "result").read_bytes(), type=Finished
                    )
                )
        return found

    def checkpoint(self, call_id: str) -> bytes:
        try:
            return self._path(call_id, "checkpoint").read_bytes()
        except FileNotFoundError:
            return b""

    def forget(self, call_id: str, *, checkpoint: bool = True) -> None:
        """The record goes first: what is left of a call without one is nothing but what takes it
        back.
        """
        self._known.pop(call_id, None)
        for kind in ("json", "result"):
            self._path(call_id, kind).unlink(missing_ok=True)
        if checkpoint:
            self._drop(call_id)
        else:
            self._make_room()

    def undone(self, call_id: str) -> tuple[FileChange, ...] | None:
        """Return what undoing it has changed, if somebody has asked for that before."""
        try:
            return msgspec.json.decode(
                self._path(call_id, "undone").read_bytes(), type=tuple[FileChange, ...]
            )
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def undo(self, call_id: str, changes: tuple[FileChange, ...]) -> None:
        """Record that it is being undone. Blocks until that is on disk: who asks again gets the
        same answer.
        """
        home.write(self._path(call_id, "undone"), msgspec.json.encode(changes))

    def _make_room(self) -> None:
        total = sum(self._kept.values())
        for call_id, size in list(self._kept.items()):
            if len(self._kept) <= _MOST_KEPT and total <= _MOST_KEPT_BYTES:
                return
            if call_id not in self._known:
                self._drop(call_id)
                total -= size

    def _drop(self, call_id: str) -> None:
        self._kept.pop(call_id, None)
        for kind in ("checkpoint", "undone"):
            self._path(call_id, kind).unlink(missing_ok=True)

    def _path(self, call_id: str, kind: str) -> Path:
        return self._folder / f"{call_id}.{kind}"
