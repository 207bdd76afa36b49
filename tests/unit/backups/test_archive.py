"""An archive gives back what was packed, or says what is wrong with it; secrets are never plain."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.features.backups import archive
from palyra.features.backups.home_copy import CopyReport, is_secret
from palyra.features.backups.model import belongs_to, interval_ms, made_ms_of, name_of
from tests.upgrading import digests

REPORT = CopyReport(3, 28, True)
PUBLIC = {"journal.db": b"j" * 3_000_000, "config.toml": b"", "skills/a/SKILL.md": b"# a"}
SECRET = {"keys/vault.key": b"k" * 32, "tls/ca.key": b"t", "owner.token": b"o"}


def _home(folder: Path, files: dict[str, bytes]) -> Path:
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder


@pytest.mark.parametrize("passphrase", ["", "correct horse"])
def test_what_was_packed_comes_back(passphrase: str, tmp_path: Path) -> None:
    home = _home(tmp_path / "home", PUBLIC | SECRET)
    archive.pack(home, REPORT, tmp_path / "a", 1_000, passphrase)
    contents = archive.unpack(tmp_path / "a", tmp_path / "out", passphrase)
    assert (contents.made_ms, contents.entries, contents.schema) == (1_000, 3, 28)
    assert contents.keys == archive.is_encrypted(tmp_path / "a") == bool(passphrase)
    wanted = set(PUBLIC | SECRET) if passphrase else set(PUBLIC)
    packed = digests(home)
    assert digests(tmp_path / "out") == {name: packed[name] for name in wanted}
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


def test_nothing_of_an_encrypted_archive_can_be_read_without_its_passphrase(tmp_path: Path) -> None:
    home = _home(tmp_path / "home", {"journal.db": b"what nobody may see", **SECRET})
    archive.pack(home, REPORT, tmp_path / "a", 1, "correct horse")
    assert b"journal.db" not in (tmp_path / "a").read_bytes()
    for wrong in ("", "wrong"):
        with pytest.raises(InvalidInput, match=r"encrypted|passphrase is wrong"):
            archive.unpack(tmp_path / "a", tmp_path / f"out{wrong}", wrong)


@pytest.mark.parametrize("passphrase", ["", "correct horse"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.floats(0, 0.999), how=st.sampled_from(["flip", "cut"]))
def test_a_change_anywhere_is_found(at: float, how: str, passphrase: str, tmp_path: Path) -> None:
    source = tmp_path / "a"
    if not source.exists():
        home = _home(tmp_path / "home", {"journal.db": bytes(range(256)) * 6_000})
        archive.pack(home, REPORT, source, 1, passphrase)
    body = bytearray(source.read_bytes())
    place = int(at * len(body))
    if how == "flip":
        body[place] ^= 0x40
    changed = bytes(body) if how == "flip" else bytes(body[:place])
    (tmp_path / "b").write_bytes(changed)
    out = tmp_path / "out"
    for number in range(1_000):
        out = tmp_path / f"out{number}"
        if not out.exists():
            break
    try:
        archive.unpack(tmp_path / "b", out, passphrase)
    except InvalidInput:
        return
    # A few bits of gzip's header mean nothing; what came out is what was packed.
    assert digests(out) == digests(tmp_path / "home")


def test_pieces_cannot_be_left_out_moved_or_taken_from_another_archive(tmp_path: Path) -> None:
    import os

    home = _home(tmp_path / "home", {"journal.db": os.urandom(5 << 20)})
    for name in ("a", "other"):
        archive.pack(home, REPORT, tmp_path / name, 1, "correct horse")
    head, pieces = _pieces(tmp_path / "a")
    _, foreign = _pieces(tmp_path / "other")
    assert len(pieces) > 4
    attempts = {
        "left out": [pieces[0], *pieces[2:]],
        "moved": [pieces[0], pieces[2], pieces[1], *pieces[3:]],
        "the end cut": pieces[:-1],
        "from another": [pieces[0], foreign[1], *pieces[2:]],
    }
    for name, tried in attempts.items():
        (tmp_path / "b").write_bytes(head + b"".join(tried))
        with pytest.raises(InvalidInput, match="not whole"):
            archive.unpack(tmp_path / "b", tmp_path / f"out {name}", "correct horse")


def _pieces(path: Path) -> tuple[bytes, list[bytes]]:
    first, second, rest = path.read_bytes().split(b"\n", 2)
    found = []
    while rest:
        size = 4 + int.from_bytes(rest[:4])
        found.append(rest[:size])
        rest = rest[size:]
    return first + b"\n" + second + b"\n", found


def test_a_file_that_is_no_backup_is_named_as_that(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"something else")
    with pytest.raises(InvalidInput, match="no backup of Palyra"):
        archive.unpack(tmp_path / "a", tmp_path / "out")
    (tmp_path / "b").write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(InvalidInput, match="palyra journal restore"):
        archive.unpack(tmp_path / "b", tmp_path / "out")


def test_secret_files_are_known() -> None:
    names = {"keys/journal.key", "keys/vault.key", "tls/authority.key", "owner.token"}
    assert all(map(is_secret, names))
    public = {"keys/journal.pub", "keys/journal.checkpoint", "config.toml", "policies/a.cedar"}
    assert not any(map(is_secret, public))


def test_names_sort_by_time_and_say_whose_they_are() -> None:
    first, second = name_of("0123abcd", 1_700_000_000_000), name_of("0123abcd", 1_700_000_060_000)
    assert first < second
    assert made_ms_of(first) == 1_700_000_000_000
    assert belongs_to(first, "0123abcd")
    assert not belongs_to(first, "ffffffff")
    assert not belongs_to(first + ".partial", "0123abcd")


@pytest.mark.parametrize(
    ("every", "hours"), [("", 0), ("off", 0), ("daily", 24), ("6h", 6), ("2d", 48), ("Weekly", 168)]
)
def test_intervals(every: str, hours: int) -> None:
    assert interval_ms(every) == hours * 3_600_000


@pytest.mark.parametrize("every", ["sometimes", "0h", "-1d", "5", "1h30"])
def test_what_is_no_interval_is_refused(every: str) -> None:
    with pytest.raises(ConfigInvalid, match="no interval"):
        interval_ms(every)
