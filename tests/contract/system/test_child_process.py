"""Programs that the daemon starts for itself: nothing of ours runs in the child, and they end."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

import palyra
from palyra.core.errors import Unavailable
from palyra.system.child_process import ChildProcess

_STARTS = """
import asyncio, os
import uvloop
from palyra.core.errors import PalyraError
from palyra.models.embeddings import LocalEmbedder
from palyra.tools.sandbox import relay
from palyra.tools.web.pdf import text_of

os.register_at_fork(after_in_child=lambda: os.write(2, b"Python ran in the child of %s"))

async def main():
    embedder = LocalEmbedder(command=("/bin/false",))
    starts = {"embedder": embedder.embed(["x"]), "pdf": text_of(b""), "relay": relay.start(%r, 0, "")}
    for name, start in starts.items():
        try:
            await start
        except PalyraError:
            print(name)

uvloop.run(main())
"""


def test_nothing_of_ours_runs_in_the_child_before_the_program() -> None:
    """A lock that another thread holds is never let go of there: the daemon once stood still."""
    done = subprocess.run(
        [sys.executable, "-c", _STARTS % ("a program", sys.executable)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == ([b"embedder", b"pdf", b"relay"], b"")


def test_no_program_is_started_by_an_event_loop() -> None:
    sources = Path(palyra.__file__).parent.rglob("*.py")
    assert [each.name for each in sources if "create_subprocess_" in each.read_text()] == []


def _python(program: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-I", "-S", "-c", program])


def test_much_is_said_both_ways_at_once() -> None:
    async def main() -> None:
        said = os.urandom(1 << 20)
        process = ChildProcess(["/bin/cat"])
        assert await process.talk(said) == (said, b"")
        assert (process.code, process.running) == (0, False)

    uvloop.run(main())


def test_who_does_not_read_and_who_fails_is_heard_to_the_end() -> None:
    async def main() -> None:
        process = _python("import sys; sys.exit('no')")
        assert await process.talk(b"x" * (1 << 20)) == (b"", b"no\n")
        assert process.code == 1

    uvloop.run(main())


def test_what_a_program_leaves_behind_keeps_nobody_waiting() -> None:
    async def main() -> None:
        process = ChildProcess(["/bin/sh", "-c", "sleep 100 & echo $!"], stderr=False)
        left, _ = await process.talk(b"x" * (1 << 20))
        os.kill(int(left), 9)

    uvloop.run(main())


def test_who_says_more_than_anybody_reads_is_ended() -> None:
    async def main() -> None:
        process = ChildProcess(["/bin/cat", "/dev/zero"], stdin=False, stderr=False)
        with pytest.raises(Unavailable, match="more than 16 MB"):
            await process.talk()
        assert process.code == -9

    uvloop.run(main())


def test_a_cancel_ends_it() -> None:
    async def main() -> None:
        process = _python("import sys, time; print(1, flush=True); time.sleep(100)")
        assert await process.stdout.read_all(2) == b"1\n"
        talking = asyncio.ensure_future(process.talk())
        await asyncio.sleep(0)
        talking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talking
        assert process.code == -9

    uvloop.run(main())


def test_what_cannot_be_started_is_an_error_and_leaves_no_descriptor() -> None:
    async def main() -> None:
        before = os.listdir("/proc/self/fd")
        with pytest.raises(FileNotFoundError):
            ChildProcess(["/nothing/here"])
        process = ChildProcess(["/bin/true"])
        await process.end()
        assert os.listdir("/proc/self/fd") == before

    uvloop.run(main())


def test_many_at_once_end() -> None:
    async def main() -> None:
        processes = [ChildProcess(["/bin/cat"], stderr=False) for _ in range(50)]
        said = [str(each.pid).encode() for each in processes]
        heard = await asyncio.gather(
            *(each.talk(own) for each, own in zip(processes, said, strict=True))
        )
        assert [output for output, _ in heard] == said

    uvloop.run(main())
