"""Tools on a worker, beside the same tools here: what a call costs more, how fast files travel, how
soon a cancel arrives.

The worker is a process of its own on the same machine: what is measured is the link, not a network.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults import eventually
from tests.inprocess import finished, say, session, until
from tests.worker_world import World, world

from bench.common import ROOT, Table
from palyra.api import listen_sockets
from palyra.core.ids import OWNER
from palyra.features.workers.door.quic import listen
from palyra.models.scripted import ScriptedCall, Turn
from palyra.store.sessions import Session

CALLS = 40
CANCELS = 10
FILE_BYTES = 4 << 20
_RUN = """import asyncio, sys
from pathlib import Path
from palyra.features.workers.node import process
offered = ("shell.run", "test.pure", "test.once")
asyncio.run(process.run(Path(sys.argv[1]), offered, slots=4, say=print, quic=sys.argv[2] == "quic", rehearsal=True))
"""  # noqa: E501


def _turns(name: str, **arguments: object) -> Sequence[Turn]:
    return [Turn(calls=(ScriptedCall(name=name, arguments=dict(arguments)),)), Turn(text=("ok",))]


def _script() -> dict[str, Sequence[Turn]]:
    found: dict[str, Sequence[Turn]] = {}
    for where, prefix in (("here", ""), ("there", "worker:attic/")):
        found[f"look {where}"] = _turns(f"{prefix}test.pure", text="x")
        found[f"change {where}"] = _turns(f"{prefix}test.once", path="lines.txt", line="x")
        found[f"command {where}"] = _turns(f"{prefix}shell.run", command="true")
    found["send"] = _turns("worker:attic/shell.run", command="true", files=["big.bin"])
    found["bring"] = _turns(
        "worker:attic/shell.run",
        command="cp big.bin out.bin",
        files=["big.bin"],
        results=["out.bin"],
    )
    found["long"] = _turns(
        "worker:attic/test.once", path="lines.txt", line="x", hold="hold", hold_at="before"
    )
    return found


async def _timed(w: World, there: Session, text: str) -> float:
    began = time.perf_counter()
    await finished(w.daemon, await say(w.daemon, there, text))
    return time.perf_counter() - began


async def _calls(w: World, there: Session) -> list[tuple[str, str, str]]:
    rows = []
    for what in ("look", "change", "command"):
        times = {}
        for where in ("here", "there"):
            await _timed(w, there, f"{what} {where}")
            times[where] = statistics.median(
                [await _timed(w, there, f"{what} {where}") for _ in range(CALLS)]
            )
        rows.append((what, f"{times['here'] * 1000:.1f} ms", f"{times['there'] * 1000:.1f} ms"))
    return rows


async def _files(w: World, there: Session, folder: Path) -> list[tuple[str, str]]:
    big = folder / "work" / "big.bin"
    empty = await _timed(w, there, "command there")
    big.write_bytes(os.urandom(FILE_BYTES))
    sent = await _timed(w, there, "send") - empty
    again = await _timed(w, there, "send")
    back = await _timed(w, there, "bring") - empty
    size = FILE_BYTES / 2**20
    return [
        ("sent there", f"{size / sent:.0f} MiB/s"),
        ("brought back, known there", f"{size / back:.0f} MiB/s"),
        ("sent again: the whole run", f"{again * 1000:.0f} ms"),
    ]


async def _cancelled(w: World, home: Path) -> float:
    station = w.daemon.workers.presence.station("attic")
    there = await session(w.daemon)
    folder = home / "work" / there.session_id
    folder.mkdir()
    os.mkfifo(folder / "hold")
    run = await say(w.daemon, there, "long")
    await until(w.daemon, there.session_id, "tool.started")
    await eventually(lambda: station.held, "the worker has it")
    (call_id,) = station.held
    record = home / "state" / "calls" / f"{call_id}.json"
    await eventually(record.exists, "it has begun there")
    began = time.perf_counter()
    await w.daemon.gateway.cancel(OWNER, run.run_id)
    await eventually(lambda: not record.exists(), "the worker is done with it")
    return time.perf_counter() - began


def _launched(folder: str, carrier: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, folder, carrier], cwd=ROOT, stdout=subprocess.DEVNULL
    )


async def _measure(
    folder: Path, carrier: str
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]], float]:
    async with world(folder, _script()) as w:
        home = await w.enrol()
        # Straight to the door: a proxy in between would be measured too.
        port = w.door.port
        by_quic = None
        if carrier == "quic":
            bound = listen_sockets.bind_udp("127.0.0.1", 0)
            by_quic, port = await listen(bound, w.door.reception), bound.getsockname()[1]
        known = home.identity()
        home.keep(
            type(known)(name=known.name, host="127.0.0.1", port=port, instance=known.instance)
        )
        w.processes.append(_launched(str(home.folder), carrier))
        await w.connected("attic")
        there = await session(w.daemon)
        measured = (
            await _calls(w, there),
            await _files(w, there, folder),
            max([await _cancelled(w, home.folder) for _ in range(CANCELS)]),
        )
        if by_quic is not None:
            await by_quic.end()
        return measured


def tables() -> Iterator[Table]:
    for carrier, name in (("tls", "TLS"), ("quic", "QUIC")):
        # Not below /tmp: the sandbox hides that.
        with tempfile.TemporaryDirectory(dir=ROOT) as folder:
            calls, files, cancelled = asyncio.run(_measure(Path(folder), carrier))
        yield Table(
            f"a run with one call, here and at a worker by {name} (median of {CALLS})",
            ("call", "here", "there"),
            calls,
        )
        rows = [*files, ("longest from a cancel to its end there", f"{cancelled * 1000:.0f} ms")]
        yield Table(
            f"files of {FILE_BYTES >> 20} MiB and cancels at a worker by {name}", ("", ""), rows
        )
