"""Types of setting the daemon up: its providers, a trial of one, its preset. Which file that is in
is not said here.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from palyra.agent.settings import ConfigReloaded

ProviderKind = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
PresetName = Literal["locked", "default", "coding", "research"]
ProviderName = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,30}$")]
ChannelName = Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")]
Setting = bool | int | str
Line = Annotated[str, Meta(max_length=500)]


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """`key` says where its key is, never what it is. `found`: it is there because of what is on the
    machine, not by the file.

    `running` is false for what a restart brings.
    """

    name: str
    kind: str
    base_url: str
    models: tuple[str, ...]
    key: str
    found: bool
    default: bool
    running: bool
    healthy: bool
    # How many tokens single models take, as `MODEL=TOKENS`.
    windows: tuple[str, ...] = ()


class FoundModel(Struct, frozen=True, kw_only=True):
    """Facts that a server reports of one of its models; None and 0: unknown."""

    name: str
    context_tokens: int = 0
    tools: bool | None = None
    vision: bool | None = None


class FoundProvider(Struct, frozen=True, kw_only=True):
    """A provider that could be set up. `key` says where its key is, never what it is. `advice`
    says what to do where it cannot be used yet.
    """

    name: str
    title: str
    kind: ProviderKind
    base_url: str
    key: str = ""
    models: tuple[FoundModel, ...] = ()
    local: bool = False
    advice: str = ""
    # It is in the settings already.
    configured: bool = False
    # It answers, but its model is not in memory yet: ask again soon.
    loading: bool = False


class NewProvider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`key` goes into the vault, for this provider alone; empty keeps the one there. `key_from`
    names the environment variable that holds it instead. `first`: its first model is used first.
    `windows`: how many tokens these models take, as `MODEL=TOKENS`.
    """

    name: ProviderName
    kind: ProviderKind
    base_url: Line = ""
    models: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=50)
    ] = ()
    key: Annotated[str, Meta(max_length=4096, extra_json_schema={"writeOnly": True})] = ""
    key_from: Annotated[str, Meta(pattern="^([A-Za-z_][A-Za-z0-9_]{0,99})?$")] = ""
    first: bool = False
    windows: Annotated[tuple[Line, ...], Meta(max_length=50)] | None = None
    vision: bool | None = None

    def __repr__(self) -> str:
        return f"NewProvider({self.name})"


class NewChannel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Secrets among the settings go into the vault, for this channel alone; one that is left out
    keeps the one there.
    """

    name: ChannelName
    kind: Annotated[str, Meta(max_length=32)]
    settings: Annotated[
        dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=4096)]],
        Meta(max_length=32, extra_json_schema={"writeOnly": True}),
    ] = {}

    def __repr__(self) -> str:
        return f"NewChannel({self.name})"


class Trial(Struct, frozen=True, kw_only=True):
    """One tiny request to a provider. `fix` says what to do if it did not work. `tools`: whether
    the model called the tool that it was offered; None: it was not asked to.
    """

    ok: bool
    model: str
    took_ms: int
    message: str
    fix: str = ""
    tools: bool | None = None
    # What the server keeps of a prompt, if it says so once the model is loaded.
    context_tokens: int = 0


class NewMcpServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New server: `command`, a program and its arguments, or `url`. `env` and `headers` name
    secrets as `vault:NAME`. `hosts`: what the program may reach; none: no network.
    """

    name: Annotated[str, Meta(min_length=1, max_length=40)]
    command: Annotated[tuple[Line, ...], Meta(max_length=50)] = ()
    url: Line = ""
    headers: Annotated[tuple[Line, ...], Meta(max_length=20)] = ()
    env: Annotated[tuple[Line, ...], Meta(max_length=50)] = ()
    folder: Line = ""
    writable: bool = True
    hosts: Annotated[tuple[Line, ...], Meta(max_length=50)] = ()


class ListenerChanges(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of listeners. What is left out stays; all takes effect at once. `host` and `tls` are
    those of the address that the request came to: changing them ends connections to it.
    """

    grpc: bool | None = None
    # An address and a port; empty: none.
    workers: Annotated[str, Meta(max_length=100)] | None = None
    quic: bool | None = None
    tls: bool | None = None
    host: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class Setup(Protocol):
    """Changes are written down and recorded; each says what it needs to take effect."""

    def providers(self, now_ms: int) -> list[ProviderInfo]: ...

    def stale(self) -> bool: ...

    async def save_provider(self, by: str, new: NewProvider) -> None: ...

    async def remove_provider(self, by: str, name: str) -> None: ...

    async def try_provider(self, new: NewProvider) -> Trial: ...

    async def found(self) -> list[FoundProvider]: ...

    async def models_of(self, new: NewProvider) -> FoundProvider: ...

    async def set_default(self, by: str, model: str) -> None: ...

    async def save_channel(self, by: str, new: NewChannel) -> None: ...

    async def remove_channel(self, by: str, name: str) -> None: ...

    async def save_mcp_server(self, by: str, new: NewMcpServer) -> None: ...

    async def enable_mcp_server(self, by: str, name: str, *, enabled: bool) -> None: ...

    async def remove_mcp_server(self, by: str, name: str) -> None: ...

    async def change(self, by: str, changes: Mapping[str, Setting]) -> None: ...

    async def use_preset(self, by: str, preset: PresetName) -> None: ...

    async def use_shadow(self, by: str, named: str) -> None: ...

    async def use_listeners(
        self, by: str, changes: ListenerChanges, *, others: bool
    ) -> ConfigReloaded: ...
