"""One HTTP request and its answer, over a connection of its own. Every part of the answer has a
limit.

The framing is read by h11, which refuses what two readers could read differently. Nothing here
follows redirects or retries.

Bodies as they were before they were compressed, never more than a limit of them, however small
they came in.
"""

import ssl
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from palyra import __version__
from palyra.core.errors import InvalidInput, Unavailable
from palyra.tools.net import resolve
from palyra.tools.net.resolve import OpenConnection, Resolver
from palyra.tools.net.urls import Url

if TYPE_CHECKING:
    import h11

# What we ask for and understand. Brotli and zstd are not in it: a body in them is refused, not
# guessed at.
ACCEPTED = "gzip, deflate"
_MOST_MEMBERS = 64


class Plain:
    """Passes a body through until `most` bytes have come."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False

    def feed(self, data: bytes) -> bool:
        """Takes more of the body; false when nothing more is wanted."""
        room = self._most - self._size
        if len(data) > room:
            self.cut = True
            data = data[:room]
        self._parts.append(data)
        self._size += len(data)
        return not self.cut

    def finish(self) -> bytes:
        return b"".join(self._parts)


class Inflated(Plain):
    """Decompresses gzip and deflate piece by piece, so that a bomb costs no more than the limit."""

    def __init__(self, most: int, wbits: int) -> None:
        super().__init__(most)
        self._wbits = wbits
        self._inflater = zlib.decompressobj(wbits)
        self._members = 1

    def feed(self, data: bytes) -> bool:
        while data:
            if self._inflater.eof:
                # gzip files may be several in a row; what follows a deflate stream is padding.
                self._members += 1
                if self._wbits < 16 or self._members > _MOST_MEMBERS:
                    return True
                self._inflater = zlib.decompressobj(self._wbits)
            try:
                out = self._inflater.decompress(data, self._most - self._size + 1)
            except zlib.error:
                if self._members > 1:
                    return True  # Browsers overlook what follows a complete file, and so do we.
                raise InvalidInput("the body is not compressed as its header says") from None
            if not super().feed(out):
                return False
            data = self._inflater.unconsumed_tail or self._inflater.unused_data
        return True


class Deflated(Inflated):
    """`deflate` means zlib by the standard and raw deflate by custom; the first byte tells
    which.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most, zlib.MAX_WBITS)
        self._begun = False

    def feed(self, data: bytes) -> bool:
        if data and not self._begun:
            self._begun = True
            if data[0] & 0x0F != 8:
                self._wbits = -zlib.MAX_WBITS
                self._inflater = zlib.decompressobj(self._wbits)
        return super().feed(data)


def decoder(encoding: str, most: int) -> Plain:
    """Return the decoder of a body with this Content-Encoding."""
    match encoding.strip().lower():
        case "" | "identity":
            return Plain(most)
        case "gzip" | "x-gzip":
            return Inflated(most, 16 + zlib.MAX_WBITS)
        case "deflate":
            return Deflated(most)
        case _:
            raise InvalidInput(f"the body is encoded as {encoding[:40]!r}, which was not asked for")


_HEADER_BYTES = 64 << 10
_PIECE = 64 << 10
_ACCEPT = (
    "text/html, application/xhtml+xml, text/plain, application/json, application/pdf;q=0.9,"
    " */*;q=0.5"
)


class HttpRequest(Struct, frozen=True, kw_only=True):
    """Host, Connection, Content-Length and Accept-Encoding are not among `headers`: they follow
    from the rest.
    """

    method: str
    url: Url
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


class FetchedResponse(Struct, frozen=True, kw_only=True):
    """`headers` has lower-case names; repeated ones are joined by commas. `cut`: the body went on
    beyond the limit.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    cut: bool = False
    received: int = 0


class Http:
    """Sends requests to judged addresses. `tls` replaces the machine's certificate authorities."""

    def __init__(self, resolver: Resolver, *, tls: ssl.SSLContext | None = None) -> None:
        self.resolver = resolver
        self._tls = tls

    async def send(self, request: HttpRequest, most: int) -> FetchedResponse:
        """The answer with at most so many bytes of its body, decompressed. Raises Refused,
        Unavailable or InvalidInput.
        """
        url = request.url
        tls = (self._tls or resolve.public_tls()) if url.scheme == "https" else None
        async with resolve.connected(self.resolver, url.host, url.port, tls) as line:
            try:
                return await _converse(line, request, most)
            except OSError:
                raise Unavailable(
                    f"{url.authority} broke off the connection", host=url.authority
                ) from None


async def _converse(line: OpenConnection, request: HttpRequest, most: int) -> FetchedResponse:
    import h11

    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER_BYTES)
    line.writer.write(connection.send(_opening(request)) or b"")
    if request.body:
        line.writer.write(connection.send(h11.Data(data=request.body)) or b"")
    line.writer.write(connection.send(h11.EndOfMessage()) or b"")
    await line.writer.drain()
    answer = _Answer(connection, line, request.url.authority)
    try:
        return await answer.read(most)
    except h11.RemoteProtocolError:
        if answer.begun:
            raise Unavailable(
                f"{request.url.authority} broke off or garbled its answer before the end of it"
            ) from None
        raise InvalidInput(
            f"{request.url.authority} answered with something that is not proper HTTP"
        ) from None


def _opening(request: HttpRequest) -> "h11.Request":
    import h11

    headers = [
        ("Host", request.url.authority),
        ("User-Agent", f"palyra/{__version__}"),
        *request.headers,
    ]
    if not any(name.lower() == "accept" for name, _ in request.headers):
        headers.append(("Accept", _ACCEPT))
    headers += [("Accept-Encoding", ACCEPTED), ("Connection", "close")]
    if request.body is not None:
        headers.append(("Content-Length", str(len(request.body))))
    return h11.Request(method=request.method, target=request.url.target, headers=headers)


class _Answer:
    def __init__(self, connection: "h11.Connection", line: OpenConnection, host: str) -> None:
        self._connection = connection
        self._line = line
        self._host = host
        self.begun = False

    async def read(self, most: int) -> FetchedResponse:
        import h11

        while not isinstance(event := await self._next(), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise Unavailable(
                    f"{self._host} closed the connection without an answer", host=self._host
                )
        self.begun = True
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        body, received = Plain(most), 0
        while isinstance(piece := await self._next(), h11.Data):
            if not received:
                # Only now: an answer without a body may name any encoding.
                body = decoder(headers.get("content-encoding", ""), most)
            received += len(piece.data)
            # What is inside may be small for ever: the bytes on the wire are limited as well.
            if not body.feed(bytes(piece.data)) or received > most:
                body.cut = True
                break
        return FetchedResponse(
            status=event.status_code,
            headers=headers,
            body=body.finish(),
            cut=body.cut,
            received=received,
        )

    async def _next(self) -> object:
        import h11

        while (event := self._connection.next_event()) is h11.NEED_DATA:
            self._connection.receive_data(await self._line.reader.read(_PIECE))
        return event
