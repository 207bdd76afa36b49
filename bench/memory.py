"""Memory of the daemon: idle, at start-up, and after thousands of finished sessions."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench.common import Table, cpu_s, daemon_with, fake_provider, rss_mb
from bench.runs import load, new_sessions


def tables() -> Iterator[Table]:
    with (
        tempfile.TemporaryDirectory() as folder,
        fake_provider() as url,
        daemon_with(Path(folder), url) as daemon,
    ):
        ready, idle = cpu_s(daemon.pid), rss_mb(daemon.pid)
        yield Table(
            "At rest", ("CPU until ready", "idle memory"), [(f"{ready:.2f} s", f"{idle:.1f} MB")]
        )
        rows, before = [], 0.0
        for thousand in range(1, 5):
            uvloop.run(load(daemon, 16, new_sessions(daemon, 1000)))
            now = rss_mb(daemon.pid)
            rows.append(
                (f"{thousand},000", f"{now:.1f} MB", f"{now - before:+.1f} MB" if before else "")
            )
            before = now
        yield Table(
            "Memory after finished sessions, one run each",
            ("sessions", "memory", "since the last row"),
            rows,
        )
