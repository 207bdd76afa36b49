"""The text of Word, Excel and PowerPoint files: a few of the XML files in their archive, read as a
stream.

The rule: nothing is unpacked beyond the limits of archives, no entity is expanded, and what comes
out is bounded.

What a file says, by its content: pictures are recognised, documents become text, everything else
is only described.

Web pages, PDF and plain text are read by what `http.fetch` reads them with.
"""

import re
from collections.abc import Callable, Mapping
from posixpath import dirname, join, normpath
from typing import Literal
from xml.parsers import expat

from msgspec import Struct

from palyra.core import image_formats
from palyra.core.errors import InvalidInput, LimitExceeded, Unavailable
from palyra.system import thread_pool
from palyra.tools import archives
from palyra.tools.net.http_request import FetchedResponse
from palyra.tools.net.urls import Url

Form = Literal["docx", "xlsx", "pptx"]

MEDIA: Mapping[Form, str] = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
MOST_TEXT = 1 << 20
_MAIN: Mapping[str, Form] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "ppt/presentation.xml": "pptx",
}
_WANTED = re.compile(
    r"word/(?:document|footnotes|endnotes)\.xml|xl/(?:workbook|sharedStrings)\.xml|xl/_rels/workbook\.xml\.rels|"
    r"xl/worksheets/[\w.-]+\.xml|ppt/presentation\.xml|ppt/slides/slide\d+\.xml"
)
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
_COLUMN = re.compile(r"([A-Z]{1,3})\d+")
# Empty cells between two that are not; more than that are not worth their tabs.
_WIDEST_GAP = 20


def text_of(data: bytes) -> tuple[Form, str] | None:
    """Return which of the three it is, and its text; None if it is another archive. Raises
    InvalidInput for what cannot be read.
    """
    try:
        files = archives.chosen(data, lambda name: _WANTED.fullmatch(name) is not None)
    except LimitExceeded as error:
        raise InvalidInput(error.message, **error.details) from error
    form = next((form for main, form in _MAIN.items() if main in files), None)
    match form:
        case None:
            return None
        case "docx":
            parts = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
            text = "\n".join(_Prose("w:").read(files[part]) for part in parts if part in files)
        case "pptx":
            text = "\n\n".join(
                f"[slide {number}]\n{_Prose('a:').read(files[name])}"
                for number, name in _slides(files)
            )
        case "xlsx":
            text = _workbook(files)
    return form, text[:MOST_TEXT]


def _slides(files: Mapping[str, bytes]) -> list[tuple[int, str]]:
    found = ((_SLIDE.fullmatch(name), name) for name in files)
    return sorted((int(match[1]), name) for match, name in found if match)


class _Xml:
    """Handles one file. Names come with the prefixes that every writer of these formats uses."""

    def read_xml(self, data: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.words
        # None of these formats has a document type; whoever sends one wants its entities expanded.
        parser.StartDoctypeDeclHandler = _no_doctype
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise InvalidInput(f"its XML is damaged ({error})") from None

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def words(self, text: str) -> None: ...


def _no_doctype(*_: object) -> None:
    raise InvalidInput("its XML declares a document type, which these files never have")


class _Prose(_Xml):
    """Paragraphs, with tabs between the cells of a table."""

    def __init__(self, prefix: str) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._in_text = 0
        self._text, self._paragraph, self._cell = f"{prefix}t", f"{prefix}p", f"{prefix}tc"
        self._row, self._tab, self._break = f"{prefix}tr", f"{prefix}tab", f"{prefix}br"
        self._in_cell = 0

    def read(self, data: bytes) -> str:
        self.read_xml(data)
        return re.sub(r"\n{3,}", "\n\n", "".join(self._pieces)).strip()

    def _add(self, piece: str) -> None:
        if self._size < MOST_TEXT:
            self._pieces.append(piece)
            self._size += len(piece)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == self._text:
            self._in_text += 1
        elif name == self._cell:
            self._in_cell += 1
        elif name == self._tab:
            self._add("\t")
        elif name == self._break:
            self._add("\n")

    def end(self, name: str) -> None:
        if name == self._text:
            self._in_text -= 1
        elif name == self._paragraph:
            self._add(" " if self._in_cell else "\n")
        elif name == self._cell:
            self._in_cell -= 1
            self._add("\t")
        elif name == self._row:
            self._add("\n")

    def words(self, text: str) -> None:
        if self._in_text:
            self._add(text)


class _Each(_Xml):
    """Calls `found` with the attributes of each element of a name."""

    def __init__(self, name: str, found: Callable[[dict[str, str]], None]) -> None:
        self._name = name
        self._found = found

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == self._name:
            self._found(attributes)


class _Strings(_Xml):
    """The texts that cells of a workbook share."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._pieces: list[str] = []
        self._in_text = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._in_text = name == "t"

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "si":
            self.strings.append("".join(self._pieces))
            self._pieces.clear()

    def words(self, text: str) -> None:
        if self._in_text:
            self._pieces.append(text)


class _Sheet(_Xml):
    """Rows of cells, with tabs between them."""

    def __init__(self, strings: list[str]) -> None:
        self.rows: list[str] = []
        self.size = 0
        self._strings = strings
        self._cells: list[str] = []
        self._column = 0
        self._kind = ""
        self._value: list[str] = []
        self._in_value = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            self._cells, self._column = [], 0
        elif name == "c":
            self._kind, self._value = attributes.get("t", ""), []
            self._place(attributes.get("r", ""))
        self._in_value = name in ("v", "t")

    def _place(self, reference: str) -> None:
        found = _COLUMN.fullmatch(reference)
        column = self._column + 1
        if found:
            column = 0
            for letter in found[1]:
                column = column * 26 + ord(letter) - 64
        self._cells += [""] * min(max(0, column - self._column - 1), _WIDEST_GAP)
        self._column = column

    def end(self, name: str) -> None:
        self._in_value = False
        if name == "c":
            self._cells.append(self._shown("".join(self._value)))
        elif name == "row" and any(self._cells) and self.size < MOST_TEXT:
            self.rows.append("\t".join(self._cells).rstrip("\t"))
            self.size += len(self.rows[-1]) + 1

    def words(self, text: str) -> None:
        if self._in_value:
            self._value.append(text)

    def _shown(self, value: str) -> str:
        if self._kind == "s":
            place = int(value) if value.strip().isdecimal() else -1
            value = self._strings[place] if 0 <= place < len(self._strings) else ""
        elif self._kind == "b":
            value = {"1": "TRUE", "0": "FALSE"}.get(value, value)
        return " ".join(value.split())


def _workbook(files: Mapping[str, bytes]) -> str:
    strings = _Strings()
    if "xl/sharedStrings.xml" in files:
        strings.read_xml(files["xl/sharedStrings.xml"])
    targets: dict[str, str] = {}
    _Each(
        "Relationship", lambda found: targets.update({found.get("Id", ""): found.get("Target", "")})
    ).read_xml(files.get("xl/_rels/workbook.xml.rels", b"<none/>"))
    named: list[tuple[str, str]] = []
    _Each(
        "sheet",
        lambda found: named.append((found.get("name", ""), targets.get(found.get("r:id", ""), ""))),
    ).read_xml(files["xl/workbook.xml"])
    parts, size = list[str](), 0
    for name, target in named:
        path = (
            target.lstrip("/")
            if target.startswith("/")
            else normpath(join(dirname("xl/workbook.xml"), target))
        )
        if path not in files or size > MOST_TEXT:
            continue
        sheet = _Sheet(strings.strings)
        sheet.read_xml(files[path])
        parts.append(f"[sheet {name}]\n" + "\n".join(sheet.rows))
        size += sheet.size
    return "\n\n".join(parts)


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
        found = await thread_pool.everyday.run(text_of, data)
        if found is None:
            return Document("application/zip", note="an archive; it is not unpacked")
        form, text = found
        return Document(MEDIA[form], text, "" if text else "there is no text in it")
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
