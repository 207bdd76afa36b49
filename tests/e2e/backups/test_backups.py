"""Backups of the home are made when they are due, kept in number, tried, and restored."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import ChainBroken, NotFound, Unavailable
from palyra.features.backups import home_copy
from palyra.features.backups.model import BackupSettings, name_of
from palyra.features.backups.service import DRILL, MAKE, Backups, HomeBackups
from palyra.models.scripted import Turn
from palyra.store import tokens
from tests.cli_terminal import palyra
from tests.clocks import HeldClock
from tests.daemon import start
from tests.faults import eventually
from tests.inprocess import daemon, finished, say, session
from tests.proving import unguarded, verified
from tests.s3_world import ACCESS, SECRET, s3_store
from tests.upgrading import digests

HOUR_MS = 3_600_000
Scenario = Callable[[Any], Coroutine[Any, Any, Any]]


def _within(folder: Path, scenario: Scenario, settings: str = "", **more: Any) -> Any:
    async def work() -> Any:
        async with daemon(folder, [Turn(text="well")], settings, **more) as d:
            return await scenario(d)

    return asyncio.run(work())


async def _talk(d: Any) -> None:
    await finished(d, await say(d, await session(d), "hello"))


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.suffix == ".palyra")


def _of(home: Path, **settings: Any) -> HomeBackups:
    return HomeBackups(
        home, BackupSettings(**settings), lambda reference: os.environ[reference[4:]]
    )


@pytest.fixture
def passphrase(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BACKUP_WORDS", "correct horse")
    return "env:BACKUP_WORDS"


def test_a_backup_is_made_and_can_be_restored(tmp_path: Path) -> None:
    async def scenario(d: Any) -> Any:
        await _talk(d)
        made = await d.get(Backups).make()
        return made, await d.get(Backups).check(), await d.get(Backups).status()

    made, checked, status = _within(tmp_path, scenario)
    assert _names(tmp_path / "home" / "backups") == [made.name]
    assert (checked.ok, checked.entries, checked.problem) == (True, made.entries, "")
    assert (status.last, status.drill) == (made, checked)
    assert "keys" in made.keys
    assert not checked.keys
    assert not list((tmp_path / "home" / "backups").glob("*.partial"))


def test_only_so_many_are_kept_and_those_of_others_are_left_alone(tmp_path: Path) -> None:
    attic = tmp_path / "attic"
    attic.mkdir()
    other = name_of("ffffffff", 1_600_000_000_000)
    (attic / other).write_bytes(b"another home's")
    (attic / "notes.txt").write_bytes(b"somebody's own")
    clock = HeldClock()

    async def scenario(d: Any) -> list[str]:
        made = []
        for _ in range(4):
            made.append((await d.get(Backups).make()).name)
            clock.ms += HOUR_MS
        return made

    made = _within(tmp_path, scenario, f'[backups]\nkeep = 2\ntarget = "{attic}"\n', clock=clock)
    assert _names(attic) == sorted([other, *made[-2:]])
    assert (attic / "notes.txt").exists()


def test_scheduled_backups_and_drills_come_when_they_are_due(tmp_path: Path) -> None:
    clock = HeldClock()

    async def scenario(d: Any) -> list[int]:
        backups = d.get(Backups)
        await eventually(lambda: backups.of_home.status.last is not None, "a first backup is made")
        first = backups.of_home.status.last.made_ms

        def another() -> bool:
            if d.tasks.idle:
                clock.advance(HOUR_MS)
                d.tasks.look([MAKE, DRILL])
            return bool(backups.of_home.status.last.made_ms > first)

        await eventually(another, "a second backup is made")
        await eventually(lambda: backups.of_home.status.drill is not None, "the drill is done")
        assert backups.of_home.status.drill.ok, backups.of_home.status.drill
        found = await backups.listing()
        return [each.made_ms for each in found]

    times = _within(tmp_path, scenario, '[backups]\nevery = "6h"\ndrill = "1h"\n', clock=clock)
    assert len(times) == 2
    assert times[0] - times[1] >= 6 * HOUR_MS


def test_a_backup_that_fails_is_an_incident_told_once_and_tried_again(tmp_path: Path) -> None:
    attic = tmp_path / "attic"
    clock = HeldClock()

    async def scenario(d: Any) -> tuple[list[str], list[str], list[str]]:
        backups = d.get(Backups)
        await eventually(lambda: backups.of_home.status.failures >= 1, "the first try failed")
        await d.watchdog.look()
        await d.watchdog.look()
        opened = [
            each.summary for each in await d.incidents.opened() if each.key == "backup:failed"
        ]
        told = [
            each.text
            for each in (await d.notices.listing("user:owner")).notices
            if "backup" in each.text
        ]
        attic.mkdir()

        def again() -> bool:
            # While something works, hours that pass would take its lease away.
            if d.tasks.idle:
                clock.advance(HOUR_MS)
                d.tasks.look([MAKE])
            return backups.of_home.status.last is not None

        await eventually(again, "it was tried again")
        await d.watchdog.look()
        left = [each.key for each in await d.incidents.opened() if each.key == "backup:failed"]
        return opened, told, left

    opened, told, left = _within(
        tmp_path, scenario, f'[backups]\nevery = "daily"\ntarget = "{attic}"\n', clock=clock
    )
    assert len(opened) == len(told) == 1
    assert "is its disk mounted?" in opened[0]
    assert left == []
    assert len(_names(attic)) == 1


def test_a_backup_that_cannot_be_restored_is_a_critical_incident(tmp_path: Path) -> None:
    async def scenario(d: Any) -> tuple[Any, list[tuple[str, str]], list[str]]:
        backups = d.get(Backups)
        made = await backups.make()
        path = d.home / "backups" / made.name
        body = bytearray(path.read_bytes())
        body[len(body) // 2] ^= 1
        path.write_bytes(bytes(body))
        checked = await backups.check()
        await d.watchdog.look()
        found = [(each.key, each.severity) for each in await d.incidents.opened()]
        doctor = [each.state for each in (await d.doctor.examine()).checks if each.id == "backups"]
        return checked, found, doctor

    checked, found, doctor = _within(tmp_path, scenario)
    assert not checked.ok
    assert ("backup:drill", "critical") in found
    assert doctor == ["fail"]


def test_an_encrypted_backup_brings_a_home_back_on_another_machine(
    tmp_path: Path, passphrase: str
) -> None:
    async def scenario(d: Any) -> list[str]:
        await _talk(d)
        return [token.name for _, token in await d.db.read(tokens.valid)]

    _within(tmp_path, scenario)
    home, attic = tmp_path / "home", tmp_path / "attic"
    attic.mkdir()
    made = _of(home, target=str(attic), passphrase=passphrase).make(1_700_000_000_000)
    assert made.encrypted
    before = verified(home)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copytree(home, tmp_path / "original")
    done = _of(other, target=str(attic), passphrase=passphrase).restore(made.name, 1)
    assert (done.keys, done.entries, done.kept) == (True, made.entries, "")
    assert verified(other).ok
    keys = digests(home / "keys")
    for name, digest in digests(other / "keys").items():
        # The log goes on under a name of its own: the first machine may have signed for more.
        if not name.startswith("journal."):
            assert keys[name] == digest, name
    assert verified(other).entries == before.entries
    shutil.rmtree(home)
    os.rename(other, home)

    async def again(d: Any) -> Any:
        await _talk(d)
        await d.get(Backups).make()
        return verified(d.home)

    assert _within(tmp_path, again).ok


def test_without_its_keys_a_backup_goes_back_where_they_are_and_not_elsewhere(
    tmp_path: Path,
) -> None:
    async def scenario(d: Any) -> None:
        await _talk(d)

    attic = tmp_path / "attic"
    attic.mkdir()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        _within(tmp_path / name, scenario)
    one, two = tmp_path / "one" / "home", tmp_path / "two" / "home"
    made = _of(one, target=str(attic)).make(1_700_000_000_000)
    entries = verified(one).entries
    _within(tmp_path / "one", scenario)
    keys = digests(one / "keys")["vault.key"] if (one / "keys" / "vault.key").exists() else ""
    done = _of(one, target=str(attic)).restore(made.name, 1)
    assert (verified(one).ok, verified(one).entries) == (True, entries)
    assert (digests(one / "keys").get("vault.key", "")) == keys
    assert verified(Path(done.kept)).entries > entries
    before = digests(two)
    with pytest.raises(ChainBroken, match="not of this home"):
        _of(two, target=str(attic)).restore(made.name, 1)
    assert digests(two) == before
    # The daemon goes on from there, and its rights are still good.
    _within(tmp_path / "one", scenario)
    assert verified(one).ok


def test_backups_go_to_an_s3_store_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passphrase: str
) -> None:
    monkeypatch.setenv("S3_ACCESS", ACCESS)
    monkeypatch.setenv("S3_SECRET", SECRET)

    async def scenario(d: Any) -> None:
        await _talk(d)

    _within(tmp_path, scenario)
    with s3_store() as store:
        backups = _of(
            tmp_path / "home",
            target="s3://attic/palyra",
            endpoint=store.endpoint,
            access_key="env:S3_ACCESS",
            secret_key="env:S3_SECRET",
            passphrase=passphrase,
            keep=2,
        )
        for at in range(3):
            backups.make(1_700_000_000_000 + at * HOUR_MS)
        assert len(backups.listing()) == 2
        assert all(key.startswith("palyra/home-") for key in store.objects)
        assert backups.check("", 1).ok
        # What lies in the store is of no use without the passphrase.
        assert not any(b"journal.db" in body for body in store.objects.values())
        assert store.refused == []


def test_a_daemon_ends_although_a_backup_is_on_its_way(tmp_path: Path) -> None:
    with s3_store() as store:
        store.door.clear()
        settings = (
            f'[backups]\nevery = "daily"\ntarget = "s3://attic"\nendpoint = "{store.endpoint}"\n'
            'access_key = "file:{0}"\nsecret_key = "file:{0}"\n'
        ).format(tmp_path / "key")
        (tmp_path / "key").write_text(ACCESS)

        async def scenario(d: Any) -> None:
            await eventually(store.asked.is_set, "the store is asked")

        _within(tmp_path, scenario, settings)
        assert not store.door.is_set()
        store.door.set()


def test_a_journal_that_does_not_verify_is_no_backup(tmp_path: Path) -> None:
    _within(tmp_path, _talk)
    home = tmp_path / "home"
    raw = unguarded(home / "journal.db")
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 2")
    raw.close()
    with pytest.raises(ChainBroken, match="was not backed up"):
        _of(home).make(1)
    assert _names(home / "backups") == []


def test_without_room_there_is_no_backup_and_the_error_says_how_much_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _within(tmp_path, _talk)
    monkeypatch.setattr(home_copy, "free", lambda folder: 1_000_000)
    with pytest.raises(Unavailable, match=r"needs \d+ MB in .*free \d+ MB"):
        _of(tmp_path / "home").make(1)
    assert not list((tmp_path / "home" / "backups").iterdir())


def test_what_a_killed_backup_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    _within(tmp_path, _talk)
    folder = tmp_path / "home" / "backups"
    (folder / "work-x.partial" / "copy").mkdir(parents=True)
    (folder / "work-x.partial" / "copy" / "journal.db").write_bytes(b"half")
    _within(tmp_path, _talk)
    assert not list(folder.iterdir())


def test_the_commands_work_with_and_without_a_daemon(tmp_path: Path) -> None:
    _within(tmp_path, _talk)
    home = tmp_path / "home"
    made = palyra(home, "backup", "now", "--json")
    assert made.returncode == 0, made.stderr
    name = json.loads(made.stdout)["name"]
    listed = palyra(home, "backup", "list", "--json")
    assert [each["name"] for each in json.loads(listed.stdout)["backups"]] == [name]
    checked = palyra(home, "backup", "check")
    assert f"{name} can be restored" in checked.stdout
    assert palyra(home, "restore", name, "--check").returncode == 0
    refused = palyra(home, "restore", str(home / "config.toml"), "--check")
    assert (refused.returncode, "no backup of Palyra" in refused.stdout) == (1, True)
    unsure = palyra(home, "restore", name)
    assert unsure.returncode != 0
    assert "nothing was done" in unsure.stderr
    done = palyra(home, "restore", name, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["kept"]).is_dir()
    assert verified(home).ok
    missing = palyra(home, "restore", name_of("ffffffff", 1), "--check")
    assert "there is no backup" in missing.stdout


def test_a_running_daemon_backs_itself_up_over_http_and_for_the_command_line(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script={"*": [{"text": "hello"}]}) as running:
        running.run("hello")
        made = running.request("POST", "/v1/backups", {})
        assert made.status == 201
        name = made.json["name"]
        checked = running.request("POST", "/v1/backups/check", {"name": name})
        assert (checked.status, checked.json["ok"]) == (200, True)
        shown = running.get("/v1/backups")
        assert [each["name"] for each in shown["backups"]] == [name]
        assert shown["status"]["last"]["name"] == shown["status"]["drill"]["name"] == name
        assert running.request("POST", "/v1/backups/check", {"name": "../x"}).status == 400
        assert running.request("GET", "/v1/backups", token="").status == 401
        told = palyra(running.home, "backup", "now", "--json")
        assert told.returncode == 0, told.stderr
        listed = json.loads(palyra(running.home, "backup", "list", "--json").stdout)["backups"]
        assert {each["name"] for each in listed} == {name, json.loads(told.stdout)["name"]}
        assert palyra(running.home, "backup", "check").returncode == 0
        refused = palyra(running.home, "restore", name, "--yes")
        assert "stop it first" in refused.stderr
        refused = palyra(running.home, "rollback", "--yes")
        assert "stop it first" in refused.stderr
        doctor = json.loads(palyra(running.home, "doctor", "--json").stdout)["checks"]
        (found,) = [each for each in doctor if each["id"] == "backups"]
        assert "restored and verified" in found["detail"]


def test_a_home_without_a_journal_has_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="start the daemon once"):
        _of(tmp_path).make(1)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('every = "sometimes"', "must be hourly"),
        ('drill = "5"', "must be hourly"),
        ('passphrase = "correct horse"', "not a reference"),
        ('passphrase = "vault:words"', "not a reference"),
        ('target = "backups"', "must be a folder from the root"),
        ('target = "sftp://me:secret@host/x"', "must not hold a password"),
        ("keep = 0", "1"),
    ],
)
def test_settings_that_cannot_work_are_refused(line: str, why: str, tmp_path: Path) -> None:
    from palyra.serve import config

    (tmp_path / "config.toml").write_text(f"[backups]\n{line}\n")
    (problem,) = config.check(tmp_path, {})
    assert why in str(problem)
    assert "secret" not in str(problem).replace("a secret does not", "")
