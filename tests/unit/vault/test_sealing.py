"""The vault over a real journal and a real key file: what it keeps, hands out, refuses and
forgets.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from palyra.core.events import SessionCreated
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.vault.keys import KeyFile
from palyra.features.vault.rules import NewSecret
from palyra.features.vault.service import Vault
from palyra.store import sessions, sqlite_files, tape
from palyra.store.database import Database, Tx
from palyra.store.sqlite import Sqlite
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from tests.journals import new_id, run

ANNA = "user:anna"
VALUE = "correct horse 7 battery+staple/="


class Opened:
    """A vault with what it stands on."""

    def __init__(self, db: Database, redactor: Redactor, vault: Vault, home: Path) -> None:
        self.db, self.redactor, self.vault, self.home = db, redactor, vault, home

    @property
    def key_file(self) -> Path:
        return self.home / "keys" / "vault.key"

    async def set(self, name: str, value: str = VALUE, by: str = OWNER, **more: object) -> None:
        await self.vault.put(by, msgspec.convert({"name": name, "value": value, **more}, NewSecret))

    async def get(self, reference: str, by: str = OWNER, **more: str) -> str:
        use = {"session": "", "tool": "http.fetch", "host": "api.example.org", "skill": "", **more}
        return await self.vault.resolve(reference, principal=by, **use)

    async def names(self, by: str = OWNER) -> list[str]:
        return [secret.label for secret in (await self.vault.look(by)).secrets]

    async def changes(self) -> list[tuple[str, str]]:
        entries = await self.db.read(lambda tx: tape.after(tx, SYSTEM_TAPE, 0, 1000))
        events = [msgspec.json.decode(entry.wire)["event"] for entry in entries]
        return [
            (event["action"], event["subject"]) for event in events if event.get("what") == "secret"
        ]


@asynccontextmanager
async def opened(home: Path, database: type[Database] = Database) -> AsyncIterator[Opened]:
    (home / "keys").mkdir(mode=0o700, exist_ok=True)
    clock, redactor = Clock(), Redactor(b"test key")
    db = database(Sqlite(home / "journal.db"), clock.now_ms)
    db.open()
    vault = Vault(db, redactor, clock, KeyFile(home / "keys" / "vault.key"))
    await vault.open()
    try:
        yield Opened(db, redactor, vault, home)
    finally:
        await vault.close()
        await db.close()


def test_a_secret_comes_back_after_a_restart_and_its_listing_shows_everything_but_the_value(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            assert (await v.vault.look(OWNER)).state == "empty"
            assert not v.key_file.exists()
            await v.set("GITHUB", hosts=["API.example.org."])
            assert await v.get("vault:GITHUB") == VALUE
        async with opened(tmp_path) as v:
            assert await v.get("vault:global/GITHUB") == VALUE
            state = await v.vault.look(OWNER)
            assert state.state == "open"
            (shown,) = state.secrets
            assert (shown.scope, shown.name, shown.size, shown.hosts, shown.readable) == (
                "global", "GITHUB", "medium", ("api.example.org",), True,
            )  # fmt: skip
            assert 0 < shown.created_ms <= shown.updated_ms <= shown.used_ms
            assert VALUE not in msgspec.json.encode(state).decode()

    run(scenario())


def test_setting_again_keeps_where_a_secret_may_be_used_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A", hosts=["api.example.org"], tools=["http.fetch"])
            await v.set("A", "another value")
            await v.vault.rotate(OWNER, "global", "A", "a third value")
            assert await v.get("vault:A") == "a third value"
            with pytest.raises(Forbidden):
                await v.get("vault:A", host="evil.example")
            await v.set("A", "another value", hosts=[])
            assert await v.get("vault:A", host="evil.example") == "another value"
            with pytest.raises(Forbidden):
                await v.get("vault:A", tool="shell.run")

    run(scenario())


def test_every_change_is_on_the_system_tape_without_the_value(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
            await v.vault.rotate(OWNER, "global", "A", "another value")
            await v.vault.rotate_key(OWNER)
            await v.vault.remove(OWNER, "global", "A")
            assert await v.changes() == [
                ("set", "global/A"),
                ("rotated", "global/A"),
                ("rotated", "master key"),
                ("removed", "global/A"),
            ]
        assert sqlite_files.inspect(tmp_path / "journal.db").ok

    run(scenario())


@pytest.mark.parametrize(
    ("host", "good"),
    [
        ("api.example.org", True),
        ("API.Example.ORG", True),
        ("api.example.org.", True),
        ("example.org", False),
        ("x.api.example.org", False),
        ("api.example.org.evil.example", False),
        ("api.example.org:443", False),
        ("api.example.org@evil.example", False),
        ("", False),
        (None, False),
    ],
)
def test_a_restricted_secret_goes_to_its_hosts_and_nowhere_else(
    tmp_path: Path, host: str | None, good: bool
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A", hosts=["api.example.org", "::1"])
            assert v.vault.allowed_for("vault:A", host, principal=OWNER) is good
            work = v.vault.resolve("vault:A", principal=OWNER, session="", tool="t", host=host)
            if good:
                assert await work == VALUE
            else:
                with pytest.raises(
                    Forbidden, match=r"global/A may only be sent to api\.example\.org"
                ):
                    await work
                assert (await v.vault.look(OWNER)).secrets[0].used_ms == 0

    run(scenario())


@pytest.mark.parametrize(
    "host",
    [
        "https://api.example.org",
        "api.example.org/x",
        "a b",
        "*.example.org",
        "",
        "api.example.org:443",
    ],
)
def test_what_is_not_a_host_is_refused(tmp_path: Path, host: str) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            with pytest.raises(InvalidInput):
                await v.set("A", hosts=[host])

    run(scenario())


@pytest.mark.parametrize(
    "reference",
    [
        "A",
        "vault:",
        "vault:a b",
        "vault:global/",
        "vault:nowhere/A",
        "vault:../A",
        "VAULT:A",
        "vault:A\n",
    ],
)
def test_what_is_not_a_reference_is_refused_and_not_repeated(
    tmp_path: Path, reference: str
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
            with pytest.raises(InvalidInput, match="vault:NAME or vault:SCOPE/NAME"):
                await v.get(reference)
            assert not v.vault.allowed_for(reference, None, principal=OWNER)

    run(scenario())


def test_principals_neither_see_nor_use_nor_change_each_others_secrets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A", "the owner's own", scope="principal")
            await v.set("A", "anna's own value", by=ANNA, scope="principal")
            await v.set("A", "everybody's value")
            assert await v.get("vault:A") == "the owner's own"
            assert (
                await v.get("vault:A", by=ANNA)
                == await v.get(f"vault:principal:{ANNA}/A", by=ANNA)
                == "anna's own value"
            )
            assert await v.get("vault:A", by="user:bob") == "everybody's value"
            assert await v.get("vault:global/A", by=ANNA) == "everybody's value"
            assert await v.names() == ["global/A", "principal:user:owner/A"]
            assert await v.names(ANNA) == ["global/A", "principal:user:anna/A"]
            for name in ("A", "NONE"):
                with pytest.raises(Forbidden):
                    await v.get(f"vault:principal:{ANNA}/{name}")
            with pytest.raises(NotFound):
                await v.get("vault:principal/A", by="user:bob")
            with pytest.raises(Forbidden):
                await v.set("A", scope=f"principal:{ANNA}")
            with pytest.raises(Forbidden):
                await v.vault.remove(OWNER, f"principal:{ANNA}", "A")
            with pytest.raises(NotFound):
                await v.vault.remove("user:bob", "principal", "A")

    run(scenario())


def test_a_channels_and_a_skills_secrets_are_for_calls_from_there_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            here, elsewhere = new_id(), new_id()

            def make(tx: Tx) -> None:
                sessions.create(tx, here, SessionCreated(owner=OWNER, channel="telegram"))
                sessions.create(tx, elsewhere, SessionCreated(owner=OWNER))

            await v.db.write(make)
            await v.set("A", "everybody's value")
            await v.set("A", "the channel's value", scope="channel:telegram")
            await v.set("A", "the skill's value", scope="skill:weather")
            assert await v.get("vault:A", session=here) == "the channel's value"
            assert await v.get("vault:channel/A", session=here) == "the channel's value"
            assert await v.get("vault:A", session=here, skill="weather") == "the skill's value"
            assert await v.get("vault:A", session=elsewhere, skill="other") == "everybody's value"
            for reference in (
                "vault:channel:telegram/A",
                "vault:channel/A",
                "vault:skill/A",
                "vault:skill:weather/A",
            ):
                with pytest.raises(Forbidden):
                    await v.get(reference, session=elsewhere)
            with pytest.raises(Forbidden):
                await v.get("vault:skill:weather/A", session=here, skill="other")
            with pytest.raises(Forbidden):
                await v.get("vault:A", session=here, by=ANNA)
            with pytest.raises(InvalidInput, match="say which channel"):
                await v.set("B", scope="channel")

    run(scenario())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("A", "abc", "at least 4 characters"),
        ("A", "  ab \n ", "at least 4 characters"),
        ("A", "", "at least 4 characters"),
        ("A", "x" * 4097, "4096 bytes"),
        ("A", "é" * 2049, "4096 bytes"),
        ("A", "half \ud800 a character", "half a character"),
        ("my-token-is-hunter22", "hunter22", "stands in the secret's own name"),
        (
            "sk-proj-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0xaB3dE6gH9jK2mN5pQ",
            "something else",
            "looks like a secret itself",
        ),
        ("a b", "something else", "1 to 64 letters"),
    ],
)
def test_what_could_not_be_redacted_is_refused_with_the_reason(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            with pytest.raises(InvalidInput) as error:
                await v.vault.put(OWNER, NewSecret(name=name, value=value))
            assert says in error.value.message
            assert len(value) < 4 or value.strip() not in error.value.message
            assert await v.names() == []
            assert (
                v.redactor.redact(f"{value[:50]} stays") == f"{value[:50]} stays"
                or "sk-proj" in name
            )

    run(scenario())


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "db.password",
        "my-aws-secret-access-key",
        "stripe_live",
        "A",
    ],
)
def test_ordinary_names_are_not_taken_for_secrets(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set(name)
            assert await v.get(f"vault:{name}") == VALUE

    run(scenario())


@pytest.mark.parametrize(
    "value",
    [
        "abcd",
        "  padded value  ",
        "line one\nline two\n",
        "ключ-от-сейфа",
        "x" * 4096,
        "a\0b\0c\0d",
        "vault:A2",
    ],
)
def test_any_other_text_comes_back_exactly(tmp_path: Path, value: str) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A", value)
            assert await v.get("vault:A") == value
        async with opened(tmp_path) as v:
            assert await v.get("vault:A") == value
            assert value.strip() not in v.redactor.redact(f"it is {value}!")

    run(scenario())


def test_every_holder_of_the_redactor_learns_a_value_at_once_and_forgets_it_when_it_is_gone(
    tmp_path: Path,
) -> None:
    said = f"it is {VALUE} indeed"

    async def scenario() -> None:
        async with opened(tmp_path) as v:
            bound, derived, stream = (
                v.redactor.redact,
                v.redactor.with_known(["other-value"]),
                v.redactor.stream(),
            )
            assert bound(said) is said
            await v.set("A")
            await v.set("B")
            shown = (
                stream.feed("it is correct ")
                + stream.feed("horse 7 battery+")
                + stream.feed("staple/= indeed ")
                + stream.finish()
            )
            for text in (bound(said), derived.redact(said), shown):
                assert VALUE not in text
                assert "[redacted:known:" in text
            await v.vault.remove(OWNER, "global", "A")
            assert VALUE not in bound(said), "another secret still has this value"
            await v.vault.rotate(OWNER, "global", "B", "another value")
            assert bound(said) is said
            assert "another value" not in bound("it is another value")
            await v.vault.remove(OWNER, "global", "B")
            assert (
                bound("it is another value")
                == derived.redact("it is another value")
                == "it is another value"
            )

    run(scenario())


def test_a_value_is_known_before_it_is_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            seen: list[bool] = []
            v.db.on_commit.connect(
                lambda appended: seen.append(VALUE in v.redactor.redact(f"x {VALUE} x"))
            )
            await v.set("A")
            assert seen == [False]

    run(scenario())


def test_key_and_journal_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            for change in (v.set("A"), v.vault.rotate_key(OWNER)):
                await change
                assert stat.S_IMODE(v.key_file.stat().st_mode) == 0o600
            assert [path.name for path in (tmp_path / "keys").iterdir()] == ["vault.key"]
            assert stat.S_IMODE((tmp_path / "journal.db").stat().st_mode) == 0o600
        v.key_file.chmod(0o644)
        async with opened(tmp_path) as v:
            assert await v.get("vault:A") == VALUE
            assert stat.S_IMODE(v.key_file.stat().st_mode) == 0o600

    run(scenario())


@pytest.mark.parametrize("damage", ["missing", "another", "short", "empty", "a folder"])
def test_without_its_key_the_vault_is_locked_says_why_and_opens_when_the_key_is_back(
    tmp_path: Path, damage: str
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
        key = v.key_file.read_bytes()
        v.key_file.unlink()
        match damage:
            case "another":
                v.key_file.write_bytes(os.urandom(32))
            case "short":
                v.key_file.write_bytes(key[:31])
            case "empty":
                v.key_file.touch()
            case "a folder":
                v.key_file.mkdir()
        async with opened(tmp_path) as v:
            (note,) = v.vault.notes
            assert "the vault is locked" in note
            assert str(v.key_file) in note
            state = await v.vault.look(OWNER)
            assert (state.state, [secret.readable for secret in state.secrets]) == (
                "locked",
                [False],
            )
            for work in (
                v.get("vault:A"),
                v.set("B"),
                v.vault.rotate(OWNER, "global", "A", "value"),
                v.vault.rotate_key(OWNER),
            ):
                with pytest.raises(Unavailable, match="the vault is locked"):
                    await work
            assert not v.vault.allowed_for("vault:A", None, principal=OWNER)
            v.key_file.rmdir() if damage == "a folder" else v.key_file.unlink(missing_ok=True)
            v.key_file.write_bytes(key)
            assert await v.get("vault:A") == VALUE
            assert v.vault.notes == ()
            assert VALUE not in v.redactor.redact(f"it is {VALUE}")

    run(scenario())


def test_a_vault_whose_key_is_lost_can_be_emptied_and_begun_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
            await v.set("B")
        v.key_file.unlink()
        async with opened(tmp_path) as v:
            await v.vault.remove(OWNER, "global", "A")
            with pytest.raises(Unavailable):
                await v.set("C")
            await v.vault.remove(OWNER, "global", "B")
            await v.set("C")
        async with opened(tmp_path) as v:
            assert await v.get("vault:C") == VALUE

    run(scenario())


def test_a_key_file_that_is_there_already_is_used_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    key = os.urandom(32)
    (tmp_path / "keys/vault.key").write_bytes(key)

    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
            assert v.key_file.read_bytes() == key

    run(scenario())


TAMPERINGS = {
    "one bit of the seal": "UPDATE secrets SET sealed = CAST(sealed || x'00' AS BLOB) WHERE name = 'A'",
    "a seal cut short": "UPDATE secrets SET sealed = x'01' WHERE name = 'A'",
    "another secret's seal": "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'B') WHERE name = 'A'",
    "hosts added": """UPDATE secrets SET hosts = '["api.example.org","evil.example"]' WHERE name = 'A'""",
    "hosts lifted": "UPDATE secrets SET hosts = '[]' WHERE name = 'A'",
    "hosts damaged": "UPDATE secrets SET hosts = '[' WHERE name = 'A'",
    "tools lifted": "UPDATE secrets SET tools = '[]' WHERE name = 'A'",
    "moved to another scope": "UPDATE secrets SET scope = 'principal:user:owner' WHERE name = 'A'",
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_row_that_was_changed_gives_no_value_and_harms_no_other(
    tmp_path: Path, tampering: str
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A", hosts=["api.example.org"], tools=["http.fetch"])
            await v.set("B", "the other value")
            await v.db.write(lambda tx: tx.run(TAMPERINGS[tampering]))
        async with opened(tmp_path) as v:
            assert await v.get("vault:B") == "the other value"
            assert {
                secret.name: secret.readable for secret in (await v.vault.look(OWNER)).secrets
            } == {"A": False, "B": True}
            with pytest.raises((Conflict, Forbidden)):
                await v.get("vault:A")
            scope = "principal" if "scope" in tampering else "global"
            for work in (
                v.set("A", scope=scope),
                v.vault.rotate(OWNER, scope, "A", "value"),
                v.vault.rotate_key(OWNER),
            ):
                with pytest.raises(Conflict):
                    await work
            await v.vault.remove(OWNER, scope, "A")
            await v.set("A")
            assert await v.get("vault:A") == VALUE
            assert await v.vault.rotate_key(OWNER) == 2

    run(scenario())


def test_rotating_the_key_leaves_nothing_that_the_old_key_opens(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            for number in range(50):
                await v.set(f"S{number}", f"value number {number}")
            old = v.key_file.read_bytes()
            before = dict(await v.db.read(lambda tx: tx.all("SELECT name, sealed FROM secrets")))
            assert await v.vault.rotate_key(OWNER) == 50
            after = dict(await v.db.read(lambda tx: tx.all("SELECT name, sealed FROM secrets")))
            assert all(before[name] != after[name] for name in before)
            await v.set("LATER")
        async with opened(tmp_path) as v:
            assert [await v.get(f"vault:S{number}") for number in range(50)] == [
                f"value number {number}" for number in range(50)
            ]
            assert await v.get("vault:LATER") == VALUE
        v.key_file.write_bytes(old)
        async with opened(tmp_path) as v:
            assert (await v.vault.look(OWNER)).state == "locked"

    run(scenario())


def test_rotation_never_writes_over_a_key_that_was_changed_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
            other = os.urandom(32)
            v.key_file.write_bytes(other)
            with pytest.raises(Unavailable, match="changed while the daemon ran"):
                await v.vault.rotate_key(OWNER)
            assert v.key_file.read_bytes() == other
            assert await v.get("vault:A") == VALUE

    run(scenario())


def test_an_empty_vault_has_no_key_to_rotate(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            with pytest.raises(Conflict):
                await v.vault.rotate_key(OWNER)

    run(scenario())


def test_changes_at_once_leave_memory_journal_and_redactor_agreeing(tmp_path: Path) -> None:
    async def churn(v: Opened, worker: int) -> None:
        for turn in range(12):
            name = f"S{(worker + turn) % 4}"
            try:
                match (worker + turn) % 5:
                    case 0 | 1:
                        await v.set(name, f"value {worker} of {turn}")
                    case 2:
                        await v.vault.remove(OWNER, "global", name)
                    case 3:
                        await v.vault.rotate(OWNER, "global", name, f"rotated {worker} of {turn}")
                    case _:
                        await v.vault.rotate_key(OWNER)
            except (NotFound, Conflict):
                continue

    async def values(v: Opened) -> dict[str, str]:
        return {name: await v.get(f"vault:{name}") for name in await v.names()}

    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await asyncio.gather(*(churn(v, worker) for worker in range(8)))
            await v.set("LAST")
            held = await values(v)
            known = {value for each in v.redactor.known for value in each.values}
            assert known == set(held.values())
        async with opened(tmp_path) as v:
            assert await values(v) == held

    run(scenario())


def test_a_caller_that_goes_away_leaves_no_half_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as v:
            await v.set("A")
            for pauses in range(12):
                for change in (
                    v.vault.rotate_key(OWNER),
                    v.set("B", f"value {pauses}"),
                    v.vault.rotate(OWNER, "global", "A", VALUE),
                ):
                    task = asyncio.ensure_future(change)
                    for _ in range(pauses):
                        await asyncio.sleep(0)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
            assert await v.get("vault:A") == VALUE
            await v.set("C")
        async with opened(tmp_path) as v:
            assert await v.get("vault:A") == await v.get("vault:C") == VALUE
            assert (await v.vault.look(OWNER)).state == "open"
            assert [path.name for path in (tmp_path / "keys").iterdir()] == ["vault.key"]

    run(scenario())
