"""Calls of one turn that need approval are one question: answered together, line by line."""

from pathlib import Path

from palyra.agent import approval_groups
from palyra.agent.approval_groups import AnsweredGroup, GroupAnswer
from palyra.core.events import ToolFinished, decode
from palyra.core.ids import OWNER
from palyra.core.messages import AssistantMessage, ModelRequest
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.store import approvals
from palyra.store.approvals import Approval
from tests import inprocess
from tests.journals import run

NAMES = ("a.txt", "b.txt", "c.txt")


def _writes(request: ModelRequest) -> Turn:
    if isinstance(request.messages[-1], AssistantMessage) or any(
        isinstance(each, AssistantMessage) for each in request.messages
    ):
        return Turn(text="done")
    return Turn(
        calls=tuple(
            ScriptedCall(name="fs.write", arguments={"path": name, "content": name})
            for name in NAMES
        )
    )


async def answered(
    folder: Path, given: GroupAnswer, *lines: int
) -> tuple[list[Approval], AnsweredGroup, list[str]]:
    """The lines of the question, what became of the answer, and the outcome of each call."""
    async with inprocess.daemon(folder, ScriptedModel(_writes)) as daemon:
        where = await inprocess.session(daemon)
        submitted = await inprocess.say(daemon, where, "write three files")
        entry = await inprocess.until(daemon, where.session_id, "approval.requested")
        pending = await daemon.db.read(lambda tx: approvals.pending_of_run(tx, submitted.run_id))
        assert entry.kind == "approval.requested"
        asked = await daemon.db.read(
            lambda tx: approval_groups.lines(tx, pending[-1].approval_id, OWNER)
        )
        if lines:
            only = tuple(str(asked[number].approval_id) for number in lines)
            given = GroupAnswer(decision=given.decision, only=only, others=given.others)
        done = await approval_groups.answer(
            daemon.db, daemon.answers, OWNER, asked[1].approval_id, given, "test"
        )
        await inprocess.until(
            daemon, where.session_id, *inprocess.TERMINAL, run_id=submitted.run_id
        )
        events = [
            decode(bytes(each.event)) for each in await inprocess.entries(daemon, where.session_id)
        ]
        outcomes = {each.call_id: each.outcome for each in events if isinstance(each, ToolFinished)}
        return asked, done, [outcomes[each.request.call_id] for each in asked]


def test_one_answer_allows_all_calls_of_a_turn(tmp_path: Path) -> None:
    asked, done, outcomes = run(answered(tmp_path, GroupAnswer(decision="allow")))
    assert len({each.request.group for each in asked}) == 1
    assert asked[0].request.group == asked[0].approval_id
    assert [each.decision for each in done.approvals] == ["allow"] * 3
    assert outcomes == ["ok"] * 3


def test_each_line_may_be_allowed_or_denied(tmp_path: Path) -> None:
    given = GroupAnswer(decision="allow", others="deny")
    _, done, outcomes = run(answered(tmp_path, given, 0, 2))
    assert [each.decision for each in done.approvals] == ["allow", "deny", "allow"]
    assert outcomes == ["ok", "denied", "ok"]


def test_a_no_to_all_denies_each(tmp_path: Path) -> None:
    _, done, outcomes = run(answered(tmp_path, GroupAnswer(decision="deny", reason="not now")))
    assert done.problems == ()
    assert outcomes == ["denied"] * 3
