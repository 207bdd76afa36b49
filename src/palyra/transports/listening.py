"""Where the daemon listens: on loopback, on a port of its own. A port that is taken is an error that names who has it."""

import errno
import ipaddress
import os
import socket
from pathlib import Path

from palyra.domain.errors import ConfigInvalid, Conflict

BACKLOG = 1_024
_LISTEN_STATE = "0A"


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says what to do."""
    address = _loopback(host)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _explained(error, host, port) from error
    return listener


def _loopback(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        if ipaddress.ip_address(host).is_loopback:
            return host
    except ValueError:
        pass
    raise ConfigInvalid(
        f"server.host is {host!r}, but the daemon listens on loopback only, because it has no TLS of its own: keep "
        'server.host = "127.0.0.1" and let something with TLS (a reverse proxy, an ssh tunnel) forward to it; a proxy\'s name '
        "goes into server.allowed_hosts",
        key="server.host",
    )


def _explained(error: OSError, host: str, port: int) -> Exception:
    if error.errno == errno.EADDRINUSE:
        holder = holder_of(port)
        who = f"{holder[1]} (process {holder[0]})" if holder else "another process"
        return Conflict(
            f"port {port} on {host} is taken by {who}: stop it, or choose another with --port (0 picks a free one)",
            port=port,
            pid=holder[0] if holder else 0,
        )
    if error.errno == errno.EACCES:
        return ConfigInvalid(f"port {port} may not be used by this user: choose one above 1023 in server.http_port", port=port)
    return ConfigInvalid(f"the daemon cannot listen on {host} port {port}: {error.strerror}", port=port)


def holder_of(port: int) -> tuple[int, str] | None:
    """The process that listens on a port, as (pid, name). None if that cannot be seen from here."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = [os.readlink(descriptor) for descriptor in os.scandir(process / "fd")]
            if wanted.intersection(links):
                return int(process.name), _name(process)
        except OSError:
            continue  # It ended, or belongs to someone else.
    return None


def _name(process: Path) -> str:
    """Its command line, as far as that is useful to somebody who looks for it."""
    words = (process / "cmdline").read_bytes().split(b"\0")
    return b" ".join(words).decode("utf-8", "replace").strip()[:80] or (process / "comm").read_text().strip()


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN_STATE and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found
