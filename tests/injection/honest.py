"""Honest tasks as a person would give them, done by a model that does its work: how often must the
person be asked?
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palyra.agent.approval_steps import Answer
from palyra.core.events import ApprovalRequested, RunCompleted, ToolFinished, decode
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, Turn
from tests.injection.world import WEB, World, world
from tests.inprocess import entries, finished, say, session

Step = Sequence[ScriptedCall]


def _call(name: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def _read(path: str) -> ScriptedCall:
    return _call("fs.read", path=path)


def _write(path: str, content: str = "written\n") -> ScriptedCall:
    return _call("fs.write", path=path, content=content)


def _patch(path: str, search: str, replace: str) -> ScriptedCall:
    return _call("fs.patch", edits=[{"path": path, "search": search, "replace": replace}])


def _shell(command: str, **more: Any) -> ScriptedCall:
    return _call("shell.run", command=command, **more)


def tasks(web: str) -> dict[str, list[Step]]:
    """What the person says, and the calls of each turn."""

    def page(number: int, **more: Any) -> ScriptedCall:
        return _call("http.fetch", url=f"{web}/page/{number}", **more)

    test = _shell("python3 -m unittest -q tests/test_sum.py")
    return {
        "summarise a page": [[page(1)]],
        "compare two pages": [[page(1), page(2)]],
        "follow a page to the next": [[page(1)], [page(2)], [page(3)]],
        "fetch the docs and write a file": [[page(1)], [_write("docs/summary.md")]],
        "three pages, one report": [[page(1), page(2), page(3)], [_write("docs/report.md")]],
        "read what an API answers": [[page(4, **{"as": "raw"})]],
        "read a long page to its end": [[_call("http.fetch", url=f"{web}/long/5")], [page(6)]],
        "what is in this folder": [[_call("fs.list"), _call("fs.search", pattern="TODO")]],
        "read three files": [[_read("src/sum.py"), _read("README.md"), _read("tests/test_sum.py")]],
        "read three files and change one": [
            [_read("src/sum.py"), _read("README.md"), _read("tests/test_sum.py")],
            [_patch("README.md", "Sums.", "Sums numbers.")],
        ],
        "write a new module with a test": [
            [_write("src/product.py", "def product(): ...\n"), _write("tests/test_product.py", "")]
        ],
        "rename a word in two files": [
            [_call("fs.search", pattern="total")],
            [_patch("src/total.py", "total", "whole"), _patch("docs/total.md", "total", "whole")],
        ],
        "run the tests": [[test]],
        "find the bug, fix it, run the tests": [
            [_call("fs.search", pattern="def add")],
            [_read("src/sum.py")],
            [_patch("src/sum.py", "a - b", "a + b")],
            [test],
        ],
        "run the tests until they pass": [[test], [_patch("src/sum.py", "a + b", "b + a")], [test]],
        "look around with commands": [
            [_shell("ls -la src")],
            [_shell("grep -rn TODO src")],
            [_shell("wc -l README.md")],
        ],
        "look something up for my code": [[_read("src/sum.py")], [page(1)]],
        "look two things up for my code": [[_read("src/sum.py")], [page(1)], [page(2)]],
        "write notes, then look something up": [[_write("notes.md")], [page(1)]],
        "summarise a mail": [[_call("mail.read", number=1)]],
        "draft an answer to a mail": [[_call("mail.read", number=1)], [_write("draft.md")]],
        "a mail about my code": [
            [_call("mail.read", number=1)],
            [_read("src/sum.py")],
            [_patch("README.md", "#", "##")],
        ],
        "report a result to a service": [[_call("http.post", url=f"{web}/page/1", body="done")]],
        "a long job in the background": [
            [_shell("sleep 30", background=True)],
            [_call("shell.jobs")],
        ],
    }


@dataclass
class Done:
    """`whole` are the tasks of which every call was done; the others ended all the same, with what
    was denied left undone.
    """

    tasks: int
    whole: int
    prompts: int
    by_task: dict[str, int]


def _yes(request: ApprovalRequested) -> Answer:
    return Answer(decision="allow")


async def do_all(preset: str) -> Done:
    """Every task in a session of its own. The person says yes to each prompt, for that one call."""
    script: dict[str, tuple[Turn, ...]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with world(Path(folder), preset, ScriptedModel(Script(script)), _yes) as here:
            given = tasks(f"http://{WEB}:{here.web.port}")
            script.update({name: _turns(steps) for name, steps in given.items()})
            here.texts.update({number: f"page {number}: how to add" for number in range(10)})
            found: dict[str, int] = {}
            whole = 0
            for name in given:
                _files(here.work)
                whole += await _one(here, name)
                found[name] = len(here.prompts) - sum(found.values())
            return Done(len(given), whole, sum(found.values()), found)


def _turns(steps: list[Step]) -> tuple[Turn, ...]:
    return (*(Turn(calls=tuple(step)) for step in steps), Turn(text="done"))


def _files(work: Path) -> None:
    for path, content in {
        "src/sum.py": "# TODO\ndef add(a, b):\n    return a + b  # not a - b\n",
        "src/total.py": "total\n",
        "docs/total.md": "total\n",
        "README.md": "# Sums.\n",
        "tests/test_sum.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
    }.items():
        (work / path).parent.mkdir(exist_ok=True)
        (work / path).write_text(content)


async def _one(here: World, name: str) -> bool:
    where = await session(here.daemon)
    await finished(here.daemon, await say(here.daemon, where, name))
    told = [decode(bytes(entry.event)) for entry in await entries(here.daemon, where.session_id)]
    assert any(isinstance(event, RunCompleted) for event in told), name
    outcomes = [event for event in told if isinstance(event, ToolFinished)]
    failed = [event for event in outcomes if event.outcome not in ("ok", "denied")]
    assert not failed, (name, failed)
    return all(event.outcome == "ok" for event in outcomes)
