"""Route plans of a run: which provider, why, and the outcome, as its tape says."""

from msgspec import Struct

from palyra.core import events
from palyra.core.events import InputAssembled, ModelFailed, ModelReplied, RoutePlanned, TaskClass
from palyra.store.database import Tx


class AskedModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a model. `failure` is the class of what went wrong, empty where it answered."""

    seq: int
    time_ms: int
    model: str
    failure: str = ""
    message: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0
    priced: str = ""
    duration_ms: int = 0


class PlannedRoute(Struct, frozen=True, kw_only=True):
    """A plan with the calls that were made by it, until the next one."""

    seq: int
    time_ms: int
    plan: RoutePlanned
    calls: list[AskedModel]


def of_run(tx: Tx, run_id: str) -> list[PlannedRoute]:
    rows = tx.all(
        """SELECT seq, time_ms, body FROM entries WHERE run_id = :run_id AND run_id <> ''
        AND kind IN ('route.planned', 'model.replied', 'model.failed') ORDER BY seq""",
        run_id=run_id,
    )
    found: list[PlannedRoute] = []
    for seq, time_ms, body in rows:
        match events.decode(body):
            case RoutePlanned() as plan:
                found.append(PlannedRoute(seq=seq, time_ms=time_ms, plan=plan, calls=[]))
            case ModelReplied() | ModelFailed() as event if found:
                found[-1].calls.append(_asked(seq, time_ms, event))
            case _:
                pass
    return found


def _asked(seq: int, time_ms: int, event: ModelReplied | ModelFailed) -> AskedModel:
    failed = event if isinstance(event, ModelFailed) else None
    return AskedModel(
        seq=seq,
        time_ms=time_ms,
        model=f"{event.provider}/{event.model}",
        failure=failed.failure if failed else "",
        message=failed.message if failed else "",
        input_tokens=event.usage.input_tokens,
        cached_tokens=event.usage.cached_tokens,
        cache_write_tokens=event.usage.cache_write_tokens,
        output_tokens=event.usage.output_tokens,
        cost_microusd=event.cost_microusd,
        priced=event.priced,
        duration_ms=event.duration_ms,
    )


class UnderWay(Struct, frozen=True):
    """A model call that has no outcome on the tape; `tokens` is our own count of what was sent."""

    turn: int
    tokens: int
    provider: str
    model: str
    task: TaskClass


def under_way(tx: Tx, run_id: str) -> UnderWay | None:
    """The model call of a run that was begun and has neither reply nor failure."""
    asked = _newest(tx, run_id, "('input.assembled', 'model.replied', 'model.failed')")
    planned = (
        _newest(tx, run_id, "('route.planned')") if isinstance(asked, InputAssembled) else None
    )
    if not isinstance(asked, InputAssembled) or not isinstance(planned, RoutePlanned):
        return None
    return UnderWay(asked.turn, asked.tokens, planned.provider, planned.model, planned.task)


def _newest(tx: Tx, run_id: str, kinds: str) -> events.AnyEvent | None:
    row = tx.one(
        f"""SELECT body FROM entries WHERE run_id = :run_id AND run_id <> '' AND kind IN {kinds}
        ORDER BY seq DESC LIMIT 1""",
        run_id=run_id,
    )
    return events.decode(row[0]) if row is not None else None
