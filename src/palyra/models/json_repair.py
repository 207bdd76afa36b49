"""Reads JSON that a model wrote nearly right, in one pass over the text.

Repaired is only what can mean one thing: quotes of the wrong kind, a comma too many, brackets that
are missing at the end, Python's words, comments, line breaks in strings. Everything else is
refused: a call that is sent again costs a turn, a call with another meaning can cost a file.
"""

import re
from typing import Any, Final

from msgspec import Struct

LARGEST: Final = 1 << 20
_DEEPEST: Final = 64
# Reading a value costs some microseconds; what holds more of them is refused.
_MOST_VALUES: Final = 4_000
_MOST_EXTRA: Final = 3

SINGLE_QUOTES: Final = "single quotes"
TRAILING_COMMA: Final = "trailing comma"
MISSING_BRACKET: Final = "missing bracket"
EXTRA_BRACKET: Final = "extra bracket"
UNQUOTED_KEY: Final = "unquoted key"
PYTHON_WORD: Final = "Python literal"
COMMENT: Final = "comment"
LINE_BREAK: Final = "line break in a string"
ESCAPED_QUOTE: Final = "escaped single quote"
CODE_FENCE: Final = "code fence"

_SPACE: Final = re.compile(r"[ \t\r\n\f\v]*+")
_DOUBLE: Final = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_SINGLE: Final = re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+")
_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]*+")
_COMMENT: Final = re.compile(r"//[^\n]*+|#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_FENCE: Final = re.compile(r"\A\s*```[a-zA-Z_]*[ \t]*\n(.*)\n```\s*\Z", re.DOTALL)
_PLAIN: Final = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "'": "'",
}
_LITERALS: Final = {
    "true": (True, ""),
    "false": (False, ""),
    "null": (None, ""),
    "True": (True, PYTHON_WORD),
    "False": (False, PYTHON_WORD),
    "None": (None, PYTHON_WORD),
}
_CLOSES: Final = {"{": "}", "[": "]"}


class NotRepairable(Exception):
    """The text is not JSON, and what it means cannot be known for sure."""


class RepairedJson(Struct, frozen=True):
    """A value, where it ended in the text, and what had to be repaired; nothing: it was JSON."""

    value: Any
    end: int
    notes: tuple[str, ...] = ()


def repair(text: str) -> RepairedJson:
    """Return the one value that a text holds. Raise NotRepairable if that is not certain."""
    if len(text) > LARGEST:
        raise NotRepairable(f"more than {LARGEST} characters")
    fenced = _FENCE.match(text)
    read = _Reader(fenced.group(1) if fenced else text, ())
    if fenced:
        read.noted[CODE_FENCE] = None
    found = read.value_at(0)
    if found.end != len(read.text):
        raise NotRepairable(f"text after the end, at character {found.end}")
    return found


def repair_at(text: str, at: int, ends: tuple[str, ...]) -> RepairedJson:
    """Return the value that begins at a place. Where one of `ends` stands outside a string, the
    text counts as ended.
    """
    if len(text) - at > LARGEST:
        raise NotRepairable(f"more than {LARGEST} characters")
    return _Reader(text, ends).value_at(at)


class _Reader:
    def __init__(self, text: str, ends: tuple[str, ...]) -> None:
        self.text = text
        self.noted: dict[str, None] = {}
        self._ends = ends
        self._at = 0
        # The brackets that are open.
        self._open: list[str] = []
        # Whether the text ended inside brackets: then everything is closed at once.
        self._over = False
        self._values = 0

    def value_at(self, at: int) -> RepairedJson:
        self._at = at
        self._skip()
        if self.text[self._at : self._at + 1] not in ("{", "["):
            raise NotRepairable("it does not begin with a brace")
        value = self._value()
        self._extra()
        return RepairedJson(value, self._at, tuple(self.noted))

    def _extra(self) -> None:
        """Brackets too many, if nothing but the end follows them."""
        before = self._at
        self._skip()
        extra = 0
        while self.text[self._at : self._at + 1] in ("}", "]") and extra < _MOST_EXTRA:
            extra += 1
            self._at += 1
            self._skip()
        if extra and self._ended():
            self.noted[EXTRA_BRACKET] = None
        elif not self._ended() or extra:
            self._at = before

    def _ended(self) -> bool:
        return self._at >= len(self.text) or any(
            self.text.startswith(end, self._at) for end in self._ends
        )

    def _skip(self) -> None:
        text = self.text
        while True:
            found = _SPACE.match(text, self._at)
            assert found is not None
            self._at = found.end()
            if text[self._at : self._at + 1] not in ("/", "#"):
                return
            comment = _COMMENT.match(text, self._at)
            if comment is None:
                raise self._wrong("an unexpected character")
            self.noted[COMMENT] = None
            self._at = comment.end()

    def _value(self) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise self._wrong(f"more than {_MOST_VALUES} values")
        self._skip()
        match self.text[self._at : self._at + 1]:
            case "{":
                return self._container({}, self._member)
            case "[":
                return self._container([], self._item)
            case '"' | "'":
                return self._string()
            case "":
                raise self._wrong("the text ends before a value")
            case _:
                return self._scalar()

    def _container(self, made: Any, take: Any) -> Any:
        bracket = self.text[self._at]
        if len(self._open) >= _DEEPEST:
            raise self._wrong(f"more than {_DEEPEST} levels")
        self._open.append(bracket)
        self._at += 1
        comma = False
        while not self._closed(bracket, comma=comma):
            if made and not comma:
                raise self._wrong("a comma is missing")
            take(made)
            comma = False
            if self._over:
                continue
            self._skip()
            if self.text[self._at : self._at + 1] == ",":
                comma = True
                self._at += 1
        if self._over and not made:
            raise self._wrong("the text ends before a value")
        self._open.pop()
        return made

    def _closed(self, bracket: str, *, comma: bool) -> bool:
        """Return whether the container ends here: by its bracket, by one of a container around it,
        or with the text.
        """
        self._skip() if not self._over else None
        closes = _CLOSES[bracket]
        here = self.text[self._at : self._at + 1]
        if self._over or self._ended():
            if comma and not self._over:
                # Something was to follow: it is not known what.
                raise self._wrong("the text ends after a comma")
            self._over = True
            self.noted[MISSING_BRACKET] = None
            return True
        if here == closes:
            self._at += 1
        elif not (here in ("}", "]") and here in (_CLOSES[each] for each in self._open[:-1])):
            return False
        elif comma:
            raise self._wrong("something is missing after a comma")
        else:
            self.noted[MISSING_BRACKET] = None
            return True
        if comma:
            self.noted[TRAILING_COMMA] = None
        return True

    def _member(self, made: dict[str, Any]) -> None:
        if self.text[self._at : self._at + 1] in ('"', "'"):
            key = self._string()
        else:
            word = _WORD.match(self.text, self._at)
            if word is None:
                raise self._wrong("a key is missing")
            key = word.group()
            self.noted[UNQUOTED_KEY] = None
            self._at = word.end()
        self._skip()
        if self.text[self._at : self._at + 1] != ":":
            raise self._wrong("a colon is missing")
        if key in made:
            raise self._wrong("a key stands there twice")
        self._at += 1
        made[key] = self._value()

    def _item(self, made: list[Any]) -> None:
        made.append(self._value())

    def _string(self) -> str:
        single = self.text[self._at] == "'"
        found = (_SINGLE if single else _DOUBLE).match(self.text, self._at)
        if found is None:
            raise self._wrong("a string has no end")
        self._at = found.end()
        if single:
            self.noted[SINGLE_QUOTES] = None
        inner: str = found.group(1)
        if _CONTROL.search(inner):
            self.noted[LINE_BREAK] = None
        return self._unescaped(inner) if "\\" in inner else inner

    def _unescaped(self, inner: str) -> str:
        def one(found: re.Match[str]) -> str:
            escape = found.group(1)
            if len(escape) == 5:
                return chr(int(escape[1:], 16))
            if escape not in _PLAIN:
                raise self._wrong(f"\\{escape} is no escape")
            if escape == "'":
                self.noted[ESCAPED_QUOTE] = None
            return _PLAIN[escape]

        text = _ESCAPE.sub(one, inner)
        # Two halves of a pair become one character; half a pair is none.
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._wrong("half a surrogate pair") from None

    def _scalar(self) -> Any:
        number = _NUMBER.match(self.text, self._at)
        if number is not None:
            self._at = number.end()
            follows = self.text[self._at : self._at + 1]
            if not follows or follows not in ",}] \t\r\n/#":
                # At the end of the text, digits may be missing.
                raise self._wrong("a number has no end")
            found = number.group()
            return float(found) if any(mark in found for mark in ".eE") else self._integer(found)
        word = _WORD.match(self.text, self._at)
        if word is None or word.group() not in _LITERALS:
            raise self._wrong("an unexpected character")
        self._at = word.end()
        value, note = _LITERALS[word.group()]
        if note:
            self.noted[note] = None
        return value

    def _integer(self, digits: str) -> int | float:
        return int(digits) if len(digits) < 300 else float(digits)

    def _wrong(self, what: str) -> NotRepairable:
        return NotRepairable(f"{what}, at character {self._at}")
