"""A daemon that others can reach: what it needs to start, what it shows them, what it writes
down.
"""

import asyncio
import http.client
import json
import os
import select
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from curl_cffi import CurlHttpVersion, Session

from tests.daemon import DaemonProcess, configure, launch
from tests.faults import eventually
from tests.http3_client import connected

EVERYWHERE = """
[server]
host = "0.0.0.0"
quic = true
quic_port = 0
[server.tls]
enabled = true
names = ["box.example"]
"""
LOCAL = {"PALYRA_SERVER__HOST": "127.0.0.1"}


@dataclass
class Https:
    """Requests to the daemon as another machine sends them: by a name of its certificate, trusting
    its authority.
    """

    daemon: DaemonProcess
    authority: str

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def ask(self, method: str, path: str, body: Any = None, *, token: str | None = None, headers: Mapping[str, str] | None = None,
            name: str = "localhost") -> tuple[int, dict[str, str], Any]:  # fmt: skip
        connection = http.client.HTTPSConnection(
            name, self.daemon.port, timeout=20, context=self.context
        )
        secret = self.daemon.token if token is None else token
        sent = {"Authorization": f"Bearer {secret}"} if secret else {}
        try:
            raw = None if body is None else json.dumps(body)
            connection.request(
                method, path, raw, {"Content-Type": "application/json", **sent, **(headers or {})}
            )
            answer = connection.getresponse()
            text = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return (
                answer.status,
                told,
                json.loads(text)
                if text and told.get("content-type") == "application/json"
                else text,
            )
        finally:
            connection.close()

    def tape(self, kind: str) -> list[dict[str, Any]]:
        _, _, raw = self.ask("GET", "/v1/journal/export")
        entries = [json.loads(line) for line in raw.splitlines()]
        return [entry["event"] for entry in entries if entry["kind"] == kind]


def command(
    home: Path, *words: str, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALYRA_")}
    return subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", *words],
        env={**kept, "PALYRA_HOME": str(home), **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusal(home: Path) -> str:
    started = subprocess.run(
        [sys.executable, "-m", "palyra.serve", "--home", str(home), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 1
    return started.stderr


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Https]:
    folder = tmp_path_factory.mktemp("exposed")
    home, workspace = folder / "home", folder / "work"
    workspace.mkdir()
    configure(home, config=EVERYWHERE)
    # The way that the refusal describes: first for this machine alone, to make a token.
    daemon = launch(home, workspace, env=LOCAL)
    made = command(home, "--json", "token", "create", "laptop", "--scope", "operator")
    assert made.returncode == 0, made.stderr
    daemon.stop()
    daemon.restart()
    try:
        yield Https(daemon, str(home / "tls" / "ca.pem"))
    finally:
        daemon.stop()


def test_it_does_not_listen_to_others_without_tls_or_while_nobody_has_a_token(
    tmp_path: Path,
) -> None:
    configure(tmp_path, config='[server]\nhost = "0.0.0.0"\n')
    assert "palyra config set server.tls.enabled true" in refusal(tmp_path)
    configure(tmp_path, config=EVERYWHERE)
    assert "palyra token create" in refusal(tmp_path)


def test_it_is_called_by_every_name_of_the_machine_and_no_other(exposed: Https) -> None:
    for name in ("localhost", "127.0.0.1", socket.gethostname()):
        assert exposed.ask("GET", "/healthz", token="", name=name)[0] == 200
    with (
        socket.create_connection(("127.0.0.1", exposed.daemon.port)) as plain,
        exposed.context.wrap_socket(plain, server_hostname="box.example") as tls,
    ):
        names = {value for _, value in tls.getpeercert()["subjectAltName"]}  # type: ignore[index,union-attr]
        assert tls.version() == "TLSv1.3"
    assert {"box.example", "localhost", "127.0.0.1"} <= names
    own = f"box.example:{exposed.daemon.port}"
    assert exposed.ask("GET", "/healthz", token="", headers={"Host": own})[0] == 200
    assert exposed.ask("GET", "/healthz", token="", headers={"Host": "evil.example"})[0] == 421
    assert exposed.ask("GET", "/healthz", token="", headers={"Host": "box.example"})[0] == 421
    with pytest.raises(ssl.SSLError):
        http.client.HTTPSConnection("localhost", exposed.daemon.port, timeout=20).request(
            "GET", "/healthz"
        )


def test_connections_that_only_hold_a_place_are_bounded_and_keep_nobody_out(exposed: Https) -> None:
    silent: list[socket.socket] = []

    def still_there() -> int:
        # Not select: it knows no more than a thousand files, whoever has them open.
        asked = select.poll()
        for each in silent:
            asked.register(each, select.POLLIN)
        return len(silent) - len(asked.poll(0))

    try:
        for place in range(2, 6):
            for _ in range(140):
                silent.append(
                    socket.create_connection(
                        ("127.0.0.1", exposed.daemon.port), 20, (f"127.0.0.{place}", 0)
                    )
                )
            # From where the flood comes too.
            with (
                socket.create_connection(
                    ("127.0.0.1", exposed.daemon.port), 20, (f"127.0.0.{place}", 0)
                ) as plain,
                exposed.context.wrap_socket(plain, server_hostname="localhost") as tls,
            ):
                assert tls.version() == "TLSv1.3"
            # The handshake of the one who came last took one more place, which is free again.
            # One that was put out for it may be missing as well, until the daemon has seen that it
            # is free.
            assert min(127 * (place - 1), 255) - still_there() in (0, 1)
        assert exposed.ask("GET", "/healthz", token="")[0] == 200
    finally:
        for each in silent:
            each.close()


def test_keys_are_for_the_daemons_user_alone(exposed: Https) -> None:
    folder = exposed.daemon.home / "tls"
    assert {
        path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()
    } == dict.fromkeys(("ca.key", "ca.pem", "served.json", "served.pem", "server.pem"), "0o600")


def test_a_browser_logs_in_by_the_name_it_used_and_its_cookie_stays_with_https(
    exposed: Https,
) -> None:
    port = exposed.daemon.port
    own = f"box.example:{port}"
    status, _, link = exposed.ask("POST", "/v1/login-links", {}, headers={"Host": own})
    assert status == 200
    assert link["url"].startswith(f"https://{own}/login?code=")
    status, told, _ = exposed.ask("GET", "/login?" + link["url"].partition("?")[2], token="")
    assert status == 303
    assert "; Secure" in told["set-cookie"]
    assert "strict-transport-security" not in told
    session = {
        "Cookie": told["set-cookie"].partition(";")[0],
        "X-Palyra-Key": told["location"].partition("key=")[2],
    }
    asked = {
        origin: exposed.ask(
            "POST", "/v1/sessions", {}, token="", headers={**session, "Origin": origin}
        )[0]
        for origin in (
            f"https://localhost:{port}",
            f"http://localhost:{port}",
            "https://evil.example",
        )
    }
    assert list(asked.values()) == [201, 403, 403]


def test_the_command_line_trusts_exactly_what_is_served_here_and_the_authority_elsewhere(
    exposed: Https, tmp_path: Path
) -> None:
    home, port = exposed.daemon.home, exposed.daemon.port
    assert command(home, "status").returncode == 0
    exported = command(home, "tls", "export-ca", str(tmp_path / "ca.pem"))
    assert exported.returncode == 0
    elsewhere = {"PALYRA_URL": f"https://localhost:{port}", "PALYRA_TOKEN": exposed.daemon.token}
    stranger = command(tmp_path / "none", "status", env=elsewhere)
    assert stranger.returncode == 5
    assert "PALYRA_CA" in stranger.stderr
    trusting = command(
        tmp_path / "none", "login", env={**elsewhere, "PALYRA_CA": str(tmp_path / "ca.pem")}
    )
    assert trusting.stdout.startswith(f"https://localhost:{port}/login?code=")


async def shown_by_quic(port: int, authority: str) -> bytes:
    async with connected(port, authority) as client:
        shown = client.quic.tls._peer_certificate
        assert shown is not None
        return shown.public_bytes(Encoding.DER)


def test_a_renewed_certificate_is_shown_from_the_next_connection_on(exposed: Https) -> None:
    def shown() -> bytes:
        with (
            socket.create_connection(("127.0.0.1", exposed.daemon.port)) as plain,
            exposed.context.wrap_socket(plain, server_hostname="localhost") as tls,
        ):
            return tls.getpeercert(binary_form=True) or b""

    before = shown()
    renewed = command(exposed.daemon.home, "tls", "renew", "--json")
    assert renewed.returncode == 0, renewed.stderr
    after = shown()
    assert after != before
    assert json.loads(renewed.stdout)["fingerprint"] == sha256(after).hexdigest()
    assert command(exposed.daemon.home, "tls").returncode == 0
    status, _, state = exposed.ask("GET", "/v1/tls")
    assert (status, state["served"]["own"], state["exposure"]["host"]) == (200, True, "0.0.0.0")
    assert [(each["name"], each["tls"]) for each in state["listeners"]] == [
        ("http", True),
        ("http3", True),
    ]
    # The same by QUIC, to clients that follow what HTTPS told them.
    quic_port = int(state["listeners"][1]["address"].rpartition(":")[2])
    assert exposed.ask("GET", "/healthz", token="")[1]["alt-svc"] == f'h3=":{quic_port}"; ma=86400'
    with Session(verify=exposed.authority, http_version=CurlHttpVersion.V3ONLY) as curl:
        answer = curl.get(
            f"https://localhost:{quic_port}/v1/status",
            headers={"Authorization": f"Bearer {exposed.daemon.token}"},
        )
        assert (answer.status_code, answer.http_version) == (200, CurlHttpVersion.V3)
    assert asyncio.run(shown_by_quic(quic_port, exposed.authority)) == after
    recorded = exposed.tape("admin.changed")
    used = [event["details"]["purpose"] for event in recorded if event["what"] == "certificate"]
    assert used == ["authority", "server", "server"] or used == [
        "authority",
        "server",
        "server",
        "server",
    ]


def test_what_changes_who_can_get_in_is_on_the_tape(exposed: Https) -> None:
    for guess in range(3):
        assert exposed.ask("GET", "/v1/status", token=f"plr_guess{guess}")[0] == 401
    # It is written behind the answer.
    asyncio.run(eventually(lambda: exposed.tape("access.refused"), "a refusal is on the tape"))
    assert exposed.tape("access.refused") == [
        {"kind": "access.refused", "address": "127.0.0.1", "attempts": 1}
    ]
    listening = [event for event in exposed.tape("admin.changed") if event["what"] == "listening"]
    assert [event["subject"] for event in listening] == ["127.0.0.1", "0.0.0.0"]
    assert listening[-1]["details"] == {
        "host": "0.0.0.0",
        "tls": True,
        "quic": True,
        "names": ["box.example"],
    }


def test_who_speaks_no_tls_or_says_nothing_does_not_disturb(exposed: Https) -> None:
    with socket.create_connection(("127.0.0.1", exposed.daemon.port), timeout=20) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200" not in plain.recv(1_000)
    line = next(
        line
        for line in Path(f"/proc/{exposed.daemon.pid}/limits").read_text().splitlines()
        if line.startswith("Max open files")
    )
    soft, hard = map(int, line.split()[3:5])
    assert soft == min(hard, 65_536)
    silent = [socket.create_connection(("127.0.0.1", exposed.daemon.port)) for _ in range(50)]
    try:
        assert exposed.ask("GET", "/healthz", token="")[0] == 200
    finally:
        for each in silent:
            each.close()
