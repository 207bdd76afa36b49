"""What the crash suite does: scripted runs over every effect class, and a driver that behaves like
a stubborn client.

The driver is started again after every crash and always does the same: submit with the same ids,
answer what is pending, wait for the end. It is the daemon's business that nothing is lost and
nothing is done twice.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from palyra.agent.approval_steps import Answer
from palyra.agent.session_cache import LiveSession, conversation_at
from palyra.agent.session_cache import _look_up as read_session
from palyra.agent.sessions import Resolve
from palyra.agent.submit import Submission
from palyra.core import ids
from palyra.core.conversation import fold_segments
from palyra.core.errors import Conflict
from palyra.core.ids import OWNER
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, subagents
from palyra.store.approvals import Approval
from tests.inprocess import TERMINAL, entries, until

PERMIT_ALL = '@id("all")\npermit (principal, action, resource);\n'
SESSION_KEY = "crash"


def run_id(number: int) -> str:
    return ids.make(1_000 + number, b"crash-test")


@dataclass
class Scenario:
    """`says` are (text, mode, cancel): the inputs in order, and whether the driver cancels each
    once it works.
    """

    turns: dict[str, list[Turn]]
    says: list[tuple[str, bool]]
    policy: str = PERMIT_ALL
    files: dict[str, str] = field(default_factory=dict)
    # Lines that `test.once` and `test.reversible` must have written, by file, each exactly once.
    lines: dict[str, list[str]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    idempotent: int = 0
    # Of the model, in tokens: a small one makes the daemon condense.
    window: int = 128_000
    compactions: int = 0
    # The tasks of its subagents, each of which must have been given once.
    agents: list[str] = field(default_factory=list)
    settings: str = ""


def call(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def _every_effect() -> Scenario:
    return Scenario(
        turns={
            "every effect": [
                Turn(
                    text=("I ", "begin."),
                    calls=(
                        call("test.pure", text="one"),
                        call("test.idempotent", folder="keys", text="k"),
                        call("test.reversible", path="rev.txt", line="r1"),
                        call("test.once", path="once.txt", line="o1"),
                        call("test.pure", text="two"),
                        call("fs.write", path="new/deep.txt", content="deep\n"),
                    ),
                ),
                Turn(
                    calls=(
                        call(
                            "fs.patch",
                            edits=[{"path": "notes.md", "search": "old", "replace": "new"}],
                        ),
                    )
                ),
                Turn(
                    calls=(
                        call("test.once", path="once.txt", line="o2"),
                        call("test.reversible", path="rev.txt", line="r2"),
                    )
                ),
                Turn(text=("All ", "done.")),
            ]
        },
        says=[("every effect", False)],
        files={"notes.md": "# old title\nold text\n".replace("old text", "text")},
        lines={"once.txt": ["o1", "o2"], "rev.txt": ["r1", "r2"]},
        written={"notes.md": "# new title\ntext\n", "new/deep.txt": "deep\n"},
        idempotent=1,
    )


def _approvals() -> Scenario:
    scenario = _every_effect()
    scenario.policy = (
        '@id("run")\npermit (principal, action == Action::"run", resource);\n'
        '@id("look")\npermit (principal, action == Action::"run_unattended", resource) when { context.effect == "pure" };\n'
    )
    return scenario


def _cancels() -> Scenario:
    return Scenario(
        turns={
            "long": [
                Turn(
                    text=("wait",),
                    calls=(
                        call("test.once", path="once.txt", line="o1"),
                        call("test.sleep", ms=60_000),
                    ),
                ),
                Turn(text=("no",)),
            ],
            "next": [
                Turn(calls=(call("test.reversible", path="rev.txt", line="r1"),)),
                Turn(text=("fine",)),
            ],
        },
        says=[("long", True), ("next", False)],
        lines={"rev.txt": ["r1"]},
    )


def _mailbox() -> Scenario:
    turns = {
        name: [
            Turn(
                calls=(call("test.once", path="once.txt", line=name), call("test.pure", text=name))
            ),
            Turn(text=(f"did {name}",)),
        ]
        for name in ("a", "b", "c")
    }
    return Scenario(
        turns=turns,
        says=[("a", False), ("b", False), ("c", False)],
        lines={"once.txt": ["a", "b", "c"]},
    )


def _compaction() -> Scenario:
    """Exchanges in a window that holds hardly more than the last three: the older ones are
    condensed on the way.
    """
    talk = "We spoke of this and that without any aim. " * 12
    names = [f"talk {number}" for number in range(4)]
    turns = {name: [Turn(text=(talk,))] for name in names}
    turns["a"] = [
        Turn(calls=(call("test.reversible", path="rev.txt", line="a"),)),
        Turn(text=("did a",)),
    ]
    turns["b"] = [Turn(text=("did b",))]
    says = [
        *((f"{name}\nNever touch {name}.cfg. {talk}", False) for name in names),
        ("a", False),
        ("b", False),
    ]
    return Scenario(turns=turns, says=says, lines={"rev.txt": ["a"]}, window=3_200, compactions=1)


def _references() -> Scenario:
    """What a message names is read before the message is taken, and is never read again: the run
    itself changes it.
    """
    edit = {"path": "notes.md", "search": "old", "replace": "new"}
    return Scenario(
        turns={
            "change": [Turn(calls=(call("fs.patch", edits=[edit]),)), Turn(text=("done",))],
            "again": [Turn(text=("seen",))],
        },
        says=[
            ("change\n@file:notes.md and look into @folder:.", False),
            ("again\n@file:b.md", False),
        ],
        files={"notes.md": "# old title\n", "b.md": "long line\n" * 2_000},
        written={"notes.md": "# new title\n"},
    )


def _agents() -> Scenario:
    """Two subagents at once, one with one of its own: each call has one of them, and what they
    answer arrives once.
    """

    def spawn(task: str) -> ScriptedCall:
        return call("agent.spawn", task=task)

    return Scenario(
        turns={
            "begin": [Turn(calls=(spawn("left"), spawn("right"))), Turn(text=("both are back",))],
            "left": [Turn(text=("left is done",))],
            "right": [Turn(calls=(spawn("below"),)), Turn(text=("right is done",))],
            "below": [
                Turn(calls=(call("test.idempotent", folder="keys", text="k"),)),
                Turn(text=("below is done",)),
            ],
        },
        says=[("begin", False)],
        idempotent=1,
        agents=["below", "left", "right"],
    )


_LOOKS = ("get_", "search_", "list_", "calculate", "think")


def recorded(path: Path, number: int) -> Scenario:
    """A recorded tool-using conversation, its tools replaced by rehearsal tools of the fitting
    effect class.
    """
    trajectory = json.loads(path.read_text())[number]["traj"]
    scenario = Scenario(turns={}, says=[], lines={"once.txt": []})
    trigger = ""
    for index, message in enumerate(trajectory):
        if message["role"] == "user":
            trigger = f"message {index}"
            scenario.turns[trigger] = []
            scenario.says.append((f"{trigger}\n{message['content']}", False))
        elif message["role"] == "assistant" and trigger:
            calls = []
            for at, one in enumerate(message.get("tool_calls") or ()):
                line = f"{index}.{at} {one['function']['name']}"
                if one["function"]["name"].startswith(_LOOKS):
                    calls.append(call("test.pure", text=one["function"]["arguments"]))
                else:
                    calls.append(call("test.once", path="once.txt", line=line))
                    scenario.lines["once.txt"].append(line)
            words = (message.get("content") or "").split(" ")
            scenario.turns[trigger].append(
                Turn(text=tuple(word + " " for word in words if word), calls=tuple(calls))
            )
    # The recording ends with a message that nobody answered.
    if scenario.says and not scenario.turns[trigger]:
        scenario.says.pop()
    return scenario


def _checkpoints() -> Scenario:
    """A checkpoint is signed whenever something was appended."""
    return replace(_approvals(), settings="[journal]\ncheckpoint_entries = 1\n")


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "every-effect": _every_effect,
    "approvals": _approvals,
    "cancels": _cancels,
    "mailbox": _mailbox,
    "references": _references,
    "compaction": _compaction,
    "agents": _agents,
    "checkpoints": _checkpoints,
}


async def drive(daemon: Daemon, scenario: Scenario) -> str:
    """Bring the scenario to its end, from wherever it stands. Returns the session's id."""
    session = await daemon.sessions.resolve(OWNER, Resolve(key=SESSION_KEY))
    for number, (text, cancels) in enumerate(scenario.says):
        await daemon.gateway.submit(
            OWNER, session.session_id, Submission(text=text, run_id=run_id(number))
        )
        if cancels:
            await until(
                daemon, session.session_id, "tool.started", *TERMINAL, run_id=run_id(number)
            )
            await daemon.gateway.cancel(OWNER, run_id(number))
    for number in range(len(scenario.says)):
        await _see_through(daemon, scenario, session.session_id, run_id(number))
    return session.session_id


async def _see_through(daemon: Daemon, scenario: Scenario, session_id: str, wanted: str) -> None:
    after = 0
    while True:
        for approval in await daemon.db.read(lambda tx: approvals.pending_of_run(tx, wanted)):
            await _answer(daemon, session_id, approval)
        entry = await until(
            daemon, session_id, "approval.requested", *TERMINAL, run_id=wanted, after=after
        )
        if entry.kind in TERMINAL:
            return
        after = entry.seq


async def _answer(daemon: Daemon, session_id: str, approval: Approval) -> None:
    if approval.request.about == "in_doubt":
        decision = "happened" if await _happened(daemon, session_id, approval) else "again"
        answer = Answer(decision=decision)  # type: ignore[arg-type]
    else:
        answer = Answer(decision="allow")
    try:
        await daemon.answers.answer(OWNER, approval.approval_id, answer, "crash suite")
    except Conflict:
        return  # Answered before the crash.


async def _happened(daemon: Daemon, session_id: str, approval: Approval) -> bool:
    """A person would look: is the line there?"""
    arguments = json.loads(approval.request.preview.body)
    session = await daemon.sessions.get(OWNER, session_id)
    path = Path(session.workspace, arguments["path"])
    return path.exists() and arguments["line"] in path.read_text().splitlines()


async def conversation_of(daemon: Daemon, session_id: str) -> dict[str, Any]:
    """What was said and done in each run, without ids and times.

    Results stand in the model's order: parallel calls may finish in any. The result of a call that
    a person vouched for counts as its own.
    """
    runs: dict[str, list[Any]] = {}
    tools: dict[str, str] = {}
    results: dict[str, Any] = {}
    for entry in await entries(daemon, session_id):
        body = msgspec.json.decode(entry.event)
        said = runs.setdefault(entry.run_id, [])
        match entry.kind:
            case "input.received":
                said.append(
                    ("user", body["text"], [each["text"] for each in body.get("references", ())])
                )
            case "model.replied":
                calls = body.get("calls", ())
                tools.update((each["id"], each["tool"]) for each in calls)
                said.append(
                    (
                        "model",
                        body.get("text", ""),
                        [(each["tool"], each["arguments"], each["id"]) for each in calls],
                    )
                )
            case "tool.finished":
                vouched = tools[body["call_id"]] in ("test.once", "test.idempotent")
                results[body["call_id"]] = (
                    body["outcome"],
                    "" if vouched else body.get("text", ""),
                )
            case "run.completed" | "run.failed" | "run.cancelled":
                said.append((entry.kind, body.get("text", "")))
    told = {
        run: [_with_results(each, results) for each in said] for run, said in runs.items() if run
    }
    for agent in await daemon.db.read(lambda tx: subagents.tree(tx, session_id)):
        if agent.depth == 1:
            # A subagent's run has the id of a call, which is another one each time.
            told[f"subagent {agent.task}"] = list(
                (await conversation_of(daemon, agent.session_id)).values()
            )
    return told


async def folds_agree(daemon: Daemon, scenario: Scenario, session_id: str) -> None:
    """What is in memory is what the whole tape gives, wherever a fold begins; and it was condensed,
    if it should be.
    """
    made = [
        entry for entry in await entries(daemon, session_id) if entry.kind == "session.compacted"
    ]
    assert len(made) >= scenario.compactions
    below = await daemon.db.read(lambda tx: subagents.tree(tx, session_id))
    assert sorted(each.task for each in below) == scenario.agents
    session = await daemon.sessions.get(OWNER, session_id)
    whole = await daemon.db.read(lambda tx: conversation_at(tx, session, session.head_seq))
    short = (await daemon.db.read(lambda tx: read_session(tx, session_id)))[1]
    for folded in (fold_segments(session_id, short), daemon.runs._lives.peek(session_id)):
        conversation = folded.conversation if isinstance(folded, LiveSession) else folded
        if conversation is not None:
            assert (conversation.turns, conversation.label, conversation.notes) == (
                whole.turns,
                whole.label,
                whole.notes,
            )


def _with_results(said: Any, results: dict[str, Any]) -> Any:
    if said[0] != "model":
        return said
    return (
        *said[:2],
        [(tool, arguments, results.get(call_id)) for tool, arguments, call_id in said[2]],
    )


def problems(scenario: Scenario, work: Path, *, cancelled: bool) -> list[str]:
    """What is wrong with the files, in words; nothing if every effect is there exactly once."""
    found = []
    for name, lines in scenario.lines.items():
        present = (work / name).read_text().splitlines() if (work / name).exists() else []
        if Counter(present) != Counter(lines):
            found.append(f"{name} has {present}, not {lines}")
    for name, content in scenario.written.items():
        if not (work / name).exists() or (work / name).read_text() != content:
            found.append(f"{name} is not as written")
    if scenario.idempotent and len(list((work / "keys").iterdir())) != scenario.idempotent:
        found.append("an idempotent effect was applied under two keys")
    if (
        cancelled
        and (work / "once.txt").exists()
        and len((work / "once.txt").read_text().splitlines()) > 1
    ):
        found.append("a cancelled once effect was repeated")
    stray = [str(path) for path in work.rglob(".palyra-tmp-*")]
    return found + [f"left behind: {path}" for path in stray]
