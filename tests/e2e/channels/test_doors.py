"""Channels over HTTP and from the command line, with a real daemon and a program on the other side
of a webhook.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra
from tests.daemon import DaemonProcess
from tests.webhook_world import SECRET, signed


class _Other(BaseHTTPRequestHandler):
    """Takes what the daemon posts."""

    posts: "Queue[dict[str, Any]]"

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if told["type"] == "message":
            self.posts.put(told)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def posts() -> Iterator["tuple[str, Queue[dict[str, Any]]]"]:
    _Other.posts = Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/take", _Other.posts
    server.shutdown()


@pytest.fixture(scope="module")
def daemon(
    tmp_path_factory: pytest.TempPathFactory, posts: "tuple[str, Queue[dict[str, Any]]]"
) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "secret").write_text(SECRET)
    channel = f'[channels.shop]\nkind = "webhook"\nsettings = ["url={posts[0]}", "secret=file:{folder}/secret"]\n'
    channel += f'[channels.later]\nkind = "webhook"\nsettings = ["url={posts[0]}", "secret=file:{folder}/later"]\n'
    with daemons.start(folder, config=channel, script={"*": [{"text": "the answer"}]}) as started:
        yield started


def _ok(daemon: DaemonProcess, *arguments: str) -> Any:
    done = palyra(daemon.home, *arguments, "--json", cwd=daemon.workspace)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _post(
    daemon: DaemonProcess, words: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """As a program does: no token, only the signature."""
    body = json.dumps(words).encode()
    request = Request(
        f"{daemon.url}/v1/channels/shop/hook",
        data=body,
        headers=headers or signed(body),
        method="POST",
    )
    try:
        with urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_channel_is_added_paired_with_answered_and_traced(
    daemon: DaemonProcess, posts: "tuple[str, Queue[dict[str, Any]]]", tmp_path: Path
) -> None:
    url, came = posts
    (tmp_path / "secret").write_text(SECRET)
    guide = palyra(daemon.home, "channels", "add", "webhook", cwd=daemon.workspace)
    assert "--set secret=" in guide.stdout
    assert "16 characters or more" in guide.stdout
    plain = palyra(
        daemon.home,
        "channels",
        "add",
        "webhook",
        "mart",
        "--set",
        f"url={url}",
        "--set",
        f"secret={SECRET}",
    )
    assert plain.returncode != 0
    assert SECRET not in plain.stderr
    _ok(
        daemon,
        "channels",
        "add",
        "webhook",
        "mart",
        "--set",
        f"url={url}",
        "--set",
        f"secret=file:{tmp_path}/secret",
    )
    tested = _ok(daemon, "channels", "test", "mart", "--to", "lobby")
    assert tested["me"]["account"] == "mart"
    assert came.get(timeout=20)["conversation"] == "lobby"

    message = {
        "id": "1",
        "conversation": "dm",
        "sender": {"id": "anna", "name": "Anna"},
        "text": "hello",
        "direct": True,
    }
    assert _post(daemon, message, {"x-palyra-timestamp": "1", "x-palyra-signature": "x"})[0] == 401
    status, taken = _post(daemon, message)
    assert (status, taken["duplicate"]) == (202, False)
    code = came.get(timeout=20)["text"].split("Your code is ")[1][:9]
    assert [each["sender"] for each in daemon.get("/v1/channels/pairings")["pairings"]] == ["anna"]
    assert _ok(daemon, "channels", "pair", code)["person"]["sender"] == "anna"
    assert "paired now" in came.get(timeout=20)["text"]
    _, again = _post(daemon, {**message, "id": "2"})
    assert came.get(timeout=20)["text"] == "the answer"
    shown = palyra(
        daemon.home, "channels", "trace", again["message_id"], cwd=daemon.workspace
    ).stdout
    assert "received" in shown
    assert "queued" in shown
    assert "the answer" in shown


def test_rules_previews_people_and_pauses(daemon: DaemonProcess) -> None:
    changed = _ok(
        daemon, "channels", "rules", "shop", "direct=deny", "deny=carl,dora", "per_minute=7"
    )
    assert (
        changed["rules"]["direct"],
        changed["rules"]["deny"],
        changed["rules"]["per_minute"],
    ) == ("deny", ["carl", "dora"], 7)
    preview = palyra(
        daemon.home,
        "channels",
        "preview",
        "shop",
        "hello",
        "--from",
        "carl",
        "--direct",
        cwd=daemon.workspace,
    )
    assert "sender_denied" in preview.stdout
    assert preview.stdout.rstrip().endswith(
        "The sender is on this channel's list of people who are not heard."
    )
    back = daemon.request(
        "PATCH", "/v1/channels/shop/rules", {"changes": {"direct": None, "deny": None}}
    ).json
    assert "direct" not in back["changed"]
    wrong = daemon.request("PATCH", "/v1/channels/shop/rules", {"changes": {"direct": "perhaps"}})
    assert wrong.status == 400
    linked = _ok(daemon, "channels", "people", "shop/boss", "--link", "user:owner")
    assert linked["principal"] == "user:owner"
    accepted = daemon.post(
        "/v1/channels/shop/preview", {"sender": "boss", "text": "hi", "direct": True}
    )
    assert (accepted["decision"]["reason"], accepted["acts_as"]) == ("accepted", "user:owner")
    assert _ok(daemon, "channels", "pause", "shop")["paused"]
    assert (
        daemon.post("/v1/channels/shop/preview", {"sender": "boss", "text": "hi"})["decision"][
            "reason"
        ]
        == "channel_off"
    )
    assert not daemon.post("/v1/channels/shop", {"verb": "resume"})["paused"]
    daemon.post("/v1/channels/router", {"paused": True})
    assert (
        daemon.post("/v1/channels/shop/preview", {"sender": "boss", "text": "hi"})["decision"][
            "reason"
        ]
        == "router_off"
    )
    daemon.post("/v1/channels/router", {"paused": False})
    assert _ok(daemon, "channels", "dead")["replies"] == []
    listed = _ok(daemon, "channels")["channels"]
    assert ("shop", "connected") in [(each["name"], each["connection"]["state"]) for each in listed]


def test_a_channel_that_failed_is_connected_anew_when_it_is_resumed(daemon: DaemonProcess) -> None:
    assert daemon.get("/v1/channels/later")["connection"]["state"] == "failed"
    (daemon.home.parent / "later").write_text(SECRET)
    assert _ok(daemon, "channels", "resume", "later")["connection"]["state"] in (
        "connecting",
        "connected",
    )
    assert _ok(daemon, "channels", "test", "later")["me"]["account"] == "later"
