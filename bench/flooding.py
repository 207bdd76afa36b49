"""`python -m bench.flooding NAME PORT SECONDS [SECRET [SESSION]]` floods one door of a daemon on
this machine, for so many seconds.

It is a process of its own, so that what it costs is not what is measured. Each flood is one thing
that a hostile client does.
"""

import asyncio
import os
import selectors
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count

_BUFFER = 1 << 20


@dataclass
class Target:
    port: int
    seconds: float
    secret: str = ""
    session: str = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def until(self) -> float:
        return time.monotonic() + self.seconds

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=2)


def _pour(target: Target, opening: bytes, block: bytes, *, reads: bool = True) -> None:
    """Send the same block for as long as it lasts; connect again whenever the daemon has had
    enough.
    """
    end = target.until
    while time.monotonic() < end:
        with suppress(OSError), target.open() as connection:
            connection.sendall(opening)
            connection.setblocking(False)
            _push(connection, block, end, reads=reads)


def _push(connection: socket.socket, block: bytes, end: float, *, reads: bool) -> None:
    events = selectors.EVENT_WRITE | (selectors.EVENT_READ if reads else 0)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, events)
        at = 0
        while time.monotonic() < end:
            for _, ready in selector.select(0.1):
                if ready & selectors.EVENT_READ and not connection.recv(_BUFFER):
                    return
                if ready & selectors.EVENT_WRITE:
                    at = (at + connection.send(memoryview(block)[at:])) % len(block)


@contextmanager
def _many(target: Target, number: int, opening: bytes = b"") -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    try:
        for _ in range(number):
            with suppress(OSError):
                opened.append(target.open())
                if opening:
                    opened[-1].sendall(opening)
        yield opened
    finally:
        for each in opened:
            each.close()


def pipelining(target: Target) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode()
    _pour(target, b"", request * 10_000)


def tiny_chunks(target: Target) -> None:
    head = (
        f"POST /v1/sessions HTTP/1.1\r\nHost: {target.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    _pour(target, head.encode(), b"1\r\nx\r\n" * 100_000)


def huge_headers(target: Target) -> None:
    end = target.until
    head = f"GET / HTTP/1.1\r\nHost: {target.host}\r\nX-Large: ".encode() + b"x" * 60_000
    while time.monotonic() < end:
        with _many(target, 500, head):
            time.sleep(0.5)


def slow_bodies(target: Target) -> None:
    end = target.until
    head = (
        f"POST /v1/hooks/{'0' * 26} HTTP/1.1\r\nHost: {target.host}\r\nContent-Length:"
        " 60000\r\n\r\n".encode()
    )
    with _many(target, 500, head + b"x" * 50_000) as opened:
        while time.monotonic() < end:
            for each in opened:
                with suppress(OSError):
                    each.send(b"x")
            time.sleep(0.2)


def silent(target: Target) -> None:
    """Connections that say nothing: half a handshake where there is TLS."""
    end = target.until
    while time.monotonic() < end:
        with _many(target, 1_500):
            time.sleep(0.5)


def half_tls(target: Target) -> None:
    """A ClientHello, and nothing after it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    hello, end = outgoing.read(), target.until
    while time.monotonic() < end:
        with _many(target, 500, hello):
            time.sleep(0.2)


def _upgrade(target: Target) -> bytes:
    lines = (
        f"GET /v1/sessions/{target.session}/ws HTTP/1.1",
        f"Host: {target.host}",
        f"Authorization: Bearer {target.secret}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def _upgraded(target: Target, first: bytes, block: bytes, *, reads: bool = True) -> None:
    end = target.until
    while time.monotonic() < end:
        with suppress(OSError), target.open() as connection:
            connection.sendall(_upgrade(target))
            if b" 101 " not in connection.recv(_BUFFER):
                time.sleep(0.1)
                continue
            connection.sendall(first)
            connection.setblocking(False)
            _push(connection, block, end, reads=reads)


def _frame(opcode: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    return bytes([opcode | (0x80 if last else 0), 0x80 | len(payload)]) + bytes(4) + payload


def ws_empty(target: Target) -> None:
    _upgraded(target, _frame(1, b"x", last=False), _frame(0, last=False) * 100_000)


def ws_fragments(target: Target) -> None:
    _upgraded(target, _frame(1, b"x", last=False), _frame(0, b"x", last=False) * 100_000)


def ws_pings(target: Target) -> None:
    _upgraded(target, b"", _frame(9, b"x" * 100) * 10_000, reads=False)


def ws_messages(target: Target) -> None:
    _upgraded(target, b"", _frame(1, b'{"type":"ping"}') * 20_000)


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _CONTINUATION = 0, 1, 3, 4, 6, 9


def _h2(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


def _call(target: Target) -> bytes:
    """The headers of a call, in HPACK without a table: method, scheme, path, authority,
    content-type, te.
    """
    path, authority = b"/palyra.v1.Sessions/List", target.host.encode()
    return b"".join(
        (
            b"\x83\x86\x04",
            bytes([len(path)]) + path,
            b"\x01" + bytes([len(authority)]) + authority,
            b"\x0f\x10\x10application/grpc",
            b"\x00\x02te\x08trailers",
        )
    )


def _over_h2(target: Target, block: Callable[[], bytes], *, reads: bool = True) -> None:
    end = target.until
    while time.monotonic() < end:
        with suppress(OSError), target.open() as connection:
            connection.sendall(_PREFACE + _h2(_SETTINGS))
            connection.setblocking(False)
            _push(connection, block(), min(end, time.monotonic() + 5), reads=reads)


def h2_resets(target: Target) -> None:
    head = _call(target)
    _over_h2(
        target,
        lambda: b"".join(
            _h2(_HEADERS, 4, stream, head) + _h2(_RESET, 0, stream, b"\0\0\0\x08")
            for stream in range(1, 60_001, 2)
        ),
    )


def h2_calls(target: Target) -> None:
    head = _call(target)
    _over_h2(
        target, lambda: b"".join(_h2(_HEADERS, 5, stream, head) for stream in range(1, 60_001, 2))
    )


def h2_pings(target: Target) -> None:
    _over_h2(target, lambda: _h2(_PING, 0, 0, bytes(8)) * 50_000, reads=False)


def h2_settings(target: Target) -> None:
    _over_h2(target, lambda: _h2(_SETTINGS) * 50_000, reads=False)


def h2_empty_data(target: Target) -> None:
    _over_h2(target, lambda: _h2(_HEADERS, 4, 1, _call(target)) + _h2(_DATA, 0, 1) * 100_000)


def h2_continuations(target: Target) -> None:
    _over_h2(
        target, lambda: _h2(_HEADERS, 0, 1, _call(target)) + _h2(_CONTINUATION, 0, 1) * 100_000
    )


def quic_junk(target: Target) -> None:
    """First packets with tokens that nobody gave out: looking at one takes the daemon a key."""
    end = target.until
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("127.0.0.1", target.port))
        while time.monotonic() < end:
            head = (
                b"\xc0\x00\x00\x00\x01\x08"
                + os.urandom(8)
                + b"\x08"
                + os.urandom(8)
                + b"\x41\x00"
                + os.urandom(256)
                + b"\x43\xb8"
            )
            with suppress(OSError):
                connection.send(head + bytes(1_200 - len(head)))


def quic_large(target: Target) -> None:
    """Datagrams as large as they can be on this machine, full of pings of nobody."""
    end = target.until
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("127.0.0.1", target.port))
        while time.monotonic() < end:
            with suppress(OSError):
                connection.send(b"\xc0\x00\x00\x00\x01\x08" + b"\x01" * 60_000)


def h3_resets(target: Target) -> None:
    asyncio.run(_h3(target, resets=True))


def h3_empty_frames(target: Target) -> None:
    asyncio.run(_h3(target, resets=False))


async def _h3(target: Target, *, resets: bool) -> None:
    from aioquic.asyncio import connect
    from aioquic.h3.connection import H3Connection
    from aioquic.quic.configuration import QuicConfiguration

    settings = QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE)
    end = target.until
    host = target.host.encode()
    headers = [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":authority", host),
        (b":path", b"/v1/hooks/" + b"0" * 26),
    ]
    while time.monotonic() < end:
        with suppress(ConnectionError, TimeoutError, AssertionError, ValueError):
            async with (
                asyncio.timeout(end - time.monotonic() + 1),
                connect("127.0.0.1", target.port, configuration=settings) as made,
            ):
                quic = made._quic
                h3 = H3Connection(quic)
                for turn in count():
                    if time.monotonic() > end or quic._close_event is not None:
                        break
                    stream = quic.get_next_available_stream_id()
                    h3.send_headers(stream, headers)
                    if resets:
                        quic.reset_stream(stream, 0x10C)
                    else:
                        quic.send_stream_data(stream, b"\x00\x00" * 10_000)
                    made.transmit()
                    await asyncio.sleep(0 if turn % 10 else 0.01)


def worker_messages(target: Target) -> None:
    """The smallest message that a stranger may send, again and again."""
    body = b"\x81\xa2is\xadask_authority"
    block = (struct.pack(">I", len(body)) + body) * 20_000
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    end = target.until
    while time.monotonic() < end:
        with suppress(OSError), target.open() as plain, context.wrap_socket(plain) as connection:
            connection.settimeout(0.5)
            while time.monotonic() < end:
                connection.sendall(block)


FLOODS: dict[str, Callable[[Target], None]] = {
    each.__name__: each
    for each in (
        pipelining,
        tiny_chunks,
        huge_headers,
        slow_bodies,
        silent,
        half_tls,
        ws_empty,
        ws_fragments,
        ws_pings,
        ws_messages,
        h2_resets,
        h2_calls,
        h2_pings,
        h2_settings,
        h2_empty_data,
        h2_continuations,
        quic_junk,
        quic_large,
        h3_resets,
        h3_empty_frames,
        worker_messages,
    )
}


if __name__ == "__main__":
    name, port, seconds, *more = sys.argv[1:]
    FLOODS[name](Target(int(port), float(seconds), *more))
