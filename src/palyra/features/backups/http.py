"""Backups of the home over HTTP: how they stand, one more, and whether one can be restored."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.core.errors import PalyraError
from palyra.features.backups.model import BackupStatus, CheckedBackup, MadeBackup, StoredBackup
from palyra.features.backups.service import Backups


class CheckBackup(Input, frozen=True, kw_only=True):
    """`name`: the backup to try; the newest without one."""

    name: Annotated[str, Meta(pattern="^$|^home-[0-9a-fTZ-]{1,60}\\.palyra$")] = ""


class HomeBackupList(Struct, frozen=True, kw_only=True):
    """`problem`: why the target cannot be listed now."""

    every: str
    keep: int
    drill: str
    target: str
    encrypted: bool
    status: BackupStatus
    backups: list[StoredBackup]
    problem: str = ""


async def show(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    service = call.services.get(Backups)
    settings, found, problem = service.settings, list[StoredBackup](), ""
    target = settings.target or str(service.of_home.home / "backups")
    try:
        found = await service.listing()
    except PalyraError as error:
        problem = error.message
    return ok(
        HomeBackupList(
            every=settings.every,
            keep=settings.keep,
            drill=settings.drill,
            target=target,
            encrypted=bool(settings.passphrase),
            status=await service.status(),
            backups=found,
            problem=problem,
        )
    )


async def make(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Backups).make(call.principal), 201)


async def check(call: ApiCall[Nothing, CheckBackup]) -> HttpResponse:
    return ok(await call.services.get(Backups).check(call.body.name))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/backups",
        summary="the backups of the home at their target, and how the last ones went",
        handler=show,
        scope="owner",
        gives=(Gives(200, HomeBackupList),),
    ),
    Route(
        method="POST",
        path="/v1/backups",
        summary="make a backup of the home now",
        handler=make,
        scope="owner",
        body=Nothing,
        gives=(Gives(201, MadeBackup),),
    ),
    Route(
        method="POST",
        path="/v1/backups/check",
        summary="restore a backup into a scratch home and verify it",
        handler=check,
        scope="owner",
        body=CheckBackup,
        gives=(Gives(200, CheckedBackup),),
        errors=(404,),
    ),
)
