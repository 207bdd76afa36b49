"""One daemon with all its doors open, in the test's own loop, and what the model says through each
of them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc

from palyra.api import listen_sockets
from palyra.api.auth import Access
from palyra.api.grpc.server import GrpcServer
from palyra.api.http3.server import listen
from palyra.api.http_server import HttpServer
from palyra.api.limits import ApiLimits
from palyra.core.ids import OWNER
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, StreamPause, Turn
from palyra.serve.process import http_app
from palyra.serve.wiring.daemon import Daemon
from palyra.store.tokens import TokenScope
from tests.doors import http3
from tests.doors.doors import Door, Http, Inside, WebSocket
from tests.doors.over_grpc import Grpc
from tests.inprocess import daemon

NAMES = ("in-process", "http+sse", "websocket", "grpc", "http3")
WORDS = tuple(f"word{number} " for number in range(20))


def script(holds: dict[str, StreamPause]) -> ScriptedModel:
    by_trigger: dict[str, tuple[Turn, ...]] = {
        "talk": (Turn(text=WORDS, reasoning=("so ", "that")),),
        "write": (
            Turn(
                calls=(
                    ScriptedCall(
                        name="fs.write", arguments={"path": "note.txt", "content": "first\n"}
                    ),
                )
            ),
            Turn(text="written"),
        ),
    }
    for name in NAMES:
        # Each writes something else: a write that changes nothing does not ask.
        written = ScriptedCall(name="fs.write", arguments={"path": "door.txt", "content": name})
        by_trigger[f"write {name}"] = (Turn(calls=(written,)), Turn(text="written"))
        pure = ScriptedCall(
            name="test.pure", arguments={"text": "big numbers stay: 9007199254740993"}
        )
        by_trigger[f"steer {name}"] = (
            Turn(text=("one", "two"), hold=f"steer {name}", hold_after=1, calls=(pure,)),
            Turn(text="done"),
        )
        by_trigger[f"cancel {name}"] = (
            Turn(text=("one", "two"), hold=f"cancel {name}", hold_after=1),
        )
        holds[f"steer {name}"], holds[f"cancel {name}"] = StreamPause(), StreamPause()
    return ScriptedModel(Script(by_trigger), holds=holds)


@dataclass
class World:
    daemon: Daemon
    app: Any
    access: Access
    holds: dict[str, StreamPause]
    url: str
    grpc_address: str
    http3_url: str
    doors: dict[str, Door]
    stack: AsyncExitStack

    async def door(self, name: str, scope: TokenScope = "owner", *, secret: str = "") -> Door:
        """Another way in, with a token of its own."""
        if not secret:
            secret, _ = await self.access.mint(OWNER, f"{name} {scope}", scope, principal=OWNER)
        if name == "grpc":
            return Grpc(
                await self.stack.enter_async_context(grpc.aio.insecure_channel(self.grpc_address)),
                secret,
            )
        if name == "http3":
            session = await self.stack.enter_async_context(
                http3.client(self.daemon.certificates.authority_file, secret)
            )
            return http3.Http3(self.http3_url, session)
        headers = {"Authorization": f"Bearer {secret}"}
        client = await self.stack.enter_async_context(
            aiohttp.ClientSession(
                self.url, headers=headers, connector=aiohttp.TCPConnector(limit=0)
            )
        )
        return WebSocket(client) if name == "websocket" else Http(client)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[World]:
    holds: dict[str, StreamPause] = {}
    async with AsyncExitStack() as stack:
        inside = await stack.enter_async_context(daemon(folder, script(holds)))
        access = Access(inside.db, inside.clock, inside.redactor.redact)
        await access.open()
        listener = stack.enter_context(listen_sockets.bind("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        # Often: curl says nothing of an answer before something of its body has come.
        limits = ApiLimits(requests_per_second=10_000, heartbeat_s=0.1)
        udp = stack.enter_context(listen_sockets.bind_udp("127.0.0.1", 0))
        quic_port = udp.getsockname()[1]
        app = await http_app(inside, access, limits, url, {}, quic_port=quic_port)
        quic = await listen(
            udp, app, limits, await inside.certificates.serve(["localhost", "127.0.0.1"])
        )
        stack.push_async_callback(quic.end)
        server, grpc_server = HttpServer(app, limits), GrpcServer(app)
        ready = asyncio.Event()
        serving = asyncio.create_task(server.run_on(listener, ready.set))
        await grpc_server.start("127.0.0.1", 0)
        stack.push_async_callback(grpc_server.stop)
        await asyncio.wait_for(ready.wait(), 10)
        world = World(
            inside,
            app,
            access,
            holds,
            url,
            grpc_server.address,
            f"https://localhost:{quic_port}",
            {},
            stack,
        )
        world.doors = {name: await world.door(name) for name in NAMES if name != "in-process"}
        world.doors["in-process"] = Inside(inside, app.services)
        yield world
        server.stop()
        await asyncio.wait_for(serving, 10)
