"""One call after judging."""

from msgspec import Struct

from palyra.core.events import AnyEvent, ApprovalRequested, ToolFinished
from palyra.core.tools import Scope, ToolSpec

_LOOKING = frozenset({"fs.read"})


class Judged(Struct):
    """One call after judging: what goes on the tape, and the approval it asks for."""

    events: list[AnyEvent]
    request: ApprovalRequested | None = None
    pure: bool = False
    allowed: bool = False
    # It only looks at what is on this machine: nobody hears of it, and nothing is changed.
    looks: bool = False
    # The approval whose grant answered for it.
    grant: str = ""

    @property
    def refused(self) -> bool:
        return isinstance(self.events[-1], ToolFinished)


def only_looks(spec: ToolSpec, scope: Scope) -> bool:
    """Return whether a pure call stays on this machine, and in this process."""
    return spec.source == "internal" and _LOOKING.issuperset(
        (*spec.capabilities, *scope.capabilities)
    )
