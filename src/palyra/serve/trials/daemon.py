"""A daemon to try things on: with the policies and settings of this home, with nobody's data, and
with a model that plays a script.

The rule: what is real stays out of it. It has a home, a workspace and a port of its own, no
channel, no key and no model that costs anything; and all of it is gone afterwards.
"""

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from palyra.cli import daemon_process, lookup
from palyra.client import Client, discovery
from palyra.client.http import Api
from palyra.client.types.sessions import RunRow, Submitted
from palyra.core.errors import PalyraError, Unavailable
from palyra.core.events import AnyEvent, Decision, decode
from palyra.serve import config
from palyra.serve.config.edit import assign, literal

# What of the settings a trial is about; the rest would lead out of it.
_KEPT = ("policy", "approvals", "mailbox")
_LONGEST_S = 60.0
_SCRIPT = "script.json"
_POLL_S = 0.01
_REST = """
[models]
default = "trial/one"

[providers.trial]
kind = "scripted"
models = ["one"]
script = {script}

[workspace]
root = {work}

[rehearsal]
tools = true

[memory]
embeddings = false

[learning]
enabled = false

[browser]
enabled = false
"""
Script = Mapping[str, Sequence[Mapping[str, Any]]]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A turn of the script that calls one tool."""
    return {"calls": [{"name": tool, "arguments": arguments}]}


class TrialDaemon:
    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self.home, self.work, self.outside = folder / "home", folder / "work", folder / "outside"
        self._env = {
            name: value
            for name, value in env.items()
            if not name.startswith("PALYRA_") and "API_KEY" not in name
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.api = Client.over(Api(lambda: discovery.discover(self.home, {})))

    def play(self, script: Script) -> None:
        """What its model says and does, by what sets it off; before it is started."""
        (self.home / _SCRIPT).write_bytes(msgspec.json.encode(script))

    def start(self) -> None:
        self._process = daemon_process.start(self.home, 0, lifeline=True, env=self._env)
        daemon_process.wait_ready(self._process, self.home, {})
        self.api = Client.over(Api(lambda: discovery.discover(self.home, {})))

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_LONGEST_S)
        self._forget()

    def stop(self) -> None:
        if self._process is not None:
            daemon_process.end(self._process)
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def begin(self, text: str) -> Submitted:
        session = self.api.resolve_session(workspace=str(self.work))
        return lookup.submit(self.api, session.session_id, text)

    def finish(self, run_id: str) -> RunRow:
        """The run at its end. Whatever it asks is allowed; what may have happened is not done
        again.
        """
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline:
            run = self.api.get_run(run_id)
            if run.state in lookup.TERMINAL:
                return run
            for approval in lookup.pending(self.api) if run.state == "waiting" else ():
                self._answer(
                    approval.approval_id,
                    "skip" if approval.request.about == "in_doubt" else "allow",
                )
            time.sleep(_POLL_S)
        raise Unavailable(f"run {run_id} did not come to an end within {_LONGEST_S:.0f} s")

    def _answer(self, approval_id: str, decision: Decision) -> None:
        try:
            self.api.answer(approval_id, decision=decision)
        except PalyraError:
            # It may not be allowed at all: then the answer is no.
            self.api.answer(approval_id, decision="deny")

    def told(self, session_id: str) -> list[AnyEvent]:
        return [decode(bytes(entry.event)) for entry in lookup.entries(self.api, session_id)]


@contextmanager
def ground(real: Path, env: Mapping[str, str]) -> Iterator[TrialDaemon]:
    """A daemon's place, not started yet. It lies in the real home, which is on a disk of its
    owner's and nobody else's to see.
    """
    loaded = config.load(real, env)
    folder = real / "trials" / secrets.token_hex(6)
    made = TrialDaemon(folder, env)
    try:
        for each in (made.home, made.work, made.outside):
            each.mkdir(parents=True, mode=0o700)
        policies = (
            Path(loaded.config.policy.folder) if loaded.config.policy.folder else real / "policies"
        )
        if policies.is_dir():
            shutil.copytree(policies, made.home / "policies", symlinks=True)
        text = ""
        for shown in config.show(loaded, with_lines=False):
            path = tuple(shown.key.split("."))
            if path[0] in _KEPT and shown.source != "default" and path != ("policy", "folder"):
                text = assign(text, path, shown.value)
        rest = _REST.format(script=literal(str(made.home / _SCRIPT)), work=literal(str(made.work)))
        (made.home / config.FILE).write_text(text + rest)
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
        # Another trial may go on beside this one.
        with suppress(OSError):
            os.rmdir(real / "trials")
