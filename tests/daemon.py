"""A real daemon in a process of its own, for tests: a temporary home, a free port, a scripted model
if one is given.

    with start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon:
        session = daemon.post("/v1/sessions")

It is ended by its own pid, whatever happens.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import stores

START_S = 60.0
STOP_S = 30.0
SILENCE_S = 60.0
# For tests whose subject is a run that fails: no run waits for its provider.
IMPATIENT = """
[waiting.patience_ms]
interactive = 0
api = 0
channel = 0
scheduled = 0
"""


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code."""
        return str(self.json["error"]["code"])


@dataclass
class DaemonProcess:
    home: Path
    workspace: Path
    process: "subprocess.Popen[bytes]"
    url: str = ""
    token: str = ""
    output: Path = field(default_factory=Path)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> Response:
        """One request with the owner's token, or another one; `token=""` sends none. A body that is
        bytes goes as it is.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        secret = self.token if token is None else token
        sent = {"Authorization": f"Bearer {secret}"} if secret else {}
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if raw is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, raw, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Response(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Any:
        return self._good(self.request("GET", path, **more))

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return self._good(self.request("POST", path, {} if body is None else body, **more))

    def _good(self, response: Response) -> Any:
        assert response.status < 300, f"{response.status}: {response.body[:500]!r}"
        return response.json

    def events(
        self, path: str, *, timeout_s: float = 30.0, headers: Mapping[str, str] | None = None
    ) -> Iterator[tuple[str, str, Any]]:
        """Server-sent events as (id, event, data), until the stream ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request(
                "GET", path, headers={"Authorization": f"Bearer {self.token}", **(headers or {})}
            )
            answer = connection.getresponse()
            assert answer.status == 200, f"{answer.status}: {answer.read()[:500]!r}"
            fields: dict[str, str] = {}
            # A stream that says nothing but that it lives would keep a test for ever: the socket's
            # own limit never comes.
            last = time.monotonic()
            for line in answer:
                assert time.monotonic() - last < SILENCE_S, (
                    f"nothing came on {path} for {SILENCE_S} s:\n{self.said()[-4000:]}"
                )
                text = line.decode().rstrip("\n")
                if text.startswith(":"):
                    continue
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    yield fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"])
                    fields, last = {}, time.monotonic()
        finally:
            connection.close()

    def run(
        self, text: str, session_id: str = "", *, timeout_s: float = 30.0, **submission: Any
    ) -> tuple[str, list[dict[str, Any]]]:
        """Submit, watch to the end of the run, and give the session with the run's entries."""
        session_id = session_id or self.post("/v1/sessions")["session_id"]
        submitted = self.post(f"/v1/sessions/{session_id}/messages", {"text": text, **submission})
        path = (
            f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}"
        )
        entries = [
            data for _, event, data in self.events(path, timeout_s=timeout_s) if event == "entry"
        ]
        return session_id, [
            entry for entry in entries if entry.get("run_id") == submitted["run_id"]
        ]

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_S)

    def stop(self) -> int:
        """Ask it to end, and give its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"the daemon did not stop within {STOP_S} s:\n{self.said()}"
            ) from None

    def said(self, until: str = "") -> str:
        """What it has printed, waiting for this to be part of it."""
        end = time.monotonic() + START_S
        while until not in (said := self.output.read_text() if self.output.exists() else ""):
            assert time.monotonic() < end, f"{until!r} was not said:\n{said}"
            time.sleep(0.01)
        return said

    def restart(self, *, port: int = 0) -> None:
        """Start again on the same home, after `kill` or `stop`; the port is another one, unless one
        is given.
        """
        assert self.process.poll() is not None, "the daemon still runs"
        with socket.socket() as kept:
            if port:
                # Nobody else is given it until the daemon has it, which may share it as long as
                # nobody listens.
                kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                kept.bind(("127.0.0.1", port))
            again = launch(self.home, self.workspace, port=port)
        self.process, self.url, self.token, self.output = (
            again.process,
            again.url,
            again.token,
            again.output,
        )


def configure(home: Path, *, config: str = "", script: Any = None) -> None:
    """Write the config: the given TOML, and the scripted model as default if there is a script."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if script is not None:
        (home / "script.json").write_text(json.dumps(script))
        config += f'\n[providers.scripted]\nkind = "scripted"\nmodels = ["s1"]\nscript = "{home / "script.json"}"\n'
    (home / "config.toml").write_text(config)


def launch(
    home: Path,
    workspace: Path,
    *,
    env: Mapping[str, str] | None = None,
    port: int = 0,
    start_s: float = START_S,
) -> DaemonProcess:
    """Start a daemon and wait until it says where it is."""
    (home / "daemon.json").unlink(missing_ok=True)
    output = home / "output.txt"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and not name.startswith("PALYRA_")
    }
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "palyra.serve", "--home", str(home), "--port", str(port)],
            cwd=workspace,
            env={**kept, **stores.environment(home), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    daemon = DaemonProcess(home, workspace, process, output=output)
    deadline = time.monotonic() + start_s
    while True:
        try:
            running = json.loads((home / "daemon.json").read_text())
            if running["pid"] == process.pid:
                break
        except FileNotFoundError:
            pass
        if process.poll() is not None:
            raise AssertionError(f"the daemon ended with {process.returncode}:\n{daemon.said()}")
        if time.monotonic() > deadline:
            daemon.kill()
            raise AssertionError(f"the daemon was not there after {start_s} s:\n{daemon.said()}")
        time.sleep(0.005)  # Another process's file: there is nothing to wait on but the clock.
    daemon.url, daemon.token = running["url"], (home / "owner.token").read_text().strip()
    return daemon


@contextmanager
def start(
    folder: Path, *, config: str = "", script: Any = None, env: Mapping[str, str] | None = None
) -> Iterator[DaemonProcess]:
    """A daemon with its home and workspace in `folder`, ended at the end."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    configure(folder / "home", config=config, script=script)
    daemon = launch(folder / "home", workspace, env=env)
    try:
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.stop()
