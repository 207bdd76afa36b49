"""Exact values the vault holds, in every spelling they travel in. They need no judgement: wherever
one stands, it goes.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

# Where a word ends: at a blank, or anywhere in a script that does not put blanks between words.
BREAK = re.compile(r"[\s\u0e00-\u0eff\u1780-\u17ff\u2e80-\U0010ffff]")
SHORTEST = 4
SHORTEST_ENCODED = 6
# What can stand in a text of plain, short words; see `StreamRedactor`.
_WORDS = re.compile(r"[A-Za-z']{0,15}(?:[\s,.!?;()]+[A-Za-z']{0,15})*")
_BASE64_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


class KnownValues:
    """The spellings of a set of values. Values shorter than four characters are left out: they
    would redact ordinary words.
    """

    __slots__ = ("_encoded", "_plain", "broken", "values", "wordlike")

    def __init__(self, values: Iterable[str]) -> None:
        self.values = frozenset([value for value in values if len(value.strip()) >= SHORTEST])
        self._plain: list[tuple[str, str]] = []
        self._encoded: list[tuple[str, str]] = []
        self.broken: tuple[str, ...] = ()
        self.wordlike = False
        if self.values:
            self._spell()

    def _spell(self) -> None:
        plain = {spelling: value for value in self.values for spelling in _spellings(value)}
        self._plain = sorted(plain.items(), key=lambda item: -len(item[0]))
        encoded = {
            core: value
            for value in self.values
            if len(value) >= SHORTEST_ENCODED
            for core in _base64_cores(value.encode())
        }
        self._encoded = sorted(encoded.items(), key=lambda item: -len(item[0]))
        # Spellings with a break inside: a stream must not let go of their beginning word by word.
        self.broken = tuple(spelling for spelling in plain if BREAK.search(spelling))
        # Whether a text of nothing but plain words may hold one.
        self.wordlike = bool(self.broken) or any(
            _WORDS.fullmatch(spelling) for spelling in (*plain, *encoded)
        )

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and the value itself, of which the text may hold a spelling."""
        for spelling, value in self._plain:
            at = text.find(spelling)
            while at >= 0:
                yield at, at + len(spelling), value
                at = text.find(spelling, at + len(spelling))
        for core, value in self._encoded:
            at = text.find(core)
            while at >= 0:
                start, end = at, at + len(core)
                # The characters beside the core carry some of its bits.
                start -= start > 0 and text[start - 1] in _BASE64_ALPHABET
                end += end < len(text) and text[end] in _BASE64_ALPHABET
                yield start, end, value
                at = text.find(core, at + len(core))


class Learned:
    """What a redactor and all that were made from it learn while they work. Swapped as a whole, so
    that any thread may look.
    """

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known = KnownValues(())


def _spellings(value: str) -> set[str]:
    found = {value, value.strip()}
    if len(value) < SHORTEST_ENCODED:
        return found
    data = value.encode()
    dumped = json.dumps(value)[1:-1]
    found |= {
        dumped,
        dumped.replace("/", "\\/"),
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(dumped)[1:-1],
    }
    for encoded in (quote(value, safe=""), quote(value), quote_plus(value)):
        found |= {encoded, _lower_escapes(encoded)}
    # Escapes byte by byte read as one character a byte.
    return found | {data.hex(), data.hex().upper(), data.decode("latin-1")}


def _lower_escapes(encoded: str) -> str:
    head, *rest = encoded.split("%")
    return head + "".join("%" + part[:2].lower() + part[2:] for part in rest)


def _base64_cores(data: bytes) -> set[str]:
    """What base64 makes of `data` inside a larger text: one core per alignment, without the
    characters its neighbours share.
    """
    cores = set()
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(b"\0" * shift + data).decode()
        core = encoded[first : (shift + len(data)) * 8 // 6]
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return cores
