"""Policies edited over HTTP: tried before they are saved, saved only if everything loads, recorded,
and never half in force.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import DaemonProcess, start

WRITE = [
    {"calls": [{"name": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}]},
    {"text": "Done."},
]
GOOD = '@id("mine")\n@reason("because I say so")\nforbid (principal, action == Action::"run", resource == Tool::"fs.write");\n'
BAD = '@id("mine")\nforbid (principal, action == Action::"run", resource == Tol::"fs.write");\n'


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    with start(tmp_path, script={"*": WRITE}) as running:
        yield running


def test_a_text_is_judged_with_everything_else_and_nothing_is_saved(daemon: DaemonProcess) -> None:
    good = daemon.post("/v1/policy/validate", {"name": "own.cedar", "text": GOOD})
    assert good["ok"]
    assert [(each["id"], each["effect"], each["line"]) for each in good["policies"]] == [
        ("mine", "forbid", 1)
    ]
    bad = daemon.post("/v1/policy/validate", {"name": "own.cedar", "text": f"\n{BAD}"})
    assert not bad["ok"]
    assert (bad["problems"][0]["file"], bad["problems"][0]["line"]) == ("own.cedar", 3)
    taken = daemon.post(
        "/v1/policy/validate", {"name": "own.cedar", "text": GOOD.replace("mine", "default-ask")}
    )
    assert "already taken" in taken["problems"][0]["message"]
    assert [each for each in daemon.get("/v1/policy/files")["files"] if not each["shipped"]] == []


def test_a_file_is_saved_changed_and_removed_and_each_is_on_the_system_tape(
    daemon: DaemonProcess,
) -> None:
    saved = daemon.post("/v1/policy/files", {"name": "own.cedar", "text": GOOD})
    assert saved["reloaded"]["added"] == ["mine"]
    assert daemon.get("/v1/policy")["version"] == saved["reloaded"]["version"]
    _, entries = daemon.run("go")
    assert next(each["event"] for each in entries if each["kind"] == "tool.decided")[
        "policies"
    ] == ["mine"]
    assert (
        daemon.request("POST", "/v1/policy/files", {"name": "own.cedar", "text": GOOD}).code
        == "conflict"
    )
    broken = {"name": "own.cedar", "text": BAD, "was": saved["file"]["digest"]}
    assert daemon.request("POST", "/v1/policy/files", broken).code == "config_invalid"
    assert (daemon.home / "policies" / "own.cedar").read_text() == GOOD
    assert daemon.get("/v1/policy")["version"] == saved["reloaded"]["version"]
    path = f"/v1/policy/files?name=own.cedar&was={saved['file']['digest']}"
    assert daemon.request("DELETE", path).json["reloaded"]["removed"] == ["mine"]
    exported = daemon.request("GET", "/v1/journal/export").body
    assert exported.count(b'"file saved"') == 1
    assert exported.count(b'"file removed"') == 1


def test_a_text_is_tested_against_what_was_decided_before(daemon: DaemonProcess) -> None:
    session, _ = _asked(daemon)
    report = daemon.post("/v1/policy/test", {"name": "own.cedar", "text": GOOD})
    assert report["newly_denied"]["calls"] == 1
    assert report["newly_denied"]["examples"][0]["session_id"] == session
    assert daemon.post("/v1/policy/test", {"preset": "locked"})["newly_denied"]["calls"] == 1
    assert (
        daemon.request("POST", "/v1/policy/test", {"name": "own.cedar", "text": BAD}).code
        == "config_invalid"
    )


def _asked(daemon: DaemonProcess) -> tuple[str, str]:
    """A run that waits for an answer."""
    session = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{session}/messages", {"text": "go"})
    for _, _, data in daemon.events(f"/v1/sessions/{session}/events"):
        if data.get("kind") == "approval.requested":
            return session, data["event"]["approval_id"]
    raise AssertionError("nobody was asked")


def test_who_can_do_what_is_what_the_judge_says(daemon: DaemonProcess) -> None:
    rows = {
        row["tool"]: [cell["word"] for cell in row["cells"]]
        for row in daemon.get("/v1/policy/who")["tools"]
    }
    assert rows["fs.read"][:2] == ["allow", "ask"]
    assert rows["fs.write"][0] == "ask"
    daemon.post("/v1/policy/files", {"name": "own.cedar", "text": GOOD})
    denied = {row["tool"]: row["cells"][0] for row in daemon.get("/v1/policy/who")["tools"]}[
        "fs.write"
    ]
    assert (denied["word"], denied["policies"]) == ("deny", ["mine"])


@pytest.mark.parametrize(
    "name", ["../own.cedar", "own.txt", ".own.cedar", "a/b.cedar", "OWN.CEDAR\n"]
)
def test_only_policy_files_have_names_that_are_taken(daemon: DaemonProcess, name: str) -> None:
    assert (
        daemon.request("POST", "/v1/policy/files", {"name": name, "text": GOOD}).code
        == "invalid_input"
    )


def test_only_the_owner_edits(daemon: DaemonProcess) -> None:
    operator = daemon.post("/v1/tokens", {"name": "o", "scope": "operator"})["token"]
    body = {"name": "own.cedar", "text": GOOD}
    for method, path in (
        ("POST", "/v1/policy/files"),
        ("GET", "/v1/policy/files"),
        ("POST", "/v1/policy/validate"),
    ):
        assert (
            daemon.request(method, path, body if method == "POST" else None, token=operator).code
            == "forbidden"
        )
