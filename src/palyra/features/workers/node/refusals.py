"""What a worker does not do, whatever its daemon asks for: it decides by itself, from how it was
started.
"""

from palyra.core.errors import PalyraError
from palyra.core.input_checks import DEEPEST, too_deep
from palyra.core.tools import Outcome
from palyra.features.workers import file_transfer
from palyra.features.workers.protocol import Assign, Finished


def why(assign: Assign, offered: tuple[str, ...], slots: int, busy: int) -> str:
    """Return why a call is refused, or an empty text. `busy`: other calls that this worker has."""
    if assign.tool not in offered:
        return (
            f"this worker does not offer {assign.tool[:100]}: start it with --offer to change that"
        )
    if busy >= slots:
        return (
            f"this worker does {slots} calls at once and has them: start it with --slots to change"
            " that"
        )
    if too_deep(assign.arguments):
        return f"the arguments are nested deeper than {DEEPEST} levels"
    try:
        file_transfer.check("the daemon", assign.files)
    except PalyraError as error:
        return error.message
    return ""


def not_begun(assign: Assign, reason: str, outcome: Outcome = "error") -> Finished:
    """The result of a call that left no trace here."""
    return Finished(
        call_id=assign.call_id, attempt=assign.attempt, outcome=outcome, text=reason[:2_000]
    )
