"""Certificates that were made or put into use here, by the SHA-256 of each. A worker's is good
while its row says so.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.store.database import Tx

Purpose = Literal["authority", "server", "worker"]
_COLUMNS = "fingerprint, purpose, name, issued_ms, expires_ms, revoked_ms"


class Certificate(Struct, frozen=True, omit_defaults=True):
    fingerprint: str
    purpose: Purpose
    name: str
    issued_ms: int
    expires_ms: int
    revoked_ms: int = 0


def add(tx: Tx, certificate: Certificate) -> bool:
    """Return whether it is new."""
    if tx.one(
        "SELECT 1 FROM certificates WHERE fingerprint = :fingerprint",
        fingerprint=certificate.fingerprint,
    ):
        return False
    tx.run(
        """INSERT INTO certificates (fingerprint, purpose, name, issued_ms, expires_ms)
        VALUES (:fingerprint, :purpose, :name, :issued_ms, :expires_ms)""",
        fingerprint=certificate.fingerprint,
        purpose=certificate.purpose,
        name=certificate.name,
        issued_ms=certificate.issued_ms,
        expires_ms=certificate.expires_ms,
    )
    return True


def find(tx: Tx, fingerprint: str) -> Certificate | None:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM certificates WHERE fingerprint = :fingerprint",
        fingerprint=fingerprint,
    )
    return Certificate(*row) if row else None


def workers(tx: Tx) -> list[Certificate]:
    """Workers' certificates that have not expired, also revoked ones."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM certificates WHERE purpose = 'worker' AND expires_ms > :now ORDER"
        " BY issued_ms, fingerprint",
        now=tx.now_ms,
    )
    return [Certificate(*row) for row in rows]


def revoke(tx: Tx, fingerprint: str) -> tuple[Certificate, bool]:
    """The certificate, and whether it was good until now."""
    found = find(tx, fingerprint)
    if found is None or found.purpose != "worker":
        raise NotFound(
            f"no worker has a certificate {fingerprint[:64]}: see `palyra tls`",
            fingerprint=fingerprint[:64],
        )
    if found.revoked_ms:
        return found, False
    tx.run(
        "UPDATE certificates SET revoked_ms = :now WHERE fingerprint = :fingerprint",
        now=tx.now_ms,
        fingerprint=fingerprint,
    )
    return msgspec.structs.replace(found, revoked_ms=tx.now_ms), True
