"""Written by scripts/clients.py from the route table: types of the verbs about tls."""

from typing import Literal

from msgspec import Struct

__all__ = ["Certificate", "Exposure", "Listener", "Listening", "Shown"]


class Exposure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of what others can reach, as the owner chose it. Ports are not part of it: they may
    be another at every start.
    """

    host: str = "127.0.0.1"
    tls: bool = False
    own_files: bool = False
    quic: bool = False
    grpc: bool = False
    workers: str = ""
    names: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


class Listener(Struct, frozen=True, kw_only=True):
    """One door: what it speaks, and where programs on this machine find it."""

    name: Literal["grpc", "http", "http3", "workers"]
    address: str
    tls: bool = False


class Shown(Struct, frozen=True, kw_only=True):
    """`own`: signed by the daemon's own authority, which other machines have to be told to
    trust.
    """

    fingerprint: str
    subject: str
    issuer: str
    names: tuple[str, ...]
    begins_ms: int
    expires_ms: int
    own: bool


class Certificate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    fingerprint: str
    purpose: Literal["authority", "server", "worker"]
    name: str
    issued_ms: int
    expires_ms: int
    revoked_ms: int = 0


class Listening(Struct, frozen=True, kw_only=True):
    """`served` is what is shown to who connects; `authority` is our own, once it was needed;
    `workers` have one each.
    """

    exposure: Exposure
    listeners: list[Listener]
    served: Shown | None
    authority: Shown | None
    workers: list[Certificate]
