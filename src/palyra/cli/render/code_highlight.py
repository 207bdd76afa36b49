"""Code on a terminal: keywords, strings, numbers and comments of common languages, line by line.

Small on purpose: it knows families of languages, not grammars, and costs no import. What it does
not know is shown in one colour.
"""

import re
from typing import NamedTuple

Styles = tuple[str, ...]
Run = tuple[str, Styles]

_PYTHON = (
    "and as assert async await break case class continue def del elif else except False finally for"
    " from global if import in is lambda match None nonlocal not or pass raise return self True try"
    " while with yield"
)
_CURLY = (
    "abstract any as async await bool boolean break case catch chan char class const constexpr"
    " continue default defer delete do double else enum export extends false final finally float fn"
    " for from func function go if impl implements import in instanceof int interface is let long"
    " loop map match mod mut namespace new nil null number of override package private protected"
    " pub public range readonly return select self static string struct super switch this throw"
    " trait true try type typeof undefined union unsafe use using var void where while yield"
)
_SHELL = (
    "alias break case cd continue do done echo elif else esac eval exec exit export fi for function"
    " if in local return set shift sudo then trap unset until while"
)
_SQL = (
    "add all alter and as asc begin between by case check commit constraint create cross default"
    " delete desc distinct drop else end exists foreign from full group having if in index inner"
    " insert into is join key left like limit not null offset on or order outer primary references"
    " returning right rollback select set table then union unique update using values view when"
    " where with"
)
_DATA = "true false null yes no on off inf nan"


class _Family(NamedTuple):
    """`blocks`: what begins a text or comment that may go on over lines, and what ends it."""

    words: frozenset[str]
    comment: str = ""
    blocks: tuple[tuple[str, str, str], ...] = ()
    any_case: bool = False


_C_LIKE = _Family(frozenset(_CURLY.split()), "//", (("/*", "*/", "dim"),))
_FAMILIES = {
    "python": _Family(
        frozenset(_PYTHON.split()), "#", (('"""', '"""', "green"), ("'''", "'''", "green"))
    ),
    "curly": _C_LIKE,
    "shell": _Family(frozenset(_SHELL.split()), "#"),
    "sql": _Family(frozenset(_SQL.split()), "--", (("/*", "*/", "dim"),), any_case=True),
    "data": _Family(frozenset(_DATA.split()), "#"),
    "json": _Family(frozenset(_DATA.split())),
}
_NAMES = {
    "python": "python py python3 pyi",
    "curly": (
        "javascript js jsx typescript ts tsx java c h cpp c++ cc cs csharp go golang rust rs kotlin"
        " kt swift scala php dart zig protobuf proto css scss"
    ),
    "shell": "sh bash zsh fish shell console terminal dockerfile makefile make",
    "sql": "sql sqlite postgres postgresql mysql",
    "data": "toml yaml yml ini conf properties cedar",
    "json": "json jsonc json5 jsonl",
}
_FAMILY_OF = {name: family for family, names in _NAMES.items() for name in names.split()}
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)"""
    r"|(?P<number>(?<![\w.])\d[\w.]*)|(?P<word>[A-Za-z_]\w*)|(?P<space>\s+)|(?P<other>.)"
)
_LONGEST = 2_000
_DIFF = {"+": ("green",), "-": ("red",), "@": ("cyan",)}


class CodeHighlighter:
    """One block of code, given line by line."""

    def __init__(self, language: str) -> None:
        name = language.strip().lower().partition(" ")[0]
        self._diff = name in ("diff", "patch")
        self._family = _FAMILIES.get(_FAMILY_OF.get(name, ""))
        # What ends the text or comment that the line is in, and its style.
        self._until = ("", "")

    def line(self, text: str) -> list[Run]:
        """Return the line as runs of one style; together they are the line."""
        if self._diff:
            return [(text, _DIFF.get(text[:1], ()))]
        if self._family is None or len(text) > _LONGEST:
            return [(text, ("cyan",))]
        return _merged(self._tokens(text, self._family))

    def _tokens(self, text: str, family: _Family) -> list[Run]:
        runs: list[Run] = []
        at = 0
        while at < len(text):
            if self._until[0]:
                at = self._inside(text, at, runs)
                continue
            opened = next((each for each in family.blocks if text.startswith(each[0], at)), None)
            if opened is not None:
                runs.append((opened[0], (opened[2],)))
                self._until = opened[1:]
                at += len(opened[0])
                continue
            if family.comment and text.startswith(family.comment, at) and _begins(text, at):
                runs.append((text[at:], ("dim",)))
                break
            found = _TOKEN.match(text, at)
            assert found is not None
            runs.append((found[0], _style(found, family)))
            at = found.end()
        return runs

    def _inside(self, text: str, at: int, runs: list[Run]) -> int:
        mark, style = self._until
        end = text.find(mark, at)
        if end >= 0:
            self._until = ("", "")
        end = len(text) if end < 0 else end + len(mark)
        runs.append((text[at:end], (style,)))
        return end


def _begins(text: str, at: int) -> bool:
    """Return whether a comment may begin here: `#` in the middle of a word is none."""
    return at == 0 or text[at - 1] in " \t;{}(),"


def _style(found: re.Match[str], family: _Family) -> Styles:
    match found.lastgroup:
        case "string":
            return ("green",)
        case "number":
            return ("yellow",)
        case "word":
            word = found[0].lower() if family.any_case else found[0]
            return ("magenta",) if word in family.words else ()
        case _:
            return ()


def _merged(runs: list[Run]) -> list[Run]:
    """Join neighbours of one style, so that few sequences go out."""
    merged: list[Run] = []
    for text, styles in runs:
        if merged and merged[-1][1] == styles:
            merged[-1] = (merged[-1][0] + text, styles)
        else:
            merged.append((text, styles))
    return merged
