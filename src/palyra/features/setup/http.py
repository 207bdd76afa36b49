"""Setting the daemon up over HTTP, for its owner: providers, a trial of one, and the preset. Keys
come in and never go out.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.agent.settings import ConfigReloaded
from palyra.api.about import PolicyState
from palyra.api.auth import Access
from palyra.api.calls import ApiCall, DaemonInfo, HttpResponse, Input, Nothing, ok
from palyra.api.routes import Gives, Route
from palyra.features.setup.model import (
    FoundProvider,
    ListenerChanges,
    NewMcpServer,
    NewProvider,
    PresetName,
    ProviderInfo,
    ProviderName,
    Setting,
    Setup,
    Trial,
)
from palyra.policy.store import PolicyStore, ShadowSlot, name
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday


class ProviderList(Struct, frozen=True):
    """`restart`: something was changed that only a restart brings; nothing here needs one any
    more.
    """

    providers: list[ProviderInfo]
    restart: bool


class FoundProviders(Struct, frozen=True):
    found: list[FoundProvider]


class DefaultModel(Input, frozen=True, kw_only=True):
    """Name of a model: `provider/model`, or a unique model's name."""

    model: Annotated[str, Meta(min_length=1, max_length=200)]


class WhichProvider(Input, frozen=True, kw_only=True):
    name: ProviderName


class ConfigChanges(Input, frozen=True, kw_only=True):
    """Settings by their keys, as `learning.enabled`; those of learning and of healing can be
    changed.
    """

    changes: Annotated[dict[str, Setting], Meta(min_length=1, max_length=50)]


class McpServerChange(Input, frozen=True, kw_only=True):
    enabled: bool


class SavedMcpServer(Struct, frozen=True):
    """Name of a saved server. `GET /v1/mcp` has its state: a server takes a moment to start."""

    name: str


class NewShadow(Input, frozen=True, kw_only=True):
    """A preset or a folder of policies; empty: none."""

    named: Annotated[str, Meta(max_length=500)]


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


async def found(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(FoundProviders(await call.services.get(Setup).found()))


async def offered(call: ApiCall[Nothing, NewProvider]) -> HttpResponse:
    return ok(await call.services.get(Setup).models_of(call.body))


async def use_first(call: ApiCall[Nothing, DefaultModel]) -> HttpResponse:
    await call.services.get(Setup).set_default(call.principal, call.body.model)
    return await _now(call)


async def _now(call: ApiCall[Any, Any]) -> HttpResponse:
    setup, now_ms = call.services.get(Setup), call.services.get(Clock).now_ms()
    return ok(await everyday.run(lambda: ProviderList(setup.providers(now_ms), setup.stale())))


async def trial(call: ApiCall[Nothing, NewProvider]) -> HttpResponse:
    return ok(await call.services.get(Setup).try_provider(call.body))


async def change(call: ApiCall[Nothing, ConfigChanges]) -> HttpResponse:
    await call.services.get(Setup).change(call.principal, call.body.changes)
    return ok(await call.services.get(DaemonInfo).reload_config())


async def listen(call: ApiCall[Nothing, ListenerChanges]) -> HttpResponse:
    others = call.services.get(Access).has_others()
    return ok(
        await call.services.get(Setup).use_listeners(call.principal, call.body, others=others)
    )


async def save_mcp(call: ApiCall[Nothing, NewMcpServer]) -> HttpResponse:
    await call.services.get(Setup).save_mcp_server(call.principal, call.body)
    return ok(SavedMcpServer(call.body.name))


async def change_mcp(call: ApiCall[Nothing, McpServerChange]) -> HttpResponse:
    name = call.path["server"]
    await call.services.get(Setup).enable_mcp_server(
        call.principal, name, enabled=call.body.enabled
    )
    return ok(SavedMcpServer(name))


async def remove_mcp(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    await call.services.get(Setup).remove_mcp_server(call.principal, call.path["server"])
    return ok(SavedMcpServer(call.path["server"]))


async def preset(call: ApiCall[Nothing, NewPreset]) -> HttpResponse:
    await call.services.get(Setup).use_preset(call.principal, call.body.preset)
    return ok(
        PolicyState(call.services.get(PolicyStore).version, call.services.get(PolicyStore).preset)
    )


async def use_shadow(call: ApiCall[Nothing, NewShadow]) -> HttpResponse:
    await call.services.get(Setup).use_shadow(call.principal, call.body.named)
    shadow = call.services.get(ShadowSlot).current
    return ok(PolicyState(shadow.version, name(shadow)) if shadow else PolicyState("", ""))


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
        summary="add or change a provider, at once",
        handler=save,
        scope="owner",
        body=NewProvider,
        gives=(Gives(200, ProviderList),),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path="/v1/providers",
        summary="remove a provider, at once; runs that began with it end with it",
        handler=remove,
        scope="owner",
        query=WhichProvider,
        gives=(Gives(200, ProviderList),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/providers/test",
        summary="one tiny request with a tool to a provider, saved or not",
        handler=trial,
        scope="owner",
        body=NewProvider,
        gives=(Gives(200, Trial),),
    ),
    Route(
        method="GET",
        path="/v1/providers/found",
        summary="providers that could be set up: servers on this machine, keys in the environment",
        handler=found,
        scope="owner",
        gives=(Gives(200, FoundProviders),),
    ),
    Route(
        method="POST",
        path="/v1/providers/models",
        summary="the models that a provider says it has, saved or not",
        handler=offered,
        scope="owner",
        body=NewProvider,
        gives=(Gives(200, FoundProvider),),
    ),
    Route(
        method="POST",
        path="/v1/providers/default",
        summary="choose the model that is used first, at once",
        handler=use_first,
        scope="owner",
        body=DefaultModel,
        gives=(Gives(200, ProviderList),),
        errors=(409,),
    ),
    Route(
        method="PATCH",
        path="/v1/config",
        summary="change settings of learning, healing or backups, at once and permanently",
        handler=change,
        scope="owner",
        body=ConfigChanges,
        gives=(Gives(200, ConfigReloaded),),
        errors=(409,),
    ),
    Route(
        method="PATCH",
        path="/v1/listeners",
        summary="open, close or move listeners, at once",
        handler=listen,
        scope="owner",
        body=ListenerChanges,
        gives=(Gives(200, ConfigReloaded),),
        errors=(409,),
    ),
    Route(
        method="POST",
        path="/v1/mcp",
        summary="add an MCP server or change its settings, at once",
        handler=save_mcp,
        scope="owner",
        body=NewMcpServer,
        gives=(Gives(200, SavedMcpServer),),
        errors=(404,),
    ),
    Route(
        method="PATCH",
        path="/v1/mcp/{server}",
        summary="enable or disable an MCP server, at once",
        handler=change_mcp,
        scope="owner",
        body=McpServerChange,
        gives=(Gives(200, SavedMcpServer),),
        errors=(404,),
    ),
    Route(
        method="DELETE",
        path="/v1/mcp/{server}",
        summary="remove an MCP server, at once; its folder and what was accepted stay",
        handler=remove_mcp,
        scope="owner",
        gives=(Gives(200, SavedMcpServer),),
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/v1/policy/shadow",
        summary="try policies beside those in force, at once; their decisions are only recorded",
        handler=use_shadow,
        scope="owner",
        body=NewShadow,
        gives=(Gives(200, PolicyState),),
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
