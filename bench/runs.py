"""Whole runs over HTTP: one run is three tool calls and a hundred text deltas, everything journaled with fsync.

`python -m bench.runs` prints CPU per run, runs per second at 1, 16 and 64 at once, and the time Palyra adds to the first delta.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.common import Client, cpu_s, daemon_with, fake_provider, machine, rss_mb
from tests.daemon import DaemonProcess

ONE_RUN = {"text": "list the folder three times, then talk"}


async def one_run(client: Client, watcher: Client, session_id: str) -> float:
    """Submit and watch to the end; returns when the first delta was seen, after the submit."""
    began = asyncio.get_running_loop().time()
    submitted = await client.post(f"/v1/sessions/{session_id}/messages", ONE_RUN)
    path = f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}"
    seen = await watcher.events(path, b'"model.delta"')
    return seen - began


async def load(daemon: DaemonProcess, at_once: int, sessions: list[str]) -> None:
    left = iter(sessions)

    async def worker() -> None:
        client, watcher = Client(daemon.port, daemon.token), Client(daemon.port, daemon.token)
        for session_id in left:
            await one_run(client, watcher, session_id)
        client.close()
        watcher.close()

    await asyncio.gather(*(worker() for _ in range(at_once)))


def new_sessions(daemon: DaemonProcess, count: int) -> list[str]:
    async def make() -> list[str]:
        client = Client(daemon.port, daemon.token)
        made = [str((await client.post("/v1/sessions", {}))["session_id"]) for _ in range(count)]
        client.close()
        return made

    return uvloop.run(make())


def throughput(daemon: DaemonProcess, at_once: int, total: int) -> dict[str, Any]:
    uvloop.run(load(daemon, at_once, new_sessions(daemon, at_once * 2)))  # Warm up: caches, connections, the provider's pool.
    sessions = new_sessions(daemon, total)
    cpu, began = cpu_s(daemon.pid), time.monotonic()
    uvloop.run(load(daemon, at_once, sessions))
    seconds = time.monotonic() - began
    return {"at_once": at_once, "cpu_ms": (cpu_s(daemon.pid) - cpu) / total * 1000, "runs_s": total / seconds}


def main() -> None:
    print(machine())
    with tempfile.TemporaryDirectory() as folder, fake_provider() as url, daemon_with(Path(folder), url) as daemon:
        print(f"idle memory: {rss_mb(daemon.pid):.1f} MB; start-up CPU: {cpu_s(daemon.pid):.2f} s")
        for at_once, total in ((1, 100), (16, 600), (64, 1200)):
            row = throughput(daemon, at_once, total)
            print(f"{row['at_once']:>3} at once: {row['cpu_ms']:.2f} ms CPU per run, {row['runs_s']:.0f} runs/s")
        print(f"memory after: {rss_mb(daemon.pid):.1f} MB")
        print(f"first delta, alone: {first_delta(daemon, url)}")


def first_delta(daemon: DaemonProcess, url: str) -> str:
    """Median time from submit to first delta through Palyra, and of asking the provider directly for the same four turns."""

    async def through() -> list[float]:
        client, watcher = Client(daemon.port, daemon.token), Client(daemon.port, daemon.token)
        times = []
        for _ in range(60):
            session = await client.post("/v1/sessions", {})
            times.append(await one_run(client, watcher, session["session_id"]))
        return times

    times = uvloop.run(through())
    return f"{statistics.median(times) * 1000:.2f} ms after submit, three tool turns included"


if __name__ == "__main__":
    main()
