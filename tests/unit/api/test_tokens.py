"""Tokens and login codes over a real journal, with a clock that the test holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palyra.api import auth, limits
from palyra.api.auth import Access, AuthFailureLog
from palyra.core.errors import InvalidInput, LimitExceeded, NotFound, Unauthenticated
from palyra.core.events import AccessRefused, AccessWidened, AdminChanged
from palyra.store import tape
from palyra.store.database import Database
from palyra.store.sqlite import Sqlite
from palyra.system.clock import Clock
from tests.clocks import HeldClock

OWNER = "user:owner"


@asynccontextmanager
async def opened(folder: Path, clock: Clock) -> AsyncIterator[tuple[Access, Database]]:
    db = Database(Sqlite(folder / "journal.db"), clock.now_ms)
    db.open()
    try:
        access = Access(db, clock, lambda text: text)
        await access.open()
        yield access, db
    finally:
        await db.close()


def test_a_token_is_known_until_it_expires_also_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, _):
            secret, token = await access.mint(
                OWNER, "one", "viewer", principal=OWNER, expires_ms=clock.ms + 1_000
            )
            assert secret.startswith("plr_")
            assert len(secret) == 4 + 43
            assert access.identify(secret, "here") == token
        async with opened(tmp_path, clock) as (access, _):
            assert access.identify(secret, "here").token_id == token.token_id
            clock.ms += 1_000
            told: list[str] = []
            access.on_revoked.connect(told.append)
            with pytest.raises(Unauthenticated):
                access.identify(secret, "here")
            assert told == [token.token_id]
        async with opened(tmp_path, clock) as (access, _):
            with pytest.raises(Unauthenticated):
                access.identify(secret, "here")

    asyncio.run(scenario())


def test_what_happens_to_tokens_is_on_the_system_tape_once(tmp_path: Path) -> None:
    async def scenario() -> list[tuple[str, bool]]:
        async with opened(tmp_path, HeldClock()) as (access, db):
            secret, token = await access.mint(OWNER, "one", "operator", principal=OWNER)
            for _ in range(2):
                assert (await access.revoke(OWNER, token.token_id)).revoked_ms > 0
            with pytest.raises(Unauthenticated):
                access.identify(secret, "here")
            with pytest.raises(NotFound):
                await access.revoke(OWNER, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
            events = await db.read(lambda tx: tape.events_between(tx, "system:local", 1, 99))
            changes = [event for *_, event in events if isinstance(event, AdminChanged)]
            return [(event.action, event.subject == token.token_id) for event in changes]

    assert asyncio.run(scenario()) == [("created", True), ("revoked", True)]


def test_a_token_needs_a_name_and_a_future(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, _):
            for name, expires_ms in (("", 0), ("  ", 0), ("x" * 101, 0), ("late", clock.ms)):
                with pytest.raises(InvalidInput):
                    await access.mint(OWNER, name, "viewer", principal=OWNER, expires_ms=expires_ms)

    asyncio.run(scenario())


def test_a_login_code_works_once_within_ten_minutes(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, _):
            code, late = access.login_code(OWNER), access.login_code(OWNER)
            clock.advance(auth.LOGIN_MS - 1)
            secret, token = await access.redeem(code, "here")
            assert (token.scope, token.expires_ms) == ("owner", clock.ms + auth.BROWSER_MS)
            assert access.identify(secret, "here") == token
            clock.advance(1)
            for used in (code, late, "never"):
                with pytest.raises(Unauthenticated):
                    await access.redeem(used, "here")

    asyncio.run(scenario())


def test_codes_that_nobody_uses_do_not_pile_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, _):
            for _ in range(64):
                access.login_code(OWNER)
            with pytest.raises(LimitExceeded):
                access.login_code(OWNER)
            clock.advance(auth.LOGIN_MS)
            access.login_code(OWNER)

    asyncio.run(scenario())


def test_a_login_code_lives_no_longer_because_the_clock_was_set_back_and_ages_while_the_machine_sleeps(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, _):
            early, late, asleep = (access.login_code(OWNER) for _ in range(3))
            clock.jump(6 * 3_600_000)
            await access.redeem(early, "here")
            clock.jump(-12 * 3_600_000)
            clock.advance(auth.LOGIN_MS - 1_000)
            await access.redeem(late, "here")
            clock.suspend(1_000)
            with pytest.raises(Unauthenticated):
                await access.redeem(asleep, "here")

    asyncio.run(scenario())


def test_using_a_token_is_noted_at_most_once_a_minute(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, db):
            secret, _ = await access.mint(OWNER, "one", "viewer", principal=OWNER)
            noted = []
            for wait_ms in (0, 30_000, 40_000):
                clock.ms += wait_ms
                access.identify(secret, "here")
                # Steps are done in order: this one comes after the note.
                await db.write(lambda tx: None)
                noted.append((await access.listing())[0].used_ms - clock.ms)
            return noted

    assert asyncio.run(scenario()) == [0, -30_000, 0]


def test_scopes_contain_those_below_them() -> None:
    assert [
        auth.allows(scope, "operator")
        for scope in ("owner", "operator", "viewer", "connector", "worker")
    ] == [
        True,
        True,
        False,
        False,
        False,
    ]


async def told(db: Database, kind: type[AccessRefused] | type[AccessWidened]) -> list[object]:
    events = await db.read(lambda tx: tape.events_between(tx, "system:local", 1, 999))
    return [event for *_, event in events if isinstance(event, kind)]


def test_wrong_tokens_are_on_the_tape_by_address_and_never_one_by_one(tmp_path: Path) -> None:
    async def scenario() -> list[object]:
        async with opened(tmp_path, HeldClock()) as (access, db):
            for attempt in range(5):
                with pytest.raises(Unauthenticated):
                    access.identify(f"plr_wrong{attempt}", "192.0.2.7")
            for number in range(100):
                with pytest.raises(Unauthenticated):
                    access.identify("plr_wrong", f"198.51.100.{number}")
            await access.close()
            return await told(db, AccessRefused)

    first, *others = asyncio.run(scenario())
    assert first == AccessRefused(address="192.0.2.7", attempts=1)
    # Thirty-one more addresses have an entry each, all others share one; the first came again.
    assert others[:31] == [
        AccessRefused(address=f"198.51.100.{number}", attempts=1) for number in range(31)
    ]
    assert others[31:] == [
        AccessRefused(address="192.0.2.7", attempts=4),
        AccessRefused(address="", attempts=69),
    ]


def test_who_goes_on_with_wrong_tokens_is_told_of_once_for_each_time_span() -> None:
    async def scenario() -> list[list[AccessRefused]]:
        recorded: list[list[AccessRefused]] = []
        heard = asyncio.Event()

        def record(events: list[AccessRefused]) -> None:
            recorded.append(events)
            heard.set()

        refusals = AuthFailureLog(record, every_s=0.01)
        for _ in range(2):
            for _ in range(3):
                refusals.note("192.0.2.7")
            heard.clear()
            await asyncio.wait_for(heard.wait(), 10)
        refusals.close()
        return recorded

    recorded = asyncio.run(scenario())
    assert [event.attempts for events in recorded for event in events] in ([1, 2, 3], [1, 2, 1, 2])


def test_a_token_that_is_used_from_a_new_address_says_so_once(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[object], str]:
        clock = HeldClock()
        async with opened(tmp_path, clock) as (access, db):
            secret, token = await access.mint(OWNER, "one", "viewer", principal=OWNER)
            for address in ("127.0.0.1", "192.0.2.7", "192.0.2.8", "192.0.2.7"):
                access.identify(secret, address)
        async with opened(tmp_path, clock) as (access, db):
            access.identify(secret, "192.0.2.8")
            access.identify(secret, "192.0.2.9")
            await access.mint(OWNER, "two", "viewer", principal=OWNER)
            return await told(db, AccessWidened), token.token_id

    widened, token_id = asyncio.run(scenario())
    assert widened == [
        AccessWidened(token_id=token_id, address=f"192.0.2.{number}") for number in (7, 8, 9)
    ]


def test_an_address_of_ipv6_stands_for_its_network() -> None:
    assert (
        limits.seat("2001:db8:1:2:3:4:5:6")
        == limits.seat("2001:db8:1:2::99")
        == "2001:db8:1:2::/64"
    )
    assert limits.seat("::ffff:192.0.2.7") == limits.seat("192.0.2.7") == "192.0.2.7"
    assert limits.seat("::1") == "::1"


def test_wrong_tokens_of_endless_addresses_are_counted_in_bounded_memory() -> None:
    failures = limits.Failures()
    for number in range(10_000):
        failures.note(str(number), b"x")
    assert len(failures._by_address) <= 4_096
