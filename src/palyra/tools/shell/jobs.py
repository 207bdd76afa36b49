"""Commands that go on after their call: what they print, how they end, and what became of them if
the daemon died.

The rule: a job never outlives the daemon, and its record says so. A record that says "running" but
was written by another daemon means that the daemon died and the kernel ended the job with it.
"""

import asyncio
import contextlib
import os
import secrets
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import LimitExceeded, NotFound, PalyraError, Unavailable
from palyra.system.redactor import Redactor
from palyra.tools.sandbox.command import Exit
from palyra.tools.sandbox.process import Process
from palyra.tools.shell.runner import Runner, ShellCommand, ending

AT_ONCE = 8
REMEMBERED = 32
_HALF_RING = 512 << 10

State = Literal["running", "ended", "stopped", "lost", "failed"]


class ShellJob(Struct, kw_only=True):
    """The record of a job, kept as a file beside its output. `ending` is how it ended, in words."""

    job_id: str
    session_id: str
    command: str
    cwd: str
    state: State
    started_ms: int
    daemon: str
    hosts: tuple[str, ...] = ()
    ended_ms: int = 0
    ending: str = ""
    exit: Exit | None = None
    output_bytes: int = 0
    # What a person should know of the files that it left behind.
    notes: tuple[str, ...] = ()


class Ring:
    """The end of a stream in two files, so that it never takes more than twice half of its size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._older = path.with_suffix(".older")
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - open as long as the job
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._size += len(chunk)
        if self._size >= _HALF_RING:
            self._file.close()
            os.replace(self._path, self._older)
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115
            self._size = 0

    def close(self) -> None:
        self._file.close()


class Jobs:
    """All jobs of one daemon. `folder` belongs to it alone. What a job prints is on disk only as
    `redactor` lets it through.
    """

    def __init__(
        self,
        runner: Runner,
        folder: Path,
        redactor: Redactor,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._runner = runner
        self._redactor = redactor
        self._folder = folder
        self._now_ms = now_ms
        self._daemon = secrets.token_hex(8)
        self._jobs: dict[str, ShellJob] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[str] = set()

    async def start(self, session_id: str, wanted: ShellCommand) -> ShellJob:
        """Start a job and return when it runs."""
        known = self._load()
        running = [
            job for job in known.values() if job.state == "running" and job.session_id == session_id
        ]
        if len(running) >= AT_ONCE:
            raise LimitExceeded(
                f"{AT_ONCE} jobs are running in this session: stop one first with shell.stop"
            )
        job = ShellJob(
            job_id=secrets.token_hex(4),
            session_id=session_id,
            command=wanted.command,
            cwd=wanted.cwd,
            state="running",
            started_ms=self._now_ms(),
            daemon=self._daemon,
            hosts=wanted.hosts,
        )
        self._save(job)
        known[job.job_id] = job
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._follow(job, wanted, begun))
        self._tasks[job.job_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(job.job_id, None))
        try:
            await asyncio.shield(begun)
        except asyncio.CancelledError:
            await self._end(job.job_id)
            raise
        self._prune(session_id)
        return job

    def of(self, session_id: str) -> list[ShellJob]:
        return sorted(
            (job for job in self._load().values() if job.session_id == session_id),
            key=lambda job: job.started_ms,
        )

    def get(self, session_id: str, job_id: str) -> ShellJob:
        job = self._load().get(job_id)
        if job is None or job.session_id != session_id:
            raise NotFound(f"there is no job {job_id[:32]!r} in this session", job=job_id[:32])
        return job

    def tail(self, job: ShellJob, most: int) -> bytes:
        """The last bytes it printed."""
        data = b""
        for path in (self._output(job.job_id), self._output(job.job_id).with_suffix(".older")):
            if len(data) < most:
                with contextlib.suppress(FileNotFoundError):
                    data = path.read_bytes()[-(most - len(data)) :] + data
        return data

    async def stop(self, session_id: str, job_id: str) -> ShellJob:
        """Stop a job. Its whole tree is dead when this returns; stopping twice changes nothing."""
        job = self.get(session_id, job_id)
        await self._end(job_id)
        return job

    async def close(self) -> None:
        """End all jobs, because the daemon ends."""
        await asyncio.gather(*(self._end(job_id) for job_id in tuple(self._tasks)))

    async def _follow(
        self, job: ShellJob, wanted: ShellCommand, begun: asyncio.Future[None]
    ) -> None:
        ring: Ring | None = None
        try:
            ring = Ring(self._output(job.job_id))
            async with self._runner.started(wanted) as process:
                if not begun.done():
                    begun.set_result(None)
                try:
                    await self._collect(job, process, ring)
                    ended = await process.wait()
                finally:
                    job.notes = process.notes()
            self._ended(job, "ended", ending(ended, wanted.caps), ended)
        except asyncio.CancelledError:
            self._ended(job, "stopped", "stopped")
            if job.job_id not in self._stopping:
                raise
        except PalyraError as error:
            self._ended(job, "failed", error.message)
            if not begun.done():
                begun.set_exception(error)
        except OSError as error:
            # A disk that is full, or gone. Its record may not be kept either; that it does not run
            # any more is known all the same.
            why = Unavailable(
                f"it was ended, because it could not be followed: {error.strerror or error}"
            )
            with contextlib.suppress(OSError):
                self._ended(job, "failed", why.message)
            if not begun.done():
                begun.set_exception(why)
        finally:
            if ring is not None:
                ring.close()
            if not begun.done():
                begun.cancel()

    async def _collect(self, job: ShellJob, process: Process, ring: Ring) -> None:
        decoder, redacting = getincrementaldecoder("utf-8")("replace"), self._redactor.stream()
        async for chunk in process.output():
            job.output_bytes += len(chunk)
            ring.add(redacting.feed(decoder.decode(chunk)).encode())
        ring.add((redacting.feed(decoder.decode(b"", True)) + redacting.finish()).encode())

    def _ended(self, job: ShellJob, state: State, how: str, ended: Exit | None = None) -> None:
        job.state, job.ending, job.exit, job.ended_ms = state, how, ended, self._now_ms()
        self._save(job)

    async def _end(self, job_id: str) -> None:
        task = self._tasks.get(job_id)
        if task is None:
            return
        self._stopping.add(job_id)
        task.cancel()
        await asyncio.wait([task])
        self._stopping.discard(job_id)

    def _load(self) -> dict[str, ShellJob]:
        """All records, read once. What another daemon left running was ended with it."""
        if self._jobs is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._jobs = {}
            for path in self._folder.glob("*.json"):
                try:
                    job = msgspec.json.decode(path.read_bytes(), type=ShellJob)
                except (msgspec.DecodeError, OSError):
                    continue
                if job.state == "running" and job.daemon != self._daemon:
                    job.output_bytes = sum(
                        _size(self._output(job.job_id).with_suffix(end))
                        for end in (".out", ".older")
                    )
                    self._ended(
                        job, "lost", "ended by a crash: the daemon died, and the job with it"
                    )
                self._jobs[job.job_id] = job
        return self._jobs

    def _save(self, job: ShellJob) -> None:
        path = self._folder / f"{job.job_id}.json"
        part = path.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(job))
        os.replace(part, path)

    def _prune(self, session_id: str) -> None:
        over = [job for job in self.of(session_id) if job.state != "running"][:-REMEMBERED]
        for job in over:
            self._load().pop(job.job_id)
            for end in (".json", ".out", ".older"):
                self._output(job.job_id).with_suffix(end).unlink(missing_ok=True)

    def _output(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.out"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
