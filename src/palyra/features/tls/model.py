"""Certificates as settings name them and as they are shown."""

from msgspec import Struct

from palyra.features.tls.rows import Certificate


class CertificateSettings(Struct, frozen=True):
    """`own`: files that the operator brings, instead of what the daemon's authority signs."""

    own: "OwnFiles | None" = None


class OwnFiles(Struct, frozen=True):
    """A certificate (with its chain) and key that the operator brings, as paths of PEM files."""

    certificate: str
    key: str


class Issued(Struct, frozen=True):
    """Certificate of a worker. `key` is empty if it made its own."""

    info: Certificate
    certificate: str
    key: str
    authority: str


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
