"""Searching by meaning with the real model: quality, crashes between a write and its vector, and
what happens without a model.
"""

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from bench.memory_set import ANSWERED, UNANSWERED
from numpy.typing import NDArray

from palyra.core.errors import Unavailable
from palyra.features.memory.model import NewMemory
from palyra.features.memory.rows import index
from palyra.features.memory.rows import items as rows
from palyra.features.memory.rows import search as rows_search
from palyra.features.memory.rows.codes import Codes
from palyra.features.memory.service import MemoryChange
from palyra.models import embedding_process
from palyra.models.embeddings import LocalEmbedder
from palyra.store.database import Tx
from tests.remembering import ME, found, remember, remembering, settled, told


def test_the_model_puts_what_means_the_same_near_and_ends_its_process_when_idle() -> None:
    async def work() -> None:
        embedder = LocalEmbedder(idle_s=0.05)
        try:
            raw = await embedder.embed(
                ["My dog is called Rex", "the name of my pet", "quarterly tax report"]
            )
            dog, pet, tax = (np.frombuffer(each, "<f4") for each in raw)
            assert dog @ pet > 0.5 > 0.2 > dog @ tax
            assert abs(float(dog @ dog) - 1) < 1e-4
            async with asyncio.timeout(30):
                while embedder.pid:  # noqa: ASYNC110  that a process is gone is nobody's event
                    await asyncio.sleep(0.01)
            assert len(await embedder.embed(["again"])) == 1
        finally:
            await embedder.close()

    asyncio.run(work())


def test_the_model_gives_the_similarities_that_its_makers_publish() -> None:
    async def work() -> None:
        embedder = LocalEmbedder()
        try:
            texts = [
                "That is a happy person",
                "That is a happy dog",
                "That is a very happy person",
                "Today is a sunny day",
            ]
            first, *others = (np.frombuffer(each, "<f4") for each in await embedder.embed(texts))
        finally:
            await embedder.close()
        assert np.allclose([first @ other for other in others], [0.695, 0.943, 0.257], atol=0.01)

    asyncio.run(work())


def test_what_was_said_before_helps_to_find_an_answer_and_leaves_with_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with remembering(tmp_path, LocalEmbedder()) as memory:
            talk = (
                "Anna: When does the ferry to the island leave?",
                "Bob: At nine, from the old pier.",
                "Anna: Thanks!",
            )
            items = [
                NewMemory(text=text, source="talk", place=place) for place, text in enumerate(talk)
            ]
            asked, answer, _ = [await memory.add(ME, item) for item in items]
            await settled(memory)

            async def meaning() -> float:
                found = (await memory.search(ME, "departure of the boat", 10)).found
                return next(
                    each.parts.meaning for each in found if each.item.memory_id == answer.memory_id
                )

            before = await meaning()
            await memory.purge("user:owner", [asked.memory_id])
            await settled(memory)
            assert await meaning() < before - 0.05

    asyncio.run(work())


def test_a_run_does_not_wait_for_a_model_that_is_starting(tmp_path: Path) -> None:
    async def work() -> None:
        never = (sys.executable, "-c", "import sys; sys.stdin.read()")
        async with remembering(tmp_path, LocalEmbedder(command=never)) as memory:
            await remember(memory, ME, "My dog is called Rex")
            async with asyncio.timeout(30):
                recalled = await told(memory, ME, "what is my dog called")
            assert [each.item.text for each in recalled] == ["My dog is called Rex"]

    asyncio.run(work())


def test_who_asks_in_the_moment_when_the_process_rests_gets_an_answer() -> None:
    # As the real one: it takes a moment to answer.
    program = (
        "import json, sys, time\nprint('ready', flush=True)\n"
        "for line in sys.stdin:\n    time.sleep(0.05)\n    print('0' * 1536 * len(json.loads(line)), end='', flush=True)"
    )

    async def work() -> None:
        embedder = LocalEmbedder(idle_s=0, command=(sys.executable, "-c", program))
        try:
            for turns in range(6):
                await embedder.embed(["one"])
                for _ in range(turns):
                    await asyncio.sleep(0)
                assert len(await embedder.embed(["another"])) == 1
        finally:
            await embedder.close()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_an_embedding_process_that_was_killed_is_started_anew_for_who_asks_next() -> None:
    async def work() -> None:
        embedder = LocalEmbedder()
        try:
            await embedder.embed(["one"])
            os.kill(embedder.pid, signal.SIGKILL)
            assert len(await embedder.embed(["two"])) == 1
        finally:
            await embedder.close()

    asyncio.run(work())


def test_a_process_that_ends_over_a_question_is_asked_once_more_and_no_further() -> None:
    ends = (sys.executable, "-c", "print('ready', flush=True); input()")

    async def work() -> None:
        embedder = LocalEmbedder(command=ends)
        try:
            for _ in range(2):
                with pytest.raises(Unavailable, match="ended"):
                    await embedder.embed(["one"])
        finally:
            await embedder.close()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_file_that_is_not_the_one_we_know_is_refused() -> None:
    package, ending, _ = embedding_process.TOKENIZER
    with pytest.raises(embedding_process.ModelMissing, match="not the file it should be"):
        embedding_process.verified(package, ending, "0" * 64)
    with pytest.raises(embedding_process.ModelMissing, match="not there"):
        embedding_process.verified("palyra-no-such-package", ending, "0" * 64)


def test_our_own_set_is_found_and_questions_without_an_answer_stay_below_the_threshold(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        embedder = LocalEmbedder()
        async with remembering(tmp_path, embedder) as memory:
            await remember(memory, ME, *(text for text, _ in ANSWERED))
            await settled(memory)
            first = [await found(memory, ME, question, 1) == [text] for text, question in ANSWERED]
            answered = [await told(memory, ME, question) for _, question in ANSWERED]
            nothing = [not await told(memory, ME, question) for question in UNANSWERED]
            right = [
                text in {each.item.text for each in given}
                for (text, _), given in zip(ANSWERED, answered, strict=True)
            ]
            assert sum(right) / len(right) >= 0.75
            assert sum(nothing) / len(nothing) >= 0.65
            assert sum(first) / len(first) >= 0.8

    asyncio.run(work())


def test_what_was_written_before_a_crash_is_embedded_by_the_next_start(tmp_path: Path) -> None:
    async def work() -> None:
        # The first life ends after the commit and before any vector: nobody embeds in it.
        async with remembering(tmp_path) as memory:
            await remember(memory, ME, "My dog is called Rex")
            assert await found(memory, ME, "name of my pet") == []
        async with remembering(tmp_path, LocalEmbedder()) as memory:
            await settled(memory)
            assert await found(memory, ME, "name of my pet") == ["My dog is called Rex"]
            assert (await memory.status("user:owner")).not_embedded == 0

    asyncio.run(work())


def test_a_vector_for_an_item_that_was_left_meanwhile_is_dropped(tmp_path: Path) -> None:
    async def work() -> None:
        async with remembering(tmp_path) as memory:
            (item,) = await remember(memory, ME, "The standup is at nine")
            (todo,) = await memory._db.read(lambda tx: rows.unembedded(tx, 10))
            await memory.change(ME, item.memory_id, MemoryChange(text="The standup is at ten"))
            packed = {
                todo.spot: index.pack(
                    (np.ones(384, np.float32) / np.float32(np.sqrt(384))).tobytes()
                )
            }
            assert (
                await memory._db.write(lambda tx: rows.embedded(tx, by="late", packed=packed)) == 0
            )
            assert await memory._db.read(
                lambda tx: tx.all("SELECT count(*) FROM memory_vectors")
            ) == [(0,)]

    asyncio.run(work())


def test_without_a_model_memory_is_searched_by_words_and_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        complain = (
            sys.executable,
            "-c",
            "import sys; sys.exit('the package is not there: install it')",
        )
        async with remembering(tmp_path, LocalEmbedder(command=complain)) as memory:
            await remember(memory, ME, "My dog is called Rex")
            await settled(memory)
            searched = await memory.search(ME, "dog")
            assert [each.item.text for each in searched.found] == ["My dog is called Rex"]
            assert searched.words_only == "the package is not there: install it"
            assert (await memory.status("user:owner")).words_only == searched.words_only

    asyncio.run(work())


def test_signs_in_memory_follow_every_change_and_are_let_go(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)

    def random_vectors(count: int) -> "list[NDArray[np.float32]]":
        made = generator.normal(size=(count, 384)).astype(np.float32)
        return list(made / np.linalg.norm(made, axis=1, keepdims=True))

    async def work() -> None:
        codes = Codes()
        async with remembering(tmp_path) as memory:
            vectors = {}
            for number, vector in enumerate(random_vectors(600)):
                vectors[f"item {number}"] = vector
            await memory.import_(ME, [NewMemory(text=text) for text in list(vectors)[:300]])
            await memory.import_(ME, [NewMemory(text=text) for text in list(vectors)[300:]])
            todo = await memory._db.read(lambda tx: rows.unembedded(tx, 1_000))
            packed = {each.spot: index.pack(vectors[each.views[0]].tobytes()) for each in todo}
            await memory._db.write(lambda tx: rows.embedded(tx, by="test", packed=packed))

            def nearest(tx: Tx, text: str) -> str:
                seen = index.everything_of(tx, "user:owner")
                best = rows_search.search(tx, seen, "", 1, vector=vectors[text], codes=codes)
                return best[0].item.text

            for text in ("item 0", "item 255", "item 256", "item 599"):
                assert await memory._db.read(partial(nearest, text=text)) == text
            gone = next(
                each
                for each in await memory.listing("user:owner", ["active"], limit=1_000)
                if each.text == "item 256"
            )
            await memory.forget(ME, gone.memory_id)
            assert await memory._db.read(lambda tx: nearest(tx, "item 256")) != "item 256"
            assert codes.held_bytes > 0
            codes.release(before_ms=1 << 62)
            assert codes.held_bytes == 0

    asyncio.run(work())
