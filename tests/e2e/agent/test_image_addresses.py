"""Images that a calling program names by their address: fetched as the agent's own tool fetches, or
refused with a sentence.
"""

import asyncio
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.ids import OWNER
from palyra.core.messages import Image, UserMessage
from palyra.features.openai_api.sessions import CallerRequest
from palyra.models.scripted import Script, ScriptedModel, Turn
from tests import inprocess
from tests.e2e.agent.test_images import png
from tests.inprocess import TERMINAL, body, entries, until
from tests.net_world import Site, answer, html, local

SETTINGS = "[memory]\nembeddings = false\n"
PAGES = {"/cat": answer(png(3), content_type="application/octet-stream"), "/page": html("hi")}


def test_an_image_is_fetched_and_counts_as_untrusted(tmp_path: Path) -> None:
    async def scene() -> None:
        said = ScriptedModel(Script({"what is it?": (Turn(text="a cat"),)}))
        async with Site(PAGES) as site:
            base = f"http://pictures.test:{site.port}"
            async with inprocess.daemon(
                tmp_path, said, SETTINGS, resolver=local("pictures.test", port=site.port)
            ) as daemon:
                begun = await daemon.callers.begin(
                    OWNER, CallerRequest(text="what is it?", files=(("image-1", f"{base}/cat"),))
                )
                assert body(await until(daemon, begun.session_id, *TERMINAL))["text"] == "a cat"
                (received,) = [
                    body(each)
                    for each in await entries(daemon, begun.session_id)
                    if each.kind == "input.received"
                ]
                (attached,) = received["attachments"]
                assert (attached["media_type"], attached["width"]) == ("image/png", 78)
                assert attached["label"]["integrity"] == "untrusted"
                assert f"{base}/cat" in attached["label"]["sources"]
                shown = [
                    part
                    for each in said.requests[0].messages
                    if isinstance(each, UserMessage)
                    for part in each.parts
                ]
                assert [part.data for part in shown if isinstance(part, Image)] == [png(3)]
                for url, why in (
                    (f"{base}/page", "no image"),
                    (f"{base}/none", "404"),
                    (f"http://127.0.0.1:{site.port}/cat", "127.0.0.1"),
                ):
                    with pytest.raises(InvalidInput, match=why):
                        await daemon.callers.begin(
                            OWNER, CallerRequest(text="what is it?", files=(("image-1", url),))
                        )
                assert [each.target for each in site.asked] == ["/cat", "/page", "/none"]

    asyncio.run(scene())


def test_nothing_is_fetched_where_policy_denies_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Site(PAGES) as site:
            settings = f'{SETTINGS}[policy]\npreset = "locked"\n'
            async with inprocess.daemon(
                tmp_path, [], settings, resolver=local("pictures.test", port=site.port)
            ) as daemon:
                url = f"http://pictures.test:{site.port}/cat"
                with pytest.raises(InvalidInput, match="policy denies"):
                    await daemon.callers.begin(
                        OWNER, CallerRequest(text="what is it?", files=(("image-1", url),))
                    )
            assert site.asked == []

    asyncio.run(scene())
