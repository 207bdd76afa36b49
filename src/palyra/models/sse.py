"""Cuts a byte stream into server-sent events. It sees the same events however the bytes are
chunked, and never a part of one.
"""

from typing import Final

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """One event grew past the limit; the stream is given up."""


class Splitter:
    """Feed it chunks; it returns the data of the events they complete. Event names, ids and
    comments are left out.

    Bytes without an event boundary are only collected, so that a long event costs linear time
    whatever its chunks.
    """

    __slots__ = ("_after_cr", "_limit", "_parts", "_size", "_started")

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._limit = limit
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._after_cr or b"\r" in chunk:
            chunk = self._line_feeds(chunk)
        parts = self._parts
        if b"\n\n" not in chunk and not (chunk[:1] == b"\n" and parts and parts[-1][-1:] == b"\n"):
            self._keep(chunk)
            return []
        if parts:
            parts.append(chunk)
            chunk = b"".join(parts)
            parts.clear()
            self._size = 0
        if not self._started:
            chunk = self._begin(chunk)
        complete, _, rest = chunk.rpartition(b"\n\n")
        if rest:
            self._keep(rest)
        return _data_of(complete)

    def end(self) -> list[bytes]:
        """Return what is left when the stream is over: an event whose blank line never came."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return _data_of(self._begin(rest) if not self._started else rest)

    def _keep(self, chunk: bytes) -> None:
        if not chunk:
            return
        self._size += len(chunk)
        if self._size > self._limit:
            raise EventTooLarge(f"an event is larger than {self._limit} bytes")
        self._parts.append(chunk)

    def _line_feeds(self, chunk: bytes) -> bytes:
        """CRLF and CR as LF. A CR at the end counts at once; an LF that follows in the next chunk
        belongs to it.
        """
        if not chunk:
            return chunk
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
            if not chunk:
                return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _begin(self, stream: bytes) -> bytes:
        self._started = True
        return stream.removeprefix(_BOM)


def _data_of(events: bytes) -> list[bytes]:
    found = []
    for event in events.split(b"\n\n"):
        if event.startswith(b"data:") and b"\n" not in event:
            found.append(event[5:])
        elif event:
            lines = [
                line[5:].removeprefix(b" ")
                for line in event.split(b"\n")
                if line.startswith(b"data:")
            ]
            if lines:
                found.append(b"\n".join(lines))
    return found
