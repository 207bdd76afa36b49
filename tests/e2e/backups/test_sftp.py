"""Backups go to another machine over SFTP: a real sshd on loopback, by the system's sftp."""

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import ConfigInvalid, NotFound, Unavailable
from palyra.features.backups.model import BackupSettings, name_of
from palyra.features.backups.service import HomeBackups
from palyra.features.backups.sftp import SftpTarget
from tests.inprocess import daemon

_SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
SSHD = shutil.which("sshd", path=_SBIN)
needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("sftp") is None, reason="no sshd, or no sftp, on this machine"
)
_START_S = 30


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that only the key of this test opens, which `sftp` knows."""
    place = tmp_path / "ssh"
    place.mkdir(mode=0o700)
    for name in ("host", "client"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True
        )
    shutil.copy(place / "client.pub", place / "authorized")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (place / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {place / 'host'}\nPidFile none\n"
        f"AuthorizedKeysFile {place / 'authorized'}\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
    )
    known = " ".join((place / "host.pub").read_text().split()[:2])
    (place / "known").write_text(f"[127.0.0.1]:{port} {known}\n")
    (place / "config").write_text(
        f"Host *\nUserKnownHostsFile {place / 'known'}\nIdentityFile {place / 'client'}\n"
        "IdentitiesOnly yes\nStrictHostKeyChecking yes\n"
    )
    # The settings of ssh are its user's; here they are the test's.
    program = place / "bin" / "sftp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("sftp")} -F {place / "config"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with _running(place, port):
        yield f"sftp://{getpass.getuser()}@127.0.0.1:{port}"


@contextmanager
def _running(place: Path, port: int) -> Iterator[None]:
    assert SSHD is not None
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(place / "sshd_config")], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + _START_S
        while not _answers(port):
            if process.poll() is not None:
                pytest.skip(f"sshd does not start here: {(place / 'log').read_text()[-200:]}")
            assert time.monotonic() < deadline, (place / "log").read_text()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@needs_sshd
def test_backups_go_there_are_counted_and_come_back(server: str, tmp_path: Path) -> None:
    attic = tmp_path / "attic"
    attic.mkdir()
    (attic / "notes.txt").write_text("somebody's own")

    async def start() -> None:
        async with daemon(tmp_path, []):
            pass

    asyncio.run(start())
    settings = BackupSettings(target=f"{server}{attic}", passphrase="env:X", keep=2)
    backups = HomeBackups(tmp_path / "home", settings, lambda reference: "correct horse")
    left = attic / f"{name_of(backups.home_id, 1)}.partial"
    left.write_bytes(b"half of one that was killed")
    made = [backups.make(1_700_000_000_000 + at * 3_600_000) for at in range(3)]
    assert sorted(each.name for each in backups.listing()) == [each.name for each in made[1:]]
    assert made[2].removed == (made[0].name,)
    assert {each.name for each in attic.iterdir()} == {
        "notes.txt",
        *(each.name for each in made[1:]),
    }
    assert [each.bytes for each in backups.listing()] == [made[2].bytes, made[1].bytes]
    checked = backups.check("", 1)
    assert (checked.ok, checked.name, checked.keys) == (True, made[2].name, True)


@needs_sshd
def test_what_is_not_there_and_who_may_not_are_told(server: str, tmp_path: Path) -> None:
    target = SftpTarget.of(BackupSettings(target=f"{server}{tmp_path / 'missing'}"))
    with pytest.raises(Unavailable, match=r"No such file|not found"):
        target.listing()
    (tmp_path / "there").mkdir()
    there = SftpTarget.of(BackupSettings(target=f"{server}{tmp_path / 'there'}"))
    assert there.listing() == []
    with pytest.raises(NotFound, match="there is no backup"):
        there.get(name_of("0123abcd", 1), tmp_path / "x")
    (tmp_path / "ssh" / "authorized").write_text("")
    with pytest.raises(Unavailable, match="Permission denied"):
        there.listing()


@pytest.mark.parametrize(
    "address",
    ["sftp:///folder", "sftp://host/-oProxyCommand=x y", "sftp://-oX@host/a", "sftp://u:p@host/a"],
)
def test_an_address_that_could_be_an_option_or_holds_a_password_is_refused(address: str) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be used"):
        SftpTarget.of(BackupSettings(target=address))


def test_without_the_program_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    target: Any = SftpTarget.of(BackupSettings(target="sftp://127.0.0.1/a"))
    with pytest.raises(Unavailable, match="install the OpenSSH client"):
        target.listing()
