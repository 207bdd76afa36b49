"""A real Synapse on loopback, started once for a test session: SQLite, accounts by a shared secret,
no limits on how fast they are.

`homeserver()` gives it. It is ended by its own pid when the session ends.
"""

import asyncio
import atexit
import base64
import hashlib
import hmac
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
from scripts import synapse

from tests import ports

START_S = 60.0
SECRET = "for tests"
_numbers = count(1)
Found = TypeVar("Found")
_ROOMS = json.dumps({"room": {"timeline": {"limit": 1}, "state": {"lazy_load_members": True}}})


@dataclass
class Homeserver:
    folder: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it on its own files and wait until it says that it is ready."""
        path = self.folder / "ready"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(path))
            told.settimeout(START_S)
            with (self.folder / "out").open("ab") as out:
                self.process = subprocess.Popen(
                    [
                        synapse.PYTHON,
                        "-m",
                        "synapse.app.homeserver",
                        "-c",
                        self.folder / "homeserver.yaml",
                    ],
                    cwd=self.folder,
                    env={**os.environ, "NOTIFY_SOCKET": str(path)},
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                )
            try:
                while b"READY=1" not in told.recv(4096):
                    continue
            except TimeoutError:
                self.kill()
                said = (self.folder / "out").read_text(errors="replace")[-2000:]
                raise AssertionError(
                    f"Synapse was not ready within {START_S:g} s; it said: {said}"
                ) from None

    def kill(self) -> None:
        """As `kill -9` does it: nothing is put in order."""
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=10)
        self.process = None


_running: list[Homeserver] = []


def homeserver() -> Homeserver:
    """The one of this test session; started when it is first wanted, and again if a test has killed
    it.
    """
    if not _running:
        assert synapse.READY.exists(), (
            "Synapse is not installed: python scripts/synapse.py (or make test) does it"
        )
        folder = Path(tempfile.mkdtemp(prefix="synapse-"))
        made = Homeserver(folder, ports.free())
        _configure(made)
        atexit.register(end)
        _running.append(made)
    if _running[0].process is None:
        _running[0].start()
    return _running[0]


def end() -> None:
    while _running:
        made = _running.pop()
        made.kill()
        shutil.rmtree(made.folder, ignore_errors=True)


def _configure(made: Homeserver) -> None:
    plenty = {"per_second": 10_000, "burst_count": 10_000}
    settings = {
        "server_name": "localhost",
        "pid_file": str(made.folder / "pid"),
        "listeners": [
            {
                "port": made.port,
                "bind_addresses": ["127.0.0.1"],
                "type": "http",
                "tls": False,
                "resources": [{"names": ["client"]}],
            }
        ],
        "database": {"name": "sqlite3", "args": {"database": str(made.folder / "homeserver.db")}},
        "media_store_path": str(made.folder / "media"),
        "signing_key_path": str(made.folder / "key"),
        "log_config": str(made.folder / "log.yaml"),
        "registration_shared_secret": SECRET,
        "macaroon_secret_key": SECRET,
        "form_secret": SECRET,
        "bcrypt_rounds": 4,
        "report_stats": False,
        "trusted_key_servers": [],
        "presence": {"enabled": False},
        "rc_message": plenty,
        "rc_registration": plenty,
        "rc_login": {"address": plenty, "account": plenty, "failed_attempts": plenty},
        "rc_joins": {"local": plenty, "remote": plenty},
        "rc_joins_per_room": plenty,
        "rc_invites": {"per_room": plenty, "per_user": plenty, "per_issuer": plenty},
        "rc_room_creation": plenty,
        "rc_media_create": plenty,
        "rc_admin_redaction": plenty,
    }
    # YAML is a superset of JSON.
    (made.folder / "homeserver.yaml").write_text(json.dumps(settings))
    log = {
        "version": 1,
        "handlers": {"all": {"class": "logging.StreamHandler"}},
        "root": {"level": "WARNING", "handlers": ["all"]},
    }
    (made.folder / "log.yaml").write_text(json.dumps(log))
    seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    (made.folder / "key").write_text(f"ed25519 a_test {seed}\n")


@dataclass
class Account:
    """Somebody who writes with a plain HTTP client of their own."""

    home: Homeserver
    user_id: str
    token: str
    web: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        url = f"{self.home.url}{path}"
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.web.request(method, url, json=body, headers=headers, **more) as answer:
            found = await answer.json()
            assert answer.status == 200, f"{method} {path}: {answer.status} {found}"
            return found

    async def room(
        self, *invited: str, direct: bool = False, encrypted: bool = False, name: str = ""
    ) -> str:
        state = (
            [{"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]
            if encrypted
            else []
        )
        body = {
            "preset": "trusted_private_chat" if direct else "private_chat",
            "is_direct": direct,
            "invite": list(invited),
            "initial_state": state,
            **({"name": name} if name else {}),
        }
        made: str = (await self.ask("POST", "/_matrix/client/v3/createRoom", body))["room_id"]
        return made

    async def invite(self, room: str, whom: "Account") -> None:
        await self.ask(
            "POST", f"/_matrix/client/v3/rooms/{quote(room)}/invite", {"user_id": whom.user_id}
        )

    async def join(self, room: str) -> None:
        await self.ask("POST", f"/_matrix/client/v3/join/{quote(room)}", {})

    async def send(self, room: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{kind}/{secrets.token_hex(8)}"
        sent: str = (await self.ask("PUT", path, content))["event_id"]
        return sent

    async def upload(self, name: str, data: bytes, media_type: str) -> str:
        path = f"{self.home.url}/_matrix/media/v3/upload?filename={quote(name)}"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": media_type}
        async with self.web.post(path, data=data, headers=headers) as answer:
            assert answer.status == 200
            uri: str = (await answer.json())["content_uri"]
            return uri

    async def download(self, uri: str) -> bytes:
        path = f"{self.home.url}/_matrix/client/v1/media/download/{uri.removeprefix('mxc://')}"
        async with self.web.get(path, headers={"Authorization": f"Bearer {self.token}"}) as answer:
            assert answer.status == 200
            return await answer.read()

    async def events(self, room: str) -> list[dict[str, Any]]:
        """Everything in a room, oldest first."""
        found: list[dict[str, Any]] = []
        start = ""
        while True:
            query = f"dir=f&limit=500{f'&from={start}' if start else ''}"
            page = await self.ask("GET", f"/_matrix/client/v3/rooms/{quote(room)}/messages?{query}")
            found += page["chunk"]
            start = page.get("end", "")
            if not start or not page["chunk"]:
                return found

    async def members(self, room: str) -> set[str]:
        found = await self.ask("GET", f"/_matrix/client/v3/rooms/{quote(room)}/joined_members")
        return set(found["joined"])

    async def rooms(self) -> list[str]:
        found: list[str] = (await self.ask("GET", "/_matrix/client/v3/joined_rooms"))[
            "joined_rooms"
        ]
        return found


async def register(
    home: Homeserver, web: aiohttp.ClientSession, name: str, *, admin: bool = False
) -> Account:
    """A new account whose name begins like this; no two tests share one."""
    user = f"{name}{os.getpid()}x{next(_numbers)}"
    path = f"{home.url}/_synapse/admin/v1/register"
    async with web.get(path) as answer:
        nonce = (await answer.json())["nonce"]
    words = [nonce, user, "password", "admin" if admin else "notadmin"]
    mac = hmac.new(SECRET.encode(), "\0".join(words).encode(), hashlib.sha1).hexdigest()
    body = {
        "nonce": nonce,
        "username": user,
        "password": "password",
        "admin": admin,
        "mac": mac,
        "displayname": name.capitalize(),
    }
    async with web.post(path, json=body) as answer:
        found = await answer.json()
        assert answer.status == 200, found
    return Account(home, found["user_id"], found["access_token"], web)


Event = dict[str, Any]


async def until(
    who: Account, room: str, enough: Callable[[list[Event]], bool], seconds: float = 60.0
) -> list[Event]:
    """Follow the server's stream as somebody until a room holds enough; its events then."""

    async def look() -> list[Event] | None:
        events = await who.events(room)
        return events if enough(events) else None

    return await follow(who, look, seconds)


async def follow(
    who: Account, look: Callable[[], Awaitable[Found | None]], seconds: float = 60.0
) -> Found:
    """Look again whenever something happens in the rooms of somebody, until there is something to
    be found.
    """
    async with asyncio.timeout(seconds):
        since = ""
        while True:
            more = f"&since={since}" if since else ""
            since = (
                await who.ask(
                    "GET", f"/_matrix/client/v3/sync?timeout=1000&filter={quote(_ROOMS)}{more}"
                )
            )["next_batch"]
            if (found := await look()) is not None:
                return found
