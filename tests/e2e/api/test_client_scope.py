"""A token of scope client: it asks in its own sessions and workspace; it approves nothing and sees
nothing else.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from palyra.serve.routes import ROUTES
from tests.daemon import DaemonProcess

NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def client(served: DaemonProcess, folder: Path) -> str:
    body = {"name": f"program {folder}", "scope": "client", "workspace": str(folder)}
    return str(served.post("/v1/tokens", body)["token"])


def status(served: DaemonProcess, token: str, method: str, path: str, body: Any = None) -> int:
    return served.request(method, path, body, token=token).status


def entries(served: DaemonProcess, session_id: str, until: str, token: str) -> list[dict[str, Any]]:
    """Return the entries of a session up to the first one of a kind."""
    found = []
    for _, event, data in served.events(
        f"/v1/sessions/{session_id}/events", headers={"Authorization": f"Bearer {token}"}
    ):
        if event == "entry":
            found.append(data)
            if data["kind"] == until:
                return found
    raise AssertionError(f"the stream ended without {until}")


def test_it_asks_and_is_answered_in_a_session_of_its_own(
    served: DaemonProcess, client: str, folder: Path
) -> None:
    made = served.post(
        "/v1/sessions", {"key": "notes", "workspace": "/", "device": "laptop"}, token=client
    )
    assert made["workspace"] == str(folder)
    # The same key is another session for everybody else.
    assert served.post("/v1/sessions", {"key": "notes"})["session_id"] != made["session_id"]
    assert (
        served.post("/v1/sessions", {"key": "notes"}, token=client)["session_id"]
        == made["session_id"]
    )
    run = served.post(
        f"/v1/sessions/{made['session_id']}/messages", {"text": "hello"}, token=client
    )
    told = entries(served, made["session_id"], "run.completed", client)
    (accepted,) = [each for each in told if each["kind"] == "run.accepted"]
    assert accepted["event"]["origin"] == "api"
    assert served.get(f"/v1/runs/{run['run_id']}", token=client)["state"] == "done"
    assert [
        each["session_id"] for each in served.get("/v1/sessions", token=client)["sessions"]
    ] == [made["session_id"]]


def test_it_finds_nobody_elses_sessions_and_runs(
    served: DaemonProcess, client: str, session_id: str
) -> None:
    run_id = served.post(f"/v1/sessions/{session_id}/messages", {"text": "hello"})["run_id"]
    fill = {"session_id": session_id, "run_id": run_id, "artifact_id": "0" * 64, "seq": "1"}
    named = [
        route
        for route in ROUTES
        if route.client and {"session_id", "run_id"} & set(route.parameters)
    ]
    assert len(named) > 10
    for route in named:
        path = "/".join(
            fill.get(part[1:-1], "") if part.startswith("{") else part
            for part in route.path.split("/")
        )
        assert (
            status(served, client, route.method, path, {} if route.has_effects else None) == 404
        ), path
    assert status(served, client, "POST", "/v1/sessions", {"session_id": session_id}) == 403
    asked = {"model": "palyra", "messages": [{"role": "user", "content": "hello"}]}
    answer = served.request(
        "POST",
        "/v1/chat/completions",
        asked,
        token=client,
        headers={"X-Palyra-Session": session_id},
    )
    assert answer.status == 403
    response = served.post("/v1/responses", {"model": "palyra", "input": "hello"})["id"]
    assert status(served, client, "GET", f"/v1/responses/{response}") == 404
    assert (
        status(
            served,
            client,
            "POST",
            "/v1/responses",
            {"model": "palyra", "input": "x", "previous_response_id": response},
        )
        == 404
    )


def test_it_gets_no_route_that_is_not_marked_for_it(served: DaemonProcess, client: str) -> None:
    for route in ROUTES:
        if route.client or route.scope in (None, "worker") or route.takes is not None:
            continue
        path = "/".join(NOBODY if part.startswith("{") else part for part in route.path.split("/"))
        assert (
            status(served, client, route.method, path, {} if route.has_effects else None) == 403
        ), route.path


def test_the_owner_approves_what_it_asked_for_and_it_cannot(
    served: DaemonProcess, client: str, folder: Path
) -> None:
    session_id = served.post("/v1/sessions", {}, token=client)["session_id"]
    served.post(f"/v1/sessions/{session_id}/messages", {"text": "write"}, token=client)
    asked = entries(served, session_id, "approval.requested", client)[-1]
    path = f"/v1/approvals/{asked['event']['approval_id']}/answer"
    assert status(served, client, "POST", path, {"decision": "allow"}) == 403
    served.post(path, {"decision": "allow"})
    entries(served, session_id, "run.completed", client)
    assert (folder / "note.txt").read_text() == "first\n"


def test_it_asks_over_mcp_and_over_openais_api(served: DaemonProcess, client: str) -> None:
    asked = {"model": "palyra", "messages": [{"role": "user", "content": "hello"}]}
    answer = served.post("/v1/chat/completions", asked, token=client)
    assert answer["choices"][0]["message"]["content"] == "hello there"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    begin = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18"},
    }
    accept = {"Accept": "application/json, text/event-stream"}
    opened = served.request("POST", "/mcp", begin, token=client, headers=accept)
    accept["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
    listed = json.loads(served.request("POST", "/mcp", call, token=client, headers=accept).body)[
        "result"
    ]["tools"]
    assert [each["name"] for each in listed] == [
        "ask",
        "run",
        "run_cancel",
        "sessions_list",
        "session_read",
    ]


@pytest.mark.parametrize("origin", ["scheduled", "child", "channel", "interactive", "api"])
def test_nobody_names_their_own_origin(served: DaemonProcess, session_id: str, origin: str) -> None:
    assert (
        status(
            served,
            served.token,
            "POST",
            f"/v1/sessions/{session_id}/messages",
            {"text": "hello", "origin": origin},
        )
        == 400
    )


def test_only_an_owner_allows_for_good(served: DaemonProcess, session_id: str) -> None:
    operator = served.post("/v1/tokens", {"name": "operator", "scope": "operator"})["token"]
    served.post(f"/v1/sessions/{session_id}/messages", {"text": "write"})
    asked = entries(served, session_id, "approval.requested", served.token)[-1]
    path = f"/v1/approvals/{asked['event']['approval_id']}/answer"
    assert status(served, operator, "POST", path, {"decision": "allow", "scope": "always"}) == 403
    assert served.post(path, {"decision": "deny"})["decision"] == "deny"


@pytest.mark.parametrize(
    "workspace", ["/proc/self", "/sys", "/dev", "/etc", "/etc/ssl", "/dev/shm"]
)
def test_a_folder_of_the_system_is_no_workspace(served: DaemonProcess, workspace: str) -> None:
    if Path(workspace).is_dir():
        assert status(served, served.token, "POST", "/v1/sessions", {"workspace": workspace}) == 403
        body = {"name": "program", "scope": "client", "workspace": workspace}
        assert status(served, served.token, "POST", "/v1/tokens", body) == 403


def test_only_a_client_is_bound_to_a_workspace(served: DaemonProcess, folder: Path) -> None:
    body = {"name": "program", "scope": "operator", "workspace": str(folder)}
    assert status(served, served.token, "POST", "/v1/tokens", body) == 400
