"""Abuse of the one way out: a command that was granted one host asks the proxy for another, in
every way a proxy can be asked.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from tests.escapes.attempts import python
from tests.escapes.world import SECRET, WHO, World, as_user, world

# {granted} is the host that was granted, {other} one that was not; both are ports on the loopback
# of the host.
REQUESTS = {
    "a tunnel to another port": "CONNECT {other} HTTP/1.1\r\nHost: {other}\r\n\r\n",
    "a tunnel under the granted name": "CONNECT {other} HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "a tunnel to an address in hex": "CONNECT 0x7f000001:{port} HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "a tunnel to an address in one number": "CONNECT 2130706433:{port} HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "a tunnel to IPv6": "CONNECT [::1]:{port} HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "a tunnel to a mapped address": "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "a tunnel to a name of this machine": "CONNECT localhost:{port} HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "a tunnel to a mail server": "CONNECT 127.0.0.1:25 HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "another address under the granted name": "GET http://{other}/ HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "the granted address under another name": "GET http://{granted}@{other}/ HTTP/1.1\r\nHost: {granted}\r\n\r\n",
    "no address but a name": "GET / HTTP/1.1\r\nHost: {other}\r\n\r\n",
    "two names": "GET http://{other}/ HTTP/1.1\r\nHost: {granted}\r\nHost: {other}\r\n\r\n",
    "a second request behind an allowed one": (
        "GET http://{granted}/ HTTP/1.1\r\nHost: {granted}\r\n\r\nGET http://{other}/ HTTP/1.1\r\nHost: {other}\r\n\r\n"
    ),
    "a request hidden in a body": (
        "POST http://{granted}/ HTTP/1.1\r\nHost: {granted}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\nGET http://{other}/ HTTP/1.1\r\nHost: {other}\r\n\r\n"
    ),
    "a bare tunnel of another protocol": "\x05\x01\x00",
}

_ASK = """
import os, socket
port = int(os.environ["http_proxy"].rsplit(":", 1)[1])
s = socket.create_connection(("127.0.0.1", port), 10)
s.settimeout(PATIENCE)
s.sendall(REQUEST)
said = b""
try:
    # Where a tunnel was opened, its other end is asked as well.
    said = s.recv(4096)
    if b" 200 " in said.split(b"\\r\\n")[0]:
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    while chunk := s.recv(4096):
        said += chunk
except OSError as error:
    said += repr(error).encode()
print(said.decode(errors="replace"))
"""


@pytest.fixture
def here() -> Iterator[World]:
    with world() as made:
        yield made


@contextmanager
def another_server() -> Iterator[tuple[int, list[str]]]:
    knocks: list[str] = []
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            knocks.append("other")
            with connection:
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nother-" + SECRET.encode())

    threading.Thread(target=answer, daemon=True).start()
    try:
        yield server.getsockname()[1], knocks
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def ask(
    here: World, who: str, request: str, port: int, granted: str, *, patience_s: int = 3
) -> str:
    spelt = (
        request.replace("{granted}", granted)
        .replace("{other}", f"127.0.0.1:{port}")
        .replace("{port}", str(port))
    )
    command = python(
        _ASK.replace("REQUEST", repr(spelt.encode("latin-1"))).replace("PATIENCE", str(patience_s))
    )

    async def call() -> Any:
        return await here.tool(
            who=who, egress=Egress(Resolver(allow_private=frozenset({granted})))
        )("shell.run", command=command, hosts=[granted], timeout_s=20)

    here.owned_by(who)
    return as_user(who, lambda: asyncio.run(call())).text


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", REQUESTS)
def test_no_abuse_of_the_proxy_reaches_an_address_that_was_not_granted(
    here: World, name: str, who: str
) -> None:
    with another_server() as (port, knocks):
        said = ask(here, who, REQUESTS[name], port, f"127.0.0.1:{here.port}")
        assert knocks == []
        assert "other-" not in said


@pytest.mark.parametrize(
    "method",
    [
        "CONNECT {other} HTTP/1.1\r\nHost: {other}\r\n\r\n",
        "GET http://{other}/ HTTP/1.1\r\nHost: {other}\r\n\r\n",
    ],
)
def test_the_same_address_is_reached_where_it_was_granted(here: World, method: str) -> None:
    """Otherwise the test above would prove nothing."""
    with another_server() as (port, knocks):
        said = ask(
            here,
            "root" if "root" in WHO else "ordinary",
            method,
            port,
            f"127.0.0.1:{port}",
            patience_s=15,
        )
        assert knocks == ["other"]
        assert SECRET in said
