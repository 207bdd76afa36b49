"""Arguments and file names that no honest model would think of are results for the model, not the
end of the run.
"""

import os
from pathlib import Path

import pytest

from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.crash.scenarios import call
from tests.faults import in_daemon
from tests.inprocess import body, entries, finished, say, session

ODD = {
    "a number of forty digits": '{"path": "a", "n": 1234567890123456789012345678901234567890}',
    "lists in lists": '{"path": ' + "[" * 3_000 + "]" * 3_000 + "}",
    "a NUL": '{"path": "a\\u0000b"}',
    "a name too long": '{"path": "' + "a" * 5_000 + '"}',
    "half a character": '{"path": "\\ud800"}',
    "infinity": '{"path": 1e999}',
    "a path too long": '{"path": "' + "a/" * 3_000 + '"}',
    "a link to itself": '{"path": "loop/x"}',
    "another's home": '{"path": "~root/x"}',
    "an offset too large": '{"path": "a", "offset": 99999999999999999999}',
}


@pytest.mark.parametrize("arguments", ODD)
def test_odd_arguments_are_a_result_for_the_model(arguments: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    os.symlink("loop", tmp_path / "work/loop")

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        end = await finished(d, await say(d, where, "hi"))
        assert end.kind == "run.completed", body(end)
        (result,) = [
            body(entry)
            for entry in await entries(d, where.session_id)
            if entry.kind == "tool.finished"
        ]
        assert result["outcome"] in ("error", "denied")

    in_daemon(
        tmp_path,
        [Turn(calls=(ScriptedCall(name="fs.read", arguments=ODD[arguments]),)), Turn(text=("ok",))],
        scenario,
    )


def test_file_names_that_are_not_text_are_listed_and_searched(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / os.fsdecode(b"bad\xff.txt")).write_text("x")

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        end = await finished(d, await say(d, where, "hi"))
        assert end.kind == "run.completed", body(end)
        results = [
            body(entry)
            for entry in await entries(d, where.session_id)
            if entry.kind == "tool.finished"
        ]
        assert [result["outcome"] for result in results] == ["ok", "ok"]

    in_daemon(
        tmp_path,
        [
            Turn(calls=(call("fs.list", path="."), call("fs.search", pattern="x"))),
            Turn(text=("ok",)),
        ],
        scenario,
    )
