"""A daemon that looks at itself: it counts what its event loop does and what its threads cost, and
writes that down at the end.

Used by `bench.where`. A timer of CPU time interrupts the event loop's thread; the other threads are
read from /proc.
"""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

from palyra.serve.process import serve

EVERY_S = 0.001
# The innermost frame whose file has one of these in its path says what the event loop is doing.
AREAS = (
    ("/palyra/core/redaction/", "redaction"),
    ("/palyra/policy/", "policy (Cedar)"),
    ("/cedarpy/", "policy (Cedar)"),
    ("/aiohttp/", "provider connection (aiohttp)"),
    ("/palyra/models/", "provider dialect"),
    ("/palyra/store/", "journal"),
    ("/palyra/tools/", "tools"),
    ("/uvicorn/", "HTTP server (uvicorn)"),
    ("/palyra/api/", "HTTP API and streams"),
    ("/palyra/agent/", "runs, conversation, watchers"),
    ("/palyra/core/", "runs, conversation, watchers"),
    ("/palyra/features/", "features"),
)


def _area(leaf: FrameType | None) -> str:
    frame = leaf
    while frame is not None:
        path = frame.f_code.co_filename
        for part, area in AREAS:
            if part in path:
                return area
        frame = frame.f_back
    return "event loop and sockets"


def _thread_cpu_s() -> dict[str, float]:
    """CPU seconds by kind of thread."""
    tick = os.sysconf("SC_CLK_TCK")
    spent: Counter[str] = Counter()
    for thread in threading.enumerate():
        fields = (
            Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rsplit(")", 1)[1].split()
        )
        name = thread.name.rstrip("0123456789_-")
        spent[name] += (int(fields[11]) + int(fields[12])) / tick
    return dict(spent)


def main() -> None:
    home, report = Path(sys.argv[1]), Path(sys.argv[2])
    counts: Counter[str] = Counter()
    threads: dict[str, float] = {}

    def look(_number: int, frame: FrameType | None) -> None:
        counts[_area(frame)] += 1
        if sum(counts.values()) % 200 == 0:
            threads.update(_thread_cpu_s())

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        serve(home, port=0)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        report.write_text(json.dumps({"loop": counts, "threads": threads}))


if __name__ == "__main__":
    main()
