"""Files that nodes share, through a real database."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from palyra.core.errors import ConfigInvalid
from palyra.serve.cluster.keys import ClusterKeys
from palyra.serve.cluster.shared_home import SharedHome
from palyra.store.nodes import NodeIdentity, NodeStore
from tests.postgres_server import server

pytestmark = pytest.mark.postgres
_KEYS = ClusterKeys(b"s" * 32)
Made = Callable[[str], tuple[Path, SharedHome]]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return server().database(tmp_path)


@pytest.fixture
def epoch(address: str) -> int:
    store, me = NodeStore(address), NodeIdentity("a", "a", "1", "here", 1_000)
    store.join(me, _KEYS.proof)
    taken = store.take(me, store.look(me), 60_000)
    assert taken is not None
    return taken


@pytest.fixture
def made(address: str, tmp_path: Path) -> Made:
    def make(name: str) -> tuple[Path, SharedHome]:
        home = tmp_path / name
        for folder in ("keys", "policies"):
            (home / folder).mkdir(parents=True)
        return home, SharedHome(home, home / "policies", NodeStore(address), _KEYS)

    return make


def _write(home: Path, name: str, text: str) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def test_a_home_becomes_like_the_leaders_and_follows_it(
    made: Made, epoch: int, address: str
) -> None:
    (first, leading), (second, other) = made("first"), made("second")
    _write(first, "keys/rights.key", "secret of the first")
    _write(first, "policies/mine.cedar", "permit")
    _write(first, "skills/a/run.sh", "#!/bin/sh")
    (first / "skills/a/run.sh").chmod(0o700)
    _write(first, "config.toml", '[server]\nhttp_port = 1\n[models]\ndefault = "a/b"\n')
    _write(second, "config.toml", '[server]\nhttp_port = 2\n[models]\ndefault = "c/d"\n')
    _write(second, "policies/theirs.cedar", "forbid")
    assert leading.push(epoch, first=True)
    assert other.pull()
    for name in ("keys/rights.key", "policies/mine.cedar", "skills/a/run.sh"):
        assert (second / name).read_bytes() == (first / name).read_bytes()
        assert (second / name).stat().st_mode == (first / name).stat().st_mode
    assert tomllib.loads((second / "config.toml").read_text()) == {
        "server": {"http_port": 2},
        "models": {"default": "a/b"},
    }
    assert not (second / "policies/theirs.cedar").exists()
    # What it had before is kept.
    assert (second / "replaced/policies/theirs.cedar").read_text() == "forbid"
    assert '"c/d"' in (second / "replaced/config.toml").read_text()
    assert not other.pull()
    _write(first, "policies/mine.cedar", "permit more")
    (first / "skills/a/run.sh").unlink()
    assert leading.push(epoch)
    assert other.pull()
    assert (second / "policies/mine.cedar").read_text() == "permit more"
    assert not (second / "skills/a/run.sh").exists()
    with psycopg.connect(address) as raw:
        bodies = raw.execute("SELECT name, body, digest FROM cluster_files").fetchall()
    assert "keys/rights.key" in {name for name, _, _ in bodies}
    assert all(b"secret" not in bytes(body) for _, body, _ in bodies)


def test_a_file_that_somebody_changed_in_the_database_is_refused(
    made: Made, epoch: int, address: str
) -> None:
    (first, leading), (_, other) = made("first"), made("second")
    _write(first, "policies/mine.cedar", "permit")
    _write(first, "policies/yours.cedar", "forbid")
    assert leading.push(epoch, first=True)
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute(
            "UPDATE cluster_files SET body = (SELECT body FROM cluster_files"
            " WHERE name = 'policies/yours.cedar') WHERE name = 'policies/mine.cedar'"
        )
    with pytest.raises(ConfigInvalid, match="is not what a node has stored"):
        other.pull()


def test_a_change_that_could_not_be_kept_is_kept_later(
    made: Made, epoch: int, address: str
) -> None:
    (first, leading), (second, other) = made("first"), made("second")
    assert leading.push(epoch, first=True)
    _write(first, "policies/mine.cedar", "permit")
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute("ALTER TABLE cluster_files RENAME TO away")
        with pytest.raises(psycopg.Error):
            leading.push(epoch)
        raw.execute("ALTER TABLE away RENAME TO cluster_files")
    assert leading.push(epoch)
    assert other.pull()
    assert (second / "policies/mine.cedar").read_text() == "permit"


def test_who_leads_no_more_changes_no_file_of_the_others(
    made: Made, epoch: int, address: str
) -> None:
    first, leading = made("first")
    _write(first, "policies/mine.cedar", "permit")
    assert leading.push(epoch, first=True)
    store, me = NodeStore(address), NodeIdentity("b", "b", "1", "there", 1_000)
    store.join(me, _KEYS.proof)
    assert store.take(me, store.look(me), 60_000) == epoch + 1
    _write(first, "policies/mine.cedar", "permit everything")
    assert not leading.push(epoch)
    assert not leading.push(epoch, first=True)
    second, other = made("second")
    other.pull()
    assert (second / "policies/mine.cedar").read_text() == "permit"
