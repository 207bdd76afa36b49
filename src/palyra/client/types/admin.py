"""Written by scripts/clients.py from the route table: types of the verbs about admin."""

from typing import Literal

from msgspec import Struct

__all__ = [
    "ConfigReloaded",
    "FoundModel",
    "FoundProvider",
    "FoundProviders",
    "LoginLink",
    "MadeToken",
    "Nothing",
    "ProviderInfo",
    "ProviderList",
    "Token",
    "TokenList",
    "Trial",
]


class ConfigReloaded(Struct, frozen=True, kw_only=True):
    """Result of a reload: which changed settings are in force now, and which need a restart."""

    live: tuple[str, ...]
    after_restart: tuple[str, ...]


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True):
    token_id: str
    name: str
    principal: str
    scope: Literal["client", "connector", "operator", "owner", "viewer", "worker"]
    created_ms: int
    expires_ms: int = 0
    used_ms: int = 0
    revoked_ms: int = 0
    workspace: str = ""


class TokenList(Struct, frozen=True, kw_only=True):
    tokens: list[Token]


class MadeToken(Struct, frozen=True, kw_only=True):
    """`token` is shown this once and kept nowhere."""

    token: str
    info: Token


class LoginLink(Struct, frozen=True, kw_only=True):
    url: str


class Nothing(Struct, frozen=True, kw_only=True):
    """No parameters, or an empty object."""


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """`key` says where its key is, never what it is. `found`: it is there because of what is on the
    machine, not by the file.
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
    windows: tuple[str, ...] = ()


class ProviderList(Struct, frozen=True, kw_only=True):
    """`restart`: something was changed that only a restart brings; nothing here needs one any
    more.
    """

    providers: list[ProviderInfo]
    restart: bool


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
    context_tokens: int = 0


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
    kind: Literal["anthropic", "gemini", "openai-chat", "openai-responses"]
    base_url: str
    key: str = ""
    models: tuple[FoundModel, ...] = ()
    local: bool = False
    advice: str = ""
    configured: bool = False
    loading: bool = False


class FoundProviders(Struct, frozen=True, kw_only=True):
    found: list[FoundProvider]
