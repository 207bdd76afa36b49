"""Tokens that nobody's format describes and that look drawn at random: behind a mark, as
`vendor_k3J…`, or given to a name that says nothing, as `shodan = "k3J…"`.

How likely a marked token is to be a credential, a logistic regression says. Its weights are
learned by `python -m bench.redaction_training`, on tokens of half of the vendors and on code.
Digests, identifiers and pictures look drawn too: they are known by their mark, by the name in front
of them, or by how they begin.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from palyra.core.redaction import encodings, formats, shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.shapes import UNREAD, Work

# One word of a mark: vendor, API, v1, eu1.
_PART = r"(?:[a-z]{1,12}\d{0,2}|[A-Z]{2,10}\d{0,2}|[A-Z][a-z]{2,11}|[a-z]{1,3}\d[a-z]\d{0,2})"
MARKED = re.compile(
    rf"(?<![\w./+\-@%]){_PART}(?:[_\-.]{{1,2}}{_PART}){{0,3}}[_\-.]{{1,2}}"
    r"([A-Za-z0-9][A-Za-z0-9_\-+/.]{14,254}[A-Za-z0-9])={0,2}(?![\w./+\-]\w|\()"
)
# Marks that mean nothing but a credential, and those of things: of messages, calls, builds.
_CREDENTIAL = re.compile(
    r"(?:^|[_\-.])(?:live|test|prod|production|dev|sandbox|staging|sk|rk|pat|key|apikey|api|token"
    r"|tok|tkn|secret|sec|auth|oauth|access|at|oat|bot|usr|pass|priv|private|admin|svc|service"
    r"|server|cred|sdk)[_\-.]"
)
_THING = re.compile(
    r"(?:^|[_\-.])(?:id|ids|msg|message|call|chatcmpl|cmpl|run|step|thread|asst|assistant|file|resp|response|req|request|toolu|tool|batch|evt|event|"
    r"cus|customer|sub|price|prod|product|pi|pm|ch|in|inv|invoice|txn|acct|card|src|seti|cs|org|user|usr|team|proj|project|page|block|doc|img|image|"
    r"chunk|bundle|css|sha\d*|md5|hash|digest|commit|rev|build|trace|span|session|sess|cursor|node|gen|snap|vol|job|task|item|obj|pub|public|pk|db|vpc|subnet|sg|eni|i|ami|wrkspc|ws|workspace|group)[_\-.]+$"
)
# A key or a token of these is handed on in the open.
_OPEN = re.compile(
    r"(?:cache|row|sort|partition|range|object|idempotency|dedup|shard|routing|next|page|request)"
    r"[_\-.](?:key|token)[_\-.]+$"
)
# name = "value" and --name value, read backwards from the value: what stands between, and the name.
_NAME = re.compile(
    r"[\"'`]?(?:[ \t]{0,4}(?:>?=:?|:)[ \t]{0,4}[\"'\]]{0,2}([\w.\-]{1,48})| {1,4}([\w\-]{1,40})--)"
)
# Service("value"), read backwards: what is made with one opaque string takes a credential.
_MADE = re.compile(r"[\"'`]\(([A-Za-z0-9_]{1,40}[A-Z])(?=[ \t.=(:,;\n]|\Z)")
_BEFORE = 64
# Names of what looks drawn and is no secret.
_HARMLESS = re.compile(
    r"(?i)^z?h\d?$|(?:^|_)(?:sum|total|count|avg)|sha\d*|hash|digest|integrity|checksum|etag|nonce|commit|uuid|guid|(?:^|[_\-.a-z])id$|ids$|cursor|sign|fingerprint|sum$|csp|sri|version|rev|"
    r"public|cert|modulus|data|src|href|ur[li]|path|class|name|file|image|img|font|icon|test|expect|example|sample|content|body|text|html|svg|"
    r"alphabet|chars|charset|module|import|node|require|resolved|link|ref|tag|trace|span|session|request|key$|cache|build|asset|chunk|page|next|"
    r"continu|identifier|arn|protect|preset|alarm|marker|vector|matrix|payload|result|output|input|message|title|label|param|type|event|color|style|x5c|kid|jti|code_?verifier"
)
_DRAWN_VALUE = re.compile(
    r"(?=[^=]*[A-Z])(?=[^=]*[a-z])(?=[^=]*[0-9])[A-Za-z0-9_\-+/]{24,128}={0,2}"
)
# An identifier that begins with the time, and the name of a constant.
_TIMED = re.compile(r"0[01][A-Za-z0-9]{22,24}")
_CONSTANT = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)+")
_LEAST, _LEAST_VALUE = 18, 24
_OF_EACH = 3  # capitals, small letters and digits, so many at least
_SEPARATORS = re.compile(r"[_\-/]")
_SEPARATED = re.compile(r"[_\-/+.]+")
_LEAST_PART = 16  # words and numbers that are joined have shorter parts
_JUDGEMENT = 48  # units of work
_LONG, _PART_LONG, _SHORT = 64, 32, 20

# What `features` counts, each with its weight.
WEIGHTS = {
    "one": 0.80,
    "long": 1.81,
    "short": -2.67,
    "longest part": 2.23,
    "changes": 4.32,
    "fluency": -2.80,
    "spread": -0.08,
    "digits": 0.76,
    "capitals": 4.11,
    "small": -2.78,
    "of each": -2.02,
    "one case": 0.19,
    "no digit": -0.69,
    "words": -5.63,
    "parts": -2.73,
    "slashes": -2.39,
    "dots": -1.97,
    "credential": -0.12,
    "named": 1.21,
    "quoted": 1.30,
}
_SURE = 1.0


def find(text: str, runs: Sequence[tuple[int, int]], work: Work) -> Iterator[FormatMatch]:
    for start, end in runs:
        if end - start < _LEAST:
            continue
        for marked in MARKED.finditer(text, start, end):
            if work.left < 0:
                yield FormatMatch(marked.start(), len(text), UNREAD)
                return
            if _is_credential(marked, work):
                yield FormatMatch(*marked.span(), "marked")
        if end - start >= _LEAST_VALUE and not text.startswith("arn:", start):
            yield from _value(text, start, end, work)


def _value(text: str, start: int, end: int, work: Work) -> Iterator[FormatMatch]:
    """Yield what is given to a name that says nothing."""
    at = max(text.rfind("=", start, end - 3), text.rfind(":", start, end)) + 1 or start
    value = _DRAWN_VALUE.fullmatch(text, at, end)
    if value is None or text.startswith("(", end):
        return  # a call
    before = text[max(0, at - _BEFORE) : at][::-1]
    name = _NAME.match(before) or _MADE.match(before)
    if name and not _HARMLESS.search(_said(name)) and _judged(value[0], work):
        yield FormatMatch(at, end, "drawn")


def _said(name: re.Match[str]) -> str:
    return (name[1] or name[2])[::-1]


def _judged(value: str, work: Work) -> bool:
    """The same as `_is_drawn`, once for each value in a text."""
    asked = ("drawn", value)
    verdict = work.judged.get(asked)
    if verdict is None:
        verdict = work.judged[asked] = _is_drawn(value)
    return verdict


def _is_drawn(value: str) -> bool:
    longest = max(_SEPARATORS.split(value), key=len)
    if (
        value.count("/") > 3
        or len(longest) < _LEAST_PART
        or shapes.is_words(longest)
        or not all(sum(map(kind, value)) >= _OF_EACH for kind in _KINDS)
    ):
        return False
    if (
        shapes.is_made_up(value)
        or not shapes.is_random(value, _LEAST_VALUE)
        or shapes.entropy(value) < 3.9
    ):
        return False
    # Neighbours follow each other as chance has it: changes of case and of kind all along.
    is_unlikely = _changes(value) >= 0.38 * len(value) and math.log2(len(set(value))) >= 3.9
    return is_unlikely and not encodings.is_readable(value)


_KINDS = (str.isdigit, str.isupper, str.islower)


def _changes(value: str) -> int:
    return sum(_kind(a) != _kind(b) for a, b in pairwise(value))


def _kind(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2 if char.islower() else 3


def _is_credential(marked: re.Match[str], work: Work) -> bool:
    """Return whether a marked token is a credential; the same token is judged once."""
    verdict = work.judged.get((marked[0],))
    if verdict is None:
        work.spend(_JUDGEMENT)
        counted = features(marked)
        verdict = work.judged[marked[0],] = (
            counted is not None
            and sum(WEIGHTS[name] * value for name, value in counted.items()) > _SURE
        )
    return verdict


def features(marked: re.Match[str], *, any_vendor: bool = False) -> dict[str, float] | None:
    """Return what is counted of a marked token, None if something rules it out. Where its vendor's
    format is known, that format has decided, unless it may be of `any_vendor`.
    """
    token, body = marked[0], marked[1]
    begin = token[: marked.start(1) - marked.start()]
    mark = begin.lower()
    is_credential = _CREDENTIAL.search(mark) is not None and not _OPEN.search(mark)
    known = not any_vendor and formats.known_marks().search(begin) is not None
    if known or (not is_credential and (_THING.search(mark) or _OPEN.search(mark))):
        return None
    before = marked.string[max(0, marked.start() - _BEFORE) : marked.start()][::-1]
    name = _NAME.match(before)
    if name is not None and not is_credential and _HARMLESS.search(_said(name)):
        return None
    if (
        shapes.is_filler(token)
        or shapes.stands_for_value(token)
        or shapes.is_hashed(token)
        or shapes.is_made_up(body)
        or shapes.is_words(body)
        or _TIMED.fullmatch(body)
        or _CONSTANT.fullmatch(token)
        or "arn:" in before[::-1]
    ):
        return None
    parts = _SEPARATED.split(body)
    longest = max(parts, key=len)
    size = len(body)
    digits, capitals, small = (sum(map(kind, body)) for kind in _KINDS)
    return {
        "one": 1.0,
        "long": min(size, _LONG) / _LONG,
        "short": float(size < _SHORT),
        "longest part": min(len(longest), _PART_LONG) / _PART_LONG,
        "changes": _changes(body) / size,
        "fluency": shapes.fluency(body) / 6,
        "spread": shapes.entropy(body) / math.log2(min(size, _LONG)),
        "digits": digits / size,
        "capitals": capitals / size,
        "small": small / size,
        "of each": float(min(digits, capitals, small) > 1),
        "one case": float(digits > 0 and (capitals == 0) != (small == 0)),
        "no digit": float(digits == 0),
        "words": float(shapes.is_words(longest)),
        "parts": min(len(parts) - 1, 6) / 6,
        "slashes": min(body.count("/"), 4) / 4,
        "dots": min(body.count("."), 4) / 4,
        "credential": float(is_credential),
        "named": float(name is not None),
        "quoted": float(before[:1] in ("'", '"', "`") and before != ""),
    }
