"""Items of memory as rows, each change with its event on the tape in the same step.

The rule: what is searched is exactly what is active. Whatever takes an item out of that state takes
it out of the index with it.
"""

import os
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import labels
from palyra.core.errors import Conflict, NotFound
from palyra.core.events import AnyEvent, MemoryRemoved, MemoryWritten
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.labels import Label
from palyra.features.memory import words
from palyra.features.memory.model import Item, State
from palyra.features.memory.rows import claims, index
from palyra.features.memory.rows.index import IndexEntry
from palyra.store import tape
from palyra.store.database import Tx
from palyra.store.dialect import Row
from palyra.store.verify_projections import about, memory_digest

_COLUMNS = """memory_id, owner, text, kind, scope, scope_value, label, provenance, source, place,
    confidence_bps, valid_from_ms,
    valid_until_ms, expires_ms, pinned, state, why, origin, supersedes, superseded_by, created_ms,
    updated_ms, embedded_by"""
_MOST_PROVENANCE = 64


class On(Struct, frozen=True):
    """Place where a change is recorded: on the session's tape if it came from one, else on the
    system's.
    """

    principal: str
    session: str = ""
    run: str = ""

    def append(self, tx: Tx, *events: AnyEvent) -> None:
        tape.append(
            tx,
            self.session or SYSTEM_TAPE,
            self.principal,
            events,
            self.run if self.session else "",
        )


def find(tx: Tx, owner: str, memory_id: str) -> Item | None:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM memory_items WHERE memory_id = :id AND owner = :owner",
        id=memory_id,
        owner=owner,
    )
    return None if row is None else _item(row)


def active(tx: Tx, owner: str, memory_ids: Sequence[str]) -> list[Item]:
    """Return those of these items that are still remembered, in the same order."""
    found = [find(tx, owner, each) for each in memory_ids]
    return [item for item in found if item is not None and item.state == "active"]


def get(tx: Tx, owner: str, memory_id: str) -> Item:
    """An item of this owner. Somebody else's is not there, as if it did not exist."""
    item = find(tx, owner, memory_id)
    if item is None:
        raise NotFound(f"there is no memory {memory_id[:64]}", memory_id=memory_id[:64])
    return item


def listing(tx: Tx, owner: str, states: Sequence[State], before: str, limit: int) -> list[Item]:
    """An owner's items in these states, newest first, behind the one with this id."""
    row = tx.one(
        "SELECT number FROM memory_items WHERE memory_id = :id AND owner = :owner",
        id=before,
        owner=owner,
    )
    listed = ",".join(f"'{state}'" for state in states)
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM memory_items WHERE owner = :owner AND state IN ({listed}) AND
        number < :number
        ORDER BY number DESC LIMIT :limit""",
        owner=owner,
        number=row[0] if row else 1 << 62,
        limit=limit,
    )
    return [_item(each) for each in rows]


def history(tx: Tx, owner: str, memory_id: str) -> list[Item]:
    """All versions of what an item says, the newest first, whichever of them is named."""
    newest = get(tx, owner, memory_id)
    met = {newest.memory_id}
    while newest.superseded_by and newest.superseded_by not in met:
        newest = get(tx, owner, newest.superseded_by)
        met.add(newest.memory_id)
    versions, waiting, met = [], [newest.memory_id], set[str]()
    while waiting:
        at = waiting.pop(0)
        if at not in met:
            met.add(at)
            versions.append(get(tx, owner, at))
            rows = tx.all(
                """SELECT memory_id FROM memory_items WHERE superseded_by = :id AND superseded_by <>
                '' AND owner = :owner
                UNION SELECT memory_id FROM memory_items WHERE supersedes = :id AND supersedes <> ''
                AND owner = :owner
                ORDER BY memory_id DESC""",
                owner=owner,
                id=at,
            )
            waiting.extend(each for (each,) in rows)
    return versions


def pinned(tx: Tx, owner: str, partitions: Sequence[int]) -> list[Item]:
    """The pinned items of these partitions, newest first."""
    rows = tx.all(
        f"""SELECT {_COLUMNS}, spot FROM memory_items WHERE owner = :owner AND pinned = 1 AND spot
        IS NOT NULL
            AND (expires_ms = 0 OR expires_ms > :now) AND (valid_until_ms = 0 OR valid_until_ms >
            :now) ORDER BY number DESC""",
        owner=owner,
        now=tx.now_ms,
    )
    return [_item(row[:-1]) for row in rows if index.at(row[-1])[0] in partitions]


def at_spots(tx: Tx, spots: Sequence[int]) -> list[Item]:
    """The items at these spots of the index, in this order."""
    rows = tx.all(
        f"SELECT spot, {_COLUMNS} FROM memory_items WHERE spot IN ({','.join(map(str, spots))})"
    )
    found = {spot: _item(tuple(rest)) for spot, *rest in rows}
    return [found[spot] for spot in spots]


def counts(tx: Tx, owner: str) -> dict[State, int]:
    return dict(
        tx.all(
            "SELECT state, count(*) FROM memory_items WHERE owner = :owner GROUP BY state",
            owner=owner,
        )
    )


def not_embedded(tx: Tx, owner: str) -> int:
    row = tx.one(
        "SELECT count(*) FROM memory_items WHERE owner = :owner AND spot IS NOT NULL AND"
        " embedded_by = ''",
        owner=owner,
    )
    return int(row[0]) if row else 0


def add(tx: Tx, on: On, items: Sequence[Item]) -> list[Item]:
    """Remember these. One that says what is known already strengthens that instead; the known one
    is then what is returned.
    """
    kept: list[Item] = []
    fresh: dict[tuple[str, str, str], list[Item]] = {}
    for item in items:
        same = known(tx, item)
        if same is not None:
            kept.append(_strengthen(tx, on, same, item))
            continue
        other, verdict = claims.rival(tx, item)
        if other:
            rival = get(tx, item.owner, other)
            if verdict == "other" and item.state == "active":
                # What it replaces may have come with it.
                _index_all(tx, fresh)
                kept.append(_replace(tx, on, rival, item))
                continue
            item = _doubtful(item, rival)
        _insert(tx, item)
        kept.append(item)
        on.append(tx, _written(tx, item))
        if item.state == "active":
            fresh.setdefault((item.owner, item.scope, item.scope_value), []).append(item)
    _index_all(tx, fresh)
    return kept


def _index_all(tx: Tx, fresh: dict[tuple[str, str, str], list[Item]]) -> None:
    for together in fresh.values():
        _index(tx, together)
    fresh.clear()


def _replace(tx: Tx, on: On, rival: Item, item: Item) -> Item:
    """The newer of the two holds; both keep since when and until when."""
    since = item.valid_from_ms or tx.now_ms
    if rival.valid_from_ms > since:
        # It is the older statement that came later.
        late = msgspec.structs.replace(
            item,
            state="superseded",
            superseded_by=rival.memory_id,
            valid_until_ms=item.valid_until_ms or rival.valid_from_ms,
        )
        _insert(tx, late)
        on.append(tx, _written(tx, late))
        return late
    ended = msgspec.structs.replace(rival, valid_until_ms=since)
    return correct(tx, on, ended, msgspec.structs.replace(item, valid_from_ms=since))


def _doubtful(item: Item, rival: Item) -> Item:
    """Return the item as needing review by a person, who may let it take the other one's place."""
    if item.state != "active":
        return msgspec.structs.replace(item, supersedes=rival.memory_id)
    return msgspec.structs.replace(
        item,
        state="review",
        supersedes=rival.memory_id,
        why=f"may contradict memory {rival.memory_id} ({rival.text[:120]}); accepting replaces it",
    )


def known(tx: Tx, item: Item) -> Item | None:
    """A live item that says the same, to the same eyes: `add` strengthens it instead of adding this
    one. One under review is never made true by repeating it.
    """
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM memory_items WHERE owner = :owner AND same_key = :key AND scope =
        :scope
            AND scope_value = :value AND state = :state AND (:source = '' OR (source = :source AND
            place = :place))""",
        owner=item.owner,
        key=words.same_key(item.text),
        scope=item.scope,
        value=item.scope_value,
        state=item.state,
        source=item.source,
        place=item.place,
    )
    return _item(rows[0]) if rows else None


def _strengthen(tx: Tx, on: On, known: Item, again: Item) -> Item:
    provenance = tuple(dict.fromkeys((*known.provenance, *again.provenance)))[:_MOST_PROVENANCE]
    expires = (
        0 if 0 in (known.expires_ms, again.expires_ms) else max(known.expires_ms, again.expires_ms)
    )
    merged = msgspec.structs.replace(
        known,
        provenance=provenance,
        label=labels.join([known.label, again.label]),
        confidence_bps=max(known.confidence_bps, again.confidence_bps),
        expires_ms=expires,
        pinned=known.pinned or again.pinned,
        updated_ms=tx.now_ms,
    )
    _update(tx, merged)
    on.append(tx, _written(tx, merged))
    return merged


def correct(tx: Tx, on: On, old: Item, new: Item) -> Item:
    """A new version in place of an old one, which stays as history."""
    if old.state == "superseded":
        raise Conflict(
            f"memory {old.memory_id} was corrected already: change {old.superseded_by}",
            newest=old.superseded_by,
        )
    new = msgspec.structs.replace(new, supersedes=old.memory_id)
    if new.state == "active" or old.state != "active":
        # A correction that waits for a look does not take the place of what holds.
        _take_out(tx, old)
        _update(
            tx,
            msgspec.structs.replace(
                old, state="superseded", superseded_by=new.memory_id, updated_ms=tx.now_ms
            ),
        )
    _insert(tx, new)
    if new.state == "active":
        _index(tx, [new])
    on.append(tx, _written(tx, new))
    return new


def settle(tx: Tx, on: On, item: Item, state: State, why: str = "") -> Item:
    """Move it into another state: accepted, rejected, forgotten."""
    changed = msgspec.structs.replace(item, state=state, why=why, updated_ms=tx.now_ms)
    if item.state == "active":
        _take_out(tx, item)
    _update(tx, changed)
    if state == "active":
        if item.supersedes:
            _accept_over(tx, changed)
        _index(tx, [changed])
        on.append(tx, _written(tx, changed))
    else:
        on.append(tx, MemoryRemoved(memory_id=item.memory_id, reason=state))
    return changed


def _accept_over(tx: Tx, new: Item) -> None:
    """Supersede what an accepted correction was about, if it still holds."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM memory_items WHERE memory_id = :id AND state = 'active'",
        id=new.supersedes,
    )
    for old in map(_item, rows):
        _take_out(tx, old)
        _update(
            tx,
            msgspec.structs.replace(
                old, state="superseded", superseded_by=new.memory_id, updated_ms=tx.now_ms
            ),
        )


def reinstate(tx: Tx, on: On, old: Item) -> Item:
    """Reinstate a superseded item: what took its place was undone."""
    return settle(tx, on, msgspec.structs.replace(old, superseded_by=""), "active")


def pin(tx: Tx, on: On, item: Item, *, pinned: bool) -> Item:
    changed = msgspec.structs.replace(item, pinned=pinned, updated_ms=tx.now_ms)
    _update(tx, changed)
    on.append(tx, _written(tx, changed))
    return changed


def purge(tx: Tx, on: On, items: Sequence[Item], reason: str = "purged") -> int:
    """Remove items with all their versions, their words, vectors and salts. The tape keeps ids and
    digests that now say nothing.
    """
    gone: dict[str, Item] = {}
    for item in items:
        if item.memory_id not in gone:
            gone.update({each.memory_id: each for each in history(tx, item.owner, item.memory_id)})
    for each in gone.values():
        if each.state == "active":
            _take_out(tx, each)
        tx.run("DELETE FROM memory_items WHERE memory_id = :id", id=each.memory_id)
        on.append(tx, MemoryRemoved(memory_id=each.memory_id, reason=reason))
    for owner in {each.owner for each in gone.values()}:
        index.drop_empty(tx, owner)
    return len(gone)


def expired(tx: Tx, limit: int = 200) -> list[Item]:
    """Items of anybody whose time is over; a pinned one stays."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM memory_items WHERE expires_ms > 0 AND expires_ms <= :now AND
        pinned = 0
            AND state IN ('active', 'review') ORDER BY expires_ms LIMIT :limit""",
        now=tx.now_ms,
        limit=limit,
    )
    return [_item(row) for row in rows]


class Unembedded(Struct, frozen=True):
    """Views to look at to give a spot its vector."""

    spot: int
    views: list[str]


def unembedded(tx: Tx, limit: int) -> list[Unembedded]:
    """Return what is searched by its words only, oldest first."""
    rows = tx.all(
        """SELECT i.spot, i.text, coalesce((SELECT b.text FROM memory_items b WHERE b.owner =
        i.owner AND b.source = i.source
                AND b.source <> '' AND b.place = i.place - 1 AND b.scope = i.scope AND b.scope_value
                = i.scope_value
                AND b.spot IS NOT NULL ORDER BY b.number LIMIT 1), '')
        FROM memory_items i WHERE i.spot IS NOT NULL AND i.embedded_by = '' ORDER BY i.number LIMIT
        :limit""",
        limit=limit,
    )
    return [Unembedded(spot, words.views(text, before)) for spot, text, before in rows]


def embedded(tx: Tx, *, by: str, packed: dict[int, tuple[bytes, bytes]]) -> int:
    """Vectors for spots. Slots are never used twice, so a spot that was left meanwhile is simply
    not there any more.
    """
    listed = ",".join(map(str, packed))
    still = {
        spot
        for (spot,) in tx.all(
            f"SELECT spot FROM memory_items WHERE spot IN ({listed}) AND embedded_by = ''"
        )
    }
    index.add_vectors(tx, {spot: each for spot, each in packed.items() if spot in still})
    tx.run(
        f"UPDATE memory_items SET embedded_by = :by WHERE spot IN ({','.join(map(str, still))})",
        by=by,
    )
    return len(still)


def _insert(tx: Tx, item: Item) -> None:
    values = _values(item)
    columns = ", ".join(values)
    tx.run(
        f"""INSERT INTO memory_items ({columns}, same_key, salt, embedded_by)
        VALUES ({", ".join(f":{name}" for name in values)}, :same_key, :salt, '')""",
        **values,
        same_key=words.same_key(item.text),
        salt=os.urandom(16),
    )
    claims.note(tx, item.memory_id, item.text)


def _update(tx: Tx, item: Item) -> None:
    values = _values(item)
    changes = ", ".join(f"{name} = :{name}" for name in values if name != "memory_id")
    tx.run(f"UPDATE memory_items SET {changes} WHERE memory_id = :memory_id", **values)


def _values(item: Item) -> dict[str, Any]:
    values = {name: getattr(item, name) for name in Item.__struct_fields__ if name != "embedded"}
    values["label"] = msgspec.json.encode(item.label).decode()
    values["provenance"] = msgspec.json.encode(item.provenance).decode()
    return values


def _item(row: Row) -> Item:
    values = dict(zip(Item.__struct_fields__, row, strict=True))
    values["label"] = msgspec.json.decode(values["label"], type=Label)
    values["provenance"] = tuple(msgspec.json.decode(values["provenance"], type=list[int]))
    values["pinned"] = bool(values["pinned"])
    values["embedded"] = bool(values["embedded"])
    return Item(**values)


def _written(tx: Tx, item: Item) -> MemoryWritten:
    row = tx.one("SELECT salt FROM memory_items WHERE memory_id = :id", id=item.memory_id)
    assert row is not None
    return MemoryWritten(
        memory_id=item.memory_id,
        memory_kind=item.kind,
        scope=item.scope,
        label=item.label,
        supersedes=item.supersedes,
        state=item.state,
        pinned=item.pinned,
        digest=memory_digest(row[0], item.text),
        about=memory_digest(row[0], about(_values(item))),
    )


def _index(tx: Tx, together: Sequence[Item]) -> None:
    """Put items of one owner and one scope into the index."""
    first = together[0]
    partition, slot = index.slots_for(
        tx, first.owner, first.scope, first.scope_value, len(together)
    )
    entries = []
    for number, item in enumerate(together):
        entries.append(IndexEntry(slot + number, words.counted(item.text, item.valid_from_ms)))
        tx.run(
            "UPDATE memory_items SET spot = :spot, embedded_by = '' WHERE memory_id = :id",
            spot=index.spot(partition, slot + number),
            id=item.memory_id,
        )
    index.add_words(tx, partition, entries)


def _take_out(tx: Tx, item: Item) -> None:
    row = tx.one("SELECT spot FROM memory_items WHERE memory_id = :id", id=item.memory_id)
    if row is None or row[0] is None:
        return
    partition, slot = index.at(row[0])
    index.remove(tx, partition, IndexEntry(slot, words.counted(item.text, item.valid_from_ms)))
    if item.source:
        # The vector of what was said next has a part of this in it.
        behind = tx.all(
            """SELECT spot FROM memory_items WHERE owner = :owner AND source = :source AND source <>
            '' AND place = :place + 1
                AND scope = :scope AND scope_value = :value AND spot IS NOT NULL AND embedded_by <>
                ''""",
            owner=item.owner,
            source=item.source,
            place=item.place,
            scope=item.scope,
            value=item.scope_value,
        )
        for (spot,) in behind:
            index.remove_vector(tx, *index.at(spot))
            tx.run("UPDATE memory_items SET embedded_by = '' WHERE spot = :spot", spot=spot)
    tx.run(
        "UPDATE memory_items SET spot = NULL, embedded_by = '' WHERE memory_id = :id",
        id=item.memory_id,
    )
