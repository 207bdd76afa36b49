"""Requests are signed as AWS has published it, and refused by a store that checks."""

import calendar
import time
from pathlib import Path

import pytest

from palyra.core.errors import ConfigInvalid, NotFound, Unavailable
from palyra.features.backups.model import BackupSettings, name_of
from palyra.features.backups.s3 import S3Keys, S3Target, signed_headers
from palyra.features.backups.targets import open_target
from tests.s3_world import ACCESS, SECRET, S3Store, s3_store

# From the documentation of AWS, "Examples: Signature Calculations".
EXAMPLE = S3Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
MOMENT = calendar.timegm(time.strptime("20130524T000000Z", "%Y%m%dT%H%M%SZ"))
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        (
            {"lifecycle": ""},
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            {"max-keys": "2", "prefix": "J"},
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_published_examples_come_out(query: dict[str, str], signature: str) -> None:
    made = signed_headers(
        EXAMPLE, "GET", "examplebucket.s3.amazonaws.com", "/", query, EMPTY, MOMENT
    )
    assert made["authorization"].endswith(f"Signature={signature}")


def _target(store: S3Store, secret: str = SECRET, prefix: str = "my home/ö") -> S3Target:
    return S3Target(store.endpoint, "attic", prefix, S3Keys(ACCESS, secret, "eu-central-1"))


def test_backups_go_there_and_come_back(tmp_path: Path) -> None:
    names = [name_of("0123abcd", 1_700_000_000_000 + at * 60_000) for at in range(5)]
    with s3_store() as store:
        target = _target(store)
        for name in names:
            (tmp_path / name).write_bytes(name.encode() * 100)
            target.put(tmp_path / name, name)
        store.objects["my home/ö/home-notes.txt"] = b"somebody's own"
        assert sorted(each.name for each in target.listing()) == names
        target.get(names[2], tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / names[2]).read_bytes()
        target.remove(names[0])
        assert f"my home/ö/{names[0]}" not in store.objects
        with pytest.raises(NotFound, match="there is no backup"):
            target.get(names[0], tmp_path / "gone")
        assert store.refused == []


def test_a_wrong_key_and_a_store_that_refuses_are_told_apart(tmp_path: Path) -> None:
    with s3_store() as store:
        with pytest.raises(Unavailable, match="SignatureDoesNotMatch"):
            _target(store, secret="wrong").listing()
        store.broken = [503]
        with pytest.raises(Unavailable, match="SlowDown"):
            _target(store).listing()
        target = _target(store)
    with pytest.raises(Unavailable, match="cannot be reached"):
        target.listing()


def test_settings_that_cannot_work_are_refused(tmp_path: Path) -> None:
    def opened(**more: str) -> None:
        settings = BackupSettings(target="s3://attic/home", **more)
        open_target(settings, tmp_path, lambda reference: reference)

    with pytest.raises(ConfigInvalid, match="access_key"):
        opened()
    with pytest.raises(ConfigInvalid, match="must be https"):
        opened(endpoint="http://example.org", access_key="env:A", secret_key="env:B")
    opened(endpoint="https://example.org", access_key="env:A", secret_key="env:B")
    with pytest.raises(ConfigInvalid, match="no target"):
        open_target(BackupSettings(target="ftp://x/y"), tmp_path, str)
