"""Connections for the console's pictures: a machine in the shed that really works for the daemon,
and what a program is told.
"""

import asyncio
import atexit
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from playwright.sync_api import Page, expect

from palyra.features.workers.node import enrol
from palyra.features.workers.node.home import Home
from tests.daemon import DaemonProcess

Scene = Callable[[Page, DaemonProcess, str], None]
CONFIG = '[workers]\nlisten = "127.0.0.1:0"\n'
_ASKED = "Work through the photos of the beds in the shed"
_LONG = {
    "name": "worker:shed/shell.run",
    "arguments": {
        "command": "for n in $(seq 600); do echo photo $n; sleep 1; done",
        "timeout_s": 600,
    },
}
_SHORT = {"name": "worker:shed/shell.run", "arguments": {"command": "echo 42 photos"}}
_LONGEST_S = 30.0
_working: set[str] = set()


def script() -> dict[str, Any]:
    return {
        _ASKED: [
            {"text": "I look how many there are.", "calls": [_SHORT]},
            {"text": "I begin.", "calls": [_LONG]},
            {"text": "Done."},
        ]
    }


def _shed(daemon: DaemonProcess) -> None:
    """Enrolled and at work, once; it goes with this process. Begun when it is looked at: other
    pictures do without.
    """
    if daemon.url in _working:
        return
    _working.add(daemon.url)
    folder = daemon.home.parent / "shed"
    for name, home in (
        ("shed", Home(folder)),
        ("greenhouse", Home(daemon.home.parent / "greenhouse")),
    ):
        made = daemon.post("/v1/workers", {"name": name})
        at = f"127.0.0.1:{made['port']}"
        # In a thread of its own: the browser's driver has the loop of this one.
        with ThreadPoolExecutor(1) as hand:
            hand.submit(asyncio.run, enrol.enrol(home, at, made["code"], made["authority"])).result(
                _LONGEST_S
            )
    command = [sys.executable, "-m", "palyra.cli.main", "worker", "run", "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    atexit.register(process.kill)
    assert process.stdout is not None
    process.stdout.readline()
    session = daemon.post("/v1/sessions")["session_id"]
    sent = daemon.post(f"/v1/sessions/{session}/messages", {"text": _ASKED})
    started = 0
    for _, kind, entry in daemon.events(
        f"/v1/sessions/{session}/events?after={sent['seq']}&until={sent['run_id']}"
    ):
        if kind == "entry" and entry["kind"] == "approval.requested":
            daemon.post(
                f"/v1/approvals/{entry['event']['approval_id']}/answer", {"decision": "allow"}
            )
        started += kind == "entry" and entry["kind"] == "tool.started"
        if started == 2:
            return


def _programs(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/connections/programs/python")
    expect(page.get_by_role("region", name="Python")).to_contain_text("YOUR_TOKEN")


def _workers(page: Page, daemon: DaemonProcess, session: str) -> None:
    _shed(daemon)
    page.goto(f"{daemon.url}/#/connections/workers")
    expect(page.get_by_role("list", name="Running calls")).to_contain_text(_ASKED)


def _listening(page: Page, daemon: DaemonProcess, session: str) -> None:
    _shed(daemon)
    page.goto(f"{daemon.url}/#/connections/listening")
    expect(page.get_by_role("link", name="Download palyra-ca.pem")).to_be_visible()


PAGES: dict[str, Scene] = {"connections": _programs, "workers": _workers, "listening": _listening}
