"""Values in a result that later calls may need: identifiers, amounts, dates, paths and addresses,
with the name they have in it.

The rule: values of the shape of a name or a number, never sentences. Those used afterwards, by the
user or by the model, go first.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from palyra.core.run_progress import ModelTurn, UserTurn
from palyra.core.sentences import collapse, cut
from palyra.features.compaction.model import Spoken

_MOST_READ = 64 << 10
_MOST_WALKED = 4_000
_MOST_KEPT = 16
_MOST_CHARACTERS = 360
_LONGEST = 80
_LONGEST_ARGUMENTS = 160
_TOKEN = re.compile(r"[$€£#@/~]?\w(?:(?:[\w./:@#%+&=?~-]|,(?=\d))*[\w/%])?")
# A name with a digit or a mark in it, a code, an amount, a date, an address, a path.
_VALUE = re.compile(
    r"(?=.*\d)(?=.*[^\W\d]).{3,}|(?=.*\d)\S*[/.:_-]\S*|\d{3,}|[$€£#@]\S+|[A-Z]{3,}|"
    r"\d[\d.,]*%|\S+@\S+\.\w+|[^\W\d]\w*_\w+|\w+(?:/\w+)+(?:\.\w+)?|\w+\.(?!$)[A-Za-z]{1,5}"
)
_UNIT = re.compile(r"\s?(?:%|€|£|\$|EUR|USD|GBP|CZK|[kKMGT]i?B|ms|s|min|h|kg|km|m|x)\b")


def arguments(given: dict[str, Any]) -> str:
    """The arguments of a call on one line, long texts cut."""
    said = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        said.append(f"{name}={cut(collapse(text), _LONGEST)}")
    return cut(" ".join(said), _LONGEST_ARGUMENTS)


def taken_up(turns: Sequence[Spoken]) -> frozenset[str]:
    """The values that people said, and those that the model said or called with."""
    found: set[str] = set()
    for turn in turns:
        match turn:
            case UserTurn():
                texts = [event.text for event in turn.inputs]
            case ModelTurn():
                texts = [turn.reply.text, *(str(call.call.arguments) for call in turn.calls)]
        for text in texts:
            found.update(_values(text[:_MOST_READ]))
    return frozenset(found)


def taken_from(text: str) -> list[str]:
    """The values in a text, each once, in their order."""
    return list(dict.fromkeys(_values(text[:_MOST_READ])))


def of_result(text: str, wanted: frozenset[str]) -> str:
    """The values of a result as far as there is room, those that are wanted first."""
    text = text[:_MOST_READ]
    named = dict(_from_json(text) or ((value, "") for value in _values(text)))
    chosen: list[str] = []
    left = _MOST_CHARACTERS
    # Stable: of equal worth, what stood first.
    for value in sorted(named, key=lambda each: each not in wanted):
        told = f"{named[value]} {value}".strip()
        if len(told) + 2 <= left and len(chosen) < _MOST_KEPT:
            chosen.append(told)
            left -= len(told) + 2
    return ", ".join(chosen)


def _values(text: str) -> Iterator[str]:
    for token in _TOKEN.finditer(text):
        value = token[0]
        if len(value) > _LONGEST or text[token.end() : token.end() + 2] == '":':
            continue
        unit = _UNIT.match(text, token.end()) if value[-1].isdigit() else None
        if unit is not None and value.replace(".", "").replace(",", "").isdigit():
            yield value + unit[0]
        elif _VALUE.fullmatch(value):
            yield value


def _from_json(text: str) -> list[tuple[str, str]] | None:
    """Return leaves with their names, if the result is JSON."""
    if text[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    found: dict[str, str] = {}
    for count, (name, leaf) in enumerate(_leaves(parsed, "")):
        if count >= _MOST_WALKED:
            break
        value = leaf if isinstance(leaf, str) else json.dumps(leaf)
        if 0 < len(value) <= _LONGEST and (not isinstance(leaf, str) or _is_value(value)):
            found.setdefault(collapse(value), name)
    return list(found.items())


def _is_value(value: str) -> bool:
    return len(value.split()) <= 4 or any(True for _ in _values(value))


def _leaves(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    match value:
        case dict():
            for key, inner in value.items():
                # What is looked up by its name stands there as a name: {"card_7": {…}}.
                if any(map(str.isdigit, key)) and _VALUE.fullmatch(key[:_LONGEST]):
                    yield name, key
                yield from _leaves(inner, key[:_LONGEST])
        case list():
            for inner in value:
                yield from _leaves(inner, name)
        case None | bool():
            return
        case _:
            yield name, value
