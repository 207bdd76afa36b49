"""Server-sent events, cut out of a stream of bytes. The reader sees the same events however the
bytes are chunked.
"""

from msgspec import Struct

from palyra.core.errors import Unavailable

_MOST_ID = 1024


class ServerEvent(Struct, frozen=True):
    """`id` is the event's own; without one it is empty."""

    event: str
    data: bytes
    id: str = ""


class EventReader:
    """Feed it chunks; it returns the events that they complete. An event that was cut off is not
    returned.

    `last_id` and `retry_ms` are as of the last complete line. More than `most` bytes without the
    end of an event are refused.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._name = self._id = ""
        self._after_cr = False
        self.last_id = ""
        self.retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest.append(lines[0])
        self._rest_size += len(lines[0])
        found: list[ServerEvent] = []
        if len(lines) > 1:
            lines[0] = b"".join(self._rest)
            for line in lines[:-1]:
                event = self._line(line)
                if event is not None:
                    found.append(event)
            self._rest = [lines[-1]]
            self._rest_size = len(lines[-1])
        if self._most is not None and self._rest_size + self._data_size > self._most:
            raise Unavailable(f"it sent a message of more than {self._most:,} bytes")
        return found

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            event = (
                ServerEvent(self._name or "message", b"\n".join(self._data), self._id)
                if self._data
                else None
            )
            self._data, self._data_size, self._name, self._id = [], 0, "", ""
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
        elif field == b"event":
            self._name = value[:64].decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value and len(value) <= _MOST_ID:
            self.last_id = self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 9:
            self.retry_ms = int(value)
        return None
