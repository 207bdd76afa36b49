"""Undoing what a call changed at a worker: its files are put back there, or it is said what was
not.
"""

import asyncio
from pathlib import Path

import pytest

from palyra.core.errors import Conflict, Unavailable
from palyra.core.events import FileChange
from palyra.core.ids import OWNER
from palyra.features.time_travel.rewind import Rewind
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import Turn
from tests.crash.scenarios import call
from tests.inprocess import body, finished, say, session
from tests.journals import run as run_loop
from tests.worker_world import World, world

THERE = "/worker:attic/notes.txt"


def write(content: str, *, at: str = "worker:attic/fs.write") -> Turn:
    return Turn(calls=(call(at, path="notes.txt", content=content),))


SCRIPT = {
    "one": [write("one\n"), Turn(text=("ok",))],
    "two": [write("two\n"), Turn(text=("ok",))],
    "both": [write("here\n", at="fs.write"), write("three\n"), write("four\n"), Turn(text=("ok",))],
    "no": [
        Turn(calls=(call("worker:attic/fs.write", path="../out.txt", content="x"),)),
        Turn(text=("ok",)),
    ],
}


async def undone_calls(w: World, session_id: str) -> list[tuple[str, list[dict[str, str]]]]:
    return [
        (body(entry)["tool"], body(entry)["changes"])
        for entry in await w.entries(session_id)
        if entry.kind == "tool.undone"
    ]


def test_a_change_at_a_worker_is_undone_there_unless_somebody_else_came_between(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            home = await w.enrol()
            working = await w.start(home, "fs.write")
            there = await session(w.daemon)
            notes = Path(home.session(there.session_id)) / "notes.txt"
            undoing = w.daemon.undoing

            async def undo(**how: object) -> tuple[tuple[FileChange, ...], int]:
                done = await undoing.undo(OWNER, there.session_id, Undo(**how))  # type: ignore[arg-type]
                return done.changes, len(done.calls)

            for words in ("one", "two", "both", "no"):
                run = await say(w.daemon, there, words)
                await finished(w.daemon, run)
                if words == "both":
                    mixed = run.run_id
            assert notes.read_text() == "four\n"
            here = Path(there.workspace) / "notes.txt"

            # A run that changed files in both places: seen before, then taken back, in both.
            looked = await undoing.undo(OWNER, there.session_id, Undo(run_id=mixed, dry_run=True))
            assert "-four\n+two" in looked.diff
            assert "-here" in looked.diff
            assert (notes.read_text(), here.read_text()) == ("four\n", "here\n")
            assert await undo(run_id=mixed) == (
                (FileChange("notes.txt", "deleted"), FileChange(THERE, "restored")),
                3,
            )
            assert (notes.read_text(), here.exists()) == ("two\n", False)
            assert await undone_calls(w, there.session_id) == [
                ("fs.write", [{"path": "notes.txt", "change": "deleted"}]),
                *[("worker:attic/fs.write", [{"path": THERE, "change": "restored"}])] * 2,
            ]

            # Somebody changed it since: nothing is lost, unless that is wanted.
            notes.write_text("mine\n")
            with pytest.raises(Conflict, match="/worker:attic/notes"):
                await undo()
            assert notes.read_text() == "mine\n"
            assert await undo(force=True) == ((FileChange(THERE, "restored"),), 1)
            assert notes.read_text() == "one\n"

            # The worker did it and the daemon did not live to write it down: asked again, it is the
            # same change, and no other.
            effects = [
                entry for entry in await w.entries(there.session_id) if entry.kind == "tool.started"
            ]
            first = body(effects[0])["call_id"]
            took = await w.daemon.workers.crew.take_back(
                "attic", there.session_id, (first,), look=False, force=False
            )
            assert [each.changes for each in took.taken] == [(FileChange("notes.txt", "deleted"),)]
            assert not notes.exists()
            assert await undo() == ((FileChange(THERE, "deleted"),), 1)
            with pytest.raises(Conflict, match="already"):
                await undo(call_id=first)

            # Who is away is not asked, and it is said that nothing happened.
            run = await say(w.daemon, there, "one")
            await finished(w.daemon, run)
            gone = asyncio.Event()
            w.daemon.workers.presence.on_change.connect(gone.set)
            working.cancel()
            async with asyncio.timeout(20):
                await gone.wait()
            with pytest.raises(Unavailable, match="attic is not connected"):
                await undo()
            assert notes.read_text() == "one\n"
            # Going back in the session does not reach it, and says so.
            rewound = await w.daemon.rewinding.rewind(
                OWNER, there.session_id, Rewind(to=2, preview=True)
            )
            assert {each.tool for each in rewound.lasting} == {"worker:attic/fs.write"}
            await w.start(home, "fs.write")
            assert await undo() == ((FileChange(THERE, "deleted"),), 1)
            assert not notes.exists()

            # A folder that knows nothing of it any more says that.
            run = await say(w.daemon, there, "two")
            await finished(w.daemon, run)
            for path in (home.state / "calls").glob("*.checkpoint"):
                path.unlink()
            with pytest.raises(Unavailable, match="has not kept"):
                await undo()

    run_loop(scenario())
