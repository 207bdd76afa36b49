"""Long work on a thread, told over server-sent events: `progress` now and then, `report` at the
end. It stops when nobody waits.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from palyra.api.calls import SSE, HttpResponse, StreamingResponse, encode, ok
from palyra.api.watch import HEARTBEAT

# Work that says from time to time how far it is.
Work = Callable[[Callable[[int], None]], Any]


class _Abandoned(Exception):
    """Nobody waits for this any more."""


async def told(
    headers: Mapping[bytes, bytes], work: Work, progress: Callable[[int], Any]
) -> HttpResponse | StreamingResponse:
    """The result as JSON, or as a stream if the caller asks for one; `progress` makes an event of
    how far the work is.
    """
    if SSE in headers.get(b"accept", b""):
        return StreamingResponse(SSE, _events(work, progress), HEARTBEAT)
    return ok(await asyncio.to_thread(work, lambda count: None))


async def _events(work: Work, progress: Callable[[int], Any]) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    seen: asyncio.Queue[int] = asyncio.Queue()
    abandoned = False

    def so_far(count: int) -> None:
        if abandoned:
            raise _Abandoned
        loop.call_soon_threadsafe(seen.put_nowait, count)

    task = asyncio.create_task(asyncio.to_thread(work, so_far))
    try:
        while not task.done():
            waiting = asyncio.create_task(seen.get())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if waiting.done() and not waiting.cancelled():
                yield b"event: progress\ndata: %b\n\n" % encode(progress(waiting.result()))
        yield b"event: report\ndata: %b\n\n" % encode(task.result())
    finally:
        abandoned = True
        task.cancel()
