"""Which processors the daemon's threads use.

One interpreter lock lets one thread of a process run at a time. Spread over several processors,
every hand-over of that lock wakes one of them and moves there what the thread works on, and the
same work costs almost twice as much. So the threads that hand over small things all the time keep
together on one processor. What needs no lock has all of them: other programs, long searches.
"""

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What the process was given, and the one that its threads keep to; both empty while they do not.
_given: set[int] = set()
_kept: set[int] = set()
_thread = threading.local()


def keep_together() -> None:
    """Keep the calling thread, and those that it starts from now on, on one of the fastest
    processors.
    """
    # Linux alone lets a thread choose.
    if hasattr(os, "sched_setaffinity") and len(given := os.sched_getaffinity(0)) > 1:
        _given.update(given)
        _kept.add(random.choice(_fastest(given)))
        _use(_kept)


def roam() -> None:
    """Let the calling thread use all of them, for good."""
    _thread.roams = True
    if _given:
        _use(_given)


@contextmanager
def roaming() -> Iterator[None]:
    """A program that is started inside may use all of them."""
    if not _kept or getattr(_thread, "roams", False):
        yield
        return
    _use(_given)
    try:
        yield
    finally:
        _use(_kept)


def _use(processors: set[int]) -> None:
    # Where that is forbidden, or one of them has been taken away, the threads stay where they are.
    with suppress(OSError):
        os.sched_setaffinity(0, processors)


def _fastest(given: set[int]) -> list[int]:
    """Some machines have slow ones as well, to save power."""
    speeds = {number: _speed(number) for number in given}
    return [number for number, speed in speeds.items() if speed == max(speeds.values())]


def _speed(number: int) -> int:
    try:
        return int(
            Path(f"/sys/devices/system/cpu/cpu{number}/cpufreq/cpuinfo_max_freq").read_text()
        )
    except (OSError, ValueError):
        return 0
