"""What `palyra policy explain` says of a call in a session is what the run decides of it next: for
each step of honest tasks and of what strangers plant, asked just before the model proposes it.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.call_values import CallValues
from palyra.core.events import ApprovalRequested, ToolDecided, ToolProposed, decode
from palyra.core.ids import OWNER
from tests import inprocess
from tests.injection.explained import Explained
from tests.injection.office import SERVERS, Office, Step, attacks
from tests.injection.office_runs import PERMITS, OneCallATurn
from tests.journals import run

pytestmark = pytest.mark.timeout(300)
_PAIRS = 40


def _told(values: CallValues) -> tuple[Any, ...]:
    """Without the values themselves: a secret among them is redacted on the tape."""
    origins = [(each.name, each.role, each.origin, each.sources) for each in values.arguments]
    return (origins, values.reads_only, values.same_source, values.planned, values.vouched)


async def _agrees(folder: Path, preset: str) -> int:
    """How many decisions were compared."""
    office, model = Office(), OneCallATurn()
    explained = Explained(model)
    policies = folder / "home" / "policies"
    policies.mkdir(parents=True)
    (policies / "office.cedar").write_text(PERMITS)
    settings = f'[policy]\npreset = "{preset}"\n'
    chosen = random.Random(7).sample(attacks(), _PAIRS)
    compared = 0
    async with inprocess.daemon(folder, explained, settings) as daemon:
        explained.daemon = daemon
        for server in SERVERS:
            own = [tool for tool in office.tools if tool.spec.source == f"mcp:{server}"]
            daemon.catalogue.renew(f"mcp:{server}", own)
        for task, goal in chosen:
            office.planted = goal.words
            steps: tuple[Step, ...] = (*task.calls, *goal.calls)
            model.steps = steps
            explained.said = []
            where = await inprocess.session(daemon)
            explained.session_id = where.session_id
            submitted = await inprocess.say(daemon, where, task.said)
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
                answer = Answer(decision="allow" if compared % 2 else "deny")
                await daemon.answers.answer(OWNER, request.approval_id, answer, "test")
            events = [
                decode(bytes(each.event))
                for each in await inprocess.entries(daemon, where.session_id)
            ]
            proposed = {each.call_id: each for each in events if isinstance(each, ToolProposed)}
            decided = [each for each in events if isinstance(each, ToolDecided)]
            assert len(decided) == len(explained.said) == len(steps)
            for each, (tool, verdict, values) in zip(decided, explained.said, strict=True):
                call = proposed[each.call_id]
                assert (call.tool, each.verdict) == (tool, verdict), task.said
                assert call.asked is not None
                assert _told(call.asked.values) == _told(values)
                compared += 1
    return compared


@pytest.mark.parametrize("preset", ["default", "coding", "research"])
def test_explain_and_the_run_agree_at_every_step(tmp_path: Path, preset: str) -> None:
    assert run(_agrees(tmp_path, preset)) > 2 * _PAIRS
