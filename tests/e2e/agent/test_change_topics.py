"""Whoever watches is told that something has changed of which no tape of theirs tells: once it is
durable, and nothing more.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast, get_args

import msgspec
import pytest

from palyra.agent.broadcast import PAUSE_MS
from palyra.api.auth import allows
from palyra.api.watch import NEEDED
from palyra.core.events import AdminChanged, IncidentOpened, StateChanged, Topic
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.health import rows as health_rows
from palyra.serve.routes import ROUTES
from palyra.serve.wiring.daemon import Daemon
from palyra.store import tape, tasks, tokens, write_buffer
from palyra.store.database import Tx
from palyra.store.tokens import Token
from tests.faults import in_daemon

LONGEST_S = 20.0
ALL = cast("tuple[Topic, ...]", get_args(Topic))
# Where somebody asks what it is now. Settings are in force in many places: that one of them is
# shown to whoever reads is enough.
ASKED: dict[Topic, str] = {
    "certificates": "/v1/tls",
    "channels": "/v1/channels",
    "incidents": "/v1/incidents",
    "learning": "/v1/candidates",
    "schedules": "/v1/schedules",
    "settings": "/v1/healing",
    "tasks": "/v1/tasks/kinds",
    "tokens": "/v1/tokens",
    "workers": "/v1/workers",
}


def _enqueue(tx: Tx) -> None:
    tasks.enqueue(tx, "test.nobody")


def _incident(tx: Tx) -> None:
    event = IncidentOpened(
        incident_id=f"01{'0' * 24}",
        key="k",
        domain="resource",
        severity="info",
        summary="the disk hums",
    )
    health_rows.open_(tx, event)


def _token(tx: Tx) -> None:
    tokens.add(tx, Token("t1", "laptop", OWNER, "viewer", tx.now_ms), b"digest")
    tape.append(
        tx, SYSTEM_TAPE, OWNER, [AdminChanged(what="token", action="created", subject="t1")]
    )


async def _told(batches: AsyncIterator[Any], upto: Topic) -> list[tuple[Topic, ...]]:
    """What is told until a topic is."""
    told: list[tuple[Topic, ...]] = []
    while not told or upto not in told[-1]:
        for position, wire in await anext(batches):
            if not position:
                told.append(msgspec.json.decode(wire, type=StateChanged).what)
    return told


async def _begun(d: Daemon, topics_: tuple[Topic, ...] = ALL) -> Any:
    """A watcher who has heard of everything until now."""
    batches = d.gateway.watch_all(OWNER, 0, topics_)
    begun = asyncio.create_task(_told(batches, "tasks"))
    while not begun.done():
        # Who came too late for the last one hears of the next.
        await d.db.write(_enqueue)
        await asyncio.wait([begun], timeout=0.05)
    return batches


def test_what_a_step_changes_is_told_when_it_is_durable_and_nothing_of_one_that_was_taken_back(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        def breaks(tx: Tx) -> None:
            tx.run("UPDATE tasks SET priority = 2")
            raise KeyError("taken back")

        def changes_nothing(tx: Tx) -> None:
            tx.run("DELETE FROM workers")
            tx.run("UPDATE channel_people SET seen_ms = 1")

        async with aclosing(await _begun(d)) as batches:
            waiting = asyncio.create_task(_told(batches, "incidents"))
            # One batch: what one of them loses the others keep.
            steps = [d.db.write(step) for step in (breaks, changes_nothing, _incident)]
            with pytest.raises(KeyError):
                await steps[0]
            heard = await asyncio.wait_for(waiting, LONGEST_S)
        assert {topic for what in heard for topic in what} <= {"incidents", "tasks"}, heard

    in_daemon(tmp_path, [], scenario)


def test_many_changes_are_told_together(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        async with aclosing(await _begun(d)) as batches:
            waiting = asyncio.create_task(_told(batches, "incidents"))
            begun_ms = d.clock.ticks_ms()
            for _ in range(100):
                await d.db.write(_enqueue)
            await d.db.write(_incident)
            told = await asyncio.wait_for(waiting, LONGEST_S)
            # However slow the disk is: once in each pause, what was told at once, and what was on
            # its way before.
            assert len(told) <= (d.clock.ticks_ms() - begun_ms) / PAUSE_MS + 3

    in_daemon(tmp_path, [], scenario)


def test_a_change_of_settings_is_told_and_only_to_who_asked_for_it(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        async with aclosing(await _begun(d, ("tasks", "settings"))) as batches:
            waiting = asyncio.create_task(_told(batches, "settings"))
            await d.db.write(_token)
            heard = await asyncio.wait_for(waiting, LONGEST_S)
        assert "tokens" not in {topic for what in heard for topic in what}

    in_daemon(tmp_path, [], scenario)


def test_who_is_told_is_who_may_ask() -> None:
    scopes = {route.path: route.scope for route in ROUTES if route.method == "GET"}
    assert {topic: scopes[path] for topic, path in ASKED.items()} == NEEDED
    assert set(NEEDED) == set(ALL) == {*write_buffer.BY_TABLE.values(), "settings"}
    assert not allows("operator", NEEDED["tokens"])


@pytest.mark.parametrize(
    ("sql", "topic"),
    [
        ("UPDATE tasks SET again = 0", "tasks"),
        ("INSERT OR IGNORE INTO tokens (a) VALUES (1)", "tokens"),
        ("DELETE FROM worker_leases WHERE 1", "workers"),
        ("UPDATE runs SET state = 'x' WHERE run_id IN (SELECT 1 FROM tasks)", None),
    ],
)
def test_a_statement_changes_the_table_that_it_names_first(sql: str, topic: str | None) -> None:
    assert write_buffer.of(sql) == topic
