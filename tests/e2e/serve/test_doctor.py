"""The doctor: the same checks with and without a daemon, and repairs that are recorded."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.health.watchdog import HealthFinding, Remedy
from palyra.serve.wiring.daemon import Daemon
from tests import daemon as daemons
from tests.cli_terminal import palyra
from tests.inprocess import body, entries
from tests.watching_over import JumpingClock, set_mode, watched

FREE_PORT = {"PALYRA_SERVER__HTTP_PORT": "0"}


def _checks(home: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    said = json.loads(palyra(home, "doctor", "--json", *arguments, env=FREE_PORT).stdout)
    return {each["id"]: each for each in said["checks"]}


def _dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _spoil(home: Path) -> None:
    """A home that others can read, with a file that a dead process left."""
    (home / "keys").mkdir(parents=True, exist_ok=True)
    home.chmod(0o755)
    (home / "keys" / f"seal.key.{_dead_pid()}").write_text("x")


def test_the_doctor_repairs_a_home_without_a_daemon(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _spoil(home)
    found = _checks(home)
    assert (found["home"]["state"], found["home"]["repairable"]) == ("fail", True)
    assert (found["leftovers"]["state"], found["leftovers"]["repairable"]) == ("warn", True)
    after = _checks(home, "--repair")
    assert (after["home"]["state"], after["leftovers"]["state"]) == ("ok", "ok")
    assert home.stat().st_mode & 0o077 == 0


def test_the_daemon_looks_and_repairs_itself_and_records_it(tmp_path: Path) -> None:
    with daemons.start(tmp_path, config="[healing]\nmode = 'observe_only'\n") as daemon:
        _spoil(daemon.home)
        found = daemon.get("/v1/doctor")
        assert not found["ok"]
        by_id = {each["id"]: each for each in found["checks"]}
        assert set(by_id["home"]) == {"id", "title", "state", "detail", "fix", "repairable"}
        assert {
            "palyra",
            "sqlite",
            "disk",
            "config",
            "model",
            "policy",
            "sandbox",
            "journal",
            "log",
            "incidents",
        } <= set(by_id)
        done = daemon.post("/v1/doctor/repair", {"id": "home"})
        assert [(each["id"], each["worked"]) for each in done["repairs"]] == [("home", True)]
        said = palyra(daemon.home, "doctor", "--repair")
        assert said.returncode == 0, said.stdout
        assert "repaired left over" in said.stdout
        assert "✓ daemon: runs at" in said.stdout
        assert daemon.request("POST", "/v1/doctor/repair", {"id": "home"}).code == "conflict"
        assert daemon.request("POST", "/v1/doctor/repair", {"id": "nothing"}).code == "not_found"
        exported = daemon.request("GET", "/v1/journal/export").body.splitlines()
    told = [
        entry["event"] for entry in map(json.loads, exported) if entry["kind"] == "admin.changed"
    ]
    assert [
        (each["subject"], each["details"]["worked"])
        for each in told
        if each["action"] == "repaired"
    ] == [
        ("home", True),
        ("leftovers", True),
    ]


def test_what_a_person_sees_of_incidents_and_notices(tmp_path: Path) -> None:
    with daemons.start(
        tmp_path, config="[healing]\nmode = 'auto'\nevery_ms = 1000\nfree_mb = 1099511627776\n"
    ) as daemon:
        for _, event, data in daemon.events("/v1/events"):
            if event == "entry" and data["kind"] == "owner.notified":
                break
        assert data["event"]["about"] == "incident"
        listed = palyra(daemon.home, "incidents")
        assert "resource" in listed.stdout
        shown = json.loads(palyra(daemon.home, "incidents", "list", "--open", "--json").stdout)[
            "incidents"
        ][0]
        assert (
            "are free for" in palyra(daemon.home, "incidents", "show", shown["incident_id"]).stdout
        )
        assert (
            b'palyra_incidents_open{domain="resource"} 1' in daemon.request("GET", "/metrics").body
        )
        assert "unread" in palyra(daemon.home, "notices").stdout
        assert "1 incident is open" in palyra(daemon.home, "status").stdout
        marked = palyra(daemon.home, "notices", "read")
        assert "marked as read" in marked.stdout
        assert daemon.get("/v1/notices")["notices"][-1]["read_ms"] > 0
        viewer = daemon.post("/v1/tokens", {"name": "v", "scope": "viewer"})["token"]
        assert daemon.request("GET", "/v1/doctor", token=viewer).status == 403
        assert daemon.request("POST", "/v1/notices/read", {}, token=viewer).status == 403


def test_a_person_can_have_an_incident_mended_that_is_only_reported(tmp_path: Path) -> None:
    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        broken = True

        async def mend() -> str:
            nonlocal broken
            broken = False
            return "mended"

        async def look(_: object) -> list[HealthFinding]:
            return (
                [
                    HealthFinding(
                        "thing:1",
                        "connector",
                        "the thing is broken",
                        remedies=(Remedy("mend it", mend),),
                    )
                ]
                if broken
                else []
            )

        d.watchdog.sources["thing"] = look
        set_mode(d, "observe_only")
        await d.watchdog.look()
        (check,) = [
            each for each in (await d.doctor.examine()).checks if each.id.startswith("incident:")
        ]
        assert (check.state, check.repairable) == ("warn", True)
        done = await d.doctor.repair(OWNER, check.id)
        assert [(each.worked, each.detail) for each in done.repairs] == [(True, "mended")]
        assert not await d.incidents.opened()
        told = [
            body(entry) for entry in await entries(d, SYSTEM_TAPE) if entry.kind == "admin.changed"
        ]
        assert told[-1]["what"] == "daemon"

    watched(tmp_path, [], scenario)


def test_the_doctor_says_that_the_daemon_is_gone_although_its_file_is_there(tmp_path: Path) -> None:
    with daemons.start(tmp_path) as daemon:
        daemon.kill()
        found = _checks(daemon.home)
        assert found["daemon"]["state"] == "fail"
        assert "daemon.json" in found["leftovers"]["detail"]
        assert _checks(daemon.home, "--repair")["daemon"]["state"] == "ok"
        assert not os.path.exists(daemon.home / "daemon.json")
