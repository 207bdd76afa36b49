"""The kernel tells when a folder changes, in every way in which people and editors change files."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from palyra.policy import folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a library tells")


def ours(name: str) -> bool:
    return name.endswith(".cedar")


def told(inside: Path, change: Callable[[], object], *, within_s: float = 20) -> bool:
    """Whether a change is told of within this time."""

    async def scenario() -> bool:
        changes = folder.changes(inside, ours, 0)
        waiting = asyncio.ensure_future(anext(aiter(changes)))
        await asyncio.sleep(0)
        change()
        done, _ = await asyncio.wait([waiting], timeout=within_s)
        waiting.cancel()
        await asyncio.wait([waiting])
        return bool(done)

    return asyncio.run(scenario())


def test_a_file_that_is_written_renamed_or_removed_is_told_of(tmp_path: Path) -> None:
    one, other = tmp_path / "one.cedar", tmp_path / "other.tmp"
    assert told(tmp_path, lambda: one.write_text("permit"))
    assert told(tmp_path, lambda: one.write_text("more"))
    other.write_text("saved beside it")
    assert told(tmp_path, lambda: os.replace(other, one))
    assert told(tmp_path, one.unlink)


def test_what_is_not_ours_and_what_is_only_read_is_not_told_of(tmp_path: Path) -> None:
    (tmp_path / "one.cedar").write_text("permit")
    assert not told(tmp_path, lambda: (tmp_path / "notes.txt").write_text("x"), within_s=0.2)
    assert not told(tmp_path, (tmp_path / "one.cedar").read_text, within_s=0.2)


def test_a_folder_that_takes_the_place_of_the_watched_one_is_watched(tmp_path: Path) -> None:
    inside, instead = tmp_path / "policies", tmp_path / "instead"
    inside.mkdir()
    instead.mkdir()

    async def scenario() -> None:
        changes = aiter(folder.changes(inside, ours, 0))

        async def one_more(change: Callable[[], object]) -> None:
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            change()
            await asyncio.wait_for(waiting, 20)

        await one_more(lambda: inside.rename(tmp_path / "away"))
        await one_more(lambda: instead.rename(inside))
        await one_more(lambda: (inside / "new.cedar").write_text("permit"))

    asyncio.run(scenario())


def test_what_does_not_stop_changing_is_told_of_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        changes = aiter(folder.changes(tmp_path, ours, 1))
        waiting = asyncio.ensure_future(anext(changes))
        number = 0
        while not waiting.done():
            number += 1
            assert number < 100_000
            (tmp_path / "one.cedar").write_text(str(number))
            await asyncio.sleep(0)

    asyncio.run(scenario())


def test_where_the_kernel_does_not_tell_the_folder_is_looked_at(tmp_path: Path) -> None:
    async def scenario() -> None:
        waiting = asyncio.ensure_future(anext(aiter(folder._elsewhere(tmp_path, ours, 10))))
        number = 0
        while not waiting.done():
            number += 1
            assert number < 40
            (tmp_path / "one.cedar").write_text(str(number))
            await asyncio.wait([waiting], timeout=0.5)

    asyncio.run(scenario())
