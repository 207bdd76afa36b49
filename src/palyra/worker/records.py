"""What a worker must not forget when it is killed: that it began a call, what takes it back, what came of it.

The rule: a call is written down before it begins, and its result before it is told. A call that was written down and has no result
when the worker starts again was lost on the way; one that was not written down was never begun.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.domain.workers import CallState, Finished, Kept
from palyra.worker import home


class Record(Struct, frozen=True, kw_only=True):
    call_id: str
    attempt: int
    session_id: str
    tool: str
    state: CallState


class Records:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Record] = {}
        self._load()

    def _load(self) -> None:
        for path in self._folder.glob("*.json"):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=Record)
            except msgspec.DecodeError:
                continue
            if record.state == "running":
                record = msgspec.structs.replace(record, state="lost")
                home.write(path, msgspec.json.encode(record))
            self._known[record.call_id] = record

    def find(self, call_id: str) -> Record | None:
        return self._known.get(call_id)

    def kept(self) -> tuple[Kept, ...]:
        return tuple(Kept(each.call_id, each.attempt, each.state) for each in self._known.values())

    def begin(self, record: Record, checkpoint: bytes) -> None:
        """Blocks until it is on disk."""
        if checkpoint:
            home.write(self._path(record.call_id, "checkpoint"), checkpoint)
        home.write(self._path(record.call_id, "json"), msgspec.json.encode(record))
        self._known[record.call_id] = record

    def finish(self, finished: Finished) -> None:
        """Blocks until it is on disk."""
        record = msgspec.structs.replace(self._known[finished.call_id], state="finished")
        home.write(self._path(finished.call_id, "result"), msgspec.msgpack.encode(finished))
        home.write(self._path(finished.call_id, "json"), msgspec.json.encode(record))
        self._known[finished.call_id] = record

    def results(self) -> list[Finished]:
        """Everything that the daemon has not said is settled."""
        found = []
        for record in self._known.values():
            if record.state == "finished":
                found.append(msgspec.msgpack.decode(self._path(record.call_id, "result").read_bytes(), type=Finished))
        return found

    def checkpoint(self, call_id: str) -> bytes:
        try:
            return self._path(call_id, "checkpoint").read_bytes()
        except FileNotFoundError:
            return b""

    def forget(self, call_id: str, *, checkpoint: bool = True) -> None:
        """The record goes first: what is left of a call without one is nothing."""
        self._known.pop(call_id, None)
        for kind in ("json", "result", *(("checkpoint",) if checkpoint else ())):
            self._path(call_id, kind).unlink(missing_ok=True)

    def _path(self, call_id: str, kind: str) -> Path:
        return self._folder / f"{call_id}.{kind}"
