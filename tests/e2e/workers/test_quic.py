"""The worker link by QUIC: the same rules, in-band proof of who one is, and a machine that moves to
another address meanwhile.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palyra.api import listen_sockets
from palyra.core.errors import Unauthenticated
from palyra.features.tls import authority
from palyra.features.workers.door.quic import QuicDoor, listen
from palyra.features.workers.node import quic
from palyra.features.workers.node.dial import DaemonConnection
from palyra.features.workers.node.home import Home
from palyra.features.workers.node.quic import Dialled
from palyra.features.workers.node.worker import Worker
from palyra.features.workers.protocol import (
    AskChallenge,
    Beat,
    CallRefused,
    Challenge,
    Prove,
    challenge,
)
from palyra.models.scripted import Turn
from tests.crash.scenarios import call
from tests.inprocess import body, entries, finished, say, session
from tests.journals import run as run_loop
from tests.worker_world import World, arrived, release, world

HELD = call("worker:attic/test.once", path="lines.txt", line="effect", hold="hold")
SENT = call(
    "worker:attic/shell.run",
    command="sha256sum big.bin; cp big.bin out.bin",
    files=["big.bin"],
    results=["out.bin"],
)
SCRIPT = [Turn(calls=(HELD, SENT)), Turn(text=("ok",))]


@asynccontextmanager
async def by_udp(w: World) -> AsyncIterator[tuple[QuicDoor, int]]:
    bound = listen_sockets.bind_udp("127.0.0.1", 0)
    door = await listen(bound, w.door.reception)
    try:
        yield door, bound.getsockname()[1]
    finally:
        await door.end()


def told(home: Home, port: int) -> Home:
    """The same worker, which looks for its daemon at this port."""
    before = home.identity()
    home.keep(type(before)(name=before.name, host="127.0.0.1", port=port, instance=before.instance))
    return home


def test_a_worker_by_quic_moves_to_another_address_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[Dialled] = []
    connected = quic._connected

    async def kept(*arguments: object) -> Dialled:
        lines.append(await connected(*arguments))  # type: ignore[arg-type]
        return lines[-1]

    monkeypatch.setattr(quic, "_connected", kept)

    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w, by_udp(w) as (door, port):
            (tmp_path / "work" / "big.bin").write_bytes(os.urandom(1_500_000))
            home = told(await w.enrol(), port)
            worker = Worker(
                home,
                ("shell.run", "test.once"),
                slots=2,
                say=lambda text: None,
                quic=True,
                rehearsal=True,
            )
            task = asyncio.create_task(worker.run())
            w.running.append(task)
            await w.connected("attic", task)
            there = await session(w.daemon)
            folder = Path(home.session(there.session_id))
            os.mkfifo(folder / "hold")
            run = await say(w.daemon, there, "go")
            at = await arrived(folder / "hold")

            # Another socket, another port: for the daemon the same connection goes on.
            (line,) = lines
            (seen,) = door._places
            old, before = line._transport, seen.quic.peer
            moved, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: line, local_addr=("127.0.0.1", 0)
            )
            release(at)
            await finished(w.daemon, run)
            results = [
                body(each)
                for each in await entries(w.daemon, there.session_id)
                if each.kind == "tool.finished"
            ]
            assert [each["outcome"] for each in results] == ["ok", "ok"], results
            assert (folder / "lines.txt").read_text() == "effect\n"
            work = tmp_path / "work"
            assert (work / "out.bin").read_bytes() == (work / "big.bin").read_bytes()
            assert seen.quic.peer == moved.get_extra_info("sockname") != before
            assert len(lines) == 1, "it had to connect anew"
            assert await w.system("worker.refused") == []
            assert old is not None
            old.close()

    run_loop(scenario())


def test_by_quic_a_worker_proves_that_the_key_is_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, []) as w, by_udp(w) as (_, port):
            home = await w.enrol()
            settings = ("127.0.0.1", port)
            stolen = home.pair().certificate.decode()
            other = authority.new_request("worker")

            async def refused(*messages: object, forge: bytes = b"") -> str:
                """Somebody who has the certificate and not the key."""
                carrier = await quic._connected(quic.settings_for(home), *settings)
                line = DaemonConnection(carrier)
                if forge:
                    said = await line.ask(AskChallenge())
                    assert isinstance(said, Challenge)
                    line.post(
                        Prove(
                            certificate=stolen,
                            signature=authority.sign(forge, challenge(said.nonce)),
                        )
                    )
                for message in messages:
                    line.post(message)  # type: ignore[arg-type]
                answer = await line.receive()
                line.close()
                assert isinstance(answer, CallRefused)
                return answer.code

            assert await refused(forge=other.key) == "unauthenticated"
            assert await refused(Beat(number=1)) == "invalid_input"
            assert [each["why"] for each in await w.system("worker.refused")] == ["certificate"]

            # Whoever has another authority is not the daemon: nothing is signed for it.
            home.authority.write_bytes(
                authority.new_authority("somebody", w.daemon.clock.now_ms()).certificate
            )
            with pytest.raises(Unauthenticated, match="not the daemon"):
                await quic.dial(home, *settings)

    run_loop(scenario())
