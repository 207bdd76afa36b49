"""A message as clauses, and a clause as words that sentence patterns can be laid over.

Quoted text is never split or trimmed: it may be what somebody wants written.
"""

import re
from collections.abc import Iterator
from functools import cache

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
        """Whether it speaks of something named before."""
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
        """What the first pattern that fits the whole clause captured, with the clause itself as
        `all`; see `pattern`.

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
    """What looks like a path: a quoted name, or a bare one with a slash, an ending or a well-known
    name.
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
    """Whether a path by its looks is a file and not a folder."""
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
