"""Three public MCP servers from PyPI, each in the sandbox and in real runs: one needs nothing, one
a folder, one the network.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests import inprocess
from tests.mcp_at_work import BIN, accepted, obedient, permit, program, result_of

PAGE = b"a page from the network"


@asynccontextmanager
async def web() -> AsyncIterator[int]:
    """A page on loopback; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(PAGE)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + PAGE)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def repository(folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "note.txt").write_text("hello\n")
    (folder / ".env").write_text("KEY=canary-4711\n")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", folder, *words], capture_output=True, text=True, check=False
    ).stdout


def test_three_public_servers_work_in_runs_behind_their_walls(tmp_path: Path) -> None:
    async def work() -> None:
        permit(tmp_path)
        repo = repository(tmp_path / "repo")
        who = (
            "GIT_AUTHOR_NAME=Ann",
            "GIT_AUTHOR_EMAIL=a@example.org",
            "GIT_COMMITTER_NAME=Ann",
            "GIT_COMMITTER_EMAIL=a@example.org",
        )
        async with web() as port, web() as other:
            settings = [
                program("time", f"{BIN}/mcp-server-time", "--local-timezone", "UTC"),
                program(
                    "git",
                    f"{BIN}/mcp-server-git",
                    "--repository",
                    str(repo),
                    folder=str(repo),
                    env=who,
                ),
                program(
                    "fetch",
                    f"{BIN}/mcp-server-fetch",
                    "--allow-private-ips",
                    "--ignore-robots-txt",
                    hosts=(f"127.0.0.1:{port}",),
                ),
            ]
            async with inprocess.daemon(tmp_path, obedient(), "".join(settings)) as daemon:
                await asyncio.gather(*(accepted(daemon, name) for name in ("time", "git", "fetch")))

                told = await result_of(
                    daemon,
                    "mcp:time/convert_time",
                    source_timezone="UTC",
                    time="12:00",
                    target_timezone="Asia/Tokyo",
                )
                assert told["outcome"] == "ok", told["text"]
                assert "21:00" in json.loads(told["text"])["target"]["datetime"]

                assert (
                    "note.txt"
                    in (await result_of(daemon, "mcp:git/git_status", repo_path=str(repo)))["text"]
                )
                await result_of(daemon, "mcp:git/git_add", repo_path=str(repo), files=["note.txt"])
                done = await result_of(
                    daemon, "mcp:git/git_commit", repo_path=str(repo), message="say hello"
                )
                assert done["outcome"] == "ok", done["text"]
                assert git(repo, "log", "--format=%an %s") == "Ann say hello\n"
                # What is hidden from commands is hidden from servers: a key in the folder is not
                # committed.
                await result_of(daemon, "mcp:git/git_add", repo_path=str(repo), files=[".env"])
                assert git(repo, "grep", "--cached", "canary") == ""

                page = await result_of(
                    daemon, "mcp:fetch/fetch", url=f"http://127.0.0.1:{port}/", raw=True
                )
                assert page["outcome"] == "ok", page["text"]
                assert PAGE.decode() in page["text"]
                elsewhere = await result_of(
                    daemon, "mcp:fetch/fetch", url=f"http://127.0.0.1:{other}/", raw=True
                )
                assert PAGE.decode() not in elsewhere["text"]

    asyncio.run(work())
