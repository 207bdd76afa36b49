"""From a host name to addresses that may be reached. A name is looked up once per connection, and
every answer is judged.

Whoever connects uses the addresses given here and never looks the name up again: otherwise a name
that changes its answer between the check and the connection would decide where we go.

Connections to judged addresses. The name is used for the certificate and never looked up
again.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import NamedTuple

from palyra.core.errors import InvalidInput, Unavailable
from palyra.tools.net import addresses, hosts, urls
from palyra.tools.net.hosts import HostRefused

# Addresses of a name, as texts. Raises OSError if there are none.
Lookup = Callable[[str], Awaitable[Sequence[str]]]

_LOOKUP_S = 5.0
_AT_ONCE = 16
_MOST_ANSWERS = 32


class Resolver:
    """Judged addresses of hosts.

    `allow_private` lists places, as host:port, that may be reached although they are not public:
    the setting `network.private_hosts`. It is the same for every tool, and no argument of a call
    can add to it.
    """

    def __init__(
        self, lookup: Lookup | None = None, *, allow_private: frozenset[str] = frozenset()
    ) -> None:
        self._lookup = system_lookup if lookup is None else lookup
        self._allow_private = allow_private
        self._slots = asyncio.Semaphore(_AT_ONCE)

    def allowing(self, listed: Iterable[str]) -> "Resolver":
        """Return the same with the places of a list that the operator wrote; what nobody may reach
        stays out.
        """
        places = frozenset(place for place in map(private_place, listed) if place)
        return Resolver(self._lookup, allow_private=self._allow_private | places)

    def check(self, host: str, port: int) -> None:
        """Check a host without looking anything up. Raises Refused for one that must not be
        reached.
        """
        if self._allowed(host, port):
            return
        literal = addresses.parse(host)
        why = addresses.name_refusal(host) if literal is None else addresses.refusal(literal)
        if why:
            raise HostRefused(f"{host} is {why} and is never reached from here", host=host)

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of a parsed host, in the order to try them. Raises Refused if any of them
        is not public.
        """
        self.check(host, port)
        if addresses.parse(host) is not None:
            return (host,)
        answers = await self._answers(host)
        allowed = self._allowed(host, port)
        for answer in answers:
            _judge(host, answer, allowed=allowed)
        return answers

    async def _answers(self, host: str) -> tuple[str, ...]:
        try:
            async with self._slots, asyncio.timeout(_LOOKUP_S):
                found = await self._lookup(host)
        except TimeoutError:
            raise Unavailable(
                f"the name {host} could not be looked up within {_LOOKUP_S:g} s", host=host
            ) from None
        except OSError as error:
            reason = "there is no such host" if _unknown(error) else "name lookup failed"
            raise Unavailable(f"{host}: {reason}", host=host) from None
        answers = tuple(dict.fromkeys(found))[:_MOST_ANSWERS]
        if not answers:
            raise Unavailable(f"{host}: there is no such host", host=host)
        return answers

    def _allowed(self, host: str, port: int) -> bool:
        return f"{hosts.written(host)}:{port}" in self._allow_private


def private_place(text: str) -> str:
    """Return an entry of `network.private_hosts` as it is compared, or nothing if it names no place
    that may be allowed.
    """
    try:
        spelt, port = urls.split_port(text.strip(), 0)
        host = hosts.parse(spelt)
    except (InvalidInput, HostRefused):
        return ""
    literal = addresses.parse(host)
    if (
        not port
        or addresses.metadata_name(host)
        or (literal is not None and addresses.last_resort(literal))
    ):
        return ""
    return f"{hosts.written(host)}:{port}"


def _judge(host: str, answer: str, *, allowed: bool) -> None:
    """`allowed`: the operator named the host. What nobody may reach is refused all the same."""
    address = addresses.parse(answer)
    why = "no address" if address is None else addresses.refusal(address)
    if allowed and address is not None and not addresses.last_resort(address):
        return
    if why:
        raise HostRefused(
            f"{host} leads to {hosts.shown(answer)}, which is {why} and is never reached from here",
            host=host,
        )


def _unknown(error: OSError) -> bool:
    return isinstance(error, socket.gaierror) and error.errno in (
        socket.EAI_NONAME,
        getattr(socket, "EAI_NODATA", None),
    )


async def system_lookup(host: str) -> Sequence[str]:
    """The machine's own resolver, on a thread of its own: one that hangs must hold up neither other
    work nor the daemon's end.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[str]] = loop.create_future()

    def tell(answers: list[str], error: OSError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(answers)
        else:
            done.set_exception(error)

    def look() -> None:
        answers: list[str] = []
        failure: OSError | None = None
        try:
            # With the root's dot the name is complete: no search list of the machine is tried.
            found = socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM)
            answers = [str(entry[4][0]) for entry in found]
        except UnicodeError:
            failure = socket.gaierror(socket.EAI_NONAME, "not a host name")
        except OSError as error:
            failure = error
        try:
            loop.call_soon_threadsafe(tell, answers, failure)
        except RuntimeError:
            return  # The loop is closed; nobody waits any more.

    threading.Thread(target=look, name="lookup", daemon=True).start()
    return await done


_MOST_TRIED = 4
_TRY_S = 4.0
_BUFFER = 64 << 10


class OpenConnection(NamedTuple):
    """An open connection and the address at its other end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str


@cache
def public_tls() -> ssl.SSLContext:
    """Checks certificates against the machine's authorities. Made once: reading those takes a
    while.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def connected(
    resolver: Resolver, host: str, port: int, tls: ssl.SSLContext | None = None
) -> AsyncIterator[OpenConnection]:
    """A connection to `host`, closed at once and for good when the block is left, however it is
    left.

    Raises Refused, or Unavailable if nobody answers there or the certificate is not for this host.
    """
    line = await dial(host, port, await resolver.resolve(host, port), tls)
    try:
        yield line
    finally:
        line.writer.transport.abort()


async def dial(
    host: str, port: int, judged: tuple[str, ...], tls: ssl.SSLContext | None = None
) -> OpenConnection:
    """Tries the judged addresses in turn."""
    failure: Unavailable | None = None
    for address in judged[:_MOST_TRIED]:
        try:
            async with asyncio.timeout(_TRY_S):
                return await _open(host, address, port, tls)
        except ssl.SSLCertVerificationError as error:
            raise Unavailable(
                f"the certificate of {host} is not valid: {error.verify_message}", host=host
            ) from None
        except ssl.SSLError as error:
            failure = Unavailable(
                f"{host}:{port} does not speak TLS as we do: {error.reason or 'handshake failed'}",
                host=host,
            )
        except TimeoutError:
            failure = Unavailable(f"{host}:{port} did not answer in time", host=host)
        except OSError as error:
            reason = (
                "it broke off"
                if isinstance(error, ConnectionResetError)
                else (error.strerror or "no connection").lower()
            )
            failure = Unavailable(f"{host}:{port} cannot be reached: {reason}", host=host)
    assert failure is not None
    raise failure


async def _open(host: str, address: str, port: int, tls: ssl.SSLContext | None) -> OpenConnection:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    handle = socket.socket(family, socket.SOCK_STREAM)
    try:
        handle.setblocking(False)
        await loop.sock_connect(handle, (address, port))
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        handle.close()
        raise
    # From here on the socket is the transport's, which closes it if the handshake fails or is
    # cancelled.
    name = host if tls is not None else None
    reader, writer = await asyncio.open_connection(
        sock=handle, ssl=tls, server_hostname=name, limit=_BUFFER
    )
    if addresses.parse(str(writer.get_extra_info("peername")[0])) != addresses.parse(address):
        writer.transport.abort()
        raise Unavailable(f"{host} was not reached at the address that was checked", host=host)
    return OpenConnection(reader, writer, address)
