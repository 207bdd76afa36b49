"""STOP: how long until all that somebody has running is ended, tools included; also with many
waiting runs, on a busy machine.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.daemon import DaemonProcess, start

from bench.common import Table

RUNS = 8
ROUNDS = 40
WAITING = 2_000
WAITING_ROUNDS = 15
BUSY = 2
_AT_ONCE = 16
_LONGEST_S = 300.0
SCRIPT = {
    "sleep": [
        {
            "calls": [
                {"name": "test.sleep", "arguments": {"ms": 600000}},
                {"name": "test.sleep", "arguments": {"ms": 600000}},
            ]
        }
    ],
    "stream": [{"text": ["word "], "hold": "/nonexistent/gate", "hold_after": 1}],
    "ask": [{"calls": [{"name": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}]}],
}
CONFIG = """[rehearsal]
tools = true
[limits]
requests_per_second = 1000000
streams = 10000
[log]
level = 'warning'
[memory]
embeddings = false
[learning]
enabled = false
"""


def _begin_working(daemon: DaemonProcess) -> None:
    sessions = [daemon.post("/v1/sessions")["session_id"] for _ in range(RUNS)]
    for session in sessions:
        run = daemon.post(f"/v1/sessions/{session}/messages", {"text": "sleep"})
        _wait_for(daemon, session, run["seq"], "tool.started")


def _wait_for(daemon: DaemonProcess, session: str, after: int, kind: str) -> None:
    stream: Any = daemon.events(f"/v1/sessions/{session}/events?after={after}")
    for _, event, data in stream:
        if event == "entry" and data["kind"] == kind:
            stream.close()
            return


def _stop(daemon: DaemonProcess) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    stopped = daemon.post("/v1/stop")
    return time.perf_counter() - began, stopped


def _in_state(daemon: DaemonProcess, state: str) -> int:
    text = daemon.request("GET", "/metrics").body.decode()
    found = [
        line
        for line in text.splitlines()
        if line.startswith("palyra_runs{") and f'"{state}"' in line
    ]
    return int(float(found[0].rpartition(" ")[2])) if found else 0


def _until(daemon: DaemonProcess, state: str, count: int) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while (found := _in_state(daemon, state)) != count:
        assert time.monotonic() < deadline, f"{found} runs are {state}, not {count}"
        time.sleep(0.1)


@contextmanager
def _busy_beside() -> Iterator[None]:
    """Programs that use all they are given."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait(10)


def _quiet(daemon: DaemonProcess) -> Table:
    times: list[float] = []
    for _ in range(ROUNDS):
        _begin_working(daemon)
        took, stopped = _stop(daemon)
        assert len(stopped["cancelled"]) == RUNS
        times.append(took)
    return Table(
        f"STOP with {RUNS} runs in two tools each ({ROUNDS} rounds)",
        ("median", "p99"),
        [_ms(times)],
    )


def _crowded(daemon: DaemonProcess) -> Table:
    """A mailbox of an owner who was away: everything waits for an answer, a few runs work, and the
    machine is busy.
    """
    times: list[float] = []
    recorded = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sessions = list(
            pool.map(lambda _: daemon.post("/v1/sessions")["session_id"], range(WAITING))
        )
        for _ in range(WAITING_ROUNDS):
            list(
                pool.map(
                    lambda each: daemon.post(f"/v1/sessions/{each}/messages", {"text": "ask"}),
                    sessions,
                )
            )
            _until(daemon, "waiting", WAITING)
            _begin_working(daemon)
            with _busy_beside():
                took, stopped = _stop(daemon)
            times.append(took)
            recorded += bool(stopped.get("recorded", True))
            _until(daemon, "waiting", 0)
            _until(daemon, "in_progress", 0)
    title = (
        f"STOP with {WAITING} waiting and {RUNS} working runs, {BUSY} busy programs beside it"
        f" ({WAITING_ROUNDS} rounds)"
    )
    return Table(
        title,
        ("median", "p99", "recorded when answered"),
        [(*_ms(times), f"{recorded} of {WAITING_ROUNDS}")],
    )


def _ms(times: list[float]) -> tuple[str, str]:
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{statistics.median(ordered) * 1000:.1f} ms", f"{p99 * 1000:.1f} ms"


def tables() -> Iterator[Table]:
    with (
        tempfile.TemporaryDirectory() as folder,
        start(Path(folder), config=CONFIG, script=SCRIPT) as daemon,
    ):
        yield _quiet(daemon)
        yield _crowded(daemon)
