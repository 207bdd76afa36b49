"""An inverted index of what a model was shown: which words and identifiers came from where.

It is built as entries come, so that looking a value up costs the same at the beginning of a session
and after ten thousand entries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core import identifiers

Trust = Literal["user", "trusted", "untrusted"]
TRUSTS: tuple[Trust, ...] = ("user", "trusted", "untrusted")
_Reader = Literal["names", "paths", "numbers", "words"]
_READERS: tuple[_Reader, ...] = ("names", "paths", "numbers", "words")
_FINDERS: dict[str, Callable[[str], set[str]]] = {
    "names": identifiers.names,
    "paths": identifiers.paths,
    "numbers": identifiers.numbers,
}
# Which of them finds a kind of identifier, where it is not the names.
_READER_OF: dict[str, _Reader] = {
    "path": "paths",
    "day": "numbers",
    "date": "numbers",
    "time": "numbers",
    "amount": "numbers",
}
_CHUNK, _OVERLAP = 64, 16
# Of one value, so many places are named; of one word, so many are looked at.
_MOST_PLACES = 8
_MOST_TRIED = 512
_MOST_LEVELS = 16
# Characters of the user's last messages that a command may be quoted from.
_MOST_QUOTED = 64 << 10
_MOST_ITEMS = 2_000


class ShownSpan(Struct, frozen=True):
    """A piece of text as it was shown. `seq`: the entry that brought it; `but`: identifiers and
    words that it only repeats.
    """

    seq: int
    trust: Trust
    sources: tuple[str, ...]
    text: str
    but: str = ""


class _Place(Struct, frozen=True):
    seq: int
    sources: tuple[str, ...]


class _Piece(Struct, frozen=True):
    """A text to be indexed, and the text whose identifiers and words it only repeats."""

    place: _Place
    text: str
    but: str


class ShownIndex:
    """What is small is indexed when it is first asked for: most calls name a path or nothing, and
    never ask where a day, an amount or an address comes from.
    """

    def __init__(self) -> None:
        self._forms: dict[tuple[Trust, _Reader], dict[str, list[_Place]]] = {}
        self._postings: dict[Trust, dict[str, list[int]]] = {trust: {} for trust in TRUSTS}
        self._chunks: list[tuple[_Place, str]] = []
        # Pieces that are not read yet, by what reads them.
        self._unread: dict[tuple[Trust, _Reader], list[_Piece]] = {
            (trust, reader): [] for trust in TRUSTS for reader in _READERS
        }
        # An upper bound of the text in them.
        self.unread_bytes = 0
        # What was shown before this is not shown any more.
        self.first = 0
        self._said: list[tuple[int, str]] = []
        self._trusts: set[Trust] = set()

    def has(self, trust: Trust) -> bool:
        """Return whether anything of this trust was shown: if not, no value can come from there."""
        return trust in self._trusts

    def add(self, spans: Iterable[ShownSpan]) -> None:
        """Add what was shown. It is read at the first look at it, or by `read`."""
        for span in spans:
            self.unread_bytes += len(span.text)
            self._trusts.add(span.trust)
            if span.trust == "user":
                self._said.append((span.seq, " ".join(span.text[-_MOST_QUOTED:].split())))
            but = identifiers.plain(span.but)
            for item, text in _items(span.text):
                named = tuple(f"{each}{item}" for each in span.sources)
                piece = _Piece(_Place(span.seq, named), identifiers.plain(text), but)
                for reader in _READERS:
                    self._unread[span.trust, reader].append(piece)

    def read(self) -> None:
        """Read all that was added, so that looking it up costs little."""
        for trust, reader in self._unread:
            self._read(trust, reader)
        self.unread_bytes = 0

    def _read(self, trust: Trust, reader: _Reader) -> None:
        unread = self._unread[trust, reader]
        if not unread:
            return
        self._unread[trust, reader] = []
        but, repeated = "", set[str]()
        for piece in unread:
            if reader == "words":
                self._read_words(trust, piece)
                continue
            find = _FINDERS[reader]
            if piece.but != but:
                but, repeated = piece.but, find(piece.but)
            forms = self._forms.setdefault((trust, reader), {})
            for form in find(piece.text):
                if form not in repeated:
                    places = forms.setdefault(form, [])
                    if len(places) == _MOST_PLACES:
                        # The newest are still shown when the first are gone.
                        del places[1]
                    places.append(piece.place)

    def _read_words(self, trust: Trust, piece: _Piece) -> None:
        words = identifiers.words(piece.text)
        repeated = f" {' '.join(identifiers.words(piece.but))} " if piece.but else ""
        postings = self._postings[trust]
        for start in range(0, max(len(words), 1), _CHUNK - _OVERLAP):
            chunk = words[start : start + _CHUNK]
            if not chunk:
                break
            number = len(self._chunks)
            for word in set(chunk):
                if not repeated or f" {word} " not in repeated:
                    postings.setdefault(word, []).append(number)
            self._chunks.append((piece.place, f" {' '.join(chunk)} "))
            if start + _CHUNK >= len(words):
                break

    def form(self, trust: Trust, form: str) -> list[_Place]:
        """Return where an identifier is shown."""
        if trust not in self._trusts:
            return []
        reader = _READER_OF.get(form.partition(":")[0], "names")
        self._read(trust, reader)
        places = self._forms.get((trust, reader), {}).get(form)
        return [place for place in places if place.seq >= self.first] if places else []

    def quotes(self, text: str) -> bool:
        """Return whether the user said exactly this, letter by letter."""
        wanted, room = " ".join(text.split()), _MOST_QUOTED
        for seq, said in reversed(self._said):
            if seq < self.first or room <= 0:
                return False
            room -= len(said)
            if wanted and wanted in said:
                return True
        return False

    def phrase(self, trust: Trust, words: Sequence[str]) -> list[_Place]:
        """Return where these words are shown, one after another; of a long text, each part."""
        if not words or trust not in self._trusts:
            return []
        self._read(trust, "words")
        if len(words) > _OVERLAP:
            parts = [words[at : at + _OVERLAP] for at in range(0, len(words), _OVERLAP)]
            places = [self.phrase(trust, part) for part in parts]
            return [place for each in places for place in each] if all(places) else []
        postings = self._postings[trust]
        lists = [postings.get(word) for word in set(words)]
        if not lists or any(each is None for each in lists):
            return []
        rarest = min((each for each in lists if each is not None), key=len)
        wanted = f" {' '.join(words)} "
        found: list[_Place] = []
        # The newest first: what was shown last is what a call is most often about.
        for number in rarest[: -_MOST_TRIED - 1 : -1]:
            place, chunk = self._chunks[number]
            if place.seq < self.first:
                break
            if wanted in chunk and place not in found:
                found.append(place)
                if len(found) == _MOST_PLACES:
                    break
        return found


def _items(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces that can be named: the members of a JSON list, or all of it."""
    head = text[:1]
    if head not in "[{" or not head:
        yield "", text
        return
    try:
        value: Any = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        yield "", text
        return
    listed = value
    if isinstance(value, dict) and len(value) == 1:
        listed = next(iter(value.values()))
    if isinstance(listed, list) and 1 < len(listed) <= _MOST_ITEMS:
        for number, each in enumerate(listed, 1):
            yield f", item {number}", "\n".join(_texts(each, 0))
    else:
        yield "", "\n".join(_texts(value, 0))


def _texts(value: Any, level: int) -> Iterator[str]:
    if level > _MOST_LEVELS:
        yield msgspec.json.encode(value).decode()
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each, level + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, level + 1)
    elif value is not None and not isinstance(value, bool):
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()
