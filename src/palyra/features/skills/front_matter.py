"""The head of a SKILL.md: the small part of YAML that skills use, read strictly.

The rule: what is accepted means the same to every YAML reader, with all scalars as text; everything
else is refused with its line.
"""

import re
from collections.abc import Mapping

import msgspec

from palyra.core.errors import InvalidInput

Value = str | list[str] | dict[str, str]

_MOST_BYTES = 32 << 10
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,63}):(?: +(.*))?")
_BLOCK = re.compile(r"([|>])([+-]?)(?: +#.*)?")
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?: +#.*)?")
_DOUBLE = re.compile(r'("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")(?: +#.*)?')
_FLOW = re.compile(r"\[([^\[\]{}'\"]*)\](?: +#.*)?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
# What YAML gives a meaning of its own at the start of a plain scalar.
_INDICATORS = tuple("&*!|>'\"%@`{}[],#?:-")


def split(text: str) -> tuple[dict[str, Value], str]:
    """The fields of the front matter and the body after it."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise InvalidInput(
            "SKILL.md must begin with front matter: a line '---', name and description, and another"
            " '---'"
        )
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return _Reader(lines[1:number]).fields(), "\n".join(lines[number + 1 :]).strip("\n")
        if number > 500:
            break
    raise InvalidInput("SKILL.md: the front matter has no closing line '---'")


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        if sum(len(line) for line in lines) > _MOST_BYTES:
            raise InvalidInput(f"SKILL.md: the front matter is larger than {_MOST_BYTES >> 10} KiB")
        self._written = lines
        self._lines = [line.rstrip(" ") for line in lines]
        self._at = 0
        for self._at, line in enumerate(lines):
            if _CONTROL.search(line):
                raise self._error("tabs and other control characters are only for the body")
        self._at = 0

    def fields(self) -> dict[str, Value]:
        return self._mapping(0, nested=True)

    def _mapping(self, indent: int, *, nested: bool) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while (line := self._peek()) is not None and _indent(line) >= indent:
            match = _KEY.fullmatch(line[indent:])
            if match is None or _indent(line) != indent:
                raise self._error("expected 'key: value'")
            key, rest = match[1], (match[2] or "").strip()
            if key in found:
                raise self._error(f"{key!r} is there twice")
            self._at += 1
            found[key] = self._value(rest, indent, nested=nested)
        return found

    def _value(self, rest: str, indent: int, *, nested: bool) -> Value:
        if block := _BLOCK.fullmatch(rest):
            return self._block(block[1], block[2], indent)
        if not rest or rest.startswith("#"):
            return self._below(indent, nested=nested)
        if rest.startswith("["):
            if (flow := _FLOW.fullmatch(rest)) is None or not nested:
                raise self._error("a list in brackets must be plain words on one line", before=True)
            items = [item.strip() for item in flow[1].split(",")] if flow[1].strip() else []
            return [self._plain(item) for item in items]
        return self._scalar(rest, indent)

    def _below(self, indent: int, *, nested: bool) -> Value:
        """Read the lines below a key: a mapping of scalars, a list of scalars, or nothing."""
        line = self._peek()
        if (
            line is None
            or _indent(line) < indent
            or (_indent(line) == indent and not line[indent:].startswith("- "))
        ):
            return ""
        if not nested:
            raise self._error("mappings and lists nest only once")
        inner = _indent(line)
        if line[inner:].startswith("- "):
            return self._list(inner)
        mapping = self._mapping(inner, nested=False)
        return {key: value for key, value in mapping.items() if isinstance(value, str)}

    def _list(self, indent: int) -> list[str]:
        items = []
        while (
            (line := self._peek()) is not None
            and _indent(line) == indent
            and line[indent:].startswith("- ")
        ):
            self._at += 1
            text = line[indent + 2 :].strip()
            if _KEY.match(text):
                raise self._error("a list holds plain or quoted text only", before=True)
            items.append(
                self._quoted(text) if text[:1] in ("'", '"') else self._plain(_uncommented(text))
            )
        if (line := self._peek()) is not None and _indent(line) >= indent and indent:
            raise self._error("a list item must be on one line")
        return items

    def _scalar(self, rest: str, indent: int) -> str:
        if rest[0] in "'\"":
            return self._quoted(rest)
        words = [_uncommented(rest)]
        # A plain scalar goes on over indented lines; a comment ends it.
        while (
            words[-1] == rest
            and (line := self._raw()) is not None
            and line
            and _indent(line) > indent
        ):
            rest = line.strip()
            if rest.startswith("#"):
                break
            words.append(_uncommented(rest))
            self._at += 1
        if (line := self._peek()) is not None and _indent(line) > indent:
            raise self._error("text goes on after a comment or an empty line: quote it or use '|'")
        return self._plain(" ".join(words))

    def _quoted(self, text: str) -> str:
        if single := _SINGLE.fullmatch(text):
            return single[1].replace("''", "'")
        if double := _DOUBLE.fullmatch(text):
            try:
                return str(msgspec.json.decode(double[1], type=str))
            except msgspec.DecodeError:
                pass
        raise self._error(
            "this quoted text cannot be read; it must end on its own line", before=True
        )

    def _plain(self, text: str) -> str:
        if not text or text.startswith(_INDICATORS):
            raise self._error(f"text that begins with {text[:1]!r} must be quoted", before=True)
        if ": " in text or text.endswith(":"):
            raise self._error("text with ': ' in it must be quoted", before=True)
        return text

    def _block(self, style: str, chomp: str, indent: int) -> str:
        lines: list[str] = []
        while (line := self._raw()) is not None and (not line or _indent(line) > indent):
            lines.append(line)
            self._at += 1
            if self._written[self._at - 1] != line:
                raise self._error("a line of a block must not end in spaces", before=True)
        first = next((line for line in lines if line), "")
        inner = _indent(first)
        if any(line and _indent(line) < inner for line in lines) or lines[:1] == [""]:
            raise self._error("the lines of a block must be indented alike", before=True)
        if style == ">" and any(
            _indent(line) > inner or line == "" for line in lines[: _last(lines)]
        ):
            raise self._error("a folded block must be one paragraph; use '|' for more", before=True)
        kept = [line[inner:] for line in lines[: _last(lines)]]
        text = (" " if style == ">" else "\n").join(kept)
        if not kept or chomp == "-":
            return text
        return text + "\n" + ("\n" * (len(lines) - len(kept)) if chomp == "+" else "")

    def _raw(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _peek(self) -> str | None:
        """The next line that says something."""
        while (line := self._raw()) is not None:
            if line.strip() and not line.lstrip().startswith("#"):
                return line
            self._at += 1
        return None

    def _error(self, what: str, *, before: bool = False) -> InvalidInput:
        number = self._at + (1 if before else 2)
        return InvalidInput(f"SKILL.md line {number}: {what}", line=number)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _last(lines: list[str]) -> int:
    """Return how many lines there are up to the last that is not empty."""
    return max((number for number, line in enumerate(lines, 1) if line), default=0)


def _uncommented(text: str) -> str:
    return text.partition(" #")[0].rstrip()


_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FIELDS = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools", "version"}
)


class Head(msgspec.Struct, frozen=True):
    name: str
    description: str
    body: str
    license: str = ""
    version: str = ""


def read(data: bytes) -> Head:
    """A SKILL.md. `allowed-tools` is read and has no effect here: what a tool may do is policy's to
    say.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidInput("SKILL.md is not UTF-8 text") from None
    fields, body = split(text)
    unknown = sorted(set(fields) - _FIELDS)
    if unknown:
        raise InvalidInput(
            f"SKILL.md: there is no field {unknown[0]!r}; there are {', '.join(sorted(_FIELDS))}"
        )
    metadata = fields.get("metadata", {})
    version = _text(metadata, "version") if isinstance(metadata, dict) else ""
    return Head(
        name=check_name(_text(fields, "name", 64)),
        description=_one_line(_text(fields, "description", 1024)),
        body=body,
        license=_one_line(_text(fields, "license", 500)),
        version=_one_line(_text(fields, "version", 64) or version[:64]),
    )


def check_name(name: str) -> str:
    if len(name) > 64 or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"a skill's name is lower case letters, digits and single hyphens, not {name[:64]!r}"
        )
    return name


def _text(fields: Mapping[str, Value], key: str, most: int = 1024) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str) or len(value) > most:
        raise InvalidInput(f"SKILL.md: {key} must be text of at most {most} characters")
    if not value.strip() and key in ("name", "description"):
        raise InvalidInput(f"SKILL.md: {key} is missing")
    return value


def _one_line(text: str) -> str:
    """Make it fit for a list: no line ends, no control or invisible characters that could hide or
    forge what follows.
    """
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
