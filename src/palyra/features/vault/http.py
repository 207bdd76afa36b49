"""The vault over HTTP, for the owner only. A value comes in here and never goes out again, not even
in a refusal.
"""

from typing import Any

from msgspec import Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route, json_of
from palyra.features.vault.rows import Secret
from palyra.features.vault.rules import InScope, Named, NewSecret, Value
from palyra.features.vault.service import Vault, VaultState


class Which(Input, frozen=True, kw_only=True):
    name: Named
    scope: InScope = "global"


class NewValue(Input, frozen=True, kw_only=True):
    name: Named
    value: Value
    scope: InScope = "global"

    def __repr__(self) -> str:
        return f"NewValue({self.scope}/{self.name})"


class KeyRotated(Struct, frozen=True):
    """Number of secrets that were sealed again."""

    secrets: int


async def look(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(Vault).look(call.principal))


async def put(call: ApiCall[Nothing, NewSecret]) -> HttpResponse:
    return ok(await call.services.get(Vault).put(call.principal, call.body))


async def rotate(call: ApiCall[Nothing, NewValue]) -> HttpResponse:
    body = call.body
    return ok(
        await call.services.get(Vault).rotate(call.principal, body.scope, body.name, body.value)
    )


async def remove(call: ApiCall[Which, Nothing]) -> HttpResponse:
    await call.services.get(Vault).remove(call.principal, call.query.scope, call.query.name)
    return HttpResponse(204)


async def rotate_key(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(KeyRotated(await call.services.get(Vault).rotate_key(call.principal)))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/vault",
        summary="what secrets there are; never their values",
        handler=look,
        scope="owner",
        gives=json_of(VaultState),
    ),
    Route(
        method="POST",
        path="/v1/vault",
        summary="store a secret, also in place of the one that has its name",
        handler=put,
        scope="owner",
        body=NewSecret,
        gives=json_of(Secret),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path="/v1/vault",
        summary="remove a secret",
        handler=remove,
        scope="owner",
        query=Which,
        gives=(Gives(204),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/vault/rotate",
        summary="give a secret another value",
        handler=rotate,
        scope="owner",
        body=NewValue,
        gives=json_of(Secret),
        errors=(404, 409),
    ),
    Route(
        method="POST",
        path="/v1/vault/rotate-key",
        summary="re-encrypt every secret under a new master key",
        handler=rotate_key,
        scope="owner",
        body=Nothing,
        gives=json_of(KeyRotated),
        errors=(409,),
    ),
)
