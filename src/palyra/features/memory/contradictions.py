"""Contradictions: two statements that give the same thing another value, as "the server listens on
port 5433" and "… on port 5440", "Anna lives in Brno" and "Anna moved to Lisbon".

The rule: a thing must have one value at a time for that. Where it only may have ("my brother is
Radek", "my brother is Pavel"), a person is asked; about everything else nothing is said: two facts
that stand beside each other cost less than one that was lost. The rules read English.
"""

import re
from hashlib import sha256
from typing import Literal

from msgspec import Struct

Verdict = Literal["other", "unclear"]

_LONGEST = 400
_LEAD = re.compile(
    r"^(?:(?:correction|update|actually|btw|by the way|from now on|as of (?:today|now)|now|"
    r"currently|remember(?: that)?|note(?: that)?)\s*[:,]?\s+)+",
    re.IGNORECASE,
)
_ADVERB = re.compile(r"\b(?:now|currently|actually|already|since then|these days|today)\b\s*", re.I)
_WHO = r"(?P<who>i|we|[^\s,;:]+(?:\s[^\s,;:]+){0,7}?)"
# Where somebody lives, works or studies: one place at a time.
_LIVES = re.compile(
    rf"^{_WHO}\s+(?:(?P<verb>live|work|study|teach)(?:s|ies)?\s+(?P<place>in|at|for|near)|"
    r"(?P<moved>(?:ha(?:s|ve)\s+)?moved)\s+to)\s+(?P<value>.+)$",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"^{_WHO}\s+(?:is|are|was|were)\s+(?P<verb>called|named|led by|owned by|run by|managed by|"
    r"based in|located (?:in|at)|due on|due by|set to)\s+(?P<value>.+)$",
    re.IGNORECASE,
)
_PREFERS = re.compile(
    rf"^{_WHO}\s+prefers?\s+(?P<one>[^,;]{{1,60}}?)\s+(?:to|over|rather than)\s+"
    r"(?P<other>[^,;]{1,60})$",
    re.IGNORECASE,
)
_SINGLE = re.compile(
    r"(?:.*\bfavou?rite\s.+|.*\b(?:name|address|e-?mail|phone|number|birthday|age|port|password|pin|code|"
    r"branch|version|deadline|budget|limit|price|rent|salary|size|colou?r|region|bank|employer|boss|"
    r"manager|landlord|doctor|dentist|accountant|lawyer|wife|husband|spouse|partner|capital|owner|"
    r"lead|maintainer|default|status|licen[cs]e|locale|time ?zone|editor|shell|framework))",
    re.IGNORECASE,
)
_IS = re.compile(
    rf"^{_WHO}\s+(?P<verb>is|are|costs?|takes?|begins?|starts?|ends?|opens?|closes?|leaves?|"
    r"expires?|listens|runs?|has|have)\b\s*(?P<value>.+)$",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"[+-]?\d[\d.,:/-]*\s?(?:%|am\b|pm\b)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*){0,3}")
_PUNCTUATION = re.compile(r"[^\w#%./:@-]+")


class Claim(Struct, frozen=True):
    """Subject of a statement, and the value it gives. `sure`: it has one value at a time."""

    about: str
    value: str
    sure: bool

    @property
    def key(self) -> bytes:
        """The same for all that is said about the same."""
        return sha256(self.about.encode()).digest()[:12]


def claim(text: str) -> Claim | None:
    """Return a statement's claim, if it is one that a later one can contradict."""
    plain = " ".join(text.split()).rstrip(".! ")
    if len(plain) > _LONGEST or plain.endswith("?"):
        return None
    plain = _ADVERB.sub("", _LEAD.sub("", plain)).strip()
    if found := _LIVES.match(plain):
        # For a firm and at a firm are the same, and neither is a town.
        place = (found["place"] or "in").casefold().replace("for", "at")
        verb = f"{found['verb'] or 'live'} {place}"
        return _claim(found["who"], verb, found["value"], sure=True)
    if found := _PREFERS.match(plain):
        one, other = sorted((_normal(found["one"]), _normal(found["other"])))
        return _claim(found["who"], f"prefer {one} or {other}", found["one"], sure=True)
    if found := _CALLED.match(plain):
        return _claim(found["who"], _normal(found["verb"]), found["value"], sure=True)
    found = _IS.match(plain)
    if found is None:
        return None
    who, verb, value = found["who"], found["verb"], found["value"]
    is_said = verb.casefold() in ("is", "are")
    if is_said and _SINGLE.fullmatch(who):
        return _claim(who, "is", value, sure=True)
    if _NUMBERS.search(value):
        # The same words around other numbers.
        return _claim(who, f"{verb} {_NUMBERS.sub('#', value)}", value, sure=True)
    if is_said and _NAME.fullmatch(value):
        return _claim(who, "is name", value, sure=False)
    return None


def judge(one: Claim, other: Claim) -> Verdict | None:
    """Return the verdict if they give the same thing another value."""
    if one.about != other.about or one.value == other.value:
        return None
    return "other" if one.sure and other.sure else "unclear"


def _claim(who: str, verb: str, value: str, *, sure: bool) -> Claim:
    return Claim(f"{_normal(who)}|{_normal(verb)}", _normal(value), sure)


def _normal(text: str) -> str:
    words = _PUNCTUATION.sub(" ", text.casefold()).split()
    return " ".join(word for word in words if word not in ("the", "a", "an"))
