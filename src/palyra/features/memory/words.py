"""The words a text is found by: folded, stemmed, without those that say nothing. The same for items
and for questions.
"""

import re
import threading
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from typing import cast

import apsw

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
    """In the order they stand; the ones that are there twice, twice."""
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
    if not valid_from_ms:
        return text
    try:
        day = datetime.fromtimestamp(valid_from_ms / 1000, UTC)
    except (OverflowError, ValueError):
        return text
    return f"{day.day} {day:%B %Y} {text}"


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
