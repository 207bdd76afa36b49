"""A daemon on a disk that is really full: a small file system of its own, filled to the last byte.

`python -m tests.full_disk FOLDER` is started by a test in a mount namespace, where it may mount one
over FOLDER/home.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from palyra.agent import durable_write, runs
from palyra.core.errors import Unavailable
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.messages import ModelRequest
from palyra.features.health import resources
from palyra.features.health.rows import Incident
from palyra.models.scripted import ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store.sqlite_files import inspect
from tests.faults import ends, eventually, reached
from tests.inprocess import daemon, entries, finished, kinds, say, session
from tests.watching_over import incidents, told

SIZE = 24 << 20
SETTINGS = "[healing]\nmode = 'auto'\nevery_ms = 3600000\nfree_mb = 4\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"


def fill(path: Path) -> None:
    """Write until there is no room for another byte."""
    path.parent.mkdir(exist_ok=True)
    with path.open("ab", buffering=0) as file:
        for piece in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * piece)
            except OSError:
                continue


async def refused(d: Daemon) -> str:
    """What somebody is told who wants something now."""
    with pytest.raises(Unavailable) as told_:
        await session(d)
    return told_.value.message


async def only(d: Daemon) -> Incident:
    (incident,) = [each for each in await incidents(d) if each.key == "resource:full"]
    return incident


async def told_of_it(d: Daemon) -> int:
    return sum("cannot be written" in each for each in await told(d))


async def of_ours(d: Daemon) -> None:
    """Filled by a copy that somebody began and nobody goes on with: it is removed, and that is all
    it takes.
    """
    await d.watchdog.look()
    home = d.journal_path.parent
    assert (home / resources.NAME).stat().st_size == resources.BYTES
    left = home / "backups/a.db.partial"
    fill(left)
    os.utime(left, (0, 0))
    assert "free some space" in await refused(d)
    await d.watchdog.look()
    assert not left.exists()
    await d.watchdog.look()
    incident = await only(d)
    assert (incident.domain, incident.severity, [each.result for each in incident.tried]) == (
        "resource",
        "critical",
        ["done"],
    )
    assert incident.closed_ms
    assert "a.db.partial" in incident.tried[0].detail
    assert (home / resources.NAME).exists(), "what was set aside was not needed"
    assert await told_of_it(d) == 1
    await finished(d, await say(d, await session(d), "short"))


async def of_others(d: Daemon, hold: StreamPause) -> None:
    """Filled by what is not ours: what was set aside lets the run that works go on, and the rest
    waits for room.
    """
    await d.watchdog.look()
    home = d.journal_path.parent
    filler = home / "somebody-elses"
    where = await session(d)
    run = await say(d, where, "long")
    await reached(hold.reached)
    fill(filler)
    hold.released.set()
    await eventually(lambda: d.db.trouble is not None, "the reply found no room")
    await d.watchdog.look()
    assert not (home / resources.NAME).exists()
    assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
    incident = await only(d)
    assert not incident.closed_ms, "the disk is as good as full"
    assert await told_of_it(d) == 1
    # What was set aside is used up as well: now nothing helps but room, and nobody is told more
    # than once more.
    hold.reached.clear()
    hold.released.clear()
    second = await say(d, where, "long")
    await reached(hold.reached)
    fill(filler)
    hold.released.set()
    await eventually(lambda: d.db.trouble is not None, "the reply found no room")
    for _ in range(5):
        await d.watchdog.look()
    assert "free some space" in await refused(d)
    filler.unlink()
    assert (await ends(d, where.session_id, second.run_id)).kind == "run.completed"
    await d.watchdog.look()
    await d.watchdog.look()
    incident = await only(d)
    assert incident.closed_ms
    assert await told_of_it(d) == 1
    assert (home / resources.NAME).exists()
    assert (await kinds(d, where.session_id)).count("model.replied") == 2
    seen = [entry.kind for entry in await entries(d, SYSTEM_TAPE)]
    assert (seen.count("incident.opened"), seen.count("incident.closed")) == (1, 1)


def main(folder: Path) -> None:
    durable_write.RETRY_S = runs.RETRY_S = 0.02
    hold, requests = StreamPause(), list[ModelRequest]()

    def turn(request: ModelRequest) -> Turn:
        requests.append(request)
        return Turn(text=("done",), hold="" if len(requests) == 1 else "h")

    async def once(scenario: Callable[[Daemon], Awaitable[None]], place: Path) -> None:
        async with (
            asyncio.timeout(60),
            daemon(place, ScriptedModel(turn, holds={"h": hold}), SETTINGS) as d,
        ):
            await scenario(d)
        report = inspect(place / "home/journal.db")
        assert report.ok, report.bad

    for name in ("ours", "others"):
        home = folder / name / "home"
        home.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "full", str(home)], check=True
        )
    asyncio.run(once(of_ours, folder / "ours"))
    asyncio.run(once(lambda d: of_others(d, hold), folder / "others"))
    assert len(requests) == 3, "somebody was asked twice"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
