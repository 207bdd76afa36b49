"""Sessions that programs never named are archived after a while, and come back with their history."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from palyra.core.ids import OWNER
from palyra.features.openai_api import idle_sessions, rows
from palyra.features.openai_api.history import HistoryTurn
from palyra.features.openai_api.sessions import CallerRequest
from palyra.models.scripted import Turn
from tests.clocks import HeldClock
from tests.inprocess import TERMINAL, daemon, finished, say, session, until

HOUR_MS = 3_600_000
SCRIPT = [Turn(text="hello")] * 9


async def asked(d: Any, text: str, *earlier: HistoryTurn, **more: Any) -> str:
    begun = await d.callers.begin(OWNER, CallerRequest(text=text, earlier=earlier, **more))
    await until(d, begun.session_id, *TERMINAL, run_id=begun.run_id)
    return str(begun.session_id)


async def archived(d: Any, session_id: str) -> bool:
    return bool((await d.sessions.get(OWNER, session_id)).archived)


def test_who_is_not_used_is_put_away_and_brought_back(tmp_path: Path) -> None:
    async def scene() -> None:
        clock = HeldClock()
        async with daemon(tmp_path, SCRIPT, clock=clock) as d:
            idle = await asked(d, "one")
            named = await asked(d, "one", user="jo")
            spoken = await asked(d, "two")
            where = await d.sessions.get(OWNER, spoken)
            await finished(d, await say(d, where, "I am here"))
            mine = (await session(d)).session_id
            clock.ms += 25 * HOUR_MS
            used = await asked(d, "three")
            await d.db.write(lambda tx: idle_sessions.archive(tx, hours=24))
            found = [await archived(d, each) for each in (idle, named, spoken, mine, used)]
            assert found == [True, False, False, False, False]
            history = (HistoryTurn("user", "one"), HistoryTurn("assistant", "hello"))
            assert await asked(d, "and?", *history) == idle
            assert not await archived(d, idle)

    asyncio.run(scene())


def test_the_next_response_and_an_old_one_find_a_session_that_rests(tmp_path: Path) -> None:
    async def scene() -> None:
        clock = HeldClock()
        async with daemon(tmp_path, SCRIPT, clock=clock) as d:
            begun = await d.callers.begin(OWNER, CallerRequest(text="one"))
            await until(d, begun.session_id, *TERMINAL, run_id=begun.run_id)
            clock.ms += 25 * HOUR_MS
            await d.db.write(lambda tx: idle_sessions.archive(tx, hours=24))
            assert await archived(d, begun.session_id)
            assert await d.db.read(lambda tx: rows.rests(tx, begun.session_id))
            on = await asked(d, "on", previous=begun.run_id)
            assert on == begun.session_id
            assert not await archived(d, on)

    asyncio.run(scene())


@pytest.mark.parametrize("hours", [0, 24])
def test_a_setting_says_whether(tmp_path: Path, hours: int) -> None:
    async def scene() -> None:
        settings = f"[retention]\nunnamed_archived_after_hours = {hours}"
        async with daemon(tmp_path, SCRIPT, settings) as d:
            kind = idle_sessions.KIND
            rows = await d.db.read(
                lambda tx: tx.all("SELECT 1 FROM tasks WHERE kind = :kind", kind=kind)
            )
            assert len(rows) == (1 if hours else 0)

    asyncio.run(scene())
