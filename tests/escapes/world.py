"""A machine with something to steal: a daemon's home, secrets, servers on loopback, and a workspace
from which commands try.

Every attempt runs in a process of its own, as root or as an ordinary user, so that the one who
tries is who the daemon would be.
"""

import asyncio
import concurrent.futures.thread  # noqa: F401 - see below
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from palyra.core.ports import CallContext
from palyra.core.tools import Tier, ToolResult
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue
from palyra.tools.paths import PathGuard

# Loaded here because an ordinary user may not read where this interpreter's library lies.
from palyra.tools.sandbox import cgroups, confine, relay, tier_b, tier_c  # noqa: F401
from palyra.tools.sandbox.command import Caps
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import EgressPort, Runner
from palyra.tools.shell.tools import tools

ORDINARY = 65534
SECRET = "canary-secret-7f3a"
WHO = ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"]
_LONGEST_S = 60


class World:
    """`outside` lies beside the workspace, `home` is the daemon's; whatever knocks at a canary is
    in `knocks`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work, self.home, self.outside = folder / "work", folder / "home", folder / "outside"
        self.knocks: list[str] = []
        for each in (self.work, self.home, self.outside, self.home / "policies"):
            each.mkdir()
        (self.home / "journal.db").write_text(SECRET)
        (self.home / "policies" / "mine.cedar").write_text("// mine\n")
        (self.outside / "secret.txt").write_text(SECRET)
        (self.work / ".env").write_text(f"KEY={SECRET}\n")
        (self.work / "conf").mkdir()
        (self.work / "conf" / ".env.production").write_text(SECRET)
        (self.work / "conf" / "server.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n")
        (self.work / ".ssh").mkdir()
        (self.work / ".ssh" / "id_ed25519").write_text(SECRET)
        (self.work / "plain.txt").write_text("plain\n")
        (self.work / "way-out").symlink_to(self.outside)
        (self.work / ".git" / "hooks").mkdir(parents=True)
        (self.work / ".git" / "config").write_text("[core]\n")
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False) if os.geteuid() == 0 else None
        self.port = self.udp = self.pid = 0

    def owned_by(self, who: str) -> None:
        owner = 0 if who == "root" else ORDINARY
        if os.geteuid() == 0:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, owner, owner, follow_symlinks=False)

    def forget_git(self) -> None:
        """For tier B, which runs nothing that may write where there is a repository."""
        shutil.rmtree(self.work / ".git")

    def kept(self) -> dict[str, bytes]:
        """Everything outside the workspace, and what of it is the person's own inside. Not the /etc
        that sandboxes are given.
        """
        home = [
            path
            for path in self.home.rglob("*")
            if not path.relative_to(self.home).parts[0].startswith("palyra-etc-")
        ]
        own = [
            *home,
            *self.outside.rglob("*"),
            *(self.work / ".git").rglob("*"),
            self.work / ".env",
        ]
        return {
            str(path): path.read_bytes() for path in own if path.is_file() and not path.is_symlink()
        }

    def processes(self) -> list[str]:
        """Processes that run or were started in the workspace. Other tests' worlds have other
        folders.
        """
        mark = str(self.work).encode()
        found = []
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                told = Path(f"/proc/{pid}/environ").read_bytes()
                where = os.readlink(f"/proc/{pid}/cwd")
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if int(pid) != os.getpid() and (mark in told or where.startswith(str(self.work))):
                found.append(line.replace(b"\0", b" ").decode(errors="replace"))
        return found

    def run(
        self,
        command: str,
        who: str = "root",
        *,
        most: Tier = "C",
        caps: Caps | None = None,
        **arguments: Any,
    ) -> ToolResult:
        """One call of shell.run by a daemon that is this user."""

        async def call() -> Any:
            return await self.tool(most=most, caps=caps or Caps(), who=who)(
                "shell.run", command=command, **arguments
            )

        return as_user(who, lambda: asyncio.run(call()), [self.home / "journal.db"])

    def tool(
        self,
        *,
        most: Tier = "C",
        caps: Caps = Caps(),  # noqa: B008 - frozen
        who: str = "root",
        egress: EgressPort | None = None,
    ) -> Callable[..., Any]:
        """Calls a tool by name as the flow would, in the running loop."""
        sandbox = Sandbox(
            hidden=[str(self.home)],
            most=most,
            **({"python": "/usr/bin/python3"} if who == "ordinary" else {}),
        )
        runner = Runner(sandbox, egress, tier="C" if most == "C" else "B")
        fence = PathGuard([str(self.home)])
        catalogue = Catalogue(
            tools(runner, Jobs(runner, self.home / "jobs", Redactor(bytes(32))), fence, caps)
        )
        context = CallContext(
            principal="user:owner",
            session_id="s",
            run_id="r",
            call_id="c",
            workspace=str(self.work),
        )

        async def call(name: str, **arguments: Any) -> ToolResult:
            tool, typed, _ = catalogue.parse(name, arguments)
            return await tool.execute(typed, context)

        return call


def as_user(who: str, job: Callable[[], ToolResult], left_open: Sequence[Path] = ()) -> ToolResult:
    """Run `job` in a fork that is this user for good, with a secret in its environment as a daemon
    may have.

    `left_open` are files that it has open in the most careless way.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(ours)
            os.environ["DAEMON_TOKEN"] = SECRET
            os.environ["LD_PRELOAD"] = "/nonexistent/preload.so"
            for each in left_open:
                os.set_inheritable(os.open(each, os.O_RDONLY), True)
            # What another user found out about the machine does not hold for this one.
            cgroups.places = (
                cache(cgroups.places.__wrapped__)
                if hasattr(cgroups.places, "__wrapped__")
                else cgroups.places
            )
            if who == "ordinary" and os.geteuid() == 0:
                os.setgroups([])
                os.setgid(ORDINARY)
                os.setuid(ORDINARY)
            result = job()
            _send(theirs, {"outcome": result.outcome, "text": result.text, "data": result.data})
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent shows it
            _send(theirs, {"crash": traceback.format_exc()})
        finally:
            os._exit(code)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = json.loads(pipe.read() or b'{"crash": "no answer"}')
    os.waitpid(child, 0)
    assert "crash" not in said, said["crash"]
    return ToolResult(**said)


def _send(descriptor: int, value: Any) -> None:
    with open(descriptor, "wb") as pipe:
        pipe.write(json.dumps(value).encode())


def patience() -> float:
    """How many times slower than an idle one this machine is now; at least 1.

    Told by how long programs take to start, and by its load of the last minute: what was slow a
    moment ago may start quickly now.
    """
    times = []
    for _ in range(5):
        began = time.monotonic()
        subprocess.run(["/bin/true"], check=True)
        times.append(time.monotonic() - began)
    return max(1.0, max(times) / 0.003, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


@contextmanager
def world() -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="palyra-world-"))
    made = World(folder)
    try:
        with _canaries(made):
            yield made
    finally:
        shutil.rmtree(folder, onerror=_unless_gone)


def _unless_gone(_: object, path: str, why: Any) -> None:
    """The mourner of a daemon that died removes its own folder, maybe in this moment."""
    if not isinstance(why[1], FileNotFoundError):
        raise why[1]


@contextmanager
def _canaries(made: World) -> Iterator[None]:
    """A web server on loopback, a name server, a Unix socket and an abstract one, which note who
    comes; and somebody's process.
    """
    tcp, udp = (
        socket.create_server(("127.0.0.1", 0)),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    )
    udp.bind(("127.0.0.1", 0))
    made.port, made.udp = tcp.getsockname()[1], udp.getsockname()[1]
    threading.Thread(target=_echo, args=(udp, made.knocks), daemon=True).start()
    sleeper = subprocess.Popen(["/bin/sleep", "600"], cwd="/", env={"OTHER_TOKEN": SECRET})
    made.pid = sleeper.pid
    path, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    path.bind(str(made.outside / "socket"))
    os.chmod(made.outside / "socket", 0o666)
    abstract.bind(f"\0{made.folder.name}")
    for server, name in ((tcp, "tcp"), (path, "unix"), (abstract, "abstract")):
        server.listen()
        threading.Thread(target=_answer, args=(server, name, made.knocks), daemon=True).start()
    try:
        yield
    finally:
        sleeper.kill()
        sleeper.wait()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", made.udp))
        for server in (tcp, path, abstract):
            server.shutdown(socket.SHUT_RDWR)
            server.close()


def _echo(server: socket.socket, knocks: list[str]) -> None:
    with server:
        while True:
            asked, sender = server.recvfrom(512)
            if not asked:
                return
            knocks.append("udp")
            server.sendto(SECRET.encode(), sender)


def _answer(server: socket.socket, name: str, knocks: list[str]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        knocks.append(name)
        with connection:
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + SECRET.encode())
