"""Backups go to another machine over SFTP: a real SSH server on loopback, by the system's sftp."""

import asyncio
import getpass
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from palyra.core.errors import ConfigInvalid, NotFound, Unavailable
from palyra.features.backups.model import BackupSettings, name_of
from palyra.features.backups.service import HomeBackups
from palyra.features.backups.sftp import SftpTarget
from tests.inprocess import daemon

needs_sftp = pytest.mark.skipif(shutil.which("sftp") is None, reason="no sftp on this machine")
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
    with _running(place) as port:
        _let_sftp_know(place, port, monkeypatch)
        yield f"sftp://{getpass.getuser()}@127.0.0.1:{port}"


def _let_sftp_know(place: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of ssh are its user's; here they are the test's."""
    known = " ".join((place / "host.pub").read_text().split()[:2])
    (place / "known").write_text(f"[127.0.0.1]:{port} {known}\n")
    (place / "config").write_text(
        f"Host *\nUserKnownHostsFile {place / 'known'}\nIdentityFile {place / 'client'}\n"
        "IdentitiesOnly yes\nStrictHostKeyChecking yes\n"
    )
    program = place / "bin" / "sftp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("sftp")} -F {place / "config"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


class _Door(asyncssh.SSHServer):
    """Lets in whoever holds a key of the file, as it is now."""

    def __init__(self, authorized: Path) -> None:
        self._authorized = authorized

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        self._connection.set_authorized_keys(str(self._authorized))
        return True


@contextmanager
def _running(place: Path) -> Iterator[int]:
    """A server of SSH with files, on a thread of its own. Yields its port."""
    listening: Future[int] = Future()
    over = threading.Event()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        threading.Thread(
            target=lambda: (over.wait(), loop.call_soon_threadsafe(stop.set)), daemon=True
        ).start()
        async with asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[str(place / "host")],
            server_factory=lambda: _Door(place / "authorized"),
            sftp_factory=True,
        ) as server:
            listening.set_result(server.get_port())
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        yield listening.result(_START_S)
    finally:
        over.set()
        thread.join(_START_S)


@needs_sftp
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


@needs_sftp
def test_what_is_not_there_and_who_may_not_are_told(server: str, tmp_path: Path) -> None:
    target = SftpTarget.of(BackupSettings(target=f"{server}{tmp_path / 'missing'}"))
    with pytest.raises(Unavailable, match=r"No such file|not found"):
        target.listing()
    (tmp_path / "there").mkdir()
    there = SftpTarget.of(BackupSettings(target=f"{server}{tmp_path / 'there'}"))
    assert there.listing() == []
    with pytest.raises(NotFound, match="there is no backup"):
        there.get(name_of("0123abcd", 1), tmp_path / "x")
    shutil.copy(tmp_path / "ssh" / "host.pub", tmp_path / "ssh" / "authorized")
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
