"""Pipes between the daemon and a program, read and written without blocking on whatever event loop
runs.

The rule: nobody waits for a descriptor in a thread, so a cancel is never late.
"""

import asyncio
import contextlib
import os

CHUNK = 64 << 10


class PipeReader:
    """The reading end of a pipe. It reads only when asked, so a program that floods waits for
    us.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._last = False
        self._waiting: asyncio.Future[None] | None = None

    async def read(self, most: int = CHUNK) -> bytes:
        """Some bytes, or none at the end."""
        while True:
            if self._descriptor < 0:
                return b""
            try:
                return os.read(self._descriptor, most)
            except BlockingIOError:
                if self._last:
                    return b""
                self._waiting = asyncio.get_running_loop().create_future()
                await readable(self._descriptor, self._waiting)

    def finish(self) -> None:
        """End after giving what is there: no process that counts can write any more, whatever else
        may hold the other side.
        """
        self._last = True
        if self._waiting is not None:
            _resolve(self._waiting)

    async def read_all(self, most: int) -> bytes:
        """Everything up to the end, or so much of it."""
        data = bytearray()
        while len(data) < most and (chunk := await self.read(min(CHUNK, most - len(data)))):
            data += chunk
        return bytes(data)

    def at_hand(self) -> bytes:
        """Return what can be read without waiting, at most a chunk."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self._descriptor, CHUNK) if self._descriptor >= 0 else b""
        return b""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Writer:
    """The writing end of a pipe. A reader that went away is not an error of ours."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._descriptor >= 0:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await writable(self._descriptor)
            except BrokenPipeError:
                self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


async def readable(descriptor: int, ready: asyncio.Future[None] | None = None) -> None:
    """Until there is something to read, or until somebody resolves `ready`."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future() if ready is None else ready
    loop.add_reader(descriptor, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(descriptor, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def held(data: bytes, name: str) -> int:
    """A descriptor from which exactly `data` can be read, without a file anywhere."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
