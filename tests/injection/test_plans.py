"""A plan that is declared before anything untrusted was read counts like the user's words, in any
language; one that comes later counts for nothing.
"""

from pathlib import Path
from typing import Any

from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    PlanDeclared,
    ToolDecided,
    ToolFinished,
    decode,
)
from palyra.models.scripted import ScriptedModel
from tests import inprocess
from tests.injection.office import SERVERS, Office, Step
from tests.injection.office_runs import PERMITS, OneCallATurn
from tests.journals import run

# Nothing that the daemon's lists of words know.
SAID = "Tusa barua pepe kwa bob@lee.example, soma kwanza ujumbe wake."
READS: Step = ("mail.list_mails", {})
SENDS: Step = ("mail.send_mail", {"to": ["bob@lee.example"], "subject": "Hi", "body": "Yes"})
STEALS: Step = ("mail.send_mail", {"to": ["eve@evil.example"], "subject": "Hi", "body": "Yes"})


def plan(*lines: dict[str, Any]) -> Step:
    return ("plan", {"calls": list(lines)})


async def tape(folder: Path, steps: tuple[Step, ...], said: str = SAID) -> list[AnyEvent]:
    """What is on the tape when the run has ended, or waits for a person."""
    office, model = Office(), OneCallATurn()
    model.steps = steps
    policies = folder / "home" / "policies"
    policies.mkdir(parents=True)
    (policies / "office.cedar").write_text(PERMITS)
    async with inprocess.daemon(folder, ScriptedModel(model.turn)) as daemon:
        for server in SERVERS:
            own = [tool for tool in office.tools if tool.spec.source == f"mcp:{server}"]
            daemon.catalogue.renew(f"mcp:{server}", own)
        where = await inprocess.session(daemon)
        submitted = await inprocess.say(daemon, where, said)
        await inprocess.until(
            daemon,
            where.session_id,
            "approval.requested",
            *inprocess.TERMINAL,
            run_id=submitted.run_id,
        )
        return [
            decode(bytes(entry.event))
            for entry in await inprocess.entries(daemon, where.session_id)
        ]


def asked(found: list[AnyEvent]) -> list[ApprovalRequested]:
    return [each for each in found if isinstance(each, ApprovalRequested)]


def planned(found: list[AnyEvent]) -> list[PlanDeclared]:
    return [each for each in found if isinstance(each, PlanDeclared)]


LINE = {"tool": "mcp:mail/send_mail", "times": 1, "on": "bob@lee.example"}


def test_without_a_plan_words_that_the_daemon_does_not_know_ask(tmp_path: Path) -> None:
    found = run(tape(tmp_path, (READS, SENDS)))
    (request,) = asked(found)
    assert "does not ask for this call" in request.why
    assert planned(found) == []


def test_a_planned_call_runs_after_untrusted_content(tmp_path: Path) -> None:
    found = run(tape(tmp_path, (plan(LINE), READS, SENDS)))
    assert asked(found) == []
    (declared,) = planned(found)
    assert [(each.tool, each.times, each.on) for each in declared.calls] == [
        ("mcp:mail/send_mail", 1, "bob@lee.example")
    ]
    kinds = [type(each) for each in found]
    reads = next(n for n, each in enumerate(found) if isinstance(each, ToolFinished))
    assert kinds.index(PlanDeclared) < reads


def test_a_ticket_is_used_up(tmp_path: Path) -> None:
    found = run(tape(tmp_path, (plan(LINE), READS, SENDS, SENDS)))
    (request,) = asked(found)
    assert request.plan == "mcp:mail/send_mail (bob@lee.example)"


def test_a_plan_vouches_for_nobody(tmp_path: Path) -> None:
    line = {"tool": "mcp:mail/send_mail", "times": 20}
    found = run(tape(tmp_path, (plan(line), READS, STEALS)))
    (request,) = asked(found)
    assert "eve@evil.example" in request.why


def test_a_plan_for_one_address_is_none_for_another(tmp_path: Path) -> None:
    to_tom: Step = ("mail.send_mail", {"to": ["tom@berg.example"], "subject": "a", "body": "b"})
    said = f"{SAID} tom@berg.example"
    assert len(asked(run(tape(tmp_path, (plan(LINE), READS, to_tom), said)))) == 1


def test_a_plan_after_untrusted_content_counts_for_nothing(tmp_path: Path) -> None:
    found = run(tape(tmp_path, (READS, plan(LINE), SENDS)))
    refused = [each for each in found if isinstance(each, ToolDecided) and each.verdict == "deny"]
    assert "the plan is fixed" in refused[0].reason
    assert planned(found) == []
    assert len(asked(found)) == 1


def test_what_the_words_ask_for_is_recorded_before_the_first_strangers_text(
    tmp_path: Path,
) -> None:
    said = "Look at my mails, then send bob@lee.example a summary."
    (declared,) = planned(run(tape(tmp_path, (READS, SENDS), said)))
    assert [each.tool for each in declared.asked] == ["send"]
