"""Connections to judged addresses. The name is used for the certificate and never looked up
again.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import NamedTuple

from palyra.core.errors import Unavailable
from palyra.tools.net import addresses
from palyra.tools.net.resolve import Resolver

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
