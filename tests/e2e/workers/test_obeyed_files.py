"""Files from a worker that programs here would obey arrive only with a person's yes, and nothing
becomes executable by itself.
"""

import os
from pathlib import Path

import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from tests.crash.scenarios import call
from tests.e2e.workers.test_calls import Place, outcome, told, turns
from tests.faults import asked
from tests.inprocess import finished, say, session
from tests.journals import run as run_loop
from tests.worker_world import world

MAKE = (
    "mkdir -p out/.husky out/sub/.vscode; "
    "for f in AGENTS.md .husky/pre-commit sub/conftest.py sub/.vscode/tasks.json run.sh plain.txt; "
    "do echo x > out/$f; chmod +x out/$f; done; cp -r out/. ."
)
SCRIPT = {
    "folder": turns(call("worker:attic/shell.run", command=MAKE, results=["out"])),
    "everything": turns(call("worker:attic/shell.run", command=MAKE, results=["."])),
    "named": turns(
        call("worker:attic/shell.run", command=MAKE, results=["AGENTS.md", "plain.txt"])
    ),
}


def files(work: Path) -> set[str]:
    return {str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("folder", {"out/run.sh", "out/plain.txt"}),
        ("everything", {"out/run.sh", "out/plain.txt", "run.sh", "plain.txt"}),
    ],
)
def test_what_programs_obey_is_held_back_and_named(
    tmp_path: Path, text: str, came: set[str]
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            work = tmp_path / "work"
            home = await w.enrol()
            await w.start(home)
            place = Place(await session(w.daemon), home)
            assert await outcome(w, place, await say(w.daemon, place.session, text)) == "ok"
            (result,) = await told(w, place, "tool.finished")
            assert "held back" in result["text"]
            assert "out/AGENTS.md (coding agents)" in result["text"]
            assert "name the file itself in results" in result["text"]
            assert "no file became executable" in result["text"]
            assert result["label"]["integrity"] == "untrusted"
            assert "worker:attic" in result["label"]["sources"]
            assert files(work) == came
            assert not any(os.access(path, os.X_OK) for path in work.rglob("*") if path.is_file())

    run_loop(scenario())


def test_one_that_is_named_arrives_after_a_yes_and_not_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, SCRIPT) as w:
            work = tmp_path / "work"
            home = await w.enrol()
            await w.start(home)
            place = Place(await session(w.daemon), home)
            run = await say(w.daemon, place.session, "named")
            request = await asked(w.daemon, place.session.session_id)
            assert "coding agents would obey AGENTS.md" in request.request.why
            assert files(work) == set()
            await w.daemon.answers.answer(
                OWNER, request.approval_id, Answer(decision="allow"), "test"
            )
            await finished(w.daemon, run)
            assert files(work) == {"AGENTS.md", "plain.txt"}
            assert not os.access(work / "AGENTS.md", os.X_OK)

    run_loop(scenario())
