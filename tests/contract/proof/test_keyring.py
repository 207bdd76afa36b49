"""The signing key may lie in the keyring of the operating system, and moves there and back.

The package `keyring` belongs to the world outside: a stand-in with its functions keeps what it is
given in a file.
"""

import json
import sys
from pathlib import Path

import pytest

from palyra.core.errors import ConfigInvalid, Unavailable
from palyra.features.backups.home_copy import CopyReport, copy_home
from palyra.features.backups.switch import finish_switch, stage
from palyra.serve import config
from palyra.store.log_keys import LogKeys
from tests.journals import new_id, noting, run
from tests.proving import proving, verified

_KEYRING = """import json, pathlib
_PATH = pathlib.Path(__file__).with_name("kept.json")

def _all():
    return json.loads(_PATH.read_text()) if _PATH.exists() else {}

def get_password(service, name):
    return _all().get(f"{service}/{name}")

def set_password(service, name, secret):
    if (_PATH.parent / "locked").exists():
        raise RuntimeError("the keyring is locked")
    _PATH.write_text(json.dumps({**_all(), f"{service}/{name}": secret}))

def delete_password(service, name):
    _PATH.write_text(json.dumps({k: v for k, v in _all().items() if k != f"{service}/{name}"}))
"""


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stand-in, with what it keeps."""
    folder = tmp_path / "packages" / "keyring"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(_KEYRING)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    yield folder
    sys.modules.pop("keyring", None)


def _kept(folder: Path) -> dict[str, str]:
    path = folder / "kept.json"
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


def test_the_key_moves_into_the_keyring_and_back_and_stays_the_same(
    tmp_path: Path, keyring: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    first = LogKeys(keys).signer
    assert LogKeys(keys, keyring=True).signer == first
    assert first.encode() not in (keys / "journal.key").read_text()
    assert [each.strip() for each in _kept(keyring).values()] == [first.encode()]
    # Who does not know the settings finds it all the same.
    assert LogKeys(keys).signer == first
    assert LogKeys(keys, keyring=False).signer == first
    assert _kept(keyring) == {}
    assert first.encode() in (keys / "journal.key").read_text()


def test_a_rotated_key_stays_in_the_keyring_and_the_old_one_goes(
    tmp_path: Path, keyring: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    log = LogKeys(keys, keyring=True)
    old = log.signer
    new = log.rotate()
    assert [each.strip() for each in _kept(keyring).values()] == [new.encode()]
    assert LogKeys(keys).signer == new
    assert log.public == (new.verifier, old.verifier)


def test_a_keyring_that_is_locked_missing_or_empty_is_told(
    tmp_path: Path, keyring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    before = LogKeys(keys).signer
    (keyring / "locked").touch()
    with pytest.raises(Unavailable, match="is locked"):
        _ = LogKeys(keys, keyring=True).signer
    assert LogKeys(keys).signer == before
    (keyring / "locked").unlink()
    _ = LogKeys(keys, keyring=True).signer
    (keyring / "kept.json").unlink()
    with pytest.raises(Unavailable, match="not there"):
        _ = LogKeys(keys).signer
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigInvalid, match="install it"):
        _ = LogKeys(keys).signer


def test_settings_may_refer_to_the_keyring(keyring: Path) -> None:
    (keyring / "kept.json").write_text(json.dumps({"palyra/backup": "correct horse"}))
    assert config.secret("keyring:backup", {}) == "correct horse"
    with pytest.raises(ConfigInvalid, match="has no entry other"):
        config.secret("keyring:other", {})


def test_a_home_that_is_restored_elsewhere_gets_a_key_of_its_own(
    tmp_path: Path, keyring: Path
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    other.mkdir()

    async def made() -> None:
        async with proving(home) as (db, proof):
            await db.write(noting(new_id(), "a", "b"))
            await proof.checkpoint()

    run(made())
    _ = LogKeys(home / "keys", keyring=True).signer
    report: CopyReport = copy_home(home, tmp_path / "copy")
    (keyring / "kept.json").unlink()
    stage(other, tmp_path / "copy", other / "backups" / "kept", entries=report.entries)
    finish_switch(other)
    assert verified(other).ok
    assert LogKeys(other / "keys").signer.verifier not in LogKeys(home / "keys").public
