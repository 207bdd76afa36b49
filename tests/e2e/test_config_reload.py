"""Settings that change while the daemon runs."""

from pathlib import Path

from tests.daemon import start

SCRIPT = {"*": [{"calls": [{"name": "fs.list", "arguments": {"path": "."}}]}, {"text": "done"}]}


def test_what_can_change_live_does_and_the_rest_is_said_to_need_a_restart(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        assert daemon.run("go")[1][-1]["kind"] == "run.completed"
        config = daemon.home / "config.toml"
        config.write_text(config.read_text() + "\n[budgets]\nturns = 1\n[server]\nhttp_port = 9\n")
        assert daemon.post("/v1/config/reload") == {"live": ["budgets.turns"], "after_restart": ["server.http_port"]}
        assert daemon.run("go")[1][-1]["event"]["reason"] == "turn_budget"


def test_a_file_with_problems_changes_nothing(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        config = daemon.home / "config.toml"
        config.write_text(config.read_text() + "\n[budgets]\ntruns = 1\n")
        refused = daemon.request("POST", "/v1/config/reload", {})
        assert (refused.status, refused.code) == (400, "config_invalid")
        assert "turns" in refused.json["error"]["message"]
        assert daemon.run("go")[1][-1]["kind"] == "run.completed"


def test_a_setting_is_named_as_changed_once_and_again_when_it_is_changed_back(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        config = daemon.home / "config.toml"
        before = config.read_text()
        config.write_text(before + "\n[budgets]\nturns = 7\n")
        assert daemon.post("/v1/config/reload", {})["live"] == ["budgets.turns"]
        assert daemon.post("/v1/config/reload", {})["live"] == []
        config.write_text(before)
        assert daemon.post("/v1/config/reload", {})["live"] == ["budgets.turns"]
