"""What a submit reads along and what is kept for watchers: quicker ways to the same answers as the
store gives.
"""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from palyra.agent.submit import Submission
from palyra.core.errors import Forbidden, PalyraError
from palyra.core.ids import OWNER
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from tests.faults import crowd_out
from tests.inprocess import daemon, entries, finished, kinds, say, session

HELLO = [Turn(text=("hello",))] * 8


async def _first(
    d: Daemon, session_id: str, after: int, principal: str = OWNER
) -> list[tuple[int, bytes]]:
    async with aclosing(cast("Any", d.gateway.watch(principal, session_id, after))) as batches:
        return list(await anext(batches))


def test_a_session_that_left_memory_is_answered_with_its_whole_conversation(tmp_path: Path) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, HELLO) as d:
            where = await session(d)
            await finished(d, await say(d, where, "one"))
            await crowd_out(d)
            assert d.runs._lives.peek(where.session_id) is None
            await finished(d, await say(d, where, "two"))
            live = d.runs._lives.peek(where.session_id)
            assert live is not None
            assert live.conversation.seq == (await entries(d, where.session_id))[-1].seq

    asyncio.run(inside())


def test_a_submit_whose_caller_goes_away_leaves_no_run_behind_that_nobody_can_load(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, HELLO) as d:
            where = await session(d)
            await crowd_out(d)
            submitting = asyncio.create_task(
                d.gateway.submit(OWNER, where.session_id, Submission(text="hello"))
            )
            await asyncio.sleep(0)
            submitting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await submitting
            again = await say(d, where, "and again")
            await finished(d, again)
            assert (await kinds(d, where.session_id)).count("run.completed") == 2

    asyncio.run(inside())


def test_a_submit_that_is_refused_lets_the_next_one_load_the_session(tmp_path: Path) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, HELLO) as d:
            where = await session(d)
            await crowd_out(d)
            with pytest.raises(Forbidden):
                await d.gateway.submit("somebody", where.session_id, Submission(text="hello"))
            await finished(d, await say(d, where, "hello"))

    asyncio.run(inside())


def test_a_watcher_sees_the_same_from_every_cursor_whether_memory_or_the_store_answers(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, HELLO) as d:
            where = await session(d)
            for text in ("one", "two", "three", "four"):
                await finished(d, await say(d, where, text))
            newest = (await entries(d, where.session_id))[-1].seq
            assert d.runs._lives.peek(where.session_id) is not None
            remembered = [await _first(d, where.session_id, after) for after in range(newest + 1)]
            await crowd_out(d)
            assert d.runs._lives.peek(where.session_id) is None
            stored = [await _first(d, where.session_id, after) for after in range(newest + 1)]
            assert remembered == stored
            assert [len(page) for page in stored] == list(range(newest, -1, -1))

    asyncio.run(inside())


def test_what_is_in_memory_is_not_shown_to_somebody_else(tmp_path: Path) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, HELLO) as d:
            where = await session(d)
            await finished(d, await say(d, where, "one"))
            with pytest.raises(PalyraError):
                await _first(d, where.session_id, 0, principal="somebody")

    asyncio.run(inside())
