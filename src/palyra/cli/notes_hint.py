"""A hint about notes for agents that wait for a review."""

from palyra.cli.safe_text import clean
from palyra.client import Client
from palyra.client.types.notes import Note
from palyra.core.errors import PalyraError

_MOST_NAMED = 3


def waits(note: Note) -> bool:
    """Return whether somebody should review it: it is there, and runs go without it."""
    return note.state in ("new", "changed")


def hint(api: Client, session_id: str) -> str:
    """Return one line if notes of a session's folder wait for a review. Nobody is kept from working
    if it cannot be asked.
    """
    try:
        waiting = [each.file for each in api.list_notes(session_id=session_id).notes if waits(each)]
    except PalyraError:
        return ""
    if not waiting:
        return ""
    are, them = ("is", "it") if len(waiting) == 1 else ("are", "them")
    more = len(waiting) - _MOST_NAMED
    named = f"{', '.join(waiting[:_MOST_NAMED])} and {more} more notes" if more > 0 else ""
    return (
        f"{clean(named or ' and '.join(waiting))} {are} not accepted yet: the agent does"
        f" not follow {them}. Review: palyra notes"
    )
