"""Notices to the owner: durable, once for each key, seen by whoever watches."""

import asyncio
from pathlib import Path

import msgspec

from palyra.core.events import Entry
from palyra.core.ids import OWNER
from palyra.features.notices.rows import StoredNotice
from palyra.serve.wiring.daemon import Daemon
from tests.faults import in_daemon
from tests.inprocess import body, daemon

LONGEST_S = 20.0


async def _next_event(d: Daemon, kind: str) -> Entry:
    async for batch in d.gateway.watch_all(OWNER, 0):
        for _, wire in batch:
            entry = msgspec.json.decode(wire, type=Entry)
            if entry.kind == kind:
                return entry
    raise AssertionError("the watch ended")


def test_a_notice_is_told_once_for_its_key_also_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with daemon(tmp_path, []) as d:
            assert await d.notices.tell(
                "budget", "budget:day:1", "the day's budget is nearly used up", "#/usage"
            )
            assert not await d.notices.tell("budget", "budget:day:1", "said again")
        async with daemon(tmp_path, []) as d:
            assert not await d.notices.tell("budget", "budget:day:1", "and again")
            found = await d.notices.listing(OWNER)
            assert [(each.about, each.text, each.link, each.read_ms) for each in found.notices] == [
                ("budget", "the day's budget is nearly used up", "#/usage", 0)
            ]

    asyncio.run(scenario())


def test_a_notice_is_on_the_event_stream_of_the_one_it_is_for(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        await d.notices.tell("schedule", "schedule:a:1", "not for the owner", to="user:other")
        watching = asyncio.create_task(_next_event(d, "owner.notified"))
        await d.notices.tell("schedule", "schedule:b:1", "the schedule b failed")
        entry = await asyncio.wait_for(watching, LONGEST_S)
        assert (entry.tape, body(entry)["text"]) == ("system:local", "the schedule b failed")

    in_daemon(tmp_path, [], scenario)


def test_reading_marks_one_or_all(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        for number in range(3):
            await d.notices.tell("daemon", f"n:{number}", f"notice {number}")
        newest = (await d.notices.listing(OWNER)).notices[0]
        assert await d.notices.read(OWNER, newest.notice_id) == 1
        assert await d.notices.read(OWNER, newest.notice_id) == 0
        assert [each.text for each in (await d.notices.listing(OWNER, unread=True)).notices] == [
            "notice 1",
            "notice 0",
        ]
        assert await d.notices.read(OWNER) == 2
        assert (await d.notices.listing(OWNER)).unread == 0

    in_daemon(tmp_path, [], scenario)


def test_a_secret_in_a_notice_is_not_told(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        await d.notices.tell(
            "daemon", "leak", "the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
        )
        assert "abcdefghijklmnop" not in (await d.notices.listing(OWNER)).notices[0].text

    in_daemon(tmp_path, [], scenario)


def test_whoever_carries_notices_further_gets_each_once_from_where_it_left(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        await d.notices.tell("daemon", "one", "first")
        following = d.notices.follow(0)
        first = await asyncio.wait_for(anext(following), LONGEST_S)
        waiting = asyncio.ensure_future(anext(following))
        await d.notices.tell("daemon", "two", "second")
        second: StoredNotice = await asyncio.wait_for(waiting, LONGEST_S)
        assert [first.notice.text, second.notice.text] == ["first", "second"]
        again = await asyncio.wait_for(anext(d.notices.follow(first.position)), LONGEST_S)
        assert again == second

    in_daemon(tmp_path, [], scenario)


def test_an_incident_is_open_once_for_its_key_and_tells_the_owner_once(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        opened = await d.incidents.open(
            "resource", "disk", "the disk is nearly full", severity="error", fix="make room"
        )
        assert opened is not None
        assert await d.incidents.open("resource", "disk", "the disk is nearly full") is None
        assert [each.text for each in (await d.notices.listing(OWNER)).notices] == [
            "the disk is nearly full: make room"
        ]
        closed = await d.incidents.close("disk", "there is room again")
        assert closed is not None
        assert closed.outcome == "there is room again"
        assert await d.incidents.open("resource", "disk", "the disk is nearly full") is not None
        assert [bool(each.closed_ms) for each in (await d.incidents.listing()).incidents] == [
            False,
            True,
        ]

    in_daemon(tmp_path, [], scenario)
