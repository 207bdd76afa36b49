"""Images on their way from a tool, or a person, to a model: checked, made small enough, stored,
loaded when they are shown.

The rule: an image is bytes in the store and a reference on the tape. How often it is sent again is
bounded; what is not sent is said in words. Redaction reads text, so what stands in an image is not
redacted.
"""

import asyncio
import binascii
import io
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from palyra.core import image_formats
from palyra.core.conversation import Conversation
from palyra.core.events import Attachment
from palyra.core.messages import Image
from palyra.core.run_progress import ModelTurn, Turn, UserTurn
from palyra.store import artifacts
from palyra.store.database import Database, Tx

MOST_PER_RESULT = 8
MOST_BYTES = 8 << 20
LONGEST_SIDE = 2048
# More than that is not unpacked: a small file can hold an enormous picture.
MOST_PIXELS = 64_000_000
# So many are sent with a request. Beyond that the oldest give way, three at once, so that what was
# sent before stays the same for a while and can be cached.
MOST_SHOWN = 6
_GIVE_WAY = 3
_PIXELS_PER_TOKEN = 750
_MOST_TOKENS = 1600
_LONGEST_URL = MOST_BYTES * 4 // 3 + 100


class Picture(Struct, frozen=True):
    """An image that may be stored and shown."""

    media_type: str
    data: bytes
    width: int
    height: int

    def stored(self, tx: Tx, session_id: str) -> Attachment:
        artifact = artifacts.keep_artifact(tx, session_id, self.data, self.media_type)
        return Attachment(
            artifact, self.media_type, size=len(self.data), width=self.width, height=self.height
        )


async def checked(urls: Sequence[str]) -> tuple[list[Picture], list[str]]:
    """The images behind a tool's data URLs, and a sentence about each that cannot be kept."""
    if not urls:
        return [], []
    found: list[Picture] = []
    notes: list[str] = []
    for url in urls[:MOST_PER_RESULT]:
        picture = await asyncio.to_thread(_from_url, url)
        if isinstance(picture, Picture):
            found.append(picture)
        else:
            notes.append(f"[an image was left out: {picture}]")
    if len(urls) > MOST_PER_RESULT:
        notes.append(
            f"[{len(urls) - MOST_PER_RESULT} more images were left out: a result may have"
            f" {MOST_PER_RESULT}]"
        )
    return found, notes


def _from_url(url: str) -> Picture | str:
    head, comma, body = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return "it is not a data URL"
    if len(url) > _LONGEST_URL:
        return f"it is larger than {MOST_BYTES >> 20} MiB"
    try:
        return check(b64decode(body, validate=True))
    except (binascii.Error, ValueError):
        return "its base64 is damaged"


def check(data: bytes) -> Picture | str:
    """An image by its content, no larger than a model takes; or why not."""
    if len(data) > MOST_BYTES:
        return f"it is larger than {MOST_BYTES >> 20} MiB"
    shape = image_formats.shape(data)
    if shape is None:
        return "it is not a PNG, JPEG, WebP or GIF"
    if shape.width * shape.height > MOST_PIXELS:
        return f"it has {shape.width} × {shape.height} pixels, which is too many"
    if max(shape.width, shape.height) <= LONGEST_SIDE:
        return Picture(shape.media_type, data, shape.width, shape.height)
    return _smaller(data)


def damage(data: bytes) -> str:
    """Return why an image cannot be shown although it begins like one, or nothing. A provider would
    refuse the whole request.
    """
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    try:
        with Pillow.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "GIF")) as image:
            image.load()
    except (
        OSError,
        ValueError,
        SyntaxError,
        EOFError,
        UnidentifiedImageError,
        Pillow.DecompressionBombError,
    ) as error:
        return f"it cannot be read ({type(error).__name__})"
    return ""


def _smaller(data: bytes) -> Picture | str:
    # Only here: reading pictures needs a library that most daemons never use.
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    try:
        with Pillow.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "GIF")) as image:
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            kind = "JPEG" if image.format == "JPEG" or image.mode in ("RGB", "L", "CMYK") else "PNG"
            written = io.BytesIO()
            image.convert("RGB" if kind == "JPEG" else "RGBA").save(written, kind)
            width, height = image.size
    except (
        OSError,
        ValueError,
        SyntaxError,
        EOFError,
        UnidentifiedImageError,
        Pillow.DecompressionBombError,
    ) as error:
        return f"it cannot be read ({type(error).__name__})"
    return Picture(f"image/{kind.lower()}", written.getvalue(), width, height)


def shown(turns: Sequence[Turn]) -> tuple[Attachment, ...]:
    """The images of a conversation that are sent with its next request, each once: the newest, in
    their order.

    Those that the user attached last are among them, however many results have come since.
    """
    everything = {each.artifact: each for each in _all(turns)}
    attached = _attached_last(turns)
    others = [each for each in everything.values() if each.artifact not in attached]
    too_many = len(others) - MOST_SHOWN
    dropped = (
        {each.artifact for each in others[: -(-too_many // _GIVE_WAY) * _GIVE_WAY]}
        if too_many > 0
        else set()
    )
    return tuple(each for each in everything.values() if each.artifact not in dropped)


def _attached_last(turns: Sequence[Turn]) -> frozenset[str]:
    for turn in reversed(turns):
        if isinstance(turn, UserTurn) and (
            found := frozenset(each.artifact for each in _attached(turn))
        ):
            return found
    return frozenset()


def _attached(turn: UserTurn) -> Iterator[Attachment]:
    for event in turn.inputs:
        yield from (each for each in event.attachments if each.width)


def _all(turns: Sequence[Turn]) -> Iterator[Attachment]:
    for turn in turns:
        if isinstance(turn, ModelTurn):
            for call in turn.calls:
                if call.finished is not None:
                    yield from call.finished.images
        elif isinstance(turn, UserTurn):
            yield from _attached(turn)


def tokens(attachment: Attachment) -> int:
    """Return the rough cost of an image: providers count pixels, each in its own way, up to a
    limit.
    """
    return min(_MOST_TOKENS, attachment.width * attachment.height // _PIXELS_PER_TOKEN + 1)


def described(attachment: Attachment) -> str:
    size = (
        f"{attachment.width} × {attachment.height} pixels"
        if attachment.width
        else attachment.media_type
    )
    return f"image {attachment.name}, {size}" if attachment.name else f"image, {size}"


def _with_waiting(conversation: Conversation) -> Sequence[Turn]:
    """The turns so far, and what was said and not answered yet, if there are images with it."""
    unread = (event for run in conversation.runs.values() if run.begun for _, event in run.inputs)
    waiting = tuple(event for event in unread if event.attachments)
    return (
        [*conversation.turns, UserTurn(conversation.seq, "", 0, waiting)]
        if waiting
        else conversation.turns
    )


class ImageLoader:
    """The images a request needs, from the store."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def of(self, conversation: Conversation) -> Mapping[str, Image]:
        """Return the images by artifact. One that is no longer stored is missing; a conversation
        without images costs nothing.
        """
        wanted = {each.artifact: each.media_type for each in shown(_with_waiting(conversation))}
        if not wanted:
            return {}

        def load(tx: Tx) -> dict[str, Image]:
            found = {each: artifacts.artifact(tx, conversation.session_id, each) for each in wanted}
            return {
                each: Image(wanted[each], artifact.body)
                for each, artifact in found.items()
                if artifact is not None
            }

        return await self._db.read(load)
