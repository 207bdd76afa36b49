"""Backups of the journal over HTTP: made, listed, taken away. What is handed out lies in the
backups folder and nowhere else.
"""

import asyncio
import os
import stat
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.agent.ports import JournalCheckpoints
from palyra.api.calls import (
    ApiCall,
    DaemonInfo,
    HttpResponse,
    Input,
    Nothing,
    StreamingResponse,
    ok,
)
from palyra.api.routes import Gives, Route
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.upkeep import Upkeep
from palyra.store.verify import VerifyReport
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday

_FILE = b"application/vnd.sqlite3"
_PIECE = 1 << 20
_UNFINISHED = ".partial"


class Backup(Input, frozen=True, kw_only=True):
    """`folder`: where it goes instead of the backups folder, on the daemon's machine; it must be
    there already.
    """

    name: Annotated[str, Meta(pattern="^$|^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] = ""
    folder: Annotated[str, Meta(max_length=4096)] = ""


class BackedUp(Struct, frozen=True):
    path: str
    entries: int


class KeptBackup(Struct, frozen=True):
    name: str
    bytes: int
    made_ms: int


class BackupList(Struct, frozen=True):
    folder: str
    backups: list[KeptBackup]


async def backup(call: ApiCall[Nothing, Backup]) -> HttpResponse:
    services = call.services
    folder = (
        _elsewhere(call.body.folder) if call.body.folder else _folder(services.get(DaemonInfo).home)
    )
    name = call.body.name or time.strftime(
        "journal-%Y%m%d-%H%M%S.db", time.gmtime(services.get(Clock).now_ms() / 1000)
    )
    target = folder / name

    def copy() -> VerifyReport:
        if not call.body.folder:
            folder.mkdir(mode=0o700, exist_ok=True)
        try:
            return services.get(Upkeep).backup(target)
        except OSError as error:
            raise InvalidInput(
                f"{folder} cannot be written to ({(error.strerror or '').lower()}): name"
                " another one"
            ) from None

    checkpoints = services.find(JournalCheckpoints)
    if checkpoints is not None:
        await checkpoints.try_checkpoint()
    report = await asyncio.to_thread(copy)
    made = AdminChanged(
        what="journal", action="backed up", subject=name, details={"entries": report.entries}
    )
    await services.get(Database).write(
        lambda tx: tape.append(tx, SYSTEM_TAPE, call.principal, [made])
    )
    if checkpoints is not None:
        await checkpoints.try_checkpoint()
    return ok(BackedUp(str(target), report.entries))


def _elsewhere(folder: str) -> Path:
    path = Path(folder)
    if not path.is_absolute() or not path.is_dir():
        raise InvalidInput(
            f"{folder} is no folder on the daemon's machine: make it first, and name it from the"
            " root",
            folder=folder,
        )
    return path


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await everyday.run(_listing, _folder(call.services.get(DaemonInfo).home)))


def _listing(folder: Path) -> BackupList:
    found = []
    for each in os.scandir(folder) if folder.is_dir() else ():
        if each.is_file(follow_symlinks=False) and not each.name.endswith(_UNFINISHED):
            about = each.stat(follow_symlinks=False)
            found.append(KeptBackup(each.name, about.st_size, about.st_mtime_ns // 1_000_000))
    return BackupList(str(folder), sorted(found, key=lambda one: one.made_ms, reverse=True))


async def download(call: ApiCall[Nothing, Nothing]) -> StreamingResponse:
    name = call.path["backup"]
    file = await everyday.run(_opened, _folder(call.services.get(DaemonInfo).home) / name)
    disposition = b'attachment; filename="%b"' % name.encode()
    return StreamingResponse(_FILE, _pieces(file), headers=((b"content-disposition", disposition),))


def _opened(path: Path) -> int:
    """Open a file, and only a file: a link that somebody laid there would lead elsewhere."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise NotFound(
            f"there is no backup {path.name}: `GET /v1/journal/backups` lists them", name=path.name
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NotFound(f"{path.name} is no backup", name=path.name)
    return file


async def _pieces(file: int) -> AsyncGenerator[bytes, None]:
    try:
        while piece := await everyday.run(os.read, file, _PIECE):
            yield piece
    finally:
        os.close(file)


def _folder(home: Path) -> Path:
    return home / "backups"


_BACKUP_LIST = "/v1/journal/backups"
BACKUPS: tuple[Route[Any, Any], ...] = (
    Route(
        method="POST",
        path="/v1/journal/backup",
        summary="a verified copy in the backups folder, or in another one",
        handler=backup,
        scope="owner",
        body=Backup,
        gives=(Gives(200, BackedUp),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path=_BACKUP_LIST,
        summary="the copies in the backups folder, newest first",
        handler=listing,
        scope="owner",
        gives=(Gives(200, BackupList),),
    ),
    Route(
        method="GET",
        path=f"{_BACKUP_LIST}/{{backup}}",
        summary="one of them, as it is",
        handler=download,
        scope="owner",
        gives=(Gives(200, media=_FILE),),
    ),
)
