"""Every endpoint: what it gives when all is well, and what it says when it is not."""

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.daemon import DaemonProcess

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def waiting_approval(
    served: DaemonProcess, trigger: str = "write"
) -> tuple[str, str, dict[str, Any]]:
    """A session, its run, and the approval that the run waits for."""
    # A write that changes nothing would not be asked about.
    (served.workspace / "note.txt").unlink(missing_ok=True)
    session_id = served.post("/v1/sessions")["session_id"]
    submitted = served.post(f"/v1/sessions/{session_id}/messages", {"text": trigger})
    for _, event, data in served.events(f"/v1/sessions/{session_id}/events"):
        if event == "entry" and data["kind"] == "approval.requested":
            return session_id, submitted["run_id"], data["event"]
    raise AssertionError("the stream ended without an approval")


def watch_to_end(served: DaemonProcess, session_id: str, run_id: str) -> list[str]:
    return [
        data["kind"]
        for _, event, data in served.events(f"/v1/sessions/{session_id}/events?until={run_id}")
        if event == "entry"
    ]


def test_health_needs_no_token(served: DaemonProcess) -> None:
    alive, ready = (
        served.request("GET", "/healthz", token=""),
        served.request("GET", "/readyz", token=""),
    )
    assert (alive.status, alive.json["status"], ready.status, ready.json["status"]) == (
        200,
        "ok",
        200,
        "ready",
    )


def test_head_gives_the_headers_alone(served: DaemonProcess) -> None:
    response = served.request("HEAD", "/healthz", token="")
    assert (response.status, response.body, response.headers["content-type"]) == (
        200,
        b"",
        "application/json",
    )


def test_the_page_needs_no_token_and_allows_nothing_inline(served: DaemonProcess) -> None:
    page = served.request("GET", "/", token="")
    assert page.status == 200
    assert b"Palyra" in page.body
    assert page.headers["content-security-policy"].startswith("default-src 'none'; ")
    assert "unsafe" not in page.headers["content-security-policy"]


def test_status_says_what_it_is_and_does(served: DaemonProcess) -> None:
    status = served.get("/v1/status")
    assert status["home"] == str(served.home)
    assert status["workspace"] == str(served.workspace)
    assert next(
        (model["name"], model["default"], model["healthy"]) for model in status["models"]
    ) == ("scripted/s1", True, True)
    assert status["policy"]["preset"] == "default"
    assert "fs.write" in status["tools"]
    assert status["uptime_ms"] >= 0
    assert status["entries"] >= 1


def test_models_and_tools_are_listed(served: DaemonProcess) -> None:
    models, tools = served.get("/v1/models")["models"], served.get("/v1/tools")["tools"]
    about = {"name", "provider", "model", "context_tokens", "default", "healthy"}
    about |= {"vision", "private", "input_price", "output_price", "tools"}
    assert about == models[0].keys()
    assert next(tool for tool in tools if tool["name"] == "fs.write")["effect"] == "reversible"


def test_metrics_are_prometheus_text_and_count(served: DaemonProcess) -> None:
    def sample(name: str, **labels: str) -> float:
        text = served.request("GET", "/metrics").body.decode()
        return sum(
            each.value
            for family in text_string_to_metric_families(text)
            for each in family.samples
            if each.name == name and labels.items() <= each.labels.items()
        )

    calls = sample("palyra_model_calls_total", provider="scripted", model="s1")
    done = sample("palyra_runs_ended_total", state="done")
    served.run("hi")
    assert sample("palyra_model_calls_total", provider="scripted", model="s1") == calls + 1
    assert sample("palyra_runs_ended_total", state="done") == done + 1
    assert sample("palyra_journal_entries") == served.get("/v1/status")["entries"]
    assert (
        sample(
            "palyra_http_requests_total",
            route="POST /v1/sessions/{session_id}/messages",
            status="202",
        )
        >= 1
    )
    assert sample("process_resident_memory_bytes") > 1 << 20


def test_a_path_that_does_not_exist_and_a_method_that_does_not(served: DaemonProcess) -> None:
    nothing, method = served.request("GET", "/v1/nothing"), served.request("DELETE", "/v1/sessions")
    assert (nothing.status, nothing.code) == (404, "not_found")
    assert (method.status, method.code, method.headers["allow"]) == (
        405,
        "invalid_input",
        "GET, POST",
    )


def test_resolving_creates_once_and_finds_afterwards(served: DaemonProcess) -> None:
    first = served.request("POST", "/v1/sessions", {"key": "the-key", "title": "Mine"})
    second = served.request("POST", "/v1/sessions", {"key": "the-key"})
    assert (first.status, second.status) == (201, 200)
    assert first.json == second.json
    assert first.json["title"] == "Mine"


def test_a_key_that_another_session_has_is_a_conflict(served: DaemonProcess) -> None:
    served.post("/v1/sessions", {"key": "taken"})
    response = served.request("POST", "/v1/sessions", {"key": "taken", "session_id": NOBODY})
    assert (response.status, response.code) == (409, "conflict")


def test_resolving_what_must_exist_is_not_found(served: DaemonProcess) -> None:
    response = served.request("POST", "/v1/sessions", {"key": "never-made", "must_exist": True})
    assert (response.status, response.code) == (404, "not_found")


def test_a_session_is_read_renamed_and_archived(served: DaemonProcess, session_id: str) -> None:
    changed = served.request(
        "PATCH", f"/v1/sessions/{session_id}", {"title": "New name", "archived": True}
    )
    assert (changed.status, changed.json["title"], changed.json["archived"]) == (
        200,
        "New name",
        True,
    )
    assert served.get(f"/v1/sessions/{session_id}") == changed.json
    refused = served.request("POST", f"/v1/sessions/{session_id}/messages", {"text": "hi"})
    assert (refused.status, refused.code) == (409, "conflict")
    assert served.request("PATCH", f"/v1/sessions/{session_id}", {}).code == "invalid_input"


def test_sessions_are_listed_page_by_page_without_gap_or_repeat(served: DaemonProcess) -> None:
    made = {served.post("/v1/sessions")["session_id"] for _ in range(5)}
    seen: list[str] = []
    before = ""
    while True:
        page = served.get(f"/v1/sessions?limit=2{before}")
        seen += [session["session_id"] for session in page["sessions"]]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert made <= set(seen)
    assert len(seen) == len(set(seen))


def test_words_are_found_in_what_was_said(served: DaemonProcess) -> None:
    session_id, _ = served.run("the heliotrope blooms")
    found = served.get("/v1/sessions/search?q=heliotrope")["found"]
    assert [each["session_id"] for each in found] == [session_id]
    assert served.get("/v1/sessions/search?q=neversaid")["found"] == []


def test_entries_are_paged_by_cursor(served: DaemonProcess) -> None:
    session_id, _ = served.run("hi")
    whole = served.get(f"/v1/sessions/{session_id}/entries")
    assert [entry["seq"] for entry in whole["entries"]] == list(range(1, len(whole["entries"]) + 1))
    assert whole["next"] is None
    first = served.get(f"/v1/sessions/{session_id}/entries?limit=3")
    rest = served.get(f"/v1/sessions/{session_id}/entries?after={first['next']}")
    assert first["entries"] + rest["entries"] == whole["entries"]


def test_reset_begins_anew_and_keeps_the_tape(served: DaemonProcess) -> None:
    session_id, _ = served.run("hi")
    reset = served.post(f"/v1/sessions/{session_id}/reset")
    entries = served.get(f"/v1/sessions/{session_id}/entries")["entries"]
    assert entries[-1]["kind"] == "session.reset"
    assert reset["fold_from"] == entries[-1]["seq"]


def test_a_branch_says_where_it_comes_from(served: DaemonProcess) -> None:
    session_id, _ = served.run("hi")
    branch = served.request(
        "POST", f"/v1/sessions/{session_id}/branch", {"at": 3, "title": "Other way"}
    )
    assert (branch.status, branch.json["parent_id"], branch.json["parent_seq"]) == (
        201,
        session_id,
        3,
    )
    assert branch.json["title"] == "Other way"
    assert (
        served.request("POST", f"/v1/sessions/{session_id}/branch", {"at": 10_000}).code
        == "invalid_input"
    )


@pytest.mark.parametrize("path", ["", "/entries", "/events", "/runs", f"/artifacts/{'0' * 64}"])
def test_a_session_that_does_not_exist_is_not_found(served: DaemonProcess, path: str) -> None:
    response = served.request("GET", f"/v1/sessions/{NOBODY}{path}")
    assert (response.status, response.code) == (404, "not_found")


def test_submitting_twice_with_one_id_is_one_run_and_with_another_text_a_conflict(
    served: DaemonProcess, session_id: str
) -> None:
    run_id = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
    first = served.request(
        "POST", f"/v1/sessions/{session_id}/messages", {"text": "hi", "run_id": run_id}
    )
    again = served.request(
        "POST", f"/v1/sessions/{session_id}/messages", {"text": "hi", "run_id": run_id}
    )
    other = served.request(
        "POST", f"/v1/sessions/{session_id}/messages", {"text": "ho", "run_id": run_id}
    )
    assert (first.status, first.json["outcome"]) == (202, "started")
    assert (again.status, again.json["outcome"], again.json["run_id"]) == (202, "repeated", run_id)
    assert (other.status, other.code) == (409, "conflict")


@pytest.mark.parametrize(
    "body",
    [
        {"text": ""},
        {"text": "hi", "run_id": "short"},
        {"text": "hi", "model": "nobody/none"},
        {"text": "hi", "mode": "shout"},
        {},
    ],
)
def test_a_message_that_cannot_be_taken_is_invalid(
    served: DaemonProcess, session_id: str, body: dict[str, str]
) -> None:
    response = served.request("POST", f"/v1/sessions/{session_id}/messages", body)
    assert (response.status, response.code) == (400, "invalid_input")


def test_a_run_is_read_and_listed(served: DaemonProcess) -> None:
    session_id, entries = served.run("hi")
    run_id = entries[0]["run_id"]
    run = served.get(f"/v1/runs/{run_id}")
    assert (run["state"], run["session_id"]) == ("done", session_id)
    assert served.get(f"/v1/sessions/{session_id}/runs") == {"runs": [run], "next": None}
    assert served.request("GET", f"/v1/runs/{NOBODY}").status == 404


def test_runs_are_paged_by_the_last_id(served: DaemonProcess) -> None:
    session_id, _ = served.run("one")
    for text in ("two", "three"):
        served.run(text, session_id)
    first = served.get(f"/v1/sessions/{session_id}/runs?limit=2")
    rest = served.get(f"/v1/sessions/{session_id}/runs?limit=2&before={first['next']}")
    runs = [run["run_id"] for run in first["runs"] + rest["runs"]]
    assert len(runs) == len(set(runs)) == 3


def test_a_run_is_cancelled_while_it_waits(served: DaemonProcess) -> None:
    session_id, run_id, _ = waiting_approval(served)
    cancelled = served.post(f"/v1/runs/{run_id}/cancel", {"reason": "not now"})
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "not now")
    assert watch_to_end(served, session_id, run_id)[-1] == "run.cancelled"


def test_stop_ends_everything_that_waits(served: DaemonProcess) -> None:
    _, first, _ = waiting_approval(served)
    _, second, _ = waiting_approval(served)
    stopped = served.post("/v1/stop")["cancelled"]
    assert {first, second} <= set(stopped)
    assert served.get("/v1/approvals")["approvals"] == []


def test_a_failing_model_ends_the_run_with_a_reason(served: DaemonProcess) -> None:
    _, entries = served.run("fail")
    assert entries[-1]["kind"] == "run.failed"
    assert entries[-1]["event"]["reason"] == "model_auth"


def test_an_approval_is_listed_answered_once_and_undone(served: DaemonProcess) -> None:
    session_id, run_id, request = waiting_approval(served)
    path = f"/v1/approvals/{request['approval_id']}"
    listed = served.get("/v1/approvals")["approvals"]
    assert request["approval_id"] in [each["approval_id"] for each in listed]
    assert served.get(path)["request"] == request
    answered = served.request("POST", f"{path}/answer", {"decision": "allow"})
    assert (answered.status, answered.json["decision"], answered.json["resolved_by"]) == (
        200,
        "allow",
        "user:owner",
    )
    assert watch_to_end(served, session_id, run_id)[-1] == "run.completed"
    assert (served.workspace / "note.txt").read_text() == "first\n"
    late = served.request("POST", f"{path}/answer", {"decision": "deny"})
    assert (late.status, late.code) == (409, "conflict")

    undo = f"/v1/sessions/{session_id}/undo"
    planned = served.post(undo, {"dry_run": True})
    assert (served.workspace / "note.txt").exists()
    undone = served.post(undo)
    assert (planned["changes"], planned["dry_run"]) == (undone["changes"], True)
    assert not (served.workspace / "note.txt").exists()
    assert served.request("POST", undo, {}).code == "conflict"


def test_a_wider_yes_is_a_grant_that_can_be_taken_back(served: DaemonProcess) -> None:
    session_id, run_id, request = waiting_approval(served)
    served.post(
        f"/v1/approvals/{request['approval_id']}/answer", {"decision": "allow", "scope": "session"}
    )
    watch_to_end(served, session_id, run_id)
    grants = served.get("/v1/grants")["grants"]
    assert [(each["approval_id"], each["session_id"]) for each in grants] == [
        (request["approval_id"], session_id)
    ]
    removed = served.request("DELETE", f"/v1/grants/{request['approval_id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert served.get("/v1/grants")["grants"] == []
    assert served.request("DELETE", f"/v1/grants/{request['approval_id']}").status == 404


def test_approvals_are_listed_by_state_and_page(served: DaemonProcess) -> None:
    _, _, request = waiting_approval(served)
    served.post(
        f"/v1/approvals/{request['approval_id']}/answer", {"decision": "deny", "reason": "no"}
    )
    _, other_run, other = waiting_approval(served)
    pending = [each["approval_id"] for each in served.get("/v1/approvals")["approvals"]]
    answered = [
        each["approval_id"] for each in served.get("/v1/approvals?pending=false")["approvals"]
    ]
    newest = served.get("/v1/approvals?pending=any&limit=1")
    older = served.get(f"/v1/approvals?pending=any&limit=1&before={newest['next']}")
    assert other["approval_id"] in pending
    assert request["approval_id"] not in pending
    assert request["approval_id"] in answered
    assert newest["approvals"][0]["approval_id"] == other["approval_id"]
    assert older["approvals"][0]["approval_id"] == request["approval_id"]
    served.post(f"/v1/runs/{other_run}/cancel")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"decision": "perhaps"},
        {"decision": "happened"},
        {"decision": "allow", "scope": "timed"},
        {"decision": "allow", "subject": {"tool": "fs.write", "kind": "tool"}},
        {"decision": "deny", "arguments": {}},
    ],
)
def test_an_answer_that_makes_no_sense_decides_nothing(
    served: DaemonProcess, answer: dict[str, Any]
) -> None:
    _, run_id, request = waiting_approval(served)
    path = f"/v1/approvals/{request['approval_id']}"
    assert served.request("POST", f"{path}/answer", answer).code == "invalid_input"
    assert "decision" not in served.get(path)
    served.post(f"/v1/runs/{run_id}/cancel")


def test_an_approval_that_does_not_exist_is_not_found(served: DaemonProcess) -> None:
    assert served.request("GET", f"/v1/approvals/{NOBODY}").status == 404
    assert (
        served.request("POST", f"/v1/approvals/{NOBODY}/answer", {"decision": "allow"}).status
        == 404
    )


def test_a_large_result_is_an_artifact_that_is_never_shown_as_a_page(served: DaemonProcess) -> None:
    text = "".join(f"line {number} {'x' * 60}\n" for number in range(1_500))
    (served.workspace / "much.txt").write_text(text)
    session_id, entries = served.run("read much")
    finished = next(entry["event"] for entry in entries if entry["kind"] == "tool.finished")
    response = served.request("GET", f"/v1/sessions/{session_id}/artifacts/{finished['artifact']}")
    assert response.status == 200
    assert len(response.body) == finished["size"]
    assert response.headers["content-disposition"].startswith("attachment")
    assert response.headers["x-content-type-options"] == "nosniff"


def test_an_entry_is_found_by_its_position(served: DaemonProcess) -> None:
    _, entries = served.run("hi")
    assert served.get(f"/v1/journal/entries/{entries[0]['position']}") == entries[0]
    assert served.request("GET", "/v1/journal/entries/99999999").status == 404
    assert served.request("GET", "/v1/journal/entries/0").status == 400


def test_verify_reports_and_can_be_watched(served: DaemonProcess) -> None:
    report = served.get("/v1/journal/verify")
    assert (report["ok"], report["bad"], report["pages"], report["guards"]) == (True, None, [], [])
    events = list(served.events("/v1/journal/verify", headers={"Accept": "text/event-stream"}))
    assert [event for _, event, _ in events][-1] == "report"
    assert {"progress"} == {event for _, event, _ in events[:-1]}
    assert events[-1][2]["ok"] is True


def test_export_gives_every_entry_in_order(served: DaemonProcess) -> None:
    session_id, _ = served.run("hi")
    everything = served.request("GET", "/v1/journal/export")
    entries = [json.loads(line) for line in everything.body.splitlines()]
    assert everything.headers["content-type"] == "application/x-ndjson"
    assert [entry["position"] for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[0]["tape"] == "system:local"
    one = served.request("GET", f"/v1/journal/export?session_id={session_id}&after=2")
    tape = [json.loads(line) for line in one.body.splitlines()]
    assert tape == served.get(f"/v1/sessions/{session_id}/entries?after=2")["entries"]
    assert served.request("GET", f"/v1/journal/export?session_id={NOBODY}").status == 404


def test_a_backup_is_a_whole_journal(served: DaemonProcess) -> None:
    made = served.post("/v1/journal/backup", {"name": "one.db"})
    path = Path(made["path"])
    assert path == served.home / "backups" / "one.db"
    with sqlite3.connect(path) as copy:
        assert copy.execute("SELECT count(*) FROM entries").fetchone() == (made["entries"],)
    assert path.stat().st_mode & 0o777 == 0o600
    again = served.request("POST", "/v1/journal/backup", {"name": "one.db"})
    assert (again.status, again.code) == (409, "conflict")
    for name in ("../out.db", "/tmp/out.db", "a/b", ".hidden", "x" * 200):
        assert served.request("POST", "/v1/journal/backup", {"name": name}).code == "invalid_input"
    assert Path(served.post("/v1/journal/backup")["path"]).exists()


@pytest.mark.parametrize("by", ["day", "run", "session", "model"])
def test_usage_is_summed_by_what_is_asked(served: DaemonProcess, by: str) -> None:
    session_id, entries = served.run("hi")
    rows = served.get(f"/v1/usage?by={by}&session_id={session_id}")["usage"]
    expected = {
        "day": None,
        "run": entries[0]["run_id"],
        "session": session_id,
        "model": "scripted/s1",
    }[by]
    assert [row["calls"] for row in rows] == [1]
    assert expected in (None, rows[0]["group"])
    later = int(time.time() * 1000) + 60_000
    assert served.get(f"/v1/usage?by={by}&since_ms={later}")["usage"] == []
    assert served.request("GET", "/v1/usage?by=moon").code == "invalid_input"


def test_policy_is_shown_explained_and_reloaded(served: DaemonProcess) -> None:
    before = served.get("/v1/policy")
    assert (before["preset"], before["folder"], before["problems"]) == (
        "default",
        str(served.home / "policies"),
        [],
    )
    call = {"tool": "fs.write", "arguments": {"path": "a.txt", "content": "x"}}
    assert served.post("/v1/policy/explain", call)["verdict"]["type"] == "ask"
    rule = '@id("no-writing")\n@reason("not here")\nforbid (principal, action, resource == Tool::"fs.write");\n'
    (served.home / "policies" / "mine.cedar").write_text(rule)
    try:
        reloaded = served.post("/v1/policy/reload")
        assert (
            reloaded["version"] != before["version"]
            or served.get("/v1/policy")["version"] != before["version"]
        )
        explained = served.post(
            "/v1/policy/explain", {**call, "session_id": served.post("/v1/sessions")["session_id"]}
        )
        assert (explained["verdict"]["type"], explained["verdict"]["policies"]) == (
            "deny",
            ["no-writing"],
        )
        (served.home / "policies" / "mine.cedar").write_text("forbid (oops")
        broken = served.post("/v1/policy/reload")
        assert len(broken["problems"]) == 1
        assert served.get("/v1/policy")["problems"] == broken["problems"]
        assert served.post("/v1/policy/explain", call)["verdict"]["type"] == "deny"
    finally:
        (served.home / "policies" / "mine.cedar").unlink()
        served.post("/v1/policy/reload")


def test_explaining_a_tool_that_does_not_exist_or_with_wrong_arguments(
    served: DaemonProcess,
) -> None:
    unknown = served.request("POST", "/v1/policy/explain", {"tool": "fs.fly", "arguments": {}})
    wrong = served.request(
        "POST",
        "/v1/policy/explain",
        {"tool": "fs.write", "arguments": {"path": 1, "contents": "x"}},
    )
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert (wrong.status, wrong.code) == (400, "invalid_input")
