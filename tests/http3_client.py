"""An HTTP/3 client that can do what no well-behaved one does: change its port, stop reading, send
what it likes.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    ProtocolNegotiated,
    QuicEvent,
    StopSendingReceived,
    StreamReset,
)

PATIENCE_S = 20.0


class Stream:
    """An answer as it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = self.reset = self.stopped = False
        self.news = asyncio.Event()

    async def until(self, seen: Any) -> "Stream":
        async with asyncio.timeout(PATIENCE_S):
            while not seen(self):
                self.news.clear()
                await self.news.wait()
        return self

    async def whole(self) -> "Stream":
        return await self.until(lambda each: each.ended or each.reset)


class Client(QuicConnectionProtocol):
    def __init__(self, quic: QuicConnection, stream_handler: Any = None) -> None:
        super().__init__(quic, stream_handler)
        self.quic = quic
        self.h3: H3Connection | None = None
        self.streams: dict[int, Stream] = {}
        self.terminated: ConnectionTerminated | None = None
        self.reading = True
        self.early: list[Any] = []

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.h3 = H3Connection(self._quic)
        elif isinstance(event, ConnectionTerminated):
            self.terminated = event
            for stream in self.streams.values():
                stream.reset = True
                stream.news.set()
        elif (
            isinstance(event, StreamReset | StopSendingReceived) and event.stream_id in self.streams
        ):
            stream = self.streams[event.stream_id]
            stream.reset = stream.reset or isinstance(event, StreamReset)
            stream.stopped = stream.stopped or isinstance(event, StopSendingReceived)
            stream.news.set()
        for heard in self.h3.handle_event(event) if self.h3 else ():
            if not isinstance(heard, HeadersReceived | DataReceived):
                continue
            stream = self.streams[heard.stream_id]
            if isinstance(heard, HeadersReceived):
                stream.headers = {name.decode(): value.decode() for name, value in heard.headers}
                stream.status = int(stream.headers[":status"])
            else:
                stream.body += heard.data
            stream.ended = stream.ended or heard.stream_ended
            stream.news.set()

    def ask(
        self,
        method: str,
        path: str,
        token: str = "",
        *,
        host: str = "localhost",
        headers: Any = (),
        body: bytes | None = b"",
    ) -> tuple[int, Stream]:
        """Begin a request; with `body=None` more of it follows."""
        assert self.h3 is not None
        stream_id = self._quic.get_next_available_stream_id()
        self.streams[stream_id] = Stream()
        sent = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", host.encode()),
            (b":path", path.encode()),
        ]
        if token:
            sent.append((b"authorization", f"Bearer {token}".encode()))
        self.h3.send_headers(stream_id, [*sent, *headers], end_stream=body == b"")
        if body:
            self.h3.send_data(stream_id, body, end_stream=True)
        self.transmit()
        return stream_id, self.streams[stream_id]

    async def get(self, path: str, token: str = "", **more: Any) -> Stream:
        return await self.ask("GET", path, token, **more)[1].whole()

    async def move(self) -> int:
        """Go on from another UDP port, as behind a router that forgot us. The old one is closed."""
        old, port = self._transport, self._transport.get_extra_info("peername")
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: _Forward(self), remote_addr=port
        )
        self._transport = _Connected(cast("asyncio.DatagramTransport", transport))
        old.close()
        self._quic.send_ping(1)
        self.transmit()
        return int(transport.get_extra_info("sockname")[1])

    def datagram_received(self, data: Any, addr: Any) -> None:
        if self.reading:
            super().datagram_received(data, self._quic._network_paths[0].addr)


class _Forward(asyncio.DatagramProtocol):
    def __init__(self, client: Client) -> None:
        self._client = client

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._client.datagram_received(data, addr)


class _Connected:
    """A socket that sends to its one peer, whatever address it is given."""

    def __init__(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def sendto(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(data)

    def close(self) -> None:
        self._transport.close()

    def get_extra_info(self, name: str) -> Any:
        return self._transport.get_extra_info(name)


@asynccontextmanager
async def connected(
    port: int, authority: str, *, ticket: Any = None, on_ticket: Any = None
) -> AsyncIterator[Client]:
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=["h3"],
        server_name="localhost",
        cafile=authority,
        verify_mode=ssl.CERT_REQUIRED,
    )
    configuration.session_ticket = ticket
    loop = asyncio.get_running_loop()
    quic = QuicConnection(configuration=configuration, session_ticket_handler=on_ticket)
    transport, client = await loop.create_datagram_endpoint(
        lambda: Client(quic), remote_addr=("127.0.0.1", port)
    )
    client._transport = cast("asyncio.DatagramTransport", _Connected(transport))
    client.connect(("127.0.0.1", port))
    try:
        await asyncio.wait_for(client.wait_connected(), PATIENCE_S)
        yield client
    finally:
        client.close()
        client._transport.close()
