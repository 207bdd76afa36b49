"""Certificates with their keys, as files have them. Loads no X.509 library: a daemon whose
certificate is good starts without.
"""

import ssl
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

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
        """As one file, which is there whole or not at all."""
        return self.key + self.certificate


class CertificateFacts(Struct, frozen=True, kw_only=True):
    """What a certificate says. `fingerprint` is the SHA-256 of its DER form, by which everybody can
    compare it.
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
    """Of PEM or DER; empty if it is neither."""
    if certificate.startswith(b"-----"):
        try:
            certificate = ssl.PEM_cert_to_DER_cert(certificate.decode("ascii"))
        except ValueError:
            return ""
    return sha256(certificate).hexdigest()
