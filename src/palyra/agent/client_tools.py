"""The step that hands calls to the program which asked for them, and the alarm for a program that
never comes back.
"""

from collections.abc import Sequence

from palyra.agent.active_run import ActiveRun
from palyra.core.events import ToolHandedOver
from palyra.core.run_progress import CallProgress
from palyra.store import tape, tasks
from palyra.store.database import Tx

ABSENT = "client.absent"
# A program that has not come back by then is not waited for any longer.
LONGEST_MS = 24 * 3_600_000


def hand_over(tx: Tx, run: ActiveRun, calls: Sequence[CallProgress]) -> None:
    handed = ToolHandedOver(calls=tuple(call.call.id for call in calls))
    tape.append(tx, run.session_id, run.principal, [handed], run.run_id)
    tasks.enqueue(
        tx,
        ABSENT,
        {"run_id": run.run_id, "call_id": handed.calls[0]},
        key=handed.calls[0],
        not_before_ms=tx.now_ms + LONGEST_MS,
        principal=run.principal,
        session_id=run.session_id,
    )
