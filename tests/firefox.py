"""Firefox as it is installed on the machine, driven over WebDriver BiDi, which it speaks itself: no
driver and no patched build. Only what the tests of the console need.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAMS = ("firefox-esr", "firefox")
_WAIT_S = 60.0
_LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
# Nothing that a first start would fetch or ask.
_PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
}


def program() -> str:
    """The path of a Firefox on this machine, or empty."""
    return next((found for each in PROGRAMS if (found := shutil.which(each))), "")


class Tab:
    """One tab. What its pages throw or log as errors is in `complaints`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.complaints: list[str] = []
        self.send("session.new", {"capabilities": {}})
        self.send("session.subscribe", {"events": ["log.entryAdded"]})
        self._context = self.send("browsingContext.getTree", {})["contexts"][0]["context"]

    def send(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv(timeout=_WAIT_S))
            if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
                self.complaints.append(str(said["params"]["text"]))
            if said.get("id") == self._number:
                assert said["type"] == "success", said
                return said["result"]

    def go(self, url: str) -> None:
        self.send(
            "browsingContext.navigate", {"context": self._context, "url": url, "wait": "complete"}
        )

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self.send("browsingContext.setViewport", {"context": self._context, "viewport": size})

    def evaluate(self, expression: str) -> Any:
        """What an expression gives, as JSON has it."""
        given = {
            "expression": f"Promise.resolve({expression}).then((it) => JSON.stringify(it ?? null))",
            "target": {"context": self._context},
            "awaitPromise": True,
        }
        found = self.send("script.evaluate", given)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def until(self, expression: str) -> Any:
        """Wait until an expression gives something that is true, and give that."""
        deadline = time.monotonic() + _WAIT_S
        while not (found := self.evaluate(expression)):
            assert time.monotonic() < deadline, f"it never was so: {expression}\n{self.text()}"
            self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return found

    def text(self) -> str:
        return str(self.evaluate("document.body.innerText"))

    def says(self, words: str) -> None:
        self.until(f"document.body.innerText.includes({json.dumps(words)})")

    def click(self, selector: str, words: str = "") -> None:
        """Press and release the pointer on the first visible element that has these words."""
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find((it) => !it.disabled &&"
            f" it.checkVisibility() && it.textContent.trim().startsWith({json.dumps(words)}))"
        )
        # Where it stands once it stands still.
        place = self.until(
            f"(async () => {{ const it = {find}; if (!it) return null;"
            " it.scrollIntoView({block: 'center'}); const at = () => it.getBoundingClientRect();"
            " const before = at(); await new Promise((done) => requestAnimationFrame(done));"
            " const now = at(); return before.x === now.x && before.y === now.y &&"
            " [Math.round(now.x + now.width / 2), Math.round(now.y + now.height / 2)] })()"
        )
        moves = [
            {"type": "pointerMove", "x": place[0], "y": place[1]},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self._perform({"type": "pointer", "id": "mouse", "actions": moves})

    def type(self, text: str) -> None:
        keys = [{"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]
        self._perform({"type": "key", "id": "keyboard", "actions": keys})

    def _perform(self, source: dict[str, Any]) -> None:
        self.send("input.performActions", {"context": self._context, "actions": [source]})


@contextmanager
def firefox(folder: Path) -> Iterator[Tab]:
    """A Firefox with a profile of its own in `folder`."""
    profile = folder / "profile"
    profile.mkdir()
    lines = (f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in _PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines))
    said = folder / "firefox.txt"
    command = [program(), "--headless", "--no-remote", "--remote-debugging-port", "0"]
    with said.open("wb") as sink:
        process = subprocess.Popen(
            [*command, "--profile", str(profile), "about:blank"],
            env={**os.environ, "HOME": str(folder), "MOZ_HEADLESS": "1"},
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _WAIT_S
        while not (found := _LISTENS.search(said.read_text(errors="replace"))):
            assert process.poll() is None, said.read_text(errors="replace")
            assert time.monotonic() < deadline, said.read_text(errors="replace")
            time.sleep(0.02)  # Another process's file: there is nothing to wait on but the clock.
        with connect(f"{found[1]}/session", max_size=1 << 26, proxy=None) as socket:
            yield Tab(socket)
    finally:
        # Firefox is several processes: those that it started end with it.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
