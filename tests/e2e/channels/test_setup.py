"""Adding a channel over HTTP: what is wrong changes nothing, secrets go into the vault and never
out, and it works at once.
"""

from collections.abc import Iterator

import pytest

from tests.daemon import DaemonProcess, start

SECRET = "sk-11c0ffee99aa-very-long"
HOOK = {
    "name": "mine",
    "kind": "webhook",
    "settings": {"url": "http://127.0.0.1:9/in", "secret": SECRET},
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with start(tmp_path_factory.mktemp("channels"), script={"*": [{"text": "Hello."}]}) as running:
        yield running


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "No Name"},
        {"kind": "pigeon"},
        {"settings": {"url": "http://127.0.0.1:9/in"}},
        {"settings": {**HOOK["settings"], "colour": "red"}},  # type: ignore[dict-item]
        {"settings": {**HOOK["settings"], "secret": "file:/etc/shadow"}},  # type: ignore[dict-item]
        {"settings": {**HOOK["settings"], "secret": "env:HOME"}},  # type: ignore[dict-item]
    ],
)
def test_a_channel_that_does_not_fit_leaves_nothing_behind(
    daemon: DaemonProcess, wrong: dict[str, object]
) -> None:
    before = (daemon.home / "config.toml").read_text()
    assert daemon.request("POST", "/v1/channels", {**HOOK, **wrong}).code == "invalid_input"
    assert (daemon.home / "config.toml").read_text() == before
    assert daemon.get("/v1/vault")["secrets"] == []


def test_a_channel_is_added_changed_and_removed_and_its_secret_never_comes_out(
    daemon: DaemonProcess,
) -> None:
    said = daemon.request("POST", "/v1/channels", HOOK)
    assert said.status == 201, said.body
    assert (said.json["name"], said.json["kind"]) == ("mine", "webhook")
    assert SECRET.encode() not in said.body
    assert SECRET not in (daemon.home / "config.toml").read_text()
    (secret,) = daemon.get("/v1/vault")["secrets"]
    assert (secret["name"], secret["tools"]) == ("channel-mine-secret", ["channel:mine"])

    changed = daemon.request(
        "POST", "/v1/channels", {**HOOK, "settings": {"url": "http://127.0.0.1:10/in"}}
    )
    assert changed.status == 201, "a secret that is left out stays"
    text = (daemon.home / "config.toml").read_text()
    assert "http://127.0.0.1:10/in" in text
    assert "vault:channel-mine-secret" in text
    assert daemon.request("POST", "/v1/channels", {**HOOK, "kind": "matrix"}).code == "conflict"

    journal = daemon.request("GET", "/v1/journal/export").body
    assert b'"channel saved"' in journal
    assert SECRET.encode() not in journal
    assert daemon.request("DELETE", "/v1/channels/mine").json == {"channels": []}
    assert daemon.request("DELETE", "/v1/channels/mine").code == "not_found"
    assert b'"channel removed"' in daemon.request("GET", "/v1/journal/export").body
