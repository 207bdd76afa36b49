"""Redaction of text that arrives in pieces. A word is let go only when it is complete, so that no
secret slips out in halves.

Exact values the vault holds, in every spelling they travel in. They need no judgement: wherever
one stands, it goes.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from palyra.core.redaction import blocks, credentials, keywords

if TYPE_CHECKING:
    from palyra.core.redaction.engine import SecretRedactor, Span

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
    """Values that a redactor and all that were made from it learn while they work. Swapped as a
    whole, so that any thread may look.
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
    """Return the base64 of `data` inside a larger text: one core per alignment, without the
    characters its neighbours share.
    """
    cores = set()
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(b"\0" * shift + data).decode()
        core = encoded[first : (shift + len(data)) * 8 // 6]
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return cores


LONGEST_HELD = 64 << 10
_KEPT = 4 << 10  # when too much is held, this much stays: no single secret is longer
_CONTEXT = 240  # what a value may need to know of the text before it
_ECHO = 8
# Short words and plain punctuation: with no name of a secret near, they can hold none.
_PLAIN = re.compile(r"(?:[A-Za-z']{0,15}[\s,.!?;()]+)+")
# The end of the text may be the beginning of a fence.
_FENCE = re.compile(r"-{2,5} ?(?:B|BE|BEG|BEGI|BEGIN(?:[ +][A-Z0-9]{0,12}){0,6} ?-{0,4})?\Z")
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]{40,128}")


class StreamRedactor:
    """Feed it deltas, show what it returns, and `finish` at the end. Holds at most 64 KiB back."""

    __slots__ = ("_before", "_held", "_hot", "_open", "_redactor", "_size")

    def __init__(self, redactor: "SecretRedactor") -> None:
        self._redactor = redactor
        self._held: list[str] = []
        self._size = 0
        self._before = ""  # the end of what was let go, as it was shown
        self._hot = 0  # for so many characters more, the text before matters
        self._open = False  # held text begins with the fence of a private key

    def feed(self, chunk: str) -> str:
        """Add text; return what can be shown."""
        at = _last_break(chunk)
        self._held.append(chunk)
        self._size += len(chunk)
        if at < 0 or (self._open and not self._closed(chunk, at)):
            return self._overflow() if self._size > LONGEST_HELD else ""
        text = "".join(self._held) if len(self._held) > 1 else chunk
        cut = len(text) - len(chunk) + at
        if (
            self._hot <= 0
            and not self._open
            and not self._wordlike
            and _PLAIN.fullmatch(text, 0, cut)
        ):
            ready = text[:cut]
            if not _named(ready):
                self._hold(text[cut:])
                self._before = (self._before + ready)[-_CONTEXT:]
                return ready
        return self._advance(text, cut)

    def finish(self) -> str:
        """The rest."""
        text = "".join(self._held)
        self._hold("")
        self._open = False
        return self._release(text) if text else ""

    @property
    def _wordlike(self) -> bool:
        """Return whether a known secret looks like plain words. Checked each time: one may be
        learned while the text arrives.
        """
        made_with, learned = self._redactor.known
        return made_with.wordlike or learned.wordlike

    def _hold(self, text: str) -> None:
        self._held = [text] if text else []
        self._size = len(text)

    def _closed(self, chunk: str, at: int) -> bool:
        """Return whether the fence at the end of a private key has come, before `at` in `chunk`;
        only what is new is looked at.
        """
        tail = "".join(self._held[-80:])
        return (
            blocks.END.search(
                tail, max(0, len(tail) - len(chunk) - 80), len(tail) - len(chunk) + at
            )
            is not None
        )

    def _advance(self, text: str, cut: int) -> str:
        """Let go of `text` up to `cut`, or up to where something unfinished begins."""
        begin = self._unfinished(text, cut)
        self._open = begin is not None and blocks.BEGIN.match(text, begin) is not None
        cut = cut if begin is None else min(cut, begin)
        self._hold(text[cut:])
        if self._size > LONGEST_HELD:
            return (self._release(text[:cut]) if cut else "") + self._overflow()
        return self._release(text[:cut]) if cut else ""

    def _unfinished(self, text: str, cut: int) -> int | None:
        """Return where something begins that the words after `cut` may complete."""
        at = text.rfind("BEGIN")
        fence = blocks.BEGIN.search(text, max(0, at - 8)) if at >= 0 else None
        if fence and blocks.END.search(text, fence.end(), cut) is None:
            return fence.start()
        fence_end = _FENCE.search(text, max(0, len(text) - 96))
        starts = [fence_end.start()] if fence_end else []
        if "\n" in text:
            line = text.rfind("\n", 0, cut) + 1
            while line > 0:
                previous = text.rfind("\n", 0, line - 1) + 1
                if not _BASE64_LINE.fullmatch(text[previous:line].strip()):
                    break
                line = previous
                starts.append(line)
        broken = (spelling for known in self._redactor.known for spelling in known.broken)
        starts += [start for spelling in broken if (start := _begins(text, spelling)) is not None]
        return min(starts, default=None)

    def _overflow(self) -> str:
        text = "".join(self._held)
        if self._open:
            fence = blocks.BEGIN.match(text)
            shown = self._release(text)
            # What follows still belongs to the key: its fence stays in front of it.
            self._hold(fence[0] + "\n" if fence else "")
            return shown
        cut = len(text) - _KEPT
        for span in self._redactor.spans(text):
            if span.start < cut < span.end:
                cut = span.start or span.end
        self._hold(text[cut:])
        return self._release(text[:cut])

    def _release(self, text: str) -> str:
        before = len(self._before)
        whole = self._before + text
        spans = [
            _clipped(span, before) for span in self._redactor.spans(whole) if span.end > before
        ]
        shown = self._redactor.replace(whole, spans)[before:]
        fresh = {
            span.secret for span in spans if len(span.secret) >= _ECHO and not span.secret.isalpha()
        }
        fresh = fresh.difference(*(known.values for known in self._redactor.known))
        if fresh:
            self._redactor = self._redactor.with_known(fresh)
        lower = text.lower()
        if keywords.named(lower) or credentials.hinted(lower):
            self._hot = _CONTEXT
        else:
            self._hot -= len(text)
        self._before = (self._before + shown)[-_CONTEXT:]
        return shown


@lru_cache(4096)
def _named(words: str) -> bool:
    """Remembered: a few thousand words make up most of what models say."""
    return keywords.named(words.lower())


def _clipped(span: "Span", start: int) -> "Span":
    return span._replace(start=max(span.start, start))


def _last_break(chunk: str) -> int:
    """The end of the last complete word in `chunk`, or -1."""
    if chunk.isascii():
        words = chunk.rsplit(None, 1)
        if len(words) == 2:
            return len(chunk) - len(words[1]) if chunk[-1] not in " \n\t\r" else len(chunk)
        if not chunk or chunk[-1].isspace():
            return len(chunk) if chunk else -1
        return len(chunk) - len(words[0]) if chunk[0].isspace() else -1
    last = -1
    for found in BREAK.finditer(chunk):
        last = found.end()
    return last


def _begins(text: str, spelling: str) -> int | None:
    """Return where the end of `text` may be the beginning of `spelling`."""
    low = max(0, len(text) - len(spelling) + 1)
    at = text.find(spelling[0], low)
    while at >= 0:
        if spelling.startswith(text[at:]):
            return at
        at = text.find(spelling[0], at + 1)
    return None
