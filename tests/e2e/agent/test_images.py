"""Images from a tool to a model, from the inside: stored, shown, shown again after a restart and in
a branch, and counted.
"""

import io
from base64 import b64encode
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from palyra.core.ids import OWNER
from palyra.core.messages import Image, ModelRequest, ToolMessage
from palyra.core.ports import CallContext
from palyra.core.tools import Preview, Scope, Subject, ToolResult
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import artifacts
from palyra.tools.catalogue import Arguments, declare
from tests.inprocess import body, daemon, entries, finished, say, session
from tests.journals import run as run_loop


class Nothing(Arguments, frozen=True, kw_only=True):
    number: int = 0


def png(number: int) -> bytes:
    written = io.BytesIO()
    Pillow.new("RGB", (75 + number, 100), (number, 0, 0)).save(written, "PNG")
    return written.getvalue()


class Camera:
    """A tool that gives an image: the only thing about it that is not real is what is on it."""

    argument_type = Nothing
    spec = declare("test.camera", "Look.", Nothing, effect="pure")

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope()

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return ()

    def preview(self, arguments: object, workspace: str) -> Preview:
        return Preview("text", "look")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, Nothing)
        image = f"data:image/png;base64,{b64encode(png(arguments.number)).decode()}"
        return ToolResult(outcome="ok", text="seen", images=(image, "data:text/html;base64,aGk="))


def looking(times: int) -> list[Turn]:
    calls = [
        Turn(calls=(ScriptedCall(name="test.camera", arguments={"number": at}),))
        for at in range(times)
    ]
    return [*calls, Turn(text=("done",)), Turn(text=("again",)), Turn(text=("again",))]


def results(request: ModelRequest) -> list[ToolMessage]:
    return [message for message in request.messages if isinstance(message, ToolMessage)]


async def look(d: Daemon, **wanted: Any) -> str:
    d.catalogue.renew("test", [Camera()])
    where = await session(d, **wanted)
    assert (await finished(d, await say(d, where, "look"))).kind == "run.completed"
    return where.session_id


def test_an_image_is_stored_and_shown_to_the_model(tmp_path: Path) -> None:
    model = ScriptedModel(looking(1))

    async def inside() -> None:
        async with daemon(tmp_path, model) as d:
            session_id = await look(d)
            entry = next(
                each for each in await entries(d, session_id) if each.kind == "tool.finished"
            )
            (image,) = body(entry)["images"]
            assert image == {
                "artifact": image["artifact"],
                "media_type": "image/png",
                "size": len(png(0)),
                "width": 75,
                "height": 100,
            }
            stored = await d.db.read(
                lambda tx: artifacts.artifact(tx, session_id, image["artifact"])
            )
            assert stored is not None
            assert (stored.body, stored.media_type) == (png(0), "image/png")
            (result,) = results(model.requests[-1])
            assert result.images == (Image("image/png", png(0)),)
            assert (
                result.text == "seen\n[an image was left out: it is not a PNG, JPEG, WebP or GIF]"
            )
            assembled = [
                body(each)
                for each in await entries(d, session_id)
                if each.kind == "input.assembled"
            ]
            assert [part for part in assembled[-1]["parts"] if part["source"] == "images"] == [
                {"source": "images", "tokens": 11, "note": "1 shown"}
            ]
            assert all(part["source"] != "images" for part in assembled[0]["parts"])

    run_loop(inside(), 60)


def test_an_image_is_shown_again_after_a_restart_and_in_a_branch(tmp_path: Path) -> None:
    first, second = ScriptedModel(looking(1)), ScriptedModel(looking(1))

    async def inside() -> None:
        async with daemon(tmp_path, first) as d:
            session_id = await look(d)
        async with daemon(tmp_path, second) as d:
            where = await session(d, session_id=session_id)
            await finished(d, await say(d, where, "and now?"))
            assert results(second.requests[-1])[0].images == (Image("image/png", png(0)),)
            branch = await d.sessions.branch(OWNER, session_id, None, "")
            await finished(d, await say(d, branch, "and here?"))
            assert results(second.requests[-1])[0].images == (Image("image/png", png(0)),)

    run_loop(inside(), 60)


def test_only_the_newest_images_are_sent_again(tmp_path: Path) -> None:
    model = ScriptedModel(looking(8))

    async def inside() -> None:
        async with daemon(tmp_path, model) as d:
            await look(d)
            shown = [result.images for result in results(model.requests[-1])]
            assert shown == [(), (), ()] + [(Image("image/png", png(at)),) for at in range(3, 8)]
            assert (
                "[image, 75 × 100 pixels: not shown again; look again if you need it]"
                in results(model.requests[-1])[0].text
            )

    run_loop(inside(), 60)


def test_a_model_that_cannot_see_is_told_that_there_was_an_image(tmp_path: Path) -> None:
    model = ScriptedModel(looking(1))

    async def inside() -> None:
        async with daemon(
            tmp_path,
            model,
            "[providers.blind]\nkind = 'scripted'\nmodels = ['b']\nscript = 'none'\nvision = false",
        ) as d:
            d.catalogue.renew("test", [Camera()])
            where = await session(d)
            await finished(d, await say(d, where, "look", model="blind/b"))
            (result,) = results(model.requests[-1])
            assert result.images == ()
            assert (
                "[image, 75 × 100 pixels: not shown, because this model cannot see images]"
                in result.text
            )

    run_loop(inside(), 60)
