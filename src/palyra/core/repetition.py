"""Notices a reply that repeats itself without end. Linear, with memory for a few thousand
characters.

Two signs: the text has become periodic to the letter, or its words are the same few phrases again
and again, which shows in how small it can be packed. Tables, lists, code and logs repeat words, but
not for pages without anything new.
"""

import re
import zlib
from typing import Final

from palyra.core.messages import Channel

# Looked at after so many new characters.
_EVERY: Final = 1_024
_WINDOW: Final = 16_384
_PROBE: Final = 64
# So many characters with one period, so often. Runs of a few characters are lines, dots and zeros:
# they may be longer.
_PERIODIC: Final = 8_000
_PERIODIC_SHORT: Final = 12_000
_SHORT: Final = 16
_LEAST_TIMES: Final = 10
# Text that can be packed into so small a part of its size is looked at closely: do its last words
# have so few different phrases?
_PACKED: Final = 12
_WORDS: Final = 1_500
_PHRASE: Final = 6
_FEW: Final = 120
# So much of a reply is kept at least, to show what it was like.
_KEPT: Final = 200
_WORD: Final = re.compile(r"\w+")
_LETTER: Final = re.compile(r"[^\W\d_]")


class RepeatsItself(Exception):
    """A reply has begun to repeat itself: of the channel, so many characters are worth keeping."""

    def __init__(self, channel: Channel, keep: int) -> None:
        super().__init__(f"the {channel} repeats itself")
        self.channel = channel
        self.keep = keep


class RepetitionDetector:
    """Raises RepeatsItself once a channel of a reply repeats itself."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Channel = channel
        self._tail = ""
        self._fresh: list[str] = []
        self._fresh_size = 0
        self._size = 0

    def feed(self, piece: str) -> None:
        self._fresh.append(piece)
        self._fresh_size += len(piece)
        if self._fresh_size >= _EVERY:
            text = "".join(self._fresh)
            self._fresh.clear()
            self._fresh_size = 0
            # A long piece is looked at in parts, so that no part of it is missed.
            for at in range(0, len(text), _WINDOW // 2):
                self._look(text[at : at + _WINDOW // 2])

    def _look(self, fresh: str) -> None:
        self._size += len(fresh)
        self._tail = (self._tail + fresh)[-_WINDOW:]
        tail = self._tail
        if len(tail) < _PERIODIC:
            return
        before = tail.rfind(tail[-_PROBE:], 0, len(tail) - 1)
        if before < 0:
            return
        self._check_period(tail, len(tail) - _PROBE - before)
        packed = tail.encode("utf-8", "replace")
        if len(zlib.compress(packed, 1)) * _PACKED < len(packed):
            self._check_phrases(tail)

    def _check_period(self, tail: str, period: int) -> None:
        least = _PERIODIC_SHORT if period < _SHORT else max(_PERIODIC, _LEAST_TIMES * period)
        if len(tail) < least:
            return
        end = tail[-least:]
        if end[period:] == end[:-period]:
            raise RepeatsItself(self._channel, max(_KEPT, self._size - least + period))

    def _check_phrases(self, tail: str) -> None:
        words = _WORD.findall(tail)[-_WORDS - _PHRASE :]
        if len(words) < _WORDS:
            return
        phrases = {" ".join(words[at : at + _PHRASE]) for at in range(len(words) - _PHRASE + 1)}
        # Numbers alone are a table, and no phrase.
        if len(phrases) <= _FEW and any(map(_LETTER.search, phrases)):
            raise RepeatsItself(self._channel, max(_KEPT, self._size - _PERIODIC))
