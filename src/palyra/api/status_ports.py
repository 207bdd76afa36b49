"""What the status page counts for features. A daemon without the feature counts nothing."""

from typing import Protocol

from palyra.store.database import Tx


class OpenIncidents(Protocol):
    """Incidents that are not over."""

    @property
    def unrecorded(self) -> int:
        """How many the journal could not take yet."""

    def open_by_domain(self, tx: Tx) -> dict[str, int]: ...


class UnreadNotices(Protocol):
    """Notices that their reader has not seen."""

    def unread(self, tx: Tx, principal: str) -> int: ...
