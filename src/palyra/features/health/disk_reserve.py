"""Room that is kept for the day when the disk is full: a file that holds nothing but its size.

It is given back then, so that what is under way can be written down and the owner can be told; and
kept anew once there is room.
"""

import os
from pathlib import Path

NAME = "reserve"
BYTES = 8 << 20


def kept(home: Path) -> bool:
    path = home / NAME
    return path.exists() and path.stat().st_size == BYTES


def keep(home: Path) -> None:
    """Raises OSError where there is no room for it."""
    path = home / NAME
    if kept(home):
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, BYTES)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def give_back(home: Path) -> bool:
    """Whether there was one."""
    path = home / NAME
    there = path.exists()
    path.unlink(missing_ok=True)
    return there
