"""The vault over HTTP, for the owner only. A value comes in here and never goes out again, not even
in a refusal.
"""

from msgspec import Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Nothing, ok
from palyra.features.vault.rules import InScope, Named, NewSecret, Value
from palyra.features.vault.service import Vault


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
    """How many secrets were sealed anew."""

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
