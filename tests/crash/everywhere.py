"""Runs the crash harness in a process of its own and judges what it reports."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.material import ROOT

_IN_MEMORY = "/dev/shm"
_LEAST_FREE = 2 << 30


def crash_everywhere(name: str, folder: Path, least_points: int) -> None:
    with in_memory(folder) as fast:
        _crash(name, fast, least_points)


@contextmanager
def in_memory(folder: Path) -> Iterator[Path]:
    """A folder in memory where there is one: `kill -9` loses nothing that was written, so only the syncs are saved.

    What failed is kept in the folder that was given.
    """
    if not os.access(_IN_MEMORY, os.W_OK) or shutil.disk_usage(_IN_MEMORY).free < _LEAST_FREE:
        yield folder
        return
    with TemporaryDirectory(prefix="palyra-crash-", dir=_IN_MEMORY) as made:
        try:
            yield Path(made)
        except BaseException:
            shutil.copytree(made, folder, dirs_exist_ok=True)
            raise


def _crash(name: str, folder: Path, least_points: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.harness", name, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"] == {}, f"{len(result['failures'])} of {result['tries']} failed"
    assert result["points"] >= least_points, "too few points were tried to mean anything"
