"""What holds for all tests."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

# The tests start hundreds of processes: without bytecode on the disk each of them would compile the
# whole source anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long one example takes says more about the machine than about the code.
settings.register_profile("palyra", deadline=None)
# For whoever judges a change: what it did not touch is asked the same as before. `make test` looks
# at new examples every time.
settings.register_profile("palyra-ci", deadline=None, derandomize=True)
settings.load_profile("palyra")

# By how long a module of theirs takes. The others come between the last two.
_FOLDERS = ("console", "e2e", "injection", "docs", "escapes", "contract", "crash")
_LAST = "unit"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Share the work: pytest translates every module of tests, and what one worker has translated
    the others read from the disk.

    So each begins with its own part of the modules. What is wrong with one is told when it is
    collected.
    """
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return
    root = Path(__file__).parent
    modules = [
        ".".join(path.relative_to(root.parent).with_suffix("").parts)
        for path in sorted(root.glob("*/test_*.py"))
    ]
    for module in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with suppress(Exception):
            import_module(module)


def pytest_sessionfinish() -> None:
    """End what was started for the whole session; whoever waits for the interpreter's end may be
    killed before it.
    """
    for each in ("tests.synapse", "tests.postgres_server"):
        if started := sys.modules.get(each):
            started.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long modules first: when several run at once, the last ones are short, and nobody waits long
    for them.

    Long are those with a test that has more time than others.
    """
    limits: dict[str, float] = {}
    for item in items:
        marker = item.get_closest_marker("timeout")
        module = item.nodeid.partition("::")[0]
        limits[module] = max(limits.get(module, 0), marker.args[0] if marker is not None else 0)

    def place(item: pytest.Item) -> tuple[float, int]:
        module = item.nodeid.partition("::")[0]
        folder = module.split("/")[1]
        rank = _FOLDERS.index(folder) if folder in _FOLDERS else len(_FOLDERS) + (folder == _LAST)
        return -limits[module], rank

    items.sort(key=place)


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach. Those of pytest are root's alone, and all workers
    share the folders above them.
    """
    with TemporaryDirectory() as folder:
        yield Path(folder)
