"""Topics that tools depend on, in a person's words: times, other machines, other people.

In a few languages: a user who says none of the words hardly wants such a tool, and one of them is
enough to be offered it. So the words are many, and one too many costs a few tokens.
"""

import re
from typing import Literal

Topic = Literal["time", "machine", "people"]

_WORDS: dict[Topic, re.Pattern[str]] = {
    "time": re.compile(
        r"schedul|remind|\bcron\b|\bevery\b|\beach\b|\b(?:daily|hourly|weekly|monthly|weekdays?|tomorrow|tonight|later|morning|evening"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b|\bin \d+"
        r" ?(?:m|h|d|min|minutes?|hours?|days?|weeks?)\b|\d{1,2}:\d\d\b"
        r"|o'clock|webhook|täglich|stündlich|jede[nrs]?\b|morgen|erinner|demain|rappel|chaque|tous"
        r" les|mañana|recuérd|cada\b",
    ),
    # A worker has a name of its own: "on attic" is about one, and so may be anything that is
    # said to be done on, at or from something.
    "machine": re.compile(
        r"worker|machine|server|remote|computer|laptop|desktop|\bhosts?\b|\bnodes?\b|\bbox\b|\bssh\b"
        r"|\b(?:on|at|from|over|via)\s+(?!(?:it|that|this|the same|all|once|time|top)\b)[\w:-]+"
        r"|rechner|maschine|\bauf\b|ordinateur|serveur|\bsur\b|servidor|máquina|ordenador|počítač"
        r"|stroj|\bna\b",
    ),
    "people": re.compile(
        r"\b(?:send|sent|tell|told|text|notify|post|reply|answer|forward|share|inform|ping|warn|write)"
        r"|messag|\blet\b.{1,40}\bknow\b|slack|discord|telegram|matrix|e-?mails?\b|\bmails?\b|channel"
        r"|\bchat|\bdm\b|schick|send|sag\b|schreib|teile?\b|nachricht|envoy|dis-|dites|préviens"
        r"|message|enví|manda|dile|avisa|pošl|napiš|řekni|zpráv",
    ),
}
_LONGEST = 4_000


def spoken_of(text: str) -> frozenset[Topic]:
    """The topics of something that is said. Only the beginning of a long text is looked at."""
    # A pattern without flags is tried three times as fast.
    lower = text[:_LONGEST].lower()
    return frozenset(topic for topic, words in _WORDS.items() if words.search(lower) is not None)
