"""Images: known by their content, made small enough, and sent again only so often."""

import asyncio
import io
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from palyra.agent import images as agent_images
from palyra.agent.images import Picture
from palyra.core import image_formats as content
from palyra.core.events import Attachment, Call, ModelReplied, ToolFinished
from palyra.core.ids import ArtifactId, CallId
from palyra.core.run_progress import CallProgress, ModelTurn, Turn

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def drawn(kind: str, width: int = 30, height: int = 20, mode: str = "RGB", **more: object) -> bytes:
    written = io.BytesIO()
    Pillow.new(mode, (width, height), 1).save(written, kind, **more)
    return written.getvalue()


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{b64encode(data).decode()}"


@pytest.mark.parametrize("kind", FORMATS)
def test_an_image_is_known_by_its_content(kind: str) -> None:
    assert content.shape(drawn(kind, 300, 7)) == content.Shape(FORMATS[kind], 300, 7)


def test_every_form_of_webp_is_known() -> None:
    shapes = [
        content.shape(drawn("WEBP", 301, 9, mode, lossless=lossless))
        for mode, lossless in (("RGB", True), ("RGBA", False))
    ]
    assert shapes == [content.Shape("image/webp", 301, 9)] * 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7" + bytes(40),
        b"\xff\xd8\xff" + bytes(40),
    ],
)
def test_what_is_no_image_is_not_one(data: bytes) -> None:
    assert content.shape(data) is None


@given(st.sampled_from(["PNG", "JPEG", "GIF", "WEBP"]), st.integers(0, 200), st.binary(max_size=40))
def test_damaged_images_are_read_without_an_error(kind: str, cut: int, more: bytes) -> None:
    content.shape(drawn(kind)[:cut] + more)


def test_a_small_image_is_kept_byte_for_byte() -> None:
    data = drawn("WEBP")
    assert agent_images.check(data) == Picture("image/webp", data, 30, 20)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "RGB"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("GIF", "P"), ("WEBP", "RGBA")],
)
def test_a_large_image_is_made_smaller_and_stays_an_image(kind: str, mode: str) -> None:
    picture = agent_images.check(drawn(kind, 4100, 2050, mode))
    assert isinstance(picture, Picture)
    assert (picture.width, picture.height) == (2048, 1024)
    assert content.shape(picture.data) == content.Shape(picture.media_type, 2048, 1024)


def test_what_cannot_be_kept_is_said() -> None:
    header = drawn("PNG", 4100, 10)[:60]
    enormous = drawn("PNG", 10, 10)[:16] + (60_000).to_bytes(4, "big") * 2 + bytes(40)
    assert [
        agent_images.check(data)
        for data in (b"no image at all, only some text", header, enormous, bytes(9 << 20))
    ] == [
        "it is not a PNG, JPEG, WebP or GIF",
        "it cannot be read (OSError)",
        "it has 60000 × 60000 pixels, which is too many",
        "it is larger than 8 MiB",
    ]


def test_a_result_keeps_its_good_images_and_tells_of_the_others() -> None:
    good = drawn("PNG")
    # What a tool calls an image does not matter; what it is does.
    kept, notes = asyncio.run(
        agent_images.checked(
            [url(good, "image/gif"), "https://site.example/a.png", "data:image/png;base64,%%%"]
        )
    )
    assert kept == [Picture("image/png", good, 30, 20)]
    assert notes == [
        "[an image was left out: it is not a data URL]",
        "[an image was left out: its base64 is damaged]",
    ]
    _, notes = asyncio.run(agent_images.checked([url(good)] * 10))
    assert notes == ["[2 more images were left out: a result may have 8]"]


def turns(*names: str) -> list[Turn]:
    found: list[Turn] = []
    for at, name in enumerate(names):
        call = Call(CallId(f"c{at}"), "t", {})
        images = (Attachment(ArtifactId(name), "image/png", width=750, height=100),)
        done = CallProgress(
            call, finished=ToolFinished(call_id=call.id, outcome="ok", images=images)
        )
        reply = ModelReplied(turn=1, provider="p", model="m", calls=(call,))
        found.append(ModelTurn(at, "run", 0, reply, [done]))
    return found


def test_only_the_newest_images_are_sent_and_the_oldest_give_way_several_at_once() -> None:
    shown = [
        "".join(str(each.artifact) for each in agent_images.shown(turns(*"abcdefghijk"[:count])))
        for count in range(5, 12)
    ]
    assert shown == ["abcde", "abcdef", "defg", "defgh", "defghi", "ghij", "ghijk"]


def test_the_same_image_counts_once() -> None:
    assert [
        each.artifact for each in agent_images.shown(turns("a", "b", "a", "a", "a", "a", "a", "a"))
    ] == ["a", "b"]


def test_an_image_costs_tokens_by_its_size_up_to_a_limit() -> None:
    sizes = [(1, 1), (750, 100), (2048, 2048)]
    assert [
        agent_images.tokens(Attachment(ArtifactId("a"), "image/png", width=w, height=h))
        for w, h in sizes
    ] == [1, 101, 1600]
