"""A storm over several nodes: people say things, leaders are killed, stopped, cut off and drained,
and an independent ledger says what was done.

Each message has one effect that must happen once: a line in a file. Nothing here asks the product
what it did but by reading the journal's tables.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal

import psycopg

from palyra.store.postgres_upkeep import ServerUpkeep
from tests.crash.test_process import call
from tests.cut_wire import CutWire
from tests.daemon import DaemonProcess
from tests.journals import new_id
from tests.nodes import LEASE_MS, Nodes, until
from tests.postgres_server import server

# `stop`: the daemon alone is stopped; `freeze`: with its supervisor, as by the pause of a machine.
Harm = Literal["kill", "stop", "freeze", "cut", "drain"]
HARMS: tuple[Harm, ...] = ("kill", "stop", "freeze", "cut", "drain")
_LONGEST_S = 180.0
_LEDGER = "lines.txt"


class Storm:
    """`takeovers`: seconds from the harm to another node's lease; `progress`: to the first entry
    that it has written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int,
        people: int,
        seed: object,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self.chance = random.Random(str(seed))
        script = {"*": [{"text": "hello"}] * 9}
        for person in range(people):
            for number in range(2_000):
                name = f"p{person}n{number}"
                script[f"line {name}"] = [
                    call("test.once", path=_LEDGER, line=name),
                    {"text": f"wrote {name}"},
                ]
        self.nodes = Nodes(folder, script, lease_ms=lease_ms)
        self.names = [f"node{each}" for each in range(nodes)]
        self.wires = {name: CutWire(server().port) for name in self.names}
        self.takeovers: dict[Harm, list[float]] = {harm: [] for harm in HARMS}
        self.progress: dict[Harm, list[float]] = {harm: [] for harm in HARMS}
        self.acknowledged: dict[str, str] = {}
        self.doubts = 0
        self.ledger_at_end: list[str] = []
        self._over = threading.Event()
        self._failed: list[str] = []
        self._people = [
            threading.Thread(target=self._guarded, args=(self._speak, each), daemon=True)
            for each in range(people)
        ]
        self._asked = threading.Thread(target=self._guarded, args=(self._answer,), daemon=True)

    def begin(self) -> None:
        for name in self.names:
            self._start(name)
        self.nodes.together()
        for each in (*self._people, self._asked):
            each.start()

    def _start(self, name: str, port: int = 0) -> None:
        through = self.nodes.address.replace(f":{server().port}/", f":{self.wires[name].port}/")
        self.nodes.start(name, address=through, port=port)

    def round(self, harm: Harm) -> None:
        """Harm the leader at a random moment, and wait until all is well again."""
        leader = self.nodes.led_by()
        self.nodes.together()
        daemon = self.nodes.up[leader]
        time.sleep(self.chance.uniform(0.0, 0.4))
        began, before = time.monotonic(), self.nodes.lease()["epoch"]
        stopped = self._harm(harm, leader, daemon)
        until(lambda: self.nodes.lease()["epoch"] > before, f"nobody took over ({harm})")
        written = self._position()
        self.takeovers[harm].append(time.monotonic() - began)
        until(lambda: self._position() > written, f"nothing was written ({harm})")
        self.progress[harm].append(time.monotonic() - began)
        if stopped:
            time.sleep(self.chance.uniform(0.0, 0.5))
        for each in stopped:
            _signal(each, signal.SIGCONT)
        self.wires[leader].before = lambda data: False
        if harm == "kill":
            self._start(leader, daemon.port)
        until(lambda: _ready(self.nodes.up[leader]), f"{leader} did not come back ({harm})")

    def _harm(self, harm: Harm, leader: str, daemon: DaemonProcess) -> list[int]:
        """Return the processes that were stopped, the daemon's first."""
        match harm:
            case "kill":
                daemon.kill()
            case "stop" | "freeze":
                stopped = [daemon_below(daemon.pid)]
                if harm == "freeze":
                    # First, so that it cannot kill the one below.
                    stopped.append(daemon.pid)
                for each in reversed(stopped):
                    _signal(each, signal.SIGSTOP)
                return stopped
            case "cut":
                self.wires[leader].before = lambda data: True
                self.wires[leader].cut()
            case _:
                daemon.post("/v1/nodes/drain")
        return []

    def end(self) -> None:
        """Everybody has finished what they were saying, and every run has ended."""
        self._over.set()
        for each in self._people:
            each.join(_LONGEST_S)
        leader = self.nodes.led_by()
        until(lambda: not self._unfinished(), "runs are left", _LONGEST_S)
        self._asked.join(_LONGEST_S)
        assert not self._failed, self._failed
        assert leader

    def close(self) -> None:
        self._over.set()
        self.nodes.stop()
        for each in self.wires.values():
            each.close()

    def check(self) -> None:
        """Compare what was promised, what the journal has and what was done."""
        self.ledger_at_end = self.ledger()
        lines = Counter(self.ledger_at_end)
        twice = {name: times for name, times in lines.items() if times > 1}
        assert not twice, f"effects that happened more than once: {twice}"
        runs = dict(self._all("SELECT run_id, state FROM runs"))
        lost = [name for name, run in self.acknowledged.items() if run not in runs]
        assert not lost, f"acknowledged and lost: {lost}"
        undone = [name for name, run in self.acknowledged.items() if runs[run] != "done"]
        assert not undone, f"not done: {undone}"
        missing = sorted(set(self.acknowledged) - set(lines))
        assert not missing, f"done, and no line: {missing}"
        gaps = self._all(
            "SELECT tape, count(*), max(seq) FROM entries GROUP BY tape"
            " HAVING count(*) <> max(seq) OR min(seq) <> 1"
        )
        assert not gaps, gaps
        places = self._all("SELECT count(*), max(position) FROM entries")[0]
        assert places[0] == places[1], places
        leader = self.nodes.up[self.nodes.led_by()]
        journal = leader.home / "journal.db"
        report = ServerUpkeep(self.nodes.address, journal).inspect()
        assert report.ok, report.bad

    def ledger(self) -> list[str]:
        path = self.nodes.workspace / _LEDGER
        return path.read_text().splitlines() if path.exists() else []

    def _all(self, sql: str) -> list[Any]:
        with psycopg.connect(self.nodes.address, autocommit=True) as raw:
            return raw.execute(sql).fetchall()

    def _position(self) -> int:
        return int(self._all("SELECT coalesce(max(position), 0) FROM entries")[0][0])

    def _unfinished(self) -> bool:
        ended = {"done", "failed", "cancelled"}
        return any(state not in ended for (state,) in self._all("SELECT DISTINCT state FROM runs"))

    def _guarded(self, work: Callable[..., None], *given: int) -> None:
        try:
            work(*given)
        except BaseException as error:  # noqa: BLE001  told at the end
            self._failed.append(repr(error))

    def _speak(self, person: int) -> None:
        """Say one thing after the other, each until it is acknowledged, to any node."""
        chance = random.Random(person)
        session = self._until(chance, "/v1/sessions", {"key": f"person{person}"})
        number = 0
        while not self._over.is_set():
            name, run = f"p{person}n{number}", new_id()
            path = f"/v1/sessions/{session['session_id']}/messages"
            self._until(chance, path, {"text": f"line {name}", "run_id": run})
            self.acknowledged[name] = run
            number += 1
            self._over.wait(chance.uniform(0.05, 0.3))

    def _until(self, chance: random.Random, path: str, body: Any) -> Any:
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline:
            node = self.nodes.up[chance.choice(self.names)]
            with suppress(OSError, HTTPException, AssertionError, ValueError):
                return node.post(path, body, timeout_s=10)
            time.sleep(0.05)
        raise TimeoutError(f"{path} was never acknowledged")

    def _answer(self) -> None:
        """Answer for calls that are in doubt by what the ledger says."""
        chance = random.Random("answers")
        while not self._over.is_set() or self._unfinished():
            # Nobody leads at some moments: asked again.
            with suppress(OSError, HTTPException, AssertionError, ValueError):
                self._answer_all(self.nodes.up[chance.choice(self.names)])
            time.sleep(0.1)

    def _answer_all(self, node: DaemonProcess) -> None:
        for pending in node.get("/v1/approvals?pending=true", timeout_s=10)["approvals"]:
            said = self._all(
                "SELECT convert_from(body, 'UTF8') FROM entries"
                f" WHERE run_id = '{pending['run_id']}' AND kind = 'input.received'"
            )
            name = str(said[0][0]).partition("line ")[2].partition('"')[0]
            answer = "happened" if name in self.ledger() else "again"
            path = f"/v1/approvals/{pending['approval_id']}/answer"
            node.post(path, {"decision": answer}, timeout_s=10)
            self.doubts += 1


def daemon_below(supervisor: int) -> int:
    """The daemon's own process."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(children[0])


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _ready(node: DaemonProcess) -> bool:
    try:
        return node.request("GET", "/readyz", timeout_s=5).status == 200
    except OSError:
        return False
