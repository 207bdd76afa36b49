"""`python -m bench.watching TRANSPORT ADDRESS SESSION COUNT`: so many watchers of one session, in a
process of their own.

The token comes in PALYRA_TOKEN. `ready` is printed when all of them are there; with `--until N` it
ends when each has seen the entry N, and prints how many seconds that took; otherwise with its
standard input. `--deaf` opens streams and reads nothing.
"""

import argparse
import asyncio
import importlib
import os
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

TOKEN = os.environ.get("PALYRA_TOKEN", "")
# Called with what has come; True: this watcher has seen what it waits for.
Seen = Callable[[bytes], bool]


async def _sse(
    address: str, session: str, watch: Seen, here: Callable[[], None], deaf: bool
) -> None:
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 22)
    head = f"Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n"
    writer.write(f"GET /v1/sessions/{session}/events HTTP/1.1\r\n{head}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    here()
    while not deaf and not watch(await reader.read(1 << 16)):
        pass
    await (asyncio.Event().wait() if deaf else asyncio.sleep(0))
    writer.close()


async def _websocket(
    address: str, session: str, watch: Seen, here: Callable[[], None], deaf: bool
) -> None:
    from websockets.asyncio.client import connect

    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"ws://{address}/v1/sessions/{session}/ws"
    async with connect(url, additional_headers=headers, max_size=None, compression=None) as socket:
        here()
        while not deaf and not watch(await socket.recv(decode=False)):
            pass
        await (asyncio.Event().wait() if deaf else asyncio.sleep(0))


_channels: list[Any] = []


async def _grpc(
    address: str, session: str, watch: Seen, here: Callable[[], None], deaf: bool
) -> None:
    import grpc

    from palyra.v1 import sessions_pb2

    if not _channels:
        options = (
            ("grpc.use_local_subchannel_pool", 1),
            *((("grpc.http2.lookahead_bytes", 1_024),) if deaf else ()),
        )
        _channels.extend(grpc.aio.insecure_channel(address, options=options) for _ in range(4))
    _channels.append(_channels.pop(0))
    # The bytes alone: what the client does with them is not ours to measure.
    call = _channels[0].unary_stream("/palyra.v1.Sessions/Watch")
    asked = sessions_pb2.SessionsWatchRequest(session_id=session).SerializeToString()
    stream = call(asked, metadata=(("authorization", f"Bearer {TOKEN}"),))
    await stream.initial_metadata()
    here()
    while not deaf and not watch(await stream.read()):
        pass
    await (asyncio.Event().wait() if deaf else asyncio.sleep(0))
    stream.cancel()


_connections: list[Any] = []
_kept: list[Any] = []
_PER_CONNECTION = 100


async def _http3(
    address: str, session: str, watch: Seen, here: Callable[[], None], deaf: bool
) -> None:
    from aioquic.asyncio import QuicConnectionProtocol, connect
    from aioquic.h3.connection import H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Client(QuicConnectionProtocol):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            self.http = H3Connection(self._quic)
            self.waiting: dict[int, asyncio.Queue[bytes]] = {}
            self.streams = 0

        def quic_event_received(self, event: Any) -> None:
            for each in self.http.handle_event(event):
                if isinstance(each, HeadersReceived):
                    self.waiting[each.stream_id].put_nowait(b"")
                elif isinstance(each, DataReceived):
                    self.waiting[each.stream_id].put_nowait(each.data)

    host, port = address.split(":")
    if not _connections or _connections[-1].streams >= _PER_CONNECTION:
        settings = QuicConfiguration(alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE)
        opening = connect(host, int(port), configuration=settings, create_protocol=Client)
        _kept.append(opening)
        _connections.append(await opening.__aenter__())
    client = _connections[-1]
    client.streams += 1
    stream_id = client._quic.get_next_available_stream_id()
    queue = client.waiting[stream_id] = asyncio.Queue()
    path = f"/v1/sessions/{session}/events".encode()
    headers = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", address.encode()),
        (b":path", path),
        (b"authorization", f"Bearer {TOKEN}".encode()),
    ]
    client.http.send_headers(stream_id, headers, end_stream=True)
    client.transmit()
    await queue.get()
    here()
    while not watch(await queue.get()):
        pass


TRANSPORTS: dict[str, Callable[[str, str, Seen, Callable[[], None], bool], Awaitable[None]]] = {
    "sse": _sse,
    "websocket": _websocket,
    "grpc": _grpc,
    "http3": _http3,
}


# Loaded before the clock runs.
_LOADED = {
    "sse": (),
    "websocket": ("websockets.asyncio.client",),
    "grpc": ("grpc.aio", "palyra.v1.sessions_pb2"),
    "http3": ("aioquic.asyncio", "aioquic.h3.connection"),
}


class Watcher:
    """Watcher that looks for its entry in what comes, whatever it is wrapped in."""

    def __init__(self, transport: str, until: int) -> None:
        self._until = until
        self._grpc = transport == "grpc"
        self._needle = b'"seq":%d,' % until
        self._kept = b""

    def __call__(self, data: bytes) -> bool:
        if not self._until:
            return False
        if self._grpc:
            from palyra.v1 import events_pb2

            return any(
                each.entry.seq == self._until for each in events_pb2.Batch.FromString(data).happened
            )
        self._kept = self._kept[-32:] + data
        return self._needle in self._kept


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=TRANSPORTS)
    parser.add_argument("address")
    parser.add_argument("session")
    parser.add_argument("count", type=int)
    parser.add_argument("--until", type=int, default=0)
    parser.add_argument("--deaf", action="store_true")
    given = parser.parse_args()
    for module in _LOADED[given.transport]:
        importlib.import_module(module)
    arrived = asyncio.Semaphore(0)
    begun = 0.0

    def here() -> None:
        # From the head of the answer on: connecting is not what is asked for.
        nonlocal begun
        begun = time.perf_counter()
        arrived.release()

    watchers = [Watcher(given.transport, given.until) for _ in range(given.count)]
    tasks = []
    for watcher in watchers:
        work = TRANSPORTS[given.transport](given.address, given.session, watcher, here, given.deaf)
        tasks.append(asyncio.ensure_future(work))
        # One after the other: a thousand at once would measure the backlog of a socket.
        waiting = asyncio.ensure_future(arrived.acquire())
        done, _ = await asyncio.wait(
            {waiting, tasks[-1]}, return_when=asyncio.FIRST_COMPLETED, timeout=30
        )
        assert waiting in done, tasks[-1]
    print("ready", flush=True)
    if given.until:
        await asyncio.gather(*tasks)
    else:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(time.perf_counter() - begun, flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
