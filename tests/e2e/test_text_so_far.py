"""Whoever begins to watch in the middle of a turn is told what it has said so far, once; nothing of it is stored twice."""

import asyncio
from itertools import takewhile
from pathlib import Path
from typing import Any

from palyra.runtime.hub import MOST_LIVE, Hub
from tests.daemon import start

HOLD = {"text": ["The beginning is here, ", "and the end."], "reasoning": "Slowly does it, word by word.", "hold_after": 1}


def live(events: Any) -> dict[str, Any]:
    return next(data for _, event, data in events if event == "live")


def test_a_watcher_in_mid_turn_gets_text_and_reasoning_so_far_and_then_the_rest(tmp_path: Path) -> None:
    with start(tmp_path, script={"*": [{**HOLD, "hold": str(tmp_path / "go")}]}) as daemon:
        session = daemon.post("/v1/sessions")["session_id"]
        run = daemon.post(f"/v1/sessions/{session}/messages", {"text": "slowly"})["run_id"]
        path = f"/v1/sessions/{session}/events?until={run}"
        first = live(daemon.events(path))
        late = daemon.events(path)
        second = live(late)
        assert first["turn"] == second["turn"] == 1
        assert second["whole"] is True
        assert second["text"].startswith("The beginning is")
        assert second["reasoning"].startswith("Slowly does it")
        (tmp_path / "go").touch()
        rest = [(event, data) for _, event, data in late]
        deltas = [data for event, data in takewhile(lambda each: each[1].get("kind") != "model.replied", rest) if event == "live"]
        assert not any(each.get("whole") for each in deltas)
        assert second["text"] + "".join(each.get("text", "") for each in deltas) == "The beginning is here, and the end."
        # Nothing is being said now: there is nothing to catch up with.
        assert not [event for _, event, _ in daemon.events(path) if event == "live"]


def test_a_watcher_whose_buffer_ran_over_is_told_the_whole_instead_of_a_text_with_holes() -> None:
    async def scenario() -> list[list[Any]]:
        hub, said = Hub(), list[bytes]()
        watcher = hub.subscribe("tape")
        hub.speaks("tape", lambda: b"".join(said))
        for number in range(MOST_LIVE + 5):
            said.append(b"%d " % number)
            hub.live("tape", said[-1])
        taken = [await watcher.take()]
        hub.live("tape", b"more")
        taken.append(await watcher.take())
        hub.silent("tape")
        hub.live("tape", b"tool")
        return [*taken, await watcher.take()]

    whole = b"".join(b"%d " % number for number in range(MOST_LIVE + 5))
    assert asyncio.run(scenario()) == [[whole], [b"more"], [b"tool"]]
