"""Sockets to listen on. A port that is taken is an error that names who has it; who may be let in,
`exposure` decides.

Certificates with their keys, as files have them. Loads no X.509 library: a daemon whose
certificate is good starts without.
"""

import errno
import os
import socket
import ssl
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from palyra.api import exposure
from palyra.core.errors import ConfigInvalid, Conflict

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"


class Pair(Struct, frozen=True):
    """A certificate (with those that lead to the authority) and its private key, both PEM. The key
    is empty if others keep it.
    """

    certificate: bytes
    key: bytes = b""

    @property
    def together(self) -> bytes:
        """Return the pair as one file, which is there whole or not at all."""
        return self.key + self.certificate


class CertificateFacts(Struct, frozen=True, kw_only=True):
    """Facts about a certificate. `fingerprint` is the SHA-256 of its DER form, by which everybody
    can compare it.
    """

    fingerprint: str
    subject: str
    issuer: str
    names: tuple[str, ...]
    begins_ms: int
    expires_ms: int


def split(path: Path) -> Pair | None:
    """A key and its certificates from one file, or None if there is none that can be read as
    that.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    key, found, rest = text.partition(_BEGIN)
    return Pair(_BEGIN + rest, key) if found and b"PRIVATE KEY" in key else None


def first(chain: bytes) -> bytes:
    """The certificate that the key belongs to, alone."""
    return chain[: chain.index(_END) + len(_END)] + b"\n"


def fingerprint_of(certificate: bytes) -> str:
    """Return the fingerprint of PEM or DER; empty if it is neither."""
    if certificate.startswith(b"-----"):
        try:
            certificate = ssl.PEM_cert_to_DER_cert(certificate.decode("ascii"))
        except ValueError:
            return ""
    return sha256(certificate).hexdigest()


BACKLOG = 1_024
# States in /proc/net.
_LISTENING = "0A"
_UNCONNECTED = "07"


def bind(host: str, port: int, *, tls: bool = False, setting: str = "--port") -> socket.socket:
    """A listening socket, or an error that says what to do; `setting` is where the port was
    chosen.
    """
    listener = _bound(host, port, socket.SOCK_STREAM, setting, tls=tls)
    listener.listen(BACKLOG)
    return listener


def bind_udp(host: str, port: int) -> socket.socket:
    """A socket for QUIC, which always has TLS."""
    return _bound(host, port, socket.SOCK_DGRAM, "server.quic_port", tls=True)


def _bound(
    host: str, port: int, kind: socket.SocketKind, setting: str, *, tls: bool
) -> socket.socket:
    address = exposure.address_of(host, tls=tls)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise _explained(error, host, port, kind, setting) from error
    return bound


def _explained(
    error: OSError, host: str, port: int, kind: socket.SocketKind, setting: str
) -> Exception:
    udp = kind == socket.SOCK_DGRAM
    if error.errno == errno.EADDRINUSE:
        holder = holder_of(port, udp=udp)
        who = f"{holder[1]} (process {holder[0]})" if holder else "another process"
        return Conflict(
            f"{'UDP ' if udp else ''}port {port} on {host} is taken by {who}: stop it, or choose"
            f" another with {setting} (0 picks a free one)",
            port=port,
            pid=holder[0] if holder else 0,
        )
    if error.errno == errno.EACCES:
        return ConfigInvalid(
            f"port {port} may not be used by this user: choose one above 1023 with {setting}",
            port=port,
        )
    return ConfigInvalid(
        f"the daemon cannot listen on {host} port {port}: {error.strerror}", port=port
    )


def holder_of(port: int, *, udp: bool = False) -> tuple[int, str] | None:
    """The process that listens on a port, as (pid, name). None if that cannot be seen from here."""
    inodes = _listening_inodes(port, udp=udp)
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
    """Return the command line of a process, as far as it is useful to somebody who looks for it."""
    words = (process / "cmdline").read_bytes().split(b"\0")
    return (
        b" ".join(words).decode("utf-8", "replace").strip()[:80]
        or (process / "comm").read_text().strip()
    )


def _listening_inodes(port: int, *, udp: bool) -> set[str]:
    found = set()
    wanted = _UNCONNECTED if udp else _LISTENING
    for table in ("udp", "udp6") if udp else ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == wanted and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found
