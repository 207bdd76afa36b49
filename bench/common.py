"""Parts that the benchmarks share: a daemon and a fake provider as processes, a cheap HTTP client,
and /proc.
"""

import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.daemon import DaemonProcess, start

ROOT = Path(__file__).resolve().parent.parent
_TICK = os.sysconf("SC_CLK_TCK")

CONFIG = """
[models]
default = "fake/bench"
[providers.fake]
kind = "openai-chat"
base_url = "{url}"
models = ["bench"]
context_tokens = {window}
[limits]
requests_per_second = 1000000
streams = 10000
[log]
level = "warning"
"""


def machine() -> str:
    """The machine, for the reader of the figures."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    total = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    memory = int(total[1]) / 2**20 if total else 0
    name = model[1] if model else "unknown CPU"
    return (
        f"{os.cpu_count()} cores ({name}), {memory:.0f} GiB, Linux {platform.release()}, Python"
        f" {platform.python_version()}"
    )


@contextmanager
def fake_provider(every_ms: float = 0.0) -> Iterator[str]:
    """The provider's address; it spends next to nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fake_provider", "--every-ms", str(every_ms)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(10)


class Served(Protocol):
    """Facts that the load needs about a daemon, ours or the bare one."""

    @property
    def port(self) -> int: ...
    @property
    def pid(self) -> int: ...

    token: str


@dataclass
class Bare:
    port: int
    pid: int
    token: str = "none"


@contextmanager
def bare_server(folder: Path, url: str) -> Iterator[Bare]:
    """The yardstick: see `bench.bare_server`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare_server", url, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Bare(int(process.stdout.readline()), process.pid)
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def daemon_with(folder: Path, url: str, *, window: int = 128_000) -> Iterator[DaemonProcess]:
    with start(folder, config=CONFIG.format(url=url, window=window)) as daemon:
        for name in ("one.txt", "two.txt", "three.txt"):
            (daemon.workspace / name).write_text("hello\n")
        yield daemon


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def rss_mb(pid: int) -> float:
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


class Table(NamedTuple):
    """A few figures under a heading."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def text(self) -> str:
        lines = [
            "| " + " | ".join(row) + " |"
            for row in (self.columns, tuple("---" for _ in self.columns), *self.rows)
        ]
        return f"### {self.title}\n\n" + "\n".join(lines) + "\n"


class Client:
    """One keep-alive connection: requests, and server-sent events until the server ends them.
    Written to cost little.
    """

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        # Set when something has arrived on a stream.
        self.open = asyncio.Event()

    async def _send(self, method: str, path: str, body: bytes) -> asyncio.StreamReader:
        if self._writer is None or self._reader is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._port, limit=1 << 22
            )
        content = (
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            if method != "GET"
            else ""
        )
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{content}\r\n".encode() + body)
        return self._reader

    async def post(self, path: str, body: Any) -> Any:
        reader = await self._send("POST", path, json.dumps(body).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        at = head.lower().index(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        answer = await reader.readexactly(length)
        assert head.startswith((b"HTTP/1.1 2",)), (head, answer)
        return json.loads(answer)

    async def events(
        self,
        path: str,
        needle: bytes = b"",
        *,
        method: str = "GET",
        body: Any = None,
        until_seen: bool = False,
    ) -> float:
        """Read a stream to its end, or until `needle` is seen; returns the time (of `perf_counter`)
        at which it was.
        """
        reader = await self._send(
            method, path, b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.split(b"\r\n", 1)[0], head
        seen = 0.0
        while True:
            size = int(await reader.readuntil(b"\r\n"), 16)
            chunk = await reader.readexactly(size + 2)
            self.open.set()
            if needle and not seen and needle in chunk:
                seen = time.perf_counter()
                if until_seen:
                    return seen
            if size == 0:
                return seen

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
