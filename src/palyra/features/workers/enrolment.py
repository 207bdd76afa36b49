"""Enrolment of workers: the owner gives a one-time code, a machine redeems it for a certificate,
the owner revokes it.

Codes are kept as digests, are good once and for a while; whoever tries wrong ones is locked out.

Renewal of a worker's certificate, by the link that it has: it asks with a new key, is answered, and
comes with it.

The rule: there is no moment at which a worker has nothing that opens the door. The next certificate
is durable here before it is sent, and with the worker before it is used; the one before is good
until somebody has come with the next.
"""

import re
import secrets
from hashlib import sha256

from msgspec import Struct

from palyra.api.listen_sockets import fingerprint_of
from palyra.core.errors import Conflict, Forbidden, InvalidInput, LimitExceeded, Unauthenticated
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.signals import Signal
from palyra.core.tools import Tier
from palyra.features.tls import rows as tls_rows
from palyra.features.tls.model import Issued
from palyra.features.tls.rows import Certificate
from palyra.features.tls.service import Certificates
from palyra.features.workers import rows
from palyra.features.workers.presence import Presence, WorkerRefusalLog
from palyra.features.workers.protocol import NAME_PATTERN
from palyra.features.workers.rows import Lease, Renewal, WorkerRow
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
        """Return when a third of its life is left."""
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
                    "this certificate belongs to no worker of this daemon any more: enrol it again"
                )
            if row.fingerprint == fingerprint:
                return row, []
            old, _ = tls_rows.revoke(tx, row.fingerprint)
            details = {"fingerprint": fingerprint, "replaced": row.fingerprint}
            event = AdminChanged(what="worker", action="renewed", subject=row.name, details=details)
            (entry,) = tape.append(tx, SYSTEM_TAPE, f"worker:{row.name}", [event])
            rows.renewed(tx, row.name, fingerprint, entry.position)
            return rows.get(tx, row.name), [old]

        row, retired = await self._db.write(step)
        self._certificates.retire(*retired)
        return row


def _due_ms(info: Certificate) -> int:
    return info.expires_ms - (info.expires_ms - info.issued_ms) // 3


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 16
LIFE_MS = 15 * 60_000
MOST_CODES = 100
MOST_WRONG = 5
LOCK_MS = 15 * 60_000
_MOST_GUESSERS = 10_000
_RECENT = 50
_NAME = re.compile(NAME_PATTERN.replace("$", r"\Z"))
_LOOKALIKES = str.maketrans({"O": "0", "I": "1", "L": "1", "-": "", " ": ""})


class Enrolment(Struct, frozen=True, kw_only=True):
    """Code that the owner carries to the other machine. `authority` is how it knows that it talks
    to this daemon.
    """

    name: str
    code: str
    expires_ms: int
    authority: str
    port: int


class RunningCall(Struct, frozen=True):
    call_id: str
    attempt: int
    tool: str
    session_id: str
    run_id: str
    since_ms: int


class WorkerShown(Struct, frozen=True, kw_only=True):
    """A worker as its owner sees it, with what runs there now."""

    name: str
    state: str
    connected: bool
    address: str
    version: str
    platform: str
    tier: Tier
    tools: tuple[str, ...]
    slots: int
    running: tuple[RunningCall, ...]
    enrolled_ms: int
    seen_ms: int
    revoked_ms: int
    fingerprint: str
    certificate_expires_ms: int = 0


class WorkerDetail(Struct, frozen=True):
    worker: WorkerShown
    recent: tuple[Lease, ...]


class Redeemed(Struct, frozen=True):
    name: str
    certificate: str


class EnrolmentService:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        certificates: Certificates,
        presence: Presence,
        refusals: WorkerRefusalLog,
        renewals: Renewals,
    ) -> None:
        self._db = db
        self._clock = clock
        self._certificates = certificates
        self._presence = presence
        self._refusals = refusals
        self._renewals = renewals
        self._wrong: dict[str, tuple[int, int]] = {}
        # Where workers connect; 0 while nothing listens for them.
        self.port = 0
        # Told of a worker that was admitted or is none any more.
        self.on_change = Signal[[WorkerRow]]("a changed enrolment")

    async def enrol(self, by: str, name: str) -> Enrolment:
        """A code by which one machine becomes the worker of this name."""
        if not _NAME.match(name):
            raise InvalidInput(
                "a worker's name has 1 to 32 small letters, digits and dashes, such as attic or"
                " build-2"
            )
        if not self.port:
            raise Conflict(
                "no worker can connect, because nothing listens for them: `palyra config set"
                " workers.listen 0.0.0.0:7445`, then restart the daemon"
            )
        code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
        expires_ms = self._clock.now_ms() + LIFE_MS

        def step(tx: Tx) -> None:
            known = rows.find(tx, name)
            if known is not None and known.state != "revoked":
                raise Conflict(
                    f"there is a worker {name} already: revoke it first, or choose another name"
                )
            if rows.codes(tx) >= MOST_CODES:
                raise LimitExceeded(
                    f"{MOST_CODES} codes wait to be used: use one, or wait a quarter of an hour"
                )
            (entry,) = tape.append(
                tx, SYSTEM_TAPE, by, [AdminChanged(what="worker", action="invited", subject=name)]
            )
            rows.add_code(tx, _digest(code), name, expires_ms, entry.position)

        await self._db.write(step)
        authority = fingerprint_of(await self._certificates.trust())
        shown = "-".join(code[at : at + 4] for at in range(0, LENGTH, 4))
        return Enrolment(
            name=name, code=shown, expires_ms=expires_ms, authority=authority, port=self.port
        )

    async def drain(self, by: str, name: str, *, on: bool) -> WorkerShown:
        """Give it nothing new; what runs there ends by itself. Or use it again."""

        def step(tx: Tx) -> WorkerRow:
            row = self._usable(tx, name)
            wanted = "draining" if on else "enrolled"
            if row.state != wanted:
                (entry,) = tape.append(
                    tx,
                    SYSTEM_TAPE,
                    by,
                    [AdminChanged(what="worker", action="drained" if on else "used", subject=name)],
                )
                rows.set_state(tx, name, "draining" if on else "enrolled", entry.position)
            return rows.get(tx, name)

        row = await self._db.write(step)
        self._presence.drain(name, on=on)
        return self._shown(row)

    async def revoke(self, by: str, name: str) -> WorkerShown:
        """Revoke a worker: its certificate is no longer good, its link is cut, what it held is in
        doubt.
        """

        def step(tx: Tx) -> WorkerRow:
            row = rows.get(tx, name)
            if row.state != "revoked":
                (entry,) = tape.append(
                    tx,
                    SYSTEM_TAPE,
                    by,
                    [AdminChanged(what="worker", action="revoked", subject=name)],
                )
                rows.set_state(tx, name, "revoked", entry.position)
                rows.drop_codes(tx, name)
            return rows.get(tx, name)

        row = await self._db.write(step)
        self.on_change.send(row)
        await self._presence.drop(name)
        await self._certificates.revoke_worker(by, row.fingerprint)
        return self._shown(row)

    async def listing(self) -> list[WorkerShown]:
        return [self._shown(row) for row in await self._db.read(rows.listing)]

    async def one(self, name: str) -> WorkerDetail:
        row, recent = await self._db.read(
            lambda tx: (rows.get(tx, name), rows.recent(tx, name, _RECENT))
        )
        return WorkerDetail(self._shown(row), tuple(recent))

    async def redeem(self, code: str, request: str, address: str) -> Redeemed:
        """A certificate for a code, which is then used up."""
        self._locked(address)
        try:
            digest = _digest(_normal(code))
        except InvalidInput as error:
            raise self._wrong_code(address, error.message) from None
        name = await self._db.write(lambda tx: rows.use_code(tx, digest))
        if not name:
            raise self._wrong_code(
                address, "this code is not good: it may be mistyped, used already or too old"
            )
        self._wrong.pop(address, None)
        issued = await self._certificates.issue_worker(f"worker:{name}", name, request)

        def step(tx: Tx) -> WorkerRow:
            details = {"address": address, "fingerprint": issued.info.fingerprint}
            event = AdminChanged(what="worker", action="enrolled", subject=name, details=details)
            (entry,) = tape.append(tx, SYSTEM_TAPE, f"worker:{name}", [event])
            rows.admit(tx, name, issued.info.fingerprint, entry.position)
            return rows.get(tx, name)

        self.on_change.send(await self._db.write(step))
        return Redeemed(name, issued.certificate)

    async def known(self, certificate: bytes, address: str) -> WorkerRow:
        """Return whose certificate this is, or Unauthenticated, which is recorded."""
        try:
            info = self._certificates.worker(certificate)
        except Unauthenticated as error:
            revoked = "revoked" in error.message
            self._refusals.note(
                "revoked" if revoked else "certificate", address=address, detail=error.message
            )
            raise
        row = await self._db.read(lambda tx: rows.by_fingerprint(tx, info.fingerprint))
        if row is None or row.state == "revoked":
            self._refusals.note("revoked", worker=info.name, address=address)
            raise Unauthenticated(
                f"{info.name} is no worker of this daemon any more: enrol it again, if it is still"
                " yours"
            )
        return (
            row
            if row.fingerprint == info.fingerprint
            else await self._renewals.confirm(info.fingerprint)
        )

    def _locked(self, address: str) -> None:
        count, until = self._wrong.get(address, (0, 0))
        if count >= MOST_WRONG and until > self._clock.elapsed_ms():
            raise LimitExceeded(
                "too many wrong codes from this address: try again in a quarter of an hour, with a"
                " new one"
            )

    def _wrong_code(self, address: str, message: str) -> Unauthenticated:
        now = self._clock.elapsed_ms()
        if len(self._wrong) >= _MOST_GUESSERS:
            self._wrong = {key: value for key, value in self._wrong.items() if value[1] > now}
        count, until = self._wrong.get(address, (0, 0))
        self._wrong[address] = (count + 1 if until > now else 1, now + LOCK_MS)
        self._refusals.note("code", address=address)
        return Unauthenticated(
            f"{message}; `palyra workers enrol NAME` on the daemon's machine makes a new one"
        )

    def _usable(self, tx: Tx, name: str) -> WorkerRow:
        row = rows.get(tx, name)
        if row.state == "revoked":
            raise Conflict(f"the worker {name} is revoked: enrol it again")
        return row

    def _shown(self, row: WorkerRow) -> WorkerShown:
        station = self._presence.stations.get(row.name)
        link = station.link if station else None
        held = sorted(station.held.values(), key=lambda each: each.since_ms) if station else []
        info = self._certificates.find_worker(row.fingerprint)
        return WorkerShown(
            name=row.name,
            state=row.state,
            connected=link is not None,
            address=link.address if link else "",
            version=row.version,
            platform=row.platform,
            tier=row.tier,
            tools=row.tools,
            slots=row.slots,
            running=tuple(
                RunningCall(
                    each.call_id,
                    each.attempt,
                    each.tool,
                    each.session_id,
                    each.run_id,
                    each.since_ms,
                )
                for each in held
            ),
            enrolled_ms=row.enrolled_ms,
            seen_ms=self._clock.now_ms() if link else row.seen_ms,
            revoked_ms=row.revoked_ms,
            fingerprint=row.fingerprint,
            certificate_expires_ms=info.expires_ms if info else 0,
        )


def _normal(code: str) -> str:
    found = code.strip().upper().translate(_LOOKALIKES)
    if len(found) != LENGTH or any(char not in ALPHABET for char in found):
        raise InvalidInput(f"a code has {LENGTH} letters and digits, as ABCD-EFGH-2345-6789")
    return found


def _digest(code: str) -> bytes:
    return sha256(f"palyra worker {code}".encode()).digest()
