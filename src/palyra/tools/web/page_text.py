"""A web page as clean text: its title, headings, paragraphs, lists, links, tables and code, without
what only a browser needs.

What a visitor would not see (scripts, styles, hidden parts) is left out; it is also where
instructions to machines hide.

HTML as a stream of tags and texts. Reading takes time in proportion to the page, however broken
or hostile it is.

The rule that gives this: whatever is left open swallows the rest of the page, as it does in a
browser, and is never read twice.
"""

import re
from collections.abc import Iterator
from html import unescape
from threading import Event as Flag

from msgspec import Struct

from palyra.core.errors import PalyraError
from palyra.tools.net import urls
from palyra.tools.net.urls import Url

# After these the page goes on only at their own end tag; what stands between is not markup.
_RAW = frozenset(
    {
        "script",
        "style",
        "textarea",
        "title",
        "iframe",
        "noembed",
        "noframes",
        "xmp",
        "plaintext",
        "noscript",
    }
)
# Where markup may begin; any other `<` is text.
_OPENING = re.compile(r"<(?=[A-Za-z/!?])")
_NAME = re.compile(r"[A-Za-z][^\s/>]*")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"'][^\s>]*+)|(["'])|))?"""
)
_SPACE = re.compile(r"[\s/]*+")
_MOST_ATTRIBUTES = 64


class Start(Struct, frozen=True):
    name: str
    attributes: dict[str, str]


class End(Struct, frozen=True):
    name: str


class Words(Struct, frozen=True):
    """Text between tags. `raw` names the element whose text is no markup, such as title or
    script.
    """

    text: str
    raw: str = ""


Token = Start | End | Words


def tokens(page: str) -> Iterator[Token]:
    at, length = 0, len(page)
    while at < length:
        found = _OPENING.search(page, at)
        opening = found.start() if found else length
        if opening > at:
            yield Words(unescape(page[at:opening]))
        if found is None:
            return
        at = opening + 1
        match page[at]:
            case "!":
                at = _after_declaration(page, at)
            case "?":
                at = _after(page, ">", at)
            case "/":
                name = _NAME.match(page, at + 1)
                if name:
                    yield End(name.group().lower())
                at = _after(page, ">", at + 1)
            case _:
                start, at = _start(page, at)
                if start is None:
                    return
                yield start
                if start.name in _RAW:
                    end = _raw_end(page, start.name, at)
                    text = page[at:end]
                    yield Words(
                        unescape(text) if start.name in ("title", "textarea") else text,
                        raw=start.name,
                    )
                    at = end


def _after(page: str, what: str, at: int) -> int:
    found = page.find(what, at)
    return len(page) if found < 0 else found + len(what)


def _after_declaration(page: str, at: int) -> int:
    if page.startswith("!--", at):
        # `<!-->` and `<!--->` are complete comments.
        if page.startswith(">", at + 3):
            return at + 4
        return _after(page, "-->", at + 2)
    if page.startswith("![CDATA[", at):
        return _after(page, "]]>", at)
    return _after(page, ">", at)


def _start(page: str, at: int) -> tuple[Start | None, int]:
    """The start tag whose name begins here, if it is complete, and where the page goes on."""
    name = _NAME.match(page, at)
    assert name is not None
    attributes: dict[str, str] = {}
    at = name.end()
    while True:
        space = _SPACE.match(page, at)
        assert space is not None
        at = space.end()
        if at >= len(page):
            return None, at
        if page[at] == ">":
            return Start(name.group().lower(), attributes), at + 1
        found = _ATTRIBUTE.match(page, at)
        if found is None:
            at += 1  # a stray `=`
            continue
        if found[5]:
            return None, len(page)  # a quote that nothing closes
        at = found.end()
        if len(attributes) < _MOST_ATTRIBUTES:
            attributes.setdefault(
                found[1].lower(), unescape(found[2] or found[3] or found[4] or "")
            )


def _raw_end(page: str, name: str, at: int) -> int:
    if name == "plaintext":
        return len(page)
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(page, at)
    return found.start() if found else len(page)


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_DROPPED = _names(
    "script style noscript template svg math iframe object embed canvas audio video nav dialog"
    " select datalist button head"
)
_IN_HEAD = _names("title meta link style script base noscript template html head")
_BLOCKS = _names(
    "p div section article main header footer aside address figure figcaption blockquote details"
    " summary form fieldset legend table tr ul ol dl dt dd li h1 h2 h3 h4 h5 h6 pre hr body html"
    " center caption tbody thead tfoot"
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
# Elements that a page may leave open: the next of their kind ends them.
_SELF_ENDING = {
    "li": ("ul", "ol"),
    "p": ("div", "td", "li"),
    "tr": ("table",),
    "td": ("tr",),
    "th": ("tr",),
    "dd": ("dl",),
    "dt": ("dl",),
}
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?:[;\s]|$)",
    re.I,
)
# Spaces that take no room, direction overrides and the tag characters: invisible to people, plain
# to a model.
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_ENOUGH_OF_MAIN = 200
_DEEPEST = 512
_MOST_CELLS = 256


def prose(page: str, url: Url, stop: Flag | None = None) -> tuple[str, str]:
    """The title and the text of an HTML page that came from `url`; what there is of it once `stop`
    is raised.
    """
    reader = _Reader(url)
    for token in tokens(page):
        if stop is not None and stop.is_set():
            break
        match token:
            case Start():
                reader.start(token)
            case End():
                reader.end(token.name)
            case Words():
                reader.words(token)
    return reader.result()


def visible(text: str) -> str:
    """Text without characters that are not seen."""
    return _INVISIBLE.sub("", _CONTROL.sub("", text))


class _Reader:
    """Keeps the open elements, writes blocks. An element's text is dropped while any element around
    it is.
    """

    def __init__(self, url: Url) -> None:
        self._base = url
        self._open: list[str] = []
        self._dropped_at: int | None = None
        self._blocks: list[str] = []
        self._line: list[str] = []
        self._title = ""
        self._lists: list[int] = []
        self._prefix = ""
        self._pre = 0
        self._link: tuple[str, int] | None = None
        self._rows: list[list[str]] = []
        self._cells_at: int | None = None
        self._main: tuple[int, int] | None = None
        self._main_begin: int | None = None

    def start(self, tag: Start) -> None:
        name = tag.name
        if name not in _IN_HEAD and self._open and self._open[-1] == "head":
            self._leave("head")  # Nothing says that a head must be closed.
        if name in _VOID:
            if self._dropped_at is None:
                self._void(tag)
            elif name == "base":
                self._rebase(tag)
            return
        self._end_siblings(name)
        if len(self._open) >= _DEEPEST:
            return
        self._open.append(name)
        if self._dropped_at is None and (name in _DROPPED or _hidden(tag)):
            self._dropped_at = len(self._open)
        if self._dropped_at is None:
            self._enter(tag)

    def end(self, name: str) -> None:
        if name == "br":
            self._line.append("\n")
        elif name in self._open:
            self._leave(name)
        elif name == "p":
            self._flush()

    def words(self, words: Words) -> None:
        if words.raw == "title" and not self._title and "svg" not in self._open:
            self._title = _BLANKS.sub(" ", visible(words.text)).strip()
        elif self._dropped_at is None and not words.raw:
            text = visible(words.text)
            self._line.append(text if self._pre else _BLANKS.sub(" ", text))

    def result(self) -> tuple[str, str]:
        while self._open:
            self._leave(self._open[-1])
        self._flush()
        blocks = self._blocks
        if self._main:
            inside = blocks[self._main[0] : self._main[1]]
            if sum(map(len, inside)) >= _ENOUGH_OF_MAIN:
                blocks = inside
        return self._title, _joined(blocks)

    def _end_siblings(self, name: str) -> None:
        limits = _SELF_ENDING.get(name)
        kin = (
            ("td", "th")
            if name in ("td", "th")
            else ("dd", "dt")
            if name in ("dd", "dt")
            else (name,)
        )
        if limits is None:
            if name in _BLOCKS and self._open and self._open[-1] == "p":
                self._leave("p")
            return
        for opened in reversed(self._open):
            if opened in kin:
                self._leave(opened)
                return
            if opened in limits:
                return

    def _enter(self, tag: Start) -> None:
        name = tag.name
        if name in _BLOCKS:
            self._flush()
        if name == "main" and self._main is None:
            self._main_begin = len(self._blocks)
        elif name in ("ul", "ol"):
            self._lists.append(1 if name == "ol" else 0)
        elif name == "li":
            self._prefix = self._bullet()
        elif name[0] == "h" and name[1:].isdecimal():
            self._prefix = "#" * min(int(name[1:]), 6) + " "
        elif name == "pre":
            self._pre += 1
        elif name == "code" and not self._pre:
            self._line.append("`")
        elif name == "a" and self._link is None:
            self._link = (tag.attributes.get("href", ""), len(self._line))
        elif name == "table" and self._cells_at is None:
            self._cells_at, self._rows = len(self._open), []
        elif name == "tr" and self._cells_at is not None:
            self._rows.append([])

    def _leave(self, name: str) -> None:
        while self._open:
            last = self._open.pop()
            if self._dropped_at is not None:
                if len(self._open) < self._dropped_at:
                    self._dropped_at = None
            else:
                self._left(last)
            if last == name:
                return

    def _left(self, name: str) -> None:
        if name == "a":
            self._close_link()
        elif name == "code" and not self._pre:
            self._line.append("`")
        elif name in ("td", "th") and self._cells_at is not None:
            self._cell()
        elif name == "table" and self._cells_at == len(self._open) + 1:
            self._table()
        elif name == "pre":
            self._fence()
        elif name in ("ul", "ol"):
            self._flush()
            self._lists.pop()
            self._prefix = ""
        elif name == "main" and self._main_begin is not None:
            self._flush()
            self._main, self._main_begin = (self._main_begin, len(self._blocks)), None
        elif name in _BLOCKS:
            self._flush()

    def _void(self, tag: Start) -> None:
        if tag.name == "br":
            self._line.append("\n")
        elif tag.name == "hr":
            self._flush()
        elif tag.name == "img" and not _hidden(tag):
            words = _BLANKS.sub(" ", visible(tag.attributes.get("alt", ""))).strip()
            if words:
                self._line.append(f"[image: {words}]")
        elif tag.name == "base":
            self._rebase(tag)

    def _rebase(self, tag: Start) -> None:
        self._base = self._absolute(tag.attributes.get("href", "")) or self._base

    def _bullet(self) -> str:
        depth = max(len(self._lists) - 1, 0)
        if not self._lists or not self._lists[-1]:
            return "  " * depth + "- "
        self._lists[-1] += 1
        return "  " * depth + f"{self._lists[-1] - 1}. "

    def _close_link(self) -> None:
        link, self._link = self._link, None
        if link is None or not link[0] or link[0].startswith("#"):
            return
        text = "".join(self._line[link[1] :]).strip()
        target = self._absolute(link[0])
        # A block inside the link may have taken the text away already.
        if text and target is not None and link[1] <= len(self._line):
            self._line[link[1] :] = [f"[{text}]({target})"]

    def _absolute(self, href: str) -> Url | None:
        try:
            return urls.parse(href, self._base)
        except PalyraError:
            return None

    def _flush(self) -> None:
        if self._pre or (
            self._cells_at is not None
            and any(name in ("td", "th") for name in self._open[self._cells_at :])
        ):
            self._line.append("\n" if self._pre else " ")
            return
        text = "".join(self._line)
        self._line.clear()
        self._link = (self._link[0], 0) if self._link else None
        lines = [_BLANKS.sub(" ", line).strip() for line in text.split("\n")]
        text = "\n".join(line for line in lines if line)
        if text:
            self._blocks.append(self._prefix + text)
            self._prefix = (
                " " * len(self._prefix)
                if self._prefix.strip() and "#" not in self._prefix and self._lists
                else ""
            )
        elif not self._lists:
            self._prefix = ""

    def _fence(self) -> None:
        self._pre -= 1
        if self._pre:
            return
        text = "".join(self._line).strip("\n")
        self._line.clear()
        if text.strip():
            ticks = "```" if "```" not in text else "~~~~"
            self._blocks.append(f"{ticks}\n{text}\n{ticks}")

    def _cell(self) -> None:
        text = _BLANKS.sub(" ", "".join(self._line)).strip().replace("|", "\\|")
        self._line.clear()
        self._link = None
        if not self._rows:
            self._rows.append([])
        if len(self._rows[-1]) < _MOST_CELLS:
            self._rows[-1].append(text)

    def _table(self) -> None:
        self._cells_at = None
        rows = [row for row in self._rows if any(row)]
        self._rows = []
        # A table with one column lays a page out; it is not a table to read.
        if rows and max(map(len, rows)) == 1:
            self._blocks += [row[0] for row in rows]
        elif rows:
            self._blocks.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
        self._line.clear()


def _hidden(tag: Start) -> bool:
    attributes = tag.attributes
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or attributes.get("role") == "navigation"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))
    )


_ITEM = re.compile(r" *(?:-|\d+\.) ")


def _joined(blocks: list[str]) -> str:
    """Items of a list stand together, other blocks apart."""
    parts: list[str] = []
    for before, block in zip(["", *blocks], blocks, strict=False):
        parts.append(
            "\n" if _ITEM.match(before) and _ITEM.match(block) else "\n\n" if before else ""
        )
        parts.append(block)
    return "".join(parts)
