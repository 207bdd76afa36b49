"""The daemon's certificates over a real journal, with a clock that the test holds; TLS itself says
whether they are any good.
"""

import asyncio
import socket
import ssl
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from palyra.core.errors import ConfigInvalid, InvalidInput, NotFound, Unauthenticated
from palyra.core.events import AdminChanged
from palyra.features.tls import authority
from palyra.features.tls.model import Issued, OwnFiles
from palyra.features.tls.service import DAY_MS, Certificates
from palyra.serve import config
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.sqlite import Sqlite
from palyra.system.clock import Clock

OWNER = "user:owner"
NAMES = ("localhost", "127.0.0.1")


class HeldClock(Clock):
    def __init__(self) -> None:
        super().__init__()
        self.later_ms = 0
        self.asleep, self.woken = asyncio.Event(), asyncio.Event()

    def now_ms(self) -> int:
        return super().now_ms() + self.later_ms

    async def sleep(self, ms: int) -> None:
        self.asleep.set()
        await self.woken.wait()
        self.woken.clear()


@asynccontextmanager
async def opened(
    folder: Path, clock: Clock, own: OwnFiles | None = None
) -> AsyncIterator[tuple[Certificates, Database]]:
    folder.mkdir(exist_ok=True)
    db = Database(Sqlite(folder / "journal.db"), clock.now_ms)
    db.open()
    certificates = Certificates(
        db, clock, folder / "tls", config.write_private, own=own, label="box"
    )
    try:
        await certificates.open()
        yield certificates, db
    finally:
        await certificates.close()
        await db.close()


async def recorded(db: Database) -> list[tuple[str, str]]:
    events = await db.read(lambda tx: tape.events_between(tx, "system:local", 1, 99))
    changes = [
        event
        for *_, event in events
        if isinstance(event, AdminChanged) and event.what == "certificate"
    ]
    return [(event.action, str(event.details.get("purpose", ""))) for event in changes]


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "localhost") -> bytes:
    """One connection; the certificate that the client showed, or b""."""
    here, there = socket.socketpair()
    shown: list[bytes] = []

    def accept() -> None:
        try:
            with server.wrap_socket(there, server_side=True) as tls:
                shown.append(tls.getpeercert(binary_form=True) or b"")
                tls.sendall(b"x")
        except (ssl.SSLError, OSError):
            there.close()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        here.settimeout(20)
        with client.wrap_socket(here, server_hostname=name) as tls:
            if tls.recv(1) != b"x":
                raise ConnectionError("refused")
    finally:
        here.close()
        thread.join(20)
    return shown[0]


def trusting(
    certificates: Certificates, worker: Issued | None = None, folder: Path | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates.authority_file))
    if worker is not None and folder is not None:
        (folder / "worker.pem").write_text(worker.key + worker.certificate)
        context.load_cert_chain(folder / "worker.pem")
    return context


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """What a test keeps open until its end."""
    with ExitStack() as stack:
        yield stack


def test_what_is_served_is_trusted_by_who_trusts_the_authority_under_its_names_alone(
    tmp_path: Path,
    held: ExitStack,
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, HeldClock()) as (certificates, db):
            await certificates.serve(NAMES)
            context = held.enter_context(certificates.context())
            for name in NAMES:
                assert handshake(context, trusting(certificates), name) == b""
            with pytest.raises(ssl.SSLCertVerificationError):
                handshake(context, trusting(certificates), "elsewhere.example")
            with pytest.raises(ssl.SSLCertVerificationError):
                handshake(context, ssl.create_default_context())
            assert await recorded(db) == [("used", "authority"), ("used", "server")]
        for path in (tmp_path / "tls").iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    asyncio.run(scenario())


def test_a_certificate_stays_until_its_names_change_or_it_is_about_to_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (certificates, _):
            first = await certificates.serve(NAMES)
        async with opened(tmp_path, clock) as (certificates, db):
            assert await certificates.serve(NAMES[:1]) == first
            assert await certificates.serve((*NAMES, "box.example")) != first
            assert await recorded(db) == [
                ("used", "authority"),
                ("used", "server"),
                ("used", "server"),
            ]
        clock.later_ms = 59 * DAY_MS
        async with opened(tmp_path, clock) as (certificates, db):
            kept = await certificates.serve(NAMES)
            told: asyncio.Future[authority.Pair] = asyncio.get_running_loop().create_future()
            certificates.on_renewed.connect(told.set_result)
            # The day on which thirty are left, while it runs.
            clock.asleep.clear()
            await asyncio.wait_for(clock.asleep.wait(), 20)
            clock.later_ms = 61 * DAY_MS
            clock.woken.set()
            fresh = await asyncio.wait_for(told, 20)
            assert fresh != kept
            assert authority.facts(fresh.certificate).expires_ms > clock.now_ms() + 89 * DAY_MS
            assert authority.signed_by(fresh.certificate, await certificates.trust())

    asyncio.run(scenario())


def test_files_of_ones_own_are_served_and_read_again(tmp_path: Path, held: ExitStack) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        above = authority.new_authority("an office", clock.now_ms())
        files = OwnFiles(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))

        def bring(pair: authority.Pair) -> None:
            (tmp_path / "cert.pem").write_bytes(pair.certificate)
            (tmp_path / "key.pem").write_bytes(pair.key)

        first = authority.issue_server(above, ["box.example"], clock.now_ms())
        bring(first)
        (tmp_path / "office.pem").write_bytes(above.certificate)
        office = ssl.create_default_context(cafile=str(tmp_path / "office.pem"))
        async with opened(tmp_path / "home", clock, files) as (certificates, db):
            await certificates.serve(NAMES)
            context = held.enter_context(certificates.context())
            handshake(context, office, "box.example")
            bring(
                second := authority.issue_server(
                    above, ["box.example", "new.example"], clock.now_ms()
                )
            )
            assert await certificates.renew(OWNER) == second
            handshake(context, office, "new.example")
            assert await recorded(db) == [("used", "server"), ("used", "server")]
            clock.later_ms, states = 0, []
            for day in (0, 75, 77, 91):
                clock.later_ms = day * DAY_MS
                states += [(check.state, bool(check.fix)) for check in certificates.checks()]
            clock.later_ms = 0
            assert states == [("ok", False), ("ok", False), ("warn", True), ("fail", True)]
            (tmp_path / "key.pem").write_bytes(first.key)
            with pytest.raises(ConfigInvalid):
                await certificates.renew(OWNER)
            handshake(context, office, "new.example")
            (tmp_path / "key.pem").unlink()
            with pytest.raises(ConfigInvalid):
                await certificates.renew(OWNER)
        assert not (tmp_path / "home" / "tls" / "ca.key").exists()

    asyncio.run(scenario())


def test_a_worker_is_known_by_its_certificate_until_that_is_revoked(
    tmp_path: Path, held: ExitStack
) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (certificates, db):
            await certificates.serve(NAMES)
            context = held.enter_context(certificates.context())
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=(await certificates.trust()).decode())
            worker = await certificates.issue_worker(OWNER, "builder")
            shown = handshake(context, trusting(certificates, worker, tmp_path))
            assert (
                certificates.worker(shown)
                == certificates.worker(worker.certificate.encode())
                == worker.info
            )
            assert worker.info.name == "builder"
            # The server's own certificate is no worker's, and nobody's is refused by TLS.
            with pytest.raises(Unauthenticated):
                certificates.worker(
                    authority.issue_client(
                        authority.new_authority("x", clock.now_ms()), "builder", clock.now_ms()
                    ).certificate
                )
            with pytest.raises((ssl.SSLError, OSError)):
                handshake(context, trusting(certificates))
            told: list[str] = []
            certificates.on_revoked.connect(lambda each: told.append(each.name))
            for _ in range(2):
                assert (await certificates.revoke_worker(OWNER, worker.info.fingerprint)).revoked_ms
            with pytest.raises(Unauthenticated):
                certificates.worker(shown)
            with pytest.raises(NotFound):
                await certificates.revoke_worker(OWNER, "0" * 64)
            assert told[0] == "builder"
            assert (await recorded(db))[2:] == [("issued", "worker"), ("revoked", "")]
        async with opened(tmp_path, clock) as (certificates, _):
            with pytest.raises(Unauthenticated):
                certificates.worker(shown)

    asyncio.run(scenario())


def test_a_worker_that_makes_its_own_key_keeps_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, HeldClock()) as (certificates, _):
            request = authority.new_request("whatever it says")
            issued = await certificates.issue_worker(OWNER, "builder", request.certificate.decode())
            assert issued.key == ""
            assert authority.belongs(authority.Pair(issued.certificate.encode(), request.key))
            assert authority.facts(issued.certificate.encode()).subject == "CN=builder"
            for name, bad in (
                ("builder", "no request"),
                ("builder", "x" * 100_000),
                ("Not A Name", ""),
            ):
                with pytest.raises(InvalidInput):
                    await certificates.issue_worker(OWNER, name, bad)

    asyncio.run(scenario())


def test_a_damaged_authority_is_not_replaced_behind_its_owners_back(
    tmp_path: Path, held: ExitStack
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, HeldClock()) as (certificates, _):
            await certificates.serve(NAMES)
        (tmp_path / "tls" / "ca.key").write_bytes(b"nothing")
        async with opened(tmp_path, HeldClock()) as (certificates, _):
            for attempt in (
                certificates.trust,
                lambda: certificates.serve(NAMES),
                lambda: certificates.issue_worker(OWNER, "builder"),
            ):
                with pytest.raises(ConfigInvalid):
                    await attempt()
        # Removed on purpose: a new one, and a certificate that it signed.
        (tmp_path / "tls" / "ca.key").unlink()
        async with opened(tmp_path, HeldClock()) as (certificates, _):
            await certificates.serve(NAMES)
            context = held.enter_context(certificates.context())
            handshake(context, trusting(certificates))

    asyncio.run(scenario())


def test_a_daemon_whose_certificate_is_good_starts_without_the_library_for_them(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path, HeldClock()) as (certificates, _):
            served = await certificates.serve(NAMES)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "palyra.features.tls.authority", None)
            patch.delattr("palyra.features.tls.authority")
            async with opened(tmp_path, HeldClock()) as (certificates, _):
                assert await certificates.serve(NAMES) == served
            async with opened(tmp_path, HeldClock()) as (certificates, _):
                with pytest.raises(ImportError):
                    await certificates.serve(("another.example",))

    asyncio.run(scenario())
