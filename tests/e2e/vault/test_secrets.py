"""The vault of a real daemon, over HTTP, the command line and the chat. A value that was put in is
found nowhere afterwards.
"""

import json
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import daemon
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess
from tests.e2e.store.test_planted_secrets import everything_below, traces

CONFIG = "[limits]\nrequests_per_second = 100000\n"


def made_up() -> str:
    """A value that no rule knows: only the vault can."""
    return (
        "quiet/"
        + "-".join(
            secrets.choice(("lamp", "river", "stone", "cloud")) + secrets.token_hex(2)
            for _ in range(4)
        )
        + "+ä"
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemon.start(
        tmp_path_factory.mktemp("vault"), config=CONFIG, script={"*": [{"text": "hello"}]}
    ) as process:
        yield process


def assert_nowhere(value: str, places: dict[str, bytes]) -> None:
    for trace in traces(value):
        for place, content in places.items():
            assert trace not in content, f"the value is in {place}: {trace!r}"


def test_a_value_is_found_nowhere_whatever_is_done_with_it(tmp_path: Path) -> None:
    value, second = made_up(), made_up()
    chunks = [f"so {value} it", " is ", *value, " and ", second, " too"]
    script = {
        "*": [
            {
                "text": chunks,
                "reasoning": f"think {value}",
                "calls": [{"name": "fs.read", "arguments": {"path": "notes.txt"}}],
            },
            {"text": "done"},
        ]
    }
    answers: list[bytes] = []
    with daemon.start(tmp_path, config=CONFIG, script=script) as served:
        (served.workspace / "notes.txt").write_text(
            f"one {value}\ntwo {json.dumps(value)}\nthree {value.encode().hex()}\n"
        )

        def ask(method: str, path: str, body: Any = None) -> None:
            answers.append(served.request(method, path, body).body)

        def talk() -> None:
            session = served.post("/v1/sessions", {"title": f"about {value}"})["session_id"]
            submitted = served.post(
                f"/v1/sessions/{session}/messages", {"text": f"my key is {value}, keep {second}"}
            )
            path = f"/v1/sessions/{session}/events?until={submitted['run_id']}"
            answers.extend(json.dumps(data).encode() for _, _, data in served.events(path))
            ask("GET", f"/v1/sessions/{session}/entries")

        ask("POST", "/v1/vault", {"name": "A", "value": value, "hosts": ["api.example.org"]})
        ask("POST", "/v1/vault", {"name": "B", "value": second, "scope": "principal"})
        talk()
        wrong: list[Any] = [
            {"name": value, "value": value},
            {"name": "A", "value": value, "scope": value},
            {"name": "A", "value": value, "hosts": [value]},
            {"name": "A", "value": value, "hosts": value},
            {"name": "A", "value": [value]},
            {"name": "A", "value": {"value": value}},
            {"name": "A", "value": value, "tools": [value]},
            {"name": "A", "value": value * 200},
            {"value": value},
            value,
            [value],
            json.dumps({"name": "A", "value": value}).encode()[:-2],
            f'{{"name": "A", "value": {value}}}'.encode(),
        ]
        for body in wrong:
            for path in ("/v1/vault", "/v1/vault/rotate"):
                response = served.request("POST", path, body)
                assert response.status == 400, (path, response.body)
                answers.append(response.body)
        ask("POST", "/v1/vault/rotate", {"name": "NONE", "value": value})
        ask("POST", "/v1/vault/rotate-key", {})
        ask("GET", "/v1/vault")
        ask("POST", "/v1/journal/backup", {})
        served.kill()
        running = everything_below(served.home)
        served.restart()
        talk()
        ask("GET", "/v1/vault")
        ask("GET", "/v1/journal/export")
        ask("POST", "/v1/vault/rotate", {"name": "A", "value": second})
        assert served.stop() == 0
        # The script is the world's, not ours.
        (served.home / "script.json").unlink()
        log = (served.home / "logs" / "daemon.log").read_bytes()
        places = {
            "the home folder": everything_below(served.home),
            "the home folder after a kill": running.replace(json.dumps(script).encode(), b""),
            "the answers": b"\n".join(answers),
            "the output": served.said().encode(),
        }
    for each in (value, second):
        assert_nowhere(each, places)
    assert len(log) > 100
    assert b"[redacted:known:" in places["the answers"]


def test_what_stands_in_the_store_is_sealed_and_private(served: DaemonProcess) -> None:
    served.post("/v1/vault", {"name": "PRIVATE", "value": "a value to be sealed"})
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (served.home / "keys").iterdir()
    }
    assert modes["vault.key"] == 0o600
    assert stat.S_IMODE((served.home / "keys").stat().st_mode) == 0o700
    for path in served.home.glob("journal.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_secret_is_set_listed_rotated_and_removed_over_http(served: DaemonProcess) -> None:
    made = served.post(
        "/v1/vault",
        {
            "name": "H",
            "value": "the first value",
            "hosts": ["api.example.org"],
            "tools": ["http.fetch"],
        },
    )
    assert made["name"] == "H"
    assert (made["hosts"], made["tools"], made["size"]) == (
        ["api.example.org"],
        ["http.fetch"],
        "short",
    )
    rotated = served.post(
        "/v1/vault/rotate",
        {"name": "H", "value": "the second value, which is a good deal longer than the first one"},
    )
    assert (rotated["hosts"], rotated["size"], rotated["created_ms"]) == (
        ["api.example.org"],
        "long",
        made["created_ms"],
    )
    assert served.post("/v1/vault/rotate-key")["secrets"] >= 1
    listing = served.get("/v1/vault")
    assert listing["state"] == "open"
    assert rotated in listing["secrets"]
    assert served.request("DELETE", "/v1/vault?name=H").status == 204
    again = served.request("DELETE", "/v1/vault?name=H")
    assert (again.status, again.code) == (404, "not_found")
    assert all(secret["name"] != "H" for secret in served.get("/v1/vault")["secrets"])


def test_only_an_owner_may_come_near_the_vault(served: DaemonProcess) -> None:
    served.post("/v1/vault", {"name": "O", "value": "the owner's value"})
    for scope in ("operator", "viewer", "connector", "worker"):
        token = served.post("/v1/tokens", {"name": scope, "scope": scope})["token"]
        for method, path, body in (
            ("GET", "/v1/vault", None),
            ("POST", "/v1/vault", {"name": "O", "value": "another value"}),
            ("DELETE", "/v1/vault?name=O", None),
            ("POST", "/v1/vault/rotate", {"name": "O", "value": "another value"}),
            ("POST", "/v1/vault/rotate-key", {}),
        ):
            assert served.request(method, path, body, token=token).status == 403, (
                scope,
                method,
                path,
            )
            assert served.request(method, path, body, token="").status == 401


def test_a_short_value_is_refused_with_an_explanation(served: DaemonProcess) -> None:
    response = served.request("POST", "/v1/vault", {"name": "S", "value": "abc"})
    assert (response.status, response.code) == (400, "invalid_input")
    assert "could not be redacted" in response.json["error"]["message"]


def test_the_document_marks_values_as_going_in_only(served: DaemonProcess) -> None:
    schemas = served.request("GET", "/openapi.json", token="").json["components"]["schemas"]
    assert schemas["NewSecret"]["properties"]["value"]["writeOnly"] is True
    assert "value" not in schemas["Secret"]["properties"]


def test_a_daemon_without_its_key_starts_and_says_that_the_vault_is_locked(tmp_path: Path) -> None:
    with daemon.start(tmp_path, config=CONFIG, script={"*": [{"text": "hello"}]}) as served:
        served.post("/v1/vault", {"name": "A", "value": "a value to be locked"})
        served.stop()
        key = served.home / "keys" / "vault.key"
        kept = key.read_bytes()
        key.unlink()
        served.restart()
        _, entries = served.run("hi")
        assert entries[-1]["kind"] == "run.completed"
        assert any("the vault is locked" in note for note in served.get("/v1/status")["notes"])
        assert "the vault is locked" in served.said()
        listing = served.get("/v1/vault")
        assert listing["state"] == "locked"
        assert str(key) in listing["why"]
        refused = served.request("POST", "/v1/vault", {"name": "B", "value": "another value"})
        assert (refused.status, refused.code) == (503, "unavailable")
        assert not key.exists(), "a new key must not hide that the old one is lost"
        listed = palyra(served.home, "vault")
        assert "the vault is locked" in listed.stderr
        key.write_bytes(kept)
        assert served.get("/v1/vault")["state"] == "open"


@pytest.mark.timeout(300)
def test_the_command_line_takes_values_from_a_pipe_and_never_shows_them(
    served: DaemonProcess,
) -> None:
    value = made_up()
    ran = [
        palyra(
            served.home,
            "vault",
            "set",
            "CLI",
            "--host",
            "api.example.org",
            "--json",
            stdin=value + "\n",
        ),
        palyra(served.home, "vault", "rotate", "CLI", stdin=value),
        palyra(served.home, "vault", "list", "--json"),
        palyra(served.home, "vault"),
        palyra(served.home, "vault", "rotate-key"),
        palyra(served.home, "vault", "set", "CLI", "--anywhere", stdin=value),
        palyra(served.home, "vault", "remove", "CLI"),
    ]
    assert [each.returncode for each in ran] == [0] * len(ran), [each.stderr for each in ran]
    assert json.loads(ran[0].stdout)["size"] == "medium"
    listed = next(each for each in json.loads(ran[2].stdout)["secrets"] if each["name"] == "CLI")
    assert listed["hosts"] == ["api.example.org"]
    assert "api.example.org" in ran[3].stdout
    assert_nowhere(value, {each.args[-1]: (each.stdout + each.stderr).encode() for each in ran})
    assert palyra(served.home, "vault", "remove", "CLI").returncode == 3
    assert palyra(served.home, "vault", "rotate", "CLI", stdin=value).returncode == 3
    assert palyra(served.home, "vault", "set", "CLI", stdin="abc").returncode == 2
    assert palyra(served.home, "vault", "set", "CLI", value, stdin="x").returncode == 2, (
        "a value is never an argument"
    )
    assert (
        palyra(served.home, "vault", "set", "CLI", "--scope", "nowhere", stdin=value).returncode
        == 2
    )


def test_the_line_end_of_a_pipe_is_not_part_of_the_value(served: DaemonProcess) -> None:
    for given in ("exactly this", "exactly this\n", "exactly this\r\n"):
        assert palyra(served.home, "vault", "set", "LINE", stdin=given).returncode == 0
        _, entries = served.run("I say: exactly this")
        assert "exactly this" not in json.dumps(entries)
    palyra(served.home, "vault", "remove", "LINE")
    bad = subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "vault", "set", "BAD", "--home", str(served.home)],
        input=b"\xff\xfe\xfd\xfc", capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert bad.returncode == 2
    assert b"UTF-8" in bad.stderr


def test_at_a_terminal_the_value_is_asked_for_and_not_echoed(served: DaemonProcess) -> None:
    value = "typed-" + secrets.token_hex(8)
    with terminal(served.home, "vault", "set", "TYPED", cwd=served.workspace) as shown:
        shown.expect(r"value of TYPED \(not shown\): ")
        shown.line(value)
        shown.expect("global/TYPED is stored")
        assert shown.ends() == 0
        assert value not in shown.raw
    assert any(secret["name"] == "TYPED" for secret in served.get("/v1/vault")["secrets"])


def test_the_chat_stores_a_secret_in_the_same_gesture(served: DaemonProcess) -> None:
    value, slip = "spoken-" + secrets.token_hex(8), "slip of the hand 4711"
    with terminal(served.home, "chat", "--new", cwd=served.workspace) as shown:
        shown.expect("› ")
        shown.line("/vault CHAT")
        shown.expect(r"value of CHAT \(not shown\): ")
        shown.line(value)
        shown.expect("global/CHAT is stored")
        stored = len(shown.raw)
        shown.line(f"/vault CHAT {slip}")
        shown.expect("the value is asked for")
        shown.line(f"the key is {value} now")
        shown.expect("hello")
        shown.line("/quit")
        assert shown.ends() == 0
        assert value not in shown.raw[:stored]
    assert any(secret["name"] == "CHAT" for secret in served.get("/v1/vault")["secrets"])
    history = (served.home / "chat_history").read_text()
    assert "/vault CHAT\n" in history
    assert slip not in history
    assert value.encode() not in served.request("GET", "/v1/journal/export").body
