"""Subjects of remembered statements, so that one that says otherwise is noticed when it is
written.
"""

from palyra.features.memory import contradictions
from palyra.features.memory.contradictions import Verdict
from palyra.features.memory.model import Item
from palyra.store.database import Tx

_MOST_RIVALS = 20


def rival(tx: Tx, item: Item) -> tuple[str, Verdict | None]:
    """The item that holds now, to the same eyes, and gives the same thing another value. What was
    only said in a conversation that was imported is no statement.
    """
    claim = contradictions.claim(item.text) if not item.source else None
    if claim is None:
        return "", None
    rows = tx.all(
        """SELECT memory_id, text FROM memory_items WHERE owner = :owner AND claim = :claim AND
        state = 'active' AND scope = :scope AND scope_value = :value AND source = ''
        ORDER BY memory_id DESC LIMIT :limit""",
        owner=item.owner,
        claim=claim.key,
        scope=item.scope,
        value=item.scope_value,
        limit=_MOST_RIVALS,
    )
    for memory_id, text in rows:
        other = contradictions.claim(text)
        verdict = contradictions.judge(claim, other) if other is not None else None
        if verdict is not None:
            return memory_id, verdict
    return "", None


def note(tx: Tx, memory_id: str, text: str) -> None:
    claim = contradictions.claim(text)
    tx.run(
        "UPDATE memory_items SET claim = :claim WHERE memory_id = :id",
        claim=claim.key if claim is not None else b"",
        id=memory_id,
    )


def unclaimed(tx: Tx, limit: int) -> int:
    """Note it of items that were written before anybody looked. Says how many it took."""
    rows = tx.all(
        "SELECT memory_id, text FROM memory_items WHERE claim IS NULL LIMIT :limit", limit=limit
    )
    for memory_id, text in rows:
        note(tx, memory_id, text)
    return len(rows)
