"""Print how many files of src/palyra four everyday things walk through: a message, an approval, a
channel message, a schedule.

    python scripts/walks.py                    # how many files each one enters
    python scripts/walks.py --files message    # which ones
    python scripts/walks.py --root ../other    # the same for another checkout

A real daemon with a scripted model runs in a process of its own, in a temporary home, under
Python's profiler. A file is "entered" if one of its functions is called between the request and the
durable answer, over HTTP and with a watcher. "Worked in" are those with two or more such functions:
where it is one, it is mostly a listener that looks and returns, or a getter. "Behind the door" are
those of them that a request with a wrong body does not enter. Modules and classes that are just
being made (imports) do not count. Each walk is done once before, so that what is loaded late is
there, and then three times: only what all three enter counts, so that a clock that ticks meanwhile
does not.
"""

import argparse
import hashlib
import hmac
import http.client
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import IO, Any

# The daemon as a process: the one name of ours that this script needs.
SERVE = "palyra.serve"
CO_OPTIMIZED = 0x1
LONGEST_S = 60.0
TIMES = 3
SECRET = "a secret of both sides"
SCRIPT = {
    "say hello": [{"text": ["hel", "lo"]}],
    "write a file": [
        {"calls": [{"name": "fs.write", "arguments": {"path": "note.txt", "content": "text\n"}}]},
        {"text": ["writ", "ten"]},
    ],
}


def traced(control: int, answers: int, arguments: list[str]) -> None:
    """Run the daemon and note every file whose functions are entered. A line on `control` starts
    anew and says what there was.
    """
    entered: set[tuple[str, int]] = set()
    names: dict[Any, tuple[str, int] | None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code
            if code not in names:
                # Bodies of modules and classes are not optimised: they run when something is
                # imported.
                names[code] = (
                    (code.co_filename, code.co_firstlineno)
                    if code.co_flags & CO_OPTIMIZED
                    else None
                )
            if place := names[code]:
                entered.add(place)

    def answer() -> None:
        sys.setprofile(None)
        with os.fdopen(control) as asked, os.fdopen(answers, "w") as told:
            for _ in asked:
                so_far = sorted(entered)
                entered.clear()
                told.write(json.dumps(so_far) + "\n")
                told.flush()

    threading.Thread(target=answer, daemon=True).start()
    threading.setprofile(note)
    sys.setprofile(note)
    sys.argv = [SERVE, *arguments]
    runpy.run_module(SERVE, run_name="__main__", alter_sys=True)


class Daemon:
    """The daemon's doors, and what it has entered."""

    def __init__(self, home: Path, package: Path, ask: IO[str], told: IO[str]) -> None:
        running = json.loads((home / "daemon.json").read_text())
        self._port = int(running["url"].rpartition(":")[2])
        self._token = (home / "owner.token").read_text().strip()
        self._package = str(package) + os.sep
        self._ask, self._told = ask, told

    def entered(self) -> set[tuple[str, int]]:
        """Return the functions entered since the last time: the path below the package, and the
        line.
        """
        self._ask.write("\n")
        self._ask.flush()
        places = json.loads(self._told.readline())
        return {
            (name[len(self._package) :], line)
            for name, line in places
            if name.startswith(self._package)
        }

    def _open(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LONGEST_S)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(
            method,
            path,
            raw,
            {
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        return connection.getresponse()

    def post(self, path: str, body: Any = None, *, expected: int = 0, **headers: str) -> Any:
        answer = self._open("POST", path, {} if body is None else body, headers)
        said = answer.read()
        if answer.status != expected and not 200 <= answer.status < 300:
            raise RuntimeError(f"POST {path} was answered with {answer.status}: {said[:500]!r}")
        return json.loads(said)

    def entries(self, session_id: str = "") -> Iterator[dict[str, Any]]:
        """Watch a session, or all of them, from their beginning. The stream is open when this
        returns.
        """
        answer = self._open(
            "GET", f"/v1/sessions/{session_id}/events" if session_id else "/v1/events", None, {}
        )

        def lines() -> Iterator[dict[str, Any]]:
            event = ""
            with answer:
                for line in answer:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    event = value if name == "event" else event
                    if name == "data" and event == "entry":
                        yield json.loads(value)

        return lines()


def until(entries: Iterator[dict[str, Any]], kind: str) -> dict[str, Any]:
    end = time.monotonic() + LONGEST_S
    for entry in entries:
        if entry["kind"] == kind:
            return entry
        if entry["kind"] in ("run.failed", "run.cancelled") or time.monotonic() > end:
            raise RuntimeError(f"expected {kind}, but this came: {json.dumps(entry)[:500]}")
    raise RuntimeError(f"expected {kind}, but the stream ended")


class Program:
    """The program on the other side of the webhook channel: it takes one answer at a time."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        program = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps({"id": "1"}).encode())
                if told["type"] != "ping":
                    program.answered.set()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/"


def signed(body: bytes) -> dict[str, str]:
    stamp = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"x-palyra-timestamp": stamp, "x-palyra-signature": f"sha256={digest}"}


@contextmanager
def running(root: Path, program: Program) -> Iterator[Daemon]:
    """A traced daemon of the checkout `root`, ended at the end."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        home.mkdir(mode=0o700)
        work.mkdir()
        _configure(home, work, program.url)
        control, ask = os.pipe()
        told, answers = os.pipe()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PALYRA_")}
        with (home / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [
                    sys.executable,
                    __file__,
                    "--traced",
                    str(control),
                    str(answers),
                    "--home",
                    str(home),
                    "--port",
                    "0",
                ],
                env={**kept, "PYTHONPATH": str(root / "src")},
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(control, answers),
            )
        os.close(control)
        os.close(answers)
        try:
            with os.fdopen(ask, "w") as asking, os.fdopen(told) as answered:
                _wait(process, home)
                yield Daemon(home, root / "src" / "palyra", asking, answered)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(LONGEST_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _configure(home: Path, work: Path, url: str) -> None:
    (home / "script.json").write_text(json.dumps(SCRIPT))
    (home / "secret").write_text(SECRET)
    (home / "config.toml").write_text(f"""[models]
default = "scripted/s1"
[providers.scripted]
kind = "scripted"
models = ["s1"]
script = "{home / "script.json"}"
[workspace]
root = "{work}"
[memory]
embeddings = false
[channels.hook]
kind = "webhook"
direct = "allow"
settings = ["url={url}", "secret=file:{home / "secret"}"]
""")


def _wait(process: "subprocess.Popen[bytes]", home: Path) -> None:
    end = time.monotonic() + LONGEST_S
    while not (home / "daemon.json").exists() or not (home / "owner.token").exists():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the daemon did not start:\n{(home / 'output.txt').read_text()}")
        time.sleep(0.02)  # Another process's file: there is nothing to wait on but the clock.


def door(daemon: Daemon, _program: Program, _number: int) -> Callable[[], None]:
    session_id = daemon.post("/v1/sessions")["session_id"]
    return lambda: (
        daemon.post(f"/v1/sessions/{session_id}/messages", {"text": 1}, expected=400) and None
    )


def message(daemon: Daemon, _program: Program, _number: int) -> Callable[[], None]:
    session_id = daemon.post("/v1/sessions")["session_id"]
    entries = daemon.entries(session_id)

    def walk() -> None:
        daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "say hello"})
        until(entries, "run.completed")

    return walk


def approval(daemon: Daemon, _program: Program, _number: int) -> Callable[[], None]:
    session_id = daemon.post("/v1/sessions")["session_id"]
    entries = daemon.entries(session_id)

    def walk() -> None:
        daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "write a file"})
        asked = until(entries, "approval.requested")["event"]["approval_id"]
        daemon.post(f"/v1/approvals/{asked}/answer", {"decision": "allow"})
        until(entries, "run.completed")

    return walk


def channel(daemon: Daemon, program: Program, number: int) -> Callable[[], None]:
    words = {
        "id": f"m{number}",
        "conversation": "c",
        "sender": {"id": "anna"},
        "text": "say hello",
        "direct": True,
    }
    body = json.dumps(words).encode()

    def walk() -> None:
        program.answered.clear()
        daemon.post("/v1/channels/hook/hook", body, **signed(body))
        if not program.answered.wait(LONGEST_S):
            raise RuntimeError("the channel was not answered")

    return walk


def schedule(daemon: Daemon, _program: Program, number: int) -> Callable[[], None]:
    entries = daemon.entries()
    at = (datetime.now(UTC) + timedelta(seconds=2)).isoformat(timespec="seconds")
    made = daemon.post(
        "/v1/schedules", {"text": "say hello", "when": f"at {at}", "name": f"s{number}"}
    )
    schedule_id = made["schedule"]["schedule_id"]

    def walk() -> None:
        ours = ""
        for entry in entries:
            if entry["kind"] == "run.accepted" and entry["event"].get("schedule_id") == schedule_id:
                ours = entry["run_id"]
            elif entry["kind"] == "run.completed" and entry["run_id"] == ours:
                return

    return walk


DOOR = "door"
WALKS: dict[str, Callable[[Daemon, Program, int], Callable[[], None]]] = {
    DOOR: door,
    "message": message,
    "approval": approval,
    "channel": channel,
    "schedule": schedule,
}


def measure(root: Path, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return for each of these walks the files it enters every time, and how many functions of
    each.
    """
    program = Program()
    found: dict[str, dict[str, int]] = {}
    with running(root, program) as daemon:
        for name in names:
            prepare = WALKS[name]
            prepare(daemon, program, 0)()
            each = []
            for number in range(1, TIMES + 1):
                walk = prepare(daemon, program, number)
                daemon.entered()
                walk()
                each.append(daemon.entered())
            found[name] = dict(sorted(Counter(file for file, _ in set.intersection(*each)).items()))
    return found


def main() -> int:
    if sys.argv[1:2] == ["--traced"]:
        traced(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
        return 0
    parser = argparse.ArgumentParser(
        description=(
            "Count the files that a message, an approval, a channel message and a schedule enter."
        )
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).parent.parent,
        help="checkout to look at (default: this one)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with the files")
    parser.add_argument("--files", choices=[*WALKS, "all"], help="print the files of this walk")
    parser.add_argument("--only", choices=list(WALKS)[1:], help="do this walk alone")
    wanted = parser.parse_args()
    found = measure(wanted.root.resolve(), [DOOR, wanted.only] if wanted.only else list(WALKS))
    if wanted.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return 0
    for name, files in found.items():
        worked = {file for file, count in files.items() if count > 1}
        behind = len(worked - found[DOOR].keys())
        sys.stdout.write(
            f"{name:<10} {len(files):>4} files entered, {len(worked):>4} worked in, {behind:>4} of"
            " them behind the door\n"
        )
        if wanted.files in (name, "all"):
            sys.stdout.writelines(f"  {count:>3} {file}\n" for file, count in files.items())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
