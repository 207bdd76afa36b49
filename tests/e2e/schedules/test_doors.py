"""Schedules and tasks over HTTP and the command line, with a real daemon: saved, fired by hand and
by signed calls, removed.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from palyra.features.schedules.webhooks import sign
from tests.daemon import DaemonProcess, start

SCRIPT = {
    "*": [{"text": "done"}],
    "every day at nine, look": [
        {
            "calls": [
                {
                    "name": "schedule.create",
                    "arguments": {"when": "every day at 9", "text": "look around", "name": "look"},
                }
            ]
        },
        {"calls": [{"name": "schedule.list", "arguments": {}}]},
        {"text": "planned"},
    ],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with start(tmp_path_factory.mktemp("schedules"), script=SCRIPT) as running:
        yield running


def palyra(daemon: DaemonProcess, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "palyra.cli.main", "--home", str(daemon.home), *words],
        cwd=daemon.workspace,
        env={**os.environ, "PALYRA_HOME": str(daemon.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def until(holds: Callable[[], Any], seconds: float = 40) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # Another process does it: there is nothing to wait on but the clock.
    return found


def states(daemon: DaemonProcess, schedule_id: str) -> list[str]:
    found = daemon.get(f"/v1/schedules/{schedule_id}").get("firings", [])
    return [each["state"] for each in found]


def hook(
    daemon: DaemonProcess,
    schedule_id: str,
    secret: str,
    body: bytes,
    *,
    off_s: int = 0,
    signature: str = "",
) -> int:
    stamp = str(int(time.time()) + off_s)
    headers = {
        "x-palyra-timestamp": stamp,
        "x-palyra-signature": signature or sign(secret, stamp, body),
    }
    request = urllib.request.Request(
        f"{daemon.url}/v1/hooks/{schedule_id}", data=body, headers=headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def test_a_schedule_is_saved_shown_fired_paused_and_removed_from_the_command_line(
    daemon: DaemonProcess,
) -> None:
    assert "there are no schedules" in palyra(daemon, "schedule")
    assert len(palyra(daemon, "schedule", "next", "weekdays at 8:30").splitlines()) == 5
    assert "is no time for a schedule" in palyra(daemon, "schedule", "add", "soon", "look", code=2)
    words = (
        "weekdays at 8:30",
        "look around",
        "--zone",
        "Europe/Vienna",
        "--quiet",
        "22:00-07:00",
        "--allow",
        "fs.write:path_prefix=.",
    )
    made = json.loads(palyra(daemon, "schedule", "add", *words, "--json"))
    schedule_id = made["schedule"]["schedule_id"]
    assert made["schedule"]["scopes"] == [
        {"tool": "fs.write", "kind": "path_prefix", "value": str(daemon.workspace)}
    ]
    assert made["schedule"]["workspace"] == str(daemon.workspace)
    shown = palyra(daemon, "schedule", "show", schedule_id)
    assert "cron 30 8 * * 1-5 (Europe/Vienna)" in shown
    assert shown.count("  next ") == 5
    palyra(daemon, "schedule", "run", schedule_id)
    until(lambda: states(daemon, schedule_id) == ["done"])
    assert "done" in palyra(daemon, "schedule", "list")
    assert "is paused" in palyra(daemon, "schedule", "pause", schedule_id)
    assert "is paused" in palyra(daemon, "schedule", "run", schedule_id, code=6)
    assert "is active; next" in palyra(daemon, "schedule", "resume", schedule_id)
    assert "is removed" in palyra(daemon, "schedule", "remove", schedule_id)
    palyra(daemon, "schedule", "show", schedule_id, code=3)


def test_a_signed_call_fires_once_and_what_it_brings_is_untrusted(daemon: DaemonProcess) -> None:
    made = daemon.post("/v1/schedules", {"when": "webhook", "text": "look at what came"})
    schedule_id, secret = made["schedule"]["schedule_id"], made["secret"]
    assert "secret" not in daemon.get(f"/v1/schedules/{schedule_id}"), "it is shown once"
    body = b'{"order": 7}'
    assert hook(daemon, schedule_id, secret, body) == 202
    until(lambda: states(daemon, schedule_id) == ["done"])
    session_id = daemon.get(f"/v1/schedules/{schedule_id}")["firings"][0]["session_id"]
    tape = daemon.get(f"/v1/sessions/{session_id}/entries")["entries"]
    (received,) = [each["event"] for each in tape if each["kind"] == "input.received"]
    (attached,) = received["attachments"]
    assert (attached["text"], attached["label"]["integrity"]) == (body.decode(), "untrusted")
    # Not signed, signed by somebody else, for another body, for another time, for nobody.
    assert hook(daemon, schedule_id, "guessed", body) == 401
    assert hook(daemon, schedule_id, secret, body, signature=sign(secret, "1", b"{}")) == 401
    assert hook(daemon, schedule_id, secret, body, off_s=-3_600) == 401
    assert hook(daemon, "01ARZ3NDEKTSV4RRFFQ69G5FAV", secret, body) == 401
    assert states(daemon, schedule_id) == ["done"]


def test_a_call_is_not_taken_twice(daemon: DaemonProcess) -> None:
    made = daemon.post("/v1/schedules", {"when": "webhook", "text": "look", "name": "twice"})
    schedule_id, secret = made["schedule"]["schedule_id"], made["secret"]
    stamp, body = str(int(time.time())), b"x"
    headers = {"x-palyra-timestamp": stamp, "x-palyra-signature": sign(secret, stamp, body)}
    url = f"{daemon.url}/v1/hooks/{schedule_id}"
    codes = []
    for _ in range(3):
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data=body, headers=headers, method="POST"), timeout=20
            ) as answer:
                codes.append(answer.status)
        except urllib.error.HTTPError as error:
            codes.append(error.code)
    assert codes == [202, 409, 409]
    daemon.request("DELETE", f"/v1/schedules/{schedule_id}")
    assert hook(daemon, schedule_id, secret, body) == 401
    assert f"schedule-hook-{schedule_id}" not in json.dumps(daemon.get("/v1/vault"))


def test_the_agent_makes_a_schedule_only_with_a_yes_that_has_seen_its_times(
    daemon: DaemonProcess,
) -> None:
    session_id = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "every day at nine, look"})
    (approval,) = until(lambda: daemon.get("/v1/approvals?pending=true")["approvals"])
    preview = approval["request"]["preview"]
    assert preview["title"].startswith("schedule: ")
    assert "cron 0 9 * * * (Etc/UTC), next times:" in preview["body"]
    assert len(re.findall(r"\d{4}-\d\d-\d\d 09:00", preview["body"])) == 5
    daemon.post(f"/v1/approvals/{approval['approval_id']}/answer", {"decision": "allow"})
    (made,) = until(
        lambda: [
            each
            for each in daemon.get("/v1/schedules")["schedules"]
            if each["schedule"]["name"] == "look"
        ]
    )
    assert made["schedule"].get("scopes") is None
    assert made["schedule"]["workspace"] == str(daemon.workspace)


def test_tasks_are_listed_shown_and_held_from_the_command_line(daemon: DaemonProcess) -> None:
    made = daemon.post("/v1/schedules", {"when": "every 5h", "text": "look", "name": "held"})
    listed = palyra(daemon, "tasks", "list", "--kind", "schedule.fire")
    assert "schedule.fire" in listed
    tasks: list[dict[str, Any]] = json.loads(palyra(daemon, "tasks", "--json"))["tasks"]
    task = next(
        each for each in tasks if each.get("schedule_id") == made["schedule"]["schedule_id"]
    )
    assert "is paused" in palyra(daemon, "tasks", "pause", task["task_id"])
    assert "paused" in palyra(daemon, "tasks", "show", task["task_id"])
    assert "is queued" in palyra(daemon, "tasks", "resume", task["task_id"])
    assert "only a task that has ended" in palyra(daemon, "tasks", "retry", task["task_id"], code=6)
    assert "is cancelled" in palyra(daemon, "tasks", "cancel", task["task_id"])
    assert "is queued" in palyra(daemon, "tasks", "retry", task["task_id"])
    assert "is paused" in palyra(daemon, "tasks", "pause", "--kind", "schedule.fire")
    assert "begun again" in palyra(daemon, "tasks", "resume", "--kind", "schedule.fire")
    assert "there is no kind" in palyra(daemon, "tasks", "pause", "--kind", "nothing", code=3)
    metrics = daemon.request("GET", "/metrics").body.decode()
    assert 'palyra_tasks{kind="schedule.fire",state="queued"}' in metrics
    assert "palyra_tasks_wakes_total" in metrics
