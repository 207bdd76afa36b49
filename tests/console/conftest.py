"""One Chromium for all console tests, one daemon for each module; each test is somebody else, in a
browser of their own.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests import console_world
from tests.console_world import Person
from tests.daemon import DaemonProcess, start

WRITE = {"name": "fs.write", "arguments": {"path": "plan.txt", "content": "one\ntwo\n"}}

THREE_FILES = "".join(
    f"--- /dev/null\n+++ b/{name}.txt\n@@ -0,0 +1 @@\n+{name}\n" for name in ("p", "q", "r")
)

WAITS = "echo first line; while [ ! -e go ]; do sleep 0.05; done; echo second line"


def script(folder: Path) -> dict[str, Any]:
    """What is said sets off what is answered. `slow` and `long` wait in mid-sentence for a file of
    their name.
    """
    return {
        "*": [{"text": "Hello."}],
        "hello": [{"text": ["Hello ", "from **the script**."], "reasoning": "They greet me."}],
        "code": [{"text": "Look:\n\n```python\nprint('hi')\n```\n"}],
        "slow": [
            {
                "text": ["The beginning is here, ", "and the end."],
                "hold": str(folder / "slow"),
                "hold_after": 1,
            }
        ],
        "long": [
            {
                "reasoning": "One word after the other.",
                "text": ["It starts with this, ", "and it stops."],
                "hold": str(folder / "long"),
                "hold_after": 1,
            }
        ],
        "never": [
            {
                "text": ["Never will this be ", "done."],
                "hold": str(folder / "never"),
                "hold_after": 1,
            }
        ],
        "write": [{"text": "I write.", "calls": [WRITE]}, {"text": "It is settled."}],
        "shell": [
            {
                "text": "I run it.",
                "calls": [{"name": "shell.run", "arguments": {"command": WAITS}}],
            },
            {"text": "It ran."},
        ],
        "write much": [
            {
                "calls": [
                    {
                        "name": "fs.write",
                        "arguments": {
                            "path": "much.txt",
                            "content": "a long line of words\n" * 6_000,
                        },
                    }
                ]
            },
            {"text": "Much is settled."},
        ],
        "much and little": [
            {
                "calls": [
                    {"name": "fs.write", "arguments": {"path": f"{name}.txt", "content": text}}
                    for name, text in (("much", "a long line of words\n" * 6_000), ("a", "a"))
                ]
            },
            {"text": "Both are settled."},
        ],
        "patch three": [
            {"calls": [{"name": "fs.patch", "arguments": {"diff": THREE_FILES}}]},
            {"text": "The patch is settled."},
        ],
        "two and wait": [
            {
                "calls": [
                    {"name": "fs.write", "arguments": {"path": f"{name}.txt", "content": name}}
                    for name in ("c", "d")
                ]
            },
            {"text": "Never said."},
        ],
        "two": [
            {
                "calls": [
                    {"name": "fs.write", "arguments": {"path": f"{name}.txt", "content": name}}
                    for name in ("a", "b")
                ]
            },
            {"text": "Both are settled."},
        ],
    }


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with console_world.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("console")
    with start(
        folder, config="[limits]\nrequests_per_second = 1000\n", script=script(folder)
    ) as running:
        yield running


@pytest.fixture
def somebody(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with console_world.person(browser, daemon) as person:
        yield person
    daemon.post("/v1/stop")
    # A write that changes nothing does not ask: the next one finds no file.
    for name in ("plan", "much", "a", "b", "c", "d"):
        (daemon.workspace / f"{name}.txt").unlink(missing_ok=True)


@pytest.fixture
def release(daemon: DaemonProcess) -> Callable[[str], None]:
    """Let the model go on that waits in the script of this name."""
    return lambda name: (daemon.home.parent / name).touch()
