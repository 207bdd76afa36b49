"""The gate out of a sandbox: the listed hosts and no others, by CONNECT and by plain requests,
within its limits.
"""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import PalyraError
from palyra.tools.net.egress import Allowance, Egress, Gate, Passage
from palyra.tools.net.resolve import Resolver
from tests.material import material
from tests.net_world import Asked, Names, Site, answer, certified, run

NEAR = Names({"*": [["127.0.0.1"]]})
HELLO = answer("hello", content_type="text/plain")


@asynccontextmanager
async def opened(
    *allowed: str, private: frozenset[str] = frozenset(), **more: Any
) -> AsyncIterator[tuple[Gate, "asyncio.Queue[Passage]"]]:
    passages: asyncio.Queue[Passage] = asyncio.Queue()
    egress = Egress(Resolver(NEAR, allow_private=private), log=passages.put_nowait, **more)
    async with egress.gate(frozenset(allowed)) as gate:
        yield gate, passages


async def dialled(gate: Gate) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_unix_connection(gate.socket_path)


async def said(gate: Gate, data: bytes) -> bytes:
    """Everything the gate answers to these bytes."""
    reader, writer = await dialled(gate)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(-1), 10)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def logged(passages: "asyncio.Queue[Passage]", count: int) -> list[Passage]:
    """The next so many passages; a connection is logged after its last byte."""
    return [await asyncio.wait_for(passages.get(), 20) for _ in range(count)]


def connect(place: str) -> bytes:
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()


def get(url: str, **headers: str) -> bytes:
    lines = [
        f"GET {url} HTTP/1.1",
        *(f"{name.replace('_', '-')}: {value}" for name, value in {"Host": "x", **headers}.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_tunnel_carries_tls_to_a_listed_host_end_to_end(tmp_path: Path) -> None:
    async def work() -> None:
        server, client = certified(tmp_path, "site.example")
        async with Site({"": HELLO}, tls=server) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, passages):
                reader, writer = await dialled(gate)
                writer.write(connect(place))
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
                await writer.start_tls(client, server_hostname="site.example")
                writer.write(get("/"))
                assert (await reader.readuntil(b"hello")).endswith(b"hello")
                writer.transport.abort()
                (passage,) = await logged(passages, 1)
                assert (passage.host, passage.port, passage.verdict) == (
                    "site.example",
                    site.port,
                    "allowed",
                )
                assert passage.sent > 100
                assert passage.received > 100
                assert gate.carried == passage.sent + passage.received
                assert gate.counts.allowed == 1

    run(work())


def test_bytes_sent_together_with_connect_are_not_lost() -> None:
    async def work() -> None:
        async with Site({"/early": HELLO}) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, _):
                assert (await said(gate, connect(place) + get("/early"))).endswith(b"hello")

    run(work())


@pytest.mark.parametrize("way", ["tunnel", "request"])
def test_who_reads_slowly_gets_all_of_it(way: str) -> None:
    """The server has said everything and is gone, and so much of it still lies in the gate."""

    async def work() -> None:
        body = bytes(range(250)) * 1_000
        async with Site({"/much": answer(body)}) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, passages):
                with socket.socket(socket.AF_UNIX) as slow:
                    slow.connect(str(gate.socket_path))
                    slow.settimeout(20)
                    slow.sendall(
                        connect(place) + get("/much")
                        if way == "tunnel"
                        else get(f"http://{place}/much")
                    )
                    if way == "tunnel":
                        slow.shutdown(socket.SHUT_WR)
                    # Longer than the gate waits for a client to end its side.
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(passages.get(), 2)
                    whole = await asyncio.to_thread(
                        lambda: b"".join(iter(lambda: slow.recv(1 << 16), b""))
                    )
                assert whole.endswith(body)
                (passage,) = await logged(passages, 1)
                assert passage.verdict == "allowed"

    run(work())


def test_an_answer_is_heard_also_from_a_server_that_does_not_listen_any_more() -> None:
    async def work() -> None:
        body = bytes(range(250)) * 1_000
        async with Site({"/much": answer(body)}) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, _):
                with socket.socket(socket.AF_UNIX) as talkative:
                    talkative.connect(str(gate.socket_path))
                    talkative.settimeout(20)
                    talkative.sendall(connect(place) + get("/much"))
                    # It has answered and hung up when the rest comes: that is refused by its
                    # machine, and then by ours.
                    while gate.carried < len(body):  # noqa: ASYNC110 - a counter: there is nothing to wait on
                        await asyncio.sleep(0.005)
                    for _ in range(20):
                        talkative.sendall(b"more")
                        await asyncio.sleep(0.01)
                    talkative.shutdown(socket.SHUT_WR)
                    whole = await asyncio.to_thread(
                        lambda: b"".join(iter(lambda: talkative.recv(1 << 16), b""))
                    )
                assert whole.endswith(body)

    run(work())


def test_a_plain_request_is_sent_on_as_ours() -> None:
    async def work() -> None:
        async with Site({"/a?b": HELLO}) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, passages):
                request = get(
                    f"http://{place}/a?b",
                    Proxy_Authorization="Basic x",
                    Proxy_Connection="keep-alive",
                    X_Hop="1",
                    Connection="X-Hop",
                    X_Kept="2",
                )
                whole = await said(gate, request)
                assert whole.startswith(b"HTTP/1.1 200 ")
                assert whole.endswith(b"hello")
                (asked,) = site.asked
                assert asked.target == "/a?b"
                assert dict(asked.headers) == {"host": place, "x-kept": "2", "connection": "close"}
                (passage,) = await logged(passages, 1)
                assert (passage.host, passage.verdict) == ("site.example", "allowed")

    run(work())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_is_sent_on_whole(chunked: bool) -> None:
    async def work() -> None:
        body = bytes(range(256)) * 2000
        framing = (
            b"Transfer-Encoding: chunked\r\n\r\n"
            if chunked
            else b"Content-Length: %d\r\n\r\n" % len(body)
        )
        sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body

        async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(asked.body))

        async with Site(echo) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, _):
                request = (
                    f"POST http://{place}/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n".encode()
                    + framing
                    + sent
                )
                assert (await said(gate, request)).endswith(b"\r\n\r\n" + body)

    run(work())


def test_a_private_address_is_reached_only_if_the_settings_name_it_too() -> None:
    async def work() -> None:
        async with Site({"": HELLO}) as site:
            place = f"127.0.0.1:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, _):
                assert (await said(gate, get(f"http://{place}/"))).endswith(b"hello")
            async with opened(place) as (gate, _):
                assert b" 403 " in await said(gate, get(f"http://{place}/"))
            assert site.connections == 1

    run(work())


@pytest.mark.parametrize(
    "place",
    [
        "other.example:443",
        "site.example:22",
        "site.example.evil.example:443",
        "notsite.example:443",
        "127.0.0.1:443",
        "localhost:443",
        "[::1]:443",
        "2130706433:443",
        "0x7f.1:443",
        "site.example",
        "site.example:",
        "site.example:443@evil.example:443",
        "169.254.169.254:80",
    ],
)
def test_everything_that_is_not_listed_is_refused_with_a_reason(place: str) -> None:
    async def work() -> None:
        async with opened("site.example", "near.example") as (gate, passages):
            whole = await said(gate, connect(place))
            assert whole.split(b" ")[1] in (b"403", b"400")
            assert b"\r\n\r\npalyra: " in whole
            (passage,) = await logged(passages, 1)
            assert passage.verdict == "refused"
            assert gate.counts.refused == 1

    run(work())


def test_a_listed_name_that_leads_near_is_refused() -> None:
    async def work() -> None:
        async with Site({"": HELLO}) as site:
            async with opened(
                f"site.example:{site.port}", "*.example.org", f"localhost:{site.port}"
            ) as (gate, _):
                for place in (
                    f"site.example:{site.port}",
                    "a.example.org:443",
                    f"localhost:{site.port}",
                ):
                    assert b" 403 " in await said(gate, connect(place))
            assert site.connections == 0

    run(work())


@pytest.mark.parametrize(
    "listed",
    [
        "169.254.169.254",
        "169.254.169.254:80",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "0.0.0.0:80",
        "224.0.0.1",
    ],
)
def test_some_addresses_are_refused_even_if_they_are_listed(listed: str) -> None:
    async def work() -> None:
        async with opened(listed) as (gate, _):
            assert b" 403 " in await said(gate, get(f"http://{listed}/"))

    run(work())


def test_no_payload_reaches_the_canary_through_a_gate() -> None:
    async def work() -> None:
        payloads = (
            material("injection", "ssrf_loopback_payloads_port18099.txt").read_text().splitlines()
        )
        async with (
            Site({"": HELLO}, port=18099) as canary,
            opened("allowed.example", "allowed.example:18099") as (gate, passages),
        ):
            for payload in payloads:
                authority = payload.split("/")[2]
                for request in (
                    f"GET {payload} HTTP/1.1\r\nHost: x\r\n\r\n",
                    f"CONNECT {authority} HTTP/1.1\r\nHost: x\r\n\r\n",
                ):
                    assert not (await said(gate, request.encode())).startswith(b"HTTP/1.1 200")
            assert canary.connections == 0
            assert {passage.verdict for passage in await logged(passages, 2 * len(payloads))} == {
                "refused"
            }

    run(work())


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: site.example\r\n\r\n",
        b"GET https://site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n",
        b"GET ftp://site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n",
        b"GET http://site.example/ HTTP/1.1\r\n\r\n",
        b"GET http://site.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"X" * 100_000,
        b"\x05\x01\x00",
        b"",
    ],
)
def test_what_is_no_request_for_a_proxy_opens_nothing(data: bytes) -> None:
    async def work() -> None:
        async with opened("site.example") as (gate, passages):
            reader, writer = await dialled(gate)
            writer.write(data)
            writer.write_eof()
            whole = await asyncio.wait_for(reader.read(-1), 30)
            assert whole == b"" or whole.split(b" ")[1] in (b"400", b"403")
            writer.close()
            assert (await logged(passages, 1))[0].verdict in ("refused", "failed")

    run(work())


def test_a_second_request_on_the_same_connection_goes_nowhere() -> None:
    """Each request is judged; one that rides behind an allowed one is not, so it is not sent."""

    async def work() -> None:
        async with Site({"": HELLO}) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, _):
                whole = await said(gate, get(f"http://{place}/1") + get("http://169.254.169.254/2"))
                assert whole.count(b"HTTP/1.1") == 1
                assert [asked.target for asked in site.asked] == ["/1"]

    run(work())


def test_a_list_that_cannot_be_read_opens_no_gate() -> None:
    async def work() -> None:
        with pytest.raises(PalyraError):
            async with opened("*"):
                pass

    run(work())


def test_a_server_that_is_not_there_is_a_bad_gateway() -> None:
    async def work() -> None:
        # Bound, so that nobody else gets it, and nobody listens there.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            await refused(port)

    async def refused(port: int) -> None:
        async with opened(f"127.0.0.1:{port}", private=frozenset({f"127.0.0.1:{port}"})) as (
            gate,
            passages,
        ):
            assert b" 502 " in await said(gate, get(f"http://127.0.0.1:{port}/"))
            assert b" 502 " in await said(gate, connect(f"127.0.0.1:{port}"))
            assert [passage.verdict for passage in await logged(passages, 2)] == [
                "failed",
                "failed",
            ]

    run(work())


@pytest.mark.parametrize("tunnelled", [True, False])
def test_bytes_are_limited_over_all_connections_of_a_gate(tunnelled: bool) -> None:
    async def work() -> None:
        async with Site({"": answer(bytes(60_000))}) as site:
            place = f"site.example:{site.port}"
            async with opened(
                place, private=frozenset({place}), allowance=Allowance(bytes=150_000)
            ) as (gate, passages):
                request = connect(place) + get("/") if tunnelled else get(f"http://{place}/")
                sizes = [len(await said(gate, request)) for _ in range(3)]
                assert [size > 60_000 for size in sizes] == [True, True, False]
                assert (await logged(passages, 3))[2].verdict == "limited"
                assert gate.carried <= 150_000

    run(work())


def test_a_connection_ends_when_its_time_is_up() -> None:
    async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        async with Site(silent) as site:
            place = f"site.example:{site.port}"
            async with opened(
                place, private=frozenset({place}), allowance=Allowance(seconds=1)
            ) as (gate, passages):
                await said(gate, get(f"http://{place}/"))
                assert (await logged(passages, 1))[0].verdict == "limited"
                await asyncio.wait_for(site.client_leaves(), 20)

    run(work())


def test_connections_at_a_time_are_limited() -> None:
    async def work() -> None:
        async with opened("site.example", allowance=Allowance(at_once=2)) as (gate, _):
            held = [await dialled(gate) for _ in range(2)]
            assert b" 503 " in await said(gate, connect("site.example:443"))
            for _, writer in held:
                writer.close()

    run(work())


def test_closing_the_gate_ends_every_tunnel_and_leaves_no_socket() -> None:
    async def work() -> None:
        async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        async with Site(silent) as site:
            place = f"site.example:{site.port}"
            async with opened(place, private=frozenset({place})) as (gate, passages):
                reader, writer = await dialled(gate)
                writer.write(connect(place) + b"hello")
                await reader.readuntil(b"\r\n\r\n")
                path = Path(gate.socket_path)
                assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700
                assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            assert not path.parent.exists()
            assert await asyncio.wait_for(reader.read(), 30) == b""
            await asyncio.wait_for(site.client_leaves(), 20)
            (passage,) = await logged(passages, 1)
            assert (passage.verdict, passage.reason) == ("allowed", "the gate was closed")
            writer.close()

    run(work())


def test_nothing_that_comes_in_the_moment_of_closing_outlives_the_gate() -> None:
    async def work() -> None:
        for turns in range(12):
            async with opened("site.example") as (gate, _):
                dialling = asyncio.ensure_future(dialled(gate))
                for _ in range(turns):
                    await asyncio.sleep(0)
            with suppress(ConnectionError, FileNotFoundError):
                reader, writer = await dialling
                # In less than the time that a gate waits for a request.
                assert await asyncio.wait_for(reader.read(), 10) == b""
                writer.close()

    run(work())


def test_cancelling_whoever_holds_the_gate_closes_it() -> None:
    async def work() -> None:
        paths: list[str] = []
        inside = asyncio.Event()

        async def command() -> None:
            async with opened("site.example") as (gate, _):
                paths.append(gate.socket_path)
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(command())
        await asyncio.wait_for(inside.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not os.path.exists(paths[0])

    run(work())


def test_two_gates_know_nothing_of_each_other() -> None:
    async def work() -> None:
        async with Site({"": HELLO}) as site:
            one, two = f"one.example:{site.port}", f"two.example:{site.port}"
            private = frozenset({one, two})
            async with (
                opened(one, private=private) as (first, _),
                opened(two, private=private) as (second, _),
            ):
                answers: Mapping[str, bytes] = {
                    "first to one": await said(first, get(f"http://{one}/")),
                    "first to two": await said(first, get(f"http://{two}/")),
                    "second to one": await said(second, get(f"http://{one}/")),
                    "second to two": await said(second, get(f"http://{two}/")),
                }
                assert {name: whole.split(b" ")[1] for name, whole in answers.items()} == {
                    "first to one": b"200",
                    "first to two": b"403",
                    "second to one": b"403",
                    "second to two": b"200",
                }

    run(work())
