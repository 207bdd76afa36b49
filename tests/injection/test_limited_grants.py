"""A wider yes binds values, amounts and how often; a wider one than that is chosen by itself, with
what it would have let run before.
"""

from pathlib import Path
from typing import Any

import pytest

from palyra.agent import grant_rates
from palyra.agent.approval_steps import Answer
from palyra.core import call_values
from palyra.core.errors import InvalidInput
from palyra.core.events import ApprovalRequested, ToolStarted, decode
from palyra.core.ids import OWNER
from palyra.core.tools import Subject
from palyra.models.scripted import ScriptedModel
from palyra.store import approvals
from tests import inprocess
from tests.injection.office import SERVERS, Office, Step
from tests.injection.office_runs import OneCallATurn
from tests.journals import run

RUNS_ONLY = """@id("office")
@reason("the servers of the office may be used")
permit (principal, action == Action::"run", resource) when { resource.source like "mcp:*" };
"""


def pays(amount: float, to: str = "DE89370400440532013000") -> Step:
    return (
        "bank.send_money",
        {"recipient": to, "amount": amount, "subject": "a", "date": "2026-05-13"},
    )


async def asked(folder: Path, steps: tuple[Step, ...], first: Answer) -> tuple[int, int, Any]:
    """How many questions there were when the first is answered so and all others denied, how many
    calls ran, and what the past says of each subject of the first.
    """
    office, model = Office(), OneCallATurn()
    model.steps = steps
    policies = folder / "home" / "policies"
    policies.mkdir(parents=True)
    (policies / "office.cedar").write_text(RUNS_ONLY)
    async with inprocess.daemon(folder, ScriptedModel(model.turn)) as daemon:
        for server in SERVERS:
            own = [tool for tool in office.tools if tool.spec.source == f"mcp:{server}"]
            daemon.catalogue.renew(f"mcp:{server}", own)
        where = await inprocess.session(daemon)
        submitted = await inprocess.say(daemon, where, "Pay DE89370400440532013000 what I owe.")
        requests: list[ApprovalRequested] = []
        after = 0
        while True:
            entry = await inprocess.until(
                daemon,
                where.session_id,
                "approval.requested",
                *inprocess.TERMINAL,
                run_id=submitted.run_id,
                after=after,
            )
            after = entry.seq
            if entry.kind != "approval.requested":
                break
            request = decode(bytes(entry.event))
            assert isinstance(request, ApprovalRequested)
            given = Answer(decision="deny") if requests else first
            requests.append(request)
            await daemon.answers.answer(OWNER, request.approval_id, given, "test")
        ran = sum(
            isinstance(decode(bytes(each.event)), ToolStarted)
            for each in await inprocess.entries(daemon, where.session_id)
        )
        past = [grant_rates.past(daemon.db, OWNER, each, 0) for each in requests[0].subjects]
        grants = await daemon.db.read(lambda tx: approvals.grants_of(tx, OWNER))
        uses = [
            await daemon.db.read(lambda tx, id_=each.approval_id: approvals.uses(tx, id_))
            for each in grants
        ]
        return len(requests), ran, (requests[0].subjects, past, uses)


def test_a_rate_lets_so_many_calls_run(tmp_path: Path) -> None:
    given = Answer(decision="allow", scope="session", rate="2/hour")
    questions, ran, (_, _, uses) = run(asked(tmp_path, (pays(5),) * 5, given))
    # The first by the answer itself, two by the grant.
    assert (questions, ran) == (3, 3)
    assert [each.calls for each in uses] == [2]


def test_an_amount_may_be_bound_higher(tmp_path: Path) -> None:
    given = Answer(decision="allow", scope="session", upto="100")
    questions, ran, _ = run(asked(tmp_path, (pays(5), pays(99), pays(101)), given))
    assert (questions, ran) == (2, 2)


def test_the_past_says_what_a_wider_choice_would_have_let_run(tmp_path: Path) -> None:
    other = pays(5, "GB29NWBK60161331926819")
    given = Answer(decision="allow")
    _, _, (subjects, past, _) = run(asked(tmp_path, (pays(5), pays(4), other), given))
    assert [each.kind for each in subjects] == ["arguments", "tool"]
    assert [(each.calls, each.asked) for each in past] == [(2, 2), (3, 3)]


@pytest.mark.parametrize("rate", ["10", "0/hour", "10/week", "-1/hour", "99999999/hour"])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, rate: str) -> None:
    with pytest.raises(InvalidInput, match="a rate is a number"):
        run(asked(tmp_path, (pays(5),), Answer(decision="allow", scope="session", rate=rate)))


def test_anyone_in_the_address_book_is_a_limit_of_its_own() -> None:
    known = call_values.CallValues(
        arguments=(call_values.ArgumentOrigin("to", "recipient", "trusted", ("bob@lee.example",)),),
        declared=True,
    )
    limits = call_values.bound_to_known(known)
    subject = Subject("mcp:mail/send_mail", "arguments", limits)
    for origin, covered in (("user", True), ("trusted", True), ("untrusted", False)):
        other = call_values.CallValues(
            arguments=(
                call_values.ArgumentOrigin("to", "recipient", origin, ("x@y.example",)),  # type: ignore[arg-type]
            ),
            declared=True,
        )
        assert call_values.within(subject.value, other) is covered
