"""Settings that change while the daemon runs."""

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from palyra.serve import config
from palyra.serve.config import Loaded
from palyra.serve.wiring import daemon as wiring_daemon
from palyra.serve.wiring.daemon import Daemon
from tests.daemon import start
from tests.faults import eventually, in_daemon

SCRIPT = {"*": [{"calls": [{"name": "fs.list", "arguments": {"path": "."}}]}, {"text": "done"}]}


def test_what_can_change_live_does_and_the_rest_is_said_to_need_a_restart(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        assert daemon.run("go")[1][-1]["kind"] == "run.completed"
        config = daemon.home / "config.toml"
        config.write_text(config.read_text() + "\n[budgets]\nturns = 1\n[server]\nhttp_port = 9\n")
        assert daemon.post("/v1/config/reload") == {
            "live": ["budgets.turns"],
            "after_restart": ["server.http_port"],
        }
        assert daemon.run("go")[1][-1]["event"]["reason"] == "turn_budget"


def test_a_file_with_problems_changes_nothing(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        config = daemon.home / "config.toml"
        config.write_text(config.read_text() + "\n[budgets]\ntruns = 1\n")
        refused = daemon.request("POST", "/v1/config/reload", {})
        assert (refused.status, refused.code) == (400, "config_invalid")
        assert "turns" in refused.json["error"]["message"]
        assert daemon.run("go")[1][-1]["kind"] == "run.completed"


def test_a_setting_is_named_as_changed_once_and_again_when_it_is_changed_back(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        config = daemon.home / "config.toml"
        before = config.read_text()
        config.write_text(before + "\n[budgets]\nturns = 7\n")
        assert daemon.post("/v1/config/reload", {})["live"] == ["budgets.turns"]
        assert daemon.post("/v1/config/reload", {})["live"] == []
        config.write_text(before)
        assert daemon.post("/v1/config/reload", {})["live"] == ["budgets.turns"]


def test_a_file_that_was_read_earlier_is_not_applied_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, read, applied = config.load, threading.Event(), threading.Event()

    def slow(home: Path, env: Mapping[str, str]) -> Loaded:
        loaded = real(home, env)
        if not read.is_set():
            read.set()
            # It goes on when the other one is done, or soon because that one waits for it.
            applied.wait(0.5)
        return loaded

    async def scenario(d: Daemon) -> None:
        file = d.home / "config.toml"
        monkeypatch.setattr(config, "load", slow)
        first = asyncio.ensure_future(wiring_daemon.reload_config(d, {}))
        await eventually(read.is_set, "the file is read")
        file.write_text(file.read_text() + "\n[budgets]\nturns = 7\n")
        second = asyncio.ensure_future(wiring_daemon.reload_config(d, {}))
        second.add_done_callback(lambda _: applied.set())
        assert (await second).live == ("budgets.turns",)
        await first
        assert d.settings.budgets.turns == 7

    in_daemon(tmp_path, [], scenario)


def test_what_a_page_may_change_is_in_force_at_once_written_down_and_recorded(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        changes = {
            "learning.automatic": False,
            "learning.fact_review_bps": 6_000,
            "learning.cooldown_minutes": 7,
        }
        answer = daemon.request("PATCH", "/v1/config", {"changes": changes})
        assert (answer.status, sorted(answer.json["live"]), answer.json["after_restart"]) == (
            200,
            sorted(changes),
            [],
        )
        now = daemon.get("/v1/candidates/settings")
        assert (now["thresholds"]["automatic"], now["thresholds"]["fact"]["review_bps"]) == (
            False,
            6_000,
        )
        assert now["cooldown_ms"] == 7 * 60_000
        export = daemon.request("GET", "/v1/journal/export").body.splitlines()
        recorded = [
            event
            for line in export
            if (event := json.loads(line).get("event", {})).get("kind") == "admin.changed"
        ]
        before = {
            "learning.automatic": True,
            "learning.fact_review_bps": 7_500,
            "learning.cooldown_minutes": 5,
        }
        assert {"from": before, "to": changes} in [each["details"] for each in recorded]
        daemon.stop()
        daemon.restart()
        assert daemon.get("/v1/candidates/settings") == now


def test_what_a_page_may_not_change_or_what_is_wrong_changes_nothing(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT, env={"PALYRA_HEALING__MODE": "observe_only"}) as daemon:
        written = (daemon.home / "config.toml").read_text()
        for changes, code in (
            ({"server.http_port": 1}, "invalid_input"),
            ({"learning.automatic": False, "policy.preset": "coding"}, "invalid_input"),
            ({"learning.fact_review_bps": 10_001}, "invalid_input"),
            ({"learning.automatic": "perhaps"}, "invalid_input"),
            ({"learning.nothing": 1}, "invalid_input"),
            ({"healing.mode": "auto"}, "conflict"),
        ):
            assert daemon.request("PATCH", "/v1/config", {"changes": changes}).code == code, changes
        assert (daemon.home / "config.toml").read_text() == written
        viewer = daemon.post("/v1/tokens", {"name": "v", "scope": "operator"})["token"]
        assert (
            daemon.request(
                "PATCH", "/v1/config", {"changes": {"learning.automatic": False}}, token=viewer
            ).status
            == 403
        )
