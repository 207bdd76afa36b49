"""The one place that decides what in a text is secret and replaces it, span by span. What it
returns, it would not touch again.
"""

import hmac
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

from msgspec import Struct

from palyra.core.redaction import (
    assignments,
    blocks,
    columns,
    credentials,
    disguises,
    drawn,
    encodings,
    formats,
    keywords,
    services,
    shapes,
)
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.shapes import UNREAD, Work
from palyra.core.redaction.stream import KnownValues, Learned, StreamRedactor

PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9\-]{1,32}:[0-9a-f]{8}\]")
KNOWN = "known"
_DEPTH = 3  # base64 of JSON of base64 is as deep as real data goes
_PASSES = 4  # taking a secret out can bring another to light; chains longer than this are made up
# A long text is read window by window, each with its own budget: no step holds the interpreter for
# long.
_WINDOW = 16 << 10
_OVERLAP = 1 << 10  # longer than a value and what is looked at around it
_EDGE = 512
_ECHO = (
    8  # a secret found once goes everywhere else in the text, if it is long enough not to be a word
)
_ECHOES = (
    64  # so many are looked for; a text with more is a list of secrets, each with its own context
)
_AGAIN = 8  # so many characters that are read again cost one unit
_PARAGRAPH = 2_048
_SHORT = 128  # texts up to this length are remembered once they were found clean: names of tools and models come again and again  # noqa: E501
_REMEMBERED = 4_096
_LIKE_PUBLIC = (
    "private-key",
    "encoded",
    "drawn",
    "service",
)  # what a certificate looks like inside
_RANK = {KNOWN: 0, "private-key": 1, "password": 8, "secret": 8, "key": 9}


class SecretFinding(Struct, frozen=True):
    """A secret in the original text."""

    start: int
    end: int
    rule: str


class Span(NamedTuple):
    """A finding with the secret itself; it stays inside this package."""

    start: int
    end: int
    rule: str
    secret: str  # as it is without its encoding, so that every spelling gets the same placeholder


class SecretRedactor:
    """`key` makes placeholders stable within one installation and useless outside it; `known` are
    exact secret values.
    """

    def __init__(
        self, key: bytes, known: Iterable[str] = (), learned: Learned | None = None
    ) -> None:
        self._key = key
        self._known = KnownValues(known)
        self._learned = learned or Learned()
        # Short texts without a secret, as far as was known then.
        self._clean: set[str] = set()
        self._clean_for = self._learned.known

    def with_known(self, known: Iterable[str]) -> Self:
        """One that knows these as well; what is learned later, both learn."""
        return type(self)(self._key, self._known.values | set(known), self._learned)

    def learn(self, values: Iterable[str]) -> None:
        """From now on exactly these are known beside those it was made with, to everybody who holds
        it, on any thread.
        """
        self._learned.known = KnownValues(values)

    def find(self, text: str) -> list[SecretFinding]:
        return [SecretFinding(span.start, span.end, span.rule) for span in self.spans(text)]

    def redact(self, text: str) -> str:
        """`text` with a placeholder for each secret; the same object if there is none."""
        known = self._learned.known
        if known is self._clean_for and text in self._clean:
            return text
        for turn in range(_PASSES):
            spans = self.spans(text)
            if not spans:
                if not turn and len(text) <= _SHORT:
                    self._remember(text, known)
                break
            text = self.replace(text, spans)
            if any(span.rule == UNREAD for span in spans):
                break  # made to cost much: what was judged is not judged again
        return text

    def redact_head(self, text: str, most: int) -> str:
        """The first `most` characters of `text`, redacted. Cut before: what nobody will see is not
        worth the work.
        """
        return self.redact(text[: most + _OVERLAP])[:most]

    def _remember(self, text: str, known: KnownValues) -> None:
        """`text` was clean with what was known when the look began. A set is replaced, never
        emptied: other threads look too.
        """
        if known is not self._clean_for or len(self._clean) >= _REMEMBERED:
            self._clean = set()
            self._clean_for = known
        self._clean.add(text)

    def redact_json(self, value: Any) -> Any:
        """The same for every string inside, keys too; a name that says "secret" counts as context
        for its value.
        """
        match value:
            case str():
                return self.redact(value)
            case dict():
                changed = {self._redact_key(k): self._redact_member(k, v) for k, v in value.items()}
                same = len(changed) == len(value) and all(
                    a is b and v is changed[b]
                    for (a, v), b in zip(value.items(), changed, strict=False)
                )
                return value if same else changed
            case list() | tuple():
                items = [self.redact_json(item) for item in value]
                return (
                    value
                    if all(a is b for a, b in zip(value, items, strict=True))
                    else type(value)(items)
                )
            case _:
                return value

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self)

    @property
    def known(self) -> tuple[KnownValues, KnownValues]:
        """Values known at the start, and values learned until now."""
        return self._known, self._learned.known

    def spans(self, text: str) -> list[Span]:
        """Disjoint spans in order, each with its secret as it is without its encoding."""
        if "[redacted:" not in text:
            return self._whole(text)
        gaps = [m.span() for m in PLACEHOLDER.finditer(text)]
        # Line breaks in place of each placeholder: nothing reaches across, and positions hold.
        bare = PLACEHOLDER.sub(_blank, text)
        return list(_outside(self._whole(bare), gaps, text)) if gaps else self._whole(text)

    def _whole(self, text: str) -> list[Span]:
        if self._is_plain(text):
            return []
        if len(text) <= _WINDOW + 2 * _OVERLAP:
            found = list(self._scan(text, _DEPTH, Work(len(text))))
        else:
            found = [span for low, high in _windows(text) for span in self._window(text, low, high)]
            found += (
                Span(*hit[:2], hit.rule, text[hit.start : hit.end]) for hit in blocks.fenced(text)
            )
        if not found:
            return found
        if any(span.rule in _LIKE_PUBLIC for span in found) and (
            public := blocks.public_spans(text)
        ):
            found = [span for span in found if not _is_public(span, public)]
        return _merge(text, [*found, *_echoes(text, found)])

    def _is_plain(self, text: str) -> bool:
        """Return whether this is one short paragraph without anything that a rule begins with. Most
        of what people say is.
        """
        if (
            len(text) > _PARAGRAPH
            or not text.isascii()
            or "\n" in text
            or self._known.values
            or self._learned.known.values
        ):
            return False
        lower = text.lower()
        if keywords.named(lower) or encodings.hidden(text) or credentials.hinted(lower):
            return False
        return max(map(len, text.split()), default=0) < formats.SHORTEST

    def _window(self, text: str, low: int, high: int) -> Iterator[Span]:
        part = text[low:high]
        for span in self._scan(part, _DEPTH, Work(len(part))):
            yield Span(span.start + low, span.end + low, span.rule, span.secret)

    def replace(self, text: str, spans: list[Span]) -> str:
        parts = []
        at = 0
        placeholders: dict[tuple[str, str], str] = {}
        for span in spans:
            named = span.rule, span.secret
            if named not in placeholders:
                placeholders[named] = self._placeholder(*named)
            parts += [text[at : span.start], placeholders[named]]
            at = span.end
        return "".join(parts) + text[at:]

    def _redact_key(self, key: Any) -> Any:
        return self.redact(key) if isinstance(key, str) else key

    def _redact_member(self, key: Any, value: Any) -> Any:
        if (
            isinstance(key, str)
            and isinstance(value, str)
            and not PLACEHOLDER.search(value)
            and assignments.judge(key, value)
        ):
            return self._placeholder("secret", value)
        return self.redact_json(value)

    def _scan(self, text: str, depth: int, work: Work) -> Iterator[Span]:
        for known in self.known:
            for start, end, value in known.find(text):
                yield Span(start, end, KNOWN, value)
        runs = formats.runs(text)
        lower = shapes.lowered(text)
        named = keywords.named(lower)
        hidden = encodings.hidden(text)
        if depth == _DEPTH:
            yield from self._undisguised(text, depth, work)
        if not any(runs) and not named and not hidden and not credentials.hinted(lower):
            return
        for hit in (
            self._hits(text, lower, runs, work) if named else self._unnamed(text, lower, runs, work)
        ):
            yield Span(hit.start, hit.end, hit.rule, text[hit.start : hit.end])
        if depth and (runs.tokens or hidden):
            yield from self._decoded(text, runs.tokens, depth, work)

    def _undisguised(self, text: str, depth: int, work: Work) -> Iterator[Span]:
        """Find secrets that show without invisible characters, and across line breaks."""
        plain = disguises.plainer(text)
        if plain is not None:
            work.spend(plain.effort + len(plain.text) // _AGAIN)
            for inner in self._scan(plain.text, depth - 1, work):
                yield Span(*plain.original(inner.start, inner.end), inner.rule, inner.secret)
        joined = disguises.unbroken(text) if "\n" in text else None
        if joined is not None:
            for inner in self._scan(joined.text, 0, work):
                if joined.counts(inner.start, inner.end, inner.rule):
                    yield Span(*joined.original(inner.start, inner.end), inner.rule, inner.secret)

    def _decoded(
        self, text: str, runs: list[tuple[int, int]], depth: int, work: Work
    ) -> Iterator[Span]:
        try:
            for view in encodings.views(text, runs, work):
                found = list(self._scan(view.text, depth - 1, work))
                for inner in (*found, *_echoes(view.text, found)) if found else ():
                    if (
                        inner.rule != "drawn"
                    ):  # what looks drawn inside of something encoded is too weak: cursors are full of it  # noqa: E501
                        yield Span(*view.original(inner.start, inner.end), inner.rule, inner.secret)
        except encodings.Unread as unread:
            yield Span(unread.at, len(text), UNREAD, text[unread.at :])

    def _hits(
        self, text: str, lower: str, runs: formats.TokenRuns, work: Work
    ) -> Iterator[FormatMatch]:
        yield from self._unnamed(text, lower, runs, work)
        yield from assignments.find(text, lower, work)
        yield from columns.find(text, lower, work)

    def _unnamed(
        self, text: str, lower: str, runs: formats.TokenRuns, work: Work
    ) -> Iterator[FormatMatch]:
        tokens, digests = runs
        hits = list(formats.find(text, tokens))
        yield from hits
        yield from blocks.find(text, tokens)
        if hits:  # what is known to be a token needs no judgement
            ends = {hit.end for hit in hits}
            tokens = [run for run in tokens if run[1] not in ends]
        yield from encodings.bare(text, tokens)
        yield from drawn.find(text, tokens, work)
        yield from services.find(
            text, lower, sorted([*tokens, *digests]) if digests else tokens, work
        )
        yield from credentials.find(text, lower, work)

    def _placeholder(self, rule: str, secret: str) -> str:
        return f"[redacted:{rule}:{hmac.digest(self._key, secret.encode('utf-8', 'surrogatepass'), 'sha256').hex()[:8]}]"  # noqa: E501


def _merge(text: str, spans: list[Span]) -> list[Span]:
    """Disjoint spans in order. Where some overlap, their union goes, under the name of the
    surest.
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.end <= span.start:
            continue
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            continue
        last = merged[-1]
        start, end = last.start, max(last.end, span.end)
        best = min(last, span, key=lambda s: (_RANK.get(s.rule, 5), s.start - s.end))
        secret = best.secret if (best.start, best.end) == (start, end) else text[start:end]
        merged[-1] = Span(start, end, best.rule, secret)
    return merged


def _blank(placeholder: re.Match[str]) -> str:
    return "\n" * (placeholder.end() - placeholder.start())


def _outside(spans: list[Span], gaps: list[tuple[int, int]], text: str) -> Iterator[Span]:
    """Return the parts of `spans` outside the placeholders in `gaps`; both are in order."""
    at = 0
    for span in spans:
        while at < len(gaps) and gaps[at][1] <= span.start:
            at += 1
        start, i = span.start, at
        while start < span.end:
            stop = min(span.end, gaps[i][0]) if i < len(gaps) else span.end
            if stop > start:
                whole = (start, stop) == (span.start, span.end)
                yield span if whole else Span(start, stop, span.rule, text[start:stop])
            start = gaps[i][1] if i < len(gaps) else span.end
            i += 1


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Windows that overlap, each cut where a line or a word ends if there is such a place."""
    for at in range(0, len(text), _WINDOW):
        low = _edge(text, at - _OVERLAP) if at else 0
        high = _edge(text, at + _WINDOW + _OVERLAP)
        yield low, high
        if high >= len(text):
            return


def _edge(text: str, at: int) -> int:
    if at >= len(text):
        return len(text)
    for mark in ("\n", " "):
        found = text.rfind(mark, at - _EDGE, at)
        if found >= 0:
            return found + 1
    return at


def _is_public(span: Span, public: list[tuple[int, int]]) -> bool:
    """Return whether this is a line of a certificate: a window may begin in the middle of one."""
    return span.rule in _LIKE_PUBLIC and any(low <= span.start < high for low, high in public)


def _echoes(text: str, found: list[Span]) -> Iterator[Span]:
    """Every other place where a secret stands that was found once."""
    echoes = dict.fromkeys((span.secret, span.rule) for span in found if span.rule != UNREAD)
    there = {span.start for span in found}
    for secret, rule in list(echoes)[:_ECHOES]:
        if len(secret) >= _ECHO and not secret.isalpha():
            at = text.find(secret)
            while at >= 0:
                if at not in there:
                    yield Span(at, at + len(secret), rule, secret)
                at = text.find(secret, at + len(secret))


def is_small(value: Any, most: int) -> bool:
    """Return whether all strings inside have at most `most` characters together. Stops looking once
    they have more.
    """
    left = most
    waiting = [value]
    while waiting:
        each = waiting.pop()
        match each:
            case str():
                left -= len(each)
            case dict():
                left -= len(each)
                waiting += [*each, *each.values()] if left >= 0 else ()
            case list() | tuple():
                left -= len(each)
                waiting += each if left >= 0 else ()
        if left < 0:
            return False
    return True
