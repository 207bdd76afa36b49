"""The vault over HTTP, for the owner only. A value comes in here and never goes out again, not even in a refusal."""

from msgspec import Struct

from palyra.api.calls import Answer, Call, Input, Nothing, ok
from palyra.features.vault.rules import InScope, Named, NewSecret, Value


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


async def look(call: Call[Nothing, Nothing]) -> Answer:
    return ok(await call.parts.vault.look(call.principal))


async def put(call: Call[Nothing, NewSecret]) -> Answer:
    return ok(await call.parts.vault.put(call.principal, call.body))


async def rotate(call: Call[Nothing, NewValue]) -> Answer:
    body = call.body
    return ok(await call.parts.vault.rotate(call.principal, body.scope, body.name, body.value))


async def remove(call: Call[Which, Nothing]) -> Answer:
    await call.parts.vault.remove(call.principal, call.query.scope, call.query.name)
    return Answer(204)


async def rotate_key(call: Call[Nothing, Nothing]) -> Answer:
    return ok(KeyRotated(await call.parts.vault.rotate_key(call.principal)))
