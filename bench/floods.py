"""Floods against every door of a real daemon: how long `/healthz` is silent at most, and how much
memory they cost.

The target: never silent for 0.5 s, never more than 64 MB.
"""

import http.client
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.daemon import DaemonProcess, start
from tests.ports import free

from bench.common import ROOT, Table, rss_mb

SECONDS = float(os.environ.get("PALYRA_FLOOD_SECONDS", "4"))
SILENCE_S, GROWTH_MB = 0.5, 64.0

# Door, what is sent, and the flood.
_FLOODS = (
    ("HTTP/1.1", "pipelined requests", "pipelining"),
    ("HTTP/1.1", "body in chunks of one byte, no token", "tiny_chunks"),
    ("HTTP/1.1", "500 × 60 KB of headers that never end", "huge_headers"),
    ("HTTP/1.1", "500 slow bodies of 50 KB, no token", "slow_bodies"),
    ("HTTP/1.1", "1,500 silent connections", "silent"),
    ("WebSocket", "empty continuation frames", "ws_empty"),
    ("WebSocket", "fragments of one byte", "ws_fragments"),
    ("WebSocket", "pings, answers not read", "ws_pings"),
    ("WebSocket", "messages", "ws_messages"),
    ("gRPC", "calls that are reset at once", "h2_resets"),
    ("gRPC", "calls without a token", "h2_calls"),
    ("gRPC", "pings, answers not read", "h2_pings"),
    ("gRPC", "SETTINGS, answers not read", "h2_settings"),
    ("gRPC", "empty DATA frames", "h2_empty_data"),
    ("gRPC", "empty CONTINUATION frames", "h2_continuations"),
    ("gRPC", "1,500 silent connections", "silent"),
    ("HTTP/3", "first packets with forged tokens", "quic_junk"),
    ("HTTP/3", "datagrams of 60 KB", "quic_large"),
    ("HTTP/3", "requests that are reset at once", "h3_resets"),
    ("HTTP/3", "empty DATA frames", "h3_empty_frames"),
    ("HTTPS", "half-open TLS handshakes", "half_tls"),
    ("workers", "half-open TLS handshakes", "half_tls"),
    ("workers", "smallest messages, no certificate", "worker_messages"),
)


def tables() -> Iterator[Table]:
    rows = [_row(door, what, name) for door, what, name in _FLOODS]
    yield Table(
        f"Floods of {SECONDS:g} s against each door (target: silent for less than {SILENCE_S} s,"
        f" below +{GROWTH_MB:g} MB)",
        ("door", "flood", "longest silence of /healthz", "memory", "within target"),
        rows,
    )


def _row(door: str, what: str, name: str) -> tuple[str, ...]:
    silence, growth = measured(door, name)
    good = silence < SILENCE_S and growth < GROWTH_MB
    return door, what, f"{silence * 1000:.0f} ms", f"{growth:+.0f} MB", "yes" if good else "NO"


def measured(door: str, name: str, seconds: float = SECONDS) -> tuple[float, float]:
    """The longest silence and the most memory beyond what there was, in a daemon of its own."""
    grpc, quic, workers = free(), free(), free()
    tls = "[server.tls]\nenabled = true\n" if door == "HTTPS" else ""
    config = (
        f"[server]\ngrpc = true\ngrpc_port = {grpc}\nquic = true\nquic_port = {quic}\n{tls}"
        f'[workers]\nlisten = "127.0.0.1:{workers}"\n[memory]\nembeddings = false\n'
    )
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        start(Path(folder), config=config) as daemon,
    ):
        port = {"gRPC": grpc, "HTTP/3": quic, "workers": workers}.get(door, daemon.port)
        if tls:
            return _flooded(daemon, port, name, seconds, trust=str(daemon.home / "tls" / "ca.pem"))
        return _flooded(daemon, port, name, seconds, str(daemon.post("/v1/sessions")["session_id"]))


def _flooded(
    daemon: DaemonProcess, port: int, name: str, seconds: float, session: str = "", trust: str = ""
) -> tuple[float, float]:
    probe = _Probe(daemon.port, daemon.pid, trust)
    probe.start()
    try:
        command = [
            sys.executable,
            "-m",
            "bench.flooding",
            name,
            str(port),
            str(seconds),
            daemon.token,
            session,
        ]
        subprocess.run(
            command, cwd=ROOT, timeout=seconds + 60, check=False, stderr=subprocess.DEVNULL
        )
        time.sleep(0.5)
    finally:
        probe.ended.set()
        probe.join(30)
    return probe.longest, probe.highest - probe.before


class _Probe(threading.Thread):
    """Probe that asks for `/healthz` again and again, on one connection, and notes how long it is
    without an answer.
    """

    def __init__(self, port: int, pid: int, trust: str) -> None:
        super().__init__()
        self._port, self._pid, self._trust = port, pid, trust
        self.ended = threading.Event()
        self.longest = 0.0
        self.before = self.highest = rss_mb(pid)

    def run(self) -> None:
        connection = self._connection()
        last = time.monotonic()
        while not self.ended.wait(0.02):
            try:
                connection.request("GET", "/healthz")
                if connection.getresponse().read():
                    now = time.monotonic()
                    self.longest, last = max(self.longest, now - last), now
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = self._connection()
            self.longest = max(self.longest, time.monotonic() - last)
            self.highest = max(self.highest, rss_mb(self._pid))

    def _connection(self) -> http.client.HTTPConnection:
        if not self._trust:
            return http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        context = ssl.create_default_context(cafile=self._trust)
        return http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=context)
