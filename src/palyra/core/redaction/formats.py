"""Tokens that say themselves what they are, found by the rows of `vendors` and `vendor_facts`."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from palyra.core.redaction import shapes, vendor_facts, vendors


class FormatMatch(NamedTuple):
    start: int
    end: int
    rule: str


class FormatRow(NamedTuple):
    """`drawn`: what the pattern finds must also look drawn at random. `walled`: nothing of base64
    may stand in front.
    """

    rule: str
    pattern: str
    drawn: bool = False
    walled: bool = False


_VARIED = 14
_SURE_PREFIX = re.compile(r"[A-Za-z]{2,12}\d?[_\-]|A[A-Z3]{2}[A-Z0-9]")
_ULID_LENGTH = 26
_ULID = re.compile(r"(?<![A-Za-z0-9])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![A-Za-z0-9])")
_FIRST = re.compile(r"(?:[A-Za-z0-9]|\\\$)(?![?*{])")
_CHOICE = re.compile(r"\(\?:([A-Za-z0-9_|]+)\)(?![?*{+])")
_SET = re.compile(r"\[([A-Z]{2,3}|[ps]{2}|sbr)\](?![?*{+])")
# Seen from behind the first character of a token: what may not stand in front of it.
# One letter may be glued to it, if nothing stands in front of that.
_NO_NAME, _NO_WORD, _NO_BASE64 = (
    r"(?<![A-Za-z0-9_\-.][A-Za-z].)",
    r"(?<![A-Za-z]{2}.)",
    r"(?<![0-9+/].)(?<![A-Za-z0-9+/][A-Za-z].)",
)
# With a letter glued to it, such a prefix is the end of a word.
_WORDY = re.compile(
    r"(?:key|pubkey|api|sdk|pat|live|test|secret|sk|pk|rk|access|sat|ext|mob|re|b|sl|ak|as|at|pa|md|fc|st|ax|act|dev|prod|env|user|admin|"
    r"console|ls|fw|sc|s|r|ck|cs|di|ops|ico|API|SK|AC|AP|PK|kit|aio|xau|cal|dub|tid)(?![_\-]\(\?:)[_\-.:+]?(?![A-Za-z0-9_\-.])|[a-z]{1,2}\d?[.:]"
)


def _is_wordy(pattern: str) -> bool:
    """Return whether the row's prefix may be the end of a word: then no letter may stand in front
    of it.
    """
    return _WORDY.match(pattern) is not None


def _rows() -> Iterator[FormatRow]:
    """Every row; one that begins with alternatives, as one row for each."""
    for row in _written():
        begins = _CHOICE.match(row.pattern) or _SET.match(row.pattern)
        heads = (
            (begins[1].split("|") if row.pattern.startswith("(") else list(begins[1]))
            if begins
            else [""]
        )
        for head in heads:
            yield row._replace(pattern=head + row.pattern[begins.end() if begins else 0 :])


def _written() -> list[FormatRow]:
    return [
        *(FormatRow(rule, pattern) for rule, pattern in (*vendors.EXACT, *vendor_facts.exact())),
        *(
            FormatRow(rule, pattern, walled=True)
            for rule, pattern in (*vendors.WALLED, *vendor_facts.walled())
        ),
        *(FormatRow(rule, pattern, drawn=True) for rule, pattern in vendors.RANDOM),
    ]


@cache
def _joined() -> tuple[
    re.Pattern[str], tuple[FormatRow, ...], re.Pattern[str], tuple[FormatRow, ...]
]:
    """Two patterns for all rows, with the row of each group: those with a first letter, grouped by
    it, and those without.

    Made when the first token may be there, not at the start.
    """
    heads: dict[str, list[FormatRow]] = {}
    for row in _rows():
        first = _FIRST.match(row.pattern)
        heads.setdefault(first[0] if first else "", []).append(row)
    headless = heads.pop("")
    ordered: list[FormatRow] = []
    body = "|".join(
        f"{head}(?:{'|'.join(_fronts(rows, ordered))})" for head, rows in sorted(heads.items())
    )
    others = "|".join(f"({row.pattern})" for row in headless)
    return (
        re.compile(body),
        tuple(ordered),
        re.compile(f"(?<![0-9])(?<![A-Za-z0-9]{{2}})(?=[\\d$*A-Fa-fMNO])(?:{others})"),
        tuple(headless),
    )


def _fronts(rows: list[FormatRow], ordered: list[FormatRow]) -> Iterator[str]:
    """The rows of one first character by what may not stand in front of it, and by their second
    character; noted in order.
    """
    for front in (_NO_BASE64, _NO_NAME, _NO_WORD):
        seconds: dict[str, list[FormatRow]] = {}
        for row in rows:
            if _front(row) == front:
                second = _FIRST.match(_rest(row))
                seconds.setdefault(second[0] if second else "", []).append(row)
        parts = []
        for begin, same in sorted(seconds.items()):
            ordered += same
            parts.append(
                f"{begin}(?:{'|'.join(f'({_rest(row).removeprefix(begin)})' for row in same)})"
            )
        if parts:
            yield f"{front}(?:{'|'.join(parts)})"


def _rest(row: FormatRow) -> str:
    return row.pattern.removeprefix("\\")[1:]


def _front(row: FormatRow) -> str:
    return (
        _NO_BASE64
        if row.walled or row.pattern[0].isdigit()
        else _NO_NAME
        if _is_wordy(row.pattern)
        else _NO_WORD
    )


# How a pattern begins: letters, sets and choices up to a mark.
_HEAD = re.compile(
    r"(?:[A-Za-z0-9_:~\-]|\\[.\-$+]|\[[a-z\-]{2,6}\](?![?*{+])|\(\?:[A-Za-z|]+\)(?![?*{+])){3,}"
    r"(?<=[_\-.:])(?![?*{+])"
)
_GLUED = 5  # a longer mark is known with anything in front of it
_ORDINARY = re.compile(
    r"(?:(?:access|act|admin|api|app|console|dataset|env|ext|key|live|organization|pat|pk|prod"
    r"|sandbox|sat|secret|sess|sk|standard|test|token|user|v\d|\d+)[_\-.:]{1,2})+"
)


@cache
def known_marks() -> re.Pattern[str]:
    """Return how tokens begin whose format is known. A wrong length or letter behind such a mark
    makes something else of them.
    """
    begins = (_HEAD.match(row.pattern) for row in _rows())
    heads = {begin[0] for begin in begins if begin}
    known = sorted(each for each in heads if not _ORDINARY.fullmatch(each.replace("\\", "")))
    long = [each for each in known if len(each.replace("\\", "")) > _GLUED]
    return re.compile(f"{'|'.join(long)}|(?<![A-Za-z0-9]{{2}})(?:{'|'.join(known)})")


@cache
def _anchored() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return tuple(
        (literal, rule, re.compile(pattern))
        for rule, literals, pattern in vendors.ANCHORED
        for literal in literals
    )


# Every row needs such a run, so text without one is done.
_OUTSIDE = r"\s\"'`<>(){}\[\],;"
# Over all that is shorter in one go. Used with match only, so it never looks at a character twice.
_RUN = re.compile(rf"(?:[^{_OUTSIDE}]{{0,15}}+[{_OUTSIDE}]++)*+([^{_OUTSIDE}]{{16,}})")
SHORTEST = 16  # shorter runs hold no token
_SHORT = 4096
# Small letters alone are a name in code, a path, a rule of dashes; nothing drawn or encoded lacks
# both capitals and digits.
_DULL = re.compile(r"[a-z_.\-/=:#*+&|~!?@$%\\]+")


# Letters in both cases and dots are a name too, unless they are many.
_CAMEL = re.compile(r"[A-Z.]*[a-z][A-Za-z.]*")
_NAME = 40
# A digest that names its algorithm and has its length.
_DIGEST = re.compile(
    r"(?:[\w\-]{1,16}=)?(?:sha512[-:=](?:[0-9a-f]{128}|[A-Za-z0-9+/]{86}==)|sha384[-:=](?:[0-9a-f]{96}|[A-Za-z0-9+/]{64})|"
    r"(?:sha256[-:=]|h1:)(?:[0-9a-f]{64}|[A-Za-z0-9+/]{43}=)|sha1[-:=](?:[0-9a-f]{40}|[A-Za-z0-9+/]{27}=)|md5[-:=][0-9a-f]{32})"
)


# A digest or an identifier that stands alone: no text of twelve characters is in it.
_PLAIN_HEX = re.compile(
    r"(?!(?:[0-9a-f]{2}){0,120}?(?:[2-7][0-9a-f]){12})(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


class TokenRuns(NamedTuple):
    """Stretches without blanks or brackets: those where a token may stand, and digests and UUIDs
    that stand alone.
    """

    tokens: list[tuple[int, int]]
    digests: list[tuple[int, int]]


def runs(text: str) -> TokenRuns:
    """The stretches of `text` that are long enough to be judged."""
    found = TokenRuns([], [])
    if len(text) < _SHORT and max(map(len, text.split()), default=0) < SHORTEST:
        return found
    at = 0
    while run := _RUN.match(text, at):
        at = run.end()
        start = run.start(1)
        if _PLAIN_HEX.fullmatch(text, start, at):
            found.digests.append((start, at))
        elif not (
            _DULL.fullmatch(text, start, at)
            or (at - start < _NAME and _CAMEL.fullmatch(text, start, at))
            or _DIGEST.fullmatch(text, start, at)
        ):
            found.tokens.append((start, at))
    return found


def find(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[FormatMatch]:
    if not runs:
        return
    headed, rows, headless, others = _joined()
    for start, end in runs:
        for found in headed.finditer(text, start, end):
            if hit := _judged(found, rows):
                yield hit
        for found in headless.finditer(text, start, end):
            if hit := _judged(found, others):
                yield hit
    if max(end - start for start, end in runs) >= 32:
        for literal, rule, pattern in _anchored():
            if literal in text:
                yield from _around(text, literal, rule, pattern)


def _is_in_ulid(found: re.Match[str]) -> bool:
    """Return whether a match is a part of a ULID, which every run, session and approval has."""
    text, start = found.string, found.start()
    while start and found.start() - start < _ULID_LENGTH and text[start - 1].isalnum():
        start -= 1
    return _ULID.match(text, start) is not None


def _judged(found: re.Match[str], rows: Sequence[FormatRow]) -> FormatMatch | None:
    row = rows[(found.lastindex or 1) - 1]
    if found[0].isdigit():
        return None  # a number
    before = found.string[max(0, found.start() - 1) : found.start()]
    if before.isalnum() and _is_in_ulid(found):
        return None
    if (
        before.isalpha()
        and before.isascii()
        and not _is_sure(found[0], row)
        and (shapes.is_made_up(found[0]) or not shapes.is_random(found[0], 16))
    ):
        return None  # with a letter glued to it, it must look like one that was given to somebody
    if row.drawn:
        return FormatMatch(*found.span(), row.rule) if shapes.is_random(found[0]) else None
    return None if _is_sample(found[0], row.rule) else FormatMatch(*found.span(), row.rule)


def _is_sure(token: str, row: FormatRow) -> bool:
    """Return whether a token with a letter glued to it is one all the same: its prefix is the end
    of no word, and it is no row of the same few characters.
    """
    return (
        not (row.walled or row.drawn or _is_wordy(row.pattern))
        and len(set(token)) >= _VARIED
        and _SURE_PREFIX.match(token) is not None
    )


def _around(text: str, literal: str, rule: str, pattern: re.Pattern[str]) -> Iterator[FormatMatch]:
    at = text.find(literal)
    while at >= 0:
        found = pattern.search(text, max(0, at - vendors.REACH), at + 2 * vendors.REACH)
        if found:
            yield FormatMatch(*found.span(), rule)
        # A match around any occurrence before this point would have been found.
        at = text.find(literal, max(found.end(), at + 1) if found else at + vendors.REACH)


def _is_sample(token: str, rule: str) -> bool:
    """Return whether the token was never given to anybody: a form to fill in, or a key printed in
    documentation.
    """
    if rule == "google" and hashlib.sha256(token.encode()).hexdigest()[:12] in vendors.PUBLISHED:
        return True
    return vendors.EXAMPLE.fullmatch(token) is not None or (
        shapes.is_filler(token) and not token.startswith("hooks.")
    )
