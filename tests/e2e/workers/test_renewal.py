"""A worker's next certificate: it comes by the link that there is, and at no moment has the worker
none that is good.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.api.listen_sockets import Pair, fingerprint_of
from palyra.core.ids import OWNER
from palyra.features.tls import authority
from palyra.features.workers.node import dial, renewal
from palyra.features.workers.node.dial import DaemonConnection
from palyra.features.workers.node.home import Home, write
from palyra.features.workers.node.worker import Worker
from palyra.features.workers.protocol import CallRefused, Renew, Renewed, Welcome
from tests.e2e.workers.test_doors import MovedClock, answer, hello
from tests.journals import run as run_loop
from tests.worker_world import World, world

DAY_MS = 86_400_000
# Of a certificate that is good for a year, when a third of it is left.
DUE_MS = 365 * DAY_MS - 365 * DAY_MS // 3


async def enrolled(w: World, clock: MovedClock, name: str, ago_ms: int = DUE_MS) -> Home:
    """A worker that has had its certificate for so long. TLS goes by the machine's clock, so it is
    made in the past.
    """
    clock.ahead_ms = -ago_ms
    home = await w.enrol(name)
    clock.ahead_ms = 0
    return home


async def greeted(
    w: World, home: Home, **how: Any
) -> tuple[DaemonConnection, Welcome | CallRefused]:
    line = await dial.dial("127.0.0.1", w.proxy.port, dial.of(home, **how))
    line.post(hello(home))
    said = await answer(line)
    assert isinstance(said, Welcome | CallRefused)
    return line, said


async def asked(line: DaemonConnection, request: str) -> Renewed:
    line.post(Renew(request=request))
    said = await answer(line)
    assert isinstance(said, Renewed)
    return said


async def changes(w: World) -> list[tuple[str, str]]:
    return [
        (each["what"], each["action"])
        for each in await w.system("admin.changed")
        if each["what"] in ("worker", "certificate")
    ]


def test_a_worker_renews_its_certificate_when_it_is_time_and_goes_on_with_the_new_one(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with world(tmp_path, [], clock=clock) as w:
            desk = w.daemon.workers.desk
            # It connects a moment before it is time: its timer has to tell.
            home = await enrolled(w, clock, "attic", DUE_MS - 1_500)
            first = home.pair()
            before = (await desk.one("attic")).worker
            said_there: asyncio.Queue[str] = asyncio.Queue()
            w.running.append(
                asyncio.create_task(
                    Worker(home, ("fs.read",), slots=1, say=said_there.put_nowait).run()
                )
            )
            async with asyncio.timeout(20):
                heard = [await said_there.get() for _ in range(4)]
            new = "got a new certificate: connecting with it"
            assert heard == [
                "connected as attic",
                new,
                "the link is down; trying again",
                "connected as attic",
            ]
            admin = (await w.told("admin.changed"))[-1]
            after = (await desk.one("attic")).worker
            assert admin["details"] == {
                "fingerprint": after.fingerprint,
                "replaced": before.fingerprint,
            }
            assert after.certificate_expires_ms - before.certificate_expires_ms == pytest.approx(
                DUE_MS, abs=60_000
            )
            # Its folder has the new one alone, and the old one opens nothing.
            assert fingerprint_of(home.pair().certificate) == after.fingerprint
            assert not home.renewed.exists()
            assert not home.asked.exists()
            write(home.certificate, first.together)
            _, said = await greeted(w, home)
            assert (type(said), getattr(said, "code", "")) == (CallRefused, "unauthenticated")
            assert await changes(w) == [
                *[("certificate", "used")] * 2,
                ("worker", "invited"),
                ("certificate", "issued"),
                ("worker", "enrolled"),
                ("certificate", "issued"),
                ("worker", "renewed"),
            ]

    run_loop(scenario())


def test_both_are_good_until_the_worker_comes_with_the_new_one_and_revoking_kills_both(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with world(tmp_path, [], clock=clock) as w:
            home = await enrolled(w, clock, "attic")
            line, _ = await greeted(w, home)
            request = renewal._request(home)
            answered = await asked(line, request)
            # The answer is lost and asked for again: it is the same. Another question is not
            # answered at once.
            line, _ = await greeted(w, home)
            assert await asked(line, request) == answered
            assert (
                "ten minutes"
                in (await asked(line, authority.new_request("worker").certificate.decode())).refused
            )
            assert await renewal.take(home, answered)
            for how in ({"older": True}, {}, {}):
                _, said = await greeted(w, home, **how)
                assert isinstance(said, Welcome)
            line, said = await greeted(w, home)
            assert isinstance(said, Welcome)
            assert said.renew_in_ms == pytest.approx(DUE_MS, abs=60_000)
            assert (
                "a third"
                in (await asked(line, authority.new_request("worker").certificate.decode())).refused
            )
            _, said = await greeted(w, home, older=True)
            assert (type(said), getattr(said, "code", "")) == (CallRefused, "unauthenticated")

            revoking: list[Callable[[Home], Any]] = [
                lambda home: w.daemon.workers.desk.revoke(OWNER, home.identity().name),
                lambda home: w.daemon.certificates.revoke_worker(
                    OWNER, fingerprint_of(home.pair().certificate)
                ),
                lambda home: w.daemon.certificates.revoke_worker(
                    OWNER, fingerprint_of(home.pair(older=True).certificate)
                ),
            ]
            for number, revoke in enumerate(revoking):
                home = await enrolled(w, clock, f"cellar-{number}")
                line, _ = await greeted(w, home)
                assert await renewal.take(home, await asked(line, renewal._request(home)))
                await revoke(home)
                assert await answer(line) is None, "its link is still open"
                for how in ({"older": True}, {}):
                    _, said = await greeted(w, home, **how)
                    assert (type(said), getattr(said, "code", "")) == (
                        CallRefused,
                        "unauthenticated",
                    )

    run_loop(scenario())


def test_a_worker_that_was_killed_anywhere_on_the_way_connects_and_ends_with_one_certificate(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with world(tmp_path, [], clock=clock) as w:

            async def before_it_was_asked(home: Home) -> None:
                renewal._request(home)

            async def before_the_answer_was_kept(home: Home) -> None:
                line, _ = await greeted(w, home)
                await asked(line, renewal._request(home))

            async def before_it_was_used(home: Home) -> None:
                line, _ = await greeted(w, home)
                assert await renewal.take(home, await asked(line, renewal._request(home)))

            async def before_it_was_settled(home: Home) -> None:
                await before_it_was_used(home)
                await greeted(w, home)

            async def before_the_old_key_was_removed(home: Home) -> None:
                # A folder from before both were in one file.
                old = home.pair()
                write(home.state / "key.pem", old.key)
                write(home.certificate, old.certificate)
                await before_it_was_settled(home)
                home.renewed.replace(home.certificate)

            async def by_a_daemon_that_forgot(home: Home) -> None:
                # Restored from a backup of before: it knows nothing of what it signed.
                made = authority.new_request("worker")
                above = w.daemon.certificates._read_authority()
                assert above is not None
                signed = authority.issue_client(
                    above, home.identity().name, clock.now_ms(), made.certificate
                )
                write(home.renewed, Pair(signed.certificate, made.key).together)

            for state in (
                before_it_was_asked,
                before_the_answer_was_kept,
                before_it_was_used,
                before_it_was_settled,
                before_the_old_key_was_removed,
                by_a_daemon_that_forgot,
            ):
                name = state.__name__.replace("_", "-")
                home = await enrolled(w, clock, name)
                first = fingerprint_of(home.pair().certificate)
                await state(home)
                station = w.daemon.workers.presence.station(name)
                task = await w.start(home)
                async with asyncio.timeout(20):
                    while station.fingerprint == first or station.link is None:
                        await station.changed.wait()
                shown = (await w.daemon.workers.desk.one(name)).worker
                assert shown.fingerprint == fingerprint_of(home.pair().certificate) != first
                assert not task.done()
                task.cancel()

    run_loop(scenario())


def test_the_doctor_says_whose_certificate_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with world(tmp_path, [], clock=clock) as w:
            home = await enrolled(w, clock, "attic")

            async def said() -> tuple[str, str]:
                (check,) = await w.daemon.workers.checks()
                return check.state, check.detail

            assert await said() == ("warn", "not connected")
            _open, _ = await greeted(w, home)
            assert (await said())[0] == "ok"
            clock.ahead_ms = 100 * DAY_MS
            assert await said() == ("warn", "its certificate ends in 21 days and was not renewed")
            clock.ahead_ms = 365 * DAY_MS
            assert await said() == ("warn", "its certificate has expired")

    run_loop(scenario())
