"""Profile of a run's time, by area, with 64 runs at once."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop
from tests.daemon import DaemonProcess, configure

from bench.common import CONFIG, ROOT, Table, fake_provider
from bench.runs import load, new_sessions

RUNS = 1_500
NAMED = {
    "MainThread": "event loop",
    "journal-write": "journal's writer",
    "journal-read": "journal's readers",
    "hand": "tools, off the loop",
}


def _launch(folder: Path, url: str, report: Path) -> DaemonProcess:
    home, workspace = folder / "home", folder / "workspace"
    workspace.mkdir()
    (workspace / "one.txt").write_text("hello\n")
    configure(home, config=CONFIG.format(url=url, window=128_000))
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.sampled_daemon", str(home), str(report)],
        cwd=ROOT,
        env={
            "PYTHONPATH": str(ROOT),
            "PALYRA_WORKSPACE__ROOT": str(workspace),
            "PATH": "/usr/bin:/bin",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    daemon = DaemonProcess(home, workspace, process)
    deadline = time.monotonic() + 20
    while not (home / "daemon.json").exists():
        assert process.poll() is None, "the daemon did not start"
        assert time.monotonic() < deadline, "the daemon did not start in time"
        time.sleep(0.02)
    daemon.url = json.loads((home / "daemon.json").read_text())["url"]
    daemon.token = (home / "owner.token").read_text().strip()
    return daemon


def tables() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder, fake_provider() as url:
        report = Path(folder, "report.json")
        daemon = _launch(Path(folder), url, report)
        try:
            uvloop.run(load(daemon, 64, new_sessions(daemon, RUNS)))
        finally:
            daemon.stop()
        found = json.loads(report.read_text())
    threads, loop = found["threads"], found["loop"]
    spent = sum(threads.values())
    rows = [
        (NAMED.get(name, name), f"{cpu / spent:.0%}")
        for name, cpu in _sorted(threads)
        if cpu / spent >= 0.01
    ]
    yield Table("Where the CPU goes, 64 runs at once, by thread", ("thread", "share"), rows)
    total = sum(loop.values())
    rows = [
        (area, f"{count / total:.0%}") for area, count in _sorted(loop) if count / total >= 0.01
    ]
    yield Table("What the event loop does", ("area", "share of samples"), rows)


def _sorted(counts: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(counts.items(), key=lambda item: -item[1])
