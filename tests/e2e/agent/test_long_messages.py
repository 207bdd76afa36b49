"""A message that the model's window has no room for is cut, and all of it goes along as a file."""

from pathlib import Path

from palyra.core.messages import Text, UserMessage
from palyra.models.scripted import ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import artifacts
from tests.faults import in_daemon
from tests.inprocess import body, entries, finished, say, session

LONG = "Count the lines.\n" + "".join(f"line {n} of the log\n" for n in range(9_000)) + "Thanks."


def test_a_message_larger_than_the_window_is_attached_and_its_ends_are_said(tmp_path: Path) -> None:
    model = ScriptedModel([Turn(text="Nine thousand.")])

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        ended = await finished(d, await say(d, where, LONG))
        assert ended.kind == "run.completed"
        received = next(e for e in await entries(d, where.session_id) if e.kind == "input.received")
        said = body(received)
        assert said["text"].startswith("Count the lines.\nline 0 ")
        assert said["text"].endswith("line 8999 of the log\nThanks.")
        assert (
            "characters are left out here: the message is larger than the model's window"
            in (said["text"])
        )
        assert len(said["text"]) < len(LONG) / 4
        (attached,) = said["attachments"]
        assert attached["name"] == "message.txt"
        kept = await d.db.read(
            lambda tx: artifacts.artifact(tx, where.session_id, attached["artifact"])
        )
        assert kept is not None
        assert kept.body.decode() == LONG
        (request,) = model.requests
        (message,) = (each for each in request.messages if isinstance(each, UserMessage))
        shown = "".join(part.text for part in message.parts if isinstance(part, Text))
        assert f"artifact {attached['artifact']}, to be read with artifact.read" in shown

    in_daemon(tmp_path, model, scenario, window=24_000)


def test_a_message_that_fits_is_said_as_it_is(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, LONG[:20_000]))
        received = next(e for e in await entries(d, where.session_id) if e.kind == "input.received")
        assert body(received)["text"] == LONG[:20_000]

    in_daemon(tmp_path, ScriptedModel([Turn(text="ok")]), scenario, window=128_000)
