"""What our sandbox adds to bubblewrap: `true` through `Sandbox`, beside `true` in a bare bwrap with the same namespaces."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator

from bench.common import Table
from palyra.tools.sandbox import bubblewrap
from palyra.tools.sandbox.command import Command
from palyra.tools.sandbox.sandbox import Sandbox

ROUNDS = 100
_BARE = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
)


def _bare(binary: str, folder: str) -> float:
    began = time.perf_counter()
    subprocess.run([binary, *_BARE, "--bind", folder, folder, "/bin/true"], check=True)
    return time.perf_counter() - began


async def _ours(sandbox: Sandbox, folder: str) -> float:
    began = time.perf_counter()
    command = Command(argv=("/bin/true",), cwd=folder, workspace=folder, tier="B")
    async with await sandbox.start(command) as process:
        ended = await process.wait()
    assert ended.code == 0
    return time.perf_counter() - began


async def _measure() -> tuple[list[float], list[float], list[float]]:
    binary = bubblewrap.find()
    assert binary is not None, "there is no bwrap to compare with"
    with tempfile.TemporaryDirectory() as folder:
        tier_c, tier_b = Sandbox(), Sandbox(most="B")
        await tier_c.probe()
        await tier_b.probe()
        bare, ours, landlock = [], [], []
        # In turns, so that a noisy moment of the machine falls on all.
        for _ in range(ROUNDS):
            bare.append(_bare(binary, folder))
            ours.append(await _ours(tier_c, folder))
            landlock.append(await _ours(tier_b, folder))
    return bare, ours, landlock


def _figures(times: list[float]) -> tuple[str, str]:
    return f"{statistics.median(times) * 1000:.1f} ms", f"{sorted(times)[int(len(times) * 0.95)] * 1000:.1f} ms"


def tables() -> Iterator[Table]:
    bare, ours, landlock = asyncio.run(_measure())
    base = statistics.median(bare)
    rows = [
        (name, *_figures(times), f"{statistics.median(times) / base:.2f}")
        for name, times in (("bare bwrap", bare), ("tier C", ours), ("tier B", landlock))
    ]
    yield Table(f"`true` in the sandbox ({ROUNDS} rounds)", ("", "median", "p95", "to bare"), rows)


if __name__ == "__main__":
    for table in tables():
        print(table.text())
