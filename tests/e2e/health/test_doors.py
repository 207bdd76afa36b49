"""Who was asked in a run and why, and how watchful the daemon is, over HTTP on a real daemon."""

import json
from collections.abc import Iterator

import pytest

from tests.daemon import DaemonProcess, start

CONFIG = """[models]
default = "first/a"
fallbacks = ["scripted/s1"]
[providers.first]
kind = "scripted"
models = ["a"]
script = "{script}"
[healing]
mode = "observe_only"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("plans")
    broken = folder / "broken.json"
    broken.write_text(
        json.dumps({"*": [{"fail": {"failure": "quota", "message": "nothing is left"}}]})
    )
    with start(
        folder, config=CONFIG.format(script=broken), script={"*": [{"text": "hello"}]}
    ) as daemon:
        yield daemon


def test_a_runs_plans_say_who_was_asked_why_and_what_came_of_it(served: DaemonProcess) -> None:
    _, entries = served.run("hi")
    run_id = entries[0]["run_id"]
    found = served.get(f"/v1/runs/{run_id}/plans")
    first, second = found["plans"]
    assert found["run"]["run_id"] == run_id
    assert [entry["event"] for entry in entries if entry["kind"] == "route.planned"] == [
        first["plan"],
        second["plan"],
    ]
    assert (first["plan"]["provider"], second["plan"]["provider"]) == ("first", "scripted")
    assert [(each["model"], each["failure"]) for each in first["calls"]] == [("first/a", "quota")]
    assert "nothing is left" in first["calls"][0]["message"]
    (call,) = second["calls"]
    replied = next(entry for entry in entries if entry["kind"] == "model.replied")
    assert (call["seq"], call["input_tokens"]) == (
        replied["seq"],
        replied["event"]["usage"]["input_tokens"],
    )
    assert served.request("GET", "/v1/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV/plans").code == "not_found"


def test_how_watchful_it_is_follows_the_settings(served: DaemonProcess) -> None:
    assert served.get("/v1/healing")["settings"]["mode"] == "observe_only"
    assert (
        served.request("PATCH", "/v1/config", {"changes": {"healing.mode": "auto"}}).status == 200
    )
    found = served.get("/v1/healing")
    assert (found["settings"]["mode"], found["looked_ms"] > 0) == ("auto", True)
