"""A whole daemon on a journal in PostgreSQL: what is acknowledged is there, and nothing is done
twice, whoever dies.
"""

import random
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from palyra.store.postgres_upkeep import ServerUpkeep
from tests.crash.test_process import CONFIG, call, permit_all
from tests.cut_wire import CutWire
from tests.daemon import DaemonProcess, configure, launch
from tests.journals import new_id
from tests.postgres_server import server

_SESSIONS, _ROUNDS = 6, 6
_LONGEST_S = 120.0


def _script() -> dict[str, Any]:
    """Each message says which line its effect writes."""
    return {
        f"line {name}": [call("test.once", path="lines.txt", line=name), {"text": f"wrote {name}"}]
        for name in _names()
    }


def _names() -> list[str]:
    return [f"s{each}r{number}" for each in range(_SESSIONS) for number in range(_ROUNDS)]


def _environment(folder: Path, port: int) -> dict[str, str]:
    address = server().database(folder).replace(f":{server().port}/", f":{port}/")
    return {"PALYRA_JOURNAL__STORE": address}


class _Speaker(threading.Thread):
    """One person who says each message until it is acknowledged, whatever becomes of the daemon."""

    def __init__(self, storm: "_Storm", number: int) -> None:
        super().__init__(daemon=True)
        self._storm = storm
        self._number = number
        self.runs: dict[str, str] = {}
        self.failed = ""

    def run(self) -> None:
        try:
            session = self._until(lambda d: d.post("/v1/sessions", {"key": f"s{self._number}"}))
            for number in range(_ROUNDS):
                name, run = f"s{self._number}r{number}", new_id()
                path = f"/v1/sessions/{session['session_id']}/messages"
                body = {"text": f"line {name}", "run_id": run}
                self._until(lambda d, path=path, body=body: d.post(path, body))  # type: ignore[misc]
                self.runs[name] = run
        except BaseException as error:  # noqa: BLE001  told by the test
            self.failed = repr(error)

    def _until(self, work: Any) -> Any:
        deadline = time.monotonic() + _LONGEST_S
        while True:
            try:
                return work(self._storm.daemon)
            except (OSError, AssertionError):
                # Refused, cut off or away: said again.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


class _Storm:
    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon


@pytest.mark.timeout(400)
@pytest.mark.parametrize("harm", ["daemon", "server", "connections"])
def test_messages_are_answered_once_whoever_dies(tmp_path: Path, harm: str) -> None:
    wire = CutWire(server().port)
    permit_all(tmp_path)
    work = tmp_path / "workspace"
    work.mkdir()
    configure(tmp_path / "home", config=CONFIG, script=_script())
    storm = _Storm(launch(tmp_path / "home", work, env=_environment(tmp_path, wire.port)))
    chance = random.Random(harm)
    try:
        speakers = [_Speaker(storm, number) for number in range(_SESSIONS)]
        for each in speakers:
            each.start()
        for _ in range(5):
            time.sleep(chance.uniform(0.1, 0.6))
            _do_harm(harm, storm, wire, tmp_path, work)
        for each in speakers:
            each.join(_LONGEST_S)
            assert not each.is_alive()
            assert not each.failed, each.failed
        runs = {name: run for each in speakers for name, run in each.runs.items()}
        assert sorted(runs) == sorted(_names())
        _settle(storm.daemon, runs)
        _look(storm.daemon, work, runs)
    finally:
        storm.daemon.stop()
        wire.close()
    report = ServerUpkeep(server().database(tmp_path), tmp_path / "home/journal.db").inspect()
    assert report.ok, report.bad


def _do_harm(harm: str, storm: _Storm, wire: CutWire, folder: Path, work: Path) -> None:
    match harm:
        case "daemon":
            storm.daemon.kill()
            storm.daemon = launch(
                folder / "home", work, env=_environment(folder, wire.port), port=storm.daemon.port
            )
        case "server":
            with psycopg.connect(server().address("postgres"), autocommit=True) as raw:
                raw.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'palyra' AND datname = %s",
                    [server().database(folder).rpartition("/")[2]],
                )
        case _:
            wire.cut()


def _settle(daemon: DaemonProcess, runs: dict[str, str]) -> None:
    """Answer for calls that were in doubt by what the ledger says, until every run has ended."""

    def ended() -> bool:
        states = [daemon.get(f"/v1/runs/{run}") for run in runs.values()]
        for pending in daemon.get("/v1/approvals?pending=true")["approvals"]:
            name = next(name for name, run in runs.items() if run == pending["run_id"])
            lines = _lines(daemon.workspace)
            answer = "happened" if name in lines else "again"
            daemon.post(f"/v1/approvals/{pending['approval_id']}/answer", {"decision": answer})
        return all(each["state"] in ("done", "failed", "cancelled") for each in states)

    deadline = time.monotonic() + _LONGEST_S
    while not ended():
        assert time.monotonic() < deadline, "runs are left"
        time.sleep(0.2)


def _lines(work: Path) -> list[str]:
    path = work / "lines.txt"
    return path.read_text().splitlines() if path.exists() else []


def _look(daemon: DaemonProcess, work: Path, runs: dict[str, str]) -> None:
    for name, run in runs.items():
        assert daemon.get(f"/v1/runs/{run}")["state"] == "done", name
    assert sorted(_lines(work)) == sorted(runs)
    report = daemon.get("/v1/journal/verify?deep=true")
    assert report["ok"], report


def test_while_the_server_is_away_the_daemon_says_so_and_goes_on_by_itself(tmp_path: Path) -> None:
    wire = CutWire(server().port)
    work = tmp_path / "workspace"
    work.mkdir()
    configure(tmp_path / "home", config=CONFIG, script={"*": [{"text": "hello"}] * 2})
    daemon = launch(tmp_path / "home", work, env=_environment(tmp_path, wire.port))
    try:
        session, entries = daemon.run("one")
        assert entries[-1]["kind"] == "run.completed"
        wire.before = lambda data: True
        wire.cut()
        away = daemon.request("GET", "/readyz")
        assert away.status == 503
        assert "PostgreSQL" in str(away.json)
        wire.before = lambda data: False
        eventually_ready(daemon)
        _, entries = daemon.run("two", session)
        assert entries[-1]["kind"] == "run.completed"
    finally:
        daemon.stop()
        wire.close()


def eventually_ready(daemon: DaemonProcess) -> None:
    deadline = time.monotonic() + 30
    while daemon.request("GET", "/readyz").status != 200:
        assert time.monotonic() < deadline, "it never became ready again"
        time.sleep(0.1)
