"""The few numbers of the runtime that an operator may change while it runs. Whoever needs one looks
here when it is needed.
"""

from dataclasses import dataclass, field

from msgspec import Struct

from palyra.core.events import Budgets
from palyra.core.verdicts import Origin


class ApprovalTimes(Struct, frozen=True):
    """Time that a person has to answer, in milliseconds by origin; 0: no limit."""

    interactive: int = 15 * 60_000
    api: int = 15 * 60_000
    scheduled: int = 0
    child: int = 15 * 60_000
    channel: int = 24 * 3_600_000

    def of(self, origin: Origin) -> int:
        return int(getattr(self, origin))


class ProviderPatience(Struct, frozen=True):
    """Time that a run waits while no provider can answer, in milliseconds by origin; 0: none.

    A subagent's run waits as long as the run that it works for would.
    """

    interactive: int = 15 * 60_000
    api: int = 15 * 60_000
    scheduled: int = 24 * 3_600_000
    channel: int = 6 * 3_600_000

    def of(self, origin: Origin) -> int:
        return int(getattr(self, "interactive" if origin == "child" else origin))


@dataclass
class Settings:
    """A new run takes the budgets as they are when it is accepted; an approval its time when it is
    asked for.
    """

    budgets: Budgets
    approval_times: ApprovalTimes
    mailbox_depth: int
    patience: ProviderPatience = field(default_factory=ProviderPatience)
    # Between two tries while runs wait for a provider, unless it asks for more itself.
    longest_pause_ms: int = 2 * 60_000


class ConfigReloaded(Struct, frozen=True):
    """Result of a reload: which changed settings are in force now, and which need a restart."""

    live: tuple[str, ...]
    after_restart: tuple[str, ...]
