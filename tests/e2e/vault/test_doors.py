"""No name, id or path that a model or a person chooses brings a secret onto the tape."""

from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.messages import Emit, ModelReply, ModelRequest
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.crash.scenarios import call
from tests.faults import in_daemon
from tests.inprocess import entries, finished, kinds, say, session

# Of known forms, never in use, and put together here so that no scanner finds them in the
# repository.
SECRET = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0x" * 3 + "AA"
AWS = "AKIA" + "Q3EGRZTB7WXLN5KD"


class Broken:
    """A provider with a defect that has the key in its message."""

    name = "scripted"

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        raise ValueError(f"cannot build the header Authorization: Bearer {SECRET}")


def calling(*calls: ScriptedCall) -> list[Turn]:
    return [Turn(calls=calls), Turn(text=("ok",))]


DOORS: dict[str, Any] = {
    "text": [Turn(text=(f"the keys are {SECRET} and {AWS}",))],
    "defect": Broken(),
    "tool name": calling(call(SECRET)),
    "native id": calling(ScriptedCall(name="test.pure", arguments={"text": "a"}, id=SECRET)),
    "argument name": calling(call("test.pure", **{SECRET: "a", "text": "b"})),
    "path behind a link": calling(call("fs.read", path="link/file.txt")),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_secret_does_not_reach_the_tape_through(door: str, tmp_path: Path) -> None:
    (tmp_path / "work" / AWS).mkdir(parents=True)
    (tmp_path / "work" / AWS / "file.txt").write_text("plain")
    (tmp_path / "work/link").symlink_to(AWS)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "hi"))
        taped = [bytes(entry.event).decode() for entry in await entries(d, where.session_id)]
        assert [event[:300] for event in taped if SECRET in event or AWS in event] == []

    in_daemon(tmp_path, DOORS[door], scenario)


def test_a_model_name_that_looks_like_a_secret_is_refused(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        with pytest.raises(InvalidInput) as refusal:
            await say(d, where, "hi", model=f"scripted/{SECRET}")
        assert SECRET not in refusal.value.message
        assert await kinds(d, where.session_id) == ["session.created"]

    in_daemon(tmp_path, [Turn(text=("ok",))], scenario)
