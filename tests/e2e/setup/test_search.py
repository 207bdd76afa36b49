"""Setting a daemon up over HTTP: what is wrong changes nothing, keys go in and never out, and each
change is on the system tape.
"""

from collections.abc import Iterator

import pytest

from tests.daemon import DaemonProcess, start

KEY = "pk-41c0ffee99aa"
MINE = {
    "name": "mine",
    "kind": "openai-chat",
    "base_url": "http://127.0.0.1:9/v1",
    "models": ["m1"],
    "key": KEY,
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with start(tmp_path_factory.mktemp("setup"), script={"*": [{"text": "Hello."}]}) as running:
        yield running


def names(daemon: DaemonProcess) -> list[str]:
    return [each["name"] for each in daemon.get("/v1/providers")["providers"]]


def test_a_provider_that_does_not_fit_leaves_nothing_behind(daemon: DaemonProcess) -> None:
    before = (daemon.home / "config.toml").read_text()
    for wrong in (
        {"base_url": "nowhere"},
        {"name": "Mine"},
        {"kind": "demo"},
        {"models": [], "first": True},
    ):
        assert daemon.request("POST", "/v1/providers", {**MINE, **wrong}).code in (
            "invalid_input",
            "config_invalid",
        ), wrong
    assert (daemon.home / "config.toml").read_text() == before
    assert daemon.get("/v1/vault")["secrets"] == []


def test_a_key_goes_in_and_never_out_and_no_tool_gets_it(daemon: DaemonProcess) -> None:
    said = daemon.request("POST", "/v1/providers", MINE)
    assert said.status == 200
    assert said.json["restart"] is False
    assert "mine/m1" in [each["name"] for each in daemon.get("/v1/status")["models"]]
    assert KEY.encode() not in said.body
    (secret,) = daemon.get("/v1/vault")["secrets"]
    assert (secret["name"], secret["tools"]) == ("provider-mine", ["model:mine"])
    assert KEY.encode() not in daemon.request("GET", "/v1/journal/export").body
    assert KEY not in (daemon.home / "config.toml").read_text()
    assert b'"provider saved"' in daemon.request("GET", "/v1/journal/export").body


def test_a_provider_that_does_not_answer_is_said_to(daemon: DaemonProcess) -> None:
    trial = daemon.post("/v1/providers/test", MINE)
    assert trial["ok"] is False
    assert trial["fix"]


def test_what_was_removed_is_gone_and_a_second_time_is_not_found(daemon: DaemonProcess) -> None:
    daemon.request("POST", "/v1/providers", {**MINE, "first": True})
    assert "mine" in names(daemon)
    assert daemon.request("DELETE", "/v1/providers?name=mine").status == 200
    assert "mine" not in names(daemon)
    assert daemon.request("DELETE", "/v1/providers?name=mine").code == "not_found"
    assert daemon.post("/v1/config/reload")["after_restart"] == []


def test_a_provider_that_others_name_is_not_removed_and_the_file_stays(
    daemon: DaemonProcess,
) -> None:
    assert daemon.request("POST", "/v1/providers", MINE).status == 200
    file = daemon.home / "config.toml"
    before = file.read_text()
    file.write_text(before + '[routing.r]\nuse = ["mine/m1"]\n')
    daemon.post("/v1/config/reload")
    held = file.read_text()
    refused = daemon.request("DELETE", "/v1/providers?name=mine")
    assert (refused.code, "routing.r.use" in refused.json["error"]["message"]) == (
        "config_invalid",
        True,
    )
    assert (file.read_text(), "mine" in names(daemon)) == (held, True)
    file.write_text(before)
    assert daemon.request("DELETE", "/v1/providers?name=mine").status == 200


def test_the_default_is_chosen_by_a_bare_name_and_is_in_force_at_once(
    daemon: DaemonProcess,
) -> None:
    was = daemon.get("/v1/models")["models"][0]["name"]
    daemon.request("POST", "/v1/providers", MINE)
    daemon.post("/v1/providers/default", {"model": "m1"})
    assert daemon.get("/v1/models")["models"][0]["name"] == "mine/m1"
    assert daemon.request("POST", "/v1/providers/default", {"model": "no"}).code == "invalid_input"
    daemon.post("/v1/providers/default", {"model": was})
    assert daemon.get("/v1/models")["models"][0]["name"] == was
    daemon.request("DELETE", "/v1/providers?name=mine")


def test_a_key_that_the_daemon_cannot_see_is_refused_by_its_variable(daemon: DaemonProcess) -> None:
    refused = daemon.request(
        "POST", "/v1/providers", {**MINE, "key": "", "key_from": "NOT_SET_ANYWHERE"}
    )
    assert (refused.code, refused.json["error"]["details"]["variable"]) == (
        "conflict",
        "NOT_SET_ANYWHERE",
    )


def test_a_preset_is_in_force_at_once_and_a_folder_that_does_not_fit_refuses_it(
    daemon: DaemonProcess,
) -> None:
    assert daemon.post("/v1/policy/preset", {"preset": "locked"})["preset"] == "locked"
    assert daemon.get("/v1/status")["policy"]["preset"] == "locked"
    taken = '@id("coding-write-workspace")\npermit (principal, action, resource);\n'
    shipped = daemon.get("/v1/policy/files")["files"][0]["text"]
    assert "locked" in shipped
    folder = daemon.home / "policies"
    (folder / "broken.cedar").write_text(taken.replace("permit", "permt"))
    try:
        assert (
            daemon.request("POST", "/v1/policy/preset", {"preset": "coding"}).code
            == "config_invalid"
        )
        assert daemon.get("/v1/status")["policy"]["preset"] == "locked"
        assert 'preset = "locked"' in (daemon.home / "config.toml").read_text()
    finally:
        (folder / "broken.cedar").unlink()
    assert daemon.post("/v1/policy/preset", {"preset": "default"})["preset"] == "default"


def test_only_the_owner_sets_up(daemon: DaemonProcess) -> None:
    operator = daemon.post("/v1/tokens", {"name": "o", "scope": "operator"})["token"]
    for method, path, body in (
        ("GET", "/v1/providers", None),
        ("POST", "/v1/providers", MINE),
        ("POST", "/v1/providers/test", MINE),
        ("GET", "/v1/providers/found", None),
        ("POST", "/v1/providers/models", MINE),
        ("POST", "/v1/providers/default", {"model": "m1"}),
        ("POST", "/v1/policy/preset", {"preset": "locked"}),
    ):
        assert daemon.request(method, path, body, token=operator).code == "forbidden", path
