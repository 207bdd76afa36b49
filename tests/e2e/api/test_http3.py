"""HTTP/3: what only it can get wrong. That it does what every other door does is shown in
tests/doors.
"""

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pylsqpack
import pytest
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import ErrorCode, FrameType, encode_frame

from palyra.api import decoding, listen_sockets
from palyra.api.auth import Access
from palyra.api.http3 import bounded_memory, connection, server
from palyra.api.http3.server import Http3, listen
from palyra.api.limits import ApiLimits, OpenStreams
from palyra.core.ids import OWNER
from palyra.models.scripted import Turn
from palyra.serve.process import http_app
from palyra.serve.wiring.daemon import Daemon
from tests import inprocess
from tests.doors import http3
from tests.http3_client import connected

BODY = 256 << 10


@dataclass
class World:
    daemon: Daemon
    access: Access
    door: Http3
    port: int
    token: str

    def client(self, **more: Any) -> Any:
        return connected(self.port, str(self.daemon.certificates.authority_file), **more)

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"


class Served:
    def __init__(self, runner: asyncio.Runner, world: World) -> None:
        self._runner = runner
        self._world = world

    def run(self, body: Callable[[World], Coroutine[Any, Any, None]]) -> None:
        self._runner.run(asyncio.wait_for(body(self._world), 60))


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[World]:
    async with inprocess.daemon(folder, [Turn(text="hello")] * 50) as daemon:
        access = Access(daemon.db, daemon.clock, daemon.redactor.redact)
        await access.open()
        udp = listen_sockets.bind_udp("127.0.0.1", 0)
        port = udp.getsockname()[1]
        limits = ApiLimits(body_bytes=BODY, requests_per_second=10_000)
        app = await http_app(daemon, access, limits, "https://127.0.0.1:1", {}, quic_port=port)
        door = await listen(
            udp, app, limits, await daemon.certificates.serve(["localhost", "127.0.0.1"])
        )
        secret, _ = await access.mint(OWNER, "test", "owner", principal=OWNER)
        try:
            yield World(daemon, access, door, port, secret)
        finally:
            app.close()
            await door.end()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with asyncio.Runner() as runner:
        context = opened(tmp_path_factory.mktemp("http3"))
        world = runner.run(context.__aenter__())
        try:
            yield Served(runner, world)
        finally:
            runner.run(context.__aexit__(None, None, None))


async def still_there(world: World) -> None:
    async with world.client() as client:
        assert (await client.get("/healthz", host=world.host)).status == 200


async def nobody_else(world: World) -> None:
    """Who said goodbye is forgotten after three round trips: until then they count."""
    async with asyncio.timeout(20):
        while world.door.connections:  # noqa: ASYNC110  there is nothing to wait on but their timers
            await asyncio.sleep(0.02)


def test_a_client_that_moves_to_another_port_keeps_its_stream(served: Served) -> None:
    async def body(world: World) -> None:
        session = await inprocess.session(world.daemon)
        async with world.client() as client:
            _, stream = client.ask(
                "GET", f"/v1/sessions/{session.session_id}/events", world.token, host=world.host
            )
            await stream.until(lambda each: b"session.created" in each.body)
            before = [each.quic.peer[1] for each in world.door._places][-1]
            after = await client.move()
            assert after != before
            run = await inprocess.say(world.daemon, session, "hello")
            await stream.until(lambda each: b"run.completed" in each.body)
            assert run.run_id.encode() in stream.body
            # The daemon believes the new address once it has answered from there.
            await stream.until(
                lambda each: after in [each.quic.peer[1] for each in world.door._places]
            )
            assert (await client.get("/v1/status", world.token, host=world.host)).status == 200
            ids = [
                int(line[4:])
                for line in stream.body.decode().splitlines()
                if line.startswith("id: ")
            ]
            assert ids == list(range(1, len(ids) + 1))

    served.run(body)


def test_no_session_can_be_resumed_so_nothing_comes_as_early_data(served: Served) -> None:
    async def body(world: World) -> None:
        tickets: list[Any] = []
        async with world.client(on_ticket=tickets.append) as client:
            assert (await client.get("/healthz", host=world.host)).status == 200
            await client.ping()
        assert tickets == []

    served.run(body)


def test_a_revoked_token_ends_its_streams(served: Served) -> None:
    async def body(world: World) -> None:
        secret, token = await world.access.mint(OWNER, "short", "viewer", principal=OWNER)
        session = await inprocess.session(world.daemon)
        async with world.client() as client:
            _, stream = client.ask(
                "GET", f"/v1/sessions/{session.session_id}/events", secret, host=world.host
            )
            await stream.until(lambda each: b"session.created" in each.body)
            await world.access.revoke(OWNER, token.token_id)
            assert (await stream.whole()).ended
            assert (await client.get("/v1/status", secret, host=world.host)).status == 401

    served.run(body)


def test_a_stream_that_its_client_gives_up_ends_here_too(served: Served) -> None:
    async def body(world: World) -> None:
        session = await inprocess.session(world.daemon)
        streams = world.door._app.services.get(OpenStreams)
        await nobody_else(world)
        async with world.client() as client:
            path = f"/v1/sessions/{session.session_id}/events?after=1"
            number, stream = client.ask("GET", path, world.token, host=world.host)
            await stream.until(lambda each: each.status == 200)
            # That it is open is said before there is anything to say.
            assert (streams.count, stream.body) == (1, b"")
            client.quic.stop_stream(number, ErrorCode.H3_REQUEST_CANCELLED)
            client.transmit()
            await stream.until(lambda each: each.reset)
            # Its end takes a few turns of the loop that this client cannot see.
            async with asyncio.timeout(20):
                while streams.count:
                    assert (await client.get("/healthz", host=world.host)).status == 200

    served.run(body)


def test_the_same_checks_stand_before_every_request(served: Served) -> None:
    async def body(world: World) -> None:
        async with world.client() as client:
            told = [
                await client.get("/v1/status", world.token, host="evil.example"),
                await client.get("/v1/status", "plr_wrong", host=world.host),
                await client.get("/v1/status", host=world.host),
                await client.get("/nowhere", world.token, host=world.host),
                await client.get("/healthz", host=world.host, headers=[(b"host", b"evil.example")]),
                await client.get(
                    "/healthz", host=world.host, headers=[(b"x-%d" % n, b"y") for n in range(101)]
                ),
                await client.ask("PUT", "/v1/status", world.token, host=world.host)[1].whole(),
            ]
        assert [each.status for each in told] == [421, 401, 401, 404, 421, 431, 405]
        assert "connection" not in told[0].headers
        async with http3.client(world.daemon.certificates.authority_file, world.token) as curl:
            head = await curl.head(f"https://{world.host}/v1/status")
        assert (head.status_code, head.content, int(head.headers["content-length"]) > 100) == (
            200,
            b"",
            True,
        )

    served.run(body)


def test_a_body_that_is_too_large_or_endless_is_refused_and_not_kept(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "_DRAIN_S", 0.1)

    async def body(world: World) -> None:
        session = await inprocess.session(world.daemon)
        path = f"/v1/sessions/{session.session_id}/messages"
        media = (b"content-type", b"application/json")
        async with world.client() as client:
            announced = [media, (b"content-length", b"%d" % (BODY + 1))]
            _, large = client.ask(
                "POST", path, world.token, host=world.host, headers=announced, body=None
            )
            await large.until(lambda each: each.status == 413)
            number, endless = client.ask(
                "POST", path, world.token, host=world.host, headers=[media], body=None
            )
            assert client.h3 is not None
            sent = 0
            while not endless.stopped and not endless.status and sent < 64 << 20:
                if client.quic._streams[number].sender.buffer_is_empty:
                    client.h3.send_data(number, b" " * 65_536, end_stream=False)
                    sent += 65_536
                client.transmit()
                await asyncio.sleep(0)
            await endless.until(lambda each: each.status)
            assert endless.status == 413
            held = [sum(each.quic.held.values()) for each in world.door._places]
            assert max(held) <= bounded_memory.CONNECTION_WINDOW
            assert (await client.get("/healthz", host=world.host)).status == 200

    served.run(body)


def test_a_body_that_is_given_up_half_way_is_not_waited_for(served: Served) -> None:
    async def body(world: World) -> None:
        async with world.client() as client:
            path = "/v1/sessions"
            headers = [(b"content-type", b"application/json"), (b"content-length", b"10")]
            number, stream = client.ask(
                "POST", path, world.token, host=world.host, headers=headers, body=None
            )
            client.quic.reset_stream(number, ErrorCode.H3_REQUEST_CANCELLED)
            client.transmit()
            assert (await client.get("/healthz", host=world.host)).status == 200
            assert not stream.status

    served.run(body)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (encode_frame(FrameType.SETTINGS, b""), ErrorCode.H3_FRAME_UNEXPECTED),
        (encode_frame(FrameType.DATA, b"hello"), ErrorCode.H3_FRAME_UNEXPECTED),
        (
            encode_frame(FrameType.HEADERS, b"\x00\x00\xff\xff\xff"),
            ErrorCode.QPACK_DECOMPRESSION_FAILED,
        ),
        (
            encode_uint_var(FrameType.HEADERS) + encode_uint_var(1 << 30) + b"x" * 80_000,
            ErrorCode.H3_EXCESSIVE_LOAD,
        ),
    ],
)
def test_frames_that_are_wrong_end_the_connection_that_sent_them(
    served: Served, what: bytes, code: int
) -> None:
    async def body(world: World) -> None:
        async with world.client() as client:
            client.quic.send_stream_data(client.quic.get_next_available_stream_id(), what)
            client.transmit()
            await asyncio.wait_for(client.wait_closed(), 20)
            assert client.terminated is not None
            assert client.terminated.error_code == code
        await still_there(world)

    served.run(body)


def test_frames_in_any_order_and_of_any_content_disturb_nobody(served: Served) -> None:
    async def body(world: World) -> None:
        dice = random.Random(9)
        headers = [
            (b":method", b"POST"),
            (b":scheme", b"https"),
            (b":authority", world.host.encode()),
            (b":path", b"/v1/sessions"),
        ]
        good = pylsqpack.Encoder().encode(0, headers)[1]
        async with world.client() as watcher:
            for _ in range(12):
                async with world.client() as client:
                    for _ in range(6):
                        uni = dice.random() < 0.3
                        number = client.quic.get_next_available_stream_id(is_unidirectional=uni)
                        sent = encode_uint_var(dice.randrange(8)) if uni else b""
                        for _ in range(dice.randrange(1, 5)):
                            content = dice.choice(
                                (
                                    good,
                                    good[: dice.randrange(len(good))],
                                    dice.randbytes(dice.randrange(200)),
                                    b"",
                                )
                            )
                            kind = dice.choice((*FrameType, dice.randrange(1 << 20)))
                            length = dice.choice(
                                (len(content), len(content), dice.randrange(1 << 30))
                            )
                            sent += encode_uint_var(kind) + encode_uint_var(length) + content
                        client.quic.send_stream_data(number, sent, end_stream=dice.random() < 0.5)
                    client.transmit()
                    with contextlib.suppress(ConnectionError, TimeoutError):
                        await asyncio.wait_for(client.ping(), 1)
                assert (await watcher.get("/healthz", host=world.host)).status == 200
            assert sum(map(len, (each.answering for each in world.door._places))) < 200
        await still_there(world)

    served.run(body)


def test_what_a_peer_leaves_out_costs_no_memory(served: Served) -> None:
    async def body(world: World) -> None:
        async with world.client() as client:
            await client.get("/healthz", host=world.host)
            (ours,) = [
                each
                for each in world.door._places
                if each.quic.peer[1] == client._transport.get_extra_info("sockname")[1]
            ]
            # One byte far behind what was sent, again and again as far as we are let: room is made
            # for none of what is between.
            number = client.quic.get_next_available_stream_id()
            client.quic.send_stream_data(
                number, encode_uint_var(FrameType.HEADERS) + encode_uint_var(1 << 30)
            )
            client.transmit()
            for _ in range(50):
                stream = client.quic._streams[number]
                gap = stream.max_stream_data_remote - stream.sender._buffer_stop - 1
                if gap > 0:
                    stream.sender._buffer += bytes(gap + 1)
                    stream.sender._buffer_stop += gap + 1
                    stream.sender._pending.add(
                        stream.sender._buffer_stop - 1, stream.sender._buffer_stop
                    )
                    stream.sender.buffer_is_empty = False
                client.transmit()
                await client.ping()
            held = sum(len(each.receiver._buffer) for each in ours.quic._streams.values())
            assert 0 < held <= bounded_memory.STREAM_WINDOW
            assert ours.quic._local_max_data.value <= 4 * bounded_memory.CONNECTION_WINDOW

    served.run(body)


def test_a_reader_that_stands_still_is_not_sent_more_than_it_may_hold(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_UNSENT", 64 << 10)
    monkeypatch.setattr(connection, "MOST_UNSENT_TOGETHER", 96 << 10)

    async def body(world: World) -> None:
        # Large enough that it cannot leave at once: the description of the API, several times.
        async with world.client() as client:
            await client.get("/openapi.json", host=world.host)
            port = client._transport.get_extra_info("sockname")[1]
            (ours,) = [each for each in world.door._places if each.quic.peer[1] == port]
            streams = [client.ask("GET", "/openapi.json", host=world.host) for _ in range(3)]
            client.reading = False
            await asyncio.sleep(0)
            async with world.client() as other:
                for _ in range(20):
                    await other.get("/healthz", host=world.host)
            unsent = [ours.quic.unsent(number) for number, _ in streams]
            assert max(unsent) <= connection.MOST_UNSENT + connection.PIECE
            assert sum(unsent) <= connection.MOST_UNSENT_TOGETHER + len(streams) * connection.PIECE
            client.reading = True
            client.transmit()
            whole = [await stream.whole() for _, stream in streams]
            assert {(each.status, len(each.body)) for each in whole} == {
                (200, int(whole[0].headers["content-length"]))
            }

    served.run(body)


def test_noise_on_the_port_changes_nothing(served: Served) -> None:
    async def body(world: World) -> None:
        dice = random.Random(8)
        async with world.client() as client:
            real: list[bytes] = []
            send = client._transport.sendto
            client._transport.sendto = lambda data, addr=None: (real.append(data), send(data, addr))  # type: ignore[method-assign,assignment]
            assert (await client.get("/healthz", host=world.host)).status == 200
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
                noise.connect(("127.0.0.1", world.port))
                for number in range(1_500):
                    match number % 3:
                        case 0:
                            data = dice.randbytes(dice.randrange(1, 1_400))
                        case 1:
                            # A long header of a version that we speak, and then anything.
                            data = b"\xc3\x00\x00\x00\x01\x08" + dice.randbytes(
                                dice.randrange(8, 1_300)
                            )
                        case _:
                            kept = bytearray(dice.choice(real))
                            kept[dice.randrange(len(kept))] ^= 1 << dice.randrange(8)
                            data = bytes(kept)
                    noise.send(data)
                    if not number % 100:
                        await asyncio.sleep(0)
            assert (await client.get("/healthz", host=world.host)).status == 200
        await still_there(world)

    before = len(os.listdir("/proc/self/fd"))
    served.run(body)
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_one_place_gets_only_so_many_connections(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_FROM_ONE_PLACE", 2)

    async def body(world: World) -> None:
        await nobody_else(world)
        async with world.client(), world.client():
            third = asyncio.create_task(still_there(world))
            assert await asyncio.wait([third], timeout=0.3) == (set(), {third})
            assert world.door.connections == 2
            third.cancel()
        await nobody_else(world)
        await still_there(world)

    served.run(body)


def test_who_asks_for_nothing_is_sent_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_KEEP_ALIVE_S", 0.1)

    async def body(world: World) -> None:
        async with world.client() as client:
            await asyncio.wait_for(client.wait_closed(), 20)
            assert client.terminated is not None
            assert client.terminated.error_code == ErrorCode.H3_NO_ERROR

    served.run(body)
