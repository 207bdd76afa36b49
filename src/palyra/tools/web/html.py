"""HTML as a stream of tags and texts. Reading takes time in proportion to the page, however broken
or hostile it is.

The rule that gives this: whatever is left open swallows the rest of the page, as it does in a
browser, and is never read twice.
"""

import re
from collections.abc import Iterator
from html import unescape

from msgspec import Struct

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
