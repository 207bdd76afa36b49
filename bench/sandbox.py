"""Overhead of our sandbox over bubblewrap: `true` through `Sandbox` and through shell.run, beside
`true` in a bare bwrap.

The bare one has the same namespaces and no walls. Each round runs all of them in turn, and the
ratio is the median over rounds, so that a noisy moment of the machine falls on both sides of it.
"""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from bench.common import Table
from palyra.core.ports import CallContext
from palyra.core.tools import Tier
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue
from palyra.tools.paths import PathGuard
from palyra.tools.sandbox import bubblewrap
from palyra.tools.sandbox.command import Command
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner
from palyra.tools.shell.tools import tools

ROUNDS = 100
_BARE = (
    *(
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--unshare-cgroup-try",
    ),
    *(
        "--die-with-parent",
        "--new-session",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ),
)
_NAMES = ("bare bwrap", "tier C", "shell.run, tier C", "tier B")


def _bare(binary: str, folder: str) -> None:
    subprocess.run([binary, *_BARE, "--bind", folder, folder, "/bin/true"], check=True)


async def _contained(sandbox: Sandbox, folder: str) -> None:
    async with await sandbox.start(
        Command(argv=("/bin/true",), cwd=folder, workspace=folder, tier="B")
    ) as process:
        assert (await process.wait()).code == 0


async def _called(catalogue: Catalogue, context: CallContext) -> None:
    tool, arguments, _ = catalogue.parse("shell.run", {"command": "true"})
    assert (await tool.execute(arguments, context)).outcome == "ok"


async def _measure() -> list[tuple[float, ...]]:
    binary = bubblewrap.find()
    assert binary is not None, "there is no bwrap to compare with"
    most: tuple[Tier, Tier] = ("C", "B")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        tier_c, tier_b = (Sandbox(most=each) for each in most)
        runner = Runner(tier_c)
        catalogue = Catalogue(
            tools(runner, Jobs(runner, Path(home), Redactor(bytes(32))), PathGuard())
        )
        context = CallContext(
            principal="user:owner", session_id="s", run_id="r", call_id="c", workspace=folder
        )
        await tier_c.probe()
        await tier_b.probe()
        rounds = []
        for _ in range(ROUNDS):
            times = [time.perf_counter()]
            _bare(binary, folder)
            times.append(time.perf_counter())
            for job in (
                _contained(tier_c, folder),
                _called(catalogue, context),
                _contained(tier_b, folder),
            ):
                await job
                times.append(time.perf_counter())
            rounds.append(tuple(after - before for before, after in pairwise(times)))
    return rounds


def tables() -> Iterator[Table]:
    rounds = asyncio.run(_measure())
    rows: list[tuple[str, ...]] = []
    for column, name in enumerate(_NAMES):
        times = sorted(each[column] for each in rounds)
        ratio = statistics.median(each[column] / each[0] for each in rounds)
        rows.append(
            (
                name,
                f"{statistics.median(times) * 1000:.1f} ms",
                f"{times[int(len(times) * 0.95)] * 1000:.1f} ms",
                f"{ratio:.2f}",
            )
        )
    yield Table(f"`true` in the sandbox ({ROUNDS} rounds)", ("", "median", "p95", "to bare"), rows)


if __name__ == "__main__":
    for table in tables():
        print(table.text())
