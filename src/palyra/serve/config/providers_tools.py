"""Settings of how a model gets its tools: for its provider, and for it alone."""

from collections.abc import Callable
from hashlib import sha256
from typing import get_args

import msgspec

from palyra.serve.config.sections import Provider, ToolMode

_MODES: dict[str, ToolMode] = {mode: mode for mode in get_args(ToolMode)}


def is_mode_of(entry: str) -> bool:
    """Return whether an entry is `MODEL=MODE`. A model's name may hold any character, also this
    one.
    """
    model, _, mode = entry.rpartition("=")
    return bool(model) and mode in _MODES


def modes(provider: Provider) -> Callable[[str], ToolMode]:
    single = {
        model: _MODES[mode]
        for model, _, mode in (each.rpartition("=") for each in provider.tools_of)
        if mode in _MODES
    }
    return lambda model: single.get(model, provider.tools)


def digest(provider: Provider) -> str:
    """Return a digest of the settings on which it depends whether a model takes tools."""
    told = (provider.kind, provider.base_url, provider.tools, provider.tools_of)
    return sha256(msgspec.json.encode(told)).hexdigest()[:16]
