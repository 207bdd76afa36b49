"""A workspace that is looked at after every entry, and a model that changes it as it is told."""

import json
from pathlib import Path

from palyra.core.ids import OWNER
from palyra.core.messages import ModelRequest, Text, ToolMessage, UserMessage
from palyra.features.time_travel.rewind import Rewind, Rewound
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store.database import Appended
from palyra.store.sessions import Session
from tests.inprocess import finished, say

Tree = dict[str, tuple[int, bytes]]


def tree(folder: Path) -> Tree:
    """Every file with its mode and bytes, and every folder."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


def obedient() -> ScriptedModel:
    """Makes the calls that the last message names, as JSON, each in a turn of its own; then says
    that it is done.
    """

    def turn(request: ModelRequest) -> Turn:
        at = max(
            number
            for number, message in enumerate(request.messages)
            if isinstance(message, UserMessage)
        )
        asked = request.messages[at]
        assert isinstance(asked, UserMessage)
        said = asked.parts[-1]
        assert isinstance(said, Text)
        wanted = json.loads(said.text) if said.text.startswith("[") else []
        done = sum(isinstance(message, ToolMessage) for message in request.messages[at:])
        if done >= len(wanted):
            return Turn(text=(f"done {len(wanted)}",))
        name, arguments = wanted[done]
        return Turn(calls=(ScriptedCall(name=name, arguments=arguments),))

    return ScriptedModel(turn)


def write(path: str, content: str) -> list[object]:
    return ["fs.write", {"path": path, "content": content}]


def patch(path: str, search: str, replace: str) -> list[object]:
    return ["fs.patch", {"edits": [{"path": path, "search": search, "replace": replace}]}]


def delete(path: str, content: str) -> list[object]:
    lines = content.splitlines()
    body = "".join(f"-{line}\n" for line in lines)
    return [
        "fs.patch",
        {"diff": f"--- a/{path}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{body}"},
    ]


async def do(d: Daemon, where: Session, *calls: object) -> str:
    """Have the model make these calls, in one run; its id."""
    run = await say(d, where, json.dumps(list(calls)))
    assert (await finished(d, run)).kind == "run.completed"
    return run.run_id


async def rewind(d: Daemon, where: Session, to: int, **more: object) -> Rewound:
    return await d.rewinding.rewind(OWNER, where.session_id, Rewind(to=to, **more))  # type: ignore[arg-type]


class Watched:
    """The workspace as it was after each entry of each tape."""

    def __init__(self, d: Daemon, folder: Path) -> None:
        self.trees: dict[tuple[str, int], Tree] = {}
        self._folder = folder
        d.db.on_commit.connect(self._look, first=True)

    def _look(self, appended: list[Appended]) -> None:
        for entry in appended:
            self.trees[entry.tape, entry.seq] = tree(self._folder)

    def at(self, where: Session, seq: int) -> Tree:
        return self.trees[where.session_id, seq]
