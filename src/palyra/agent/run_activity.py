"""Signs of life of a run that is being worked on, read off what is in memory anyway: nothing is
written down for them.
"""

from msgspec import Struct

from palyra.agent.active_run import ActiveRun, RunEnded


class Vital(Struct, frozen=True):
    """`achieved` changes when the run gets on, `stirred` also when it only tries. `tools` are those
    that run now.
    """

    run_id: str
    session_id: str
    achieved: tuple[int, ...]
    stirred: tuple[int, ...]
    tools: tuple[str, ...]


def of(working: ActiveRun) -> Vital | None:
    """None for a run that has ended."""
    try:
        progress = working.progress
    except RunEnded:
        return None
    calls = progress.last.calls if progress.last is not None else []
    begun = [
        call
        for call in calls
        if call.started is not None and call.finished is None and call.spawned is None
    ]
    finished = sum(call.finished is not None for call in calls)
    achieved = (progress.turns, progress.calls, finished, len(begun), working.pulse)
    return Vital(
        working.run_id,
        working.session_id,
        achieved,
        (progress.last_time_ms, working.pulse),
        tuple(call.call.tool for call in begun),
    )
