"""The few numbers of the runtime that an operator may change while it runs. Whoever needs one looks
here when it is needed.
"""

from dataclasses import dataclass

from msgspec import Struct

from palyra.core.events import Budgets
from palyra.core.verdicts import Origin


class ApprovalTimes(Struct, frozen=True):
    """How long a person has to answer, in milliseconds by origin; 0 means for ever."""

    interactive: int = 15 * 60_000
    api: int = 15 * 60_000
    scheduled: int = 0
    child: int = 15 * 60_000
    channel: int = 24 * 3_600_000

    def of(self, origin: Origin) -> int:
        return int(getattr(self, origin))


@dataclass
class Settings:
    """A new run takes the budgets as they are when it is accepted; an approval its time when it is
    asked for.
    """

    budgets: Budgets
    approval_times: ApprovalTimes
    mailbox_depth: int


class ConfigReloaded(Struct, frozen=True):
    """Which changed settings are in force now, and which need a restart."""

    live: tuple[str, ...]
    after_restart: tuple[str, ...]
