"""Speed of a search of memory as it grows, its cost, and how much comparing signs first loses
against exact search.

The texts are made of words as common as words are; the vectors are mixtures of real ones, so that
they lie as real ones do. `PALYRA_BENCH_ITEMS` names the sizes, as in `1000,100000,1000000`.
"""

import asyncio
import os
import random
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import Table, rss_mb
from bench.memory_set import ANSWERED, UNANSWERED
from palyra.core.ids import make
from palyra.features.memory.model import Item
from palyra.features.memory.rows import index
from palyra.features.memory.rows import items as items_rows
from palyra.features.memory.rows import search as rows_search
from palyra.features.memory.rows.codes import Codes
from palyra.features.memory.rows.index import DIMENSIONS
from palyra.models.embeddings import LocalEmbedder
from palyra.store.database import Database, Tx
from palyra.store.sqlite import Sqlite

OWNER = "user:owner"
_SIZES = (1_000, 100_000, 1_000_000)
_PER_STEP = 10_000
_QUESTIONS = 40
# So many of them are compared with exact search, which takes seconds at a million.
_COMPARED = 20
_VOCABULARY = 60_000
# Without stop words the commonest word is in about one item of eight.
_COMMONEST = 0.27
_WORDS_PER_ITEM = 22
_WORDS_PER_QUESTION = 7


def tables() -> list[Table]:
    sizes = (
        tuple(int(size) for size in os.environ.get("PALYRA_BENCH_ITEMS", "").split(",") if size)
        or _SIZES
    )
    return [asyncio.run(_measure(sizes))]


async def _measure(sizes: tuple[int, ...]) -> Table:
    embedder = LocalEmbedder()
    chooser = random.Random(7)
    seeds = await _vectors(embedder, [text for pair in ANSWERED for text in pair])
    questions = [_sentence(chooser, _WORDS_PER_QUESTION) for _ in range(_QUESTIONS)]
    # In turn one that nothing is near to, which is the hard case, and one that has something near.
    mixed = [
        text
        for nothing, (_, something) in zip(UNANSWERED, ANSWERED, strict=False)
        for text in (nothing, something)
    ]
    asked = await _vectors(embedder, mixed[:_QUESTIONS])
    began = time.perf_counter()
    for question in questions[:10]:
        await embedder.embed([question])
    embedding_ms = (time.perf_counter() - began) * 100
    await embedder.close()
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(await _at(size, Path(folder), chooser, seeds, questions, asked))
    columns = (
        "items",
        "median",
        "95 of 100",
        "slowest",
        "CPU, median",
        "recall@10 of exact",
        "resident before → after",
        "per item written",
        "on disk",
    )
    return Table(
        f"Memory search as it grows; embedding the question takes {embedding_ms:.0f} ms more",
        columns,
        rows,
    )


async def _at(
    size: int, folder: Path, chooser: random.Random, seeds: Any, questions: list[str], asked: Any
) -> tuple[str, ...]:
    path = folder / "journal.db"
    db = Database(Sqlite(path), lambda: int(time.time() * 1000))
    db.open()
    try:
        per_item_us = await _fill(db, size, chooser, seeds)
        before = rss_mb(os.getpid())
        codes = Codes()
        times, cpu, recalls = [], [], []
        for question, vector in zip(questions, asked, strict=True):
            began = time.perf_counter()
            spent = await db.read(partial(_search, question=question, vector=vector, codes=codes))
            times.append((time.perf_counter() - began) * 1000)
            cpu.append(spent * 1000)
        after = rss_mb(os.getpid())
        for vector in asked[:_COMPARED]:
            recalls.append(await db.read(partial(_recall, vector=vector, codes=codes)))
    finally:
        await db.close()
    times.sort()
    return (
        f"{size:,}",
        f"{times[len(times) // 2]:.0f} ms",
        f"{times[int(len(times) * 0.95)]:.0f} ms",
        f"{times[-1]:.0f} ms",
        f"{sorted(cpu)[len(cpu) // 2]:.0f} ms",
        f"{sum(recalls) / len(recalls):.3f}",
        f"{before:.0f} → {after:.0f} MB",
        f"{per_item_us:.0f} µs",
        f"{path.stat().st_size / 2**20:.0f} MB",
    )


async def _fill(db: Database, size: int, chooser: random.Random, seeds: Any) -> float:
    generator = np.random.default_rng(11)
    spent = 0.0
    for first in range(0, size, _PER_STEP):
        count = min(_PER_STEP, size - first)
        items = [_item(chooser, first + number) for number in range(count)]
        packed = [index.pack(vector.tobytes()) for vector in _mixtures(generator, seeds, count)]
        began = time.perf_counter()
        await db.write(lambda tx, items=items: items_rows.add(tx, items_rows.On(OWNER), items))
        todo = await db.read(lambda tx, count=count: items_rows.unembedded(tx, count))
        vectors = {each.spot: vector for each, vector in zip(todo, packed, strict=True)}
        await db.write(
            lambda tx, vectors=vectors: items_rows.embedded(tx, by="bench", packed=vectors)
        )
        spent += time.perf_counter() - began
    return spent / size * 1e6


def _search(tx: Tx, question: str, vector: Any, codes: Codes) -> float:
    """The CPU time of a search, on its own thread: what a machine that does other things at once
    cannot hide.
    """
    began = time.thread_time()
    rows_search.search(tx, index.everything_of(tx, OWNER), question, 10, vector=vector, codes=codes)
    return time.thread_time() - began


def _recall(tx: Tx, vector: Any, codes: Codes) -> float:
    """Return how many of the ten nearest by exact comparison with every vector the search finds
    among its candidates.
    """
    stored = np.dtype([("scale", "<f4"), ("elements", "i1", (DIMENSIONS,))])
    best: list[tuple[float, int]] = []
    after = -1
    while rows := tx.all(
        "SELECT spot, vector FROM memory_vectors WHERE spot > :after ORDER BY spot LIMIT 50000",
        after=after,
    ):
        after = rows[-1][0]
        block = np.frombuffer(b"".join(raw for _, raw in rows), stored)
        cosines = (block["elements"].astype(np.float32) @ vector) * block["scale"]
        top = np.argpartition(-cosines, min(10, len(rows) - 1))[:10]
        best = sorted([*best, *((float(cosines[at]), rows[at][0]) for at in top)], reverse=True)[
            :10
        ]
    row = rows_search._Row(index.everything_of(tx, OWNER))
    near = set(row.spots(rows_search._nearest(tx, row, vector, codes)))
    return sum(spot in near for _, spot in best) / len(best)


def _item(chooser: random.Random, number: int) -> Item:
    identifier = make(1_700_000_000_000 + number, chooser.randbytes(10))
    text = f"{_sentence(chooser, _WORDS_PER_ITEM)} {number}"
    return Item(
        memory_id=identifier,
        owner=OWNER,
        text=text,
        created_ms=1_700_000_000_000,
        updated_ms=1_700_000_000_000,
    )


def _sentence(chooser: random.Random, words: int) -> str:
    """Words drawn as Zipf has them, each a few syllables that its number gives."""
    return " ".join(
        _word(int(_VOCABULARY ** (_COMMONEST + (1 - _COMMONEST) * chooser.random())))
        for _ in range(words)
    )


def _word(number: int) -> str:
    syllables = (
        "ka",
        "lo",
        "mi",
        "ne",
        "su",
        "ta",
        "ro",
        "vi",
        "de",
        "po",
        "ba",
        "zu",
        "fe",
        "gi",
        "ho",
        "ly",
    )
    word = ""
    while True:
        number, part = divmod(number, len(syllables))
        word += syllables[part]
        if not number:
            return f"{word}k"


def _mixtures(generator: Any, seeds: Any, count: int) -> Any:
    one, other = generator.integers(0, len(seeds), (2, count))
    share = generator.random((count, 1)).astype(np.float32)
    mixed = (
        seeds[one] * share
        + seeds[other] * (1 - share)
        + generator.normal(0, 0.03, (count, DIMENSIONS)).astype(np.float32)
    )
    return (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32)


async def _vectors(embedder: LocalEmbedder, texts: list[str]) -> Any:
    return np.array([np.frombuffer(raw, "<f4") for raw in await embedder.embed(texts)])
