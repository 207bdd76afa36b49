"""Written by scripts/clients.py from the route table: types of the verbs about status."""

from typing import Literal

from msgspec import Struct

from palyra.core.tools import ToolSpec

__all__ = ["Health", "ModelInfo", "PolicyState", "Ready", "Status", "ToolList", "ToolSpec"]


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["ok"]
    version: str


class Ready(Struct, frozen=True, kw_only=True):
    status: Literal["ready", "unavailable"]
    reason: str = ""


class ModelInfo(Struct, frozen=True, kw_only=True):
    """Prices are in dollars for a million tokens; None: no price is known."""

    name: str
    provider: str
    model: str
    context_tokens: int
    default: bool
    healthy: bool
    vision: bool = True
    private: bool = True
    input_price: float | None = None
    output_price: float | None = None
    tools: str = "native"


class PolicyState(Struct, frozen=True, kw_only=True):
    version: str
    preset: str


class Status(Struct, frozen=True, kw_only=True):
    version: str
    url: str
    home: str
    workspace: str
    models: list[ModelInfo]
    policy: PolicyState
    tools: list[str]
    runs_working: int
    watchers: int
    entries: int
    incidents: int
    unread: int
    notes: tuple[str, ...]
    started_ms: int
    uptime_ms: int


class ToolList(Struct, frozen=True, kw_only=True):
    tools: list[ToolSpec]
