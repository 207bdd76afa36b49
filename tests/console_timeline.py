"""A session with runs that took their time, for pictures of the timeline: a scripted model answers
within a millisecond, and nobody could see where the time goes.
"""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    AssembledPart,
    Call,
    FileChange,
    InputAssembled,
    InputReceived,
    ModelFailed,
    ModelReplied,
    RunAccepted,
    RunCompleted,
    RunResumed,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.ids import OWNER, ApprovalId, CallId
from palyra.core.labels import Label
from palyra.core.messages import Usage
from palyra.core.tools import Preview, Scope
from palyra.store import tape
from palyra.store.database import Tx
from tests import journals
from tests.daemon import DaemonProcess

# What happens, and how many milliseconds after what happened before it.
Timed = tuple[int, AnyEvent]
_PRIVATE = Label(confidentiality="private", private_sources=("file",))
_DIFF = (
    '--- a/beds.toml\n+++ b/beds.toml\n@@ -3,4 +3,4 @@\n [bed.2]\n-plant = "tomatoes"\n'
    '+plant = "beans"\n [bed.3]\n-plant = "beans"\n+plant = "tomatoes"\n'
)
_EARLIER = (
    "Which seeds do we still have?",
    "What did I sow last year?",
    "When is the last frost?",
    "How much compost is left?",
    "Who waters on weekends?",
)


def fill(daemon: DaemonProcess) -> str:
    """Written while the daemon is down; gives the session."""
    session: str = daemon.post("/v1/sessions")["session_id"]
    daemon.request(
        "PATCH", f"/v1/sessions/{session}", {"title": "Is the rotation of my beds right?"}
    )
    port = daemon.port
    daemon.stop()

    def step(tx: Tx) -> None:
        tx.now_ms = int(time.time() * 1000) - 50 * 60_000
        for number, text in enumerate(_EARLIER * 2):
            _append(tx, session, _short(text, 900 + number * 740 % 3_100))
            tx.now_ms += 40_000 + number * 25_000
        _append(tx, session, _long())

    async def write() -> None:
        async with journals.opened(daemon.home / "journal.db") as db:
            await db.write(step)

    # In a thread of its own: the browser's driver has an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, write()).result()
    daemon.restart(port=port)
    return session


def _append(tx: Tx, session: str, events: Iterator[Timed]) -> None:
    run = journals.new_id()
    for after, event in events:
        tx.now_ms += after
        tape.append(tx, session, OWNER, [event], run)


def _asked(text: str) -> Iterator[Timed]:
    yield 0, RunAccepted()
    yield 2, InputReceived(submission_id=journals.new_id(), text=text)
    yield 2, RunStarted()


def _prompt(turn: int, tokens: int) -> Timed:
    parts = (AssembledPart("instructions", 1_210), AssembledPart("conversation", tokens - 1_210))
    return 12, InputAssembled(turn=turn, upto_seq=0, parts=parts, tokens=tokens, budget=32_000)


def _reply(turn: int, ms: int, text: str, *calls: Call, after: int = 0) -> Timed:
    spent = Usage(input_tokens=2_140, output_tokens=164, cached_tokens=1_800)
    return after + ms, ModelReplied(
        turn=turn,
        provider="home",
        model="qwen3-8b",
        text=text,
        calls=calls,
        usage=spent,
        cost_microusd=1_900,
        priced="own",
        first_delta_ms=ms // 4,
        duration_ms=ms,
    )


def _short(text: str, ms: int) -> Iterator[Timed]:
    yield from _asked(text)
    yield _prompt(1, 1_940)
    yield _reply(1, ms, "It is in the notes.")
    yield 3, RunCompleted(text="It is in the notes.")


def _read(path: str) -> Iterator[Timed]:
    call = CallId(journals.new_id())
    yield 1, ToolProposed(call_id=call, tool="fs.read", arguments={"path": path}, effect="pure")
    reason = "reading inside the workspace needs no approval"
    yield 0, ToolDecided(call_id=call, verdict="allow", reason=reason)
    yield 1, ToolStarted(call_id=call, key=call)
    yield 2, ToolFinished(call_id=call, outcome="ok", text=path, duration_ms=2, label=_PRIVATE)


def _long() -> Iterator[Timed]:
    write, question = CallId(journals.new_id()), ApprovalId(journals.new_id())
    arguments = {"path": "beds.toml", "content": "…"}
    yield from _asked("Swap beds 2 and 3 if the rotation is wrong.")
    yield _prompt(1, 2_304)
    yield _reply(1, 1_800, "I look at the plan.")
    yield from _read("beds.toml")
    yield from _read("notes.md")
    yield _prompt(2, 2_590)
    yield _reply(2, 2_400, "Beans followed beans in bed 3.", Call(write, "fs.write", arguments))
    yield (
        1,
        ToolProposed(
            call_id=write,
            tool="fs.write",
            arguments=arguments,
            effect="reversible",
            scope=Scope(),
        ),
    )
    yield (
        1,
        ToolDecided(
            call_id=write,
            verdict="ask",
            reason="file writes need approval",
            policies=("default-ask",),
        ),
    )
    yield (
        1,
        ApprovalRequested(
            approval_id=question,
            call_id=write,
            tool="fs.write",
            about="tool",
            preview=Preview(kind="diff", title="change beds.toml (+2 -2)", body=_DIFF),
            risk="low",
            why="file writes need approval",
            label=_PRIVATE,
        ),
    )
    yield (
        5_400,
        ApprovalResolved(approval_id=question, call_id=write, decision="allow", surface="console"),
    )
    yield 1, RunResumed(after="approval")
    yield 2, ToolStarted(call_id=write, key=write)
    changed = (FileChange("beds.toml", "modified"),)
    yield (
        8,
        ToolFinished(
            call_id=write, outcome="ok", text="wrote beds.toml", duration_ms=8, changes=changed
        ),
    )
    yield _prompt(3, 2_710)
    yield (
        400,
        ModelFailed(
            turn=3,
            provider="home",
            model="qwen3-8b",
            failure="overloaded",
            message="the server is busy",
            will_retry=True,
            wait_ms=2_600,
            duration_ms=400,
        ),
    )
    yield _reply(3, 2_000, "Swapped: beans are in bed 2 now, tomatoes in bed 3.", after=2_600)
    yield 3, RunCompleted(text="Swapped: beans are in bed 2 now, tomatoes in bed 3.")
