"""Markdown as Telegram shows it: a text without the signs, and marks that say which stretch of it
is code or bold.

The text is sent with the marks beside it, never as markup: nothing in an answer can break out of
its place, and what is not understood stays as it was written.
"""

import re
from typing import Literal

from msgspec import Struct

# Telegram ignores marks beyond this many; what they would stand for keeps its signs then.
MOST_MARKS = 100
_FENCED = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^`\s]*)[^`\n]*\n(?P<code>.*?)\n(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_INLINE = re.compile(
    r"(?<!`)`(?P<code>[^`\n]+)`(?!`)|(?<!\*)\*\*(?P<bold>[^\s*](?:[^*\n]*[^\s*])?)\*\*(?!\*)"
)


class TextMark(Struct, frozen=True):
    """Where it is, in UTF-16 units, as Telegram counts."""

    kind: Literal["pre", "code", "bold"]
    offset: int
    length: int
    language: str = ""


def units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def marked(text: str) -> tuple[str, list[TextMark]]:
    """The text as it is shown, and its marks in order."""
    writer = _Writer()
    at = 0
    for found in _FENCED.finditer(text):
        writer.prose(text[at : found.start()])
        # Telegram cuts blanks off both ends of a message, also those of code.
        edge = (not writer.size and found["code"][:1].isspace()) or (
            found.end() == len(text) and found["code"][-1:].isspace()
        )
        if (
            not found["code"].strip()
            or edge
            or not writer.put("pre", found["code"], found["language"])
        ):
            writer.write(found[0])
        at = found.end()
    writer.prose(text[at:])
    return "".join(writer.parts), writer.marks


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.marks: list[TextMark] = []
        self.size = 0

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.size += units(text)

    def put(self, kind: Literal["pre", "code", "bold"], text: str, language: str = "") -> bool:
        if len(self.marks) >= MOST_MARKS or not text.strip():
            return False
        self.marks.append(TextMark(kind, self.size, units(text), language))
        self.write(text)
        return True

    def prose(self, text: str) -> None:
        at = 0
        for found in _INLINE.finditer(text):
            self.write(text[at : found.start()])
            kind: Literal["code", "bold"] = "code" if found["code"] is not None else "bold"
            if not self.put(kind, found[kind]):
                self.write(found[0])
            at = found.end()
        self.write(text[at:])
