"""A small internet on loopback for the tests of what goes out: web servers, a scripted DNS,
certificates, calls of the tools.
"""

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from palyra.core.ports import CallContext
from palyra.core.tools import ToolResult
from palyra.tools.catalogue import Catalogue
from palyra.tools.net.resolve import Resolver
from palyra.tools.web import fetch as web_fetch

T = TypeVar("T")
CONTEXT = CallContext(
    principal="user:owner", session_id="session", run_id="run", call_id="call", workspace=""
)


def run(work: Coroutine[Any, Any, T], *, seconds: float = 30) -> T:
    """On the loop the daemon uses, within a bound."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(work, seconds))


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


Serve = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes | str = b"", status: int = 200, /, **headers: str) -> bytes:
    """A response with the right length; header names are written with underscores."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever"]
    lines += [
        f"{name.replace('_', '-')}: {value}"
        for name, value in {"content_length": str(len(content)), **headers}.items()
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


def html(text: str, **headers: str) -> bytes:
    return answer(text, 200, content_type="text/html; charset=utf-8", **headers)


def redirect(location: str, status: int = 302) -> bytes:
    return answer(b"", status, location=location)


@dataclass
class Site:
    """A web server on loopback: fixed bytes by target (the answer to "" for any other), or a
    function that writes.
    """

    pages: Mapping[str, bytes] | Serve
    tls: ssl.SSLContext | None = None
    port: int = 0
    address: str = "127.0.0.1"
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    readers: list[asyncio.StreamReader] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await self._opened()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def client_leaves(self) -> None:
        """Waits until the other end of the newest connection is closed."""
        while not self.readers or not (self.readers[-1].at_eof() or self.readers[-1].exception()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def _opened(self) -> asyncio.Server:
        """A port that was named may be taken for a while by a test in another process that needs
        the same one.
        """
        while True:
            try:
                return await asyncio.start_server(
                    self._accept, self.address, self.port, ssl=self.tls, limit=1 << 20
                )
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                await asyncio.sleep(0.05)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.readers.append(reader)
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            self.asked.append(asked)
            if callable(self.pages):
                await self.pages(asked, writer)
            else:
                pages: Mapping[str, bytes] = self.pages
                writer.write(pages.get(asked.target, pages.get("", answer("no such page", 404))))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = b""
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        while (await reader.readline()).strip():
            pass
    return Asked(method, target, headers, body)


class Names:
    """A DNS that answers from a script: each name has answers to give in turn, the last one for
    ever. `*` is any other name.
    """

    def __init__(self, script: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._script = {name: list(answers) for name, answers in script.items()}
        self.lookups: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.lookups.append(host)
        answers = self._script.get(host, self._script.get("*"))
        if answers is None:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def local(*hosts: str, port: int) -> Resolver:
    """Every name leads to loopback, and these hosts may be reached there on this port."""
    return Resolver(
        Names({"*": [["127.0.0.1"]]}), allow_private=frozenset(f"{host}:{port}" for host in hosts)
    )


class Web:
    """The HTTP tools, called as a model would call them."""

    def __init__(self, resolver: Resolver, **more: Any) -> None:
        self.catalogue = Catalogue(web_fetch.tools(resolver, **more))

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        tool, typed, _ = self.catalogue.parse(name, arguments)
        return await tool.execute(typed, CONTEXT)

    async def fetch(self, url: str, **arguments: Any) -> ToolResult:
        return await self.call("http.fetch", url=url, **arguments)


def certified(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for these names, and a client's context that trusts
    nobody but its issuer.
    """
    issuer_key, issuer = ec.generate_private_key(ec.SECP256R1()), _name("Test issuer")
    root = _builder(issuer, issuer, issuer_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    root_certificate = root.sign(issuer_key, hashes.SHA256())
    key = ec.generate_private_key(ec.SECP256R1())
    names_extension = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    leaf = (
        _builder(_name(names[0]), issuer, key)
        .add_extension(names_extension, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + leaf.public_bytes(pem))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    client = ssl.create_default_context(cadata=root_certificate.public_bytes(pem).decode())
    return server, client


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
