"""Setting the daemon up over HTTP, for its owner: providers, a trial of one, and the preset. Keys
come in and never go out.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.agent.settings import ConfigReloaded
from palyra.api.about import PolicyState
from palyra.api.calls import ApiCall, DaemonInfo, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.features.setup.model import (
    NewProvider,
    PresetName,
    ProviderInfo,
    ProviderName,
    Setting,
    Setup,
    Trial,
)
from palyra.policy.store import PolicyStore
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday


class ProviderList(Struct, frozen=True):
    """`restart`: something was changed that only a restart brings."""

    providers: list[ProviderInfo]
    restart: bool


class WhichProvider(Input, frozen=True, kw_only=True):
    name: ProviderName


class ConfigChanges(Input, frozen=True, kw_only=True):
    """Settings by their keys, as `learning.enabled`; those of learning and of healing can be
    changed.
    """

    changes: Annotated[dict[str, Setting], Meta(min_length=1, max_length=50)]


class NewPreset(Input, frozen=True, kw_only=True):
    preset: PresetName


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return await _now(call)


async def save(call: ApiCall[Nothing, NewProvider]) -> HttpResponse:
    await call.services.get(Setup).save_provider(call.principal, call.body)
    return await _now(call)


async def remove(call: ApiCall[WhichProvider, Nothing]) -> HttpResponse:
    await call.services.get(Setup).remove_provider(call.principal, call.query.name)
    return await _now(call)


async def _now(call: ApiCall[Any, Any]) -> HttpResponse:
    setup, now_ms = call.services.get(Setup), call.services.get(Clock).now_ms()
    return ok(await everyday.run(lambda: ProviderList(setup.providers(now_ms), setup.stale())))


async def trial(call: ApiCall[Nothing, NewProvider]) -> HttpResponse:
    return ok(await call.services.get(Setup).try_provider(call.body))


async def change(call: ApiCall[Nothing, ConfigChanges]) -> HttpResponse:
    await call.services.get(Setup).change(call.principal, call.body.changes)
    return ok(await call.services.get(DaemonInfo).reload_config())


async def preset(call: ApiCall[Nothing, NewPreset]) -> HttpResponse:
    await call.services.get(Setup).use_preset(call.principal, call.body.preset)
    return ok(
        PolicyState(call.services.get(PolicyStore).version, call.services.get(PolicyStore).preset)
    )


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/providers",
        summary="model providers: where they are, what they offer, where their keys are",
        handler=listing,
        scope="owner",
        gives=(Gives(200, ProviderList),),
    ),
    Route(
        method="POST",
        path="/v1/providers",
        summary="add or change a provider; a restart brings it",
        handler=save,
        scope="owner",
        body=NewProvider,
        gives=(Gives(200, ProviderList),),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path="/v1/providers",
        summary="remove a provider; a restart takes it away",
        handler=remove,
        scope="owner",
        query=WhichProvider,
        gives=(Gives(200, ProviderList),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/providers/test",
        summary="one tiny request to a provider, saved or not",
        handler=trial,
        scope="owner",
        body=NewProvider,
        gives=(Gives(200, Trial),),
    ),
    Route(
        method="PATCH",
        path="/v1/config",
        summary="change settings of learning or healing, at once and for good",
        handler=change,
        scope="owner",
        body=ConfigChanges,
        gives=(Gives(200, ConfigReloaded),),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/policy/preset",
        summary="go over to another preset, at once",
        handler=preset,
        scope="owner",
        body=NewPreset,
        gives=(Gives(200, PolicyState),),
    ),
)
