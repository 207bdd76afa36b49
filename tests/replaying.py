"""Runs of all kinds, recorded by a real daemon, for replaying them: at random, and one for each
thing that can happen.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from palyra.agent.approval_steps import Answer
from palyra.agent.message_inputs import Attaching
from palyra.agent.submit import Submitted
from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from palyra.core.events import Budgets, ClientTool
from palyra.core.ids import OWNER
from palyra.features.compaction.service import Compact
from palyra.features.memory.model import NewMemory
from palyra.features.openai_api.history import HistoryTurn
from palyra.features.openai_api.names import CallName
from palyra.features.openai_api.sessions import CallerRequest
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.recording import Recording
from palyra.features.time_travel.rewind import Rewind
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import (
    Script,
    ScriptedCall,
    ScriptedFailure,
    ScriptedModel,
    StreamPause,
    Turn,
)
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals, runs
from palyra.store.approvals import Approval
from palyra.store.sessions import Session
from tests.e2e.agent.test_images import png
from tests.inprocess import IMPATIENT, TERMINAL, body, finished, say, session, until
from tests.watching_over import JumpingClock

# Whether memory is asked by meaning does not matter here, and a model for it would have to be
# started.
SETTINGS = "[memory]\nembeddings = false\n" + IMPATIENT.replace("channel = 0", "channel = 600000")
NO_JSON = ('{"text": ', "[1, 2]", "nonsense", '{"text": "a",}', '{"te\x01xt": 1}', "{'text': 1}")


def call(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def _some_call(rng: random.Random) -> ScriptedCall:
    number = rng.randrange(1000)
    return rng.choice(
        [
            call("test.pure", text=f"p{number}"),
            call("test.pure", text="long line\n" * rng.choice([1, 900, 3000])),
            call("test.pure"),
            call("test.pure", text=number),
            call("test.pure", txt="a wrong name"),
            call("test.once", path=f"once{number % 3}.txt", line=f"l{number}"),
            call("test.once", path="once.txt"),
            call("test.reversible", path="rev.txt", line=f"r{number}"),
            call("test.idempotent", folder="keys", text="k"),
            call("test.sleep", ms=rng.choice([0, 1, 3])),
            call("fs.list"),
            call(
                "fs.read",
                path=rng.choice(["notes.md", "missing.md", "../../etc/passwd", "sub/a.txt"]),
            ),
            call("fs.write", path=f"new{number % 4}/f.txt", content=f"text {number}\n"),
            call(
                "fs.patch",
                edits=[{"path": "notes.md", "search": "title", "replace": f"title{number}"}],
            ),
            call("fs.patch", edits=[{"path": "notes.md", "search": "not there", "replace": "x"}]),
            call("fs.search", pattern="title"),
            call("fs.nothing", path="x"),
            ScriptedCall(name="test.pure", arguments=rng.choice(NO_JSON)),
        ]
    )


def _some_turns(rng: random.Random) -> list[Turn]:
    turns = []
    for _ in range(rng.randrange(4)):
        fail = None
        if rng.random() < 0.08:
            fail = ScriptedFailure(
                failure=rng.choice(["malformed", "network"]),
                times=1,
                after=rng.randrange(2),
                retry_after_ms=1,
            )
        turns.append(
            Turn(
                text=rng.choice([(), ("I ", "look."), ("thinking aloud",)]),
                reasoning=rng.choice([(), ("hm",)]),
                calls=tuple(_some_call(rng) for _ in range(rng.randrange(1, 6))),
                fail=fail,
            )
        )
    last = rng.random()
    if last < 0.1:
        turns += [Turn(text="half a sen", stop="length"), Turn(text="tence")]
    elif last < 0.16:
        turns.append(
            Turn(
                fail=ScriptedFailure(
                    failure=rng.choice(["auth", "content_blocked", "quota", "bad_request"])
                )
            )
        )
    elif last < 0.2:
        turns.append(Turn(text="no more", stop="content_filter"))
    else:
        turns.append(Turn(text=("All ", "done.")))
    return turns


async def _answer(d: Daemon, approval: Approval, rng: random.Random) -> None:
    wanted = rng.choice(
        [
            Answer(decision="allow"),
            Answer(decision="allow", scope="session"),
            Answer(decision="allow", scope="timed", for_ms=3_600_000),
            Answer(decision="deny"),
            Answer(decision="deny", reason="not today"),
            Answer(decision="allow", arguments={"path": "edited.txt", "line": "edited"}),
        ]
    )
    for answer in (wanted, Answer(decision="allow"), Answer(decision="deny")):
        try:
            await d.answers.answer(OWNER, approval.approval_id, answer, "test")
            return
        except (InvalidInput, Forbidden):
            continue  # That answer does not fit this call.
        except Conflict:
            return


async def see_through(d: Daemon, run: Submitted, rng: random.Random) -> None:
    """To its end, whatever it asks."""
    after = run.seq
    while True:
        for approval in await d.db.read(lambda tx: approvals.pending_of_run(tx, run.run_id)):
            await _answer(d, approval, rng)
        entry = await until(
            d, run.session_id, "approval.requested", *TERMINAL, run_id=run.run_id, after=after
        )
        if entry.kind in TERMINAL:
            return
        after = entry.seq


def scripts_at_random(seeds: Sequence[int]) -> dict[str, list[Turn]]:
    return {
        f"s{seed} r{number}": _some_turns(random.Random(f"{seed}.{number}"))
        for seed in seeds
        for number in range(3)
    }


async def talk_at_random(d: Daemon, seed: int) -> str:
    """Two or three runs of one session; sometimes a rule, a reset, a steer, an undo or a branch
    between them.
    """
    rng = random.Random(seed)
    where = await session(d)
    for number in range(rng.randrange(2, 4)):
        run = await say(
            d, where, f"s{seed} r{number}\nplease", mode=rng.choice(["followup", "collect"])
        )
        if rng.random() < 0.3:
            await say(
                d,
                where,
                "and be quick",
                mode=rng.choice(["steer", "interrupt", "followup"]),
                model="",
            )
        await see_through(d, run, rng)
        for other in await d.db.read(lambda tx: runs.unfinished_of_session(tx, where.session_id)):
            await see_through(d, _submitted(where, other.run_id), rng)
        await _something_between(d, where, rng)
    return where.session_id


def _submitted(where: Session, run_id: str) -> Submitted:
    return Submitted(
        run_id=run_id,
        session_id=where.session_id,
        submission_id=run_id,
        state="accepted",
        outcome="queued",
        seq=0,
    )


async def _something_between(d: Daemon, where: Session, rng: random.Random) -> None:
    match rng.randrange(8):
        case 0:
            rule = rng.choice(
                [
                    "never change ./new1",
                    "max 9 calls",
                    "ask before every change",
                    "never use test.once",
                ]
            )
            await d.rules.add(OWNER, where.session_id, rule)
        case 1:
            await d.sessions.reset(OWNER, where.session_id)
        case 2:
            try:
                await d.undoing.undo(OWNER, where.session_id, Undo(force=True))
            except (Conflict, NotFound):
                return  # There is nothing to take back.
        case 3:
            await d.sessions.change(OWNER, where.session_id, title="renamed", archived=None)


Story = Callable[[Daemon, dict[str, StreamPause]], Awaitable[str]]
HOLDS = ("cancel", "steer", "interrupt", "slow", "second")
SCRIPTS: dict[str, list[Turn]] = {
    "cancel in a model call": [Turn(text=("one", "two"), hold="cancel", hold_after=1)],
    "tools of a program": [
        Turn(
            text="I ask you.",
            calls=(
                call("get_weather", city="Brno"),
                call("test.pure", text="mine"),
                call("get_weather"),
            ),
        ),
        Turn(calls=(call("get_weather", city="Wien"),)),
        Turn(text="then not"),
    ],
    "cancel in a tool": [Turn(calls=(call("test.sleep", ms=60_000), call("test.pure", text="x")))],
    "cancel while it waits": [
        Turn(calls=(call("test.once", path="a", line="b"), call("test.once", path="c", line="d")))
    ],
    "steer": [
        Turn(text=("first",), hold="steer", calls=(call("test.pure", text="x"),)),
        Turn(text="second"),
        Turn(text="third"),
    ],
    "interrupt the model": [
        Turn(text=("so ", "far"), hold="interrupt", hold_after=1),
        Turn(text="then"),
        Turn(text="more"),
    ],
    "interrupt tools": [
        Turn(
            calls=(
                call("test.pure", text="x"),
                call("test.sleep", ms=60_000),
                call("test.sleep", ms=50_000),
            )
        ),
        Turn(text="then"),
    ],
    "write the same": [
        Turn(
            calls=(
                call("fs.write", path="notes.md", content="# title\n\nsome text\n"),
                call("test.pure", text="x"),
            )
        ),
        Turn(text="as it was"),
    ],
    "retry": [
        Turn(fail=ScriptedFailure(failure="overloaded", times=2, retry_after_ms=1)),
        Turn(text="no"),
    ],
    "wait and be interrupted": [
        Turn(
            fail=ScriptedFailure(failure="rate_limited", times=1, retry_after_ms=50_000), text="yes"
        ),
        Turn(text="ok"),
    ],
    "give up": [
        Turn(text=("a", "b"), fail=ScriptedFailure(failure="network", after=1, retry_after_ms=1))
    ],
    "long": [Turn(calls=(call("test.pure", text="again"),))] * 20,
    "slow": [Turn(text=("a",), hold="slow")],
    "slow tool": [Turn(calls=(call("test.sleep", ms=60_000),))],
    "queue": [Turn(text=("a",), hold="second"), Turn(text="b")],
    "expire": [Turn(calls=(call("test.once", path="a", line="b"),)), Turn(text="nobody")],
    "hello": [Turn(text="hello")],
    "away": [
        Turn(fail=ScriptedFailure(failure="network", times=1, retry_after_ms=90_000), text="back")
    ],
    "gone": [Turn(fail=ScriptedFailure(failure="overloaded", retry_after_ms=90_000))],
    "no quota": [Turn(fail=ScriptedFailure(failure="quota", times=1), text="from elsewhere")],
    "no key after a call": [
        Turn(calls=(call("test.pure", text="x"),)),
        Turn(fail=ScriptedFailure(failure="auth", times=2), text="from the third"),
    ],
    "nobody": [Turn(fail=ScriptedFailure(failure="permission"))],
    "too long": [Turn(fail=ScriptedFailure(failure="context_too_long", times=1), text="fits")],
    "too long after a call": [
        Turn(calls=(call("test.pure", text="x"),)),
        Turn(fail=ScriptedFailure(failure="context_too_long", times=1), text="fits"),
    ],
    "write": [
        Turn(calls=(call("fs.write", path="w.txt", content="w"), call("fs.read", path="w.txt"))),
        Turn(text="written"),
    ],
    "look": [
        Turn(calls=(call("test.camera", number=1), call("test.camera", number=2))),
        Turn(text="seen"),
        Turn(text="still"),
    ],
}


async def cancel_in_a_model_call(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "cancel in a model call")
    await asyncio.wait_for(holds["cancel"].reached.wait(), 20)
    await d.gateway.cancel(OWNER, run.run_id, "enough")
    return where.session_id


async def cancel_in_a_tool(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "cancel in a tool")
    await until(d, where.session_id, "tool.finished", run_id=run.run_id)
    await d.gateway.cancel(OWNER, run.run_id)
    return where.session_id


async def cancel_while_it_waits(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "cancel while it waits")
    await until(d, where.session_id, "approval.requested", run_id=run.run_id)
    queued = await say(d, where, "hello")
    await d.gateway.cancel(OWNER, run.run_id)
    await finished(d, queued)
    return where.session_id


async def stop_everything(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "cancel in a tool")
    for _ in range(3):
        await say(d, where, "hello")
    await until(d, where.session_id, "tool.started", run_id=run.run_id)
    await d.gateway.stop(OWNER)
    return where.session_id


async def wait_for_the_provider(d: Daemon, holds: dict[str, StreamPause]) -> str:
    """One waits after it has asked, one without asking; both are tried again, and one gives up."""
    where = await session(d)
    first = await say(d, where, "away", origin="channel")
    await until(d, where.session_id, "run.waiting", run_id=first.run_id)
    await d.gateway.retry(OWNER, first.run_id)
    await finished(d, first)
    other = await session(d)
    gone = await say(d, other, "gone", origin="channel")
    await until(d, other.session_id, "run.waiting", run_id=gone.run_id)
    held = await say(d, where, "hello", origin="channel")
    await until(d, where.session_id, "run.waiting", run_id=held.run_id)
    # First: once the model has answered, this one would ask as well, and fail for everybody again.
    await d.gateway.cancel(OWNER, gone.run_id)
    await d.gateway.retry(OWNER, held.run_id)
    await finished(d, held)
    return where.session_id


async def reset_at_work(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "cancel in a tool")
    await until(d, where.session_id, "tool.started", run_id=run.run_id)
    await d.sessions.reset(OWNER, where.session_id)
    await finished(d, await say(d, where, "hello"))
    return where.session_id


async def steer(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "steer")
    await asyncio.wait_for(holds["steer"].reached.wait(), 20)
    await say(d, where, "this too", mode="steer")
    await say(d, where, "and that", mode="steer")
    holds["steer"].released.set()
    await finished(d, run)
    return where.session_id


async def interrupt_the_model(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "interrupt the model")
    await asyncio.wait_for(holds["interrupt"].reached.wait(), 20)
    await say(d, where, "no, otherwise", mode="interrupt")
    await finished(d, run)
    return where.session_id


async def interrupt_tools(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "interrupt tools")
    await until(d, where.session_id, "tool.finished", run_id=run.run_id)
    await say(d, where, "never mind", mode="interrupt")
    await finished(d, run)
    return where.session_id


async def retry(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    await finished(d, await say(d, where, "retry"))
    return where.session_id


async def interrupt_a_wait(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "wait and be interrupted")
    await until(d, where.session_id, "model.failed", run_id=run.run_id)
    await say(d, where, "now", mode="interrupt")
    await finished(d, run)
    return where.session_id


async def give_up(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    await finished(d, await say(d, where, "give up"))
    return where.session_id


async def ask_elsewhere(d: Daemon, holds: dict[str, StreamPause]) -> str:
    """The model fails, so the next is asked: at the first turn, and after a call."""
    before = d.models._fallbacks
    d.models._fallbacks = (d.models.find("scripted/two"), d.models.find("scripted/three"))
    try:
        where = await session(d)
        for text in ("no quota", "no key after a call", "nobody"):
            await finished(d, await say(d, where, text))
    finally:
        d.models._fallbacks = before
    return where.session_id


async def out_of_turns(d: Daemon, holds: dict[str, StreamPause]) -> str:
    return await _with_budgets(d, Budgets(turns=3), "long")


async def out_of_calls(d: Daemon, holds: dict[str, StreamPause]) -> str:
    return await _with_budgets(d, Budgets(calls=2), "long")


async def out_of_time(d: Daemon, holds: dict[str, StreamPause]) -> str:
    return await _with_budgets(d, Budgets(active_ms=150), "slow")


async def out_of_time_in_a_tool(d: Daemon, holds: dict[str, StreamPause]) -> str:
    return await _with_budgets(d, Budgets(active_ms=150), "slow tool")


async def _with_budgets(d: Daemon, budgets: Budgets, text: str) -> str:
    before, d.settings.budgets = d.settings.budgets, budgets
    try:
        where = await session(d)
        run = await say(d, where, text)
    finally:
        d.settings.budgets = before
    await finished(d, run)
    return where.session_id


async def a_queue(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    await say(d, where, "queue")
    await asyncio.wait_for(holds["second"].reached.wait(), 20)
    followed = await say(d, where, "hello")
    await say(d, where, "gather", mode="collect")
    gathered = await say(d, where, "hello\nand this", mode="collect")
    holds["second"].released.set()
    await finished(d, followed)
    await finished(d, gathered)
    return where.session_id


async def nobody_answers(d: Daemon, holds: dict[str, StreamPause]) -> str:
    before = d.settings.approval_times
    d.settings.approval_times = msgspec.structs.replace(before, interactive=30)
    try:
        where = await session(d)
        await finished(d, await say(d, where, "expire"))
    finally:
        d.settings.approval_times = before
    return where.session_id


async def a_branch(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    await see_through(d, await say(d, where, "write"), random.Random(1))
    await finished(d, await say(d, where, "hello"))
    child = await d.sessions.branch(OWNER, where.session_id, 12, "")
    grandchild = await d.sessions.branch(OWNER, child.session_id, None, "other")
    await see_through(d, await say(d, grandchild, "write"), random.Random(1))
    return grandchild.session_id


async def a_rule_while_it_waits(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    run = await say(d, where, "expire")
    asked = await until(d, where.session_id, "approval.requested", run_id=run.run_id)
    await d.rules.add(OWNER, where.session_id, "max 1 calls")
    await d.answers.answer(
        OWNER, msgspec.json.decode(asked.event)["approval_id"], Answer(decision="allow"), "test"
    )
    await see_through(d, run, random.Random(3))
    return where.session_id


async def remembered(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    here = await d.memory.where(OWNER, where.session_id)
    await d.memory.add(
        here, NewMemory(text="Whoever says hello likes to be called Ada", pinned=True)
    )
    for _ in range(2):
        # The second run is shown it where it stood.
        await finished(d, await say(d, where, "hello"))
    return where.session_id


async def with_options(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    for options in (CallOptions(effort="high", seed=3), CallOptions(temperature=0.5), NOTHING):
        await finished(d, await say(d, where, "hello", options=options))
    return where.session_id


async def rewound(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    await see_through(d, await say(d, where, "write"), random.Random(1))
    behind = await finished(d, await say(d, where, "hello"))
    await see_through(d, await say(d, where, "write"), random.Random(1))
    await d.rewinding.rewind(OWNER, where.session_id, Rewind(to=behind.seq))
    await finished(d, await say(d, where, "hello"))
    return where.session_id


async def condensed(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    for _ in range(12):
        await finished(
            d, await say(d, where, "hello\n" + "and a long story about this and that. " * 40)
        )
    made = await d.compacting.compact(OWNER, where.session_id, Compact())
    assert made.applied, made.why
    await finished(d, await say(d, where, "hello"))
    await d.compacting.undo(OWNER, where.session_id, made.seq)
    assert (await finished(d, await say(d, where, "too long"))).kind == "run.completed"
    await finished(d, await say(d, where, "too long after a call"))
    return where.session_id


async def named_and_attached(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    kept = [
        await d.enclosures.attachments.keep(OWNER, where.session_id, name, data)
        for name, data in (("cat.png", png(3)), ("story.txt", b"once upon a time\n" * 2_000))
    ]
    attaching = tuple(Attaching(artifact=each.artifact, name=each.name) for each in kept)
    run = await say(d, where, "hello\n@file:notes.md and @folder:sub", attachments=attaching)
    await finished(d, run)
    (d_notes := Path(where.workspace, "notes.md")).write_text(
        d_notes.read_text() + "changed since\n"
    )
    await finished(d, await say(d, where, "hello"))
    return where.session_id


async def images(d: Daemon, holds: dict[str, StreamPause]) -> str:
    where = await session(d)
    await finished(d, await say(d, where, "look"))
    await finished(d, await say(d, where, "look\nagain"))
    return where.session_id


async def write_the_same(d: Daemon, holds: dict[str, StreamPause]) -> str:
    """A call that changes nothing is done before it starts."""
    where = await session(d)
    await finished(d, await say(d, where, "write the same"))
    return where.session_id


async def tools_of_a_program(d: Daemon, holds: dict[str, StreamPause]) -> str:
    """It brings results together with a word more, and then says something else instead of the
    next.
    """
    given = CallerRequest(
        text="tools of a program",
        offered=(ClientTool("get_weather"),),
        earlier=(HistoryTurn("assistant", "hi"),),
    )
    begun = await d.callers.begin(OWNER, given)
    handed = await until(d, begun.session_id, "tool.handed_over")
    results = {CallName(begun.run_id, call_id): "sun" for call_id in body(handed)["calls"]}
    await d.callers.begin(OWNER, CallerRequest(text="hurry", results=results))
    await until(d, begun.session_id, "tool.handed_over", after=handed.seq)
    await d.callers.begin(OWNER, CallerRequest(text="never mind", session=begun.session_id))
    assert (await until(d, begun.session_id, *TERMINAL)).kind == "run.completed"
    return begun.session_id


def _with_a_moved_clock(hold: str, story: Story, ms: int) -> Story:
    """A story in which somebody sets the clock while the model speaks."""

    async def told(d: Daemon, holds: dict[str, StreamPause]) -> str:
        async def set_it() -> None:
            await holds[hold].reached.wait()
            assert isinstance(d.clock, JumpingClock)
            d.clock.jump(ms)

        setting = asyncio.create_task(set_it())
        session_id = await story(d, holds)
        await setting
        return session_id

    return told


STORIES: tuple[Story, ...] = (
    write_the_same,
    tools_of_a_program,
    cancel_in_a_model_call,
    cancel_in_a_tool,
    cancel_while_it_waits,
    stop_everything,
    wait_for_the_provider,
    reset_at_work,
    steer,
    interrupt_the_model,
    interrupt_tools,
    retry,
    interrupt_a_wait,
    give_up,
    ask_elsewhere,
    out_of_turns,
    out_of_calls,
    out_of_time,
    out_of_time_in_a_tool,
    a_queue,
    nobody_answers,
    a_branch,
    a_rule_while_it_waits,
    remembered,
    with_options,
    rewound,
    condensed,
    named_and_attached,
    images,
    _with_a_moved_clock("cancel", cancel_in_a_model_call, 6 * 3_600_000),
    _with_a_moved_clock("steer", steer, -6 * 3_600_000),
    _with_a_moved_clock("interrupt", interrupt_the_model, 6 * 3_600_000),
)


def model_for(scripts: dict[str, list[Turn]], holds: dict[str, StreamPause]) -> ScriptedModel:
    known = {name: tuple(turns) for name, turns in scripts.items()}
    return ScriptedModel(Script(known | {"*": (Turn(text="well"),) * 50}), holds=holds)


async def recording(d: Daemon, wanted: str) -> Recording:
    return await d.db.read(lambda tx: recordings.read(tx, wanted))


_NOTES = "Be brief.\n"


def furnish(work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    (work / "sub").mkdir(exist_ok=True)
    (work / "notes.md").write_text("# title\n\nsome text\n")
    (work / "sub" / "a.txt").write_text("a\n" * 50)
    (work / "AGENTS.md").write_text(_NOTES)


async def accept_notes(d: Daemon, work: Path) -> None:
    """So that the prompts of a recording have the notes; without it they name them as left out."""
    await d.project_notes.accept(OWNER, str(work), "AGENTS.md", sha256(_NOTES.encode()).hexdigest())
