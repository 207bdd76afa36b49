"""Likelihood that an item answers a question: it decides whether a run is told of it.

A score says how well an item fits; it does not say that nothing else fits as well, or that the
question has no answer here at all. So the candidates of one question are weighed against each other
and against "none of them", and nearness counts by how much it stands out from the many that are
merely about the same things.

The weights were fitted on one half of the questions of `bench/memory_facts.py`, `memory_notes.txt`,
`memory_sayings.txt` and of a recorded conversation; `python -m bench told` measures all of it.
"""

import math
import re
from collections.abc import Sequence

from palyra.features.memory.model import Found

# Of each question so many candidates are weighed.
WEIGHED = 16
# Those behind the fifth are what is near without being meant.
_BEHIND = 5
_USUAL_BACKGROUND = 0.23
_MEANING = 21.5
_WORDS = 7.0
_BACKGROUND = -14.5
_KIND = 1.0
_NONE = 6.0
# While an item has no vector: see the search.
_GUESSED_MEANING = 0.6
# A run is told what is at least so likely, and not much less likely than the best.
TOLD_FROM = 0.2
_OF_THE_BEST = 0.4
# Below that, it is told with a word of doubt.
SURE_FROM = 0.5

_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    r"fifteen|sixteen|twenty|thirty|forty|fifty|hundred|half|quarter|once|twice|dozen)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|"
    r"july|august|september|october|november|december|spring|summer|autumn|winter|christmas|easter|"
    r"mornings?|evenings?|nights?|weeks?|months?|years?|days?|daily|weekly|monthly|nightly|yearly|"
    r"tomorrow|yesterday|today|noon|midnight|weekends?)\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?<=[\w,;:] )[A-Z]\w+|\b(?:mother|father|brother|sister|aunt|uncle|husband|wife|team|boss)\b"
)
_PLACE = re.compile(
    r"\b(?:in|at|on|by|under|behind|near|next to|from|to|with|inside|above|below)\b", re.IGNORECASE
)
# What a question asks for, in English; of other questions nothing is said.
_KINDS = (
    (re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE), _NAME),
    (
        re.compile(
            r"\b(?:when|what (?:time|day|date)|which (?:day|night|month|year)|deadline|"
            r"how (?:soon|long|often|far back))\b",
            re.IGNORECASE,
        ),
        _TIME,
    ),
    (
        re.compile(r"\bhow (?:much|many|old|heavy|tall|high|big|fast|large)\b", re.IGNORECASE),
        _NUMBER,
    ),
    (re.compile(r"\bwhere\b", re.IGNORECASE), _PLACE),
)
_LONGEST_READ = 2_000


def of(question: str, found: Sequence[Found]) -> list[float]:
    """Return for each candidate, best first, the likelihood that the question asks for it; 0 behind
    the sixteenth. What is missing to 1 is the likelihood that there is no answer.
    """
    weighed = found[:WEIGHED]
    if not weighed:
        return []
    nearness = [_nearness(each) for each in weighed]
    behind = sorted(nearness, reverse=True)[_BEHIND:]
    background = sum(behind) / len(behind) if len(behind) >= _BEHIND else _USUAL_BACKGROUND
    asked = _asked_for(question[:_LONGEST_READ])
    logits = [
        _MEANING * near
        + _WORDS * each.parts.words**2
        + _BACKGROUND * background
        + _KIND * _kind(asked, each.item.text)
        - _NONE
        for near, each in zip(nearness, weighed, strict=True)
    ]
    most = max(0.0, *logits)
    shares = [math.exp(each - most) for each in logits]
    total = sum(shares) + math.exp(-most)
    return [round(each / total, 4) for each in shares] + [0.0] * (len(found) - len(weighed))


def told(likely: Sequence[float]) -> list[int]:
    """Return which of the candidates a run is told, the likeliest first."""
    order = sorted(range(len(likely)), key=lambda at: -likely[at])
    least = max(TOLD_FROM, _OF_THE_BEST * likely[order[0]]) if order else 1.0
    return [at for at in order if likely[at] >= least]


def _nearness(each: Found) -> float:
    return each.parts.meaning if each.item.embedded else _GUESSED_MEANING * each.parts.words


def _asked_for(question: str) -> re.Pattern[str] | None:
    return next((answer for asked, answer in _KINDS if asked.search(question)), None)


def _kind(asked: re.Pattern[str] | None, text: str) -> int:
    if asked is None:
        return 0
    return 1 if asked.search(text[:_LONGEST_READ]) else -1
