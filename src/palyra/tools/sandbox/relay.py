"""The way out of a sandbox that was granted hosts: a port on its own loopback that leads to the
egress proxy's Unix socket.

The listening socket is made inside the sandbox's network by a helper that enters it, and handed
back. So the relay itself runs in the daemon, where the program cannot touch it, and the proxy's
socket is never visible inside.
"""

import asyncio
import socket
from collections.abc import Callable

from palyra.core.errors import Unavailable
from palyra.system.child_process import ChildProcess
from palyra.system.descriptors import readable

PORT = 3128
_CHUNK = 64 << 10
_LONGEST_S = 15.0

# Runs as a program of its own because entering a namespace needs a process with one thread.
# The sandbox is in a user namespace inside the one that owns its network; the owner is asked for by
# NS_GET_USERNS.
_LISTEN = """
import ctypes, fcntl, os, socket, sys
pid, port, channel = map(int, sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
for name, handle in (("user", fcntl.ioctl(network, 0xB701)), ("network", network)):
    if libc.setns(handle, 0):
        sys.exit(f"cannot enter the {name} namespace: {os.strerror(ctypes.get_errno())}")
listener = socket.create_server(("127.0.0.1", port), backlog=64)
socket.send_fds(socket.socket(fileno=channel), [b"x"], [listener.fileno()])
"""


async def start(python: str, pid: int, gate: str) -> Callable[[], None]:
    """Listen in the network of `pid` and lead every connection to `gate`. Returns what ends it."""
    listener = await _listener(python, pid)
    pumps: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        pumps.add(task)
        try:
            await _join(reader, writer, gate)
        finally:
            pumps.discard(task)

    server = await asyncio.start_server(connected, sock=listener)

    def stop() -> None:
        server.close()
        for task in pumps:
            task.cancel()

    return stop


async def _listener(python: str, pid: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        # Isolated and without site packages: it starts fast and nothing in the environment can
        # change what it does.
        helper = ChildProcess(
            [
                python,
                *("-I", "-S", "-c", _LISTEN, str(pid), str(PORT), str(theirs.fileno())),
            ],
            stdin=False,
            stdout=False,
            pass_fds=[theirs.fileno()],
        )
        async with asyncio.timeout(_LONGEST_S):
            _, said = await helper.talk()
        if helper.code:
            raise Unavailable(
                "the sandbox's network cannot be reached:"
                f" {said.decode(errors='replace').strip()[-300:]}"
            )
        await readable(ours.fileno())
        _, handed, _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=handed[0])


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: str) -> None:
    try:
        inner, outer = await asyncio.open_unix_connection(gate)
    except OSError:
        writer.close()
        return
    try:
        await asyncio.gather(_pump(reader, outer), _pump(inner, writer))
    finally:
        outer.close()
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        # One side went away; closing the other is all there is to say.
        writer.close()
