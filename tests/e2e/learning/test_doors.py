"""Learning through its doors: HTTP and the command line, against a real daemon."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra
from tests.daemon import DaemonProcess

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    # Only when it is asked for: what is read by itself, half a minute after a run, is not found
    # once more.
    config = "[learning]\nenabled = false\n"
    with daemons.start(
        tmp_path_factory.mktemp("learning"), config=config, script={"*": [{"text": "fine"}] * 50}
    ) as process:
        yield process


def reflected(served: DaemonProcess, text: str) -> list[dict[str, Any]]:
    """What is learned from saying this in a session of its own."""
    return list(served.post(f"/v1/runs/{said(served, text)}/reflect")["candidates"])


def said(served: DaemonProcess, text: str) -> str:
    """The run that answered this."""
    _, entries = served.run(text)
    return str(entries[-1]["run_id"])


def learn(served: DaemonProcess, *arguments: str, code: int = 0) -> str:
    done = palyra(served.home, "learn", *arguments, cwd=served.workspace)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_over_http_a_candidate_is_listed_shown_accepted_and_rolled_back(
    served: DaemonProcess,
) -> None:
    (candidate,) = reflected(served, "Our staging host is stage7.example.")
    path = f"/v1/candidates/{candidate['candidate_id']}"
    listed = served.get("/v1/candidates?kind=fact")
    assert candidate["candidate_id"] in [each["candidate_id"] for each in listed["candidates"]]
    assert listed["counts"]["pending_review"] >= 1
    shown = served.get(path)
    assert (shown["would"], shown["moves"]) == ("remember it", ["accept", "reject"])
    assert shown["candidate"]["evidence"][0]["quote"] == "Our staging host is stage7.example."
    accepted = served.post(f"{path}/accept", {})
    assert accepted["state"] == "applied"
    assert (
        served.get(f"/v1/memory/{accepted['effect']['memory_id']}")["text"]
        == "Our staging host is stage7.example."
    )
    again = served.request("POST", f"{path}/accept", {})
    assert (again.status, again.code) == (409, "illegal_transition")
    assert served.post(f"{path}/rollback")["state"] == "rolled_back"
    assert served.get(f"/v1/memory/{accepted['effect']['memory_id']}")["state"] == "forgotten"


def test_over_http_what_is_not_there_or_not_meant_is_refused(served: DaemonProcess) -> None:
    assert served.request("GET", f"/v1/candidates/{NOBODY}").status == 404
    assert served.request("POST", f"/v1/candidates/{NOBODY}/accept", {}).status == 404
    assert served.request("POST", f"/v1/runs/{NOBODY}/reflect", {}).status == 404
    assert served.request("GET", "/v1/candidates?state=nonsense").status == 400
    assert (
        served.request("POST", f"/v1/candidates/{NOBODY}/accept", {"text": "x" * 700}).status == 400
    )


def test_the_settings_are_those_that_are_documented(served: DaemonProcess) -> None:
    found = served.get("/v1/candidates/settings")
    thresholds = found["thresholds"]
    assert thresholds["fact"] == {"review_bps": 7_500, "auto_bps": 9_000}
    assert thresholds["preference"] == {"review_bps": 8_000, "auto_bps": 9_500}
    assert thresholds["procedure"]["review_bps"] == 8_500
    assert (found["cooldown_ms"], found["budget_tokens"], found["most_candidates"]) == (
        300_000,
        1_200,
        24,
    )


def test_on_the_command_line_everything_can_be_done_too(served: DaemonProcess) -> None:
    (wish,) = reflected(served, "I prefer metric units over imperial units.")
    (fact,) = reflected(served, "Remember that my locker is number 17.")
    assert fact["state"] == "applied"
    listed = learn(served)
    assert "metric units" in listed
    assert f"palyra learn rollback {fact['candidate_id']}" in listed
    shown = learn(served, "show", wish["candidate_id"].lower())
    assert "I prefer metric units" in shown
    assert "tell it to the agent every time" in shown
    assert "memory" in learn(served, "accept", wish["candidate_id"])
    assert "undone" in learn(served, "rollback", fact["candidate_id"])
    (other,) = reflected(served, "I prefer tea over coffee.")
    assert "rejected" in learn(served, "reject", other["candidate_id"], "--reason", "no more")
    states = {
        each["content"]: each["state"]
        for each in json.loads(learn(served, "list", "--state", "all", "--json"))["candidates"]
    }
    assert states["I prefer tea over coffee."] == "rejected"
    assert states["I prefer metric units over imperial units."] == "applied"
    assert "rolled_back" in states.values()
    settings = learn(served, "settings")
    assert "7,500" in settings
    assert "never" in settings
    learn(served, "show", NOBODY, code=3)


def test_reflecting_on_the_command_line_names_who_read_and_what_was_found(
    served: DaemonProcess,
) -> None:
    told = learn(served, "reflect", said(served, "My dentist is Doctor Pavel."))
    assert "My dentist is Doctor Pavel." in told
    assert "read by rules" in told
