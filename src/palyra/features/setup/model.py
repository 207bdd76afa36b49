"""What is said about setting the daemon up: its providers, a trial of one, its preset. Which file
that is in is not said here.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

ProviderKind = Literal["openai-chat", "openai-responses", "anthropic"]
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


class NewProvider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`key` goes into the vault, for this provider alone; empty keeps the one there. `first`: its
    first model is used first.
    """

    name: ProviderName
    kind: ProviderKind
    base_url: Line = ""
    models: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=50)
    ] = ()
    key: Annotated[str, Meta(max_length=4096, extra_json_schema={"writeOnly": True})] = ""
    first: bool = False

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
    """One tiny request to a provider. `fix` says what to do if it did not work."""

    ok: bool
    model: str
    took_ms: int
    message: str
    fix: str = ""


class Setup(Protocol):
    """Changes are written down and recorded; each says what it needs to take effect."""

    def providers(self, now_ms: int) -> list[ProviderInfo]: ...

    def stale(self) -> bool: ...

    async def save_provider(self, by: str, new: NewProvider) -> None: ...

    async def remove_provider(self, by: str, name: str) -> None: ...

    async def try_provider(self, new: NewProvider) -> Trial: ...

    async def save_channel(self, by: str, new: NewChannel) -> None: ...

    async def remove_channel(self, by: str, name: str) -> None: ...

    async def change(self, by: str, changes: Mapping[str, Setting]) -> None: ...

    async def use_preset(self, by: str, preset: PresetName) -> None: ...
