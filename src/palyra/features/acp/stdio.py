"""Messages over standard input and output, one a line: bounded, and whatever is no message is
answered and forgotten.

The library's own reader takes lines without end and stops at a line that is no object.
"""

import asyncio
import contextlib
import json
import threading
from typing import IO, Any

from palyra.core import json_rpc
from palyra.core.json_rpc import INVALID_REQUEST, PARSE_ERROR

MOST_BYTES = 32 << 20
_MOST_WAITING = 64
_LAST_ANSWERS_S = 20.0


class StdioTransport:
    """A transport of the library: `receive` gives the next message, None at the end.

    The library forgets what it works on at the end, so the end is told when what was asked before
    it is answered. Only a prompt is not waited for: its run goes on whatever becomes of the editor,
    and may last.
    """

    def __init__(self, lines: IO[bytes], out: IO[bytes]) -> None:
        self._lines = lines
        self._out = out
        self._writing = threading.Lock()
        self._received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_MOST_WAITING)
        self._loop = asyncio.get_running_loop()
        # The editor's own numbers, which may be anything.
        self._unanswered: list[Any] = []
        self._answered = asyncio.Event()
        threading.Thread(target=self._read, daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        message = await self._received.get()
        if message is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_answered(), _LAST_ANSWERS_S)
        elif "method" in message and "id" in message and message["method"] != "session/prompt":
            self._unanswered.append(message["id"])
        return message

    async def send(self, message: dict[str, Any]) -> None:
        try:
            # An editor that does not read must not stop us from hearing that it cancels.
            await asyncio.to_thread(self._write, message)
        finally:
            if "method" not in message and message["id"] in self._unanswered:
                self._unanswered.remove(message["id"])
                self._answered.set()

    async def _all_answered(self) -> None:
        while self._unanswered:
            self._answered.clear()
            await self._answered.wait()

    async def close(self) -> None:
        return

    def _read(self) -> None:
        for line in json_rpc.lines(self._lines, MOST_BYTES):
            if line is None:
                self._refuse(PARSE_ERROR, f"a message may have {MOST_BYTES} bytes")
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self._refuse(PARSE_ERROR, "this line is not JSON")
                continue
            if isinstance(message, dict) and isinstance(message.get("method", ""), str):
                self._put(message)
            else:
                self._refuse(
                    INVALID_REQUEST, "one message a line: an object with a method, or an answer"
                )
        self._put(None)

    def _put(self, message: dict[str, Any] | None) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._received.put(message), self._loop).result()
        except RuntimeError:
            return  # The loop has ended, and nobody is there to hear.

    def _refuse(self, code: int, message: str) -> None:
        self._write(json_rpc.failure(None, code, message))

    def _write(self, message: dict[str, Any]) -> None:
        with self._writing:
            self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._out.flush()
