"""A daemon process for each file of tests that asks for one, with a scripted model and limits that
do not get in the way.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import daemon
from tests.daemon import DaemonProcess

CONFIG = """
[limits]
requests_per_second = 100000
"""
WORDS = [f"word{number} " for number in range(40)]
SCRIPT = {
    "*": [{"text": ["hello ", "there"], "reasoning": "as asked"}],
    "many words": [{"text": WORDS}],
    "write": [
        {
            "text": "I write it.",
            "calls": [
                {"name": "fs.write", "arguments": {"path": "note.txt", "content": "first\n"}}
            ],
        },
        {"text": "written"},
    ],
    "write again": [
        {"calls": [{"name": "fs.write", "arguments": {"path": "note.txt", "content": "second\n"}}]},
        {"text": "written again"},
    ],
    "read much": [
        {"calls": [{"name": "fs.read", "arguments": {"path": "much.txt"}}]},
        {"text": "read"},
    ],
    "fail": [{"fail": {"failure": "auth", "message": "no such key"}}],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("daemon")
    hold = folder / "hold"
    script = {**SCRIPT, "hold": [{"text": ["so ", "far"], "hold": str(hold), "hold_after": 1}]}
    with daemon.start(folder, config=CONFIG + daemon.IMPATIENT, script=script) as process:
        yield process


@pytest.fixture
def session_id(served: DaemonProcess) -> str:
    return str(served.post("/v1/sessions")["session_id"])
