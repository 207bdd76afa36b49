"""Refusals to undo, which the chat and the commands share."""

from palyra.core.errors import Conflict, NotFound, PalyraError

_UNDONE = "undone already"


def explained(error: Conflict, force: str) -> PalyraError:
    """A refusal to undo, with what can be done about it."""
    if error.details.get("files"):
        return Conflict(
            f"{error.message}: look at it first; {force} takes the change back all the same",
            **error.details,
        )
    if _UNDONE in error.message:
        return NotFound("nothing left to undo: that was undone already")
    return error
