"""Values that look drawn at random and are given to a name that says nothing, as `shodan = "k3J…"`.
Weak evidence, so strict.

Digests, identifiers and pictures look drawn too: they are known by their alphabet (hex, no
capitals), by the name in front of them, or by where they stand.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from palyra.core.redaction import encodings, shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.work import Work

_VALUE = re.compile(r"(?=[^=]*[A-Z])(?=[^=]*[a-z])(?=[^=]*[0-9])[A-Za-z0-9_\-+/]{24,128}={0,2}")
# name = "value", read backwards from the value: what stands between, and the name.
_NAME = re.compile(r"[\"'`]?[ \t]{0,4}(?:>?=:?|:)[ \t]{0,4}[\"'\]]{0,2}([\w.\-]{1,48})")
_BEFORE = 64
# Names of what looks drawn and is no secret.
_HARMLESS = re.compile(
    r"(?i)^z?h\d?$|(?:^|_)(?:sum|total|count|avg)|sha\d*|hash|digest|integrity|checksum|etag|nonce|commit|uuid|guid|(?:^|[_\-.a-z])id$|ids$|cursor|sign|fingerprint|sum$|csp|sri|version|rev|"
    r"public|cert|modulus|data|src|href|ur[li]|path|class|name|file|image|img|font|icon|test|expect|example|sample|content|body|text|html|svg|"
    r"alphabet|chars|charset|module|import|node|require|resolved|link|ref|tag|trace|span|session|request|key$|cache|build|asset|chunk|page|next|"
    r"continu|identifier|arn|protect|preset|alarm|marker|vector|matrix|payload|result|output|input|message|title|label|param|type|event|color|style|x5c|kid|jti|code_?verifier"
)
# vendor_k3J…: the way services mark their tokens today. Each part of the mark is short.
_MARKED = re.compile(
    r"(?<![\w./+\-])[A-Za-z][a-z0-9]{1,11}(?:[_\-][a-z0-9]{1,12}){0,3}[_\-]([A-Za-z0-9]{20,128})(?![\w./+\-])"
)
_CREDENTIAL = re.compile(
    r"(?:^|[_\-])(?:live|test|prod|dev|sandbox|sk|rk|pat|key|apikey|api|token|tok|secret|sec|auth|access|at|oat|bot|usr)(?:[_\-]|$)"
)
# Marks of things that are no secret: the identifiers of messages, calls, payments, builds.
_THING = re.compile(
    r"(?:^|[_\-])(?:id|ids|msg|message|call|chatcmpl|cmpl|run|step|thread|asst|assistant|file|resp|response|req|request|toolu|tool|batch|evt|event|"
    r"cus|customer|sub|price|prod|product|pi|pm|ch|in|inv|invoice|txn|acct|card|src|seti|cs|org|user|usr|team|proj|project|page|block|doc|img|image|"
    r"chunk|bundle|css|sha\d*|md5|hash|digest|commit|rev|build|v\d+|trace|span|session|sess|cursor|node|gen|snap|vol|job|task|item|obj|pub|public|pk)$"
)
_LEAST_MARKED = 30  # without a word for a credential in the mark
_LEAST = 24
_SEPARATORS = re.compile(r"[_\-/]")
_LEAST_PART = 16  # words and numbers that are joined have shorter parts


def find(text: str, runs: Sequence[tuple[int, int]], work: Work) -> Iterator[FormatMatch]:
    for start, end in runs:
        if end - start < _LEAST:
            continue
        for marked in _MARKED.finditer(text, start, end):
            if _is_marked(marked, work):
                yield FormatMatch(*marked.span(), "marked")
        if text.startswith("arn:", start):
            continue
        given = max(text.rfind("=", start, end - 3), text.rfind(":", start, end)) + 1
        at = given if given > start else start
        value = _VALUE.fullmatch(text, at, end)
        name = _NAME.match(text[max(0, at - _BEFORE) : at][::-1]) if value else None
        if value and name and not _HARMLESS.search(name[1][::-1]) and _judged(value[0], work):
            yield FormatMatch(at, end, "drawn")


def _judged(value: str, work: Work) -> bool:
    """The same as `_is_drawn`, once for each value in a text."""
    verdict = work.judged.get(("drawn", value))
    if verdict is None:
        verdict = work.judged["drawn", value] = _is_drawn(value)
    return verdict


def _is_marked(found: re.Match[str], work: Work) -> bool:
    body = found[1]
    mark = found.string[found.start() : found.start(1) - 1].lower()
    credential = _CREDENTIAL.search(mark) is not None
    if (_THING.search(mark) and not credential) or len(body) < (
        _LEAST if credential else _LEAST_MARKED
    ):
        return False
    return _judged(body, work)


def _is_drawn(value: str) -> bool:
    kinds = (str.isupper, str.islower, str.isdigit)
    longest = max(_SEPARATORS.split(value), key=len)
    if (
        value.count("/") > 3
        or len(longest) < _LEAST_PART
        or shapes.is_words(longest)
        or not all(sum(map(kind, value)) >= 3 for kind in kinds)
    ):
        return False
    if (
        shapes.is_made_up(value)
        or not shapes.is_random(value, _LEAST)
        or shapes.entropy(value) < 3.9
    ):
        return False
    return _unlikely(value) and not encodings.is_readable(value)


def _unlikely(value: str) -> bool:
    """Whether neighbouring letters follow each other as chance has it, not as words do: changes of
    case and of kind all along.
    """
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(value))
    return changes >= 0.38 * len(value) and math.log2(len(set(value))) >= 3.9


def _kind(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2 if char.islower() else 3
