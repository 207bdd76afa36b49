"""The channels of a daemon, made when they are first wanted: one without channels neither loads nor
starts anything for them.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palyra.features.channels.registry import ConfiguredChannel
    from palyra.features.channels.service import Channels


class LateChannels:
    def __init__(self, make: "Callable[[], Channels]") -> None:
        self._make = make
        self._made: Channels | None = None

    @property
    def now(self) -> "Channels":
        if self._made is None:
            self._made = self._make()
        return self._made

    @property
    def names(self) -> tuple[str, ...]:
        return self._made.names if self._made is not None else ()

    def away(self) -> list[tuple[str, str]]:
        """Channels that should be connected and are not, and why."""
        return self._made.away() if self._made is not None else []

    async def apply(
        self,
        configured: "Mapping[str, ConfiguredChannel]",
        *,
        router_on: bool,
        notices_to: str = "",
        approvals_to: str = "",
    ) -> None:
        if configured or self._made is not None:
            await self.now.apply(
                configured, router_on=router_on, notices_to=notices_to, approvals_to=approvals_to
            )

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()
