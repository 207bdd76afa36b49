"""Searching what is remembered, by words and by meaning at once, over every item that may be seen.

Words: BM25, divided by what the question's words are worth together, so that it says how much of
the question an item has. Meaning: the cosine. All vectors are compared by their signs first, the
nearest of them exactly. Then each item may borrow from its better neighbour in the conversation it
was said in.

The rule: nothing out of sight is read, so nothing out of sight can move a score.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from palyra.features.memory import words as memory_words
from palyra.features.memory.model import Found, ScoreParts
from palyra.features.memory.rows import items as items_rows
from palyra.features.memory.rows.codes import NOTHING, Codes
from palyra.features.memory.rows.index import DIMENSIONS, Partition, at
from palyra.store.database import Tx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Whole = NDArray[np.int64]

_K1, _B = 0.8, 0.4
# Words are squared: a few in common say little, nearly all of them say nearly everything.
WORDS_WEIGHT = 0.55
MEANING_WEIGHT = 0.45
NEIGHBOUR_WEIGHT = 0.45
# Where the meaning is not known, an item that has all the words is about as near as this.
_GUESSED_MEANING = 0.6
_FRESH_WEIGHT = 0.05
_SURE_WEIGHT = 0.05
_HALF_LIFE_MS = 180 * 86_400_000
_BEST_OF_EACH = 160
# The signs of so large a share of a question's numbers, the largest, count once more each.
_HEAVY = (0.6, 0.25)
# One of so many, the nearest by their signs, is compared exactly, within these bounds.
_EXACTLY_OF = 40
_LEAST_EXACTLY = 1_000
_MOST_EXACTLY = 6_000
_MOST_QUESTION_TERMS = 48
# Characters, about sixty words: what is longer counts less, by the logarithm of its length.
_LONG = 360
_DAMPING = 0.5


ITEMS = "memory_items"
TURNS = "turns_searched"
# Instead of a model's name: it is found by its words, and is to have no vector.
WORDS_ONLY = "-"


class Ranked(Struct, frozen=True):
    """Spot of the index, with its score."""

    spot: int
    score: float
    parts: ScoreParts


class Weights(Struct, frozen=True):
    """Weights of the parts. Only a benchmark asks with others, to have the parents beside the
    child.
    """

    words: float = WORDS_WEIGHT
    meaning: float = MEANING_WEIGHT
    neighbour: float = NEIGHBOUR_WEIGHT
    fresh: float = _FRESH_WEIGHT
    sure: float = _SURE_WEIGHT


class _Seen(Struct):
    """A candidate. `index` is its place in the row of all slots that may be seen."""

    index: int
    source: str
    place: int
    confidence: float
    said_ms: int
    embedded: bool
    # What counts of its words, and of it as a neighbour: less of long texts.
    damped: float = 1.0
    words: float = 0.0
    meaning: float = 0.0
    base: float = 0.0
    neighbour: float = 0.0


class _Row:
    """All slots of all partitions in sight, one behind the other."""

    def __init__(self, partitions: Sequence[Partition], table: str = ITEMS) -> None:
        import numpy as np

        self.partitions = partitions
        self.table = table
        self.starts: dict[int, int] = {}
        self.length = 0
        for each in partitions:
            self.starts[each.partition] = self.length
            self.length += each.next_slot
        self.numbers = np.array([each.partition for each in partitions], np.int64)
        self.listed = ",".join(str(each.partition) for each in partitions)
        self.items = sum(each.items for each in partitions)
        self.words = sum(each.words for each in partitions)

    def index(self, place: int) -> int:
        partition, slot = at(place)
        return self.starts[partition] + slot

    def spots(self, indexes: "Iterable[int] | Whole") -> list[int]:
        import numpy as np

        given = np.fromiter(indexes, np.int64)
        starts = np.array(list(self.starts.values()), np.int64)
        which = np.searchsorted(starts, given, "right") - 1
        found: list[int] = ((self.numbers[which] << 32) + given - starts[which]).tolist()
        return found


def search(
    tx: Tx,
    partitions: Sequence[Partition],
    question: str,
    limit: int,
    *,
    vector: "Floats | None" = None,
    codes: Codes | None = None,
    weights: Weights | None = None,
) -> list[Found]:
    """The best items of these partitions, best first. Without a vector: by words alone."""
    best = rank(tx, partitions, question, limit, vector=vector, codes=codes, weights=weights)
    items = items_rows.at_spots(tx, [each.spot for each in best])
    return [Found(item, each.score, each.parts) for each, item in zip(best, items, strict=True)]


def rank(
    tx: Tx,
    partitions: Sequence[Partition],
    question: str,
    limit: int,
    *,
    vector: "Floats | None" = None,
    codes: Codes | None = None,
    weights: Weights | None = None,
    table: str = ITEMS,
) -> list[Ranked]:
    """Return where the best of these partitions stand, best first. `table` has what is known about
    a spot.
    """
    weights = weights or Weights()
    row = _Row([each for each in partitions if each.next_slot], table)
    if not row.items:
        return []
    words = _words(tx, row, question)
    candidates = set(_top(words, _BEST_OF_EACH)) if weights.words else set()
    if vector is not None and weights.meaning:
        candidates.update(_nearest(tx, row, vector, codes or Codes()))
    seen = {each.index: each for each in _load(tx, row, row.spots(candidates))}
    beside = _neighbours(tx, row, seen.values()) if weights.neighbour else {}
    further = beside.keys() - seen.keys()
    seen.update({each.index: each for each in _load(tx, row, row.spots(sorted(further)))})
    _score(tx, row, seen, words, vector, weights)
    for index, each in seen.items():
        each.neighbour = max(
            (
                seen[other].base * seen[other].damped
                for other in beside.get(index, ())
                if other in seen
            ),
            default=0.0,
        )
    ranked = sorted(
        ((_total(each, tx.now_ms, weights), each) for each in seen.values()),
        key=lambda pair: (-pair[0], pair[1].index),
    )
    best = [(score, each) for score, each in ranked[:limit] if score > 0]
    spots = row.spots(each.index for _, each in best)
    return [
        Ranked(where, round(score, 4), _parts(each, tx.now_ms))
        for where, (score, each) in zip(spots, best, strict=True)
    ]


def _score(
    tx: Tx,
    row: _Row,
    seen: dict[int, _Seen],
    words: "Floats",
    vector: "Floats | None",
    weights: Weights,
) -> None:
    cosines = _cosines(tx, row.spots(seen), vector) if vector is not None else [0.0] * len(seen)
    for each, cosine in zip(seen.values(), cosines, strict=True):
        each.words = min(1.0, float(words[each.index])) * each.damped
        known = vector is not None and each.embedded
        each.meaning = max(0.0, float(cosine)) if known else 0.0
        likely = each.meaning if known else _GUESSED_MEANING * each.words
        each.base = weights.words * each.words**2 + weights.meaning * likely


def _total(each: _Seen, now_ms: int, weights: Weights) -> float:
    # A share of what is missing, so that nothing piles up at 1.
    relevance = each.base + weights.neighbour * each.neighbour * (1 - each.base)
    steady = 1 - weights.fresh - weights.sure
    return relevance * (
        steady + weights.fresh * _recency(each, now_ms) + weights.sure * each.confidence
    )


def _recency(each: _Seen, now_ms: int) -> float:
    return math.pow(0.5, max(0, now_ms - each.said_ms) / _HALF_LIFE_MS)


def _parts(each: _Seen, now_ms: int) -> ScoreParts:
    rounded = (
        round(value, 4)
        for value in (
            each.words,
            each.meaning,
            each.base,
            each.neighbour,
            _recency(each, now_ms),
            each.confidence,
        )
    )
    return ScoreParts(*rounded)


def _words(tx: Tx, row: _Row, question: str) -> "Floats":
    """Return for every slot how much of the question's worth in words it has; 1 is all of it in an
    item of average length.
    """
    import numpy as np

    posting = np.dtype([("slot", "<u4"), ("count", "u1"), ("length", "u1")])
    scores = np.zeros(row.length, np.float32)
    average = max(1.0, row.words / row.items)
    worth = 0.0
    for term in list(dict.fromkeys(memory_words.terms(question)))[:_MOST_QUESTION_TERMS]:
        chunks = tx.all(
            "SELECT partition, count, postings FROM memory_postings WHERE term = :term AND"
            f" partition IN ({row.listed})",
            term=term,
        )
        holding = sum(count for _, count, _ in chunks)
        rarity = math.log(1 + (row.items - holding + 0.5) / (holding + 0.5))
        worth += rarity
        for start, packed in _joined(row, chunks):
            hits = np.frombuffer(packed, posting)
            counts = hits["count"].astype(np.float32)
            norm = _K1 * (1 - _B + _B * hits["length"].astype(np.float32) / np.float32(average))
            scores[hits["slot"].astype(np.int64) + start] += (
                np.float32(rarity * (_K1 + 1)) * counts / (counts + norm)
            )
    return scores / np.float32(worth) if worth else scores


def _joined(row: _Row, chunks: list[tuple[int, int, bytes]]) -> list[tuple[int, bytes]]:
    by_partition: dict[int, list[bytes]] = {}
    for partition, _, postings in chunks:
        by_partition.setdefault(partition, []).append(postings)
    return [(row.starts[partition], b"".join(pieces)) for partition, pieces in by_partition.items()]


def _top(scores: "Floats", count: int) -> list[int]:
    """Return where the highest scores above nothing are."""
    import numpy as np

    hits = np.flatnonzero(scores)
    if len(hits) > count:
        hits = hits[np.argpartition(-scores[hits], count)[:count]]
    return [int(each) for each in hits]


def _nearest(tx: Tx, row: _Row, vector: "Floats", codes: Codes) -> list[int]:
    """Return where the items nearest in meaning are. Every vector is compared by its signs, those
    where the question's numbers are large counting more, and the nearest of them exactly.
    """
    import numpy as np

    signs = np.packbits(vector > 0).view(np.uint64)
    by_size = np.argsort(-np.abs(vector), kind="stable")
    heavy = []
    for share in _HEAVY:
        chosen = np.zeros(DIMENSIONS, np.bool_)
        chosen[by_size[: int(DIMENSIONS * share)]] = True
        heavy.append(np.packbits(chosen).view(np.uint64))
    distances = np.concatenate([codes.distances(tx, each, signs, heavy) for each in row.partitions])
    within = np.cumsum(np.bincount(distances, minlength=NOTHING + 1)[:NOTHING])
    closely = min(_MOST_EXACTLY, max(_LEAST_EXACTLY, int(within[-1]) // _EXACTLY_OF))
    near = np.flatnonzero(distances <= min(int(np.searchsorted(within, closely)), NOTHING - 1))
    cosines = _cosines(tx, row.spots(near), vector)
    return [int(near[each]) for each in np.argsort(-cosines, kind="stable")[:_BEST_OF_EACH]]


def _cosines(tx: Tx, spots: list[int], vector: "Floats") -> "Floats":
    """The exact cosine at each spot, 0 where there is no vector."""
    import numpy as np

    rows: dict[int, bytes] = dict(
        tx.all(
            f"SELECT spot, vector FROM memory_vectors WHERE spot IN ({','.join(map(str, spots))})"
        )
    )
    found = np.zeros(len(spots), np.float32)
    present = [number for number, each in enumerate(spots) if each in rows]
    if present:
        stored = np.dtype([("scale", "<f4"), ("elements", "i1", (DIMENSIONS,))])
        packed = np.frombuffer(b"".join(rows[spots[number]] for number in present), stored)
        found[present] = (packed["elements"].astype(np.float32) @ vector) * packed["scale"]
    return found


def _load(tx: Tx, row: _Row, spots: list[int]) -> list[_Seen]:
    """Load those that are to be considered: not expired, still valid."""
    length = "length(text)" if row.table == ITEMS else "size"
    rows = tx.all(
        f"""SELECT spot, source, place, confidence_bps, valid_from_ms, created_ms, embedded_by,
            {length} FROM {row.table}
        WHERE spot IN ({",".join(map(str, spots))}) AND (expires_ms = 0 OR expires_ms > :now)
            AND (valid_until_ms = 0 OR valid_until_ms > :now)""",
        now=tx.now_ms,
    )
    return [
        _Seen(
            row.index(where),
            source,
            place,
            sure / 10_000,
            said_ms or created_ms,
            embedded not in ("", WORDS_ONLY),
            _damped(size),
        )
        for where, source, place, sure, said_ms, created_ms, embedded, size in rows
    ]


def _damped(size: int) -> float:
    """Return a text's damping: long ones have many words and would crowd out a short one."""
    return 1.0 if size <= _LONG else 1 / (1 + _DAMPING * math.log(size / _LONG))


def _neighbours(tx: Tx, row: _Row, seen: Iterable[_Seen]) -> dict[int, list[int]]:
    """The candidates that were said somewhere and the items beside them, each with the items beside
    it, as far as in sight.
    """
    by_source: dict[str, set[int]] = {}
    for each in seen:
        if each.source:
            by_source.setdefault(each.source, set()).update(
                (each.place - 1, each.place, each.place + 1)
            )
    beside: dict[int, list[int]] = {}
    for source, places in by_source.items():
        rows = tx.all(
            f"""SELECT spot, place FROM {row.table} WHERE owner = (SELECT owner FROM
            memory_partitions WHERE partition = :any)
                AND source = :source AND source <> '' AND spot IS NOT NULL AND place IN
                ({",".join(map(str, places))})""",
            any=row.partitions[0].partition,
            source=source,
        )
        in_sight = [
            (row.index(where), place) for where, place in rows if at(where)[0] in row.starts
        ]
        at_place: dict[int, list[int]] = {}
        for index, place in in_sight:
            at_place.setdefault(place, []).append(index)
        for index, place in in_sight:
            beside[index] = [*at_place.get(place - 1, ()), *at_place.get(place + 1, ())]
    return beside
