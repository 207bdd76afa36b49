"""Ports for programs that open them themselves, some seconds after a test has chosen one."""

import secrets
import socket
from pathlib import Path

_LEAST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free() -> int:
    """One that nobody has, and that the kernel gives to nobody who connects somewhere meanwhile."""
    kernels = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 0
    while True:
        port = _LEAST + secrets.randbelow(kernels - _LEAST) if kernels > 2 * _LEAST else 0
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen: int = found.getsockname()[1]
            return chosen
