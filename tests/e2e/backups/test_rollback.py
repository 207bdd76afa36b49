"""An upgrade can be rehearsed without a trace, and taken back with nothing lost."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import palyra.features.proof.verify_bundle as verifier
from palyra.core.errors import NotFound, Unavailable
from palyra.features.backups import home_copy, rollback, switch
from palyra.models.scripted import Turn
from palyra.serve.wiring import rehearsal, upgrade
from palyra.store import log_keys, sqlite_files, tokens
from palyra.store.sqlite_schema import MIGRATIONS
from tests.cli_terminal import palyra
from tests.inprocess import daemon, finished, say, session
from tests.proving import unguarded, verified
from tests.upgrading import TAPE, digests, older_home, schema_of

SCHEMAS = [each.number for each in MIGRATIONS[:-1]]
NEWEST = MIGRATIONS[-1].number


async def _work(folder: Path, *texts: str) -> list[str]:
    """Start the daemon, which upgrades; talk; return the names of the tokens that are good."""
    async with daemon(folder, [Turn(text="well")] * len(texts)) as d:
        for text in texts:
            where = await session(d)
            await finished(d, await say(d, where, text))
        return [token.name for _, token in await d.db.read(tokens.valid)]


def _back(home: Path) -> rollback.Rollback:
    plan = rollback.plan_rollback(home, rollback.last_upgrade(home))
    return rollback.roll_back(home, plan)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_is_upgraded_taken_back_and_upgraded_again(
    schema: int, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    older_home(home, schema)
    (home / "config.toml").write_text("")
    asyncio.run(_work(tmp_path, "after the upgrade"))
    done = _back(home)
    assert schema_of(home / "journal.db") == schema
    assert (verified(home).ok, verified(home).entries) == (True, 3)
    assert (done.schema, done.entries, done.verified) == (schema, 3, True)
    assert done.since > 3
    kept = sqlite_files.inspect(
        Path(done.kept) / "journal.db", trust=log_keys.trust(Path(done.kept) / "journal.db")
    )
    assert (kept.ok, kept.entries) == (True, 3 + done.since)
    # And forward again: what gave rights before still does.
    assert "old" in asyncio.run(_work(tmp_path, "once more"))
    assert verified(home).ok


def test_what_happened_since_is_exported_and_proven_to_a_stranger(tmp_path: Path) -> None:
    home = tmp_path / "home"
    older_home(home, NEWEST - 1)
    asyncio.run(_work(tmp_path, "hello"))
    done = _back(home)
    lines = Path(done.exported[0]).read_bytes().splitlines()
    assert len(lines) == done.since
    assert {"run.accepted", "run.completed"} <= {json.loads(each)["kind"] for each in lines}
    (bundle,) = done.exported[1:]
    checked = subprocess.run(
        [sys.executable, verifier.__file__, bundle], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(json.loads(Path(bundle).read_bytes())["entries"]) >= done.since - 1


def test_settings_policies_and_keys_go_back_and_those_of_today_are_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    older_home(home, 20)
    (home / "policies").mkdir()
    (home / "policies" / "own.cedar").write_text("// before\n")
    (home / "keys" / "vault.key").write_bytes(b"b" * 32)
    (home / "version").write_text("0.0.9 schema 20\n")
    asyncio.run(_work(tmp_path))
    copy = rollback.last_upgrade(home)
    before = (
        (copy.path / "config.toml").read_bytes() if (copy.path / "config.toml").exists() else b""
    )
    (home / "policies" / "own.cedar").write_text("// after\n")
    (home / "policies" / "new.cedar").write_text("// new\n")
    (home / "keys" / "vault.key").write_bytes(b"a" * 32)
    (home / "config.toml").write_text("[log]\nlevel = 'debug'\n")
    assert (home / "keys" / "rights.key").exists()
    done = _back(home)
    assert done.version == "0.0.9"
    assert copy.needed == "palyra 0.0.9"
    assert (home / "config.toml").read_bytes() == before
    assert digests(home / "policies") == digests(copy.path / "policies")
    assert (home / "keys" / "vault.key").read_bytes() == b"b" * 32
    # A key from before there was one would call every right forged.
    assert not (home / "keys" / "rights.key").exists()
    replaced = Path(done.kept) / "replaced"
    assert (replaced / "policies" / "own.cedar").read_text() == "// after\n"
    assert (replaced / "keys" / "vault.key").read_bytes() == b"a" * 32
    assert (replaced / "config.toml").read_text() == "[log]\nlevel = 'debug'\n"
    assert (home / "version").read_text() == "0.0.9 schema 20\n"
    assert not (home / switch.READY).exists()


def test_a_second_upgrade_after_going_back_makes_a_copy_of_its_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    journal = older_home(home, 20)
    asyncio.run(_work(tmp_path))
    first = rollback.last_upgrade(home)
    _back(home)
    raw = unguarded(journal)
    raw.execute("UPDATE entries SET hash = zeroblob(32) WHERE position = 3")
    raw.close()
    asyncio.run(_work(tmp_path))
    second = rollback.last_upgrade(home)
    assert (first.path.name, second.path.name) == (
        "before-upgrade-from-schema-20",
        "before-upgrade-from-schema-20-2",
    )


def test_a_journal_that_does_not_verify_is_kept_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    journal = older_home(home, 20)
    asyncio.run(_work(tmp_path, "hello"))
    raw = unguarded(journal)
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 5")
    raw.close()
    done = _back(home)
    assert not done.verified
    assert not sqlite_files.inspect(Path(done.kept) / "journal.db").ok
    assert verified(home).ok


def test_without_an_upgrade_there_is_nothing_to_go_back_to(tmp_path: Path) -> None:
    asyncio.run(_work(tmp_path))
    with pytest.raises(NotFound, match="nothing to go back to"):
        rollback.last_upgrade(tmp_path / "home")


def test_without_room_a_rollback_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    older_home(home, 20)
    asyncio.run(_work(tmp_path))
    before = digests(home)
    monkeypatch.setattr(home_copy, "free", lambda folder: 1_000_000)
    with pytest.raises(Unavailable, match="no room for a rollback"):
        _back(home)
    assert digests(home) == before


@pytest.mark.parametrize("schema", [1, 14, NEWEST])
def test_a_rehearsal_tries_everything_and_touches_nothing(schema: int, tmp_path: Path) -> None:
    home = tmp_path / "home"
    if schema == NEWEST:
        asyncio.run(_work(tmp_path, "hello"))
    else:
        older_home(home, schema)
    before = digests(home)
    found = rehearsal.rehearse(home, {}, scratch=tmp_path)
    assert [(each.name, each.state) for each in found.steps] == [
        (name, "ok")
        for name in (
            "settings",
            "copy",
            "migrate",
            "verify",
            "policies",
            "kept runs",
            "recent runs",
        )
    ], found.steps
    assert (found.ok, found.from_schema, found.schema) == (True, schema, NEWEST)
    assert digests(home) == before
    assert not list(tmp_path.glob("palyra-rehearsal-*"))


def test_a_rehearsal_replays_kept_runs_and_names_what_is_wrong(tmp_path: Path) -> None:
    asyncio.run(_work(tmp_path, "hello"))
    home = tmp_path / "home"
    (run_id,) = _runs(home)
    kept = palyra(home, "replay", "--keep", run_id, str(home / "runs"))
    assert kept.returncode == 0, kept.stderr
    found = rehearsal.rehearse(home, {}, scratch=tmp_path)
    assert "1 identical, 0 different, 0 broken" in _step(found, "kept runs").detail
    assert "1 identical" in _step(found, "recent runs").detail
    raw = unguarded(home / "journal.db")
    raw.execute("UPDATE runs SET state = 'failed' WHERE run_id = ?", (run_id,))
    raw.close()
    (home / "runs" / "other.run.json").write_text("no run")
    found = rehearsal.rehearse(home, {}, scratch=tmp_path)
    assert not found.ok
    assert _step(found, "verify").state == "fail"
    assert _step(found, "kept runs").state == "fail"


def test_an_unknown_setting_is_reported_and_resets_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    older_home(home, 20)
    text = "[log]\nlevel = 'debug'\n[tomorrow]\nfeature = true\n"
    (home / "config.toml").write_text(text)
    found = rehearsal.rehearse(home, {}, scratch=tmp_path)
    assert not found.ok
    assert "tomorrow" in _step(found, "settings").detail
    assert _step(found, "verify").state == "ok"
    refused = palyra(home, "upgrade")
    assert refused.returncode == 1
    assert schema_of(home / "journal.db") == 20
    assert (home / "config.toml").read_text() == text


def test_the_commands_say_what_they_did(tmp_path: Path) -> None:
    home = tmp_path / "home"
    older_home(home, 20)
    rehearsed = palyra(home, "upgrade", "--rehearse", "--json")
    assert json.loads(rehearsed.stdout)["rehearsal"]["ok"] is True
    assert schema_of(home / "journal.db") == 20
    done = palyra(home, "upgrade")
    assert done.returncode == 0, done.stderr
    assert f"schema 20 to {NEWEST}" in done.stdout
    assert schema_of(home / "journal.db") == NEWEST
    assert verified(home).ok
    assert "nothing to upgrade" in palyra(home, "upgrade").stdout
    # The daemon's first start seals what gives rights: rows, accepted tools and skills.
    assert not (home / "keys" / "rights.key").exists()
    asked = palyra(home, "rollback")
    assert asked.returncode != 0
    assert schema_of(home / "journal.db") == NEWEST
    back = palyra(home, "rollback", "--yes", "--json")
    assert back.returncode == 0, back.stderr
    said = json.loads(back.stdout)
    assert said["needs"].endswith("schema 20")
    assert schema_of(home / "journal.db") == 20
    again = palyra(home, "rollback", "--yes")
    assert "nothing to go back to" in again.stderr


def test_rights_from_before_an_upgrade_by_hand_are_good_after_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    older_home(home, 20)
    assert palyra(home, "upgrade").returncode == 0
    assert "old" in asyncio.run(_work(tmp_path))


def test_an_old_tape_reads_the_same_after_going_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    journal = older_home(home, 5)
    before = sqlite_files.newest_entry(journal)
    asyncio.run(_work(tmp_path, "hello"))
    _back(home)
    assert sqlite_files.newest_entry(journal) == before
    assert TAPE in journal.read_bytes().decode("latin-1")


def _runs(home: Path) -> list[str]:
    from palyra.serve import offline

    return offline.recent_runs(home, 10)


def _step(found: rehearsal.UpgradeRehearsal, name: str) -> rehearsal.RehearsedStep:
    return next(each for each in found.steps if each.name == name)


def test_a_copy_of_the_same_state_is_used_again(tmp_path: Path) -> None:
    older_home(tmp_path / "home", 20)
    made = upgrade.copy_before_migration(tmp_path / "home")
    assert made == upgrade.copy_before_migration(tmp_path / "home")
