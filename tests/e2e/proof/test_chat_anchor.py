"""A checkpoint lies in a chat or mailbox of the owner, once a day, through the outbox."""

import asyncio
from pathlib import Path

from palyra.core import signed_notes
from palyra.core.signed_notes import LogCheckpoint
from palyra.features.proof.anchors import Anchors
from palyra.features.proof.service import JournalProof
from palyra.models.scripted import Turn
from tests.chatting import chat
from tests.faults import eventually
from tests.inprocess import daemon, finished, say, session

ANCHOR = '[journal]\nanchors = ["chat:chat/anna"]\n'


def test_the_owner_gets_a_checkpoint_a_day_that_the_key_signed(tmp_path: Path) -> None:
    async def day(*, fresh: bool) -> tuple[list[str], JournalProof]:
        async with chat(tmp_path, [Turn(text="well")], more=ANCHOR, fresh=fresh) as c:
            d = c.daemon
            proof, (state,) = d.get(JournalProof), d.get(Anchors).states
            for text in ("one", "two"):
                await finished(d, await say(d, await session(d), text))
                made = await proof.checkpoint()
                await eventually(
                    lambda size=made.size: state.size >= size,  # type: ignore[misc]
                    "the anchor has it",
                )
            await eventually(
                lambda: [each for each in c.platform.posted if "Checkpoint" in each.text],
                "the message is sent",
            )
            return [each.text for each in c.platform.posted if "Checkpoint" in each.text], proof

    posted, proof = asyncio.run(day(fresh=True))
    again, _ = asyncio.run(day(fresh=False))
    # Around midnight there may be one of each day.
    assert 1 <= len(posted) <= len(again) <= 2
    note = posted[0].partition("\n\n")[2]
    read = signed_notes.parse(note if note.endswith("\n") else note + "\n")
    assert any(read.signed_by(key) for key in proof.keys.public)
    assert LogCheckpoint.parse(read.text).size > 0


def test_a_channel_that_is_not_there_is_told_and_keeps_nobody_up(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with daemon(tmp_path, [], ANCHOR) as d:
            await session(d)
            await d.get(JournalProof).checkpoint()
            (state,) = d.get(Anchors).states
            assert not await d.get(Anchors).push(state)
            return str(state.problem)

    assert "chat" in asyncio.run(scenario())
