"""Listeners and certificates of the daemon, over HTTP. What is public about a certificate may be
seen; keys never.
"""

from typing import Any

from msgspec import Struct

from palyra.api.calls import ApiCall, DaemonInfo, HttpResponse, Nothing, ok
from palyra.api.exposure import Exposure, Listener
from palyra.api.routes import Gives, Route
from palyra.features.tls.model import Shown
from palyra.features.tls.rows import Certificate
from palyra.features.tls.service import Certificates

_PEM = b"application/x-pem-file"


class Listening(Struct, frozen=True):
    """`served` is what is shown to who connects; `authority` is our own, once it was needed;
    `workers` have one each.
    """

    exposure: Exposure
    listeners: list[Listener]
    served: Shown | None
    authority: Shown | None
    workers: list[Certificate]


async def look(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    services = call.services
    served, authority = await services.get(Certificates).shown()
    return ok(
        Listening(
            services.get(DaemonInfo).exposure,
            services.get(DaemonInfo).listeners,
            served,
            authority,
            services.get(Certificates).workers(),
        )
    )


async def renew(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    await call.services.get(Certificates).renew(call.principal)
    served, _ = await call.services.get(Certificates).shown()
    return ok(served)


async def authority(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return HttpResponse(200, await call.services.get(Certificates).trust(), _PEM)


async def revoke(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        await call.services.get(Certificates).revoke_worker(
            call.principal, call.path["fingerprint"]
        )
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/tls",
        summary="where the daemon listens, and its certificates",
        handler=look,
        scope="owner",
        gives=(Gives(200, Listening),),
    ),
    Route(
        method="POST",
        path="/v1/tls/renew",
        summary="a new certificate, or your own files read again",
        handler=renew,
        scope="owner",
        body=Nothing,
        gives=(Gives(200, Shown),),
    ),
    Route(
        method="GET",
        path="/v1/tls/authority",
        summary="the certificate of the daemon's own authority, for others to trust",
        handler=authority,
        gives=(Gives(200, media=_PEM),),
    ),
    Route(
        method="DELETE",
        path="/v1/tls/workers/{fingerprint}",
        summary="revoke a worker's certificate, at once",
        handler=revoke,
        scope="owner",
        gives=(Gives(200, Certificate),),
    ),
)
