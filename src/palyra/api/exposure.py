"""Reach of the daemon: this machine alone, or others. Others need TLS and a token that somebody
made for them.

What the daemon is called is decided here once: the same names stand in its certificate and are
accepted as Host headers.
"""

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import ConfigInvalid
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.store import listen_addresses, tape
from palyra.store.database import Database, Tx

_LOCAL = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = frozenset({"0.0.0.0", "::"})
_GET_ADDRESS = 0x8915


class Exposure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of what others can reach, as the owner chose it. Ports are not part of it: they may
    be another at every start.
    """

    host: str = "127.0.0.1"
    tls: bool = False
    own_files: bool = False
    quic: bool = False
    grpc: bool = False
    # Where workers come in, by certificates of their own.
    workers: str = ""
    names: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()

    @property
    def beyond(self) -> bool:
        return not is_loopback(self.host)


class ListenerSettings(Struct, frozen=True, kw_only=True):
    """Settings of listeners that open, close and move while the daemon runs."""

    exposure: Exposure = Exposure()
    quic_port: int = 0
    grpc_port: int = 0
    workers_quic: bool = False


class Listener(Struct, frozen=True):
    """One door: what it speaks, and where programs on this machine find it."""

    name: Literal["http", "http3", "grpc", "workers"]
    address: str
    tls: bool = False


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(host: str, *, tls: bool) -> str:
    """The address to bind, or ConfigInvalid that says what is missing."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ConfigInvalid(
            f"server.host is {host!r}, which is no address: write one of this machine, 0.0.0.0 for"
            " all of them, or 127.0.0.1; names by which others call it go into server.tls.names",
            key="server.host",
        ) from None
    if not address.is_loopback and not tls:
        raise ConfigInvalid(
            f"server.host is {host}, so other machines could read every word: turn TLS on with"
            ' `palyra config set server.tls.enabled true`, or keep server.host = "127.0.0.1" and'
            " let something with TLS (a reverse proxy, an ssh tunnel) forward to it; a proxy's"
            " name goes into server.allowed_hosts",
            key="server.tls.enabled",
        )
    return host


def check_tokens(exposure: Exposure, *, others: bool) -> None:
    """`others`: somebody made a token, beside the one that the command line here has by itself."""
    if exposure.beyond and not others:
        raise ConfigInvalid(
            f"server.host is {exposure.host}, but no token was made for anybody: start the daemon"
            " on this machine alone with `PALYRA_SERVER__HOST=127.0.0.1 palyra up --detach`, make"
            " one with `palyra token create NAME --scope operator`, end it with `palyra stop"
            " --daemon`, and start it again",
            key="server.host",
        )


def names_of(host: str, given: Sequence[str]) -> tuple[str, ...]:
    """Every name and address by which the daemon is called: this machine's own, and what the owner
    added.
    """
    found = list(given)
    if host in _EVERYWHERE:
        found += [socket.gethostname(), *_addresses(with_6=host == "::")]
    elif not is_loopback(host):
        found.append(host)
    return tuple(dict.fromkeys(name.lower() for name in (*found, *_LOCAL) if name))


def called(host: str) -> str:
    """The address that programs on this machine use."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


async def record(db: Database, exposure: Exposure) -> None:
    """Record the exposure on the tape, if it is another than when the daemon last ran."""
    wire = msgspec.json.encode(exposure).decode()
    event = AdminChanged(
        what="listening",
        action="changed",
        subject=exposure.host,
        details=msgspec.to_builtins(exposure),
    )
    before = await db.read(listen_addresses.told)
    if wire == before or (not before and exposure == Exposure()):
        return

    def step(tx: Tx) -> None:
        listen_addresses.tell(tx, wire)
        tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])

    await db.write(step)


def _addresses(*, with_6: bool) -> list[str]:
    """This machine's addresses that others can use."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asking, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # It has none.
            found.append(socket.inet_ntoa(answer[20:24]))
    if with_6:
        try:
            lines = Path("/proc/net/if_inet6").read_text().splitlines()
        except OSError:
            lines = []
        found += [str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines]
    return [each for each in found if not ipaddress.ip_address(each).is_link_local]
