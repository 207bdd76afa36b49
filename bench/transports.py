"""Cost of each door: CPU for a delta that is delivered, events a second out of the store, memory of
who only watches.

The watchers are a process of their own. What a run costs that nobody watches is measured first and
taken off.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.daemon import DaemonProcess, start

from bench.common import CONFIG, ROOT, Table, fake_provider, rss_mb

TRANSPORTS = ("sse", "websocket", "grpc", "http3")
_STREAMS = (1, 64)
_RUNS = 12
_DELTAS = 100
_EVERY_MS = 4.0
_IDLE = 1_000
_ENTRIES = 5_000
_DOORS = "[server]\ngrpc = true\ngrpc_port = 0\nquic = true\nquic_port = 0\n"


def tables() -> Iterator[Table]:
    with fake_provider(_EVERY_MS) as url:
        with _daemon(url) as daemon:
            yield Table(
                f"A delta over each door: {_DELTAS} deltas a run, one every {_EVERY_MS:g} ms",
                (
                    "transport",
                    *(
                        f"CPU per delta, {count} stream{'s' if count > 1 else ''}"
                        for count in _STREAMS
                    ),
                ),
                list(_deltas(daemon)),
            )
            stored = list(_stored(daemon))
            yield Table(
                f"Out of the store: {_ENTRIES:,} entries to one watcher",
                ("transport", "events per second"),
                stored,
            )
        idle = [_memory(url, transport, deaf=False) for transport in TRANSPORTS]
        yield Table(
            f"{_IDLE:,} watchers of a session where nothing happens",
            ("transport", "memory of one"),
            idle,
        )
        # The HTTP/3 client's library reads whatever comes.
        deaf = [
            _memory(url, transport, deaf=True) for transport in TRANSPORTS if transport != "http3"
        ]
        yield Table(
            f"{_IDLE:,} watchers who read nothing while {_RUNS} runs stream",
            ("transport", "memory of one, at most"),
            deaf,
        )


@contextmanager
def _daemon(url: str) -> Iterator[DaemonProcess]:
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        start(Path(folder), config=CONFIG.format(url=url, window=128_000) + _DOORS) as daemon,
    ):
        for name in ("one.txt", "two.txt", "three.txt"):
            (daemon.workspace / name).write_text("hello\n")
        yield daemon


def _deltas(daemon: DaemonProcess) -> Iterator[tuple[str, ...]]:
    for transport in TRANSPORTS:
        costs = []
        for count in _STREAMS:
            quiet, watched = _session(daemon), _session(daemon)
            with _watchers(daemon, transport, watched, count):
                # In turn, so that both meet the same machine; the middle one, because whatever else
                # it does only adds.
                extra = [
                    -_cpu_of_run(daemon, quiet) + _cpu_of_run(daemon, watched) for _ in range(_RUNS)
                ]
            costs.append(f"{statistics.median(extra) / (_DELTAS * count) * 1e6:.1f} µs")
        yield (transport, *costs)


def _stored(daemon: DaemonProcess) -> Iterator[tuple[str, ...]]:
    session = _session(daemon)
    last = 0
    while last < _ENTRIES:
        last = _run(daemon, session)
    for transport in TRANSPORTS:
        with _watchers(daemon, transport, session, 1, until=last) as process:
            assert process.stdout is not None
            took = float(process.stdout.readline())
        yield (transport, f"{last / took:,.0f}")


def _memory(url: str, transport: str, *, deaf: bool) -> tuple[str, ...]:
    """Measure in a daemon of its own: memory that others let go would be used again."""
    with _daemon(url) as daemon:
        session = _session(daemon)
        with _watchers(daemon, transport, session, 8):
            _run(daemon, session)
        before = highest = rss_mb(daemon.pid)
        with _watchers(daemon, transport, session, _IDLE, deaf=deaf):
            for _ in range(_RUNS if deaf else 0):
                _run(daemon, session)
                highest = max(highest, rss_mb(daemon.pid))
            highest = max(highest, rss_mb(daemon.pid))
    return transport, f"{(highest - before) * 1024 / _IDLE:.1f} KB"


def _session(daemon: DaemonProcess) -> str:
    return str(daemon.post("/v1/sessions")["session_id"])


def _run(daemon: DaemonProcess, session: str) -> int:
    """One run to its end, watched by nobody: its last entry."""
    run = daemon.post(f"/v1/sessions/{session}/messages", {"text": "go"})
    time.sleep(_DELTAS * _EVERY_MS / 1000)
    while daemon.get(f"/v1/runs/{run['run_id']}")["state"] not in ("done", "failed", "cancelled"):
        time.sleep(0.05)
    return int(daemon.get(f"/v1/sessions/{session}")["head_seq"])


def _cpu_of_run(daemon: DaemonProcess, session: str) -> float:
    before = _cpu(daemon.pid)
    _run(daemon, session)
    return _cpu(daemon.pid) - before


def _cpu(pid: int) -> float:
    """Seconds that its threads ran, finer than what the kernel's clock ticks."""
    return (
        sum(
            int((task / "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").iterdir()
        )
        / 1e9
    )


def _address(daemon: DaemonProcess, transport: str) -> str:
    if transport == "grpc":
        return str(json.loads((daemon.home / "daemon.json").read_text())["grpc"])
    if transport == "http3":
        listeners = daemon.get("/v1/tls")["listeners"]
        return str(
            next(each["address"] for each in listeners if each["name"] == "http3")
        ).rpartition("/")[2]
    return f"127.0.0.1:{daemon.port}"


@contextmanager
def _watchers(
    daemon: DaemonProcess,
    transport: str,
    session: str,
    count: int,
    *,
    until: int = 0,
    deaf: bool = False,
) -> "Iterator[subprocess.Popen[str]]":
    command = [
        sys.executable,
        "-m",
        "bench.watching",
        transport,
        _address(daemon, transport),
        session,
        str(count),
    ]
    command += ["--until", str(until), *(["--deaf"] if deaf else [])]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PALYRA_TOKEN": daemon.token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait(10)
