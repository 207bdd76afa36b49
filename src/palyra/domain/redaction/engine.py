"""The one place that decides what in a text is secret and replaces it, span by span. What it returns, it would not touch again."""

import hmac
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from palyra.domain.redaction import assignments, blocks, credentials, encodings, formats, shapes
from palyra.domain.redaction.known import SHORTEST, Known, Learned
from palyra.domain.redaction.stream import StreamRedactor

PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9\-]{1,32}:[0-9a-f]{8}\]")
KNOWN = "known"
_DEPTH = 3  # base64 of JSON of base64 is as deep as real data goes
_PASSES = 8  # taking a secret out can bring another to light; chains longer than this are made up
_ECHO = 8  # a secret found once goes everywhere else in the text, if it is long enough not to be a word
_ECHOES = 64  # so many are looked for; a text with more is a list of secrets, each with its own context
_SHORT = 128  # texts up to this length are remembered once they were found clean: names of tools and models come again and again
_REMEMBERED = 4_096
_RANK = {KNOWN: 0, "private-key": 1, "password": 8, "secret": 8, "key": 9}


class Finding(Struct, frozen=True):
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


class Redactor:
    """`key` makes placeholders stable within one installation and useless outside it; `known` are exact secret values."""

    def __init__(self, key: bytes, known: Iterable[str] = (), learned: Learned | None = None) -> None:
        self._key = key
        self._known = Known(known)
        self._learned = learned or Learned()
        # Short texts without a secret, as far as was known then.
        self._clean: set[str] = set()
        self._clean_for = self._learned.known

    def with_known(self, known: Iterable[str]) -> "Redactor":
        """One that knows these as well; what is learned later, both learn."""
        return Redactor(self._key, self._known.values | set(known), self._learned)

    def learn(self, values: Iterable[str]) -> None:
        """From now on exactly these are known beside those it was made with, to everybody who holds it, on any thread."""
        self._learned.known = Known(values)

    def find(self, text: str) -> list[Finding]:
        return [Finding(span.start, span.end, span.rule) for span in self.spans(text)]

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
        return text

    def _remember(self, text: str, known: Known) -> None:
        """`text` was clean with what was known when the look began. A set is replaced, never emptied: other threads look too."""
        if known is not self._clean_for or len(self._clean) >= _REMEMBERED:
            self._clean = set()
            self._clean_for = known
        self._clean.add(text)

    def redact_json(self, value: Any) -> Any:
        """The same for every string inside, keys too; a name that says "secret" counts as context for its value."""
        match value:
            case str():
                return self.redact(value)
            case dict():
                changed = {self._redact_key(k): self._redact_member(k, v) for k, v in value.items()}
                same = len(changed) == len(value) and all(
                    a is b and v is changed[b] for (a, v), b in zip(value.items(), changed, strict=False)
                )
                return value if same else changed
            case list() | tuple():
                items = [self.redact_json(item) for item in value]
                return value if all(a is b for a, b in zip(value, items, strict=True)) else type(value)(items)
            case _:
                return value

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self)

    @property
    def known(self) -> tuple[Known, Known]:
        """What it was made with, and what it has learned until now."""
        return self._known, self._learned.known

    def spans(self, text: str) -> list[Span]:
        """Disjoint spans in order, each with its secret as it is without its encoding."""
        if "[redacted:" not in text:
            return _merge(text, list(self._scan(text, _DEPTH)))
        spans: list[Span] = []
        at = 0
        for start, end in [m.span() for m in PLACEHOLDER.finditer(text)] + [(len(text), len(text))]:
            part = text[at:start]
            if len(part) >= SHORTEST:
                spans += [Span(s.start + at, s.end + at, s.rule, s.secret) for s in _merge(part, list(self._scan(part, _DEPTH)))]
            at = end
        return spans

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
        if isinstance(key, str) and isinstance(value, str) and not PLACEHOLDER.search(value) and assignments.judge(key, value):
            return self._placeholder("secret", value)
        return self.redact_json(value)

    def _scan(self, text: str, depth: int) -> Iterator[Span]:
        for known in self.known:
            for start, end, value in known.find(text):
                yield Span(start, end, KNOWN, value)
        runs = formats.runs(text)
        lower = shapes.lowered(text)
        named = assignments.named(lower)
        if not runs and not named and not credentials.hinted(lower):
            return
        yield from self._judged(text, lower, runs, named)
        if depth and (runs or "\\" in text or "%" in text):
            for view in encodings.views(text, runs):
                for inner in self._scan(view.text, depth - 1):
                    yield Span(*view.original(inner.start, inner.end), inner.rule, inner.secret)

    def _judged(self, text: str, lower: str, runs: list[tuple[int, int]], named: bool) -> Iterator[Span]:
        hits = [*formats.find(text, runs), *blocks.find(text, runs), *credentials.find(text, lower)]
        if named:
            hits += assignments.find(text, lower)
        for hit in hits:
            yield Span(hit.start, hit.end, hit.rule, text[hit.start : hit.end])
        echoes = dict.fromkeys((text[h.start : h.end], h.rule) for h in hits)
        for secret, rule in list(echoes)[:_ECHOES]:
            if len(secret) >= _ECHO and not secret.isalpha():
                at = text.find(secret)
                while at >= 0:
                    yield Span(at, at + len(secret), rule, secret)
                    at = text.find(secret, at + len(secret))

    def _placeholder(self, rule: str, secret: str) -> str:
        return f"[redacted:{rule}:{hmac.digest(self._key, secret.encode('utf-8', 'surrogatepass'), 'sha256').hex()[:8]}]"


def _merge(text: str, spans: list[Span]) -> list[Span]:
    """Disjoint spans in order. Where some overlap, their union goes, under the name of the surest."""
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
