"""Whole runs over HTTP: one run is three tool calls and a hundred text deltas, everything journaled
with fsync.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import uvloop
from tests.daemon import DaemonProcess

from bench.common import Client, Served, Table, bare_server, cpu_s, daemon_with, fake_provider

WORK = "list the folder three times, then talk"
TALK = "just talk"
LEVELS = ((1, 150), (16, 800), (64, 2000))


async def one_run(client: Client, watcher: Client, session_id: str, text: str = WORK) -> None:
    """Submit, then watch to the end, which must be a good one: a run that fails is quick."""
    submitted = await client.post(f"/v1/sessions/{session_id}/messages", {"text": text})
    done = await watcher.events(
        f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}",
        b'"run.completed"',
    )
    assert done, "a run did not complete"


async def until_first_delta(daemon: DaemonProcess, client: Client, session_id: str) -> float:
    """Seconds from submitting to the first delta on a stream that was open before, as in a chat."""
    watcher = Client(daemon.port, daemon.token)
    watching = asyncio.create_task(
        watcher.events(
            f"/v1/sessions/{session_id}/events?after=0", b'"model.delta"', until_seen=True
        )
    )
    await watcher.open.wait()
    began = time.perf_counter()
    submitted = await client.post(f"/v1/sessions/{session_id}/messages", {"text": TALK})
    seen = await asyncio.wait_for(watching, 10)
    watcher.close()
    # As in a chat: nobody says the next thing in the middle of an answer.
    await client.events(
        f"/v1/sessions/{session_id}/events?after=0&until={submitted['run_id']}", b'"run.completed"'
    )
    return seen - began


async def load(daemon: Served, at_once: int, sessions: list[str]) -> None:
    left = iter(sessions)

    async def worker() -> None:
        client, watcher = Client(daemon.port, daemon.token), Client(daemon.port, daemon.token)
        for session_id in left:
            await one_run(client, watcher, session_id)
        client.close()
        watcher.close()

    await asyncio.gather(*(worker() for _ in range(at_once)))


def new_sessions(daemon: Served, count: int) -> list[str]:
    async def make() -> list[str]:
        client = Client(daemon.port, daemon.token)
        made = [str((await client.post("/v1/sessions", {}))["session_id"]) for _ in range(count)]
        client.close()
        return made

    return uvloop.run(make())


def throughput(daemon: Served, at_once: int, total: int) -> tuple[float, float]:
    """(CPU milliseconds per run, runs per second)."""
    uvloop.run(
        load(daemon, at_once, new_sessions(daemon, at_once * 2))
    )  # Warm up: caches, connections, the provider's pool.
    sessions = new_sessions(daemon, total)
    cpu, began = cpu_s(daemon.pid), time.monotonic()
    uvloop.run(load(daemon, at_once, sessions))
    return (cpu_s(daemon.pid) - cpu) / total * 1000, total / (time.monotonic() - began)


def first_delta(daemon: DaemonProcess, url: str, count: int = 200) -> tuple[float, float]:
    """Median milliseconds to the first delta: through Palyra (durable submit, watch by SSE), and
    straight from the provider.
    """
    port = int(url.split(":")[2].split("/")[0])
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": TALK}]}

    async def measure() -> tuple[list[float], list[float]]:
        client, direct = Client(daemon.port, daemon.token), Client(port, "none")
        through, straight = [], []
        for session_id in sessions:
            through.append(await until_first_delta(daemon, client, session_id))
            began = time.perf_counter()
            straight.append(
                await direct.events("/v1/chat/completions", b"word0", method="POST", body=body)
                - began
            )
        return through, straight

    sessions = new_sessions(daemon, count)
    through, straight = uvloop.run(measure())
    return statistics.median(through) * 1000, statistics.median(straight) * 1000


def tables() -> Iterator[Table]:
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as bare_folder,
        fake_provider() as url,
        bare_server(Path(bare_folder), url) as bare,
        daemon_with(Path(folder), url) as daemon,
    ):
        rows = []
        for at_once, total in LEVELS:
            # Turn and turn about, so that both meet the same machine.
            bare_rounds, rounds = zip(
                *(
                    (throughput(bare, at_once, total // 2), throughput(daemon, at_once, total // 2))
                    for _ in range(2)
                ),
                strict=True,
            )
            (bare_ms, bare_per_s), (cpu_ms, per_s) = _mean(bare_rounds), _mean(rounds)
            rows.append(
                (
                    str(at_once),
                    f"{cpu_ms:.2f} ms",
                    f"{per_s:.0f}",
                    f"{bare_ms:.2f} ms",
                    f"{bare_per_s:.0f}",
                    f"{cpu_ms / bare_ms:.1f}",
                )
            )
        yield Table(
            "One run: three tool calls, a hundred text deltas",
            (
                "runs at once",
                "CPU per run",
                "runs per second",
                "bare: CPU per run",
                "bare: runs per second",
                "CPU, times bare",
            ),
            rows,
        )
        through, straight = first_delta(daemon, url)
        yield Table(
            "Time to the first delta (median of 200)",
            ("through Palyra", "straight from the provider", "added"),
            [(f"{through:.2f} ms", f"{straight:.2f} ms", f"{through - straight:.2f} ms")],
        )


def _mean(rounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.fmean(cpu for cpu, _ in rounds), statistics.fmean(
        per_s for _, per_s in rounds
    )
