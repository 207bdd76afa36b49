"""What is kept of a command's output: its beginning and its end, and exactly how much lies between.

Progress goes out in whole lines and not more often than a watcher can read; what is told live is
never more than what is kept.
"""

import codecs
import time
from collections import deque
from collections.abc import Callable

KEPT = 1 << 20
_EVERY_S = 0.1
_AT_ONCE = 4 << 10


class OutputBuffer:
    """The first and the last `most / 2` bytes of a stream of any length."""

    def __init__(self, most: int = KEPT) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        if chunk[room:]:
            self._tail.append(chunk[room:])
            self._tail_size += len(chunk[room:])
        while self._tail and self._tail_size - len(self._tail[0]) >= self._half:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> tuple[str, int]:
        """What was kept, and how many bytes were left out in the middle."""
        tail = b"".join(self._tail)
        if self.total <= self._half * 2:
            return (bytes(self._head) + tail).decode(errors="replace"), 0
        head, tail = _whole_end(bytes(self._head)), _whole_start(tail[-self._half :])
        dropped = self.total - len(head) - len(tail)
        return (
            (
                f"{head.decode(errors='replace')}\n… [{dropped:,} bytes left out]"
                f" …\n{tail.decode(errors='replace')}"
            ),
            dropped,
        )


class OutputProgress:
    """Hands on output as it comes, in whole lines: what is redacted line by line must not be cut
    inside one.
    """

    def __init__(
        self, tell: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._now = now
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""
        self._last = float("-inf")

    def add(self, chunk: bytes) -> None:
        self._waiting += self._decoder.decode(chunk)
        if self._now() - self._last >= _EVERY_S:
            self.flush(whole_lines=True)

    def flush(self, *, whole_lines: bool = False) -> None:
        end = (
            max(self._waiting.rfind("\n"), self._waiting.rfind("\r")) + 1
            if whole_lines
            else len(self._waiting)
        )
        ready, self._waiting = self._waiting[:end], self._waiting[end:]
        if len(self._waiting) > _AT_ONCE:
            # A line that does not end is not worth its memory here; the result has it.
            self._waiting = ""
        if not ready:
            return
        if len(ready) > _AT_ONCE:
            cut = ready.find("\n", len(ready) - _AT_ONCE) + 1 or len(ready) - _AT_ONCE
            ready = f"… [{cut:,} characters skipped]\n{ready[cut:]}"
        self._last = self._now()
        self._tell(ready)


def _whole_end(data: bytes) -> bytes:
    """Without a character that is cut off at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if needs > back else data
    return data


def _whole_start(data: bytes) -> bytes:
    """Without the rest of a character whose beginning was left out."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
