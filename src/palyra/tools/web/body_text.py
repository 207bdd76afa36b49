"""Body from the network as text for a model: decoded, HTML and PDF made readable, images as such,
anything else described.
"""

import codecs
import re
from base64 import b64encode
from hashlib import sha256

from msgspec import Struct

from palyra.core.image_formats import shape
from palyra.tools import blocking
from palyra.tools.net.http_request import FetchedResponse
from palyra.tools.net.urls import Url
from palyra.tools.web import pdf
from palyra.tools.web.page_text import prose, visible

_TEXTUAL = re.compile(
    r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|javascript|ecmascript|yaml|toml|x-ndjson|x-yaml|x-sh|sql|graphql)\b|image/svg"
)
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_LOOKS_HTML = re.compile(
    r"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
# Bytes that no encoding of text with one byte for a letter uses.
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# Types that servers give to what they do not know.
_ANYTHING = ("", "application/octet-stream", "binary/octet-stream")
_HTML = ("text/html", "application/xhtml+xml")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Encodings by name that are no encodings of text, or that turn bytes into arbitrary objects' worth
# of trouble.
_NO_CHARSETS = frozenset(
    {
        "idna",
        "punycode",
        "unicode_escape",
        "raw_unicode_escape",
        "undefined",
        "utf_7",
        "utf-7",
        "mbcs",
        "oem",
    }
)


class BodyText(Struct, frozen=True):
    """`text` is empty if there is nothing to read; `notes` say what a reader should know about
    it.
    """

    text: str
    media_type: str
    title: str = ""
    notes: tuple[str, ...] = ()
    # As data URLs, for a model that can see.
    images: tuple[str, ...] = ()


async def read(response: FetchedResponse, url: Url, *, raw: bool = False) -> BodyText:
    """The body of a response, as text; with `raw` as it came, if it is text at all."""
    declared = response.headers.get("content-type", "")
    media_type = declared.partition(";")[0].strip().lower() or _sniffed(response.body)
    if not response.body:
        return BodyText("", media_type)
    if media_type == "application/pdf" or response.body.startswith(b"%PDF-"):
        return await _pdf(response)
    if media_type in _ANYTHING or media_type.startswith("image/"):
        seen = None if response.cut else shape(response.body)
        if seen is not None:
            return _pictured(response, seen.media_type)
    if not _textual(media_type, response.body):
        return _described(response, media_type)
    text, charset = decode(response.body, declared)
    notes = () if charset == "utf-8" else (f"read as {charset}",)
    if raw or not (
        media_type in _HTML or (media_type in ("", "text/plain") and _LOOKS_HTML.match(text))
    ):
        return BodyText(visible(text), media_type, notes=notes)
    title, clean = await blocking.off_loop(lambda stop: prose(text, url, stop))
    return BodyText(clean, media_type, title, (*notes, "HTML made readable"))


async def _pdf(response: FetchedResponse) -> BodyText:
    if response.cut:
        return _described(
            response, "application/pdf", "it is too large to be read, so it is not shown"
        )
    text = await pdf.text_of(response.body)
    return BodyText(visible(text), "application/pdf", notes=("text of a PDF",))


def _described(
    response: FetchedResponse, media_type: str, why: str = "it is not text, so it is not shown"
) -> BodyText:
    size = f"more than {len(response.body):,}" if response.cut else f"{len(response.body):,}"
    digest = "" if response.cut else f", sha256 {sha256(response.body).hexdigest()}"
    return BodyText(f"[{media_type or 'unknown type'}, {size} bytes{digest}; {why}]", media_type)


def _pictured(response: FetchedResponse, media_type: str) -> BodyText:
    described = _described(response, media_type, "an image")
    return BodyText(
        described.text,
        media_type,
        images=(f"data:{media_type};base64,{b64encode(response.body).decode()}",),
    )


def _sniffed(body: bytes) -> str:
    return "application/pdf" if body.startswith(b"%PDF-") else ""


def textual(body: bytes) -> bool:
    """Return whether bytes of which nothing is known look like text, in whatever encoding."""
    return _textual("application/octet-stream", body) or _NOT_TEXT.search(body, 0, 4096) is None


def _textual(media_type: str, body: bytes) -> bool:
    """By its declared type; without one, or with the one that servers give to everything, by its
    first bytes.
    """
    if media_type in ("", "text/plain", "application/octet-stream"):
        head = body[:4096]
        if any(head.startswith(mark) for mark, _ in _BOMS):
            return True
        return b"\0" not in head and (media_type != "application/octet-stream" or _is_utf8(head))
    return bool(_TEXTUAL.match(media_type)) or media_type in _HTML


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def decode(body: bytes, declared: str) -> tuple[str, str]:
    """Text and the encoding it was read in: by its mark, the header, the page itself, else UTF-8 if
    it is, else Windows-1252.
    """
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace"), charset
    found = _CHARSET.search(declared)
    inside = _META.search(body, 0, 2048)
    for name in (found[1] if found else "", inside[1].decode("ascii", "replace") if inside else ""):
        charset = _known(name)
        if charset:
            return body.decode(charset, "replace"), charset
    try:
        # The limit may have cut the last character in two.
        return codecs.getincrementaldecoder("utf-8")().decode(body), "utf-8"
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace"), "windows-1252"


def _known(name: str) -> str:
    """Python's name for a text encoding; as on the web, latin-1 and ASCII mean Windows-1252."""
    try:
        info = codecs.lookup(name) if name else None
    except (LookupError, ValueError):
        return ""
    if (
        info is None
        or not getattr(info, "_is_text_encoding", True)
        or info.name in _NO_CHARSETS
        or name.lower() in _NO_CHARSETS
    ):
        return ""
    return "cp1252" if info.name in ("iso8859-1", "ascii") else info.name
