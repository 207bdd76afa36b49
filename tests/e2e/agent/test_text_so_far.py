"""Whoever begins to watch in the middle of a turn is told what it has said so far, once; nothing of
it is stored twice.
"""

import asyncio
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from palyra.agent.broadcast import MOST_LIVE, Broadcast
from palyra.core.ids import OWNER
from palyra.core.messages import Emit, ModelReply, ModelRequest
from palyra.serve.wiring.daemon import Daemon
from tests.daemon import start
from tests.faults import eventually, in_daemon, reached
from tests.inprocess import entries, say, session

HOLD = {
    "text": ["The beginning is here, ", "and the end."],
    "reasoning": "Slowly does it, word by word.",
    "hold_after": 1,
}


def live(events: Any) -> dict[str, Any]:
    return next(data for _, event, data in events if event == "live")


def test_a_watcher_in_mid_turn_gets_text_and_reasoning_so_far_and_then_the_rest(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script={"*": [{**HOLD, "hold": str(tmp_path / "go")}]}) as daemon:
        session_id = daemon.post("/v1/sessions")["session_id"]
        run = daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "slowly"})["run_id"]
        path = f"/v1/sessions/{session_id}/events?until={run}"
        first = live(daemon.events(path))
        late = daemon.events(path)
        second = live(late)
        assert first["turn"] == second["turn"] == 1
        assert second["whole"] is True
        assert second["text"].startswith("The beginning is")
        assert second["reasoning"].startswith("Slowly does it")
        (tmp_path / "go").touch()
        rest = [(event, data) for _, event, data in late]
        deltas = [
            data
            for event, data in takewhile(lambda each: each[1].get("kind") != "model.replied", rest)
            if event == "live"
        ]
        assert not any(each.get("whole") for each in deltas)
        assert (
            second["text"] + "".join(each.get("text", "") for each in deltas)
            == "The beginning is here, and the end."
        )
        # Nothing is being said now: there is nothing to catch up with.
        assert not [event for _, event, _ in daemon.events(path) if event == "live"]


def test_a_watcher_whose_buffer_ran_over_is_told_the_whole_instead_of_a_text_with_holes() -> None:
    async def scenario() -> list[list[Any]]:
        hub, said = Broadcast(), list[bytes]()
        watcher = hub.subscribe("tape")
        hub.stream_opened("tape", "run", lambda: b"".join(said))
        for number in range(MOST_LIVE + 5):
            said.append(b"%d " % number)
            hub.publish_live("tape", said[-1])
        taken = [await watcher.take()]
        hub.publish_live("tape", b"more")
        taken.append(await watcher.take())
        hub.stream_closed("tape", "run")
        hub.publish_live("tape", b"tool")
        return [*taken, await watcher.take()]

    whole = b"".join(b"%d " % number for number in range(MOST_LIVE + 5))
    assert asyncio.run(scenario()) == [[whole], [b"more"], [b"tool"]]


class Stubborn:
    """A provider whose first answer does not end when it is told to, and whose second stops in the
    middle.
    """

    name = "stubborn"

    def __init__(self) -> None:
        self.asked = 0
        self.speaking, self.given_up = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        self.asked += 1
        first = self.asked == 1
        emit("text", f"{'one' if first else 'two'} is being answered, word by word ")
        self.speaking.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if first:
                await self.given_up.wait()
            raise
        raise AssertionError


def test_a_turn_that_ends_late_does_not_silence_the_next_one(tmp_path: Path) -> None:
    model = Stubborn()

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "one")
        await reached(model.speaking)
        await say(d, where, "two")
        model.speaking.clear()
        # Recorded although its task has not ended: the next run begins.
        await d.gateway.cancel(OWNER, run.run_id)
        await reached(model.speaking)
        model.given_up.set()
        await eventually(lambda: d.runs.working == 1, "the first has ended")
        head = (await entries(d, where.session_id))[-1].seq
        async with asyncio.timeout(20):
            async for batch in d.gateway.watch(OWNER, where.session_id, head):
                if told := [msgspec.json.decode(wire) for seq, wire in batch if not seq]:
                    assert [each["text"][:3] for each in told] == ["two"]
                    return

    in_daemon(tmp_path, model, scenario)
