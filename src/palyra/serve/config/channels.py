"""The tables `[channels.NAME]`: what makes one wrong, and how it becomes what the channels are
told.

A secret never stands in the file: where one is wanted, a reference says where it is.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from palyra.serve.config import mcp
from palyra.serve.config.schema import Config
from palyra.serve.config.sections import ChannelSection

if TYPE_CHECKING:
    from palyra.features.channels.registry import ConfiguredChannel as Configured

# As a part of a principal's name.
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_SETTING = re.compile(r"[a-z][a-z0-9_]*=")
_SECRET = re.compile(r"token|secret|passw|key$|credential", re.I)
_RULES = (
    "allow",
    "deny",
    "direct",
    "groups",
    "mention",
    "names",
    "broadcast",
    "isolate_session_by_sender",
    "per_minute",
    "waiting",
    "concurrency",
)


# What stands in the API where a channel's name would.
_TAKEN = frozenset(
    {
        "kinds",
        "messages",
        "trace",
        "dead",
        "pairings",
        "invitations",
        "people",
        "approvals",
        "router",
        "at",
    }
)


def good_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _TAKEN


def objection(key: str, value: Any) -> str:
    """Return what is wrong with one value of the right type, never repeating the value."""
    match key:
        case "settings" if not all(_SETTING.match(each) for each in value):
            return 'each must be written as "name=value"'
        case "settings" if any(_is_plain_secret(each) for each in value):
            how = 'name where it is: "vault:NAME", "env:NAME" or "file:/path"'
            return f"holds what looks like a secret; it does not belong in this file: {how}"
        case "workspace" if value and not os.path.isabs(value):
            return "must be an absolute path"
        case "approvals_to" if value and value != "owner" and "/" not in value:
            return 'must be "owner", or written as "channel/conversation"'
        case "notices_to" if value and "/" not in value:
            return 'must be written as "channel/conversation"'
    return ""


def _is_plain_secret(setting: str) -> bool:
    name, _, value = setting.partition("=")
    return _SECRET.search(name) is not None and not mcp.is_reference(value)


def contradictions(config: Config) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for key in ("notices_to", "approvals_to"):
        told, slash, _ = getattr(config.channel_router, key).partition("/")
        if slash and told not in config.channels:
            yield (
                ("channel_router", key),
                f"names the channel {told!r}, and there is no [channels.{told}]",
                "",
            )
    for name, channel in config.channels.items():
        if not channel.kind:
            yield (
                ("channels", name, "kind"),
                "is missing; `palyra channels add` says which kinds there are",
                "",
            )
        to, slash, _ = channel.approvals_to.partition("/")
        if slash and to not in config.channels:
            yield (
                ("channels", name, "approvals_to"),
                f"names the channel {to!r}, and there is no [channels.{to}]",
                "",
            )


def channels(config: Config) -> Mapping[str, "Configured"]:
    """The channels as they are configured. Who has none does not pay for what knows about them."""
    if not config.channels:
        return {}
    return {name: _configured(name, channel) for name, channel in config.channels.items()}


def _configured(name: str, channel: ChannelSection) -> "Configured":
    from palyra.features.channels.model import Rules
    from palyra.features.channels.registry import ConfiguredChannel as Configured

    return Configured(
        name=name,
        kind=channel.kind,
        enabled=channel.enabled,
        settings={
            key: value for key, _, value in (each.partition("=") for each in channel.settings)
        },
        rules=Rules(**{rule: getattr(channel, rule) for rule in _RULES}),
        workspace=channel.workspace,
        approvals_to=channel.approvals_to,
    )
