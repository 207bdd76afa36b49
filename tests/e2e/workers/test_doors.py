"""Who gets in as a worker: codes once and in time, certificates of ours that are good; everybody
else is refused and recorded.
"""

import asyncio
import os
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, Unauthenticated
from palyra.core.ids import OWNER
from palyra.features.tls import authority
from palyra.features.workers.node import dial, enrol
from palyra.features.workers.node.dial import DaemonConnection
from palyra.features.workers.node.home import Home
from palyra.features.workers.protocol import (
    MOST_FRAME,
    PROTOCOL,
    Beat,
    CallRefused,
    CallSettled,
    CancelCall,
    Down,
    Finished,
    Frames,
    Hello,
    ProgressReport,
    Welcome,
    WorkerMessage,
    frame,
)
from palyra.models.scripted import Turn
from palyra.system.clock import Clock
from tests.crash.scenarios import call
from tests.inprocess import finished, say, session
from tests.journals import run as run_loop
from tests.worker_world import World, arrived, release, world


class MovedClock(Clock):
    """A clock that a test sets forward."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


def hello(home: Home, **other: Any) -> Hello:
    told: dict[str, Any] = {
        "protocol": PROTOCOL,
        "version": "test",
        "instance": home.identity().instance,
        "tier": "C",
        **other,
    }
    return Hello(**told)


async def dialled(w: World, context: ssl.SSLContext) -> DaemonConnection:
    return await dial.dial("127.0.0.1", w.proxy.port, context)


async def answer(line: DaemonConnection) -> Down | None:
    async with asyncio.timeout(20):
        try:
            return await line.receive()
        except OSError:
            return None


async def refused(line: DaemonConnection, message: WorkerMessage) -> str:
    line.post(message)
    said = await answer(line)
    assert isinstance(said, CallRefused), said
    assert await answer(line) is None
    return said.code


async def whys(w: World) -> list[str]:
    return [each["why"] for each in await w.system("worker.refused")]


def test_a_code_is_good_once_and_in_time_and_guessing_is_locked_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with world(tmp_path, [], clock=clock) as w:
            desk, address = w.daemon.workers.desk, f"127.0.0.1:{w.proxy.port}"
            made = await desk.enrol(OWNER, "attic")
            home = Home(tmp_path / "one")

            # Somebody in between: nothing is sent to whoever has another authority.
            with pytest.raises(Unauthenticated, match="another authority"):
                await enrol.enrol(home, address, made.code, "0" * 64)
            identity = await enrol.enrol(home, address, made.code, made.authority)
            assert identity.name == "attic"
            for path in (home.certificate, home.authority):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with pytest.raises(Unauthenticated, match="not good"):
                await enrol.enrol(Home(tmp_path / "two"), address, made.code, made.authority)
            with pytest.raises(Conflict, match="already"):
                await desk.enrol(OWNER, "attic")

            late = await desk.enrol(OWNER, "late")
            clock.ahead_ms = 16 * 60_000
            with pytest.raises(Unauthenticated, match="too old"):
                await enrol.enrol(Home(tmp_path / "two"), address, late.code, made.authority)

            good = await desk.enrol(OWNER, "third")
            for guess in ("AAAA-AAAA-AAAA-AAA0", "no code", "AAAA-AAAA-AAAA-AAA1"):
                with pytest.raises(Unauthenticated):
                    await desk.redeem(guess, "", "192.0.2.1")
            with pytest.raises(InvalidInput):
                await desk.redeem(good.code, "no request", "192.0.2.2")
            for _ in range(5):
                with pytest.raises(Unauthenticated):
                    await desk.redeem("AAAA-AAAA-AAAA-AAA2", "", "192.0.2.3")
            # Even the right one comes too late for who was locked out.
            with pytest.raises(LimitExceeded):
                await desk.redeem("AAAA-AAAA-AAAA-AAA2", "", "192.0.2.3")
            assert set(await whys(w)) == {"code"}
            with pytest.raises(InvalidInput):
                await desk.enrol(OWNER, "../etc")

    run_loop(scenario())


def test_who_has_no_certificate_or_another_ones_or_a_revoked_one_is_refused_and_recorded(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, []) as w:
            home = await w.enrol()
            trust = home.authority.read_text()

            line = await dialled(w, dial.trusting(trust))
            assert await refused(line, hello(home)) == "unauthenticated"
            assert await whys(w) == ["certificate"]

            # A certificate of the right name, by an authority of somebody's own: TLS itself turns
            # it away.
            other = authority.new_authority("somebody", w.daemon.clock.now_ms())
            forged = authority.issue_client(other, "attic", w.daemon.clock.now_ms())
            (tmp_path / "forged.pem").write_bytes(forged.together)
            context = dial.trusting(trust)
            context.load_cert_chain(tmp_path / "forged.pem")
            w.daemon.workers.refusals._told.clear()
            line = await dialled(w, context)
            line.post(hello(home))
            assert await answer(line) is None
            assert [each["detail"] for each in await w.system("worker.refused")] == [
                "it showed none",
                "certificate verify failed",
            ]

            # The daemon's own certificate for workers opens nothing from the other side.
            with pytest.raises(Unauthenticated, match="not the daemon"):
                await dial.dial(
                    "127.0.0.1", w.proxy.port, dial.trusting(other.certificate.decode())
                )

            for wrong, code in (({"protocol": PROTOCOL + 1}, "conflict"), ({}, "")):
                line = await dialled(w, dial.of(home))
                if code:
                    assert await refused(line, hello(home, **wrong)) == code
            line.post(hello(home))
            assert isinstance(await answer(line), Welcome)
            second = await dialled(w, dial.of(home))
            assert (
                await refused(second, hello(home, instance="01ARZ3NDEKTSV4RRFFQ69G5FAV"))
                == "conflict"
            )

            shown = await w.daemon.workers.desk.revoke(OWNER, "attic")
            assert shown.state == "revoked"
            assert await answer(line) is None, "its link is still open"
            line = await dialled(w, dial.of(home))
            assert await refused(line, hello(home)) == "unauthenticated"
            assert {"certificate", "version", "double", "revoked"} == set(await whys(w))
            assert not [
                spec.name for spec in w.daemon.catalogue.specs() if spec.name.startswith("worker:")
            ]

            # The name may be used again, by a new certificate; the old one stays worthless.
            again = await w.daemon.workers.desk.enrol(OWNER, "attic")
            await enrol.enrol(
                Home(tmp_path / "new"), f"127.0.0.1:{w.proxy.port}", again.code, again.authority
            )
            line = await dialled(w, dial.of(home))
            assert await refused(line, hello(home)) == "unauthenticated"

    run_loop(scenario())


def test_a_worker_that_speaks_of_anothers_call_is_cut_off_and_nobody_believes_it(
    tmp_path: Path,
) -> None:
    held = call("worker:attic/test.once", path="lines.txt", line="effect", hold="hold")
    script = [Turn(calls=(held,)), Turn(text=("ok",))]

    async def scenario() -> None:
        async with world(tmp_path, script) as w:
            home, thief = await w.enrol("attic"), await w.enrol("thief")
            await w.start(home)
            there = await session(w.daemon)
            fifo = Path(home.session(there.session_id)) / "hold"
            os.mkfifo(fifo)
            run = await say(w.daemon, there, "go")
            at = await arrived(fifo)
            (call_id,) = w.daemon.workers.presence.station("attic").held
            for lie in (
                Finished(call_id=call_id, attempt=1, outcome="ok", text="done, believe me"),
                ProgressReport(call_id=call_id, attempt=1, text="nearly"),
            ):
                line = await dialled(w, dial.of(thief))
                line.post(hello(thief, tools=("test.once",)))
                assert isinstance(await answer(line), Welcome)
                assert await refused(line, lie) == "forbidden"
            release(at)
            await finished(w.daemon, run)
            assert [
                (each["why"], each["worker"], each["call_id"])
                for each in await w.system("worker.refused")
            ] == [("not_its_call", "thief", call_id)]

            # Its own call, which it never had: a result for nothing is refused too, and it may
            # forget it.
            line = await dialled(w, dial.of(thief))
            line.post(hello(thief))
            assert isinstance(await answer(line), Welcome)
            line.post(
                Finished(call_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", attempt=1, outcome="ok", text="")
            )
            assert isinstance(await answer(line), CallSettled)
            assert await whys(w) == ["not_its_call", "late_result"]

    run_loop(scenario())


def test_what_is_no_message_is_refused_in_words_and_costs_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, []) as w:
            home = await w.enrol()
            for garbage in (
                b"GET / HTTP/1.1\r\n\r\n",
                (MOST_FRAME + 1).to_bytes(4, "big"),
                b"\x00\x00\x00\x03\xff\xff\xff",
                b"\x00\x00\x00\x00",
                frame(Beat(number=1)),
                frame(CancelCall(call_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", attempt=1)),
            ):
                line = await dialled(w, dial.of(home))
                line._carrier.write(garbage)
                assert isinstance(said := await answer(line), CallRefused)
                assert said.code == "invalid_input"
                line.close()
            # The same after a proper beginning is recorded: it comes from somebody whom we know.
            line = await dialled(w, dial.of(home))
            line.post(hello(home))
            assert isinstance(await answer(line), Welcome)
            assert await refused(line, hello(home)) == "invalid_input"
            assert [(each["why"], each["worker"]) for each in await w.system("worker.refused")] == [
                ("message", "attic")
            ]

    run_loop(scenario())


def test_strangers_who_say_nothing_are_bounded_and_keep_no_worker_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, []) as w:
            home = await w.enrol()
            silent = [await asyncio.open_connection("127.0.0.1", w.door.port) for _ in range(70)]
            # Those who have shaken hands and say no word are no better.
            lines = [await dialled(w, dial.trusting(home.authority.read_text())) for _ in range(33)]
            assert await answer(lines[0]) is None
            async with asyncio.timeout(20):
                for reader, _ in silent:
                    assert await reader.read() == b""
            line = await dialled(w, dial.of(home))
            line.post(hello(home))
            assert isinstance(await answer(line), Welcome)
            for each in (line, *lines):
                each.close()
            for _, writer in silent:
                writer.close()

    run_loop(scenario())


def test_frames_come_out_as_they_went_in_however_they_are_cut() -> None:
    messages = [Beat(number=number) for number in range(50)]
    stream = b"".join(map(frame, messages))
    for size in (1, 3, 7, len(stream)):
        frames = Frames()
        found = [
            body
            for at in range(0, len(stream), size)
            for body in frames.feed(stream[at : at + size])
        ]
        assert found == [frame(message)[4:] for message in messages]
