"""What a real daemon decided, decided again: the same policies give the same answers; tests, suggestions, shadows, explanations."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from palyra.app import Daemon
from palyra.domain.ids import OWNER
from palyra.journal import decisions
from palyra.journal.decisions import Recorded
from palyra.models.scripted import ScriptedCall, Turn
from palyra.policy.store import PolicyStore
from palyra.policy.testing import Retest, shadowed
from tests import daemon as process
from tests.cli_terminal import palyra
from tests.inprocess import daemon, finished, say, session, until

CODING = '[policy]\npreset = "coding"\n'
SCRIPT = {
    "write": [{"calls": [{"name": "fs.write", "arguments": {"path": "src/a.txt", "content": "a"}}]}, {"text": "written"}],
    "write b": [{"calls": [{"name": "fs.write", "arguments": {"path": "src/b.txt", "content": "b"}}]}, {"text": "written"}],
    "write key": [{"calls": [{"name": "fs.write", "arguments": {"path": "keys/k.txt", "content": "k"}}]}, {"text": "written"}],
    "look": [{"calls": [{"name": "fs.list", "arguments": {}}]}, {"text": "looked"}],
}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def calls(*given: tuple[str, dict[str, Any]]) -> list[Turn]:
    return [Turn(calls=tuple(ScriptedCall(name=name, arguments=arguments) for name, arguments in given)), Turn(text="done")]


async def recorded(one: Daemon) -> list[Recorded]:
    read = one.db.read_from_thread
    pages = await asyncio.to_thread(lambda: list(decisions.pages(read, 0)))
    return [found for page in pages for found in page if isinstance(found, Recorded)]


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


def test_a_shadow_is_recorded_where_it_differs_and_never_enforced(tmp_path: Path) -> None:
    async def work() -> None:
        async with daemon(tmp_path, {"go": calls(("fs.list", {}), ("fs.write", {"path": "a.txt", "content": "a"}))}, CODING) as one:
            # What the composition root passes to Judging when a shadow is configured.
            one.runs._tool_flow._judging._shadow = PolicyStore(None, "locked")
            where = await session(one)
            await finished(one, await say(one, where, "go"))
            assert (tmp_path / "work" / "a.txt").exists()
            (listed, wrote) = await recorded(one)
            assert listed.decided.shadow is None
            assert wrote.decided.shadow is not None
            assert (wrote.decided.verdict, wrote.decided.shadow.verdict) == ("allow", "deny")
            report = await asyncio.to_thread(shadowed, one.db.read_from_thread, 0)
            assert (report.calls, report.denied.calls, report.asked.calls, report.allowed.calls) == (2, 1, 0, 0)
            assert report.denied.examples[0].about == f"{tmp_path}/work/a.txt"

    run(work())


def test_a_recorded_week_gives_a_policy_under_which_the_approved_pass_and_the_denied_do_not(tmp_path: Path) -> None:
    with process.start(tmp_path, config="[limits]\nrequests_per_second = 100000\n", script=SCRIPT) as served:
        session_id = served.post("/v1/sessions")["session_id"]

        def said(text: str, answer: str) -> None:
            submitted = served.post(f"/v1/sessions/{session_id}/messages", {"text": text})
            path = f"/v1/sessions/{session_id}/events?after={submitted['seq']}&until={submitted['run_id']}"
            for _, _, data in served.events(path):
                if data.get("kind") == "approval.requested":
                    served.post(f"/v1/approvals/{data['event']['approval_id']}/answer", {"decision": answer})

        for text, answer in (("write", "allow"), ("write b", "allow"), ("write key", "deny"), ("look", "allow")):
            said(text, answer)

        suggested = palyra(served.home, "policy", "suggest", "--json")
        assert suggested.returncode == 0, suggested.stderr
        found = json.loads(suggested.stdout)
        assert (found["approved"], found["denied"], found["passing"], found["left"]) == (2, 1, 2, [])
        assert [permit["what"].rpartition("/")[2] for permit in found["permits"]] == ["src"]
        assert found["permits"][0]["kept_narrow_by"][0].endswith("keys/k.txt")

        trial = tmp_path / "trial"
        trial.mkdir()
        (trial / "suggested.cedar").write_text(found["cedar"])
        tested = palyra(served.home, "policy", "test", str(trial), "--since", "7d", "--json")
        assert tested.returncode == 0, tested.stderr
        report = json.loads(tested.stdout)
        assert (report["calls"], report["newly_allowed"]["calls"], report["newly_denied"]["calls"]) == (4, 2, 0)
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
        assert palyra(served.home, "policy", "explain", "fs.write", "path=a", "content=b").returncode == 0
        nothing = json.loads(palyra(served.home, "policy", "shadow", "--json").stdout)
        assert (nothing["calls"], nothing["denied"]["calls"]) == (4, 0)
