"""The next certificate of a worker, by the link that it has: it asks with a new key, is answered,
and comes with it.

The rule: there is no moment at which a worker has nothing that opens the door. The next certificate
is durable here before it is sent, and with the worker before it is used; the one before is good
until somebody has come with the next.
"""

from hashlib import sha256

from palyra.core.errors import Conflict, Forbidden, LimitExceeded, Unauthenticated
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.tls import rows as tls_rows
from palyra.features.tls.rows import Certificate
from palyra.features.tls.service import Certificates, Issued
from palyra.features.workers import rows
from palyra.features.workers.rows import Renewal, WorkerRow
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

# Clocks do not run alike: who asks a little early is answered.
_EARLY_MS = 86_400_000
# Between two different requests: each is a signature and a row.
_BETWEEN_MS = 10 * 60_000


class Renewals:
    def __init__(self, db: Database, clock: Clock, certificates_: Certificates) -> None:
        self._db = db
        self._clock = clock
        self._certificates = certificates_

    def due_in_ms(self, row: WorkerRow) -> int | None:
        """When a third of its life is left."""
        info = self._certificates.find_worker(row.fingerprint)
        return max(0, _due_ms(info) - self._clock.now_ms()) if info is not None else None

    async def sign(self, name: str, fingerprint: str, request: str) -> str:
        """The next certificate for a worker that came with this one. The same request gets the same
        answer.
        """
        digest = sha256(request.encode()).hexdigest()
        now = self._clock.now_ms()
        before = await self._db.read(lambda tx: rows.find_renewal(tx, name))
        if before is not None and before.request == digest:
            return before.certificate
        if before is not None and before.asked_ms <= now < before.asked_ms + _BETWEEN_MS:
            raise LimitExceeded(
                "a certificate was asked for by another request a moment ago: ask again in ten"
                " minutes"
            )
        info = self._certificates.find_worker(fingerprint)
        if info is None or _due_ms(info) - _EARLY_MS > now:
            raise Conflict(
                "this certificate is good for a long time yet: it is renewed when a third of its"
                " life is left"
            )
        superseded: list[Certificate] = []

        def step(tx: Tx, issued: Issued) -> None:
            row, used = rows.get(tx, name), tls_rows.find(tx, fingerprint)
            if (
                row.state == "revoked"
                or row.fingerprint != fingerprint
                or used is None
                or used.revoked_ms
            ):
                raise Forbidden(f"{name} is not known by this certificate any more")
            other = rows.find_renewal(tx, name)
            if other is not None:
                superseded.append(tls_rows.revoke(tx, other.fingerprint)[0])
            rows.keep_renewal(
                tx, Renewal(name, issued.info.fingerprint, digest, issued.certificate, now)
            )

        issued = await self._certificates.issue_worker(f"worker:{name}", name, request, also=step)
        self._certificates.retire(*superseded)
        return issued.certificate

    async def confirm(self, fingerprint: str) -> WorkerRow:
        """A worker has come with its next certificate: from now on it is known by that, and by no
        other.
        """

        def step(tx: Tx) -> tuple[WorkerRow, list[Certificate]]:
            row = rows.by_fingerprint(tx, fingerprint)
            if row is None or row.state == "revoked":
                raise Unauthenticated(
                    "this certificate is no worker's of this daemon any more: enrol the worker anew"
                )
            if row.fingerprint == fingerprint:
                return row, []
            old, _ = tls_rows.revoke(tx, row.fingerprint)
            rows.renewed(tx, row.name, fingerprint)
            details = {"fingerprint": fingerprint, "replaced": row.fingerprint}
            event = AdminChanged(what="worker", action="renewed", subject=row.name, details=details)
            tape.append(tx, SYSTEM_TAPE, f"worker:{row.name}", [event])
            return rows.get(tx, row.name), [old]

        row, retired = await self._db.write(step)
        self._certificates.retire(*retired)
        return row


def _due_ms(info: Certificate) -> int:
    return info.expires_ms - (info.expires_ms - info.issued_ms) // 3
