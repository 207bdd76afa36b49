"""The JSON values inside calls, where they end, and what had to be repaired."""

import json
import re
from typing import Any, Final

from palyra.models import json_repair
from palyra.models.json_repair import NotRepairable

_EXTRA: Final = re.compile(r"\s*+[}\]](?:\s*+[}\]]){0,2}+\s*+")
_SPACE: Final = re.compile(r"\s*+")


class Incomplete(Exception):
    """The text ends inside a call."""


class Unreadable(Exception):
    """Error: the text where a call should be cannot be read as one."""


def value_at(
    text: str, at: int, ends: tuple[str, ...], growing: bool
) -> tuple[Any, int, tuple[str, ...]]:
    """The value at a place, where it ends, and what had to be repaired."""
    try:
        value, end = _decoder.raw_decode(text, at)
        return value, *_behind(text, end, ends, growing=growing)
    except (ValueError, RecursionError):
        if growing:
            raise Incomplete from None
    try:
        found = json_repair.repair_at(text, at, ends)
    except NotRepairable as problem:
        raise Unreadable(f"the call is not valid JSON ({problem})") from None
    if json_repair.MISSING_BRACKET in found.notes and found.end >= len(text):
        # Nothing shows that the model came to its end.
        raise Incomplete
    return found.value, found.end, found.notes


def _behind(
    text: str, end: int, ends: tuple[str, ...], *, growing: bool
) -> tuple[int, tuple[str, ...]]:
    """Return where a value ends that is followed by excess brackets, if only those follow it."""
    extra = _EXTRA.match(text, end)
    if extra is None:
        return end, ()
    rest = text[extra.end() : extra.end() + 32]
    if growing and any(each.startswith(rest) for each in ends):
        raise Incomplete
    if rest.startswith(ends) or not rest:
        return extra.end(), (json_repair.EXTRA_BRACKET,)
    return end, ()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands there twice")
    return made


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


_decoder: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)
