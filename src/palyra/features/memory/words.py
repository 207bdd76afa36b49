"""The words a text is found by: folded, stemmed, without those that say nothing. The same for items
and for questions.

How a text is shown to the embedding model, and how what comes back becomes one vector.

A greeting before a fact hides it, and "yes, on Tuesday" says nothing without what was asked. So a
text is looked at twice: as a whole behind the end of what was said before it, and sentence by
sentence. Its vector points between the two.

The rule: what was said before counts only if whoever sees the text sees that too, and goes with it.
"""

import math
import re
import threading
import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import cast

import apsw

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


_local = threading.local()
_STOP = frozenset(
    b"""a about after also an and any are as at be been before being but by can could d did do does for from had has have he her
    hers him his how i if in into is it its just ll m me my no not of on or our re s she should so some t than that the their them
    there these they this those to ve was we were what when where which who whom why will with would you your""".split()  # noqa: E501
)
_ARTICLES = frozenset(("a", "an", "the"))
# Signs that change nothing but the reading; a minus, a plus or a per cent sign is not among them.
_WORDS = re.compile(r"""[^\s.,;:!?"'()„“”‘’…]+""")
_LONGEST = 64
MOST_TERMS = 512


def terms(text: str) -> list[str]:
    """Return the terms in their order; the ones that are there twice, twice."""
    raw = text.encode("utf-8", "replace")
    found = []
    for token in _tokenizer()(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        start, end, stem = cast("tuple[int, int, str]", token)
        if raw[start:end].lower() not in _STOP:
            found.append(stem[:_LONGEST])
            if len(found) == MOST_TERMS:
                break
    return found


def counted(text: str, valid_from_ms: int) -> Counter[str]:
    """An item's words with how often they stand in it; its date is among them."""
    return Counter(terms(dated(text, valid_from_ms)))


def dated(text: str, valid_from_ms: int) -> str:
    """A text with its day before it, as people write it: "last May" is often what is asked for."""
    said = day(valid_from_ms) if valid_from_ms else ""
    return f"{said} {text}" if said else text


def day(time_ms: int) -> str:
    """A day as people write it; nothing if there is no such day."""
    try:
        when = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError):
        return ""
    return f"{when.day} {when:%B %Y}"


def same_key(text: str) -> bytes:
    """Texts with this in common say the same: only case, punctuation, spaces and articles may
    differ.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = [word for word in _WORDS.findall(folded) if word not in _ARTICLES]
    return sha256(" ".join(words or [folded]).encode()).digest()[:16]


def _tokenizer() -> apsw.FTS5Tokenizer:
    # A tokenizer belongs to a connection, and a connection is best left on its thread.
    made = getattr(_local, "tokenizer", None)
    if made is None:
        _local.connection = apsw.Connection(":memory:")
        made = _local.tokenizer = _local.connection.fts5_tokenizer(
            "porter", ["unicode61", "remove_diacritics", "2"]
        )
    assert isinstance(made, apsw.FTS5Tokenizer)
    return made
