"""Backups that were cut off leave nothing behind, and take nothing from one that is being made."""

import asyncio
import threading
from pathlib import Path

import pytest

from palyra.store.sqlite_files import backup
from tests.inprocess import daemon

pytestmark = pytest.mark.sqlite


def test_a_killed_backup_leaves_no_partial_file_for_the_next_one(tmp_path: Path) -> None:
    async def work() -> None:
        async with daemon(tmp_path, []):
            pass

    asyncio.run(work())
    journal, folder = tmp_path / "home" / "journal.db", tmp_path / "copies"
    folder.mkdir()
    (folder / "old.db.partial").write_bytes(b"half a copy")
    seen: list[bool] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(done: int, total: int) -> None:
        begun.set()
        go_on.wait(30)

    first = threading.Thread(target=backup, args=(journal, folder / "one.db", slow))
    first.start()
    assert begun.wait(30)
    # A second backup beside it removes what is nobody's, and not what the first one writes.
    backup(journal, folder / "two.db")
    seen.append((folder / "one.db.partial").exists())
    go_on.set()
    first.join(30)
    assert seen == [True]
    assert sorted(path.name for path in folder.iterdir()) == ["one.db", "two.db"]
