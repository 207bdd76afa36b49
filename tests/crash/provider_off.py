"""A provider that is switched off under a working daemon: messages come by every door meanwhile, and
the daemon is restarted.

    python -m tests.crash.provider_off --minutes 10

prints what came of it; `tests/crash/test_provider_off.py` does the same with short pauses. The daemon
and the provider are processes and sockets of their own, and time is real.
"""

import argparse
import hashlib
import hmac
import json
import re
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests import daemon as daemons
from tests.daemon import DaemonProcess

SECRET = "a secret of both sides"
PAUSE_S = 0.05
_PEOPLE = 5
_NUMBERED = re.compile(r"message \d+")
CONFIG = """[models]
default = "away/one"
[providers.away]
kind = "openai-chat"
base_url = "http://127.0.0.1:{provider}/v1"
models = ["one"]
[memory]
embeddings = false
[learning]
enabled = false
[limits]
requests_per_second = 100000
unavailable_s = 2
[waiting]
longest_pause_ms = {pause}
[channels.hook]
kind = "webhook"
direct = "allow"
settings = ["url=http://127.0.0.1:{other}/take", "secret=file:{secret}"]
"""


class Other(ThreadingHTTPServer):
    """A server of this story, on a port of its own that stays the same while it is off."""

    daemon_threads = True
    allow_reuse_address = True


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Provider:
    """A model server that answers `answer to X` to X, and whose port is closed while it is off."""

    def __init__(self) -> None:
        self.port = _free_port()
        self.answered: list[str] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        self._server: Other | None = None

    def on(self) -> None:
        provider = self

        class Handler(_Quiet):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                said = [each for each in asked["messages"] if each["role"] == "user"][-1]["content"]
                whole = said if isinstance(said, str) else said[-1]["text"]
                # A guest's message comes with words about the guest.
                text = _NUMBERED.findall(whole)[-1]
                with provider._lock:
                    provider.at_once += 1
                    provider.most_at_once = max(provider.at_once, provider.most_at_once)
                time.sleep(PAUSE_S)  # As a model takes its time.
                with provider._lock:
                    provider.at_once -= 1
                    provider.answered.append(text)
                self.tell(_chunks(f"answer to {text}"), "text/event-stream")

        self._server = _serve(self.port, Handler)

    def off(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None


class Chat:
    """The program on the other side of the webhook channel."""

    def __init__(self) -> None:
        self.port = _free_port()
        self.told: dict[str, tuple[str, str]] = {}
        chat = self

        class Handler(_Quiet):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if body["type"] == "message":
                    # The same key is the same message.
                    key = self.headers["idempotency-key"]
                    chat.told[key] = (body["conversation"], body["text"])
                self.tell(b'{"id": "n"}', "application/json")

        self._server = _serve(self.port, Handler)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def tell(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _serve(port: int, handler: type[_Quiet]) -> Other:
    server = Other(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def _chunks(text: str) -> bytes:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return (
            b"data: %b\n\n" % json.dumps({"id": "c", "model": "one", "choices": [choice]}).encode()
        )

    return chunk({"role": "assistant", "content": text}) + chunk({}, "stop") + b"data: [DONE]\n\n"


@dataclass
class Told:
    """What came of it, for a test to look at and for a person to read."""

    messages: int = 0
    off_s: float = 0
    back_s: float = 0
    runs: Counter[str] = field(default_factory=Counter)
    unanswered: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    told_to_send_again: list[str] = field(default_factory=list)
    in_chat: dict[str, int] = field(default_factory=dict)
    refusals: int = 0
    most_at_once: int = 0
    # Resident kilobytes of the last daemon, when the last message was in and just before the end.
    rss_kb: tuple[int, int] = (0, 0)


class Story:
    def __init__(self, folder: Path, *, longest_pause_ms: int) -> None:
        self.provider, self.chat = Provider(), Chat()
        secret = folder / "secret"
        secret.write_text(SECRET)
        self.config = CONFIG.format(
            provider=self.provider.port,
            other=self.chat.port,
            secret=secret,
            pause=longest_pause_ms,
        )
        self.folder = folder
        self.told = Told()
        self.daemon: DaemonProcess
        self._said: dict[str, list[str]] = {}
        self._chatted: dict[str, list[str]] = {}
        self._schedules: list[str] = []
        self._callers: list[threading.Thread] = []
        self._answers: dict[str, list[str]] = {}
        self._sent = 0
        self._over = threading.Event()

    @contextmanager
    def play(self) -> Iterator[None]:
        try:
            with daemons.start(self.folder, config=self.config) as self.daemon:
                self._sessions = [self.daemon.post("/v1/sessions")["session_id"] for _ in range(8)]
                yield
        finally:
            self._over.set()
            self.chat.close()

    def speak(self, many: int) -> None:
        """Say so many messages, by every door in turn."""
        for _ in range(many):
            number, self._sent = self._sent, self._sent + 1
            text = f"message {number}"
            match number % 5:
                case 0 | 1:
                    session_id = self._sessions[number % len(self._sessions)]
                    self.daemon.post(f"/v1/sessions/{session_id}/messages", {"text": text})
                    self._said.setdefault(session_id, []).append(text)
                case 2:
                    self._post(number, text)
                case 3:
                    made = self.daemon.post("/v1/schedules", {"text": text, "when": "every 24h"})[
                        "schedule"
                    ]
                    self.daemon.post(f"/v1/schedules/{made['schedule_id']}/run")
                    self._schedules.append(made["schedule_id"])
                case _:
                    caller = threading.Thread(target=self._call, args=(text,), daemon=True)
                    caller.start()
                    self._callers.append(caller)
        self.told.messages = self._sent

    def _post(self, number: int, text: str) -> None:
        # Each of the people in the chat says something again after every restart.
        who = number // 5 % _PEOPLE
        self._chatted.setdefault(f"c{who}", []).append(text)
        body = json.dumps(
            {
                "id": f"n{number}",
                "conversation": f"c{who}",
                "sender": {"id": f"p{who}"},
                "text": text,
                "direct": True,
            }
        ).encode()
        stamp = str(int(time.time()))
        digest = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        headers = {"x-palyra-timestamp": stamp, "x-palyra-signature": f"sha256={digest}"}
        taken = self.daemon.request(
            "POST", "/v1/channels/hook/hook", body, token="", headers=headers
        )
        assert taken.status == 202, taken.body

    def _call(self, text: str) -> None:
        """As a program does: it asks, and after a 503 it asks again when it was told to. Every other
        one names its request, so that it finds its run again.
        """
        keyed = int(text.rpartition(" ")[2]) % 2
        headers = {"Idempotency-Key": text.replace(" ", "-")} if keyed else {}
        body = {"model": "palyra", "messages": [{"role": "user", "content": text}]}
        while not self._over.is_set():
            wait_s = 0.2
            # While the daemon is restarted there is nobody to ask.
            with suppress(OSError, HTTPException, ValueError, KeyError):
                answer = self.daemon.request(
                    "POST", "/v1/chat/completions", body, headers=headers, timeout_s=60
                )
                if answer.status == 200:
                    content = answer.json["choices"][0]["message"]["content"]
                    self._answers.setdefault(text, []).append(content)
                    return
                if answer.status == 503:
                    self.told.refusals += 1
                    wait_s = float(answer.headers.get("retry-after", "0.2"))
            self._over.wait(wait_s)

    def restart(self, *, kill: bool) -> None:
        # What a person says twice in a row is one message; each of these is to be one of its own.
        self._wait(lambda: "held" not in self._in_chat(), 30)
        if kill:
            self.daemon.kill()
        else:
            self.daemon.stop()
        self.daemon.restart()

    def rss_kb(self) -> int:
        status = Path(f"/proc/{self.daemon.pid}/status").read_text()
        return int(
            next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        )

    def settle(self, seconds: float) -> None:
        """Wait until everything was answered, or the time is over."""
        self._wait(self._all_over, seconds)

    def _wait(self, holds: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not holds():
            time.sleep(0.2)  # Other processes: there is nothing to wait on but the clock.

    def _in_chat(self) -> dict[str, int]:
        """How many messages of the channel are in which state."""
        messages: dict[str, int] = self.daemon.get("/v1/channels")["channels"][0]["messages"]
        return messages

    def _all_over(self) -> bool:
        if any(caller.is_alive() for caller in self._callers):
            return False
        active = [
            session.get("active", "")
            for session in self.daemon.get("/v1/sessions?limit=500")["sessions"]
        ]
        return not any(active) and not self._missing_in_chat()

    def _missing_in_chat(self) -> list[str]:
        heard = Counter(text for _, text in self.chat.told.values())
        return [
            f"message {number}"
            for number in range(2, self._sent, 5)
            if not heard[f"answer to message {number}"]
        ]

    def look(self) -> Told:
        """What became of every message."""
        told = self.told
        told.most_at_once = self.provider.most_at_once
        for session in self.daemon.get("/v1/sessions?limit=500")["sessions"]:
            page = self.daemon.get(f"/v1/sessions/{session['session_id']}/entries?limit=1000")
            self._look_at(session["session_id"], page["entries"])
        told.in_chat = self._in_chat()
        answers = Counter(text for _, text in self.chat.told.values())
        for place, said in self._chatted.items():
            wanted = [f"answer to {text}" for text in said]
            heard = [
                text for where, text in self.chat.told.values() if where == place and text in wanted
            ]
            if list(dict.fromkeys(heard)) != wanted:
                told.out_of_order.append(f"{place}: {said} got {heard}")
        for number in range(2, self._sent, 5):
            self._count(f"message {number}", answers[f"answer to message {number}"])
        told.told_to_send_again += [
            text for _, text in self.chat.told.values() if "again" in text or "later" in text
        ]
        for number in range(4, self._sent, 5):
            self._count(f"message {number}", len(self._answers.get(f"message {number}", [])))
        return told

    def _look_at(self, session_id: str, entries: list[dict[str, Any]]) -> None:
        done = [each["event"]["text"] for each in entries if each["kind"] == "run.completed"]
        for entry in entries:
            if entry["kind"] in ("run.completed", "run.failed", "run.cancelled"):
                self.told.runs[entry["kind"]] += 1
            if entry["kind"] == "run.failed":
                self.told.told_to_send_again.append(entry["event"]["message"])
        said = self._said.get(session_id, [])
        if said and done != [f"answer to {text}" for text in said]:
            self.told.out_of_order.append(f"{session_id}: {said} got {done}")
        asked = [each["event"]["text"] for each in entries if each["kind"] == "input.received"]
        for text in asked:
            number = int(text.rpartition(" ")[2])
            if number % 5 in (0, 1, 3):
                self._count(text, done.count(f"answer to {text}"))

    def _count(self, text: str, times: int) -> None:
        if times == 0:
            self.told.unanswered.append(text)
        elif times > 1:
            self.told.twice.append(text)


def tell(folder: Path, *, off_s: float, longest_pause_ms: int, messages: int = 100) -> Told:
    """The whole story: off, messages and three restarts, on again, everything answered."""
    story = Story(folder, longest_pause_ms=longest_pause_ms)
    with story.play():
        began = time.monotonic()
        part = off_s / 5
        quarter = messages // 4
        for kill in (False, True, False):
            story.speak(quarter)
            time.sleep(part)
            story.restart(kill=kill)
        story.speak(messages - 3 * quarter)
        time.sleep(part)
        before = story.rss_kb()
        time.sleep(max(0.0, off_s - (time.monotonic() - began)))
        story.told.rss_kb = (before, story.rss_kb())
        story.told.off_s = time.monotonic() - began
        story.provider.on()
        back = time.monotonic()
        try:
            story.settle(longest_pause_ms / 1000 + 120)
            story.told.back_s = time.monotonic() - back
            return story.look()
        finally:
            story.provider.off()


def main() -> None:
    parser = argparse.ArgumentParser(description="Switch the provider off under 100 messages.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--longest-pause-ms", type=int, default=120_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="provider-off-") as folder:
        print(
            tell(
                Path(folder),
                off_s=given.minutes * 60,
                longest_pause_ms=given.longest_pause_ms,
            )
        )


if __name__ == "__main__":
    main()
