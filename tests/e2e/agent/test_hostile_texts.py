"""A file that is made to be slow is read unattended, and the daemon answers everybody else
meanwhile.
"""

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest

from palyra.features.channels.model import Inbound, Sender
from palyra.features.channels.rows import messages
from palyra.models.scripted import Turn
from tests.chatting import chat
from tests.daemon import start

SIZE = 210 << 10
TEXT = "some words " * 4_000
READ = {"calls": [{"name": "fs.read", "arguments": {"path": "hostile.txt"}}]}


@pytest.mark.parametrize("piece", ["pw:", "password=", "%70%77%3A"])
def test_health_is_answered_while_a_hostile_file_is_read(tmp_path: Path, piece: str) -> None:
    with start(tmp_path, script={"*": [READ, {"text": "read"}]}) as daemon:
        (daemon.workspace / "hostile.txt").write_text(piece * (SIZE // len(piece)))
        answered: list[int] = []
        ended = threading.Event()

        def ask() -> None:
            while not ended.is_set():
                answered.append(daemon.request("GET", "/healthz", timeout_s=5.0).status)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            _, entries = daemon.run("read it")
        finally:
            ended.set()
            asking.join()
    (result,) = [entry["event"] for entry in entries if entry["event"]["kind"] == "tool.finished"]
    assert result["outcome"] == "ok"
    assert result["size"] < SIZE * 3 // 4  # what the budget did not reach went unread
    # One that had to wait for the whole text would have been answered once, or not at all.
    assert len(answered) > 10
    assert set(answered) <= {
        200,
        429,
    }  # somebody who asks all the time may be told to ask less often
    assert 200 in answered


def test_a_stranger_who_floods_is_read_no_further_than_the_beginning(tmp_path: Path) -> None:
    """Counted before anything is redacted. Somebody who is heard loses nothing, and all keeps its
    order.
    """

    async def scene() -> None:
        async with chat(tmp_path, [Turn(text="answer")] * 8) as talk:
            await talk.pair("anna")
            intake = talk.daemon.channels.intake

            async def kept(who: str) -> list[int]:
                made = partial(
                    Inbound, conversation=f"dm-{who}", sender=Sender(who, who, True), is_direct=True
                )
                said = [made(native_id=f"{who}-{n}", text=TEXT[: 20_000 + n]) for n in range(5)]
                taken = await asyncio.gather(*(intake.take(talk.name, each) for each in said))
                assert [each.duplicate for each in taken] == [False] * 5
                found = [
                    await talk.daemon.db.read(partial(messages.get, message_id=each.message_id))
                    for each in taken
                ]
                assert [each.number for each in found] == sorted(each.number for each in found)
                return [len(each.inbound.text) for each in found]

            assert await kept("anna") == [20_000, 20_001, 20_002, 20_003, 20_004]
            assert await kept("eve") == [20_000, 20_001, 20_002, 256, 256]

    asyncio.run(asyncio.wait_for(scene(), 60))
