"""The records of installed skills: a file each, sealed, so that one that somebody else wrote or
changed enables nothing.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.features.skills.manifest import Permission
from palyra.store.row_seals import RowSeals

State = Literal["quarantined", "enabled", "trusted"]


class Record(Struct, frozen=True, kw_only=True):
    """One installed skill. `vouched` says who lifted the quarantine: a publisher's key, or the
    operator.
    """

    name: str
    description: str
    version: str = ""
    digest: str
    folder: str
    files: dict[str, str]
    granted: tuple[Permission, ...] = ()
    state: State = "quarantined"
    vouched: Literal["", "publisher", "operator"] = ""
    signer: str = ""
    # skill.sig as it came, for whoever gets the skill from here.
    signature: str = ""
    generated: bool = False
    installed_ms: int = 0


class _SealedRecord(Record, frozen=True, kw_only=True):
    """A record as its file has it."""

    mac: str = ""


_PLAIN = Record.__struct_fields__
_SEALED_AS = "skills"


class SkillRecords:
    """Blocks on files. Without `seals` every record counts."""

    def __init__(self, folder: Path, seals: RowSeals | None) -> None:
        self._folder = folder
        self._seals = seals

    def find(self, name: str) -> Record | None:
        """Return the record of a skill. One that was never confirmed like this can be shown,
        removed and installed again, not used.
        """
        unconfirmed = Record(name=name, description="", digest="", folder="", files={})
        try:
            found = self._stored(name)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return unconfirmed
        record = _plain(found)
        if self._seals is None or self._seals.file_holds(
            _SEALED_AS, name, msgspec.json.encode(record), found.mac
        ):
            return record
        return unconfirmed

    def all(self) -> list[Record]:
        names = sorted(file.stem for file in self._folder.glob("*.json"))
        return [record for name in names if (record := self.find(name)) is not None]

    def put(self, record: Record) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        temporary = self._folder / f".{record.name}.{secrets.token_hex(4)}"
        content = msgspec.json.encode(record)
        if self._seals is not None:
            mac = self._seals.file_mac(_SEALED_AS, record.name, content)
            content = msgspec.json.encode(_SealedRecord(**msgspec.structs.asdict(record), mac=mac))
        write_new(temporary, content)
        temporary.replace(self._folder / f"{record.name}.json")
        sync(self._folder)

    def remove(self, name: str) -> None:
        (self._folder / f"{name}.json").unlink()
        sync(self._folder)

    def adopt(self) -> None:
        for file in sorted(self._folder.glob("*.json")):
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found = self._stored(file.stem)
                if not found.mac:
                    self.put(_plain(found))

    def _stored(self, name: str) -> _SealedRecord:
        return msgspec.json.decode((self._folder / f"{name}.json").read_bytes(), type=_SealedRecord)


def _plain(found: _SealedRecord) -> Record:
    return Record(**{field: getattr(found, field) for field in _PLAIN})


def write_new(where: Path, data: bytes) -> None:
    descriptor = os.open(
        where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
