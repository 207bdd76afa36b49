"""Literals and patterns that a text may hold, found in one pass over a long text.

The automata of RE2 read a text once for many literals together. They are made when the first long
text comes: a daemon at rest does not hold them. Short texts are faster without.
"""

import functools
import re
from collections.abc import Iterable
from typing import Any

_LONG = 2_048
_BUNCH = 12
# Much text holds one of these. They are looked for one by one, so that the rest is seldom there.
_COMMON = frozenset(
    (
        *("*", "@", "::", "://", "(p", "/p", "{s", "00", "0x", "assword", "auth", "aws", "cod"),
        *("connect", "cred", "crypt", "fill", "hook", "http", "kty", "pass", " pass ", "password"),
        *("pin", "root", "root ", "send ", "sig", "token", "user"),
    )
)


class Literals:
    """Literals in lower case that are looked for together."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._places = {each: place for place, each in enumerate(dict.fromkeys(literals))}
        self._common = tuple(each for each in self._places if each in _COMMON)
        self._rare = tuple(each for each in self._places if each not in _COMMON)

    def within(self, lower: str) -> dict[str, None]:
        """Return those that a text in lower case holds, in the order they were given in."""
        if len(lower) < _LONG:
            return dict.fromkeys(each for each in self._places if each in lower)
        held = [each for each in self._common if each in lower]
        text = _bytes(lower)
        if _any_of(self._rare).search(text):
            for at in range(0, len(self._rare), _BUNCH):
                bunch = self._rare[at : at + _BUNCH]
                if _any_of(bunch).search(text):
                    held += (each for each in bunch if each in lower)
        return dict.fromkeys(sorted(held, key=self._places.__getitem__))


class Prefilter:
    """A pattern of ASCII that RE2 knows as well: says quickly of a long text that it has no
    match.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._slow = re.compile(pattern)

    def may_match(self, text: str) -> bool:
        if len(text) < _LONG:
            return self._slow.search(text) is not None
        return _compiled(self._pattern.encode()).search(_bytes(text)) is not None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@functools.cache
def _any_of(literals: tuple[str, ...]) -> Any:
    import re2  # type: ignore[import-untyped]

    return _compiled(b"|".join(re2.escape(_bytes(each)) for each in literals))


@functools.cache
def _compiled(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    # Byte by byte: what is no text matches nothing, and stops nothing.
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)
