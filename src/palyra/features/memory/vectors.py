"""How a text is shown to the embedding model, and how what comes back becomes one vector.

A greeting before a fact hides it, and "yes, on Tuesday" says nothing without what was asked. So a
text is looked at twice: as a whole behind the end of what was said before it, and sentence by
sentence. Its vector points between the two.

The rule: what was said before counts only if whoever sees the text sees that too, and goes with it.
"""

import math
import re
from array import array
from collections.abc import Sequence

_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_SPEAKER = re.compile(r"^[^\s:.!?][^:.!?\n]{0,40}: ")
_BEFORE = 300
_MOST_SENTENCES = 8


def views(text: str, before: str = "") -> list[str]:
    """The whole first, then its sentences, each with the speaker's name; one alone if there is
    nothing else to see.
    """
    named = _SPEAKER.match(text)
    speaker = named[0] if named else ""
    sentences = [each for each in _END.split(text[len(speaker) :]) if each.strip()]
    if len(sentences) > _MOST_SENTENCES:
        step = -(-len(sentences) // _MOST_SENTENCES)
        sentences = [" ".join(sentences[at : at + step]) for at in range(0, len(sentences), step)]
    if not before and len(sentences) <= 1:
        return [text]
    whole = f"{before[-_BEFORE:]} {text}" if before else text
    return [whole, *(speaker + each for each in sentences or [text])]


def between(vectors: Sequence[bytes]) -> bytes:
    """One vector of length 1 for all views of a text: between the whole and the mean of its
    sentences.
    """
    if len(vectors) == 1:
        return vectors[0]
    whole, *sentences = (array("f", each) for each in vectors)
    mean = _unit([sum(column) for column in zip(*sentences, strict=True)])
    return array(
        "f", _unit([one + other for one, other in zip(whole, mean, strict=True)])
    ).tobytes()


def _unit(elements: list[float]) -> list[float]:
    length = math.hypot(*elements) or 1.0
    return [each / length for each in elements]
