"""Files in messages of OpenAI's programs: images and documents as data, images by their address."""

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence

from palyra.core.errors import InvalidInput
from palyra.features.openai_api.wire_types import ContentPart, ImageUrl

_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
}
_ADDRESS = re.compile(r"https?://[^\s]{1,2000}\Z", re.IGNORECASE)
TEXTS = frozenset({"text", "input_text", "output_text"})
_WORDS = TEXTS | {"refusal"}


def text_of(content: str | list[ContentPart] | None) -> str:
    """The words of a message."""
    if not isinstance(content, list):
        return content or ""
    said = (part.text or part.refusal if part.type in _WORDS else "" for part in content)
    return "\n".join(filter(None, said))


def files_of(content: str | list[ContentPart] | None) -> tuple[ContentPart, ...]:
    """Everything in a message that is no text."""
    if not isinstance(content, list):
        return ()
    return tuple(part for part in content if part.type not in _WORDS)


def size(part: ContentPart) -> int:
    """Return how long a part is, as it was sent."""
    url = part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url or ""
    return len(url) + len(part.file_data) + (len(part.file.file_data) if part.file else 0)


def of_past(
    turns: Sequence[Sequence[ContentPart]], room: int
) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the newest files of earlier turns, as many as there is room for, and of each turn what
    it says about its files. An address is not asked again.
    """
    found: list[tuple[str, bytes]] = []
    notes: list[str] = []
    for parts in reversed(turns):
        said = []
        for part in parts:
            try:
                name, data = file(part, len(found) + 1)
            except InvalidInput:
                said.append("[a file that cannot be read]")
                continue
            if isinstance(data, str):
                said.append(f"[an image at {data}, not shown]")
            elif len(found) >= room:
                said.append(f"[the file {name}, not shown: there are too many]")
            else:
                name = f"earlier-{name}"
                found.append((name, data))
                said.append(f"[the file {name}, attached to the last message]")
        notes.append("\n".join(said))
    return found, notes[::-1]


def file(part: ContentPart, number: int) -> tuple[str, bytes | str]:
    match part.type:
        case "image_url" | "input_image":
            url = (
                part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url or ""
            )
            if _ADDRESS.match(url):
                return f"image-{number}", url
            return _data(url, f"image-{number}", "")
        case "file" if part.file is not None:
            return _data(part.file.file_data, f"file-{number}", part.file.filename)
        case "input_file":
            return _data(part.file_data, f"file-{number}", part.filename)
    raise InvalidInput(
        f"a part of type {part.type[:40]!r} cannot be taken: send text, images and files"
    )


def _data(url: str, stem: str, name: str) -> tuple[str, bytes]:
    """A file from a data: URL."""
    head, comma, encoded = url.partition(",")
    media, _, coding = head.removeprefix("data:").partition(";")
    if not head.startswith("data:") or not comma or coding.rpartition(";")[2] != "base64":
        raise InvalidInput(
            "files are sent along: give them as data:TYPE;base64,…, and images as that or by an"
            " http(s) address"
        )
    try:
        data = b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"{name or stem} is not valid base64: {error}") from None
    return name or f"{stem}.{_EXTENSIONS.get(media.lower(), 'bin')}", data
