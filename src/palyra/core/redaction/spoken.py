"""Values that a sentence, a label on a line of its own or a list gives to a name: `das Passwort für
den Server lautet …`, `Client Secret⏎…`, `["--requirepass", "…"]`.

What stands behind the name is read word by word; the first that is no plain word is the value, if
it is likely to be one. How likely, a logistic regression says, from how it is written and from what
stands between. Its weights are learned by `python -m bench.redaction_training`.
"""

import re
from typing import NamedTuple

from palyra.core.redaction import formats, shapes, values
from palyra.core.redaction.shapes import Work
from palyra.core.redaction.values import Kind

_WORD = r"[^\W\d_]++(?:['’\-][^\W\d_]++)*+(?=[\s\"'`<>()\[\]{},;|:=*]|\Z)"
_BETWEEN = re.compile(
    rf"(?:[ \t]*+(?:{_WORD}|->|=>|-(?!-)|[:=：→\"'`*(|\[{{}}><,;]|/[A-Za-z]{{1,3}}(?=[ \t])))"
    r"{0,16}+[ \t]*+"
    r"(?:(?:\r?\n[ \t]*+){1,2}+(?:[\"'`*\-][ \t]?|[\w.\-]{1,32}+:[ ]++)?+)?+"
    r"(?=[^\s\"'`<>()\[\]{},;|]{0,64}\d)([^\s\"'`<>()\[\]{},;|]{5,128})(?![^\s\"'`<>()\[\]{},;|])"
)
_WORDS = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
# What gives a value, in signs and in words.
_GIVES = re.compile(
    r"[:=：→]|->|=>|(?<!\w)(?:is|was|ist|war|lautet|est|es|era|é|è|jest|je|är|er|to|now)(?!\w)"
)
_NAME, _NAMED, _FEW_DIGITS = re.compile(r"[\w.+/\-]*"), 48, 2
_VERB = re.compile(r"(?<![\w\-])pass\Z")
_PAIR = re.compile(r"[A-Za-z][\w.@\-]{1,32}[:/](?=[^:/]{5,}\Z)")
_SIGN = re.compile(r"[:=：→]|->")
_STOPS = re.compile(r"[,;]")
_REACH, _LINE = 112, 104
# A line that is a label, read backwards from the line behind it.
_LABEL = re.compile(r"(?:[ \t]{1,4}:[\w.\-]{1,32})?[\s\"'`*\-]{0,24}\n[^\n\d]{2,96}(?:\n|\Z)")
_LEAST = 5
_LOOKED_AT, _JUDGEMENT = 7, 40  # units of work
_CODE = re.compile(
    r"[(){}\[\]\\]|::|->|\w=\w|^[#@$%&*.]|^\d+(?:[\-.]?[a-z]{1,3}|-?(?:bits?|bytes?|dimensional))$"
    r"|^[a-z]{1,5}[\-_]?\d{1,4}$|@.*\."
)
_INSIDE = re.compile(r"[A-Za-z]\d{1,3}(?=[A-Za-z])")  # digits inside of a word
_AT_THE_END = re.compile(r"[A-Za-z]\d{1,4}[^A-Za-z0-9]*$")
_CASES = re.compile(r"[a-z][A-Z]")
_MARKS = "!#$%^&*?@~+"
_TRIMMED = ".,:;?"

# What `features` counts, each with its weight.
WEIGHTS = {
    "one": -1.88,
    "size": 0.60,
    "short": -2.77,
    "inside": 0.89,
    "at the end": 0.09,
    "digits": 2.78,
    "letters": 1.00,
    "marks": -0.32,
    "mark last": -0.63,
    "cases": 0.24,
    "both": 0.89,
    "title": -0.40,
    "capitals": 0.01,
    "fluency": -0.11,
    "dots": -0.85,
    "dashes": -1.00,
    "lines": -0.15,
    "slashes": -1.74,
    "colon": -1.29,
    "words": -1.56,
    "random": 1.26,
    "between": -1.55,
    "beside": -0.49,
    "given": 0.20,
    "below": -1.06,
    "quoted": -0.53,
    "password": 4.88,
    "secret": 1.15,
    "paired": 1.51,
}
_SURE = 0.9


class Guess(NamedTuple):
    """What may be the value of a name, and what stands between the two."""

    start: int
    text: str
    between: str
    kind: Kind
    quoted: bool
    paired: bool  # with a user in front


def likely(text: str, at: int, kind: Kind, work: Work) -> tuple[int, int] | None:
    """Return where the value of the name that ends at `at` stands."""
    found = guess(text, at, kind)
    if found is None or not work.spend(_LOOKED_AT) or not _judged(found, work):
        return None
    return found.start, found.start + len(found.text)


def _judged(found: Guess, work: Work) -> bool:
    """Return whether the score is high enough; the same guess is judged once."""
    asked = found[1:]
    verdict = work.judged.get(asked)
    if verdict is None:
        if not work.spend(_JUDGEMENT):
            return False
        counted = features(found)
        verdict = (
            counted is not None
            and sum(WEIGHTS[each] * value for each, value in counted.items()) > _SURE
            # Where the format of a token is known, that format has decided.
            and formats.known_marks().match(found.text) is None
        )
        work.judged[asked] = verdict
    return verdict


def guess(text: str, at: int, kind: Kind) -> Guess | None:
    """Return what could be the value, None if something rules it out."""
    found = _BETWEEN.match(text, at, at + _REACH)
    if found is None or (found.end() == at + _REACH and found.end() < len(text)):
        return None
    start = found.start(1)
    body = found[1].rstrip(_TRIMMED)
    between = text[at:start]
    if len(body) < _LEAST:
        return None
    if "\n" in between and not _LABEL.match(text[max(0, at - _LINE) : start][::-1]):
        return None  # the value of a label stands below it, that of a sentence does not
    if between in ("", "|") or "::" in between:
        return None  # part of the name, one of several names, the name of a type
    if _VERB.search(text, max(0, at - 6), at) and not _SIGN.search(between):
        return None
    if pair := _PAIR.match(body):  # user:password, user/password
        start, body = start + pair.end(), body[pair.end() :]
    if text[found.end() : found.end() + 1] in ("(", "["):
        return None  # a call, an index
    quoted = text[found.start(1) - 1] in "\"'`"
    if values.VERSION.match(body) or (not quoted and values.VARIABLE.fullmatch(body)):
        return None
    name = _NAME.match(text[max(0, at - _NAMED) : at][::-1])
    if name and sum(map(str.isdigit, name[0])) > _FEW_DIGITS:
        return None  # in the middle of an identifier
    return Guess(start, body, between, kind, quoted, pair is not None)


def features(guessed: Guess) -> dict[str, float] | None:
    """Return what is counted of a guess, None if it is something else than a value."""
    body, between = guessed.text, guessed.between
    if (
        not (body.isascii() and any(map(str.isalpha, body)) and any(map(str.isdigit, body)))
        or _CODE.search(body)
        or values.is_no_value(body)
        or shapes.is_sequence(body)
        or (guessed.kind in ("key", "owned") and shapes.UUID.fullmatch(body))
        or values.names_a_key(body)
        or shapes.names_itself(body)
    ):
        return None
    size = len(body)
    given = 0.0
    for sign in _GIVES.finditer(between):
        given = float(_STOPS.search(between, sign.end()) is None)
    words = len(_WORDS.findall(between))
    capital, small = any(map(str.isupper, body)), any(map(str.islower, body))
    return {
        "one": 1.0,
        "size": min(size, 24) / 24,
        "short": float(size < 8),
        "inside": min(len(_INSIDE.findall(body)), 3) / 3,
        "at the end": float(_AT_THE_END.search(body) is not None),
        "digits": sum(map(str.isdigit, body)) / size,
        "letters": sum(map(str.isalpha, body)) / size,
        "marks": min(sum(body.count(mark) for mark in _MARKS), 3) / 3,
        "mark last": float(body[-1] in _MARKS),
        "cases": min(len(_CASES.findall(body)), 3) / 3,
        "both": float(capital and small),
        "title": float(body[0].isupper()),
        "capitals": float(body.isupper()),
        "fluency": shapes.fluency(body) / 6,
        "dots": min(body.count("."), 3) / 3,
        "dashes": min(body.count("-"), 3) / 3,
        "lines": min(body.count("_"), 3) / 3,
        "slashes": min(body.count("/"), 3) / 3,
        "colon": float(":" in body),
        "words": float(shapes.is_words(body)),
        "random": float(shapes.is_random(body)),
        "between": min(words, 6) / 6,
        "beside": float(words == 0),
        "given": given,
        "below": float("\n" in between),
        "quoted": float(guessed.quoted),
        "password": float(guessed.kind == "password"),
        "secret": float(guessed.kind == "secret"),
        "paired": float(guessed.paired),
    }
