"""Browsers beside Chromium as they are installed on the machine, each over the protocol that it
speaks itself: Firefox over WebDriver BiDi, WebKit (its GTK port) over WebDriver. No patched builds.
Only what the tests of the console need.
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests import ports

FIREFOXES = ("firefox-esr", "firefox")
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


# What a page throws and what its policies refuse, from when it stands.
_LISTEN = """
if (!window.heardComplaints) {
  window.heardComplaints = [];
  const hear = (words) => window.heardComplaints.push(String(words));
  addEventListener("error", (it) => hear(it.message));
  addEventListener("unhandledrejection", (it) => hear(it.reason));
  addEventListener("securitypolicyviolation", (it) => hear(it.violatedDirective));
}
"""


def firefox_program() -> str:
    """The path of a Firefox on this machine, or empty."""
    return next((found for each in FIREFOXES if (found := shutil.which(each))), "")


def webkit_program() -> str:
    """The path of WebKit's small browser on this machine, or empty where a part is missing."""
    if not (shutil.which("WebKitWebDriver") and shutil.which("Xvfb")):
        return ""
    found = sorted(Path("/usr/lib").glob("**/webkit2gtk-4.*/MiniBrowser"))
    return str(found[-1]) if found else ""


class Tab(ABC):
    @abstractmethod
    def go(self, url: str) -> None: ...

    @abstractmethod
    def resize(self, width: int, height: int) -> None: ...

    @abstractmethod
    def evaluate(self, expression: str) -> Any:
        """What an expression gives, as JSON has it."""

    @abstractmethod
    def perform(self, source: dict[str, Any]) -> None:
        """Do what a source of input does: a pointer or a keyboard."""

    @abstractmethod
    def complaints(self) -> list[str]:
        """What pages threw, logged as errors or were refused since somebody asked last."""

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
        self.perform({"type": "pointer", "id": "mouse", "actions": moves})

    def type(self, text: str) -> None:
        keys = [{"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]
        self.perform({"type": "key", "id": "keyboard", "actions": keys})


class FirefoxTab(Tab):
    def __init__(self, connection: ClientConnection) -> None:
        self._socket = connection
        self._number = 0
        self._complaints: list[str] = []
        self.send("session.new", {"capabilities": {}})
        self.send("session.subscribe", {"events": ["log.entryAdded"]})
        self._context = self.send("browsingContext.getTree", {})["contexts"][0]["context"]

    def send(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv(timeout=_WAIT_S))
            if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
                self._complaints.append(str(said["params"]["text"]))
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
        given = {
            "expression": f"Promise.resolve({expression}).then((it) => JSON.stringify(it ?? null))",
            "target": {"context": self._context},
            "awaitPromise": True,
        }
        found = self.send("script.evaluate", given)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def perform(self, source: dict[str, Any]) -> None:
        self.send("input.performActions", {"context": self._context, "actions": [source]})

    def complaints(self) -> list[str]:
        heard, self._complaints = self._complaints, []
        return heard


class WebKitTab(Tab):
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * _WAIT_S)
        options = {"binary": webkit_program(), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        self._path = ""
        made = self.send("POST", "/session", {"capabilities": wanted})
        self._path = f"/session/{made['sessionId']}"

    def complaints(self) -> list[str]:
        return list(self.evaluate("window.heardComplaints?.splice(0) ?? []"))

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        text = json.dumps(body or {}) if method == "POST" else None
        self._connection.request(method, self._path + path, text)
        answer = self._connection.getresponse()
        value = json.loads(answer.read())["value"]
        assert answer.status == 200, value
        return value

    def go(self, url: str) -> None:
        self.send("POST", "/url", {"url": url})
        self.send("POST", "/execute/sync", {"script": _LISTEN, "args": []})

    def resize(self, width: int, height: int) -> None:
        """Make the page that large: the window has a frame around it."""
        self.send("POST", "/window/rect", {"width": width, "height": height})
        wide, high = self.evaluate("[innerWidth, innerHeight]")
        size = {"width": 2 * width - wide, "height": 2 * height - high}
        self.send("POST", "/window/rect", size)

    def evaluate(self, expression: str) -> Any:
        script = (
            f"const done = arguments[0]; Promise.resolve({expression})"
            ".then((it) => done(JSON.stringify(it ?? null)))"
        )
        return json.loads(self.send("POST", "/execute/async", {"script": script, "args": []}))

    def perform(self, source: dict[str, Any]) -> None:
        self.send("POST", "/actions", {"actions": [source]})


@contextmanager
def firefox(folder: Path) -> Iterator[FirefoxTab]:
    """A Firefox with a profile of its own in `folder`."""
    profile = folder / "profile"
    profile.mkdir()
    lines = (f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in _PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines))
    command = [firefox_program(), "--headless", "--no-remote", "--remote-debugging-port", "0"]
    command += ["--profile", str(profile), "about:blank"]
    environment = {"HOME": str(folder), "MOZ_HEADLESS": "1"}
    with started(command, folder / "firefox.txt", environment) as said:
        deadline = time.monotonic() + _WAIT_S
        while not (found := _LISTENS.search(said.read_text(errors="replace"))):
            assert time.monotonic() < deadline, said.read_text(errors="replace")
            time.sleep(0.02)  # Another process's file: there is nothing to wait on but the clock.
        with connect(f"{found[1]}/session", max_size=1 << 26, proxy=None) as connection:
            yield FirefoxTab(connection)


@contextmanager
def webkit(folder: Path) -> Iterator[WebKitTab]:
    """A WebKit on a display of its own that nobody sees; what it keeps is in `folder`."""
    with screen(folder) as display:
        port = ports.free()
        home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
        command = ["WebKitWebDriver", f"--port={port}"]
        with started(command, folder / "webkit.txt", {"DISPLAY": display, **home}) as said:
            _until_it_listens(port, said)
            tab = WebKitTab(port)
            yield tab
            tab.send("DELETE", "")


@contextmanager
def screen(folder: Path) -> Iterator[str]:
    """The name of a display that is not shown anywhere."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1600x1200x24"]
    with started(command, folder / "screen.txt", {}, keep=(writing,)):
        os.close(writing)
        with os.fdopen(reading) as number:
            yield f":{number.readline().strip()}"


@contextmanager
def started(
    command: list[str], sink: Path, environment: dict[str, str], keep: tuple[int, ...] = ()
) -> Iterator[Path]:
    """Run a program for as long as the block; whatever it started ends with it."""
    with sink.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keep,
        )
    try:
        yield sink
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until_it_listens(port: int, said: Path) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, said.read_text(errors="replace")
            time.sleep(0.02)  # Another process's port: there is nothing to wait on but the clock.
