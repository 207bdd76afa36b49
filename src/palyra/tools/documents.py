"""What a file says, by its content: pictures are recognised, documents become text, everything else
is only described.

Web pages, PDF and plain text are read by what `http.fetch` reads them with.
"""

from msgspec import Struct

from palyra.core import image_formats
from palyra.core.errors import InvalidInput, Unavailable
from palyra.system import thread_pool
from palyra.tools import office
from palyra.tools.net.http_request import FetchedResponse
from palyra.tools.net.urls import Url

_ZIP = b"PK\x03\x04"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_NOWHERE = Url("https", "attached.invalid", 443, "/")
_UNKNOWN = "application/octet-stream"
_HTML_NAMES = (".html", ".htm", ".xhtml")


class Document(Struct, frozen=True):
    """`text` is None if there is none to be had, and `note` then says why. `plain`: the bytes
    themselves are that text.
    """

    media_type: str
    text: str | None = None
    note: str = ""
    plain: bool = False


async def read(data: bytes, name: str = "") -> Document:
    """A file by its content; its name only tells a web page from other text. Raises InvalidInput
    for a document that is hostile.
    """
    shape = image_formats.shape(data)
    if shape is not None:
        return Document(shape.media_type)
    if data.startswith(_ZIP):
        found = await thread_pool.everyday.run(office.text_of, data)
        if found is None:
            return Document("application/zip", note="an archive; it is not unpacked")
        form, text = found
        return Document(office.MEDIA[form], text, "" if text else "there is no text in it")
    if data.startswith(_OLD_OFFICE):
        return Document(
            _UNKNOWN,
            note="an office file in the old format; save it in the new one to have its text read",
        )
    return await _as_fetched(data, name)


async def _as_fetched(data: bytes, name: str) -> Document:
    # Reading pages needs tables that a daemon which never does should not carry.
    from palyra.tools.web import body_text

    declared = "text/html" if name.lower().endswith(_HTML_NAMES) else ""
    pdf = data.startswith(b"%PDF-")
    if not pdf and not body_text.textual(data):
        return Document(_UNKNOWN, note="it is not text")
    try:
        reading = await body_text.read(
            FetchedResponse(status=200, headers={"content-type": declared}, body=data), _NOWHERE
        )
    except Unavailable as error:
        return Document("application/pdf", note=error.message)
    except InvalidInput as error:
        return Document(
            "application/pdf" if pdf else _UNKNOWN, note=f"its text cannot be read: {error.message}"
        )
    html = "HTML made readable" in reading.notes
    media_type = "application/pdf" if pdf else "text/html" if html else "text/plain"
    note = "" if reading.text.strip() or not data else "there is no text in it"
    return Document(media_type, reading.text, note, plain=not pdf)
