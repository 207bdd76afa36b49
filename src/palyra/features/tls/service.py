"""The daemon's certificates: its own authority, made when it is first needed; what it is served
with; what workers get.

Keys lie in files that only the daemon's user can read; which certificates there are, and which were
revoked, is in the journal. A server's certificate is renewed before it runs out. The operator's own
files take the place of ours where they are named.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from palyra.api.listen_sockets import CertificateFacts, Pair, fingerprint_of, first, split
from palyra.core.errors import ConfigInvalid, InvalidInput, PalyraError, Unauthenticated
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE, check_principal
from palyra.core.signals import Signal
from palyra.features.health.doctor import DoctorCheck
from palyra.features.tls import rows
from palyra.features.tls.model import Issued, OwnFiles, Shown
from palyra.features.tls.rows import Certificate, Purpose
from palyra.features.workers import rows as workers_rows
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday

DAY_MS = 24 * 3_600_000
RENEW_BEFORE_MS = 30 * DAY_MS
_AGAIN_MS = DAY_MS
_SOON_DAYS = 14

log = logging.getLogger("palyra.tls")


class Certificates:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        folder: Path,
        keep: Callable[[Path, bytes], None],
        *,
        own: OwnFiles | None,
        label: str,
    ) -> None:
        self._db = db
        self._clock = clock
        self._folder = folder
        self._keep = keep
        self._own = own
        self._label = label
        self._workers: dict[str, Certificate] = {}
        self._names: tuple[str, ...] = ()
        self._serving: Pair | None = None
        self._one_at_a_time = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        # Told the new pair, so that listeners use it from the next connection on.
        self.on_renewed = Signal[[Pair]]("a renewed certificate")
        # Told the certificate that is no longer good, so that what was opened with it is closed.
        self.on_revoked = Signal[[Certificate]]("a revoked certificate")

    async def open(self) -> None:
        self._workers = {each.fingerprint: each for each in await self._db.read(rows.workers)}

    async def close(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewing

    @property
    def authority_file(self) -> Path:
        """The authority's certificate, without its key: what other machines are given."""
        return self._folder / "ca.pem"

    @property
    def brought(self) -> bool:
        return self._own is not None

    @property
    def served_file(self) -> Path:
        """The certificate that is served, alone: programs on this machine trust exactly this
        one.
        """
        return self._folder / "served.pem"

    async def serve(self, names: Sequence[str]) -> Pair:
        """Return the pair to serve with under these names, from now on kept fresh."""
        self._names = tuple(dict.fromkeys(names))
        self._serving = await everyday.run(self._remembered)
        pair = self._serving or await self._refresh(SYSTEM)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._stay_fresh())
        return pair

    async def renew(self, by: str) -> Pair:
        """A new certificate of our own, or the operator's files as they are now."""
        if self._serving is None:
            raise InvalidInput(
                "the daemon serves without TLS: set server.tls.enabled and restart it"
            )
        return await self._refresh(by, anew=True)

    @contextmanager
    def context(self) -> Iterator[ssl.SSLContext]:
        """Yield the context of HTTP over TLS; as long as the block lasts it gets every later
        certificate, too.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._file)
        leave = self.on_renewed.connect(lambda _: context.load_cert_chain(self._file))
        try:
            yield context
        finally:
            leave()

    async def shown(self) -> tuple[Shown | None, Shown | None]:
        """Return what is served now, and the authority if there is one. The operator's certificate
        has another one above it.
        """
        authority = await everyday.run(self._read_authority)
        above = _shown(_facts(authority), own=True) if authority else None
        served = _shown(_facts(self._serving), own=not self.brought) if self._serving else None
        return served, above

    def checks(self) -> list[DoctorCheck]:
        """Return checks for the doctor, while a certificate is in use: ours is renewed long before
        it ends, the operator's by them.
        """
        if self._serving is None:
            return []
        days = (_facts(self._serving).expires_ms - self._clock.now_ms()) // DAY_MS
        detail = f"good for {days} more days"
        if days >= _SOON_DAYS:
            return [DoctorCheck(id="certificate", title="certificate", state="ok", detail=detail)]
        fix = (
            "put a new one in server.tls.cert, then `palyra tls renew`"
            if self.brought
            else "`palyra tls renew`, and look at the log"
        )
        return [
            DoctorCheck(
                id="certificate",
                title="certificate",
                state="warn" if days >= 0 else "fail",
                detail=detail,
                fix=fix,
            )
        ]

    async def _refresh(self, by: str, *, anew: bool = False) -> Pair:
        async with self._one_at_a_time:
            pair = await everyday.run(self._brought if self.brought else self._issued, anew)
            if pair == self._serving:
                return pair
            if not self.brought:
                await self._record(by, "authority", _facts(await self._authority()))
            await self._record(by, "server", _facts(pair))
            await everyday.run(self._remember, pair)
            first, self._serving = self._serving is None, pair
            if not first:
                self.on_renewed.send(pair)
            return pair

    async def _record(self, by: str, purpose: Purpose, found: CertificateFacts) -> None:
        """Record it on the tape, once for each certificate, whatever became of the daemon when it
        was made.
        """
        row = Certificate(
            found.fingerprint, purpose, found.subject, self._clock.now_ms(), found.expires_ms
        )
        details = {
            "purpose": purpose,
            "subject": found.subject,
            "names": list(found.names),
            "expires_ms": found.expires_ms,
        }
        event = AdminChanged(
            what="certificate", action="used", subject=found.fingerprint, details=details
        )

        def step(tx: Tx) -> None:
            if rows.add(tx, row):
                tape.append(tx, SYSTEM_TAPE, by, [event])

        await self._db.write(step)

    async def _stay_fresh(self) -> None:
        while True:
            await self._clock.sleep(_AGAIN_MS)
            try:
                await self._refresh(SYSTEM)
            except Exception:
                # What is served now is still good for a while: said every day until somebody looks.
                log.exception("the certificate could not be renewed")

    @property
    def _file(self) -> Path:
        """Return the file that is served: the key and its certificate in one, written whole."""
        return self._folder / "server.pem"

    def _remember(self, pair: Pair) -> None:
        """Store that this is in use and recorded, and what it says."""
        self._keep(self.served_file, first(pair.certificate))
        self._keep(self._folder / "served.json", msgspec.json.encode(_facts(pair)))

    def _remembered(self) -> Pair | None:
        """Return the pair in use when the daemon last ran, if it still is what is wanted: that
        needs no X.509.
        """
        try:
            facts = msgspec.json.decode(
                (self._folder / "served.json").read_bytes(), type=CertificateFacts
            )
        except (OSError, msgspec.DecodeError):
            return None
        pair = split(self._file)
        if pair is None or fingerprint_of(first(pair.certificate)) != facts.fingerprint:
            return None
        left_ms = facts.expires_ms - self._clock.now_ms()
        if self._own is not None:
            return pair if left_ms > 0 and self._read_own() == pair else None
        above = split(self._folder / "ca.key")
        # The chain ends with the authority: another one by now would leave those who trust it
        # outside.
        same = above is not None and pair.certificate.endswith(above.certificate)
        return (
            pair
            if same and left_ms > RENEW_BEFORE_MS and set(self._names) <= set(facts.names)
            else None
        )

    def _read_own(self) -> Pair:
        assert self._own is not None
        return Pair(
            _contents(self._own.certificate, "server.tls.cert"),
            _contents(self._own.key, "server.tls.key"),
        )

    def _brought(self, anew: bool) -> Pair:
        from palyra.features.tls import authority

        pair = self._read_own()
        try:
            fits = authority.belongs(pair)
        except (ValueError, TypeError, PalyraError):
            raise ConfigInvalid(
                "server.tls.cert and server.tls.key must be a certificate and its key without a"
                " passphrase, both as PEM",
                key="server.tls.cert",
            ) from None
        if not fits:
            raise ConfigInvalid(
                "server.tls.key is not the key of server.tls.cert: name the pair",
                key="server.tls.key",
            )
        found = authority.facts(pair.certificate)
        if found.expires_ms <= self._clock.now_ms():
            raise ConfigInvalid(
                "server.tls.cert has expired: put a new certificate there", key="server.tls.cert"
            )
        self._keep(self._file, pair.together)
        return pair

    def _issued(self, anew: bool) -> Pair:
        from palyra.features.tls import authority

        above = self._ensure_authority()
        kept = split(self._file)
        if kept is not None and not anew and self._still_good(kept, above, self._names):
            return kept
        pair = authority.issue_server(above, self._names, self._clock.now_ms())
        self._keep(self._file, pair.together)
        return pair

    def _still_good(self, pair: Pair, above: Pair, names: Sequence[str]) -> bool:
        from palyra.features.tls import authority

        try:
            found = authority.facts(pair.certificate)
            fits = authority.belongs(pair) and authority.signed_by(
                pair.certificate, above.certificate
            )
        except (ValueError, TypeError, PalyraError):
            return False
        fresh = found.expires_ms - self._clock.now_ms() > RENEW_BEFORE_MS
        return fits and fresh and set(names) <= set(found.names)

    async def _authority(self) -> Pair:
        return await everyday.run(self._ensure_authority)

    def _ensure_authority(self) -> Pair:
        from palyra.features.tls import authority

        pair = self._read_authority()
        if (
            pair is None
            or authority.facts(pair.certificate).expires_ms - self._clock.now_ms()
            <= RENEW_BEFORE_MS
        ):
            pair = authority.new_authority(self._label, self._clock.now_ms())
            self._keep(self._folder / "ca.key", pair.together)
        if not self.authority_file.exists() or self.authority_file.read_bytes() != pair.certificate:
            self._keep(self.authority_file, pair.certificate)
        return pair

    def _read_authority(self) -> Pair | None:
        path = self._folder / "ca.key"
        pair = split(path)
        if pair is None and path.exists():
            raise ConfigInvalid(
                f"{path} is damaged: restore it from a backup, or remove it, and every worker"
                " enrols again"
            )
        return pair

    async def for_workers(self, name: str) -> Path:
        """The file with what the daemon shows to workers, who know it by this name and by its
        authority, not by an address.
        """
        async with self._one_at_a_time:
            above = await self._authority()
            await self._record(SYSTEM, "authority", _facts(above))
            pair = await everyday.run(self._of_link, above, name)
            await self._record(SYSTEM, "server", _facts(pair))
        return self._folder / "workers.pem"

    def _of_link(self, above: Pair, name: str) -> Pair:
        from palyra.features.tls import authority

        path = self._folder / "workers.pem"
        kept = split(path)
        if kept is not None and self._still_good(kept, above, (name,)):
            return kept
        pair = authority.issue_server(above, (name,), self._clock.now_ms())
        self._keep(path, pair.together)
        return pair

    async def issue_worker(
        self,
        by: str,
        name: str,
        request: str = "",
        *,
        also: Callable[[Tx, Issued], None] = lambda tx, issued: None,
    ) -> Issued:
        """A certificate by which a worker is known as `worker:name`. With a signing request, the
        key is the worker's own.

        `also` is done in the step that records it; what it raises is raised, and there is no
        certificate.
        """
        from palyra.features.tls import authority

        check_principal(f"worker:{name}")
        async with self._one_at_a_time:
            above = await self._authority()
            await self._record(by, "authority", _facts(above))
        made = await everyday.run(
            authority.issue_client, above, name, self._clock.now_ms(), request.encode()
        )
        found = authority.facts(made.certificate)
        info = Certificate(
            found.fingerprint, "worker", name, self._clock.now_ms(), found.expires_ms
        )
        details = {"purpose": "worker", "name": name, "expires_ms": found.expires_ms}
        event = AdminChanged(
            what="certificate", action="issued", subject=found.fingerprint, details=details
        )
        issued = Issued(
            info, made.certificate.decode(), made.key.decode(), above.certificate.decode()
        )

        def step(tx: Tx) -> None:
            also(tx, issued)
            rows.add(tx, info)
            tape.append(tx, SYSTEM_TAPE, by, [event])

        await self._db.write(step)
        self._workers.setdefault(info.fingerprint, info)
        return issued

    def worker(self, certificate: bytes) -> Certificate:
        """Return whose certificate this is (PEM or DER), or Unauthenticated. That it was signed by
        us, TLS has checked before.
        """
        info = self._workers.get(fingerprint_of(certificate))
        if info is None:
            raise Unauthenticated(
                "this certificate is no worker's of this daemon: enrol the worker again"
            )
        if info.revoked_ms:
            raise Unauthenticated(
                f"the certificate of worker {info.name} was revoked: enrol it again, if it is still"
                " yours"
            )
        if info.expires_ms <= self._clock.now_ms():
            raise Unauthenticated(
                f"the certificate of worker {info.name} has expired: enrol it again"
            )
        return info

    def find_worker(self, fingerprint: str) -> Certificate | None:
        return self._workers.get(fingerprint)

    def workers(self) -> list[Certificate]:
        return list(self._workers.values())

    async def revoke_worker(self, by: str, fingerprint: str) -> Certificate:
        """Revoke a worker's certificate, and the one that was asked for with it, or that it was
        asked for with.
        """

        def step(tx: Tx) -> list[Certificate]:
            revoked = []
            for each in workers_rows.certificates_of(tx, fingerprint):
                found, was_good = rows.revoke(tx, each)
                if was_good:
                    tape.append(
                        tx,
                        SYSTEM_TAPE,
                        by,
                        [AdminChanged(what="certificate", action="revoked", subject=each)],
                    )
                revoked.append(found)
            return revoked

        revoked = await self._db.write(step)
        self.retire(*revoked)
        self.on_revoked.send(revoked[0])
        return revoked[0]

    def retire(self, *revoked: Certificate) -> None:
        """Retire certificates that are durably revoked."""
        self._workers.update((each.fingerprint, each) for each in revoked)

    async def trust(self) -> bytes:
        """The authority's certificate, PEM: what workers' certificates are checked against, and
        what others import.
        """
        async with self._one_at_a_time:
            return (await self._authority()).certificate


def _facts(pair: Pair) -> CertificateFacts:
    from palyra.features.tls import authority

    return authority.facts(pair.certificate)


def _shown(found: CertificateFacts, *, own: bool) -> Shown:
    return Shown(
        fingerprint=found.fingerprint,
        subject=found.subject,
        issuer=found.issuer,
        names=found.names,
        begins_ms=found.begins_ms,
        expires_ms=found.expires_ms,
        own=own,
    )


def _contents(path: str, key: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigInvalid(
            f"{key}: {path} cannot be read: {(error.strerror or '').lower()}", key=key
        ) from error
