"""Blocking work of a tool off the event loop, with its failures as results.

The rule: `execute` gives a ToolResult for everything that can go wrong with files; only a cancel
rises.
"""

import asyncio
import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event as Flag
from typing import Any, TypeVar

from palyra.core.errors import Forbidden, InvalidInput, PalyraError, Unavailable
from palyra.core.tools import ToolResult
from palyra.system import thread_pool

T = TypeVar("T")

_WORLD = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EFBIG}
)

_WORDS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space left on the disk; nothing was changed",
    errno.EDQUOT: "the disk quota is used up; nothing was changed",
    errno.EFBIG: "the file would be larger than the system allows; nothing was changed",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "the path goes round in circles through symlinks",
}


async def results_in(
    job: Callable[[Flag], ToolResult], about: str, *, settle: bool = False
) -> ToolResult:
    """Run `job` on a thread; an expected failure becomes a result.

    A cancel raises the flag the job was given. With `settle` it then waits until the job has ended,
    because an effect must have happened or not before anybody hears that the call was cancelled.
    """
    try:
        with family(about):
            return await off_loop(job, settle=settle)
    except Forbidden as denial:
        return ToolResult(outcome="denied", text=denial.message, data=_data(denial))
    except PalyraError as error:
        return ToolResult(outcome="error", text=error.message, data=_data(error))


@contextmanager
def family(about: str) -> Iterator[None]:
    """The system's errors about files, in words and in our family of errors."""
    try:
        yield
    except OSError as error:
        kind = Unavailable if error.errno in _WORLD else InvalidInput
        raise kind(
            f"{about}: {_WORDS.get(error.errno or 0) or str(error)}", errno=error.errno or 0
        ) from error


async def off_loop(job: Callable[[Flag], T], *, settle: bool = False) -> T:
    stop = Flag()
    work = thread_pool.everyday.run(job, stop)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        # Nobody will ask for what the job raises from here on; looking at it once keeps the loop
        # from complaining.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        if settle:
            await asyncio.wait([work])
        raise


def _data(error: PalyraError) -> dict[str, Any]:
    return {"code": error.code, **error.details}
