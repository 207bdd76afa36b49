"""STOP: how long until everything a principal has running is ended, tools included."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.daemon import DaemonProcess, start

from bench.common import Table

RUNS = 8
ROUNDS = 40
SCRIPT = {
    "sleep": [
        {"calls": [{"name": "test.sleep", "arguments": {"ms": 600000}}, {"name": "test.sleep", "arguments": {"ms": 600000}}]}
    ],
    "stream": [{"text": ["word "], "hold": "/nonexistent/gate", "hold_after": 1}],
}
CONFIG = "[rehearsal]\ntools = true\n[limits]\nrequests_per_second = 1000000\nstreams = 10000\n[log]\nlevel = 'warning'\n"


def _round(daemon: DaemonProcess) -> float:
    sessions = [daemon.post("/v1/sessions")["session_id"] for _ in range(RUNS)]
    for session in sessions:
        run = daemon.post(f"/v1/sessions/{session}/messages", {"text": "sleep"})
        _wait_for(daemon, session, run["seq"], "tool.started")
    began = time.perf_counter()
    stopped = daemon.post("/v1/stop")
    took = time.perf_counter() - began
    assert len(stopped["cancelled"]) == RUNS
    return took


def _wait_for(daemon: DaemonProcess, session: str, after: int, kind: str) -> None:
    stream: Any = daemon.events(f"/v1/sessions/{session}/events?after={after}")
    for _, event, data in stream:
        if event == "entry" and data["kind"] == kind:
            stream.close()
            return


def tables() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder, start(Path(folder), config=CONFIG, script=SCRIPT) as daemon:
        times = sorted(_round(daemon) for _ in range(ROUNDS))
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        yield Table(
            f"STOP with {RUNS} runs in two tools each ({ROUNDS} rounds)",
            ("median", "p99"),
            [(f"{statistics.median(times) * 1000:.1f} ms", f"{p99 * 1000:.1f} ms")],
        )
