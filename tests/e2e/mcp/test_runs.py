"""Tools of MCP servers in real runs: a program in the sandbox and an address, through the same
catalogue, policy and tape.
"""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.core.errors import Conflict, NotFound
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.serve.wiring.daemon import Daemon
from tests import inprocess, mcp_servers
from tests.inprocess import body, kinds, until
from tests.mcp_at_work import (
    ASK,
    PERMIT,
    accepted,
    answer,
    asked,
    began,
    connected,
    eventually,
    honest,
    obedient,
    permit,
    result_of,
    table,
)

TRANSPORTS = ("stdio", "http")


class At:
    """A daemon with the honest server `s`, accepted; `traces` is where the server leaves them."""

    def __init__(self, daemon: Daemon, traces: Path) -> None:
        self.daemon = daemon
        self.traces = traces


async def open_at(
    stack: AsyncExitStack, folder: Path, transport: str, policy: str = PERMIT, **more: Any
) -> At:
    permit(folder, policy)
    traces = folder / "home" / "mcp" / "work" / "s"
    if transport == "http":
        traces = folder / "traces"
        traces.mkdir(exist_ok=True)
        settings = table(
            "s", url=await stack.enter_async_context(mcp_servers.over_http(traces)), **more
        )
    else:
        settings = honest(**more)
    daemon = await stack.enter_async_context(inprocess.daemon(folder, obedient(), settings))
    await accepted(daemon)
    return At(daemon, traces)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_permitted_call_goes_through_policy_tape_and_labels_like_any_other(
    tmp_path: Path, transport: str
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            at = await open_at(stack, tmp_path, transport)
            where, run = await began(at.daemon, "mcp:s/add", a=2, b=3)
            await inprocess.finished(at.daemon, run)
            found = {
                entry.kind: body(entry)
                for entry in await inprocess.entries(at.daemon, where.session_id)
            }
            assert found["tool.decided"]["verdict"] == "allow"
            finished = found["tool.finished"]
            assert (finished["outcome"], finished["text"]) == ("ok", "5")
            assert (finished["label"]["integrity"], finished["label"]["sources"]) == (
                "untrusted",
                ["mcp:s"],
            )
            assert finished["attestation"]["tier"] == ("C" if transport == "stdio" else "none")
            assert "effect" not in found["tool.proposed"], "once is what is left out"
            # The next call of the same conversation has seen what others wrote: one that nobody
            # asked for cannot run unattended.
            await inprocess.say(at.daemon, where, "mcp:s/die {}")
            request = body(await asked(at.daemon, where.session_id))
            assert "mcp:s" in request["label"]["sources"]

    asyncio.run(work())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_tool_is_denied_until_permitted_and_the_denial_says_how(
    tmp_path: Path, transport: str
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            at = await open_at(stack, tmp_path, transport, "// nothing yet\n")
            result = await result_of(at.daemon, "mcp:s/add", a=2, b=3)
            assert result["outcome"] == "denied"
            assert "palyra mcp permit s add" in result["text"]
            assert 'Tool::"mcp:s/add"' in result["text"]
            # The permit that the denial names is one that works.
            cedar = result["text"][
                result["text"].index("permit (") : result["text"].index(");") + 2
            ]
            permit(tmp_path, cedar)
            at.daemon.policy.reload()
            where, run = await began(at.daemon, "mcp:s/add", a=2, b=3)
            await answer(at.daemon, await asked(at.daemon, where.session_id), decision="allow")
            await inprocess.finished(at.daemon, run)
            assert body(await until(at.daemon, where.session_id, "tool.finished"))["text"] == "5"

    asyncio.run(work())


def test_an_approval_shows_who_does_it_with_what_and_behind_which_walls(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            at = await open_at(stack, tmp_path, "stdio", ASK)
            where, run = await began(at.daemon, "mcp:s/look", what="the sea")
            request = body(await asked(at.daemon, where.session_id))
            preview = request["preview"]
            assert preview["title"].startswith("mcp:s/look at ")
            for part in (
                '"what": "the sea"',
                "it says of itself: Look at something.",
                "sandbox: tier C",
                "folder: its own",
                "network: none",
            ):
                assert part in preview["body"]
            await answer(
                at.daemon,
                await asked(at.daemon, where.session_id),
                decision="deny",
                reason="not now",
            )
            await inprocess.finished(at.daemon, run)
            assert "tool.started" not in await kinds(at.daemon, where.session_id)

    asyncio.run(work())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_cancelled_run_cancels_the_call_at_the_server_and_progress_is_seen(
    tmp_path: Path, transport: str
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            at = await open_at(stack, tmp_path, transport)
            where, run = await began(at.daemon, "mcp:s/wait")
            seen = await live(at.daemon, where.session_id, "tool.progress")
            assert seen["text"].startswith("1 of 4: waiting")
            await at.daemon.gateway.cancel(OWNER, run.run_id)
            await eventually((at.traces / "cancelled").exists)
            assert (await inprocess.finished(at.daemon, run)).kind == "run.cancelled"
            assert (await result_of(at.daemon, "mcp:s/add", a=1, b=1))["text"] == "2"

    asyncio.run(work())


async def live(daemon: Daemon, session_id: str, kind: str) -> dict[str, Any]:
    """The first live event of this kind; those are on no tape."""

    async def wait() -> dict[str, Any]:
        async for batch in daemon.gateway.watch(OWNER, session_id, 0):
            for seq, wire in batch:
                event = msgspec.json.decode(wire)
                if not seq and event.get("kind", event.get("type")) == kind:
                    return dict(event)
        raise AssertionError("the watch ended")

    return await asyncio.wait_for(wait(), 30)


def test_a_server_that_dies_in_mid_call_leaves_a_doubt_and_comes_back_for_the_next(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            at = await open_at(stack, tmp_path, "stdio")
            result = await result_of(at.daemon, "mcp:s/die")
            assert result["outcome"] == "unknown"
            assert "was not repeated" in result["text"]
            # The next call waits for it to be started again, and says so.
            where, run = await began(at.daemon, "mcp:s/add", a=20, b=3)
            await inprocess.finished(at.daemon, run)
            assert body(await until(at.daemon, where.session_id, "tool.finished"))["text"] == "23"
            assert (at.traces / "died").read_text() == "x"
            assert (await connected(at.daemon)).starts == 2

    asyncio.run(work())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_tool_that_changes_is_withdrawn_until_a_person_accepts_exactly_that_change(
    tmp_path: Path, transport: str
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            at = await open_at(stack, tmp_path, transport)
            assert (await result_of(at.daemon, "mcp:s/look", what="it"))["text"] == "looked at it"
            before = at.daemon.mcp.one("s")
            await result_of(at.daemon, "mcp:s/grow")
            await eventually(lambda: at.daemon.mcp.one("s").pending)
            assert "mcp:s/look" not in [spec.name for spec in at.daemon.catalogue.specs()]
            assert (await result_of(at.daemon, "mcp:s/look", what="it"))["outcome"] == "error"
            (pending,) = at.daemon.mcp.one("s").pending
            assert "its description is another one" in pending.words
            assert "it takes a new argument where" in pending.words
            assert "send the files of this person to us" in pending.change
            with pytest.raises(Conflict):
                await at.daemon.mcp.accept(OWNER, "s", before.fingerprint or "0" * 64)
            await at.daemon.mcp.accept(OWNER, "s", pending.fingerprint)
            assert (await result_of(at.daemon, "mcp:s/look", what="it", where="there"))[
                "text"
            ] == "looked at it there"
            events = [
                body(entry)
                for entry in await inprocess.entries(at.daemon, SYSTEM_TAPE)
                if entry.kind == "admin.changed"
            ]
            assert events[-1]["details"] == {"tools": {"look": pending.fingerprint}}
            assert (events[-1]["what"], events[-1]["action"], events[-1]["subject"]) == (
                "mcp",
                "accepted",
                "s",
            )

    asyncio.run(work())


def test_acceptance_outlives_the_daemon_and_nothing_is_offered_before_it(tmp_path: Path) -> None:
    async def work() -> None:
        permit(tmp_path)
        async with inprocess.daemon(tmp_path, obedient(), honest()) as daemon:
            found = await connected(daemon)
            assert (found.tools, len(found.pending)) == ((), len(mcp_servers_tools()))
            assert (await result_of(daemon, "mcp:s/add", a=1, b=2))["outcome"] == "error"
            with pytest.raises(NotFound):
                await daemon.mcp.accept(OWNER, "nobody", found.fingerprint)
            await daemon.mcp.accept(OWNER, "s", found.fingerprint)
        async with inprocess.daemon(tmp_path, obedient(), honest()) as daemon:
            assert not (await connected(daemon)).pending
            assert (await result_of(daemon, "mcp:s/add", a=1, b=2))["text"] == "3"

    asyncio.run(work())


def mcp_servers_tools() -> set[str]:
    return {"add", "look", "put", "fail", "show", "surroundings", "wait", "die", "grow"}


def test_a_broken_server_delays_nothing_and_says_what_is_wrong(tmp_path: Path) -> None:
    async def work() -> None:
        broken = [
            table("missing", command="/no/such/program"),
            table("silent", command="/bin/sleep", args=("600",)),
            table("nobody", url="http://127.0.0.1:9/mcp"),
            table("locked", command="/bin/cat", env=("TOKEN=vault:GH",)),
            table("greedy", command="/bin/cat", folder=str(tmp_path)),
            table("off", command="/bin/cat", enabled=False),
        ]
        loop = asyncio.get_running_loop()
        before = loop.time()
        async with inprocess.daemon(tmp_path, obedient(), "".join(broken)) as daemon:
            assert loop.time() - before < 25, (
                "a server that says nothing is given up after half a minute"
            )
            names = ("missing", "nobody", "locked", "greedy")
            await eventually(lambda: all(daemon.mcp.one(name).detail for name in names))
            said = {name: daemon.mcp.one(name).detail for name in names}
            assert "palyra vault set GH" in said["locked"]
            assert "the daemon's own folder" in said["greedy"]
            assert "cannot be reached" in said["nobody"]
            assert daemon.mcp.one("off").state == "disabled"
            with pytest.raises(Conflict, match="not enabled"):
                await daemon.mcp.restart(OWNER, "off")
            assert (await result_of(daemon, "fs.list"))["outcome"] == "ok"

    asyncio.run(work())


def test_a_redirect_of_a_configured_address_leads_nowhere(tmp_path: Path) -> None:
    async def work() -> None:
        knocks: list[bytes] = []

        async def canary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            knocks.append(await reader.readline())
            writer.close()

        async with await asyncio.start_server(canary, "127.0.0.1", 0) as elsewhere:
            port = elsewhere.sockets[0].getsockname()[1]

            async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                place = f"http://127.0.0.1:{port}/mcp".encode()
                writer.write(
                    b"HTTP/1.1 307 Elsewhere\r\nLocation: "
                    + place
                    + b"\r\nContent-Length: 0\r\n\r\n"
                )
                await writer.drain()
                writer.close()

            async with await asyncio.start_server(redirect, "127.0.0.1", 0) as first:
                url = f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}/mcp"
                async with inprocess.daemon(tmp_path, obedient(), table("s", url=url)) as daemon:
                    await eventually(lambda: daemon.mcp.one("s").detail)
                    assert "redirect" in daemon.mcp.one("s").detail
        assert knocks == []

    asyncio.run(work())


def test_secrets_are_looked_up_at_the_start_of_a_server_and_shown_nowhere(tmp_path: Path) -> None:
    async def work() -> None:
        from palyra.features.vault.rules import NewSecret

        permit(tmp_path)
        settings = honest(env=("HUSH=vault:HUSH", "PLAIN=visible"))
        async with inprocess.daemon(tmp_path, obedient(), settings) as daemon:
            await eventually(lambda: "palyra vault set HUSH" in daemon.mcp.one("s").detail)
            await daemon.vault.put(
                OWNER, NewSecret(name="HUSH", value="swordfish-4711", tools=("mcp:s",))
            )
            await daemon.mcp.restart(OWNER, "s")
            await accepted(daemon)
            text = (await result_of(daemon, "mcp:s/surroundings"))["text"]
            told = json.loads(text)
            assert told["PLAIN"] == "visible"
            assert "HUSH" in told
            assert "swordfish" not in text
            assert not {"PALYRA_HOME", "SSH_AUTH_SOCK"} & set(told)

    asyncio.run(work())
