"""Breakdown of a run's prompts, turn by turn, as its tape says."""

from msgspec import Struct

from palyra.core import events
from palyra.core.events import AssembledPart, InputAssembled, ModelReplied
from palyra.store.database import Tx


class BilledTurn(Struct, frozen=True, kw_only=True):
    """One model turn. `tokens` is our reckoning of what went in, `input_tokens` what the provider
    reported, 0 if it did not.
    """

    turn: int
    seq: int
    model: str = ""
    tokens: int
    budget: int
    parts: tuple[AssembledPart, ...]
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0


def of_run(tx: Tx, run_id: str) -> list[BilledTurn]:
    rows = tx.all(
        """SELECT seq, body FROM entries WHERE run_id = :run_id AND run_id <> ''
        AND kind IN ('input.assembled', 'model.replied') ORDER BY seq""",
        run_id=run_id,
    )
    billed: list[BilledTurn] = []
    asked: tuple[int, InputAssembled] | None = None
    for seq, body in rows:
        match events.decode(body):
            case InputAssembled() as event:
                if asked is not None:
                    billed.append(_turn(*asked, None))
                asked = (seq, event)
            case ModelReplied() as reply if asked is not None:
                billed.append(_turn(*asked, reply))
                asked = None
            case _:
                pass
    if asked is not None:
        billed.append(_turn(*asked, None))
    return billed


def _turn(seq: int, event: InputAssembled, reply: ModelReplied | None) -> BilledTurn:
    used = reply.usage if reply is not None and not reply.estimated else None
    return BilledTurn(
        turn=event.turn,
        seq=seq,
        model=f"{reply.provider}/{reply.model}" if reply is not None else "",
        tokens=event.tokens,
        budget=event.budget,
        parts=event.parts,
        input_tokens=used.input_tokens if used else 0,
        cached_tokens=used.cached_tokens if used else 0,
        cache_write_tokens=used.cache_write_tokens if used else 0,
        output_tokens=used.output_tokens if used else 0,
    )
