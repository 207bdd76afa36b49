"""Try the MCP servers that people use: each is added by the command of its README, accepted, and
called in a run of a whole daemon with a scripted model. `make compat` runs it.

python scripts/mcp_compat.py                     # print the table
python scripts/mcp_compat.py --write             # and put it into docs/reference/mcp.md
python scripts/mcp_compat.py filesystem time     # only these
"""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from tests import inprocess
from tests.mcp_at_work import accepted, obedient, permit, result_of

from palyra.features.mcp.packages import pin_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "mcp.md"
BEGIN, END = "<!-- make compat: begin -->", "<!-- make compat: end -->"
_LONGEST_S = 700
_PAGE_TEXT = "a page from a server on this machine"


@dataclass(frozen=True)
class KnownServer:
    """`options` and `command` are what a person types after `palyra mcp add NAME`; `{work}` is a
    folder with a file, a git repository. `says` is a part of what the call answers.
    """

    name: str
    command: str
    tool: str
    says: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: str = ""
    note: str = ""
    # What it asks that may be out of reach from here.
    service: str = ""
    # Sent before the one that counts.
    first: tuple[tuple[str, Mapping[str, Any]], ...] = ()


SERVERS = (
    KnownServer(
        "filesystem",
        "npx -y @modelcontextprotocol/server-filesystem {work}",
        "read_text_file",
        "hello",
        {"path": "{work}/note.txt"},
    ),
    KnownServer(
        "memory",
        "npx -y @modelcontextprotocol/server-memory",
        "read_graph",
        "Ann",
        options="--env MEMORY_FILE_PATH={data}/memory.jsonl",
        first=(
            (
                "create_entities",
                {
                    "entities": [
                        {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
                    ]
                },
            ),
        ),
    ),
    KnownServer(
        "thinking",
        "npx -y @modelcontextprotocol/server-sequential-thinking",
        "sequentialthinking",
        "totalThoughts",
        {"thought": "begin", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
    ),
    KnownServer(
        "everything",
        "npx -y @modelcontextprotocol/server-everything",
        "echo",
        "is there anybody",
        {"message": "is there anybody"},
    ),
    KnownServer(
        "context7",
        "npx -y @upstash/context7-mcp",
        "resolve-library-id",
        "",
        {"libraryName": "msgspec", "query": "encode JSON"},
        options="--host context7.com --host mcp.context7.com",
        service="its public service",
    ),
    KnownServer(
        "playwright",
        "npx -y @playwright/mcp@latest --headless --isolated --no-sandbox"
        " --executable-path /usr/bin/chromium",
        "browser_navigate",
        "Title",
        {"url": "data:text/html,<title>Title</title>"},
        note="with the Chromium of Debian",
    ),
    KnownServer(
        "fetch",
        "uvx mcp-server-fetch --allow-private-ips --ignore-robots-txt",
        "fetch",
        _PAGE_TEXT,
        {"url": "http://127.0.0.1:{port}/", "raw": True},
        options="--host 127.0.0.1:{port}",
    ),
    KnownServer(
        "git",
        "uvx mcp-server-git --repository {work}",
        "git_status",
        "note.txt",
        {"repo_path": "{work}"},
    ),
    KnownServer(
        "time",
        "uvx mcp-server-time --local-timezone UTC",
        "convert_time",
        "21:00",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    ),
    KnownServer(
        "sqlite",
        "uvx --with 'mcp<2' mcp-server-sqlite --db-path {work}/test.db",
        "list_tables",
        "people",
        first=(("create_table", {"query": "CREATE TABLE people (name TEXT)"}),),
    ),
)


@dataclass(frozen=True)
class Row:
    name: str
    command: str
    version: str
    tools: int
    result: str
    works: bool


async def _page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(_PAGE_TEXT)}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Type: text/plain\r\n\r\n{_PAGE_TEXT}".encode())
    await writer.drain()
    writer.close()


async def tried(server: KnownServer, folder: Path) -> Row:
    """Return what became of one server."""
    work = folder / "files"
    work.mkdir()
    (work / "note.txt").write_text("hello\n")
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", work], check=True)
    async with await asyncio.start_server(_page, "127.0.0.1", 0) as page:
        port = page.sockets[0].getsockname()[1]

        def filled(value: Any) -> Any:
            text = json.dumps(value).replace("{work}", str(work)).replace("{port}", str(port))
            return json.loads(text)

        command = f"palyra mcp add {server.name} {server.options} -- {server.command}"
        command = re.sub(" +", " ", command)
        words = shlex.split(filled(command))
        added = await asyncio.to_thread(_added, [*words[1:4], "--yes", *words[4:]], folder / "home")
        if added.returncode:
            return Row(server.name, command, "", 0, added.stderr.strip().splitlines()[-1], False)
        settings = (folder / "home" / "config.toml").read_text()
        version = pin_of(re.search(r'package = "(.+)"', settings)[1]).version  # type: ignore[index]
        permit(folder)
        async with inprocess.daemon(folder, obedient(), settings) as daemon:
            try:
                status = await accepted(daemon, server.name)
            except TimeoutError:
                return Row(
                    server.name, command, version, 0, daemon.mcp.one(server.name).detail, False
                )
            calls = (*server.first, (server.tool, server.arguments))
            told: dict[str, Any] = {}
            for tool, arguments in calls:
                told = await result_of(daemon, f"mcp:{server.name}/{tool}", **filled(arguments))
            if server.service and "fetch failed" in told["text"]:
                said = f"`{server.tool}`; from here {server.service} cannot be reached"
                return Row(server.name, command, version, len(status.tools), said, True)
            works = told["outcome"] == "ok" and server.says in told["text"]
            said = (
                f"`{server.tool}`"
                if works
                else f"{server.tool}: {told['outcome']}: {told['text'][-1500:]}"
            )
            return Row(server.name, command, version, len(status.tools), said, works)


def _added(words: list[str], home: Path) -> "subprocess.CompletedProcess[str]":
    home.mkdir(mode=0o700)
    return subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "--home", str(home), *words],
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )


def table(rows: list[Row], servers: Mapping[str, KnownServer]) -> str:
    lines = ["| command | version | tools | called in a run |", "|---|---|---|---|"]
    for row in rows:
        note = servers[row.name].note
        said = row.result if row.works else f"no: {row.result}".replace("|", "\\|")
        command = row.command.replace("{work}", "/FOLDER").replace("{port}", "PORT")
        lines.append(
            f"| `{command}` | {row.version} | {row.tools} | {said}{f'; {note}' if note else ''} |"
        )
    return "\n".join(lines)


def main() -> int:
    wanted = [each for each in sys.argv[1:] if not each.startswith("-")]
    servers = {each.name: each for each in SERVERS if not wanted or each.name in wanted}
    rows = []
    for server in servers.values():
        with tempfile.TemporaryDirectory(prefix="palyra-compat-") as folder:
            rows.append(asyncio.run(tried(server, Path(folder))))
        row = rows[-1]
        sys.stdout.write(
            f"{'ok ' if row.works else 'NO '} {row.name} {row.version}: {row.tools} tools;"
            f" {row.result}\n"
        )
        sys.stdout.flush()
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table(rows, servers)}\n{END}{after}", encoding="utf-8")
    return 0 if all(row.works for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
