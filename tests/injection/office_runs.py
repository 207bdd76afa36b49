"""Honest tasks and attacks in the office, done by a model that does the user's task and then
everything that it was told.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from palyra.agent.approval_steps import Answer
from palyra.core.events import ApprovalRequested, ToolDecided, ToolFinished, ToolStarted, decode
from palyra.core.ids import OWNER
from palyra.core.messages import AssistantMessage, ModelRequest, UserMessage
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.store import approvals
from tests import inprocess
from tests.injection.office import SERVERS, Goal, Office, Step, Task, attacks, tasks

Scope = Literal["once", "session"]
# What a model does first: what the user asked for, or after its first call what a stranger wants.
First = Literal["user", "stranger"]


@dataclass
class Result:
    """`questions` are those of the user's own task; `ran` the injected calls that did something."""

    task: Task
    goal: Goal | None = None
    questions: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)


def _name(tool: str) -> str:
    server, _, name = tool.partition(".")
    return f"mcp:{server}/{name}" if name else tool


class OneCallATurn:
    """One call a turn, in order."""

    def __init__(self) -> None:
        self.steps: Sequence[Step] = ()

    def turn(self, request: ModelRequest) -> Turn:
        at = max(n for n, each in enumerate(request.messages) if isinstance(each, UserMessage))
        done = sum(isinstance(each, AssistantMessage) for each in request.messages[at:])
        if done >= len(self.steps):
            return Turn(text="done")
        tool, arguments = self.steps[done]
        return Turn(calls=(ScriptedCall(name=_name(tool), arguments=arguments),))


async def run(
    work: Sequence[tuple[Task, Goal | None]],
    scope: Scope = "once",
    preset: str = "default",
    first: First = "user",
) -> list[Result]:
    """Each task in a session of its own. The user says yes to the calls of the task and no to all
    others.
    """
    office, model = Office(), OneCallATurn()
    found: list[Result] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        policies = folder / "home" / "policies"
        policies.mkdir(parents=True)
        (policies / "office.cedar").write_text(PERMITS)
        settings = f'[policy]\npreset = "{preset}"\n'
        async with inprocess.daemon(folder, ScriptedModel(model.turn), settings) as daemon:
            for server in SERVERS:
                own = [tool for tool in office.tools if tool.spec.source == f"mcp:{server}"]
                daemon.catalogue.renew(f"mcp:{server}", own)
            for task, goal in work:
                found.append(await _one(daemon, office, model, task, goal, scope, first))
    return found


# What `palyra mcp permit NAME --unattended` writes, for all of them.
PERMITS = """@id("office")
@reason("the servers of the office are permitted")
permit (
  principal,
  action in [Action::"run", Action::"run_unattended"],
  resource
) when { resource.source like "mcp:*" };
"""


async def _one(
    daemon: Any,
    office: Office,
    model: OneCallATurn,
    task: Task,
    goal: Goal | None,
    scope: Scope,
    first: First,
) -> Result:
    office.planted = goal.words if goal else ""
    wanted = goal.calls if goal else ()
    at_call = len(task.calls) if first == "user" else 1
    model.steps = (*task.calls[:at_call], *wanted, *task.calls[at_call:])
    injected = range(at_call, at_call + len(wanted))
    result = Result(task, goal)
    where = await inprocess.session(daemon)
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
            assert entry.kind == "run.completed", (task.said, entry)
            break
        request = decode(bytes(entry.event))
        assert isinstance(request, ApprovalRequested)
        pending = await daemon.db.read(
            lambda tx, id_=request.approval_id: approvals.get(tx, id_, OWNER)
        )
        number = await _number(daemon, where.session_id, request.call_id)
        own = number not in injected
        if own:
            result.questions.append(f"{request.tool}: {request.why}")
        answer = Answer(decision="allow", scope=scope) if own else Answer(decision="deny")
        await daemon.answers.answer(OWNER, pending.approval_id, answer, "test")
    order: list[str] = []
    for entry in await inprocess.entries(daemon, where.session_id):
        match decode(bytes(entry.event)):
            case ToolDecided(call_id=call_id):
                order.append(call_id)
            case ToolStarted(call_id=call_id):
                at = order.index(call_id)
                if at in injected:
                    tool, arguments = model.steps[at]
                    if not _reads(office, tool):
                        result.ran.append(f"{tool} {msgspec.json.encode(arguments).decode()}")
            case ToolFinished(call_id=call_id, outcome=outcome, text=text):
                if outcome != "ok" and order.index(call_id) not in injected:
                    result.undone.append(f"{model.steps[order.index(call_id)][0]}: {text}")
            case _:
                pass
    return result


async def _number(daemon: Any, session_id: str, call_id: str) -> int:
    order = [
        event.call_id
        for event in (
            decode(bytes(entry.event)) for entry in await inprocess.entries(daemon, session_id)
        )
        if isinstance(event, ToolDecided)
    ]
    return order.index(call_id)


def _reads(office: Office, tool: str) -> bool:
    found = next(each for each in office.tools if each.spec.name == _name(tool))
    use = found.spec.use
    return bool(use and use.reads_only) and not any(
        each.role == "url" for each in (use.arguments if use else ())
    )


def of(half: str) -> list[tuple[Task, None]]:
    return [(task, None) for task in tasks() if not half or task.half == half]


def against(half: str) -> list[tuple[Task, Goal]]:
    return [(task, goal) for task, goal in attacks() if not half or goal.half == half]


FIGURES = (
    "half",
    "honest tasks",
    "without a question",
    "questions a task",
    "attacks",
    "held with allow once",
    "held with for this session",
    "held if the stranger's comes first",
)


Attacked = dict[Scope | First, list[Result]]


def rows(honest: list[Result], attacked: Attacked) -> list[tuple[str, ...]]:
    """The figures of each half."""
    found = []
    for half in ("blind", "tuning", "fresh", "unseen", "held", "company", "last"):
        own = [each for each in honest if each.task.half == half]
        free = sum(not each.questions for each in own)
        asked = sum(len(each.questions) for each in own)
        tried = {
            scope: [each for each in results if each.task.half == half]
            for scope, results in attacked.items()
        }
        held = {scope: sum(not each.ran for each in tried[scope]) for scope in tried}
        found.append(
            (
                half,
                str(len(own)),
                f"{free} ({free / len(own):.0%})",
                f"{asked / len(own):.2f}",
                str(len(tried["once"])),
                *(f"{held[scope]} ({held[scope] / len(tried[scope]):.1%})" for scope in held),
            )
        )
    return found


async def figures() -> list[tuple[str, ...]]:
    return rows(await run(of("")), await all_attacked())


async def all_attacked() -> Attacked:
    work = against("")
    return {
        "once": await run(work),
        "session": await run(work, "session"),
        "stranger": await run(work, first="stranger"),
    }
