"""Tools that run on another machine, as the flow of a call knows them."""

from palyra.core.events import FileChange
from palyra.core.ports import CallContext
from palyra.core.tools import ToolResult
from palyra.store.database import Tx

# How the source of such a tool begins.
PREFIX = "worker:"


class RemoteTool:
    """A tool elsewhere: it keeps its own checkpoints, and a call can be taken up again there."""

    async def resume(self, arguments: object, context: CallContext) -> ToolResult | None:
        """Take up a call that was begun before. None: it is in doubt."""
        raise NotImplementedError

    async def roll_back(self, context: CallContext) -> tuple[FileChange, ...]:
        """Put back what a call changed. Raise a PalyraError if that failed."""
        raise NotImplementedError

    def settled(self, tx: Tx, call_id: str) -> None:
        """The result is on the tape: the other machine may forget the call."""
        raise NotImplementedError
