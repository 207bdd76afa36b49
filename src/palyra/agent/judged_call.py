"""One call after judging."""

from msgspec import Struct

from palyra.core.events import AnyEvent, ApprovalRequested, ToolFinished


class Judged(Struct):
    """One call after judging: what goes on the tape, and the approval it asks for."""

    events: list[AnyEvent]
    request: ApprovalRequested | None = None
    pure: bool = False
    allowed: bool = False
    # The approval whose grant answered for it.
    grant: str = ""

    @property
    def refused(self) -> bool:
        return isinstance(self.events[-1], ToolFinished)
