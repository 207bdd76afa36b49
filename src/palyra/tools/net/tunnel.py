"""Tunnels of a proxy: bytes after CONNECT, or one plain HTTP request and its answer. Every byte is
counted.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from palyra.core.errors import InvalidInput, LimitExceeded, Unavailable
from palyra.tools.net.resolve import OpenConnection
from palyra.tools.net.urls import Url

if TYPE_CHECKING:
    import h11

_PIECE = 64 << 10
_HEAD_BYTES = 32 << 10
_FAREWELL_S = 1.0
# What is between two neighbours only, and what would tell a server about the proxy.
_NEIGHBOURLY = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"upgrade",
        b"host",
        b"expect",
    }
)


class ByteMeter:
    """Counts bytes, and stops everything under it at a limit."""

    def __init__(self, most: int, above: "ByteMeter | None" = None) -> None:
        self._most = most
        self._above = above
        self.sent = 0
        self.received = 0

    @property
    def total(self) -> int:
        return self.sent + self.received

    def branch(self) -> "ByteMeter":
        return ByteMeter(self._most, self)

    def add(self, *, sent: int = 0, received: int = 0) -> None:
        """Counts bytes that are about to pass. Raises LimitExceeded if they may not."""
        if self._above is not None:
            self._above.add(sent=sent, received=received)
        elif self.total + sent + received > self._most:
            raise LimitExceeded(f"more than {self._most:,} bytes through one gate")
        self.sent += sent
        self.received += received


class SandboxClient:
    """The process inside the sandbox, at the other end of the Unix socket."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, meter: ByteMeter
    ) -> None:
        import h11

        self.reader = reader
        self.writer = writer
        self.meter = meter
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        self._answered = False

    async def request(self) -> "h11.Request | None":
        """The first request, or none if the client leaves before it has made one. Raises
        InvalidInput if it is not proper HTTP.
        """
        import h11

        event = await self.event()
        return event if isinstance(event, h11.Request) else None

    async def event(self) -> object:
        import h11

        try:
            while (event := self.http.next_event()) is h11.NEED_DATA:
                if self.http.they_are_waiting_for_100_continue:
                    await self.send(h11.InformationalResponse(status_code=100, headers=[]))
                self.http.receive_data(await self.reader.read(_PIECE))
        except h11.RemoteProtocolError as error:
            raise InvalidInput(f"this is not proper HTTP: {error}") from None
        return event

    async def send(self, event: "h11.Event") -> None:
        import h11

        self._answered = self._answered or isinstance(event, h11.Response)
        data = self.http.send(event)
        if data:
            self.writer.write(data)
            await self.writer.drain()

    async def refuse(self, status: int, reason: str) -> None:
        """Says no in plain words, unless an answer has begun already."""
        import h11

        if self._answered:
            return
        self._answered = True
        body = f"palyra: {reason}\n".encode()
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        try:
            await self.send(
                h11.Response(status_code=status, headers=headers, reason=b"Refused by Palyra")
            )
            await self.send(h11.Data(data=body))
            await self.send(h11.EndOfMessage())
        except OSError:
            return  # Nobody is left to be told.
        await self.farewell()

    async def farewell(self) -> None:
        """Ends our side and lets the client end its own: closing at once could throw away what it
        has not read yet.
        """
        try:
            await _end(self.writer)
            async with asyncio.timeout(_FAREWELL_S):
                while await self.reader.read(_PIECE):
                    pass
        except (TimeoutError, OSError):
            return


async def _end(writer: asyncio.StreamWriter) -> None:
    """Ends our side when all that was written is on its way, however slowly it is read: what lies
    here is lost with the line.
    """
    if not writer.transport.is_closing():
        writer.transport.set_write_buffer_limits(0)
        await writer.drain()
        writer.write_eof()


async def tunnel(client: SandboxClient, line: OpenConnection) -> None:
    """Answers a CONNECT and carries bytes both ways until both sides have ended."""
    import h11

    try:
        await client.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
        early = client.http.trailing_data[0]
        if early:
            client.meter.add(sent=len(early))
            line.writer.write(early)
        await _both(
            _carry_up(client, line), _carry(line.reader, client.writer, client.meter, upwards=False)
        )
    except OSError:
        return  # One side is gone: that is how many tunnels end.
    finally:
        line.writer.transport.abort()


async def _both(up: Coroutine[Any, Any, None], down: Coroutine[Any, Any, None]) -> None:
    """Until both have ended or one has failed; then neither goes on."""
    tasks = [asyncio.ensure_future(up), asyncio.ensure_future(down)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _carry_up(client: SandboxClient, line: OpenConnection) -> None:
    """Carry bytes up. A server that stopped listening may have answered before: the other direction
    continues to its end.
    """
    try:
        await _carry(client.reader, line.writer, client.meter, upwards=True)
    except OSError:
        if not line.writer.transport.is_closing():
            raise  # It is the client that is gone.


async def _carry(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, meter: ByteMeter, *, upwards: bool
) -> None:
    while data := await source.read(_PIECE):
        meter.add(sent=len(data) if upwards else 0, received=0 if upwards else len(data))
        sink.write(data)
        await sink.drain()
    await _end(sink)


async def forward(
    client: SandboxClient, request: "h11.Request", url: Url, line: OpenConnection
) -> None:
    """Sends one request on, as if it were ours, and its answer back."""
    import h11

    server = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
    headers = [
        (b"Host", url.authority.encode()),
        *_onward(request.headers),
        (b"Connection", b"close"),
    ]
    opening = h11.Request(method=request.method, target=url.target, headers=headers)
    upload = asyncio.ensure_future(_upload(client, server, line, opening))
    try:
        await _beside(upload, _download(client, server, line))
    except h11.RemoteProtocolError:
        raise Unavailable(
            f"{url.authority} answered with something that is not proper HTTP"
        ) from None
    except h11.LocalProtocolError:
        raise InvalidInput("the request cannot be sent on as it is") from None
    finally:
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)
        line.writer.transport.abort()
    await client.farewell()


async def _beside(upload: "asyncio.Future[None]", download: Coroutine[Any, Any, None]) -> None:
    """Waits for the answer; it may come before the request has been sent. A failure of the upload
    ends both.
    """
    answer = asyncio.ensure_future(download)
    try:
        await asyncio.wait({upload, answer}, return_when=asyncio.FIRST_EXCEPTION)
        if (
            upload.done()
            and not upload.cancelled()
            and isinstance(upload.exception(), LimitExceeded | InvalidInput)
        ):
            await upload
        await answer
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)


async def _upload(
    client: SandboxClient, server: "h11.Connection", line: OpenConnection, opening: "h11.Request"
) -> None:
    import h11

    event: object = opening
    while isinstance(event, h11.Request | h11.Data | h11.EndOfMessage):
        # Trailers end here: nothing after the body is needed, and much can be smuggled in it.
        data = (
            server.send(h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event) or b""
        )
        client.meter.add(sent=len(data))
        line.writer.write(data)
        await line.writer.drain()
        if isinstance(event, h11.EndOfMessage):
            return
        event = await client.event()
    raise InvalidInput("the request ended before its body did")


async def _download(client: SandboxClient, server: "h11.Connection", line: OpenConnection) -> None:
    import h11

    while True:
        event = server.next_event()
        if event is h11.NEED_DATA:
            data = await line.reader.read(_PIECE)
            client.meter.add(received=len(data))
            server.receive_data(data)
        elif isinstance(event, h11.Response):
            headers = [*_onward(event.headers), (b"Connection", b"close")]
            await client.send(
                h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
            )
        elif isinstance(event, h11.Data):
            await client.send(h11.Data(data=event.data))
        elif isinstance(event, h11.EndOfMessage):
            await client.send(h11.EndOfMessage())
            return
        elif isinstance(event, h11.ConnectionClosed):
            raise Unavailable("the server closed the connection without an answer")


def _onward(headers: "h11._headers.Headers") -> list[tuple[bytes, bytes]]:
    """The headers that are meant for the other end. What Connection names is for neighbours too."""
    named = {
        name.strip().lower()
        for key, value in headers
        if key == b"connection"
        for name in value.split(b",")
    } - {
        b"content-length",
        b"transfer-encoding",
    }
    return [(key, value) for key, value in headers if key not in _NEIGHBOURLY and key not in named]
