"""Intents of the demo model. Each kind of request is one type; `rule` is how the reasoning names
it.

A message as clauses, and a clause as words that sentence patterns can be laid over.

Quoted text is never split or trimmed: it may be what somebody wants written.

The demo model's formatting: counts, sizes, lists and code, as markdown that no file content can
break out of.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import ClassVar, Literal

from msgspec import Struct

_LANGUAGES = {
    "py": "python",
    "md": "markdown",
    "js": "javascript",
    "ts": "typescript",
    "rs": "rust",
    "sh": "bash",
    "yml": "yaml",
}


def plural(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def size(count: int) -> str:
    """A number of bytes as a person would say it."""
    if count < 1_000:
        return plural(count, "byte")
    amount, unit = (count / 1_000, "kB") if count < 1_000_000 else (count / 1_000_000, "MB")
    return f"{amount:,.1f} {unit}"


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    return (
        words[0]
        if len(words) == 1
        else f"{', '.join(words[:-1])} and {words[-1]}"
        if words
        else "nothing"
    )


def bullets(lines: Sequence[str], most: int = 40) -> str:
    shown = [f"- {line}" for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"- … and {len(lines) - most:,} more")
    return "\n".join(shown)


def code(text: str) -> str:
    """One line of foreign text."""
    text = clip(re.sub(r"\s+", " ", text).strip(), 160)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    gap = " " if "`" in text else ""
    return f"{ticks}{gap}{text}{gap}{ticks}" if text else "``"


def fence(text: str, path: str = "") -> str:
    """Lines of foreign text, in a fence longer than any they hold."""
    ticks = "`" * max(3, max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    ending = path.rpartition(".")[2].lower() if "." in path else ""
    language = _LANGUAGES.get(ending, ending if re.fullmatch(r"[a-z]{1,8}", ending) else "")
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


_VERBS = (
    "list|show|read|open|summarise|summarize|sum|explain|describe|find|search|grep|look|count|create|make|write|append|add|replace"
    "|change|rename|delete|remove|undo|tell|overwrite|put|save|what|which|how|where|give|print|display|view|use|call"
)
_NEXT = re.compile(
    rf"""(?<!\s)(?:
      \s*+[;\n]\s*+ | [ \t]*+\n\s*+
    | (?:\s*+,)?\s++(?:and\s++)?(?:then|afterwards|after\ that)\s++
    | [,.!?]?\s++and\s++(?:also\s++)?(?=(?:{_VERBS})\b)
    | [.!?]\s++(?=(?:\w{{1,20}}\s++){{0,3}}?(?:{_VERBS})\b)
    | ,\s++(?=(?:{_VERBS})\s))""",
    re.IGNORECASE | re.VERBOSE,
)
# From here on a clause is somebody's own text, whatever it says.
_OWN_TEXT = re.compile(
    r"""^.{0,200}?(?:
      \bwith\ (?:the\ )?(?:text|contents?|words?|lines?|following)\b
    | \b(?:containing|saying|reading|that\ says|which\ says)\b
    | \b(?:create|make|write|overwrite|append|add)\b[^:\n]{0,200}:(?=\s)
    | \b(?:create|make|overwrite)\b[^:\n]{0,200}?\bwith\s)
    | ^(?:please\s)?(?:run|execute|remember)[\s:]
    | ^(?:please\s)?(?:ask|let|have|get|tell)\s(?:a|an|another|your|some)\s(?:helper|sub-?agent|agent|assistant|colleague)[\s:]
    | ^(?:please\s)?(?:(?:every|each)\s+(?:\d|day|week|hour|minute|morning|evening|\w+day\b)|(?:daily|weekdays)\ at|in\s\d+\s*[a-z])
      [^,\n]{0,60}[,:](?=\s)""",  # noqa: E501
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# Beyond these a clause is not a request that a person typed, and matching it would only take long.
_MOST_CHARACTERS = 2_000
_HEAD = 400
_GAP = re.compile(r"\s{40,}")
_IN_A_FILE = re.compile(r"in\s+\S+", re.IGNORECASE)
_POLITE = re.compile(
    r"""^(?:(?:please|pls|hey|ok|okay|so|now|then|also|and|next|first|finally|palyra|just|kindly|go\ ahead\ and|let'?s|try\ to|do
    | (?:hi|hello)(?:\ there)?(?=[\s,!]+\w)
    | (?:can|could|would|will)\ you(?:\ please|\ kindly)?
    | help\ me(?:\ to)?
    | i(?:'d|\ would)\ like\ (?:you\ )?to | i\ (?:want|need)\ (?:you\ )?to | you\ should)\b[\s,:!]+)+""",  # noqa: E501
    re.IGNORECASE | re.VERBOSE,
)
_POLITE_END = re.compile(
    r"(?<![\s,])[\s,]+(?:please|pls|for me|thanks|thank you|if you can|right now)$", re.IGNORECASE
)
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")
_PRONOUN = re.compile(
    r"\b(?:it|its|this|that|them|(?:the|that|this) (?:file|document|text|page|result)s?)\b",
    re.IGNORECASE,
)
_ENDING = r"[\w@+~-][\w.@+~-]*\.[A-Za-z]\w{0,9}"
_KNOWN = r"(?:README|LICEN[SC]E|Makefile|Dockerfile|CHANGELOG|CONTRIBUTING|NOTICE|AUTHORS)\b"
_PATH = re.compile(
    rf"(?<![\w/.@+~-])(?:\.{{0,2}}/?(?:[\w.@+~-]+/)+[\w.@+~-]*|{_ENDING}|\.[\w-]+|{_KNOWN})"
)
_FILE_NAME = re.compile(rf"(?:.*/)?(?:{_ENDING}|\.[\w-]+|{_KNOWN})")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc", "a.m", "p.m"})

# What the names in a pattern stand for.
_CAPTURES = {
    "word": r"\S+?",
    "number": r"\d{1,7}",
    "rest": r".+",
    "path": r"`[^`]+`|\"[^\"]+\"|'[^']+'|[^\s,:]+",
    "text": r"`[^`]*`|\"[^\"]*\"|“[^”]*”|'[^']*'|.+?",
}


def clauses(text: str) -> Iterator[str]:
    """The message cut where one request ends and the next begins."""
    rest = text.strip()
    while rest:
        own = _OWN_TEXT.match(rest)
        quoted = [found.span() for found in _QUOTED.finditer(rest)]
        cuts = (
            each
            for each in _NEXT.finditer(rest)
            if not any(a < each.start() < b for a, b in quoted)
        )
        cut = next((each for each in cuts if not _IN_A_FILE.fullmatch(rest[: each.start()])), None)
        if cut is None or cut.start() == 0 or (own and own.end() <= cut.start() + 1):
            yield rest
            return
        yield rest[: cut.start()]
        rest = rest[cut.end() :].strip()


class Phrase:
    """One clause. `raw` is as typed but for leading politeness; `text` is trimmed at its end
    too.
    """

    def __init__(self, clause: str, last_path: str = "") -> None:
        self.raw = _POLITE.sub("", clause.strip().replace("’", "'")).strip()
        self.text = _trimmed(_GAP.sub(" ", self.raw))
        self.last_path = last_path
        self.paths = tuple(paths_in(self.text))

    @property
    def pronoun(self) -> bool:
        """Return whether the phrase refers to something named before."""
        return not self.paths and bool(_PRONOUN.search(_QUOTED.sub("", self.text)))

    @property
    def targets(self) -> tuple[str, ...]:
        """The paths it names, or the one that "it" means."""
        if self.paths:
            return self.paths
        return (self.last_path,) if self.last_path and self.pronoun else ()

    def path(self, word: str) -> str:
        """A captured word as a path, if it can be one; a pronoun is the path named before."""
        if word.lower() in ("it", "that", "this", "them"):
            return self.last_path
        inner = unquoted(word)
        if inner != word:
            return inner
        word = word.rstrip(".,!?")
        return next((path for path in paths_in(word) if path == word), "")

    def says(self, *templates: str, raw: bool = False) -> dict[str, str] | None:
        """Return what the first pattern that fits the whole clause captured, with the clause itself
        as `all`; see `pattern`.

        With `raw`, the pattern must end in `<rest>`, and what that captures is kept as it was
        typed, however long it is.
        """
        head, tail = (self.raw[:_HEAD], self.raw[_HEAD:]) if raw else (self.text, "")
        if len(head) > _MOST_CHARACTERS:
            return None
        for template in templates:
            found = pattern(template).fullmatch(" " + head)
            if found and (not tail or found["rest"]):
                said = {name: value.strip() for name, value in found.groupdict(default="").items()}
                if tail:
                    said["rest"] = (found["rest"] + tail).strip()
                return {"all": head, **said}
        return None


def _trimmed(text: str) -> str:
    """Without the politeness and the punctuation at the end."""
    for _ in range(3):
        text = text.rstrip(" \t\r\n?.!,")
        text = text[:-40] + _POLITE_END.sub("", text[-40:])
    return text


@cache
def pattern(template: str) -> re.Pattern[str]:
    """A sentence as a regular expression.

    `(a|b)` is one of them, `[a|b]` one of them or none, `[a|b]*` any number of them, `<name>` what
    is captured, `:` a colon. A name may end in digits; what comes before says what it captures.
    """
    compiled, end = _sequence(template, 0)
    assert end == len(template), template
    return re.compile(rf"{compiled}\s*+", re.IGNORECASE | re.DOTALL)


def _sequence(template: str, at: int) -> tuple[str, int]:
    """The alternatives up to the end of the group that `at` is in."""
    branches, parts = list[str](), list[str]()
    while at < len(template) and template[at] not in ")]":
        match template[at]:
            case " ":
                at += 1
            case "|":
                branches.append("".join(parts))
                parts, at = [], at + 1
            case "(" | "[":
                inner, end = _sequence(template, at + 1)
                times = "" if template[at] == "(" else "?"
                at = end + 1
                if template[at : at + 1] == "*":
                    times, at = "*", at + 1
                parts.append(f"(?:{inner}){times}")
            case "<":
                end = template.index(">", at)
                name = template[at + 1 : end]
                parts.append(rf",?\s++(?P<{name}>{_CAPTURES[name.rstrip('0123456789')]})")
                at = end + 1
            case ":":
                parts.append(r"\s*:")
                at += 1
            case _:
                found = re.compile(r"[^\s()\[\]|<:]+").match(template, at)
                assert found is not None
                parts.append(rf",?\s++{re.escape(found[0])}")
                at = found.end()
    return "|".join([*branches, "".join(parts)]), at


def paths_in(text: str) -> Iterator[str]:
    """Return what looks like a path: a quoted name, or a bare one with a slash, an ending or a
    well-known name.
    """
    places: dict[int, str] = {}
    bare = text
    for found in _QUOTED.finditer(text):
        name = next(group for group in found.groups() if group)
        if re.fullmatch(r"[\w.@+~/-]+|[\w ./-]+\.\w{1,8}", name):
            places[found.start()] = name
        bare = bare[: found.start()] + " " * (found.end() - found.start()) + bare[found.end() :]
    for found in _PATH.finditer(bare):
        name = found[0].rstrip(".,")
        if name and name.lower() not in _ABBREVIATIONS:
            places[found.start()] = name
    yield from dict.fromkeys(places[at] for at in sorted(places))


def is_file_name(path: str) -> bool:
    """Return whether a path by its looks is a file and not a folder."""
    return not path.endswith("/") and bool(_FILE_NAME.fullmatch(path))


def unquoted(text: str) -> str:
    """Without the quotes or the fence around the whole of it."""
    fence = re.fullmatch(r"\s*```[\w-]*\n(.*?)\n?```\s*", text, re.DOTALL)
    if fence:
        return fence[1]
    text = text.strip()
    pairs = {("'", "'"), ('"', '"'), ("`", "`"), ("“", "”")}
    if len(text) >= 2 and (text[0], text[-1]) in pairs and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


SmallTalk = Literal["greeting", "thanks", "who", "help"]
Measure = Literal["lines", "words", "characters", "bytes", "all"]


class Intent(Struct, frozen=True, kw_only=True):
    """Base of all requests. `changes` says that the files may be different afterwards, so what
    follows has to wait.
    """

    rule: ClassVar[str]
    changes: ClassVar[bool] = False


class Talk(Intent, frozen=True, kw_only=True):
    rule = "small talk"
    about: SmallTalk


class ListFolder(Intent, frozen=True, kw_only=True):
    rule = "list a folder"
    path: str = "."
    depth: int = 1


class Overview(Intent, frozen=True, kw_only=True):
    rule = "describe a folder"
    path: str = "."


class ReadIntent(Intent, frozen=True, kw_only=True):
    """`first` and `last` are lines; a negative `first` counts from the end."""

    rule = "show files"
    paths: tuple[str, ...]
    first: int = 0
    last: int = 0


class Summarise(Intent, frozen=True, kw_only=True):
    rule = "summarise files"
    paths: tuple[str, ...]


class Count(Intent, frozen=True, kw_only=True):
    rule = "measure files"
    paths: tuple[str, ...]
    what: Measure = "all"


class Pasted(Intent, frozen=True, kw_only=True):
    """About a text that came along with the request. `what` is empty for a summary."""

    rule = "look at a text that was given"
    text: str
    what: Measure | Literal[""] = ""


class CountFiles(Intent, frozen=True, kw_only=True):
    rule = "count the files of a folder"
    path: str = "."


class SearchIntent(Intent, frozen=True, kw_only=True):
    rule = "search in files"
    words: str
    path: str = "."
    glob: str = ""
    regex: bool = False
    only_count: bool = False


class FindFiles(Intent, frozen=True, kw_only=True):
    rule = "find files by name"
    name: str
    path: str = "."


class Create(Intent, frozen=True, kw_only=True):
    rule = "write a file"
    changes = True
    path: str
    content: str = ""
    overwrite: bool = False


class Append(Intent, frozen=True, kw_only=True):
    rule = "append to a file"
    changes = True
    path: str
    text: str = ""


class Replace(Intent, frozen=True, kw_only=True):
    """`path` is a file, or with `glob` a folder whose files are meant."""

    rule = "replace text"
    changes = True
    old: str
    new: str
    path: str = ""
    glob: str = ""


class RenameHeading(Intent, frozen=True, kw_only=True):
    rule = "rename a heading"
    changes = True
    path: str
    new: str = ""
    old: str = ""


class UseTool(Intent, frozen=True, kw_only=True):
    rule = "call a tool by its name"
    changes = True
    tool: str
    arguments: str = "{}"


class TypedCommand(Intent, frozen=True, kw_only=True):
    rule = "run a command that was typed"
    changes = True
    command: str


class Delegate(Intent, frozen=True, kw_only=True):
    rule = "give a task to a helper"
    changes = True
    task: str


class WhatChanged(Intent, frozen=True, kw_only=True):
    rule = "look back on what was changed"


class UndoIntent(Intent, frozen=True, kw_only=True):
    rule = "explain how to undo"


class Arithmetic(Intent, frozen=True, kw_only=True):
    rule = "work out a sum"
    expression: str


class NoTool(Intent, frozen=True, kw_only=True):
    """Understood, but nothing here can do it. `instead` is what can be done."""

    rule = "say what is not possible"
    wish: str
    instead: str = ""


class QuestionIntent(Intent, frozen=True, kw_only=True):
    """Understood, but something is missing: `question` asks for it."""

    rule = "ask for what is missing"
    question: str


class Unknown(Intent, frozen=True, kw_only=True):
    rule = "admit that no rule fits"
    text: str
