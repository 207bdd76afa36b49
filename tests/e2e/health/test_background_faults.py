"""What watches in the background survives a fault, and what is made at the first start is there
whole or not at all.
"""

import asyncio
from itertools import count
from pathlib import Path

from palyra.models.scripted import Turn
from palyra.serve.wiring import foundation
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Appended
from tests.faults import LONGEST_S, FullDisk, ends, eventually, in_daemon, killed_at, on_full_disk
from tests.inprocess import say, session

HELLO = [Turn(text=("hello",))]


def test_a_full_disk_does_not_end_the_watch_over_policies(tmp_path: Path) -> None:
    async def scenario(d: Daemon, disk: FullDisk) -> None:
        numbers = count()

        def forbid_something() -> None:
            rule = f'forbid (principal, action, resource == Tool::"none.{next(numbers)}");\n'
            (d.policy_folder / "changing.cedar").write_text(f'@id("changing")\n{rule}')

        async def changes(*, insist: bool = False) -> None:
            before = d.policy.version
            forbid_something()

            def changed() -> bool:
                if insist:
                    forbid_something()
                return d.policy.version != before

            await eventually(changed, "a changed policy is in force")

        # The watch begins some time after the daemon, and does not see what was before it.
        await changes(insist=True)
        disk.full = True
        await changes()
        await eventually(lambda: disk.failed, "the disk refused to record it")
        disk.full = False
        await changes()

    on_full_disk(tmp_path, HELLO, scenario)


def test_a_listener_that_fails_on_a_commit_does_not_hang_whoever_wrote(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        def failing(appended: list[Appended]) -> None:
            leave()
            raise RuntimeError("a defect in a listener")

        where = await session(d)
        leave = d.db.on_commit.connect(failing)
        run = await asyncio.wait_for(say(d, where, "hi"), LONGEST_S)
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"

    in_daemon(tmp_path, HELLO, scenario)


def test_a_key_is_made_whole_whenever_the_process_dies(tmp_path: Path) -> None:
    for moment in count(1):
        folder = tmp_path / str(moment)
        folder.mkdir()
        path = folder / "redaction.key"
        with killed_at(moment) as life:
            foundation.key(path)
        left = path.read_bytes() if path.exists() else None
        key = foundation.key(path)
        assert len(key) == 32
        assert left in (None, key), "a key that was there is another one now"
        assert foundation.key(path) == key
        if not life.over:
            break
    assert moment > 6, "the process died at too few moments to mean anything"
