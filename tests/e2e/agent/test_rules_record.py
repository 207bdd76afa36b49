"""What a real daemon decided, decided again: the same policies give the same answers; tests,
suggestions, shadows, explanations.
"""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import ConfigInvalid
from palyra.core.ids import OWNER
from palyra.models.scripted import ScriptedCall, Turn
from palyra.policy.backtest import Retest
from palyra.serve.wiring.daemon import Daemon
from palyra.store import decisions
from palyra.store.decisions import RecordedCall
from tests import daemon as process
from tests.cli_terminal import palyra
from tests.inprocess import daemon, say, session, until

CODING = '[policy]\npreset = "coding"\n'
SCRIPT = {
    "write": [
        {"calls": [{"name": "fs.write", "arguments": {"path": "src/a.txt", "content": "a"}}]},
        {"text": "written"},
    ],
    "write b": [
        {"calls": [{"name": "fs.write", "arguments": {"path": "src/b.txt", "content": "b"}}]},
        {"text": "written"},
    ],
    "write key": [
        {"calls": [{"name": "fs.write", "arguments": {"path": "keys/k.txt", "content": "k"}}]},
        {"text": "written"},
    ],
    "look": [{"calls": [{"name": "fs.list", "arguments": {}}]}, {"text": "looked"}],
}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def calls(*given: tuple[str, dict[str, Any]]) -> list[Turn]:
    return [
        Turn(
            calls=tuple(ScriptedCall(name=name, arguments=arguments) for name, arguments in given)
        ),
        Turn(text="done"),
    ]


async def recorded(one: Daemon) -> list[RecordedCall]:
    read = one.db.read_from_thread
    pages = await asyncio.to_thread(lambda: list(decisions.pages(read, 0)))
    return [found for page in pages for found in page if isinstance(found, RecordedCall)]


BUSY = calls(
    ("fs.list", {}),
    ("fs.write", {"path": "a.txt", "content": "a"}),
    ("fs.read", {"path": "/etc/passwd"}),
    ("test.once", {"path": "line.txt", "line": "x"}),
    ("http.fetch", {"url": "https://a.example/"}),
    ("no.such.tool", {}),
)


def test_live_decisions_and_those_decided_again_from_the_tape_are_identical(tmp_path: Path) -> None:
    async def work() -> None:
        async with daemon(tmp_path, {"go": BUSY, "ruled": BUSY}, CODING) as one:
            free, bound = await session(one), await session(one, channel="telegram")
            await one.rules.add(OWNER, bound.session_id, "never touch ./a.txt")
            await one.rules.add(OWNER, bound.session_id, "ask before anything")
            for where, text in ((free, "go"), (bound, "ruled")):
                await say(one, where, text, origin="api")
                await until(one, where.session_id, "approval.requested")
            again, found = Retest(one.policy.current), await recorded(one)
            assert len(found) == 12
            for call in found:
                verdict = again.take(call)
                if verdict is None:
                    assert call.decided.by in ("catalogue", "hard_rule")
                else:
                    said = call.decided
                    assert (verdict.reason, verdict.policies) == (said.reason, said.policies)
            report = again.report()
            assert report.same == report.calls - report.not_asked
            assert report.same >= 8
            assert {"allow", "ask", "deny"} == {call.decided.verdict for call in found}

    run(work())


def test_a_shadow_is_recorded_never_enforced_and_read_again_when_its_files_change(
    tmp_path: Path,
) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    no_writing = '@id("no-writing") forbid (principal, action, resource == Tool::"fs.write");'
    (shadow / "mine.cedar").write_text(no_writing)
    config = f'[limits]\nrequests_per_second = 100000\n[policy]\npreset = "coding"\nshadow = "{shadow}"\n'
    with process.start(tmp_path, config=config, script=SCRIPT) as served:
        session_id = served.post("/v1/sessions")["session_id"]

        def said(text: str) -> list[dict[str, Any]]:
            submitted = served.post(f"/v1/sessions/{session_id}/messages", {"text": text})
            path = f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}"
            entries = [data for _, _, data in served.events(path)]
            return [entry["event"] for entry in entries if entry.get("kind") == "tool.decided"]

        (wrote,) = said("write")
        assert (wrote["verdict"], wrote["shadow"]["verdict"], wrote["shadow"]["policies"]) == (
            "allow",
            "deny",
            ["no-writing"],
        )
        assert (served.workspace / "src" / "a.txt").exists()
        (looked,) = said("look")
        assert (looked["verdict"], looked["shadow"]["verdict"], looked["shadow"]["reason"]) == (
            "allow",
            "allow",
            "",
        )
        first = served.get("/v1/policy/shadow")
        assert (
            first["calls"],
            first["same"],
            first["denied"]["calls"],
            first["asked"]["calls"],
        ) == (2, 1, 1, 0)
        assert first["denied"]["examples"][0]["about"].endswith("src/a.txt")
        assert first["named"] == f"preset coding with {shadow}"
        assert first["versions"] == [first["version"]]

        # Whichever notices first, the watcher or the verb, the new files are asked from then on.
        (shadow / "mine.cedar").write_text(
            no_writing.replace("action", 'action == Action::"run_unattended"')
        )
        served.post("/v1/policy/reload")
        (again,) = said("write b")
        assert (again["verdict"], again["shadow"]["verdict"]) == ("allow", "ask")
        (shadow / "mine.cedar").write_text("permit (;")
        served.post("/v1/policy/reload")
        (kept,) = said("write key")
        assert kept["shadow"]["verdict"] == "ask"
        told = palyra(served.home, "policy", "shadow")
        assert told.returncode == 0, told.stderr
        assert "4 calls were decided beside a shadow, 1 of them the same" in told.stdout
        assert "the shadow would ask: 2" in told.stdout
        assert "2 versions" in told.stderr

        exported = served.request("GET", "/v1/journal/export").body.decode().splitlines()
        changes = [
            entry["event"]
            for line in exported
            if (entry := json.loads(line))["kind"] == "admin.changed"
        ]
        of_shadow = [
            (each["action"], bool(each["details"]["problems"]))
            for each in changes
            if each["details"].get("shadow")
        ]
        assert {("reloaded", False), ("rejected", True)} <= set(of_shadow)


def test_a_shadow_that_does_not_load_keeps_the_daemon_from_starting_and_says_why(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        with pytest.raises(ConfigInvalid, match="there is no such policy folder"):
            async with daemon(tmp_path, {}, f'[policy]\nshadow = "{tmp_path}/nowhere"\n'):
                pass

    run(work())


def test_a_recorded_week_gives_a_policy_under_which_the_approved_pass_and_the_denied_do_not(
    tmp_path: Path,
) -> None:
    with process.start(
        tmp_path, config="[limits]\nrequests_per_second = 100000\n", script=SCRIPT
    ) as served:
        session_id = served.post("/v1/sessions")["session_id"]

        def said(text: str, answer: str) -> None:
            submitted = served.post(f"/v1/sessions/{session_id}/messages", {"text": text})
            path = f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}"
            for _, _, data in served.events(path):
                if data.get("kind") == "approval.requested":
                    served.post(
                        f"/v1/approvals/{data['event']['approval_id']}/answer", {"decision": answer}
                    )

        for text, answer in (
            ("write", "allow"),
            ("write b", "allow"),
            ("write key", "deny"),
            ("look", "allow"),
        ):
            said(text, answer)

        suggested = palyra(served.home, "policy", "suggest", "--json")
        assert suggested.returncode == 0, suggested.stderr
        found = json.loads(suggested.stdout)
        assert (found["approved"], found["denied"], found["passing"], found["left"]) == (
            2,
            1,
            2,
            [],
        )
        assert [permit["what"].rpartition("/")[2] for permit in found["permits"]] == ["src"]
        assert found["permits"][0]["kept_narrow_by"][0].endswith("keys/k.txt")

        trial = tmp_path / "trial"
        trial.mkdir()
        (trial / "suggested.cedar").write_text(found["cedar"])
        tested = palyra(served.home, "policy", "test", str(trial), "--since", "7d", "--json")
        assert tested.returncode == 0, tested.stderr
        report = json.loads(tested.stdout)
        assert (
            report["calls"],
            report["newly_allowed"]["calls"],
            report["newly_denied"]["calls"],
        ) == (4, 2, 0)
        assert {"id": "suggested-1", "calls": 2} in report["hits"]
        shown = palyra(served.home, "policy", "test", "locked")
        assert "newly denied: 3" in shown.stdout
        assert palyra(served.home, "policy", "test", "nowhere").returncode == 2
        (trial / "broken.cedar").write_text("permit (;")
        assert palyra(served.home, "policy", "test", str(trial)).returncode == 7
        assert "@origin" in palyra(served.home, "policy", "suggest").stdout
        assert served.get("/v1/policy/test?preset=locked")["newly_denied"]["calls"] == 3
        assert served.request("GET", "/v1/policy/test?folder=here").status == 400

        call_id = report["newly_allowed"]["examples"][0]["call_id"]
        told = palyra(served.home, "policy", "explain", "--call", call_id)
        assert told.returncode == 0, told.stderr
        assert "then: ask" in told.stdout
        assert palyra(served.home, "policy", "explain", "--call", session_id).returncode == 3
        assert (
            palyra(served.home, "policy", "explain", "fs.write", "path=a", "content=b").returncode
            == 0
        )
        nothing = json.loads(palyra(served.home, "policy", "shadow", "--json").stdout)
        assert (nothing["named"], nothing["calls"], nothing["denied"]["calls"]) == ("", 0, 0)
        assert "policy.shadow" in palyra(served.home, "policy", "shadow").stderr
