"""Words that speak of times."""

import re

# In a few languages: who says none of these hardly wants a schedule, and one of them is enough to
# be offered one.
_TIMELY = re.compile(
    r"schedul|remind|\bcron\b|\bevery\b|\beach\b|\b(?:daily|hourly|weekly|monthly|weekdays?|tomorrow|tonight|later|morning|evening"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b|\bin \d+"
    r" ?(?:m|h|d|min|minutes?|hours?|days?|weeks?)\b|\d{1,2}:\d\d\b"
    r"|o'clock|webhook|täglich|stündlich|jede[nrs]?\b|morgen|erinner|demain|rappel|chaque|tous"
    r" les|mañana|recuérd|cada\b",
    re.IGNORECASE,
)


def speaks_of_time(text: str) -> bool:
    """Return whether something that is said could be about a schedule. Only the beginning of a long
    text is looked at.
    """
    return _TIMELY.search(text, 0, 4_000) is not None
