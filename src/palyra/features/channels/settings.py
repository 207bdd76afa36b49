"""What the config says about channels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palyra.features.channels.registry import ConfiguredChannel


@dataclass(frozen=True)
class ChannelSettings:
    """`notices_to` and `approvals_to` name where notices and approvals of other doors go."""

    channels: "Mapping[str, ConfiguredChannel]"
    router_on: bool = True
    notices_to: str = ""
    approvals_to: str = ""
