"""Server-sent events as streamable HTTP uses them: data, the event's id for taking the stream up
again, the wait before that.
"""

from msgspec import Struct

from palyra.core.errors import Unavailable
from palyra.features.mcp.jsonrpc import MOST_MESSAGE_BYTES

_MOST_ID = 1024


class SseEvent(Struct, frozen=True):
    data: bytes
    name: str = "message"


class Events:
    """Feed it chunks, it returns the events they complete. `last_id` and `retry_ms` are as of the
    last complete line.
    """

    def __init__(self, most: int = MOST_MESSAGE_BYTES) -> None:
        self._most = most
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._name = ""
        self._after_cr = False
        self.last_id = ""
        self.retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest.append(lines[0])
        self._rest_size += len(lines[0])
        found: list[SseEvent] = []
        if len(lines) > 1:
            lines[0] = b"".join(self._rest)
            for line in lines[:-1]:
                event = self._line(line)
                if event is not None:
                    found.append(event)
            self._rest = [lines[-1]]
            self._rest_size = len(lines[-1])
        if self._rest_size + self._data_size > self._most:
            raise Unavailable(f"it sent a message of more than {self._most:,} bytes")
        return found

    def _line(self, line: bytes) -> SseEvent | None:
        if not line:
            event = (
                SseEvent(b"\n".join(self._data), self._name or "message") if self._data else None
            )
            self._data, self._data_size, self._name = [], 0, ""
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value) + 1
        elif field == b"event":
            self._name = value[:64].decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value and len(value) <= _MOST_ID:
            self.last_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 9:
            self.retry_ms = int(value)
        return None
