"""Import of other assistants' knowledge about somebody: exported conversations of ChatGPT and
Claude, and plain lists in Markdown.

The rule: who said it stands before what was said, and the day and the place it was said in stay
with it. Nothing is guessed: a file in another form is refused.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import msgspec

from palyra.core.errors import InvalidInput
from palyra.features.memory.model import LONGEST_TEXT, NewMemory

_MOST_NAME = 200
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(.+)$")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
_DAY = re.compile(r"[\[(]?\b(\d{4})-(\d{2})-(\d{2})\b[\])]?\s*[:,–—-]?\s*")
_ROLES = {"user": "user", "human": "user", "assistant": "assistant"}


def is_conversations(data: bytes) -> bool:
    """Return whether a file is a list, as the exports of other assistants are."""
    return data.lstrip()[:1] == b"["


def conversations(data: bytes) -> list[NewMemory]:
    """The turns of exported conversations, each with who said it and when."""
    try:
        given = msgspec.json.decode(data, type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the file is no export of conversations: {error}") from None
    found: list[NewMemory] = []
    for number, each in enumerate(given, 1):
        name = str(each.get("title") or each.get("name") or f"conversation {number}")
        if isinstance(each.get("mapping"), dict):
            turns, origin = _chatgpt(each["mapping"]), "chatgpt"
        elif isinstance(each.get("chat_messages"), list):
            turns, origin = _claude(each["chat_messages"]), "claude"
        else:
            raise InvalidInput(
                f"conversation {number} of the file is in no form that is known: exports of ChatGPT"
                " and Claude are"
            )
        found += _turns(f"{origin}/{number} {name}"[:_MOST_NAME], turns)
    return found


def markdown(text: str, file: str) -> list[NewMemory]:
    """One item for each point of the lists, with the day that stands before it or in the heading
    above it.
    """
    found: list[NewMemory] = []
    name = PurePath(file).name[:_MOST_NAME]
    heading_ms = 0
    for place, line in enumerate(text.splitlines(), 1):
        heading = _HEADING.match(line)
        if heading:
            heading_ms = _day_ms(heading[1])
            continue
        point = _BULLET.match(line)
        if point is None:
            continue
        day_ms = _day_ms(point[1]) or heading_ms
        said = _DAY.sub("", point[1], count=1) if _DAY.match(point[1]) else point[1]
        found += _pieces(said, name, place, day_ms)
    if not found:
        raise InvalidInput(
            f"{name} has no list: each thing to remember is a line that begins with -"
        )
    return found


def _chatgpt(mapping: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    messages = [each.get("message") or {} for each in mapping.values() if isinstance(each, dict)]
    for message in sorted(messages, key=lambda each: each.get("create_time") or 0):
        role = str((message.get("author") or {}).get("role", ""))
        parts = (message.get("content") or {}).get("parts") or ()
        text = "\n".join(each for each in parts if isinstance(each, str))
        yield role, text, int((message.get("create_time") or 0) * 1000)


def _claude(messages: Iterable[Any]) -> Iterator[tuple[str, str, int]]:
    for message in messages:
        if isinstance(message, dict):
            said_ms = _time_ms(str(message.get("created_at", "")))
            yield str(message.get("sender", "")), str(message.get("text", "")), said_ms


def _turns(source: str, turns: Iterable[tuple[str, str, int]]) -> Iterator[NewMemory]:
    place = 0
    for role, text, said_ms in turns:
        if role in _ROLES and text.strip():
            for piece in _pieces(text, source, place, said_ms, f"{_ROLES[role]}: "):
                yield piece
                place += 1


def _pieces(
    text: str, source: str, place: int, said_ms: int, before: str = ""
) -> Iterator[NewMemory]:
    most = LONGEST_TEXT - len(before)
    text = text.strip()
    for number, first in enumerate(range(0, len(text), most)):
        yield NewMemory(
            text=f"{before}{text[first : first + most]}",
            source=source,
            place=place + number,
            valid_from_ms=max(0, said_ms),
        )


def _day_ms(text: str) -> int:
    found = _DAY.search(text)
    return _time_ms("-".join(found.groups())) if found else 0


def _time_ms(text: str) -> int:
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return 0
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1000)
