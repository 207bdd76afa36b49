"""Runs what forks in a process of its own, because a test runner has threads, and judges what it
reports.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.material import ROOT

_IN_MEMORY = "/dev/shm"
_LEAST_FREE = 2 << 30
# On a machine that does much else at the same time.
_SECONDS = 580
_SHOWN = 4_000


def crash_everywhere(folder: Path, least_points: int, module: str, *arguments: str) -> None:
    """Nothing may have failed, whatever the point was where a daemon died."""
    with in_memory(folder) as fast:
        found = program(module, str(fast), *arguments)
        failures = found["failures"]
        assert failures == {}, f"{len(failures)} failed: {json.dumps(failures)[:_SHOWN]}"
    assert found["points"] >= least_points, "too few points were tried to mean anything"


@contextmanager
def in_memory(folder: Path) -> Iterator[Path]:
    """A folder in memory where there is one: `kill -9` loses nothing that was written, so only the
    syncs are saved.

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


def program(module: str, *arguments: str) -> Any:
    """What a module of the tests prints when it is run."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout.splitlines()[-1])
