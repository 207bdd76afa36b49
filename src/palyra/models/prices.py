"""Prices of calls, from a list. A model that is on no list costs an unknown amount, which is not
the same as nothing.

Amounts are whole numbers: prices in billionths of a dollar per token, costs in millionths of a
dollar, rounded up.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palyra.core.errors import ConfigInvalid
from palyra.core.messages import Usage

SHIPPED = Path(__file__).with_name("prices.toml")
Known = Literal["list", "own", "free", "unknown"]

# A version of a model by its date, as `gpt-5-mini-2025-08-07`, `claude-sonnet-4-5-20250929` or
# `gemini-2.5-pro-latest`.
_VERSION = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest|preview)\Z")
# How Bedrock names a model: behind a region and its maker, before a revision, as
# `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
_MAKER = re.compile(r"\A(?:[a-z-]+\.)+")
_REVISION = re.compile(r"-v\d+(?::\d+)?\Z")
_MOST_REMEMBERED = 1_000


class Price(Struct, frozen=True):
    """Of one token, in billionths of a dollar."""

    input: int
    cached: int
    written: int
    output: int
    # Of what is written to be kept for an hour; 0: as `written`.
    written_1h: int = 0

    def for_an_hour(self) -> "Price":
        return replace(self, written=self.written_1h or self.written)

    def cost(self, usage: Usage) -> int:
        """In millionths of a dollar. What was read from or written to a cache is part of what was
        sent.
        """
        cached = min(usage.cached_tokens, usage.input_tokens)
        written = min(usage.cache_write_tokens, usage.input_tokens - cached)
        plain = usage.input_tokens - cached - written
        billionths = (
            plain * self.input
            + cached * self.cached
            + written * self.written
            + usage.output_tokens * self.output
        )
        return -(-billionths // 1_000)

    def most(self, input_tokens: int, output_tokens: int) -> int:
        """Return the highest cost of a call of this size, in millionths of a dollar: nothing comes
        from a cache.
        """
        return -(
            -(input_tokens * max(self.input, self.written) + output_tokens * self.output) // 1_000
        )


FREE = Price(0, 0, 0, 0)


class Tag(Struct, frozen=True):
    """A price, or none, and where it comes from."""

    price: Price | None
    known: Known


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    written_1h: float | None = None


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, _Line]
    date: str = ""


class Prices:
    """Prices by model. The shipped list is read when the first model that is not free is asked
    about.
    """

    def __init__(
        self,
        own: Path | None = None,
        free: Collection[str] = (),
        hourly: Collection[str] = (),
    ) -> None:
        """`own` is the owner's file; it stands over everything else. `free` are providers that cost
        nothing; `hourly` are those whose caches are kept for an hour.
        """
        self._own = _read(own) if own is not None and own.exists() else {}
        self._free = frozenset(free)
        self._hourly = frozenset(hourly)
        self._listed: Mapping[str, Price] | None = None
        self._tags: dict[tuple[str, str], Tag] = {}

    def adopt(self, fresh: "Prices") -> None:
        """Become what the owner's file and the settings say now."""
        self._own, self._free = fresh._own, fresh._free
        self._tags.clear()

    def of(self, provider: str, model: str) -> Tag:
        key = (provider, model)
        known = self._tags.get(key)
        if known is None:
            if len(self._tags) > _MOST_REMEMBERED:
                self._tags.clear()
            known = self._look_up(provider, model)
            if provider in self._hourly and known.price is not None:
                known = replace(known, price=known.price.for_an_hour())
            self._tags[key] = known
        return known

    def _look_up(self, provider: str, model: str) -> Tag:
        names = _names(provider, model)
        for name in names:
            if name in self._own:
                return Tag(self._own[name], "own")
        if provider in self._free:
            return Tag(FREE, "free")
        if self._listed is None:
            self._listed = _read(SHIPPED)
        for name in names:
            if name in self._listed:
                return Tag(self._listed[name], "list")
        return Tag(None, "unknown")


def _names(provider: str, model: str) -> list[str]:
    """Return the names a model may be listed by: with its provider first, then as it is, then
    without a maker's name and a version's date.
    """
    names = [f"{provider}/{model}", f"{provider}/*"]
    bare = model.rpartition("/")[2]
    for name in (model, bare, _REVISION.sub("", _MAKER.sub("", bare))):
        names += [name, _VERSION.sub("", name)]
    return list(dict.fromkeys(names))


def _read(path: Path) -> dict[str, Price]:
    # Only who needs prices pays for reading them.
    import tomllib

    try:
        file = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigInvalid(
            f"the prices in {path} cannot be read: {error}; fix the file, or move it away"
        ) from error
    for name, line in file.models.items():
        amounts = (line.input, line.output, line.cached, line.written, line.written_1h)
        if min(amount or 0 for amount in amounts) < 0:
            raise ConfigInvalid(
                f"the price of {name} in {path} is below zero; fix the file, or move it away"
            )
    return {name: _price(line) for name, line in file.models.items()}


def _price(line: _Line) -> Price:
    """A file says dollars per million tokens, which is a thousand billionths per token for each
    dollar.
    """
    cached = line.input if line.cached is None else line.cached
    written = line.input if line.written is None else line.written
    return Price(
        round(line.input * 1_000),
        round(cached * 1_000),
        round(written * 1_000),
        round(line.output * 1_000),
        # Whoever charges for writing charges twice the input for an hour.
        round((line.written_1h or (2 * line.input if line.written else 0)) * 1_000),
    )
