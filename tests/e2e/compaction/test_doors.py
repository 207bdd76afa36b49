"""Compaction through its doors: HTTP, the command line and the chat, against a real daemon."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess

TALK = "We spoke of this and that without any aim at all, and it was fine. " * 10
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TEXTS = [f"talk {number}" for number in range(8)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    script = {text: [{"text": TALK}] for text in TEXTS}
    with daemons.start(tmp_path_factory.mktemp("daemon"), script=script) as started:
        yield started


@pytest.fixture
def long_session(daemon: DaemonProcess) -> str:
    session_id = str(
        daemon.post("/v1/sessions", {"workspace": str(daemon.workspace)})["session_id"]
    )
    for text in TEXTS:
        daemon.run(f"{text}\nNever touch {text.replace(' ', '-')}.cfg.", session_id)
    return session_id


def printed(daemon: DaemonProcess, *arguments: str) -> Any:
    done = palyra(daemon.home, *arguments, "--json", cwd=daemon.workspace)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kinds(daemon: DaemonProcess, session_id: str) -> list[str]:
    return [
        str(entry["kind"])
        for entry in daemon.get(f"/v1/sessions/{session_id}/entries?limit=1000")["entries"]
    ]


def test_over_http_it_is_looked_at_applied_listed_and_taken_back(
    daemon: DaemonProcess, long_session: str
) -> None:
    path = f"/v1/sessions/{long_session}"
    looked = daemon.post(f"{path}/compaction", {"preview": True})
    assert looked["turns"] == 10
    assert "applied" not in looked
    assert "- Never touch talk-0.cfg." in looked["summary"]
    made = daemon.post(f"{path}/compaction")
    assert (made["applied"], made["stands"], made["summary"]) == (True, True, looked["summary"])
    (listed,) = daemon.get(f"{path}/compactions")["compactions"]
    assert listed == made
    assert daemon.post(f"{path}/compactions/{made['seq']}/undo") == {"compactions": [made["seq"]]}
    assert kinds(daemon, long_session)[-2:] == ["session.compacted", "session.uncompacted"]
    assert daemon.request("POST", f"{path}/compactions/{made['seq']}/undo", {}).code == "conflict"
    assert daemon.post(f"{path}/pins", {"seq": 3}) == {"pins": [2]}
    assert daemon.post(f"{path}/pins", {"seq": 3, "removed": True}) == {"pins": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", f"/v1/sessions/{NOBODY}/compaction", {}, "not_found"),
        ("GET", f"/v1/sessions/{NOBODY}/compactions", None, "not_found"),
        ("POST", "/v1/sessions/{id}/compaction", {"now": True}, "invalid_input"),
        ("POST", "/v1/sessions/{id}/compactions/1/undo", {}, "not_found"),
        ("POST", "/v1/sessions/{id}/compactions/x/undo", {}, "invalid_input"),
        ("POST", "/v1/sessions/{id}/compactions/99999999999999999999/undo", {}, "invalid_input"),
        ("POST", "/v1/sessions/{id}/pins", {"seq": 10_000}, "not_found"),
        ("POST", "/v1/sessions/{id}/pins", {"seq": 0}, "invalid_input"),
    ],
)
def test_what_makes_no_sense_is_refused(
    daemon: DaemonProcess, method: str, path: str, body: Any, code: str
) -> None:
    session_id = daemon.post("/v1/sessions")["session_id"]
    assert daemon.request(method, path.replace("{id}", session_id), body).code == code


def test_a_short_session_is_left_alone_and_that_is_said(daemon: DaemonProcess) -> None:
    session_id = daemon.post("/v1/sessions")["session_id"]
    made = daemon.post(f"/v1/sessions/{session_id}/compaction")
    assert "nothing to condense" in made["why"]
    done = palyra(daemon.home, "sessions", "compact", session_id, cwd=daemon.workspace)
    assert done.stdout.startswith("nothing was condensed: there is nothing to condense")


def test_the_command_line_does_it_and_takes_it_back(
    daemon: DaemonProcess, long_session: str
) -> None:
    shown = palyra(
        daemon.home, "sessions", "compact", long_session, "--preview", cwd=daemon.workspace
    )
    assert shown.stdout.startswith("would condense 10 turns")
    assert "- Never touch talk-0.cfg." in shown.stdout
    made = printed(daemon, "sessions", "compact", long_session)
    assert [
        each["seq"]
        for each in printed(daemon, "sessions", "compactions", long_session)["compactions"]
    ] == [made["seq"]]
    assert printed(daemon, "sessions", "uncompact", long_session) == {"compactions": [made["seq"]]}
    assert (
        palyra(daemon.home, "sessions", "uncompact", long_session, cwd=daemon.workspace).returncode
        != 0
    )
    assert printed(daemon, "sessions", "pin", long_session, "3")["pins"] == [2]
    assert printed(daemon, "sessions", "pin", long_session, "3", "--remove")["pins"] == []
    told = palyra(daemon.home, "journal", "show", long_session, cwd=daemon.workspace).stdout
    assert "older turns were condensed" in told


def test_the_chat_says_in_words_when_it_happens(daemon: DaemonProcess, long_session: str) -> None:
    with terminal(daemon.home, "chat", "--session", long_session, cwd=daemon.workspace) as chat:
        chat.expect("› ")
        chat.line("/compact preview")
        chat.expect("would condense 10 turns")
        chat.line("/compact")
        chat.expect("10 older turns were condensed")
        chat.line("/uncompact")
        chat.expect("compaction undone")
        chat.line("/quit")
        assert chat.ends() == 0
