"""A daemon to try things on: with the policies and settings of this home, with nobody's data, and
with a model that plays a script.

The rule: what is real stays out of it. It has a home, a workspace and a port of its own, no
channel, no key and no model that costs anything; and all of it is gone afterwards.

`palyra doctor --crash`: kill a daemon again and again while it works, and hold what is left
against what it promised.

Nothing that was acknowledged is lost, nothing happens twice, every run comes to its end, no process
is left behind and the journal verifies. The kills are spread evenly over the course of a run.
"""

import os
import secrets
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from palyra.cli import daemon_process, lookup
from palyra.client import Client, discovery
from palyra.client.http import Api
from palyra.client.types.sessions import RunRow, Submitted
from palyra.core.errors import PalyraError, Unavailable
from palyra.core.events import AnyEvent, Decision, ToolFinished, ToolProposed, decode
from palyra.features.health import orphan_processes
from palyra.features.health.doctor import DoctorCheck
from palyra.serve import config
from palyra.serve.config.edit import assign, literal
from palyra.store import sqlite_files

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
        """Set what the daemon's model says and does, by what sets it off; before it is started."""
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
        """Kill the daemon as a power cut would."""
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


_FIX = "this must never happen: keep what follows and report it"


def _script(runs: int) -> Script:
    def turns(number: int) -> list[dict[str, object]]:
        return [
            call("fs.write", path=f"written-{number}.txt", content=f"run {number}\n"),
            call("test.once", path="once.txt", line=str(number)),
            call("test.reversible", path="reversible.txt", line=str(number)),
            call("shell.run", command=f"sleep 0.1; echo {number}"),
            {"text": "done"},
        ]

    return {f"run {number}": turns(number) for number in range(runs)}


def trial(
    home: Path, env: Mapping[str, str], kills: int, progress: Callable[[int], None]
) -> Iterator[DoctorCheck]:
    with ground(home, env) as here:
        here.play(_script(kills + 1))
        here.start()
        # One that nobody disturbs says how long a run takes.
        began = time.monotonic()
        ended = [here.begin("run 0")]
        here.finish(ended[0].run_id)
        takes_s = time.monotonic() - began
        for number in range(1, kills + 1):
            run = here.begin(f"run {number}")
            ended.append(run)
            time.sleep(takes_s * (number - 0.5) / kills)
            here.kill()
            here.start()
            here.finish(run.run_id)
            progress(number)
        problems, denied = _account(here, [(run.session_id, run.run_id) for run in ended])
        here.stop()
        left = orphan_processes.carrying(orphan_processes.Marks(here.home).dead())
        if left:
            problems.append(f"processes outlived their daemon: {', '.join(map(str, left))}")
        report = sqlite_files.inspect(here.home / "journal.db")
        if not report.ok:
            problems.append(f"the journal does not verify: {report.bad}")
    times = f"killed {kills} times"
    if problems:
        yield DoctorCheck(
            id="crash",
            title="crash",
            state="fail",
            detail=f"{times}: {'; '.join(problems)}",
            fix=_FIX,
        )
        return
    detail = (
        f"{times}, and each run came to its end: nothing lost, nothing done twice, {report.entries}"
        " entries verify"
    )
    yield DoctorCheck(id="crash", title="crash", state="ok", detail=detail)
    if denied:
        detail = f"policy denied {', '.join(sorted(denied))}: that was not tried"
        yield DoctorCheck(id="crash:denied", title="crash", state="warn", detail=detail)


def _account(here: TrialDaemon, ended: list[tuple[str, str]]) -> tuple[list[str], set[str]]:
    """Return what is not as it was promised, and which tools were denied."""
    problems: list[str] = []
    denied: set[str] = set()
    lines = {name: Counter(_lines(here.work / name)) for name in ("once.txt", "reversible.txt")}
    for name, found in lines.items():
        problems += [
            f"{name} has the line {line} {times} times"
            for line, times in found.items()
            if times > 1
        ]
    for number, (session_id, run_id) in enumerate(ended):
        told = here.told(session_id)
        tools = {event.call_id: event.tool for event in told if isinstance(event, ToolProposed)}
        results = {
            tools.get(event.call_id, ""): event.outcome
            for event in told
            if isinstance(event, ToolFinished)
        }
        denied |= {tool for tool, outcome in results.items() if outcome == "denied"}
        run = here.finish(run_id)
        if run.state != "done":
            problems.append(f"run {number} ended as {run.state} ({run.reason})")
        for tool, name in (("test.once", "once.txt"), ("test.reversible", "reversible.txt")):
            if results.get(tool) == "ok" and not lines[name][str(number)]:
                problems.append(f"{name} lacks the line of run {number}, which the tape tells of")
        written = here.work / f"written-{number}.txt"
        if results.get("fs.write") == "ok" and (
            not written.exists() or written.read_text() != f"run {number}\n"
        ):
            problems.append(f"{written.name} is not what the tape tells")
    return problems, denied


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
