"""Tokens and login codes over a real journal, with a clock that the test holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palyra.domain.errors import InvalidInput, LimitExceeded, NotFound, Unauthenticated
from palyra.journal import tape
from palyra.journal.database import Database
from palyra.journal.sqlite import Sqlite
from palyra.runtime.clock import Clock
from palyra.transports import auth
from palyra.transports.auth import Access

OWNER = "user:owner"


class HeldClock(Clock):
    def __init__(self) -> None:
        super().__init__()
        self.ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.ms


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
            secret, token = await access.mint(OWNER, "one", "viewer", principal=OWNER, expires_ms=clock.ms + 1_000)
            assert secret.startswith("plr_")
            assert len(secret) == 4 + 43
            assert access.identify(secret, "here") == token
        async with opened(tmp_path, clock) as (access, _):
            assert access.identify(secret, "here").token_id == token.token_id
            clock.ms += 1_000
            told: list[str] = []
            access.on_revoked = told.append
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
            return [(event.action, event.subject == token.token_id) for *_, event in events]  # type: ignore[union-attr]

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
            clock.ms += auth.LOGIN_MS - 1
            secret, token = await access.redeem(code, "here")
            assert (token.scope, token.expires_ms) == ("owner", clock.ms + auth.BROWSER_MS)
            assert access.identify(secret, "here") == token
            clock.ms += 1
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
            clock.ms += auth.LOGIN_MS
            access.login_code(OWNER)

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
    assert [auth.allows(scope, "operator") for scope in ("owner", "operator", "viewer", "connector", "worker")] == [
        True,
        True,
        False,
        False,
        False,
    ]
